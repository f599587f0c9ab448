r"""Corners: regions that two columns make together, "dose is above 12.5 and sex is 1".

A corner A × B lowers the chance to see the family along each of its columns, without making it
zero along either. So for each family the columns that tell most about it are cut in two, where

    G² = 2 Σ_sides [ k log k/m + (m − k) log (m − k)/m ] − the same without the cut

is largest, and the side with the lower chance, less a margin for the error of the cut, is scanned
along every other column, as the whole table was. What is found is then sharpened: the first column
is scanned again inside the second. Cuts and hints are found on a sample of a large table; what is
told is counted on all of it.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from misscnf.identification.regions import Condition, Region, Search
from misscnf.identification.scan import Axis, Stretch

__all__ = ["find_corners"]

CUTS = 3
"""Columns that are cut for each family."""
LEAST_GAIN = 20.0
"""G² of a cut worth following."""
MARGIN = 0.15
"""Share of the rows of a side next to the cut that are left out at first."""
ENOUGH = 10_000
"""Rows to find cuts and hints on."""


def find_corners(search: Search, target: int, left: np.ndarray) -> list[Region]:
    """Finds corners of one family.

    Arguments:
        search: The columns and the families.
        target: The family.
        left: (N,) the rows that no region holds yet.
    """
    whole = search.whole[:, target]
    some = _sample(search, left)
    cuts = [_best_cut(axis, some, some[whole[some]]) for axis in search.axes]
    order = np.argsort([-gain for gain, _ in cuts])[:CUTS]
    found = []
    for place in order:
        gain, half = cuts[place]
        if half is not None and gain >= LEAST_GAIN:
            found += _inside(search, target, search.axes[place], half, left)
    return found


def _sample(search: Search, rows: np.ndarray) -> np.ndarray:
    """Returns positions of rows (N,) that are True, a random part of them if there are many."""
    return search.shuffled[rows[search.shuffled]][:ENOUGH]


def _block_counts(axis: Axis, rows: np.ndarray) -> np.ndarray:
    """Returns how many of some rows are in each block (B,)."""
    size = len(axis.block_starts)
    return np.bincount(axis.block_of_row[rows], minlength=size + 1)[:size]


def _best_cut(axis: Axis, places: np.ndarray, whole: np.ndarray) -> tuple[float, Stretch | None]:
    """Returns the largest G² of a cut, and its side with the lower chance.

    Arguments:
        axis: The column to cut.
        places: Positions of the rows.
        whole: Positions of those that show the family whole.
    """
    rows, count = _block_counts(axis, places), _block_counts(axis, whole)
    if axis.column.ordered:
        first_rows, first = rows.cumsum()[:-1], count.cumsum()[:-1]
    else:
        first_rows, first = rows, count
    last_rows, last = rows.sum() - first_rows, count.sum() - first
    if not len(first):
        return 0.0, None
    gain = 2.0 * (_fit(first, first_rows) + _fit(last, last_rows) - _fit(count.sum(), rows.sum()))
    best = int(gain.argmax())
    if not (first_rows[best] and last_rows[best]):
        return 0.0, None
    lower_first = bool(first[best] / first_rows[best] < last[best] / last_rows[best])
    return float(gain[best]), _side(axis, best, rows, first=lower_first)


def _side(axis: Axis, cut: int, rows: np.ndarray, *, first: bool) -> Stretch:
    """Returns the blocks up to a cut or after it, less a margin; or a level, or all others."""
    values = axis.values[axis.block_starts]
    if not axis.column.ordered:
        chosen = np.arange(len(values)) == cut
        return Stretch(levels=tuple(int(v) for v in values[chosen if first else ~chosen]))
    sums = rows.cumsum()
    if first:
        inner = int(np.searchsorted(sums, (1.0 - MARGIN) * sums[cut]))
        return Stretch(high=float(axis.values[axis.block_starts[inner + 1] - 1]))
    inner = int(np.searchsorted(sums, sums[cut] + MARGIN * (sums[-1] - sums[cut])))
    return Stretch(low=float(values[inner]))


def _fit(whole: np.ndarray, rows: np.ndarray) -> np.ndarray:
    share = whole / np.maximum(rows, 1)
    return xlogy(whole, share) + xlogy(rows - whole, 1.0 - share)


def _inside(
    search: Search, target: int, first: Axis, half: Stretch, left: np.ndarray
) -> list[Region]:
    """Scans every other column within one side of a cut."""
    whole, (scored, least) = search.whole[:, target], search.rules.searches[0]
    inside = left & half.holds(first.column.values)
    some = _sample(search, inside)
    whole_some = some[whole[some]]
    found = []
    for axis in search.axes:
        if axis is first or not _hints(search, axis, some, whole_some):
            continue
        part = axis.among(inside)
        for stretch in part.stretches(whole, scored, least / 2)[:1]:
            second = Condition(axis.column, stretch)
            again = first.among(left & second.holds())
            for sharpened in again.stretches(whole, scored, least)[:1]:
                both = (Condition(first.column, sharpened), second)
                found += _simplest(search, target, both, left)
    return found


def _simplest(
    search: Search, target: int, both: tuple[Condition, Condition], left: np.ndarray
) -> list[Region]:
    """Returns the region of one condition if that is enough, else that of both, if flagged."""
    first, second = both
    for conditions in ((first,), (second,), both):
        if all(condition.stretch.bounded for condition in conditions):
            region = search.judge(target, conditions, left, CUTS * len(search.axes))
            if region.flagged:
                return [region]
    return []


def _hints(search: Search, axis: Axis, places: np.ndarray, whole: np.ndarray) -> bool:
    """Tells whether the blocks of a column hold a stretch that may be flagged."""
    rows, count = _block_counts(axis, places), _block_counts(axis, whole)
    scored, least = search.rules.searches[0]
    return bool(axis.best_scores(rows, count[:, None], scored)[0] >= least / 2)
