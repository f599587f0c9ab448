"""Effects with their intervals, one below the other: names left, numbers right."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd
from matplotlib.axes import Axes

from misscnf.display.style import STYLE
from misscnf.errors import InputError
from misscnf.plots.canvas import canvas, short

__all__ = ["Row", "draw_rows", "forest"]


class Estimated(Protocol):
    """What has an estimate and may have an interval, as an `Effect` has."""

    @property
    def estimate(self) -> float | None:
        """The number."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Its ends."""


@dataclass(frozen=True)
class Row:
    """A line of a forest plot, or the heading of those below."""

    name: str
    estimate: float | None = None
    """None makes it a heading."""
    ends: tuple[float, float] | None = None
    told: str = ""
    """The numbers, on the right."""
    inset: bool = False
    """Whether it stands under a heading."""
    main: bool = False
    """Whether it is the answer, and others are beside it."""


def forest(
    found: pd.DataFrame | Mapping[str, Estimated],
    *,
    unit: str = "",
    zero: float = 0.0,
    ax: Axes | None = None,
) -> Axes:
    """Draws effects with their intervals, a line each.

    Arguments:
        found: Effects by name, such as `{"men": effect, "women": other}`; or a table with the
            columns term, estimate, lower and upper, as `to_frame()` gives it.
        unit: What the axis is in.
        zero: Where a dashed line stands: 0 for differences, 1 for ratios.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import pandas as pd
        >>> from misscnf import plots
        >>> lines = pd.DataFrame({"term": ["men", "women"], "estimate": [3.1, 3.7]})
        >>> ax = plots.forest(lines.assign(lower=[1.9, 2.6], upper=[4.3, 4.8]), unit="kg")
        >>> [tick.get_text() for tick in ax.get_yticklabels()]
        ['men', 'women']
    """
    if isinstance(found, pd.DataFrame):
        rows = [
            _row(str(term), estimate, (lower, upper))
            for term, estimate, lower, upper in _lines(found).itertuples(index=False)
        ]
    else:
        rows = [_row(name, one.estimate, one.interval) for name, one in found.items()]
    if not rows:
        raise InputError("a forest plot needs at least one effect; got none.")
    with canvas(ax, 5.6, 0.75 + 0.26 * len(rows)) as drawn:
        draw_rows(drawn, rows, unit, zero)
    return drawn


def _lines(frame: pd.DataFrame) -> pd.DataFrame:
    missing = {"term", "estimate"}.difference(frame.columns)
    if missing:
        said = " and ".join(sorted(map(repr, missing)))
        raise InputError(
            f"the table of a forest plot has no column {said}; expected term, estimate, lower and "
            f"upper, as `to_frame()` gives them."
        )
    return frame.reindex(columns=["term", "estimate", "lower", "upper"])


def _row(name: str, estimate: Any, ends: tuple[Any, Any] | None) -> Row:  # noqa: ANN401 - cells
    if estimate is None or math.isnan(estimate):
        return Row(name, told="no single number")
    told = f"{estimate:.3g}"
    if ends is None or any(end is None or math.isnan(end) for end in ends):
        return Row(name, float(estimate), None, told)
    ends = float(ends[0]), float(ends[1])
    return Row(name, float(estimate), ends, f"{told} ({ends[0]:.3g} to {ends[1]:.3g})")


def draw_rows(ax: Axes, rows: Sequence[Row], unit: str, zero: float = 0.0) -> None:
    """Draws the lines of a forest plot, headings bold, their lines inset."""
    ax.axvline(zero, color=STYLE.soft, linewidth=0.9, linestyle=(0, (4, 3)))
    for place, row in enumerate(rows):
        if row.estimate is not None:
            _draw_row(ax, place, row, row.estimate)
    # A space that SVG keeps: it drops ordinary ones before a word.
    names = [f"\N{EN SPACE}{short(r.name, 24)}" if r.inset else short(r.name, 26) for r in rows]
    ax.set_yticks(range(len(rows)), names, ha="left")
    ax.tick_params(axis="y", length=0, pad=4.9 * max(map(len, names)))
    for row, tick in zip(rows, ax.get_yticklabels(), strict=True):
        tick.set_fontweight("bold" if row.estimate is None or row.main else "normal")
    right = ax.secondary_yaxis("right")
    right.set_yticks(range(len(rows)), [row.told for row in rows])
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(short(unit, 62), fontsize=8)
    ax.grid(axis="x")


def _draw_row(ax: Axes, place: int, row: Row, estimate: float) -> None:
    colour, width = (STYLE.blue, 2.2) if row.main else (STYLE.ink, 1.4)
    if row.ends is not None:
        ax.plot(row.ends, [place, place], color=colour, linewidth=width)
    marker, size = ("D", 6.0) if row.main else ("s", 4.5)
    edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6}
    ax.plot([estimate], [place], marker=marker, markersize=size, color=colour, **edge)
