r"""Missing not at random: a value is lost because of itself.

    P(x_i lost) = σ( w_i z_i + b_i ),    w_i ~ U[0.1, 1.1],    for every node i with parents

(paper, Appendix "Self-masking MNAR"). High values are lost most, and nothing that is seen says
by how much, so without a model of the loss the law of x is in general not identified.
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
    never_lost,
)
from misscnf_study.losses.loss import Floats, Missingness

__all__ = ["SelfMasking"]


@final
@dataclass(frozen=True)
class SelfMasking(Missingness):
    """Loses values because of themselves."""

    rate: float
    """The mean chance of each node with parents."""
    scale: Scale = "standardised"
    """What the logits act on."""

    def __post_init__(self) -> None:
        check_rate(self.rate)
        check_scale(self.scale)

    def reads(self, graph: CausalGraph) -> tuple[int, ...]:
        """Returns all nodes with parents."""
        return tuple(i for i, parents in enumerate(graph.parents) if parents)

    def maximise_monte_carlo(
        self, values: Floats, graph: CausalGraph, generator: np.random.Generator
    ) -> CellLoss:
        """Draws the weights and finds the intercepts."""
        conditions = np.diag(~never_lost(graph))
        return logistic_loss(values, conditions, self.rate, self.scale, generator)
