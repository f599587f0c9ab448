r"""Which cells rows show together, counted a batch at a time.

A pattern is the set O of columns that a row shows. There are far fewer patterns than rows, so that
what all rows of a table show together is known where memory holds only some of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

__all__ = ["PatternCounts", "as_keys", "from_keys"]


def as_keys(observed: np.ndarray) -> np.ndarray:
    """Returns rows of True and False, (n, d), as single items: whole numbers where d allows it.

    Numbers are sorted many times faster than bytes; both sort alike.
    """
    packed = np.packbits(observed, axis=1)
    if packed.shape[1] > 8:
        whole = np.ascontiguousarray(packed)
        return whole.view(np.dtype((np.void, whole.shape[1]))).ravel()
    padded = np.zeros((len(packed), 8), dtype=np.uint8)
    padded[:, : packed.shape[1]] = packed
    return padded.view(">u8").ravel().astype(np.uint64)


def from_keys(keys: np.ndarray, columns: int) -> np.ndarray:
    """Returns the rows (n, d) of True and False that keys stand for."""
    if keys.dtype == np.uint64:
        keys = keys.astype(">u8")
    packed = keys.view(np.uint8).reshape(len(keys), keys.dtype.itemsize)
    return np.unpackbits(packed, axis=1, count=columns).astype(bool)


class PatternCounts:
    """The patterns of rows, and how many rows have each. P patterns, d columns.

    Arguments:
        columns: d.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._counts = Counter[int | bytes]()
        """By their keys."""

    def add(self, observed: np.ndarray) -> None:
        """Counts some rows, (n, d) True where a value is there."""
        self._add(observed, np.ones(len(observed), dtype=int))

    def _add(self, observed: np.ndarray, rows: np.ndarray) -> None:
        keys, of = np.unique(as_keys(observed), return_inverse=True)
        counts = np.bincount(of.ravel(), rows, len(keys)).astype(int)
        self._counts.update(dict(zip(keys.tolist(), counts.tolist(), strict=True)))

    @property
    def observed(self) -> np.ndarray:
        """(P, d) True where a pattern shows a column, sorted."""
        keys = sorted(self._counts)
        dtype = np.uint64 if self.columns <= 64 else f"V{-(-self.columns // 8)}"
        return from_keys(np.array(keys, dtype=dtype), self.columns)

    @property
    def rows(self) -> np.ndarray:
        """(P,) how many rows have each."""
        return np.array([self._counts[key] for key in sorted(self._counts)], dtype=int)

    def in_order(self, places: Sequence[int]) -> PatternCounts:
        """Returns the same with the columns in another order, or with some of them."""
        found = PatternCounts(len(places))
        found._add(self.observed[:, list(places)], self.rows)
        return found
