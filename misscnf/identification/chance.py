r"""How sure a count is: bounds for a chance, and what luck alone would do.

A family was seen whole in k of m rows. The upper bound of its chance there (Clopper and Pearson)
is the p at which so few would still happen with probability 1 − level:

    P( Bin(m, p) ≤ k ) = 1 − level.

With k = 0 and a level of 95 % it falls below 2 % at m = 149 rows. A stretch of rows that was
searched for is luckier than one that was given: where the family is seen with chance q around it,
n rows hold about 1 + n q places where a stretch may begin, so that

    luck = (1 + n q) · P( Bin(m, q) ≤ k )

is about the number of such stretches to expect from chance alone.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import bdtr, betaincinv

__all__ = ["upper_bound", "lower_bound", "luck", "fewest_rows"]


def upper_bound(whole: float, rows: float, level: float = 0.95) -> float:
    """Returns the one-sided upper bound of a chance; 1 where nothing was tried."""
    if whole >= rows:
        return 1.0
    return float(betaincinv(whole + 1.0, rows - whole, level))


def lower_bound(whole: float, rows: float, level: float = 0.95) -> float:
    """Returns the one-sided lower bound of a chance; 0 where nothing was tried."""
    if whole <= 0:
        return 0.0
    return float(betaincinv(whole, rows - whole + 1.0, 1.0 - level))


def luck(whole: int, rows: int, around: float, searched: int) -> float:
    """Returns how many stretches this empty are to be expected from chance alone.

    Arguments:
        whole: Rows of the stretch that show the family whole.
        rows: Rows of the stretch.
        around: The chance to see the family whole outside the stretch.
        searched: Rows in which the stretch was searched for.
    """
    return float((1.0 + searched * around) * bdtr(whole, rows, np.clip(around, 0.0, 1.0)))


def fewest_rows(chance: float, level: float = 0.95) -> int:
    """Returns how many rows without a whole family bring the upper bound below a chance."""
    return math.floor(math.log(1.0 - level) / math.log(1.0 - chance)) + 1
