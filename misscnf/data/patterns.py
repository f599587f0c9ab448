r"""Which cells rows show together, counted a batch at a time.

A pattern is the set O of columns that a row shows. There are far fewer patterns than rows, so that
what all rows of a table show together is known where memory holds only some of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

__all__ = ["PatternCounts"]


class PatternCounts:
    """The patterns of rows, and how many rows have each. P patterns, d columns.

    Arguments:
        columns: d.
    """

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self._counts = Counter[bytes]()

    def add(self, observed: np.ndarray) -> None:
        """Counts some rows, (n, d) True where a value is there."""
        found, counts = np.unique(np.packbits(observed, axis=1), axis=0, return_counts=True)
        for pattern, rows in zip(found, counts.tolist(), strict=True):
            self._counts[pattern.tobytes()] += rows

    @property
    def observed(self) -> np.ndarray:
        """(P, d) True where a pattern shows a column; the same order wherever they came from."""
        packed = np.frombuffer(b"".join(sorted(self._counts)), dtype=np.uint8)
        bits = np.unpackbits(packed.reshape(len(self._counts), -1), axis=1, count=self.columns)
        return bits.astype(bool)

    @property
    def rows(self) -> np.ndarray:
        """(P,) how many rows have each."""
        return np.array([self._counts[pattern] for pattern in sorted(self._counts)], dtype=int)

    def in_order(self, places: Sequence[int]) -> PatternCounts:
        """Returns the same with the columns in another order, or with some of them."""
        found = PatternCounts(len(places))
        for pattern, rows in zip(self.observed[:, list(places)], self.rows.tolist(), strict=True):
            found._counts[np.packbits(pattern).tobytes()] += rows
        return found
