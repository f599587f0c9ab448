r"""A column of counts, 0, 1, 2, …: the model's value is the count itself.

A negative or fractional number has probability zero.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from misscnf.data import domains
from misscnf.data.cells import FLOAT, OBJECT, Dtype, can_hold_numbers, number_series, read_numbers
from misscnf.data.codecs.base import Column
from misscnf.data.codecs.continuous import refuse_constant
from misscnf.data.domains import Domain

__all__ = ["Count", "is_count"]


def is_count(raw: np.ndarray) -> np.ndarray:
    """Whether each number is a whole one of at least 0."""
    with np.errstate(invalid="ignore"):
        return (raw >= 0) & (raw == np.floor(raw))


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
    shown_levels = ""
    expected = "a whole number of at least 0"

    @classmethod
    def learn_numbers(cls, name: str, cells: np.ndarray, dtype: Dtype = FLOAT) -> Count:
        """Learns from the observed counts."""
        refuse_constant(name, cells)
        dtype = dtype if can_hold_numbers(dtype) else FLOAT
        return cls(name, float(cells.mean()), float(cells.std()), bool((cells == 0).any()), dtype)

    @property
    def domain(self) -> Domain:
        """A count."""
        return domains.Count(self.location, self.scale, self.has_zero)

    def read(self, cells: pd.Series, *, unseen: str = "error") -> np.ndarray:
        """Reads cells as numbers (N,), NaN in the holes."""
        return read_numbers(cells, self.name)

    def parse(self, cells: pd.Series) -> np.ndarray:
        """Reads what people write in a question, NaN where it is no count."""
        raw = read_numbers(cells, self.name)
        return np.where(is_count(raw), raw, np.nan)

    def possible(self, raw: np.ndarray) -> np.ndarray:
        """Whether each number is a count."""
        return is_count(raw) | np.isnan(raw)

    def series(
        self, values: np.ndarray, dtype: Dtype | None = None, *, exact: bool = False
    ) -> pd.Series:
        """Counts in the user's dtype."""
        dtype = self.dtype if dtype is None else dtype
        if dtype == OBJECT:
            return pd.Series(values.astype(np.int64).tolist(), dtype=object, name=self.name)
        return number_series(values, dtype, self.name, low=-1.0, high=np.inf)

    def output_dtype(self, cells: pd.Series) -> Dtype:
        """The dtype of the cells, if it can hold numbers."""
        return cells.dtype if can_hold_numbers(cells.dtype) and cells.notna().any() else self.dtype
