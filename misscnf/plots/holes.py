"""What the rows of a table show: patterns of holes, and the families that are seen whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from misscnf.display.style import STYLE
from misscnf.graph import CausalGraph
from misscnf.plots.canvas import canvas, short

__all__ = ["Holes", "coverage", "patterns", "draw_families", "draw_patterns", "shown_patterns"]


class Holes(Protocol):
    """What `check` returns, as far as it is drawn."""

    @property
    def graph(self) -> CausalGraph:
        """The graph of the columns."""

    @property
    def rows(self) -> int:
        """How many there are."""

    @property
    def nodes(self) -> pd.DataFrame:
        """A line a family."""

    @property
    def patterns(self) -> pd.DataFrame:
        """A line a pattern of holes."""

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The families that are not covered."""


def patterns(found: Holes, *, most: int = 12, ax: Axes | None = None) -> Axes:
    """Draws which columns are seen together, the most frequent pattern first.

    Arguments:
        found: What `check` returns.
        most: At most so many patterns.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import pandas as pd
        >>> from misscnf import check, plots
        >>> df = pd.DataFrame({"a": [0.1, 1.5, 2.2, 3.9] * 5, "b": [None, 1.4, 2.0, 3.3] * 5})
        >>> ax = plots.patterns(check(df, "a -> b"))
        >>> [tick.get_text() for tick in ax.get_yticklabels()]
        ['15 rows (75%)', '5 rows (25%)']
    """
    shown = shown_patterns(found, most)
    letters = 0.95 if shown.shape[1] > 4 else 0.4  # upright above four columns
    with canvas(ax, STYLE.wide, letters + 0.24 * len(shown)) as drawn:
        draw_patterns(drawn, shown, [f"{n} rows ({n / found.rows:.0%})" for n in shown.index])
    return drawn


def coverage(found: Holes, *, most: int = 20, ax: Axes | None = None) -> Axes:
    """Draws the share of rows that show each column together with all its causes.

    Arguments:
        found: What `check` returns.
        most: At most so many families, uncovered ones first.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import pandas as pd
        >>> from misscnf import check, plots
        >>> df = pd.DataFrame({"a": [1.0, 2.0, None, 4.0], "b": [2.0, None, 3.0, 5.0]})
        >>> ax = plots.coverage(check(df, "a -> b"))
        >>> [tick.get_text() for tick in ax.get_yticklabels()]
        ['a', 'b | a']
    """
    count = min(most, len(found.nodes))
    with canvas(ax, STYLE.wide, 0.6 + 0.24 * count) as drawn:
        draw_families(drawn, found, count)
    return drawn


def shown_patterns(report: Holes, most: int, most_columns: int = 30) -> pd.DataFrame:
    """Returns the most frequent patterns by their row counts, True where a column is shown.

    Where there are too many columns, only those that these patterns lack are kept, and of them the
    ones that most rows lack.
    """
    names, found = list(report.graph.nodes), report.patterns.head(most)
    if len(names) > most_columns:
        lacked = (~found[names]).mul(found["row count"], axis=0).sum()
        often = lacked.sort_values(ascending=False, kind="stable").index[:most_columns]
        names = [name for name in names if name in often and lacked[name]] or names[:most_columns]
    return found.set_index("row count")[names]


def draw_patterns(ax: Axes, patterns: pd.DataFrame, labels: Sequence[str]) -> None:
    """Draws which columns are seen together, a line a pattern, each with its label."""
    rows, columns = patterns.shape
    for (y, x), there in np.ndenumerate(patterns.to_numpy(dtype=bool)):
        if there:
            corner, seen = (x + 0.03, y + 0.08), STYLE.middle_blue
            ax.add_patch(Rectangle(corner, 0.94, 0.84, facecolor=seen, linewidth=0))
        else:
            ax.plot(x + 0.5, y + 0.5, marker="x", color=STYLE.orange, markersize=4.5)
    ax.set_xlim(0, columns)
    ax.set_ylim(rows, 0)
    ax.xaxis.tick_top()
    letters, turn = [short(str(name), 14) for name in patterns], 90 if columns > 4 else 0
    size = min(STYLE.font_size, 190.0 / columns)
    ax.set_xticks(np.arange(columns) + 0.5, letters, rotation=turn, fontsize=size)
    ax.set_yticks(np.arange(rows) + 0.5, labels)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def draw_families(ax: Axes, report: Holes, count: int) -> None:
    """Draws the share of rows that show each family whole, uncovered ones in orange."""
    part, more = report.nodes, len(report.nodes) - count
    if more:  # uncovered ones first
        order = np.argsort((part["status"] == "covered").to_numpy(), kind="stable")
        part = part.iloc[order[:count]]
    places = np.arange(len(part))
    covered = (part["status"] == "covered").to_numpy()
    shares = (part["rows whole"] / report.rows).to_numpy(dtype=float)
    ax.barh(places, np.ones(len(part)), color=STYLE.rule, height=0.7)
    ax.barh(places, shares, color=np.where(covered, STYLE.blue, STYLE.orange), height=0.7)
    names = [
        f"{node} | {', '.join(parents)}" if parents else str(node)
        for node, parents in zip(part["node"], part["parents"], strict=True)
    ]
    ax.set_yticks(places, [short(name) for name in names])
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.0)
    ax.set_xticks([0.0, 0.5, 1.0], ["0", "50 %", "100 %"])
    ax.set_title("Rows that show a family whole")
    notes = [] if covered.all() else ["orange: not guaranteed"]
    notes += [f"… and {more} more families"] if more else []
    ax.set_xlabel("; ".join(notes), loc="left")
    ax.margins(y=0.02)
