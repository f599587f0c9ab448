r"""Figures from the rows of a store, one or two a suite, after the paper's.

A method has one colour and one marker in every figure (colours that colour-blind people can tell
apart, after Okabe and Ito); variants of a method differ in their dashes. Points are means, bars
and bands one standard deviation over seeds. Axes are logarithmic where values span decades: what
lies below such an axis is drawn at its lower edge.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from misscnf.bench.labels import METRICS, loss_label, regime_label, scm_label
from misscnf.bench.suites import COMPLETE
from misscnf.bench.summary import summarise
from misscnf.errors import InputError

__all__ = ["draw_figures", "FIGURES"]

STYLE = {
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "figure.dpi": 150,
    "figure.constrained_layout.use": True,
}

LOOKS: dict[str, tuple[str, str]] = {
    "misscnf": ("#d55e00", "o"),
    "mice": ("#0072b2", "s"),
    "mice_forest": ("#56b4e9", "D"),
    "listwise": ("#009e73", "^"),
    "mean": ("#8c8c8c", "v"),
    "missforest": ("#e69f00", "P"),
    "missforest_stekhoven": ("#a6761d", "X"),
    "knn": ("#cc79a7", "<"),
    "kpi": ("#6a3d9a", ">"),
    "diffputer": ("#b2a800", "p"),
    "omiracle": ("#404040", "h"),
    "miracle": ("#7fbf7b", "H"),
}
"""Colour and marker of each method."""

DASHES = ("-", "--", ":", "-.")
LOWEST = 1e-4
"""Means below this are noise, and are drawn here on a logarithmic axis."""
REFERENCE = {"color": "#222222", "linestyle": (0, (4, 2)), "linewidth": 1.0}


@dataclass(frozen=True)
class Look:
    """How a line is drawn."""

    color: str
    marker: str
    dash: str


@mpl.rc_context(STYLE)
def draw_figures(rows: pd.DataFrame, curves: pd.DataFrame, metric: str) -> dict[str, Figure]:
    """Draws the figures of a suite, by their names.

    Arguments:
        rows: Rows of one suite, as a store has them.
        curves: Its local KL curves, if it has any.
        metric: The number to draw.

    Raises:
        InputError: If there is nothing to draw.
    """
    suite = str(rows["suite"].iloc[0]) if len(rows) else "main"
    summary = summarise(rows, metric)
    if summary["mean"].notna().sum() == 0:
        raise InputError(f"no trial of the suite {suite} has a number to draw yet.")
    figures = {f"{suite}-{metric}": FIGURES[suite](summary, rows, metric)}
    violated = curves[curves["mechanism"] == "two_patterns_violated"]
    if suite == "positivity" and len(violated):
        figures["positivity-boundary"] = _boundary(violated, summary)
    return figures


def _by_rate(summary: pd.DataFrame, rows: pd.DataFrame, metric: str) -> Figure:
    """The paper's grid: worlds in panels, rates along them, a band of panels a mechanism."""
    scms, lost, reference = _parts(summary)
    mechanisms = list(dict.fromkeys(lost["mechanism"])) or [COMPLETE]
    across = min(4, len(scms))
    down = -(-len(scms) // across)
    figure, axes = _panels(down * len(mechanisms), across, height=1.75)
    rates = sorted(lost["rate"].dropna().unique())
    looks = _looks(summary)
    for band, mechanism in enumerate(mechanisms):
        for k, scm in enumerate(scms):
            ax = axes[band * down + k // across][k % across]
            part = lost[(lost["scm"] == scm) & (lost["mechanism"] == mechanism)]
            for i, (label, line) in enumerate(part.groupby("label", sort=False)):
                x = np.searchsorted(rates, line["rate"]) + _dodge(i, part["label"].nunique())
                _points(ax, x, line, looks[label])
            _reference(ax, reference, scm)
            ax.set_xticks(range(len(rates)), [f"{100 * rate:g}%" for rate in rates])
            ax.set_xlim(-0.4, len(rates) - 0.6)
            ax.set_title(f"{scm_label(scm)}, {loss_label(mechanism, None)}")
        _share_scale(axes[band * down : (band + 1) * down], summary)
    _finish(figure, axes, looks, reference, "share of cells lost", METRICS[metric])
    return figure


def _by_regime(summary: pd.DataFrame, rows: pd.DataFrame, metric: str) -> Figure:
    """Bars for each regime of the positivity experiment."""
    scms, lost, reference = _parts(summary)
    across = min(2, len(scms))
    figure, axes = _panels(-(-len(scms) // across), across, width=4.2, height=2.3)
    regimes = list(dict.fromkeys(lost["mechanism"]))
    looks = _looks(summary)
    labels = list(dict.fromkeys(lost["label"]))
    wide = 0.8 / max(1, len(labels))
    for ax, scm in zip(axes.flat, scms, strict=False):
        for i, label in enumerate(labels):
            line = lost[(lost["scm"] == scm) & (lost["label"] == label)]
            x = [regimes.index(name) + (i - (len(labels) - 1) / 2) * wide for name in line["mechanism"]]
            error = line["std"].fillna(0.0)
            ax.bar(
                x, line["mean"].clip(lower=LOWEST), 0.92 * wide, yerr=error,
                color=looks[label].color, hatch=_HATCHES[looks[label].dash],
                edgecolor="white", error_kw={"elinewidth": 0.9, "ecolor": "#333333"},
            )
        _reference(ax, reference, scm)
        ax.set_xticks(range(len(regimes)), [_wrap(regime_label(name)) for name in regimes])
        ax.grid(visible=False, axis="x")
        ax.set_title(scm_label(scm))
    _share_scale(axes, summary)
    _finish(figure, axes, looks, reference, "", METRICS[metric], patches=True)
    return figure


def _boundary(curves: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """The local KL by the distance to the boundary of what is seen."""
    scms = [scm for scm in dict.fromkeys(summary["scm"]) if scm in set(curves["scm"])]
    across = min(2, len(scms))
    figure, axes = _panels(-(-len(scms) // across), across, width=4.2, height=2.2)
    looks = _looks(summary)
    names = summary.drop_duplicates(["method", "preset", "rows", "epochs"])
    drawn = curves.assign(
        distance=curves["boundary"] - (curves["left"] + curves["right"]) / 2.0,
        bin=curves.groupby(["scm", "method", "preset", "seed"]).cumcount(),
    )
    for ax, scm in zip(axes.flat, scms, strict=False):
        for name in names.to_dict("records"):
            same = (drawn["method"] == name["method"]) & (drawn["preset"] == name["preset"])
            bins = drawn[same & (drawn["scm"] == scm)].groupby("bin")
            if bins.ngroups == 0:
                continue
            x, mean = bins["distance"].mean(), bins["error"].mean()
            spread = bins["error"].std().fillna(0.0)
            look = looks[name["label"]]
            ax.plot(x, mean, color=look.color, linestyle=look.dash, marker=look.marker, markersize=3)
            ax.fill_between(x, mean - spread, mean + spread, color=look.color, alpha=0.18, lw=0)
        ax.axvline(0.0, **REFERENCE)
        ax.axhline(0.0, color="#999999", linewidth=0.6)
        ax.set_title(scm_label(scm))
        if drawn["error"].abs().max() > 10.0:
            ax.set_yscale("symlog", linthresh=1.0)
    _finish(
        figure, axes, looks, pd.DataFrame(),
        "distance into the region where families are unseen (boundary at 0)",
        "local KL (nats a row)",
    )
    return figure
