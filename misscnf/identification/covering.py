r"""What is left unrevealed of each family: as few regions as say it.

Many columns tell of one and the same region: the column that the loss hangs on, and those that go
with it. Regions are taken by their share of the rows, largest first, and a further one only if

    it is still a region among the rows that show the columns of the earlier ones and are in none.

So the column that the loss hangs on, which alone tells all of it, comes out alone. Corners of two
columns are searched in what is left. A family that is nowhere seen has one region: everywhere.
"""

from __future__ import annotations

import numpy as np

from misscnf.identification.corners import find_corners
from misscnf.identification.regions import Condition, Region, Search
from misscnf.identification.scan import Axis

__all__ = ["unrevealed_regions", "thinnest_region"]

MOST_REGIONS = 5
"""Of one family."""


def unrevealed_regions(search: Search) -> list[list[Region]]:
    """Returns the flagged regions of each family, largest first."""
    single = search.stretches()
    return [_of_family(search, target, single[target]) for target in sorted(single)]


def _of_family(search: Search, target: int, single: list[Region]) -> list[Region]:
    everywhere = search.everywhere(target)
    if everywhere.flagged:
        return [everywhere]
    if search.whole[:, target].all():
        return []
    chosen, left = _choose(search, [], single, np.ones(len(search.whole), dtype=bool))
    corners = find_corners(search, target, left)
    return _choose(search, chosen, corners, left)[0]


def _choose(
    search: Search, chosen: list[Region], candidates: list[Region], left: np.ndarray
) -> tuple[list[Region], np.ndarray]:
    """Adds candidates that hold rows of their own; returns all, and the rows left to speak of."""
    flagged = [region for region in candidates if region.flagged]
    for region in sorted(flagged, key=lambda region: (-region.share, region.luck)):
        if len(chosen) == MOST_REGIONS:
            break
        again = search.judge(region.target, region.conditions, left)
        if again.flagged:
            chosen = [*chosen, region]
            left = left & region.shown() & ~region.holds()
    return chosen, left


def thinnest_region(search: Search, target: int) -> Region | None:
    """Returns where a family is seen whole least, over stretches with the least share of rows.

    It is the smallest of many shares, so chance alone makes it smaller than it is: a hint, with
    its counts, and no alarm. None if no column has a stretch that speaks of the family.
    """
    windows = [
        (rate, place, start, stop)
        for place, axis in enumerate(search.axes)
        for rate, start, stop in _emptiest_window(
            axis, search.block_counts[place][:, target], search.rules.share
        )
    ]
    for _, place, start, stop in sorted(windows):
        axis = search.axes[place]
        sums = np.concatenate([[0], search.whole[axis.order, target].cumsum()])
        condition = Condition(axis.column, axis.stretch(start, stop, sums))
        region = search.judge(target, (condition,))
        if region.upper < 1.0:
            return region
    return None


def _emptiest_window(axis: Axis, count: np.ndarray, share: float) -> list[tuple[float, int, int]]:
    """Returns the stretch of blocks with a share of the rows that is whole least, if any.

    Arguments:
        axis: The column.
        count: (B,) rows of each block that show the family whole.
        share: The least share of the rows.

    Returns:
        One or no triple: how often the family is whole, and the two ends in the order.
    """
    ends = np.append(axis.block_starts, len(axis))
    stops = np.searchsorted(ends, ends[:-1] + max(1.0, share * len(axis)))
    starts = np.flatnonzero(stops < len(ends))
    if not axis.column.ordered or not len(starts):
        return []
    stops = stops[starts]
    sums = np.concatenate([[0], count.cumsum()])
    rates = (sums[stops] - sums[starts]) / (ends[stops] - ends[starts])
    best = int(rates.argmin())
    start, stop = int(ends[starts[best]]), int(ends[stops[best]])
    return [(float(rates[best]), start, stop)] if stop - start < len(axis) else []
