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
from misscnf_study.losses.cells import LogisticMissingness, never_lost
from misscnf_study.losses.loss import Flags

__all__ = ["SelfMasking"]


@final
@dataclass(frozen=True)
class SelfMasking(LogisticMissingness):
    """Loses values because of themselves."""

    def conditions(self, graph: CausalGraph) -> Flags:
        """Returns the diagonal: each node with parents depends on itself."""
        return np.diag(~never_lost(graph))
