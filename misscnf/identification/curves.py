r"""Curves of coverage: how often a family is seen whole along a column, to draw a region.

chance of bin b  =  whole rows in b / rows in b,        bins of about as many rows each
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from misscnf.identification.regions import Region
from misscnf.identification.scan import Axis
from misscnf.identification.words import where

__all__ = ["Curve", "coverage_curve", "MOST_CURVES"]

BINS = 30
MOST_CURVES = 6
"""In one picture."""


@dataclass(frozen=True, eq=False)
class Curve:
    """How often a family is seen whole along a column."""

    node: str
    column: str
    within: str
    """The other condition of the region, in words, if it has one."""
    places: np.ndarray
    """(B,) the middle of each bin, or the place of each level."""
    chances: np.ndarray
    """(B,) share of its rows that show the family whole."""
    labels: tuple[str, ...] | None
    """The names of the levels."""
    shaded: tuple[tuple[float, float], ...]
    """Where the region is."""
    flagged: bool


def coverage_curve(node: str, whole: np.ndarray, region: Region) -> Curve:
    """Returns the curve of a family, whole (N,), along the first column of a region.

    Where a region has two columns, the curve is that of the rows inside the second.
    """
    first, *others = region.conditions
    column, stretch = first.column, first.stretch
    among = np.ones(len(whole), dtype=bool)
    for condition in others:
        among &= condition.holds()
    axis = Axis(column).among(among)
    within = where(others)
    if column.labels is not None:
        places = axis.values[axis.ties[:-1]]
        rows, count = _counts(axis, whole, axis.ties[:-1])
        names = tuple((column.labels or ())[int(code)] for code in places)
        inside = stretch.holds(places)
        shaded = tuple((float(place), float(place)) for place in places[inside])
        return Curve(
            node, column.name, within, places, count / rows, names, shaded, region.flagged
        )
    even = np.linspace(0, len(axis), min(BINS, len(axis)), endpoint=False).astype(np.int64)
    starts = np.unique(axis.ties[np.searchsorted(axis.ties, even, side="right") - 1])
    rows, count = _counts(axis, whole, starts)
    stops = np.append(starts[1:], len(axis))
    places = np.array([np.median(axis.values[a:b]) for a, b in zip(starts, stops, strict=True)])
    low = axis.values[0] if stretch.low is None else stretch.low
    high = axis.values[-1] if stretch.high is None else stretch.high
    shaded = ((float(low), float(high)),)
    return Curve(node, column.name, within, places, count / rows, None, shaded, region.flagged)


def _counts(axis: Axis, whole: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.diff(starts, append=len(axis))
    return rows, np.add.reduceat(whole[axis.order], starts, dtype=np.int64)
