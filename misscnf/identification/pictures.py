r"""The picture of a report: patterns of holes, families seen whole, and where they are not.

Left, a line a pattern, filled where a column is shown, with how frequent it is beside it. Right,
the share of rows that show each family. Below, along a column, how often a family is whole, with
its unrevealed regions shaded:

    chance of bin b  =  whole rows in b / rows in b,        bins of about as many rows each.

matplotlib takes long to load and most reports are read, so it is imported where it draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from misscnf.display.style import STYLE
from misscnf.identification.regions import Region, Search
from misscnf.identification.scan import Axis
from misscnf.identification.words import where

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from misscnf.identification.report import Report

__all__ = ["Curve", "coverage_curve", "draw_report", "draw_coverage"]


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


def coverage_curve(search: Search, region: Region, bins: int) -> Curve:
    """Returns the curve of a family along the first column of a region.

    Where a region has two columns, the curve is that of the rows inside the second.
    """
    whole, (stretch, *others) = search.whole[:, region.target], region.conditions
    column, labels = stretch.column, stretch.column.labels
    among = np.logical_and.reduce([other.holds() for other in others])
    axis = Axis(column, search.rules).among(np.broadcast_to(among, len(whole)))
    starts = axis.ties[:-1] if labels is not None else axis.even_starts(min(bins, len(axis)))
    stops = np.append(starts[1:], len(axis))
    chances = np.add.reduceat(whole[axis.order], starts, dtype=np.int64) / (stops - starts)
    if labels is not None:
        places = axis.values[starts]
        shaded = tuple((float(place), float(place)) for place in places[stretch.holds(places)])
    else:
        places = np.array([np.median(part) for part in np.split(axis.values, starts[1:])])
        low = axis.values[0] if stretch.low is None else stretch.low
        high = axis.values[-1] if stretch.high is None else stretch.high
        shaded = ((float(low), float(high)),)
    names = None if labels is None else tuple(labels[int(code)] for code in places)
    within, flagged = where(others), region.flagged
    return Curve(region.node, column.name, within, places, chances, names, shaded, flagged)


def draw_report(report: Report) -> Figure:
    """Draws a report."""
    import matplotlib as mpl
    from matplotlib import pyplot

    from misscnf.plots.canvas import short
    from misscnf.plots.holes import draw_families, draw_patterns, shown_patterns

    telling, curves, across = report.settings.telling, report.curves, 3
    patterns = shown_patterns(report, telling.most_patterns)
    with mpl.rc_context(STYLE.rc()):
        families = min(len(report.nodes), telling.most_families)
        down = -(-len(curves) // across)
        top = 1.2 + 0.22 * max(families, len(patterns), 5)
        size = 9.5, top + 2.1 * down
        figure = pyplot.figure(figsize=size, layout="constrained", dpi=120)
        grid = figure.add_gridspec(1 + down, 1, height_ratios=[top, *[2.1] * down])
        upper = grid[0].subgridspec(1, 2, width_ratios=[1.3, 1.0])
        ax = figure.add_subplot(upper[0])
        draw_patterns(ax, patterns, [f"{n} ({n / report.rows:.0%})" for n in patterns.index])
        ax.set_ylim(max(len(patterns), 4), 0)
        more = len(report.patterns) - len(patterns)
        ax.set_xlabel(f"… and {more} more patterns" if more else "")
        ax.set_title("Patterns: what rows show (filled) and lack (cross)")
        draw_families(figure.add_subplot(upper[1]), report, families)
        for place, curve in enumerate(curves):
            lower = grid[1 + place // across].subgridspec(1, across)
            ax = figure.add_subplot(lower[place % across])
            draw_coverage(ax, curve)
            within = f"{short(curve.column, 12)}, where {short(curve.within, 24)}"
            ax.set_xlabel(within if curve.within else short(curve.column))
            ax.set_title(f"{short(curve.node, 16)} whole, along {short(curve.column, 16)}")
        state = "nothing speaks against it" if report.family_positivity else "not guaranteed"
        figure.suptitle(f"Family positivity: {state}", x=0.01, ha="left", fontsize=11)
    return figure


def draw_coverage(ax: Axes, curve: Curve) -> None:
    """Draws how often a family is seen whole along a column, with its region shaded."""
    from misscnf.plots.canvas import short

    colour = STYLE.orange if curve.flagged else STYLE.blue
    margin = 0.4 if curve.labels is not None else 0.0
    for low, high in curve.shaded:
        ax.axvspan(low - margin, high + margin, color=STYLE.pale_orange, linewidth=0)
    if curve.labels is None:
        ax.plot(curve.places, curve.chances, color=colour)
    else:
        ax.bar(curve.places, curve.chances, color=colour, width=0.6)
        ax.set_xticks(curve.places, [short(name, 7) for name in curve.labels])
    ax.set_ylim(-0.03, 1.03)
    ax.set_yticks([0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"])
    ax.grid(axis="y")
