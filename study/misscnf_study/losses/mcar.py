r"""Missing completely at random: every cell but the roots' is lost with one chance.

P(x_i lost) = rate    for every node i with parents       (paper, Appendix "MCAR")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from misscnf import CausalGraph
from misscnf_study.losses.cells import CellLoss, check_rate, constant_loss, never_lost
from misscnf_study.losses.loss import Floats, Missingness

__all__ = ["Mcar"]


@final
@dataclass(frozen=True)
class Mcar(Missingness):
    """Loses values by a coin."""

    rate: float
    """The chance of each cell."""

    def __post_init__(self) -> None:
        check_rate(self.rate)

    def reads(self, graph: CausalGraph) -> tuple[int, ...]:
        """Returns nothing: no value has a say."""
        return ()

    def calibrate(
        self, values: Floats, graph: CausalGraph, generator: np.random.Generator
    ) -> CellLoss:
        """Returns the law; there is nothing to find."""
        return constant_loss(~never_lost(graph), self.rate)
