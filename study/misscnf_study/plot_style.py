r"""How figures look: one colour and one marker a method, one legend above, axes in words.

Colours are those that colour-blind people can tell apart (after Okabe and Ito); variants of a
method differ in their dashes. Points are means, bars and bands one standard deviation over seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

__all__ = ["STYLE", "REFERENCE", "Look", "Panels", "share_scale"]

STYLE: Any = {  # matplotlib types its keys one by one
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e8e8e8",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "lines.markersize": 4.5,
    "hatch.linewidth": 0.8,
}

METHODS: dict[str, tuple[str, str]] = {
    "misscnf": ("#d55e00", "o"),
    "mice": ("#0072b2", "s"),
    "mice_forest": ("#56b4e9", "D"),
    "listwise": ("#009e73", "^"),
    "mean": ("#8c8c8c", "v"),
    "missforest": ("#e69f00", "P"),
    "missforest_stekhoven": ("#8c510a", "X"),
    "knn": ("#cc79a7", "<"),
    "kpi": ("#6a3d9a", ">"),
    "diffputer": ("#b2a800", "p"),
    "omiracle": ("#404040", "h"),
    "miracle": ("#7fbf7b", "H"),
    "full": ("#222222", "d"),
}
"""Colour and marker of each method."""
OTHER = ("#5b5b8f", "*")

DASHES = ("-", "--", ":", "-.")
HATCHES = {"-": "", "--": "////", ":": "....", "-.": "xxxx"}
REFERENCE: dict[str, Any] = {"color": "#222222", "linestyle": (0, (5, 3)), "linewidth": 1.0}

LOWEST = 1e-4
"""What is below is drawn here on a logarithmic axis: it is noise."""
INCHES_A_LETTER = 0.075
DECADE = 10.0
"""Values that span more than this get a logarithmic axis."""


@dataclass(frozen=True)
class Look:
    """How a line is drawn."""

    color: str
    marker: str
    dash: str


class Panels:
    """A figure of equal panels, with one legend above them.

    Arguments:
        count: How many panels.
        summary: What they show; its labels make the legend.
        across: How many in a row, at most.
        size: Width and height of a panel, in inches.
        reference: Whether full data is a line like any other.
    """

    def __init__(
        self,
        count: int,
        summary: pd.DataFrame,
        *,
        across: int = 4,
        size: tuple[float, float] = (2.3, 1.9),
        reference: bool = False,
    ) -> None:
        across = min(across, count)
        down = -(-count // across)
        self.figure = Figure(
            figsize=(size[0] * across + 0.5, size[1] * down + 0.9), layout="constrained", dpi=150
        )
        grid = self.figure.subplots(down, across, squeeze=False)
        self.axes: list[Axes] = list(grid.flat[:count])
        for ax in grid.flat[count:]:
            ax.remove()
        self.looks = _looks(summary, reference=reference)
        self._reference_drawn = False
        self._raised = False

    def _at_least(self, mean: pd.Series) -> pd.Series:
        """Raises means to the lowest that is drawn, and remembers to say so."""
        self._raised |= bool((mean < LOWEST).any())
        return mean.clip(lower=LOWEST)

    def points(
        self, ax: Axes, x: Sequence[float] | np.ndarray | pd.Series, line: pd.DataFrame, label: str
    ) -> None:
        """Draws means with their spread, joined by a line."""
        look = self.looks[label]
        ax.errorbar(
            x,
            self._at_least(line["mean"]),
            yerr=_bars(line),
            color=look.color,
            marker=look.marker,
            linestyle=look.dash,
            elinewidth=0.8,
            markeredgecolor="white",
            markeredgewidth=0.4,
        )

    def bars(
        self, ax: Axes, x: Sequence[float], line: pd.DataFrame, label: str, width: float
    ) -> None:
        """Draws means as bars with their spread."""
        look = self.looks[label]
        ax.bar(
            x,
            self._at_least(line["mean"]),
            0.9 * width,
            yerr=_bars(line),
            color=look.color,
            hatch=HATCHES[look.dash],
            edgecolor="white",
            linewidth=0.0,
            error_kw={"elinewidth": 0.9, "ecolor": "#333333"},
        )

    def band(self, ax: Axes, x: pd.Series, mean: pd.Series, std: pd.Series, label: str) -> None:
        """Draws a curve with its spread around it."""
        look = self.looks[label]
        ax.plot(x, mean, color=look.color, linestyle=look.dash, marker=look.marker, markersize=3)
        ax.fill_between(x, mean - std, mean + std, color=look.color, alpha=0.18, linewidth=0)

    def reference(self, ax: Axes, values: pd.Series) -> None:
        """Draws the reference on complete data across a panel, if there is one."""
        for value in values.dropna():
            ax.axhline(max(float(value), LOWEST), **REFERENCE)
            self._reference_drawn = True

    def finish(self, x_label: str, y_label: str, *, filled: bool = False) -> Figure:
        """Names the axes and adds the legend."""
        handles: list[Any] = []
        for label, look in self.looks.items():
            if filled:
                hatch = HATCHES[look.dash]
                handles.append(Patch(facecolor=look.color, hatch=hatch, ec="white", label=label))
            else:
                style: dict[str, Any] = {"marker": look.marker, "linestyle": look.dash}
                handles.append(Line2D([], [], color=look.color, label=label, **style))
        if self._reference_drawn:
            handles.append(Line2D([], [], label="Full data (reference)", **REFERENCE))
        widest = max((len(handle.get_label()) for handle in handles), default=1)
        fit = int(self.figure.get_figwidth() / (0.7 + INCHES_A_LETTER * widest))
        columns = max(1, min(len(handles), fit))
        self.figure.legend(handles=handles, loc="outside upper center", ncols=columns)
        self.figure.supxlabel(x_label, fontsize=9)
        if self._raised:
            y_label += f" (what is below {LOWEST:g} is drawn there)"
        self.figure.supylabel(y_label, fontsize=9)
        return self.figure


def share_scale(axes: Sequence[Axes], summary: pd.DataFrame) -> None:
    """Gives panels one vertical axis, logarithmic where the means span decades."""
    shown = summary.dropna(subset="mean")
    if shown.empty:
        return
    mean = shown["mean"].clip(lower=LOWEST)
    low, high = float(mean.min()), float(mean.max())
    reach = float((mean + shown["std"].fillna(0.0)).max())
    for ax in axes:
        if high > DECADE * low:
            ax.set_yscale("log")
            ax.set_ylim(low / 2.0, reach * 1.5)
        else:
            ax.set_ylim(0.0, reach * 1.08)


def _bars(line: pd.DataFrame) -> np.ndarray:
    """Returns how far error bars reach down and up, (2, n); never below the lowest mean shown."""
    mean = line["mean"].clip(lower=LOWEST).to_numpy(dtype=float)
    std = line["std"].fillna(0.0).to_numpy(dtype=float)
    return np.stack([np.minimum(std, mean - LOWEST / 2.0), std])


def _looks(summary: pd.DataFrame, *, reference: bool) -> dict[str, Look]:
    """Returns the look of each line, of the reference too if it is one."""
    looks: dict[str, Look] = {}
    used: dict[str, int] = {}
    lines = summary if reference else summary[summary["method"] != "full"]
    for method, label in lines.drop_duplicates("label")[["method", "label"]].itertuples(
        index=False
    ):
        color, marker = METHODS.get(method, OTHER)
        dash = DASHES[used.get(method, 0) % len(DASHES)]
        used[method] = used.get(method, 0) + 1
        looks[label] = Look(color, marker, dash)
    return looks
