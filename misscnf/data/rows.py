r"""Rows of a table in the model's numbers, wherever they lie.

Every objective of a fit is a sum over batches of rows with one reduction at its end. A source
hands out batches in order, and any rows by their numbers; nothing in fitting or integration holds
the table by itself. Here rows lie in memory; other sources hand out the same from elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

__all__ = [
    "ROWS_AT_ONCE",
    "Batch",
    "RowSource",
    "MemoryRows",
    "SelectedRows",
    "JoinedRows",
    "ToldRows",
]

ROWS_AT_ONCE = 65_536
"""Rows of a batch, unless somebody asks for fewer: it bounds the memory of a pass."""


class Batch(NamedTuple):
    """Some rows. n rows, d nodes."""

    values: Tensor
    """(n, d) in double precision, zero in the holes"""
    observed: Tensor
    """(n, d), True where a value is there"""


class RowSource(Protocol):
    """Where rows come from."""

    @property
    def columns(self) -> int:
        """The number of nodes, d."""

    def __len__(self) -> int: ...

    def take(self, rows: Tensor) -> Batch:
        """Returns the rows of these numbers, in their order."""

    def batches(self, size: int = ROWS_AT_ONCE) -> Iterator[Batch]:
        """Yields all rows in order, so many at a time; the last batch may be shorter."""
        return (self.take(part) for part in torch.arange(len(self)).split(size))


@dataclass(frozen=True, eq=False)
class MemoryRows(RowSource):
    """Rows that lie in memory."""

    values: Tensor
    """(N, d), with finite numbers in the holes"""
    observed: Tensor
    """(N, d)"""

    @property
    def columns(self) -> int:
        return self.values.shape[1]

    def __len__(self) -> int:
        return len(self.values)

    def take(self, rows: Tensor) -> Batch:
        return _batch(self.values[rows], self.observed[rows])

    def batches(self, size: int = ROWS_AT_ONCE) -> Iterator[Batch]:
        pairs = zip(self.values.split(size), self.observed.split(size), strict=True)
        return (_batch(*pair) for pair in pairs)


@dataclass(frozen=True, eq=False)
class SelectedRows(RowSource):
    """Some rows of a source."""

    source: RowSource
    rows: Tensor
    """(n,) their numbers, in the order in which they are handed out"""

    @property
    def columns(self) -> int:
        return self.source.columns

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Tensor) -> Batch:
        return self.source.take(self.rows[rows])


@dataclass(frozen=True, eq=False)
class JoinedRows(RowSource):
    """The rows of one source, and then those of another."""

    first: RowSource
    second: RowSource

    @property
    def columns(self) -> int:
        return self.first.columns

    def __len__(self) -> int:
        return len(self.first) + len(self.second)

    def take(self, rows: Tensor) -> Batch:
        later = rows >= len(self.first)
        parts = self.first.take(rows[~later]), self.second.take(rows[later] - len(self.first))
        order = torch.argsort(torch.argsort(later, stable=True))
        return Batch(*(torch.cat(pair)[order] for pair in zip(*parts, strict=True)))


@dataclass(frozen=True, eq=False)
class ToldRows(RowSource):
    """Rows of a source whose passes are followed by somebody."""

    source: RowSource
    tell: Callable[[int, int, str], object]
    """is told how many rows of a pass are done, of how many, and what the pass is"""
    what: str

    @property
    def columns(self) -> int:
        return self.source.columns

    def __len__(self) -> int:
        return len(self.source)

    def take(self, rows: Tensor) -> Batch:
        return self.source.take(rows)

    def batches(self, size: int = ROWS_AT_ONCE) -> Iterator[Batch]:
        done = 0
        self.tell(done, len(self), self.what)
        for batch in self.source.batches(size):
            yield batch
            done += len(batch.values)
            self.tell(done, len(self), self.what)


def _batch(values: Tensor, observed: Tensor) -> Batch:
    return Batch(torch.where(observed, values, 0.0).double(), observed)
