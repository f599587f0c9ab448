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

A region is flagged if that bound is below the least chance, it holds the least share of rows, and
luck does not explain it (`scan.luck`). Where the edge of a stretch is vague, the bound is taken at
a higher level. `RegionRules` has all these numbers.

Corners are regions that two columns make together, "dose is above 12.5 and sex is 1". A corner
A × B lowers the chance to see the family along each of its columns, without making it zero along
either. So for each family the columns that tell most about it are cut in two, where

    G² = 2 Σ_sides [ k log k/m + (m − k) log (m − k)/m ] − the same without the cut

is largest, and the side with the lower chance, less a margin for the error of the cut, is scanned
along every other column, as the whole table was. What is found is then sharpened: the first column
is scanned again inside the second. Cuts and hints are found on a sample of a large table; what is
told is counted on all of it.

Many columns tell of one and the same region: the column that the loss hangs on, and those that go
with it. So as few regions as say it all are told: they are taken by their share of the rows,
largest first, and a further one only if

    it is still a region among the rows that show the columns of the earlier ones and are in none.

So the column that the loss hangs on, which alone tells all of it, comes out alone. Corners of two
columns are searched in what is left. A family that is nowhere seen has one region: everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import xlogy

from misscnf.identification.scan import (
    Axis,
    Scores,
    Stretch,
    fewest_rows,
    lower_bound,
    luck,
    upper_bound,
)
from misscnf.identification.settings import RegionRules

__all__ = ["Region", "Search", "unrevealed_regions", "thinnest_regions"]


@dataclass(frozen=True)
class Region:
    """A part of the space, with what was counted there for one family."""

    target: int
    """The family, by its place among those searched."""
    node: str
    """The node whose family it is."""
    conditions: tuple[Stretch, ...]
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
    flagged: bool
    elsewhere: float = 0.0
    """How often the family is whole in the other rows that show its columns."""
    hidden: float = 0.0
    """Share of all rows that hide one of its columns."""
    luck: float = 0.0
    """How many such regions chance alone would make."""
    thin: bool = False
    """Whether the family is seen there, but by few rows."""

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
    names: Sequence[str]
    """Whose families they are."""
    members: Sequence[frozenset[int]]
    """The nodes of each family."""
    axes: Sequence[Axis]
    """The columns, sorted."""
    rules: RegionRules

    @cached_property
    def searches(self) -> list[tuple[Scores, float]]:
        """Scores, each with the least that a stretch needs to be flagged."""
        chance = self.rules.chance
        rows = fewest_rows(chance, self.rules.level)
        scores = [Scores(chance, fraction) for fraction in self.rules.fractions]
        return [(scored, float(scored(rows, 0))) for scored in scores]

    @cached_property
    def shuffled(self) -> np.ndarray:
        """(N,) positions of all rows, in a random order: its beginning is a sample."""
        return np.random.default_rng(0).permutation(len(self.whole))

    @cached_property
    def block_counts(self) -> list[np.ndarray]:
        """For each axis, (B, T) rows of its blocks that show a family whole."""
        return [axis.count_blocks(self.whole) for axis in self.axes]

    def stretches(self) -> list[list[Region]]:
        """Returns the candidate regions of each family along single columns."""
        found: list[list[Region]] = [[] for _ in self.names]
        partly = self.whole.any(axis=0) & ~self.whole.all(axis=0)
        for axis, counts in zip(self.axes, self.block_counts, strict=True):
            told: set[tuple[int, Stretch]] = set()
            for scored, least in self.searches:
                hints = axis.best_scores(axis.block_rows, counts, scored) >= least / 2
                for target in np.flatnonzero(partly & hints).tolist():
                    stretches = axis.stretches(self.whole[:, target], scored, least)
                    told.update((target, stretch) for stretch in stretches)
            for target, stretch in sorted(told, key=repr):
                if stretch.bounded:
                    found[target].append(self.judge(target, (stretch,)))
        return found

    def everywhere(self, target: int) -> Region:
        """Returns the region without conditions."""
        rows, count = len(self.whole), int(self.whole[:, target].sum())
        bounds = (upper_bound, lower_bound)
        upper, lower = (bound(count, rows, self.rules.level) for bound in bounds)
        flagged = count == 0 or upper < self.rules.chance
        return Region(target, self.names[target], (), rows, count, 1.0, upper, lower, flagged)

    def judge(
        self,
        target: int,
        conditions: tuple[Stretch, ...],
        among: np.ndarray | None = None,
        looks: int = 1,
    ) -> Region:
        """Counts a region among all rows, or some (N,), and flags it or not.

        `looks` is how many searches along all columns led to it.
        """
        rules, whole = self.rules, self.whole[:, target]
        shown = _all(condition.column.observed for condition in conditions)
        inside = _all(condition.holds() for condition in conditions)
        share = float(inside.sum() / max(1, shown.sum()))
        counted = shown if among is None else shown & among
        inside, outside = inside & counted, counted & ~inside
        rows, count = int(inside.sum()), int(whole[inside].sum())
        elsewhere = float(whole[outside].mean()) if outside.any() else 0.0
        beside = [part.beside for part in conditions if part.beside is not None]
        around = min([elsewhere, *beside])
        level = rules.level if around >= rules.sharp else rules.vague_level
        factor = self._hiding_factor(target, conditions)
        expected = luck(count, rows, around, int(counted.sum())) * len(self.axes) * looks
        return Region(
            target=target,
            node=self.names[target],
            conditions=conditions,
            rows=rows,
            whole=count,
            share=share,
            upper=min(1.0, upper_bound(count, rows, rules.level) * factor),
            lower=lower_bound(count, rows, rules.level),
            flagged=bool(
                upper_bound(count, rows, level) * factor < rules.chance
                and rows / max(1, shown.sum()) >= rules.share
                and expected <= rules.luck
            ),
            elsewhere=elsewhere,
            hidden=1.0 - float(shown.mean()),
            luck=expected,
        )

    def _hiding_factor(self, target: int, conditions: tuple[Stretch, ...]) -> float:
        """Returns s + (1 − s) κ; 1 where every column is in the family or has no holes."""
        bystanders = [c.column for c in conditions if c.column.node not in self.members[target]]
        if not bystanders:
            return 1.0
        shown, whole = _all(column.observed for column in bystanders), self.whole[:, target]
        if shown.all():
            return 1.0
        if not whole[shown].any():
            return math.inf
        where_hidden = upper_bound(int(whole[~shown].sum()), int((~shown).sum()))
        share = float(shown.mean())
        return share + (1.0 - share) * max(1.0, where_hidden / float(whole[shown].mean()))


def _all(flags: Iterable[np.ndarray]) -> np.ndarray:
    return np.asarray(np.logical_and.reduce(list(flags)))


def _find_corners(search: Search, target: int, left: np.ndarray) -> list[Region]:
    """Finds corners of one family among the rows, (N,), that no region holds yet."""
    some = _sample(search, left)
    whole = some[search.whole[some, target]]
    cuts = [_best_cut(axis, some, whole) for axis in search.axes]
    found = []
    for place in np.argsort([-deviance for deviance, _ in cuts])[: search.rules.cuts]:
        deviance, half = cuts[place]
        if half is not None and deviance >= search.rules.least_deviance:
            found += _inside(search, target, search.axes[place], half, left)
    return found


def _sample(search: Search, rows: np.ndarray) -> np.ndarray:
    """Returns positions of rows (N,) that are True, a random part of them if there are many."""
    return search.shuffled[rows[search.shuffled]][: search.rules.sample_rows]


def _block_counts(axis: Axis, rows: np.ndarray) -> np.ndarray:
    """Returns how many of some rows are in each block (B,)."""
    size = len(axis.block_starts)
    return np.bincount(axis.block_of_row[rows], minlength=size + 1)[:size]


def _best_cut(axis: Axis, places: np.ndarray, whole: np.ndarray) -> tuple[float, Stretch | None]:
    """Returns the largest G² of a cut, and its side with the lower chance."""
    first_rows, first = rows, count = _block_counts(axis, places), _block_counts(axis, whole)
    if axis.column.ordered:
        first_rows, first = rows.cumsum()[:-1], count.cumsum()[:-1]
    last_rows, last = rows.sum() - first_rows, count.sum() - first
    if not len(first):
        return 0.0, None
    deviance = 2.0 * (
        _fit(first, first_rows) + _fit(last, last_rows) - _fit(count.sum(), rows.sum())
    )
    best = int(deviance.argmax())
    if not (first_rows[best] and last_rows[best]):
        return 0.0, None
    lower_first = bool(first[best] / first_rows[best] < last[best] / last_rows[best])
    return float(deviance[best]), _side(axis, best, rows, first=lower_first)


def _side(axis: Axis, cut: int, rows: np.ndarray, *, first: bool) -> Stretch:
    """Returns the blocks up to a cut or after it, less a margin; or a level, or all others."""
    values = axis.values[axis.block_starts]
    if not axis.column.ordered:
        chosen = np.arange(len(values)) == cut
        return Stretch(
            axis.column, levels=tuple(int(v) for v in values[chosen if first else ~chosen])
        )
    sums, margin = rows.cumsum(), axis.rules.margin
    if first:
        inner = int(np.searchsorted(sums, (1.0 - margin) * sums[cut]))
        return Stretch(axis.column, high=float(axis.values[axis.block_starts[inner + 1] - 1]))
    inner = int(np.searchsorted(sums, sums[cut] + margin * (sums[-1] - sums[cut])))
    return Stretch(axis.column, low=float(values[inner]))


def _fit(whole: np.ndarray, rows: np.ndarray) -> np.ndarray:
    share = whole / np.maximum(rows, 1)
    return xlogy(whole, share) + xlogy(rows - whole, 1.0 - share)


def _inside(
    search: Search, target: int, first: Axis, half: Stretch, left: np.ndarray
) -> list[Region]:
    """Scans every other column within one side of a cut."""
    whole, (scored, least) = search.whole[:, target], search.searches[0]
    inside = left & half.holds()
    some = _sample(search, inside)
    found = []
    for axis in search.axes:
        if axis is first or not _hints(search, axis, some, some[whole[some]]):
            continue
        for second in axis.among(inside).stretches(whole, scored, least / 2)[:1]:
            again = first.among(left & second.holds())
            for sharpened in again.stretches(whole, scored, least)[:1]:
                found += _simplest(search, target, (sharpened, second), left)
    return found


def _simplest(
    search: Search, target: int, both: tuple[Stretch, Stretch], left: np.ndarray
) -> list[Region]:
    """Returns the region of one condition if that is enough, else that of both, if flagged."""
    for conditions in (both[:1], both[1:], both):
        if all(condition.bounded for condition in conditions):
            region = search.judge(target, conditions, left, search.rules.cuts * len(search.axes))
            if region.flagged:
                return [region]
    return []


def _hints(search: Search, axis: Axis, places: np.ndarray, whole: np.ndarray) -> bool:
    """Tells whether the blocks of a column hold a stretch that may be flagged."""
    rows, count = _block_counts(axis, places), _block_counts(axis, whole)
    scored, least = search.searches[0]
    return bool(axis.best_scores(rows, count[:, None], scored)[0] >= least / 2)


def unrevealed_regions(search: Search) -> list[list[Region]]:
    """Returns the flagged regions of each family, largest first."""
    single = search.stretches()
    return [_of_family(search, target, found) for target, found in enumerate(single)]


def _of_family(search: Search, target: int, single: list[Region]) -> list[Region]:
    everywhere = search.everywhere(target)
    if everywhere.flagged:
        return [everywhere]
    if search.whole[:, target].all():
        return []
    chosen, left = _choose(search, [], single, np.ones(len(search.whole), dtype=bool))
    corners = _find_corners(search, target, left)
    return _choose(search, chosen, corners, left)[0]


def _choose(
    search: Search, chosen: list[Region], candidates: list[Region], left: np.ndarray
) -> tuple[list[Region], np.ndarray]:
    """Adds candidates that hold rows of their own; returns all, and the rows left to speak of."""
    flagged = [region for region in candidates if region.flagged]
    for region in sorted(flagged, key=lambda region: (-region.share, region.luck)):
        if len(chosen) == search.rules.most_regions:
            break
        if search.judge(region.target, region.conditions, left).flagged:
            chosen = [*chosen, region]
            left = left & region.shown() & ~region.holds()
    return chosen, left


def thinnest_regions(search: Search, target: int, most: int) -> list[Region]:
    """Returns where a family is seen whole least, the most telling place first, one a column.

    Of each column that is the stretch, of the least share of rows or twice, four times … as many,
    or the level, whose counts chance alone would least explain. Only the first is told where none
    is thin; it is a hint then, with its counts, and no alarm.
    """
    windows = []
    for place, axis in enumerate(search.axes):
        found = _emptiest(axis, search.block_counts[place][:, target], search.rules.share)
        windows += [(chance, rate, place, ends) for chance, rate, ends in found]
    told: list[Region] = []
    for _, _, place, (start, stop) in sorted(windows):
        axis = search.axes[place]
        if axis.column.ordered:
            sums = np.concatenate([[0], search.whole[axis.order, target].cumsum()])
            stretch = axis.stretch(start, stop, sums)
        else:
            stretch = Stretch(axis.column, levels=(int(axis.values[start]),))
        region = search.judge(target, (stretch,))
        region = replace(region, thin=_is_thin(region, search.rules))
        if region.upper < 1.0 and (region.thin or not told):
            told.append(region)
        if len(told) == most or not told[-1:] or not told[-1].thin:
            break
    return told


def _is_thin(region: Region, rules: RegionRules) -> bool:
    """Tells whether a family is known by few rows there, and by more elsewhere."""
    rate = region.whole / max(1, region.rows)
    few = rate < rules.thin or region.whole < rules.few
    return few and rate < region.elsewhere / 2.0 and region.luck <= rules.luck


def _emptiest(
    axis: Axis, count: np.ndarray, share: float
) -> list[tuple[float, float, tuple[int, int]]]:
    """Returns the part of a column that chance explains least: luck, how often whole, its ends.

    `count` (B,) are the rows of each block that show the family whole. None where the column has
    no part of its own.
    """
    ends, size = np.append(axis.block_starts, len(axis)), len(axis)
    sums = np.concatenate([[0], count.cumsum()])
    found = []
    while share <= 0.5:
        stops = np.searchsorted(ends, ends[:-1] + max(1.0, share * size))
        if not axis.column.ordered:
            stops = np.where(np.diff(ends) >= share * size, np.arange(1, len(ends)), len(ends))
        starts = np.flatnonzero(stops < len(ends))
        share = 2.0 * share if axis.column.ordered else 1.0
        rows = ends[stops[starts]] - ends[starts]
        starts = starts[rows < size]
        if not len(starts):
            continue
        stops = stops[starts]
        rows, whole = ends[stops] - ends[starts], sums[stops] - sums[starts]
        best = int((whole / rows).argmin())
        elsewhere = (sums[-1] - whole[best]) / (size - rows[best])
        chance = luck(int(whole[best]), int(rows[best]), float(elsewhere), size)
        place = int(ends[starts[best]]), int(ends[stops[best]])
        found.append((chance, float(whole[best] / rows[best]), place))
    return [min(found)] if found else []
