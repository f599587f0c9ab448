"""Answers along something: a dose, or an assumption that no row can tell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from misscnf.display.style import STYLE
from misscnf.errors import InputError
from misscnf.plots.canvas import canvas, short

__all__ = ["curve", "regimes", "risks", "sensitivity"]


def curve(
    found: pd.DataFrame,
    *,
    arms: Iterable[float] = (),
    outcome: str = "",
    ax: Axes | None = None,
) -> Axes:
    """Draws the outcome along a dose, with its pointwise band.

    Arguments:
        found: What `model.curve` returns.
        arms: Doses to mark.
        outcome: What the vertical axis says; None takes the name of the outcome.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import pandas as pd
        >>> from misscnf import plots
        >>> ax = plots.curve(pd.DataFrame({"dose": [0.0, 1.0, 2.0], "mean": [9.0, 7.5, 7.0]}))
        >>> ax.get_xlabel()
        'dose'
    """
    if "mean" not in found or "level" in found:
        raise InputError(
            "there is no single curve to draw: the outcome has levels; name one, event=…, when "
            "you ask `model.curve`."
        )
    along = str(found.columns[0])
    x, y = (found[name].to_numpy(dtype=float) for name in (along, "mean"))
    with canvas(ax, STYLE.wide, 2.75) as drawn:
        if "mean_lower" in found:
            band = found["mean_lower"], found["mean_upper"]
            drawn.fill_between(x, *band, color=STYLE.pale_blue, linewidth=0)
        drawn.plot(x, y, color=STYLE.blue, marker="o" if len(x) <= 8 else "", markersize=4)
        for arm in arms:
            drawn.axvline(arm, color=STYLE.orange, linewidth=0.9, linestyle=(0, (4, 3)))
        name = f"{found.attrs.get('statistic', 'mean')} of {found.attrs.get('outcome', '')}"
        drawn.set_ylabel(short(outcome or name.removesuffix(" of "), 34))
        drawn.set_xlabel(short(along, 50))
        drawn.grid(axis="y")
    return drawn


class Courses(Protocol):
    """What `model.risk` returns, as far as it is drawn."""

    @property
    def table(self) -> pd.DataFrame:
        """A row a visit."""

    @property
    def arms(self) -> Sequence[str]:
        """Each arm, in words."""

    @property
    def time(self) -> str:
        """The column that says when."""

    @property
    def event(self) -> str:
        """Whose risk it is."""


def risks(found: Courses, *, ax: Axes | None = None) -> Axes:
    """Draws the risk of each arm by time, with its band; dashed, what the table itself shows.

    Arguments:
        found: What `model.risk` returns.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import pandas as pd
        >>> from misscnf import Risks, plots
        >>> table = pd.DataFrame({"time": [1.0, 2.0], "risk": [0.1, 0.2]})
        >>> found = Risks("ill", {"pill": 1}, None, table, restricted_mean=1.7, time="week")
        >>> plots.risks(found).get_xlabel()
        'week'
    """
    table, names = found.table, ("risk", "versus")
    colours = (STYLE.blue, STYLE.pale_blue), (STYLE.orange, STYLE.pale_orange)
    with canvas(ax, 6.0, 3.6) as drawn:
        for arm, name, (line, band) in zip(found.arms, names, colours, strict=False):
            if f"{name}_lower" in table:
                ends = table[f"{name}_lower"], table[f"{name}_upper"]
                drawn.fill_between(table["time"], *ends, color=band, alpha=0.7, linewidth=0)
            drawn.plot(table["time"], table[name], "o-", color=line, markersize=3, label=arm)
        if "observed" in table:
            drawn.plot(table["time"], table["observed"], "--", color=STYLE.ink, label="observed")
        drawn.set_ylim(bottom=0.0)
        drawn.set_xlabel(found.time)
        drawn.set_ylabel(f"risk of {found.event}")
        if len(table) <= 12:  # nothing is measured between visits; more would overlap
            drawn.set_xticks(table["time"])
        drawn.legend(loc="upper left")
    return drawn


class Answers(Protocol):
    """What `model.sensitivity` returns, as far as it is drawn."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of `to_frame` that say where."""

    @property
    def points(self) -> tuple[tuple[float, ...], ...]:
        """Where."""

    @property
    def level(self) -> float | None:
        """Of the intervals."""

    @property
    def tipping_points(self) -> tuple[float, ...]:
        """Where the interval meets zero."""

    @property
    def arms(self) -> tuple[str, str]:
        """Both arms, in words."""

    @property
    def unit(self) -> str:
        """What the grid is in."""

    @property
    def asked(self) -> str:
        """What is answered, as an axis says it."""

    def to_frame(self) -> pd.DataFrame:
        """A row a point."""

    def margins(self) -> np.ndarray:
        """How far zero is outside of each interval."""


def sensitivity(found: Answers, *, ax: Axes | None = None) -> Axes:
    """Draws an answer along assumptions about lost values, and where it tips.

    A grid of one number is a curve with its band, a grid of two arms a map.

    Arguments:
        found: What `model.sensitivity` returns.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> from misscnf import Effect, Sensitivity, plots
        >>> arms, error = ({"dose": 1}, {"dose": 0}), 0.01
        >>> effects = [Effect("days", *arms, 2.0 - s, error, 9.0 - s, 7.0, 100) for s in (0, 1, 2)]
        >>> points = ((0.0,), (1.0,), (2.0,))
        >>> found = Sensitivity("days", "shift", ("shift",), points, tuple(effects))
        >>> len(plots.sensitivity(found).lines) > 0
        True
    """
    with canvas(ax, 6.0, 3.6) as drawn:
        (_draw_map if len(found.names) > 1 else _draw_line)(drawn, found)
    return drawn


class ByRegime(Protocol):
    """What `model.sensitivity(…, reference=…)` returns, as far as it is drawn."""

    @property
    def table(self) -> pd.DataFrame:
        """A row a regime."""

    @property
    def outcome(self) -> str:
        """What the arms differ in."""

    @property
    def level(self) -> float | None:
        """Of the intervals."""


def regimes(found: ByRegime, *, ax: Axes | None = None) -> Axes:
    """Draws the effect under each regime of those who left, with the interval of either kind.

    Arguments:
        found: What `model.sensitivity(…, reference=…)` returns.
        ax: Axes to draw into; None makes a figure.

    Returns:
        The axes.

    Example:
        >>> import pandas as pd
        >>> from types import SimpleNamespace
        >>> from misscnf import plots
        >>> table = pd.DataFrame({"reference": ["MAR", "J2R"], "estimate": [-2.8, -2.1]})
        >>> found = SimpleNamespace(table=table, outcome="score", level=None)
        >>> [tick.get_text() for tick in plots.regimes(found).get_yticklabels()]
        ['MAR', 'J2R']
    """
    table, places = found.table, np.arange(len(found.table))[::-1]
    kinds = (("anchored", STYLE.blue, 0.13), ("frequentist", STYLE.orange, -0.13))
    with canvas(ax, 6.0, 3.2) as drawn:
        drawn.axvline(0.0, color=STYLE.soft, linewidth=0.9, linestyle=(0, (4, 3)))
        for kind, colour, up in kinds if found.level is not None else ():
            ends = table[f"{kind}_lower"], table[f"{kind}_upper"]
            drawn.hlines(places + up, *ends, color=colour, linewidth=1.6, label=kind)
        drawn.plot(table["estimate"], places, "o", color=STYLE.blue, markersize=5)
        drawn.set_yticks(places, list(table["reference"]))
        drawn.set_ylim(-0.6, len(table) - 0.4)
        drawn.set_xlabel(f"mean difference of {found.outcome}")
        if found.level is not None:
            drawn.legend(frameon=False)
    return drawn


def _draw_line(ax: Axes, found: Answers) -> None:
    frame = found.to_frame()
    where = frame[found.names[0]]
    ax.axhline(0.0, color=STYLE.soft, linewidth=0.9, linestyle=(0, (4, 3)))
    if found.level is not None:
        ax.fill_between(where, frame["lower"], frame["upper"], color=STYLE.pale_blue)
    ax.plot(where, frame["estimate"], color=STYLE.blue, marker="o", markersize=3)
    for at in found.tipping_points:
        ax.axvline(at, color=STYLE.orange, linewidth=1.0)
        ax.annotate(
            f"tips at {at:.3g}",
            (at, 0.98),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
            color=STYLE.orange,
            va="top",
        )
    ax.set_xlabel(found.unit)
    ax.set_ylabel(found.asked)


def _draw_map(ax: Axes, found: Answers) -> None:
    across, up = (np.array(sorted(set(one))) for one in zip(*found.points, strict=True))
    frame = found.to_frame()
    table = _grid(frame, found.names, "estimate")
    inside = _grid(frame.assign(margin=found.margins()), found.names, "margin")
    most = float(np.abs(table).max())
    colours: dict[str, Any] = {"cmap": "RdBu_r", "vmin": -most, "vmax": most}
    drawn = ax.pcolormesh(across, up, table, shading="nearest", **colours)
    if min(inside.shape) > 1 and inside.min() < 0.0 < inside.max():
        ax.contour(across, up, inside, levels=[0.0], colors=STYLE.orange, linewidths=1.5)
        ends = "estimate is" if found.level is None else "interval meets"
        ax.set_title(f"orange: where the {ends} zero", color=STYLE.orange)
    if ax.figure is not None:
        ax.figure.colorbar(drawn, ax=ax).set_label(found.asked)
    do, versus = found.arms
    ax.set_xlabel(f"{found.unit}, {do}")
    ax.set_ylabel(f"the same, {versus}")


def _grid(frame: pd.DataFrame, names: Sequence[str], values: str) -> np.ndarray:
    return frame.pivot(index=names[1], columns=names[0], values=values).to_numpy()
