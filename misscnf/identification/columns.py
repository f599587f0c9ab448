r"""Columns as the search for regions sees them: numbers in the user's units, or levels.

A region is said in words that a person can act on, "dose is above 12.5" or "stage is II or III",
so each column keeps the user's values beside what the model works with. Numbers are ordered, and
regions in them are intervals; a column of levels (binary, categorical, or with two values only)
has none, and regions in it are sets. Columns outside the graph may explain holes as well as any.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from misscnf.data.codecs import Column as Codec
from misscnf.data.codecs import Levels
from misscnf.data.table import IncompleteTable

__all__ = ["Column", "column_of", "read_columns"]


@dataclass(frozen=True, eq=False)
class Column:
    """One column: numbers, and what they mean."""

    name: str
    values: np.ndarray
    """(N,) float64, NaN in the holes: the user's numbers, or codes 0, 1, … of the labels."""
    labels: tuple[str, ...] | None
    """What the codes stand for, in words; None if values are the user's own numbers."""
    ordered: bool
    """Whether intervals make sense."""
    node: int | None
    """Its position in the graph, None if it is outside."""

    @cached_property
    def observed(self) -> np.ndarray:
        """(N,) True where a value is there."""
        return ~np.isnan(self.values)

    @property
    def stepped(self) -> bool:
        """Whether values are levels or whole numbers, which a stretch can end at."""
        shown = self.values[self.observed]
        return self.labels is not None or bool((shown == np.round(shown)).all())

    def label(self, value: float) -> str:
        """Returns a value, or the level of a code, in words."""
        return f"{value:.12g}" if self.labels is None else self.labels[int(value)]

    def features(self) -> np.ndarray:
        """(N, k) standardised numbers: itself if ordered or two-valued, else one a level less one.

        Holes are NaN.
        """
        levels = np.unique(self.values[self.observed])
        if self.ordered or len(levels) <= 2:
            parts = [self.values]
        else:
            parts = [np.where(self.observed, self.values == v, np.nan) for v in levels[1:]]
        return np.column_stack([_standardised(part) for part in parts])


def read_columns(table: IncompleteTable, most_levels: int) -> tuple[Column, ...]:
    """Reads the columns of the nodes, in graph order, then the usable ones outside the graph.

    A column of words outside the graph with more than the most levels is left aside.
    """
    nodes = [_read_node(table, j) for j in range(len(table.nodes))]
    others = [_read_outsider(series, most_levels) for series in table.outside]
    return (*nodes, *(column for column in others if column is not None))


def _read_node(table: IncompleteTable, node: int) -> Column:
    values = np.where(table.observed[:, node].numpy(), table.raw[:, node], np.nan)
    return column_of(table.nodes[node], values, table.schema.columns[node], node)


def column_of(name: str, values: np.ndarray, codec: Codec | None, node: int | None) -> Column:
    """Returns a column of the user's numbers or codes (N,); without a codec they are numbers."""
    if isinstance(codec, Levels):
        return Column(name, values, _labels(codec.levels), codec.kind == "ordinal", node)
    return _by_levels_if_two(Column(name, values, None, ordered=True, node=node))


def _read_outsider(series: pd.Series, most_levels: int) -> Column | None:
    """Reads a column outside the graph; None if it is constant, a date, or of too many words."""
    types, name = pd.api.types, str(series.name)
    if types.is_any_real_numeric_dtype(series) or types.is_bool_dtype(series):
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        values = np.where(np.isfinite(values), values, np.nan)
        column = _by_levels_if_two(Column(name, values, None, ordered=True, node=None))
    elif isinstance(series.dtype, pd.CategoricalDtype) or series.dtype.kind in "OU":
        codes, labels = pd.factorize(series.astype(str).where(series.notna()), sort=True)
        if len(labels) > most_levels:
            return None
        values = np.where(codes >= 0, codes.astype(np.float64), np.nan)
        column = Column(name, values, _labels(labels), ordered=False, node=None)
    else:
        return None
    return column if len(np.unique(column.values[column.observed])) > 1 else None


def _by_levels_if_two(column: Column) -> Column:
    shown = column.values[column.observed]
    levels = np.unique(shown[:1000])  # almost every column of numbers is told by its first rows
    if len(levels) <= 2:
        levels = np.unique(shown)
    if len(levels) > 2:
        return column
    codes = np.where(column.observed, np.searchsorted(levels, column.values), np.nan)
    return Column(column.name, codes, _labels(levels.tolist()), ordered=False, node=column.node)


def _labels(levels: Iterable[Any]) -> tuple[str, ...]:
    return tuple(f"{v:.12g}" if isinstance(v, float) else str(v) for v in levels)


def _standardised(values: np.ndarray) -> np.ndarray:
    shown = values[~np.isnan(values)]
    scale = shown.std() if len(shown) else 0.0
    return (values - (shown.mean() if len(shown) else 0.0)) / (scale if scale > 0 else 1.0)
