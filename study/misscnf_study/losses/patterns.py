r"""Rows that show one of two sets of nodes.

    P(first | x) = σ( (x_cut − centre) / spread ) · 1{x_cut ≥ threshold},    else the second

(paper, Appendix "Pattern-based MAR"); without a cut the chance of the first is one half
(Appendix "Computational scalability"). Cells of a row are lost together, not one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy.special import expit

from misscnf_study.losses.loss import Flags, Floats, Loss

__all__ = ["PatternLoss"]


@final
@dataclass(frozen=True, eq=False)
class PatternLoss(Loss):
    """Each row shows the first set of nodes or the second, by the value of one node."""

    first: Flags
    """(d,) True where the first pattern shows a node."""
    second: Flags
    """(d,) True where the second pattern shows a node."""
    cut: int | None = None
    """The node that decides; None leaves it to a coin."""
    centre: float = 0.0
    spread: float = 1.0
    threshold: float = -np.inf
    """Below it, the first pattern never happens."""

    def first_probability(self, values: Floats) -> Floats:
        """Returns the chance of the first pattern, (N,)."""
        if self.cut is None:
            return np.full(len(values), 0.5)
        x = values[:, self.cut]
        return expit((x - self.centre) / self.spread) * (x >= self.threshold)

    def probability(self, values: Floats) -> Floats:
        """Returns each cell's chance, (N, d): that of the patterns that do not show it."""
        first = self.first_probability(values)[:, None]
        return first * ~self.first + (1.0 - first) * ~self.second

    def observed(self, values: Floats, generator: np.random.Generator) -> Flags:
        """Draws one uniform number a row; the row is the first where that is below its chance."""
        is_first = generator.random(len(values)) < self.first_probability(values)
        return np.where(is_first[:, None], self.first, self.second)
