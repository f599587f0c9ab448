r"""Is one fit better than another? The difference on held-out rows, paired.

    difference = mean_i δ_i,   error = sd(δ) / √n,   δ_i = ℓ_i(one) − ℓ_i(other)

for the log-densities ℓ_i of the same rows under both. The weight of the one among the two is that
of pseudo-BMA+ (Yao, Vehtari, Simpson and Gelman 2018), with the normal law of the total in the
place of its bootstrap:

    weight = E[ 1 / (1 + e^−T) ],   T ~ N(n · difference, (n · error)²).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtri
from torch import Tensor

__all__ = ["ElpdDifference"]


@dataclass(frozen=True)
class ElpdDifference:
    """A difference of held-out log-densities, in nats a row."""

    mean: float = 0.0
    error: float = 0.0

    @staticmethod
    def of(difference: Tensor) -> ElpdDifference:
        """Summarises the differences of all rows."""
        if len(difference) < 2:  # one row cannot tell how much rows differ
            return ElpdDifference(float(difference.mean()), math.inf)
        error = float(difference.std() / math.sqrt(len(difference)))
        return ElpdDifference(float(difference.mean()), error)

    def shared(self, share: float) -> ElpdDifference:
        """Returns the difference by row of a table of which only a share was asked."""
        return ElpdDifference(self.mean * share, self.error * share)

    def __add__(self, other: ElpdDifference) -> ElpdDifference:
        """Adds what other factors gain, whose errors have little to do with these."""
        return ElpdDifference(self.mean + other.mean, math.hypot(self.error, other.error))

    @property
    def ratio(self) -> float:
        """The mean in standard errors."""
        if self.error > 0 or self.mean == 0:
            return self.mean / (self.error or 1.0)
        return math.copysign(math.inf, self.mean)

    def weight(self, rows: int) -> float:
        """Returns the weight of the one among the two, as so many rows tell it."""
        if not math.isfinite(self.error):
            return 0.5
        quantiles = ndtri((np.arange(200) + 0.5) / 200)
        return float(expit(rows * (self.mean + self.error * quantiles)).mean())

    def to_dict(self) -> dict[str, float]:
        """Returns plain numbers by name."""
        return {"elpd_difference": self.mean, "standard_error": self.error}
