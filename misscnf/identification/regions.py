r"""Regions: where rows live, but a family is (almost) never seen whole.

Positivity is about support: p(family seen whole | x) > 0 at almost every x. Loss may hang on any
value, so each family is searched along each column c, its own members and all others, among the
rows that show c. Where a stretch A holds m such rows, k of them with the family whole, the
chance there has the upper bound U(k, m), and

    c in the family        p(whole | c ∈ A) ≤ U               a whole family shows c
    c a bystander          p(whole | c ∈ A) ≤ U (s + (1 − s) κ)

with s the share of rows that show c, and κ ≥ 1 how much more often the family is seen whole where
c is hidden than where it is shown. This takes hiding c to change the chance by one factor inside
A and outside; where the two exclude one another, κ = ∞ and c says nothing about the family.

A region is flagged if that bound is below the least chance (2 %), it holds the least share of rows
(2 %), and luck does not explain it (`chance.luck`). Where the edge of a stretch is vague, the
bound is taken at 99 % instead of 95 %: chances that fall off slowly tempt a search too far.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from misscnf.identification.chance import fewest_rows, lower_bound, luck, upper_bound
from misscnf.identification.columns import Column
from misscnf.identification.scan import Axis, Scores, Stretch

__all__ = ["Condition", "Region", "Rules", "Search", "sort_columns"]


@dataclass(frozen=True)
class Rules:
    """When a region is flagged."""

    chance: float = 0.02
    """Below this, a family counts as unseen."""
    share: float = 0.02
    """Of the rows: smaller regions are left alone."""
    level: float = 0.95
    """Of the upper bound of the chance."""
    vague_level: float = 0.99
    """The same, where the edge of the region is vague."""
    sharp: float = 0.2
    """An edge is sharp if the chance beside the region is at least this."""
    luck: float = 0.005
    """How many regions of a family may be expected from chance alone."""

    fractions: tuple[float, ...] = (0.1, 0.7)
    """Of that chance: what is searched for are regions with no more than these, about."""

    @property
    def searches(self) -> list[tuple[Scores, float]]:
        """Scores, each with the least that a stretch needs to be flagged."""
        rows = fewest_rows(self.chance, self.level)
        scores = [Scores(self.chance, fraction) for fraction in self.fractions]
        return [(scored, scored.of_empty(rows)) for scored in scores]


@dataclass(frozen=True)
class Condition:
    """What the rows of a region have in common, in one column."""

    column: Column
    stretch: Stretch

    def holds(self) -> np.ndarray:
        """Returns (N,), True for the rows that are known to be in it."""
        return self.stretch.holds(self.column.values)


@dataclass(frozen=True)
class Region:
    """A part of the space, with what was counted there for one family."""

    target: int
    """The family, by its place among those searched."""
    conditions: tuple[Condition, ...]
    """All hold at once; none means everywhere."""
    rows: int
    """Rows that are known to be in it: they show its columns."""
    whole: int
    """Of these, rows that show the family whole."""
    share: float
    """Of the rows that show its columns, those in it."""
    upper: float
    """95 % upper bound of the chance to see the family whole in it."""
    lower: float
    """95 % lower bound."""
    elsewhere: float
    """How often the family is whole in the other rows that show its columns."""
    hidden: float
    """Share of all rows that hide one of its columns."""
    luck: float
    """How many such regions chance alone would make."""
    flagged: bool

    def shown(self) -> np.ndarray:
        """Returns (N,), True for the rows that show its columns."""
        return _all(condition.column.observed for condition in self.conditions)

    def holds(self) -> np.ndarray:
        """Returns (N,), True for the rows that are known to be in it."""
        return _all(condition.holds() for condition in self.conditions)


@dataclass(frozen=True, eq=False)
class Search:
    """A search for regions. N rows, T families."""

    whole: np.ndarray
    """(N, T) True where a row shows a family whole."""
    members: Sequence[frozenset[int]]
    """The nodes of each family."""
    axes: Sequence[Axis]
    """The columns, sorted."""
    rules: Rules = field(default_factory=Rules)

    @cached_property
    def shuffled(self) -> np.ndarray:
        """(N,) positions of all rows, in a random order: its beginning is a sample."""
        return np.random.default_rng(0).permutation(len(self.whole))

    @cached_property
    def block_counts(self) -> list[np.ndarray]:
        """For each axis, (B, T) rows of its blocks that show a family whole."""
        return [axis.count_blocks(self.whole) for axis in self.axes]

    def stretches(self) -> dict[int, list[Region]]:
        """Returns the candidate regions of each family along single columns."""
        found: dict[int, list[Region]] = {target: [] for target in range(self.whole.shape[1])}
        partly = self.whole.any(axis=0) & ~self.whole.all(axis=0)
        for axis, counts in zip(self.axes, self.block_counts, strict=True):
            told: set[tuple[int, Stretch]] = set()
            for scored, least in self.rules.searches:
                hints = axis.best_scores(axis.block_rows, counts, scored) >= least / 2
                for target in np.flatnonzero(partly & hints).tolist():
                    stretches = axis.stretches(self.whole[:, target], scored, least)
                    told.update((target, stretch) for stretch in stretches)
            for target, stretch in sorted(told, key=repr):
                if stretch.bounded:
                    found[target].append(self.judge(target, (Condition(axis.column, stretch),)))
        return found

    def everywhere(self, target: int) -> Region:
        """Returns the region without conditions."""
        rows, count = len(self.whole), int(self.whole[:, target].sum())
        upper = upper_bound(count, rows, self.rules.level)
        return Region(
            target=target,
            conditions=(),
            rows=rows,
            whole=count,
            share=1.0,
            upper=upper,
            lower=lower_bound(count, rows, self.rules.level),
            elsewhere=0.0,
            hidden=0.0,
            luck=0.0,
            flagged=count == 0 or upper < self.rules.chance,
        )

    def judge(
        self,
        target: int,
        conditions: tuple[Condition, ...],
        among: np.ndarray | None = None,
        looks: int = 1,
    ) -> Region:
        """Counts a region, and flags it or not.

        Arguments:
            target: The family.
            conditions: What makes the region.
            among: (N,) the rows to count; all if None.
            looks: How many searches along all columns led to it.
        """
        rules, whole = self.rules, self.whole[:, target]
        shown = _all(condition.column.observed for condition in conditions)
        inside = _all(condition.holds() for condition in conditions)
        share = float(inside.sum() / max(1, shown.sum()))
        counted = shown if among is None else shown & among
        inside, outside = inside & counted, counted & ~inside
        rows, count = int(inside.sum()), int(whole[inside].sum())
        elsewhere = float(whole[outside].mean()) if outside.any() else 0.0
        beside = [c.stretch.beside for c in conditions if c.stretch.beside is not None]
        around = min([elsewhere, *beside])
        level = rules.level if around >= rules.sharp else rules.vague_level
        factor = self._hiding_factor(target, conditions)
        expected = luck(count, rows, around, int(counted.sum())) * len(self.axes) * looks
        return Region(
            target=target,
            conditions=conditions,
            rows=rows,
            whole=count,
            share=share,
            upper=min(1.0, upper_bound(count, rows, rules.level) * factor),
            lower=lower_bound(count, rows, rules.level),
            elsewhere=elsewhere,
            hidden=1.0 - float(shown.mean()),
            luck=expected,
            flagged=bool(
                upper_bound(count, rows, level) * factor < rules.chance
                and rows / max(1, shown.sum()) >= rules.share
                and expected <= rules.luck
            ),
        )

    def _hiding_factor(self, target: int, conditions: tuple[Condition, ...]) -> float:
        """Returns s + (1 − s) κ; 1 where every column is in the family or has no holes."""
        bystanders = [c.column for c in conditions if c.column.node not in self.members[target]]
        if not bystanders:
            return 1.0
        shown, whole = _all(column.observed for column in bystanders), self.whole[:, target]
        hidden = ~shown
        if not hidden.any():
            return 1.0
        where_shown = float(whole[shown].mean()) if shown.any() else 0.0
        where_hidden = upper_bound(int(whole[hidden].sum()), int(hidden.sum()))
        if where_shown == 0.0:
            return math.inf
        share = float(shown.mean())
        return share + (1.0 - share) * max(1.0, where_hidden / where_shown)


def sort_columns(columns: Sequence[Column]) -> list[Axis]:
    """Returns the axes of the columns that show anything."""
    return [axis for axis in map(Axis, columns) if len(axis)]


def _all(flags: Iterable[np.ndarray]) -> np.ndarray:
    return np.asarray(np.logical_and.reduce(list(flags)))
