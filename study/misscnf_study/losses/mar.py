r"""Missing at random: what a node loses depends on roots, which are always seen.

    P(x_i lost) = σ( Σ_{j ∈ cond(i)} w_ij z_j + b_i ),    w_ij ~ U[0.1, 1.1]

cond(i) holds the root parents of x_i, or all roots if it has none (paper, Section 4.1). The
appendix has "non-root" in both places, but then says that cond(i) is always observed: roots are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from misscnf import CausalGraph
from misscnf_study.losses.cells import (
    CellLoss,
    Scale,
    check_rate,
    check_scale,
    logistic_loss,
)
from misscnf_study.losses.loss import Floats, Missingness

__all__ = ["Mar", "conditioning_set"]


def conditioning_set(graph: CausalGraph, node: int) -> tuple[int, ...]:
    """Returns the roots that the loss of a node depends on; none for a root, never lost."""
    if not graph.parents[node]:
        return ()
    roots = graph.roots
    return tuple(p for p in graph.parents[node] if p in roots) or roots


@final
@dataclass(frozen=True)
class Mar(Missingness):
    """Loses values because of roots."""

    rate: float
    """The mean chance of each node with parents."""
    scale: Scale = "standardised"
    """What the logits act on."""

    def __post_init__(self) -> None:
        check_rate(self.rate)
        check_scale(self.scale)

    def reads(self, graph: CausalGraph) -> tuple[int, ...]:
        """Returns the roots that some node's loss depends on."""
        return tuple(sorted({j for i in range(len(graph)) for j in conditioning_set(graph, i)}))

    def maximise_monte_carlo(
        self, values: Floats, graph: CausalGraph, generator: np.random.Generator
    ) -> CellLoss:
        """Draws the weights and finds the intercepts."""
        conditions = np.zeros((len(graph), len(graph)), dtype=bool)
        for i in range(len(graph)):
            conditions[i, list(conditioning_set(graph, i))] = True
        return logistic_loss(values, conditions, self.rate, self.scale, generator)
