r"""A column of counts, 0, 1, 2, …: the model's value is the count itself.

A negative or fractional number has probability zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from misscnf.data import domains, dtypes
from misscnf.data.codecs.base import Column
from misscnf.data.codecs.continuous import refuse_constant
from misscnf.data.domains import Domain
from misscnf.data.dtypes import FLOAT, OBJECT, Dtype

__all__ = ["Count"]


@dataclass(frozen=True)
class Count(Column, kinds=("count",)):
    """The codec of a column of counts."""

    name: str
    location: float
    """The mean of the observed counts."""
    scale: float
    """Their standard deviation."""
    has_zero: bool
    """Whether zero was seen, and something above it."""
    dtype: Dtype = FLOAT

    shown_kind = request = "count"
    expected = "a whole number of at least 0"

    @classmethod
    def learn_numbers(cls, name: str, cells: np.ndarray, dtype: Dtype = FLOAT) -> Count:
        refuse_constant(name, cells)
        dtype = dtype if dtypes.can_hold_numbers(dtype) else FLOAT
        return cls(name, float(cells.mean()), float(cells.std()), bool((cells == 0).any()), dtype)

    @property
    def domain(self) -> Domain:
        return domains.Count(self.location, self.scale, self.has_zero)

    @property
    def ends(self) -> tuple[float, float]:
        return 0.0, math.inf

    def possible(self, raw: np.ndarray) -> np.ndarray:
        with np.errstate(invalid="ignore"):
            return (raw >= 0) & (raw == np.floor(raw)) | np.isnan(raw)

    def series(
        self, values: np.ndarray, dtype: Dtype | None = None, *, exact: bool = False
    ) -> pd.Series:
        """Counts in the user's dtype."""
        dtype = self.dtype if dtype is None else dtype
        if dtype == OBJECT:
            return pd.Series(values.astype(np.int64).tolist(), dtype=object, name=self.name)
        return dtypes.write_numbers(values, dtype, self.name, (-1.0, np.inf))
