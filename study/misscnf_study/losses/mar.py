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
from misscnf_study.losses.cells import LogisticMissingness
from misscnf_study.losses.loss import Flags

__all__ = ["Mar", "conditioning_set"]


def conditioning_set(graph: CausalGraph, node: int) -> tuple[int, ...]:
    """Returns the roots that the loss of a node depends on; none for a root, never lost."""
    if not graph.parents[node]:
        return ()
    roots = graph.roots
    return tuple(p for p in graph.parents[node] if p in roots) or roots


@final
@dataclass(frozen=True)
class Mar(LogisticMissingness):
    """Loses values because of roots."""

    def conditions(self, graph: CausalGraph) -> Flags:
        """Returns cond(i) in row i."""
        found = np.zeros((len(graph), len(graph)), dtype=bool)
        for i in range(len(graph)):
            found[i, list(conditioning_set(graph, i))] = True
        return found
