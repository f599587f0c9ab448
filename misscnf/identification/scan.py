r"""Stretches of a column where a family is (almost) never seen whole.

Sort the rows that show a column by its value, and give each row the score by which it tells a
chance of q₁ from one of q₀ (the least chance that counts as being seen),

    + log (1 − q₁)/(1 − q₀)   where the family is not whole,     log q₁/q₀   where it is.

The stretch with the largest sum is the one that is most likely unrevealed: it ends at rows that
show the family whole, and bridges one of them only if enough rows beyond are empty again (130 for
q₁ = q₀/10 and q₀ = 2 %). Prefix sums find it in one pass. It goes on to the end of the column if
the rows there are no more whole than q₀ allows.

A run from either end of a column needs no correction for its length: for any λ > 0,
exp(−λ Σ W + (1 − e^−λ) Σ p) is a supermartingale along the sorted rows, so that its bound holds at
all lengths at once.

All families are first scanned at once over some 256 blocks of rows, which never cut ties; only
where these hint at something does a pass over single rows follow.

How sure a count is: a family was seen whole in k of m rows. The upper bound of its chance there
(Clopper and Pearson) is the p at which so few would still happen with probability 1 − level:

    P( Bin(m, p) ≤ k ) = 1 − level.

With k = 0 and a level of 95 % it falls below 2 % at m = 149 rows. A stretch of rows that was
searched for is luckier than one that was given: where the family is seen with chance q around it,
n rows hold about 1 + n q places where a stretch may begin, so that

    luck = (1 + n q) · P( Bin(m, q) ≤ k )

is about the number of such stretches to expect from chance alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc, betaincinv

from misscnf.identification.columns import Column
from misscnf.identification.settings import RegionRules

__all__ = ["upper_bound", "lower_bound", "luck", "fewest_rows", "Axis", "Stretch", "Scores"]


def upper_bound(whole: float, rows: float, level: float = 0.95) -> float:
    """Returns the one-sided upper bound of a chance; 1 where nothing was tried."""
    return 1.0 if whole >= rows else float(betaincinv(whole + 1.0, rows - whole, level))


def lower_bound(whole: float, rows: float, level: float = 0.95) -> float:
    """Returns the one-sided lower bound of a chance; 0 where nothing was tried."""
    return 0.0 if whole <= 0 else float(betaincinv(whole, rows - whole + 1.0, 1.0 - level))


def luck(whole: int, rows: int, around: float, searched: int) -> float:
    """Returns how many stretches this empty, among the rows searched, chance alone would make.

    `around` is the chance to see the family whole outside the stretch.
    """
    return float((1.0 + searched * around) * bdtr(whole, rows, np.clip(around, 0.0, 1.0)))


def fewest_rows(chance: float, level: float = 0.95) -> int:
    """Returns how many rows without a whole family bring the upper bound below a chance."""
    return math.floor(math.log(1.0 - level) / math.log(1.0 - chance)) + 1


@dataclass(frozen=True)
class Stretch:
    """Rows of a column between two places of its sorted order, or those of some of its levels."""

    column: Column = field(repr=False)
    low: float | None = None
    """The least value in it; None if there is no row below."""
    high: float | None = None
    """The largest value in it; None if there is no row above."""
    below: float | None = None
    """The last value before it."""
    above: float | None = None
    """The first value after it."""
    levels: tuple[int, ...] | None = None
    """Codes of the levels, if the column has no order."""
    beside: float | None = None
    """How often the family is whole in the rows on both sides, about as many as in it."""

    @property
    def bounded(self) -> bool:
        """Whether there is anything outside it."""
        return self.levels is not None or self.low is not None or self.high is not None

    def holds(self, values: np.ndarray | None = None) -> np.ndarray:
        """Returns which rows are known to be in it, or which values of the column are."""
        values = self.column.values if values is None else values
        if self.levels is not None:
            return np.isin(values, self.levels)
        inside = ~np.isnan(values)
        if self.low is not None:
            inside &= values >= self.low
        if self.high is not None:
            inside &= values <= self.high
        return inside


@dataclass(frozen=True)
class Scores:
    """Scores that tell a smaller chance from the least one that counts as being seen."""

    chance: float
    """The least that counts, q₀."""
    fraction: float
    """q₁ / q₀."""

    def __call__(self, rows: Any, whole: Any) -> Any:  # noqa: ANN401 - numbers, or arrays of them
        """Returns the score of some rows of which some show the family whole."""
        empty = math.log((1.0 - self.fraction * self.chance) / (1.0 - self.chance))
        return empty * (rows - whole) + math.log(self.fraction) * whole


class Axis:
    """The rows that show a column, sorted by its value. n rows, B blocks, T families."""

    def __init__(
        self, column: Column, rules: RegionRules, order: np.ndarray | None = None
    ) -> None:
        self.column, self.rules = column, rules
        if order is None:  # NaN, a hole, is sorted last
            order = np.argsort(column.values, kind="stable").astype(np.int32)
            order = order[: column.observed.sum()]
        self.order = order
        """(n,) positions of the rows in the table"""
        self.values = column.values[order]
        """(n,) ascending"""

    def __len__(self) -> int:
        return len(self.order)

    def among(self, rows: np.ndarray) -> Axis:
        """Returns the axis of the rows (N,) that are True."""
        return Axis(self.column, self.rules, self.order[rows[self.order]])

    @cached_property
    def ties(self) -> np.ndarray:
        """Where each distinct value starts in the order, and the end."""
        starts = np.flatnonzero(np.diff(self.values, prepend=np.nan) != 0)
        return np.append(starts, len(self))

    @cached_property
    def block_starts(self) -> np.ndarray:
        """(B,) where each block starts in the order: a value each, or an even share of rows."""
        if not self.column.ordered or len(self.ties) <= self.rules.blocks:
            return self.ties[:-1]
        return self.even_starts(self.rules.blocks)

    def even_starts(self, count: int) -> np.ndarray:
        """Returns where about so many blocks of even shares of rows start; none cuts ties."""
        even = np.linspace(0, len(self), count, endpoint=False).astype(np.int64)
        return np.unique(self.ties[np.searchsorted(self.ties, even, side="right") - 1])

    @cached_property
    def block_rows(self) -> np.ndarray:
        """(B,) rows of each block."""
        return np.diff(self.block_starts, append=len(self))

    @cached_property
    def block_of_row(self) -> np.ndarray:
        """(N,) the block of each row of the table, B where the column is hidden."""
        blocks = np.full(len(self.column.values), len(self.block_starts))
        blocks[self.order] = np.repeat(np.arange(len(self.block_starts)), self.block_rows)
        return blocks

    def count_blocks(self, whole: np.ndarray) -> np.ndarray:
        """Counts the rows of each block that show each family whole: (N, T) to (B, T)."""
        return np.add.reduceat(whole[self.order], self.block_starts, axis=0, dtype=np.int32)

    def best_scores(self, rows: np.ndarray, whole: np.ndarray, scored: Scores) -> np.ndarray:
        """Returns the largest score of a stretch of blocks, for each family (T,).

        Blocks have (B,) rows, and (B, T) that show a family whole.
        """
        scores = scored(rows[:, None], whole)
        if not self.column.ordered:
            return np.maximum(scores, 0.0).sum(axis=0)
        sums = np.vstack([np.zeros_like(scores[:1]), scores.cumsum(axis=0)])
        return (sums[1:] - np.minimum.accumulate(sums[:-1], axis=0)).max(axis=0)

    def stretches(self, whole: np.ndarray, scored: Scores, least_score: float) -> list[Stretch]:
        """Finds the stretches of one family, whole (N,), with the least score, largest first."""
        if not len(self):
            return []
        flags = whole[self.order]
        rows, count = np.diff(self.ties), np.add.reduceat(flags, self.ties[:-1], dtype=np.int64)
        scores = scored(rows, count)
        if not self.column.ordered:
            return self._level_set(scores, rows, count, least_score)
        sums = np.concatenate([[0], flags.cumsum()])
        found = []
        for first, last in _best_spans(scores, least_score)[: self.rules.most_stretches]:
            start, stop = int(self.ties[first]), int(self.ties[last])
            after = int(sums[-1] - sums[stop])
            if self._may_be_unseen(int(sums[start]), start, scored.chance):
                start = 0
            if self._may_be_unseen(after, len(self) - stop, scored.chance):
                stop = len(self)
            found.append(self.stretch(start, stop, sums))
        return list(dict.fromkeys(found))

    def stretch(self, start: int, stop: int, sums: np.ndarray) -> Stretch:
        """Returns the stretch from one place of the order up to another.

        `sums` (n + 1,) are the whole rows before each place.
        """
        size = stop - start
        before, after = max(0, start - size), min(len(self), stop + size)
        beside = (start - before) + (after - stop)
        whole = (sums[start] - sums[before]) + (sums[after] - sums[stop])
        first, last = start == 0, stop == len(self)
        return Stretch(
            self.column,
            low=None if first else float(self.values[start]),
            high=None if last else float(self.values[stop - 1]),
            below=None if first else float(self.values[start - 1]),
            above=None if last else float(self.values[stop]),
            beside=float(whole / beside) if beside else None,
        )

    def _may_be_unseen(self, whole: int, rows: int, chance: float) -> bool:
        """Tells whether so many whole families go with a chance no larger than the least."""
        return rows > 0 and (whole == 0 or bdtrc(whole - 1, rows, chance) > self.rules.tail)

    def _level_set(
        self, scores: np.ndarray, rows: np.ndarray, whole: np.ndarray, least_score: float
    ) -> list[Stretch]:
        chosen = scores > 0.0
        if chosen.all() or scores[chosen].sum() < least_score:
            return []
        outside = whole[~chosen].sum() / rows[~chosen].sum()
        chosen &= bdtr(whole, rows, outside) <= self.rules.small_level
        levels = tuple(int(code) for code in self.values[self.ties[:-1][chosen]])
        return [Stretch(self.column, levels=levels)] if levels else []


def _best_spans(scores: np.ndarray, least: float) -> list[tuple[int, int]]:
    """Returns the spans with the largest sums, disjoint, each at least `least`."""
    found: list[tuple[float, int, int]] = []
    waiting = [(0, len(scores))]
    sums = np.concatenate([[0.0], scores.cumsum()])
    while waiting:
        begin, end = waiting.pop()
        if end <= begin:
            continue
        part = sums[begin : end + 1]
        lowest = np.minimum.accumulate(part[:-1])
        totals = part[1:] - lowest
        stop = int(totals.argmax())
        if totals[stop] < least:
            continue
        start = int(np.flatnonzero(part[: stop + 1] == lowest[stop])[-1])
        found.append((float(totals[stop]), begin + start, begin + stop + 1))
        waiting += [(begin, begin + start), (begin + stop + 1, end)]
    found.sort(reverse=True)
    return [(start, stop) for _, start, stop in found]
