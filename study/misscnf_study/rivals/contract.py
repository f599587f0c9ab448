r"""The contract of an imputer: learn on one table, fill the holes of any.

    imputer = Mice().fit(train, seed=0)
    imputer.complete(train), imputer.complete(validation)

A rival of the study imputes first and fits the same flow to the completed table (paper, Appendix
"Imputation baselines"). What must hold for each is written here, once: observed cells come back
bit for bit, nothing is left missing, the same seed gives the same answer however often it is
asked, and a table that cannot be imputed is refused in a sentence. A method itself only learns
from and fills matrices of numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from misscnf import InputError

__all__ = ["Imputer", "ImpossibleError", "Floats", "means_filled", "others"]

Floats: TypeAlias = NDArray[np.float64]


class ImpossibleError(InputError):
    """A method has nothing to work with in this table; another method may."""


class Imputer(ABC):
    """Learns on a table with holes and completes tables. Abstract: subclasses are final.

    To add one, write `_learn` and `_fill`, and add a line to the table in `rivals/__init__.py`:
    every law in study/tests/test_rivals.py then holds or fails for it by name.
    """

    def fit(self, df: pd.DataFrame, seed: int) -> Self:
        """Learns from a table of numbers, NaN where a value is unknown.

        Arguments:
            df: The table; each column has at least one value.
            seed: Where all randomness starts, of `complete` too.

        Raises:
            ImpossibleError: If a column has no value at all.
            InputError: If the table is not one of finite numbers.
        """
        values = _read(df, list(df.columns))
        shown = (~np.isnan(values)).sum(axis=0).tolist()
        empty = [str(name) for name, count in zip(df.columns, shown, strict=True) if not count]
        if empty:
            raise ImpossibleError(
                f"no value of {', '.join(empty)} is known in the {len(df)} rows to learn from, so "
                f"nothing can be imputed there; leave the column out or add rows that show it."
            )
        self._columns = list(df.columns)
        self._learn(values, seed)
        return self

    def complete(self, df: pd.DataFrame) -> pd.DataFrame:
        """Returns a copy of a table with its holes filled; columns with holes become floats.

        Arguments:
            df: A table with the columns of the one learned from, in any order.

        Raises:
            InputError: If the columns differ, or the imputer is not fitted.
        """
        values = _read(df, self._known_columns(df))
        observed = ~np.isnan(values)
        if observed.all():
            return df.copy()
        filled = np.asarray(self._fill(values.copy()), dtype=np.float64)
        self._check(filled, observed)
        table = df.copy()
        for j in np.flatnonzero(~observed.all(axis=0)):
            table[self._columns[j]] = np.where(observed[:, j], values[:, j], filled[:, j])
        return table

    @abstractmethod
    def _learn(self, values: Floats, seed: int) -> None:
        """Learns from values (N, d) with NaN in the holes."""

    @abstractmethod
    def _fill(self, values: Floats) -> Floats:
        """Returns values (N, d) with the holes filled; what it says of the rest is ignored."""

    def _known_columns(self, df: pd.DataFrame) -> list:
        if not hasattr(self, "_columns"):
            raise InputError(f"this {type(self).__name__} is not fitted yet; call fit first.")
        if set(df.columns) != set(self._columns):
            raise InputError(
                f"{type(self).__name__} learned from the columns "
                f"{', '.join(map(str, self._columns))}; got {', '.join(map(str, df.columns))}."
            )
        return self._columns

    def _check(self, filled: Floats, observed: NDArray[np.bool_]) -> None:
        if filled.shape != observed.shape:
            raise InputError(
                f"{type(self).__name__} returned a table of shape {filled.shape} for one of shape "
                f"{observed.shape}."
            )
        left = int((~np.isfinite(filled) & ~observed).sum())
        if left:
            raise InputError(f"{type(self).__name__} left {left} holes without a finite value.")


def means_filled(values: Floats, means: Floats) -> Floats:
    """Returns values (N, d) with each hole at its column's mean (d,)."""
    return np.where(np.isnan(values), means, values)


def others(values: Floats, j: int) -> Floats:
    """Returns all columns but one, (N, d − 1); a constant where it has no other."""
    return np.delete(values, j, axis=1) if values.shape[1] > 1 else np.zeros_like(values)


def _read(df: pd.DataFrame, columns: list) -> Floats:
    if not len(columns) or len(set(columns)) < len(df.columns):
        raise InputError("the table needs columns, each with a name of its own.")
    values = np.empty((len(df), len(columns)))
    for j, name in enumerate(columns):
        column = df[name]
        types = pd.api.types
        if not (types.is_any_real_numeric_dtype(column) or types.is_bool_dtype(column)):
            raise InputError(
                f"the column {name!r} is of type {column.dtype}; give it as numbers to impute it."
            )
        values[:, j] = column.to_numpy(dtype=np.float64, na_value=np.nan)
    if np.isinf(values).any():
        raise InputError("the table holds infinite values; replace them or leave them empty.")
    return values
