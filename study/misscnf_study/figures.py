r"""Figures from the rows of a store, one or two a suite, after the paper's.

Axes are logarithmic where values span decades; what lies below such an axis is drawn at its lower
edge. The look of things is elsewhere (`plot_style`).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from misscnf import InputError
from misscnf_study.labels import METRICS, loss_label, regime_label, scm_label
from misscnf_study.plot_style import REFERENCE, STYLE, Panels, share_scale
from misscnf_study.suites import COMPLETE
from misscnf_study.summary import VARIANT, summarise

__all__ = ["draw_figures"]


def draw_figures(rows: pd.DataFrame, curves: pd.DataFrame, metric: str) -> dict[str, Figure]:
    """Draws the figures of a suite, by their names.

    Arguments:
        rows: Rows of one suite, as a store has them.
        curves: Its local KL curves, if it has any.
        metric: The number to draw.

    Raises:
        InputError: If there is nothing to draw.
    """
    summary = summarise(rows, metric)
    suite = str(rows["suite"].iloc[0])
    if summary["mean"].notna().sum() == 0:
        raise InputError(f"no trial of the suite {suite} has a number to draw yet.")
    with mpl.rc_context(STYLE):
        figures = {f"{suite}-{metric}": FIGURES[suite](summary, rows, metric)}
        violated = curves[curves["mechanism"] == "two_patterns_violated"]
        if suite == "positivity" and len(violated):
            figures["positivity-boundary"] = boundary_curves(violated, summary)
    return figures


def rate_grid(summary: pd.DataFrame, rows: pd.DataFrame, metric: str) -> Figure:
    """Draws the paper's grid: a panel for each world and mechanism, rates along it."""
    scms, lost, full = _parts(summary)
    mechanisms = list(dict.fromkeys(lost["mechanism"])) or [COMPLETE]
    rates = sorted(lost["rate"].dropna().unique())
    panels = Panels(len(scms) * len(mechanisms), summary)
    for ax, (mechanism, scm) in zip(panels.axes, product(mechanisms, scms), strict=True):
        part = lost[(lost["scm"] == scm) & (lost["mechanism"] == mechanism)]
        for i, label in enumerate(panels.looks):
            line = part[part["label"] == label]
            x = np.searchsorted(rates, line["rate"]) + _beside(i, len(panels.looks), 0.3)
            panels.points(ax, x, line, label)
        panels.reference(ax, full.loc[full["scm"] == scm, "mean"])
        ax.set_xticks(range(len(rates)), [f"{100 * rate:g}%" for rate in rates])
        ax.set_xlim(-0.5, max(1, len(rates)) - 0.5)
        name = loss_label(mechanism, None).partition(" (")[0]
        ax.set_title(f"{scm_label(scm)}, {name}")
    share_scale(panels.axes, summary)
    return panels.finish("share of cells lost", METRICS[metric])


def regime_bars(summary: pd.DataFrame, rows: pd.DataFrame, metric: str) -> Figure:
    """Draws a bar for each regime of the positivity experiment."""
    scms, lost, full = _parts(summary)
    regimes = list(dict.fromkeys(lost["mechanism"]))
    panels = Panels(len(scms), summary, across=2, size=(4.0, 2.2))
    count = len(panels.looks)
    for ax, scm in zip(panels.axes, scms, strict=True):
        for i, label in enumerate(panels.looks):
            line = lost[(lost["scm"] == scm) & (lost["label"] == label)]
            x = [regimes.index(name) + _beside(i, count, 0.8) for name in line["mechanism"]]
            panels.bars(ax, x, line, label, 0.8 / count)
        panels.reference(ax, full.loc[full["scm"] == scm, "mean"])
        names = [regime_label(name).replace(" violated", "\nviolated") for name in regimes]
        ax.set_xticks(range(len(regimes)), names)
        ax.grid(visible=False, axis="x")
        ax.set_title(scm_label(scm))
    share_scale(panels.axes, summary)
    return panels.finish("", METRICS[metric], filled=True)


def boundary_curves(curves: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """Draws the local KL by the distance to the boundary of what is seen."""
    scms = [scm for scm in dict.fromkeys(summary["scm"]) if scm in set(curves["scm"])]
    lines = summary[summary["method"] != "full"].drop_duplicates("label")
    lines = lines.merge(curves[VARIANT].drop_duplicates(), on=VARIANT)
    panels = Panels(len(scms), lines, across=2, size=(4.0, 2.2))
    bins = curves.groupby(["scm", *VARIANT, "seed"], dropna=False).cumcount()
    centre = (curves["left"] + curves["right"]) / 2.0
    drawn = curves.assign(bin=bins, distance=curves["boundary"] - centre)
    drawn = drawn.merge(lines[[*VARIANT, "label"]], on=VARIANT)
    for ax, scm in zip(panels.axes, scms, strict=True):
        part = drawn[drawn["scm"] == scm]
        for label in panels.looks:
            places = part[part["label"] == label].groupby("bin")
            error = places["error"]
            std = error.std().fillna(0.0)
            panels.band(ax, places["distance"].mean(), error.mean(), std, label)
        ax.axvline(0.0, **REFERENCE)
        ax.axhline(0.0, color="#999999", linewidth=0.6)
        if part["error"].abs().max() > 10.0:
            ax.set_yscale("symlog", linthresh=1.0)
            ax.set_ylim(bottom=min(-0.5, 1.2 * part["error"].min()))
        ax.set_title(scm_label(scm))
    return panels.finish(
        "distance from the boundary (dashed) into the region where families are unseen",
        "local KL (nats)",
    )


def nonlinearity_curves(summary: pd.DataFrame, rows: pd.DataFrame, metric: str) -> Figure:
    """Draws α along panels, one for each family and way of losing values."""
    parts = summary["scm"].str.rpartition("_")
    bent = summary.assign(family=parts[0].str.partition("_")[0], alpha=parts[2].astype(float))
    losses = list(bent[["mechanism", "rate"]].drop_duplicates().itertuples(index=False, name=None))
    families = list(dict.fromkeys(bent["family"]))
    panels = Panels(len(losses) * len(families), summary, across=len(losses))
    for ax, (family, loss) in zip(panels.axes, product(families, losses), strict=True):
        part = bent[(bent["family"] == family) & (bent["mechanism"] == loss[0])]
        part = part[part["rate"] == loss[1]]
        for label in panels.looks:
            line = part[part["label"] == label].sort_values("alpha")
            panels.points(ax, line["alpha"], line, label)
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["0", "¼", "½", "¾", "1"])
        ax.set_xlim(-0.08, 1.08)
        ax.set_title(f"{family.capitalize()}, {loss_label(*loss)}")
    share_scale(panels.axes, summary)
    return panels.finish("nonlinearity α, from a line (0) to a parabola (1)", METRICS[metric])


def draws_and_time(summary: pd.DataFrame, rows: pd.DataFrame, metric: str) -> Figure:
    """Draws a metric, and the time it took, by the number of draws."""
    return _doubling(summary, rows, metric, _draws, "draws in a step", one_panel_a_scm=True)


def size_and_time(summary: pd.DataFrame, rows: pd.DataFrame, metric: str) -> Figure:
    """Draws a metric, and the time it took, by the length of the chain."""
    return _doubling(summary, rows, metric, _length, "nodes of the chain", one_panel_a_scm=False)


FIGURES: dict[str, Callable[[pd.DataFrame, pd.DataFrame, str], Figure]] = {
    "main": rate_grid,
    "mnar": rate_grid,
    "positivity": regime_bars,
    "nonlinearity": nonlinearity_curves,
    "draws": draws_and_time,
    "scaling": size_and_time,
}
"""The figure of each suite."""


def _doubling(
    summary: pd.DataFrame,
    rows: pd.DataFrame,
    metric: str,
    along: Callable[[pd.DataFrame], pd.Series],
    x_label: str,
    *,
    one_panel_a_scm: bool,
) -> Figure:
    """Draws a metric in the first row of panels and seconds in the second, over powers of two."""
    every = [(metric, summary)]
    every += [] if metric == "seconds" else [("seconds", summarise(rows, "seconds"))]
    groups = list(dict.fromkeys(summary["scm"])) if one_panel_a_scm else [""]
    across = len(groups) if one_panel_a_scm else len(every)
    panels = Panels(
        len(every) * len(groups), summary, across=across, size=(3.6, 2.4), reference=True
    )
    for ax, ((name, means), scm) in zip(panels.axes, product(every, groups), strict=True):
        part = means[(means["scm"] == scm) | (not scm)]
        part = part[along(part).notna()]
        for i, label in enumerate(panels.looks):
            line = part[part["label"] == label]
            x = along(line).astype(float) * 2.0 ** _beside(i, len(panels.looks), 0.25)
            panels.points(ax, x, line, label)
        _powers_of_two(ax, along(part))
        share_scale([ax], part)
        ax.set_ylabel(METRICS[name])
        ax.set_title(scm_label(scm) if scm else "")
    return panels.finish(x_label, "")


def _draws(summary: pd.DataFrame) -> pd.Series:
    return summary["draws"]


def _length(summary: pd.DataFrame) -> pd.Series:
    return summary["scm"].str.rpartition("_")[2].astype(float)


def _powers_of_two(ax: Axes, values: pd.Series) -> None:
    ticks = sorted(set(values.astype(float)))
    ax.set_xscale("log", base=2)
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_xlim(ticks[0] / 1.3, ticks[-1] * 1.3)
    ax.tick_params(axis="x", which="minor", bottom=False)


def _parts(summary: pd.DataFrame) -> tuple[list[str], pd.DataFrame, pd.DataFrame]:
    """Returns the worlds, what lost values, and the reference."""
    complete = summary["mechanism"] == COMPLETE
    return list(dict.fromkeys(summary["scm"])), summary[~complete], summary[complete]


def _beside(i: int, count: int, wide: float) -> float:
    """Returns how far the i-th of some lines stands from the middle."""
    return wide * ((i + 0.5) / count - 0.5)
