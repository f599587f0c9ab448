r"""Rows in the model's numbers that lie on disk.

A file has the rows one after the other, d numbers in double precision each and NaN in the holes,
so that batches are read in one go and any row is found by its number. It is read, not mapped:
what is in memory is what somebody asked for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from misscnf.data.rows import ROWS_AT_ONCE, Batch, RowSource

__all__ = ["StoredRows"]


@dataclass(frozen=True, eq=False)
class StoredRows(RowSource):
    """Rows in a file."""

    path: Path
    width: int
    """Numbers of a row in the file."""
    count: int
    """Rows."""
    places: tuple[int, ...]
    """Which number of a row each node has."""
    keeper: object = None
    """What must not go while the rows are needed, such as their folder."""

    @property
    def columns(self) -> int:
        return len(self.places)

    def __len__(self) -> int:
        return self.count

    def __getstate__(self) -> dict[str, object]:
        """Leaves the keeper here: another process reads rows, and does not own them."""
        return {**vars(self), "keeper": None}

    def in_order(self, places: list[int]) -> StoredRows:
        """Returns the same rows with their nodes in another order."""
        return replace(self, places=tuple(self.places[j] for j in places))

    def batches(self, size: int = ROWS_AT_ONCE) -> Iterator[Batch]:
        return (self.between(start, start + size) for start in range(0, self.count, size))

    def between(self, start: int, stop: int) -> Batch:
        """Returns the rows from one number up to another, or the end."""
        return self._batch(self._read(start, min(stop, self.count) - start))

    def take(self, rows: Tensor) -> Batch:
        wanted = rows.cpu().numpy()
        if not len(wanted):
            return self._batch(np.empty((0, self.width)))
        first, span = int(wanted.min()), int(wanted.max() - wanted.min()) + 1
        if span <= 16 * len(wanted):  # one long read costs less than many short ones
            return self._batch(self._read(first, span)[wanted - first])
        size = 8 * self.width
        with self.path.open("rb") as file:
            found = b"".join(os.pread(file.fileno(), size, size * int(row)) for row in wanted)
        return self._batch(np.frombuffer(found).reshape(-1, self.width))

    def _read(self, first: int, count: int) -> np.ndarray:
        begin, numbers = 8 * self.width * first, self.width * count
        return np.fromfile(self.path, count=numbers, offset=begin).reshape(-1, self.width)

    def _batch(self, numbers: np.ndarray) -> Batch:
        mine = numbers[:, self.places]
        observed = ~np.isnan(mine)
        return Batch(torch.from_numpy(np.where(observed, mine, 0.0)), torch.from_numpy(observed))
