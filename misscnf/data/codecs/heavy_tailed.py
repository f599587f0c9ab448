r"""A column with heavy tails: standardised by median and quartiles, which tails do not move.

A tail index α says how fast a tail falls, P(|x| > c) ~ c^−α: below 1 there is no mean, below 2 no
variance, and averages of squares are those of a few cells. Hill's estimate of it, from the k cells
of a side that are farthest from the median, is k / Σ log(d_i / d_k), with d their distances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from misscnf.data import dtypes
from misscnf.data.codecs.continuous import Continuous, refuse_constant
from misscnf.data.domains import HeavyTailed as HeavyTailedDomain
from misscnf.data.dtypes import FLOAT, Dtype
from misscnf.data.scales import Unit

__all__ = ["HeavyTailed", "tail_index"]


@dataclass(frozen=True)
class HeavyTailed(Continuous, kinds=("heavy-tailed",)):
    """The codec of a column with heavy tails."""

    domain = HeavyTailedDomain()
    shown_kind = request = "heavy-tailed"

    @classmethod
    def learn_numbers(cls, name: str, cells: np.ndarray, dtype: Dtype = FLOAT) -> HeavyTailed:
        refuse_constant(name, cells)
        lower, middle, upper = np.quantile(cells, (0.25, 0.5, 0.75))
        scale = (upper - lower) / 1.35 or float(np.abs(cells - middle).mean())
        dtype = dtype if dtypes.can_hold_numbers(dtype) else FLOAT
        return cls(name, Unit(float(middle), float(scale)), dtype)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "kind": "heavy-tailed"}


def tail_index(distances: np.ndarray, count: int) -> float:
    """Returns Hill's estimate from the largest distances; infinite where they are all alike."""
    farthest = np.sort(distances)[-count - 1 :]
    if farthest[0] <= 0.0:
        return np.inf
    mean = float(np.log(farthest[1:] / farthest[0]).mean())
    return 1.0 / mean if mean > 0.0 else np.inf
