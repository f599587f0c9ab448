r"""The intercept that makes a mean chance equal a wanted rate.

For scores s_n, the mean of σ(s_n + b) grows with b. It is at most r at b = logit(r) − max s and
at least r at b = logit(r) − min s, so bisection between the two finds the b with

    | (1/N) Σ_n σ(s_n + b) − r | ≤ tolerance

(paper, Appendix "MAR"; the paper's tolerance is 10⁻³, here it is tighter).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

__all__ = ["find_intercept"]

TOLERANCE = 1e-6
HALVINGS = 200
"""More than a bracket of doubles can be halved; the loop ends by the tolerance long before."""


def find_intercept(
    scores: NDArray[np.float64], rate: float, tolerance: float = TOLERANCE
) -> float:
    """Returns b with mean σ(scores + b) = rate, within the tolerance; ∓inf for rates 0 and 1."""
    if rate in (0.0, 1.0):
        return np.inf if rate else -np.inf
    low, high = logit(rate) - scores.max(), logit(rate) - scores.min()
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        excess = expit(scores + middle).mean() - rate
        if abs(excess) <= tolerance:
            break
        low, high = (low, middle) if excess > 0.0 else (middle, high)
    return float(middle)
