r"""A column of levels: binary, ordinal or categorical. The model's value is the code of the level.

    code = 0, 1, …, levels − 1,  in the order of an ordinal column; no order is meant otherwise

Levels are text, numbers, True or False, and come back as they were, in the column's dtype. Equal
numbers are one level however they are stored: 1, 1.0 and True.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_any_real_numeric_dtype

from misscnf.data import domains, dtypes
from misscnf.data.cells import Label, level_text, listed, plain, quoted, row_label
from misscnf.data.codecs.base import Column
from misscnf.data.domains import Domain
from misscnf.data.dtypes import OBJECT, Dtype
from misscnf.errors import InputError

__all__ = ["Levels"]

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class Levels(Column, kinds=("binary", "ordinal", "categorical")):
    """The codec of a binary, ordinal or categorical column."""

    name: str
    kind: str
    """Which of the three."""
    levels: tuple[Label, ...]
    """The level of each code."""
    location: float = 0.0
    """The mean of the observed codes, where they have an order."""
    scale: float = 1.0
    """Their standard deviation."""
    dtype: Dtype = OBJECT

    @classmethod
    def learn(cls, name: str, kind: str, levels: Sequence[Label], cells: pd.Series) -> Levels:
        """Learns from the cells of a column, all of whose values are among the levels."""
        dtype = cells.dtype
        if not (dtypes.can_hold_labels(dtype, levels) and dtypes.restorable(dtype)):
            logger.info("Column %r: what is drawn comes back as object, not %s.", name, dtype)
            dtype = OBJECT
        column = cls(name, kind, tuple(levels), dtype=dtype)
        if kind == "categorical":
            return column
        codes = column.read(cells)
        codes = codes[~np.isnan(codes)]
        return replace(column, location=float(codes.mean()), scale=float(codes.std()))

    @property
    def domain(self) -> Domain:
        if self.kind == "categorical":
            return domains.Categorical(len(self.levels))
        if self.kind == "binary":
            return domains.Binary(self.location, self.scale)
        return domains.Ordinal(self.location, self.scale, len(self.levels))

    @property
    def ends(self) -> tuple[float, float]:
        numbers = [level for level in self.levels if not isinstance(level, str)]
        if len(numbers) < len(self.levels):
            return super().ends
        return float(min(numbers)), float(max(numbers))

    @property
    def shown_kind(self) -> str:
        return self.kind

    @property
    def request(self) -> dict[str, Any]:
        return {"kind": self.kind, "levels": list(self.levels)}

    @property
    def shown_levels(self) -> str:
        """The levels, in their order if they have one."""
        joint = " < " if self.kind == "ordinal" else ", "
        more = len(self.levels) - 12
        shown = joint.join(map(level_text, self.levels[:12]))
        return f"{shown} and {more} more" if more > 0 else shown

    @property
    def expected(self) -> str:
        return f"one of the levels {listed(self.levels, most=20)}"

    def as_written(self, cells: pd.Series) -> pd.Series:
        """Numbers as the texts that levels are: a file says 0 for the level '0' too."""
        texts = all(isinstance(level, str) for level in self.levels)
        if not texts or not is_any_real_numeric_dtype(cells.dtype):
            return cells
        numbers = pd.to_numeric(pd.Series(self.levels), errors="coerce")
        if numbers.isna().any() or numbers.duplicated().any():
            return cells
        known = dict(zip(numbers, self.levels, strict=True))
        return cells.map(lambda cell: known.get(cell, cell), na_action="ignore").astype(OBJECT)

    def read(self, cells: pd.Series, *, unseen: str = "error") -> np.ndarray:
        codes = self._codes(cells)
        unknown = codes < 0
        if unknown.any():
            if unseen != "missing":
                row = int(unknown.argmax())
                raise InputError(
                    f"column {self.name!r} has {quoted(cells.iloc[row])} in the row labelled "
                    f"{row_label(cells.index, row)}, which was not seen at fit; expected "
                    f"{self.expected}, or MissCNF(..., unseen='missing') to make it a hole."
                )
            unseen_text = "Column %r: %d cells with levels unseen at fit are taken as missing."
            logger.warning(unseen_text, self.name, int(unknown.sum()))
        return np.where(unknown, np.nan, codes)

    def parse(self, cells: pd.Series) -> np.ndarray:
        codes = self._codes(cells)
        return np.where(codes < 0, np.nan, codes)

    def _codes(self, cells: pd.Series) -> np.ndarray:
        """Returns the code of each cell (N,), NaN in a hole and −1 for what is no level."""
        known: dict[Label | None, float] = {level: code for code, level in enumerate(self.levels)}
        codes = np.full(len(cells), np.nan)
        there = cells.notna().to_numpy()
        seen = cells[there]
        if seen.dtype == object:  # which may hold what cannot be compared, such as lists
            codes[there] = [known.get(plain(cell), -1.0) for cell in seen]
        elif len(seen):
            places, distinct = pd.factorize(seen)
            codes[there] = np.array([known.get(plain(cell), -1.0) for cell in distinct])[places]
        return codes

    def possible(self, raw: np.ndarray) -> np.ndarray:
        """Whether each code is a level: reading leaves no other."""
        return np.ones(raw.shape, dtype=bool)

    def series(
        self, values: np.ndarray, dtype: Dtype | None = None, *, exact: bool = False
    ) -> pd.Series:
        """Codes as levels, in the user's dtype."""
        written = pd.Series(list(self.levels), dtype=self.dtype if dtype is None else dtype)
        drawn = written.take(np.rint(values).astype(np.int64)).reset_index(drop=True)
        return drawn.rename(self.name)

    def output_dtype(self, cells: pd.Series) -> Dtype:
        """The dtype of the cells, if it can hold every level."""
        fits = cells.notna().any() and dtypes.can_hold_labels(cells.dtype, self.levels)
        return cells.dtype if fits else self.dtype

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Self:
        return super().from_dict({**entry, "levels": tuple(entry["levels"])})
