r"""Pictures of the table and the fit: patterns of holes, coverage, training, noise and ranks."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from misscnf.identification import Report
from misscnf.identification.curves import Curve
from misscnf.report.digits import whole
from misscnf.report.figures import (
    BLUE,
    INK,
    MIDDLE_BLUE,
    ORANGE,
    PALE_ORANGE,
    RULE,
    SMALL,
    SOFT,
    WIDE,
    Image,
    image,
    new_figure,
    short,
)
from misscnf.report.model_checks import DRAWS, NoiseCheck, normal_places

__all__ = ["draw_patterns", "draw_coverage", "draw_training", "draw_noise", "draw_ranks"]

MOST_PATTERNS = 12
MOST_COLUMNS = 30
BINS = 10
QUANTILES = 120
CHANCE_BAND = 0.95


def draw_patterns(report: Report) -> Image:
    """Draws which columns are seen together, a line a pattern, the most frequent first."""
    names = list(report.graph.nodes)
    shown = report.patterns[names].to_numpy(dtype=bool)
    used = np.flatnonzero(~shown.all(0)) if len(names) > MOST_COLUMNS else np.arange(len(names))
    used = used[:MOST_COLUMNS]
    shown = shown[:MOST_PATTERNS, used]
    counts = report.patterns["row count"].to_numpy()[:MOST_PATTERNS]
    first = [names[j] for j in used[~shown[0]]]
    alt = (
        f"Patterns of holes in {len(report.patterns)} lines. The most frequent has {counts[0]} "
        f"rows and {'lacks ' + ', '.join(first) if first else 'no hole'}."
    )
    upright = len(used) > 4
    with new_figure(WIDE, (0.95 if upright else 0.4) + 0.2 * len(counts)) as figure:
        ax = figure.subplots()
        for line, places in enumerate(shown):
            for place, there in enumerate(places):
                if there:
                    corner = (place + 0.03, line + 0.08)
                    ax.add_patch(Rectangle(corner, 0.94, 0.84, facecolor=MIDDLE_BLUE, linewidth=0))
                else:
                    ax.plot(place + 0.5, line + 0.5, marker="x", color=ORANGE, markersize=4.5)
        ax.set_xlim(0, len(used))
        ax.set_ylim(len(counts), 0)
        ax.xaxis.tick_top()
        size = min(8.5, 190.0 / len(used))
        ax.set_xticks(
            np.arange(len(used)) + 0.5,
            [short(names[j], 14) for j in used],
            rotation=90 if upright else 0,
            fontsize=size,
        )
        ax.set_yticks(np.arange(len(counts)) + 0.5, [f"{whole(int(n))} rows" for n in counts])
        _bare(ax)
        return image(figure, alt)


def _bare(ax: Axes) -> None:
    ax.tick_params(length=0)
    for side in ax.spines.values():
        side.set_visible(False)


def draw_coverage(curve: Curve) -> Image:
    """Draws how often a family is seen whole along a column, with its region shaded."""
    inside = f" where {curve.within}" if curve.within else ""
    alt = (
        f"Share of rows that show {curve.node} with its parents along {curve.column}{inside}: "
        f"from {curve.chances.min():.0%} to {curve.chances.max():.0%}."
    )
    colour = ORANGE if curve.flagged else BLUE
    with new_figure(SMALL, 1.65) as figure:
        ax = figure.subplots()
        for low, high in curve.shaded:
            margin = 0.4 if curve.labels is not None else 0.0
            ax.axvspan(low - margin, high + margin, color=PALE_ORANGE, linewidth=0)
        if curve.labels is None:
            ax.plot(curve.places, curve.chances, color=colour)
        else:
            ax.bar(curve.places, curve.chances, color=colour, width=0.6)
            ax.set_xticks(curve.places, [short(name, 7) for name in curve.labels])
        ax.set_ylim(-0.03, 1.03)
        ax.set_yticks([0.0, 0.5, 1.0], ["0 %", "50 %", "100 %"])
        ax.set_xlabel(short(curve.column, 22))
        ax.set_title(f"{short(curve.node, 14)} seen whole")
        ax.grid(axis="y")
        return image(figure, alt)


def draw_training(history: pd.DataFrame) -> Image:
    """Draws the log-density of training and held-out rows after each epoch."""
    epochs = history["epoch"].to_numpy(dtype=float)
    parts = []
    with new_figure(WIDE, 2.3) as figure:
        ax = figure.subplots()
        for name, words, colour, dash in (
            ("train", "training rows", SOFT, (0, (4, 2))),
            ("validation", "held-out rows", BLUE, "-"),
        ):
            if name not in history or history[name].isna().all():
                continue
            values = history[name].to_numpy(dtype=float)
            ax.plot(epochs, values, color=colour, linestyle=dash, label=words)
            known = values[np.isfinite(values)]
            parts.append(f"{words} from {known[0]:.3f} to {known[-1]:.3f}")
            if name == "validation":
                kept = _kept_epoch(history)
                ax.plot(epochs[kept], values[kept], "o", color=ORANGE, label="kept")
        ax.set_xlabel("epoch")
        ax.set_ylabel("log-density a row, nats")
        figure.legend(loc="outside upper left", ncols=3, fontsize=8)
        ax.grid(axis="y")
        return image(figure, f"Training curve, mean log-density a row: {'; '.join(parts)}.")


def _kept_epoch(history: pd.DataFrame) -> int:
    """Returns the place of the epoch whose weights the model has."""
    if "kept" not in history:  # a model saved when the best epoch by held-out rows was kept
        return int(np.nanargmax(history["validation"].to_numpy(dtype=float)))
    return int(np.flatnonzero(history["kept"])[-1])


def draw_noise(check: NoiseCheck) -> Image:
    """Draws the sorted noise of a node against what a standard normal would give."""
    said = "no departure" if check.ok else "a departure"
    alt = f"Quantiles of the noise of {check.node} against a standard normal: {said} found."
    # As many points as the eye tells apart, with both ends: every further one costs bytes.
    some = np.unique(np.linspace(0, len(check.noise) - 1, QUANTILES).astype(np.int64))
    places, noise = normal_places(len(check.noise))[some], check.noise[some]
    colour = BLUE if check.ok else ORANGE
    with new_figure(SMALL, 1.8) as figure:
        ax = figure.subplots()
        ax.plot([-4, 4], [-4, 4], color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
        ax.plot(places, noise, ".", color=colour, markersize=4, markeredgewidth=0)
        ax.set_xlim(-3.6, 3.6)
        ax.set_ylim(-4.6, 4.6)
        ax.set_xticks([-3, 0, 3])
        ax.set_yticks([-3, 0, 3])
        ax.set_title(short(check.node, 20), color=INK if check.ok else ORANGE)
        ax.grid(visible=True)
        return image(figure, alt)


def draw_ranks(ranks: np.ndarray) -> Image:
    """Draws how known values rank among draws of themselves: level if the model is right."""
    from scipy.stats import binom  # here, since only this picture needs it

    counts, edges = np.histogram(ranks, bins=BINS, range=(0.0, 1.0))
    low, high = binom.interval(CHANCE_BAND, len(ranks), 1.0 / BINS)
    alt = (
        f"Ranks of {len(ranks)} hidden values among {DRAWS} draws, in tenths: "
        f"{', '.join(map(str, counts))}; chance leaves {low:.0f} to {high:.0f}."
    )
    outside = (counts < low) | (counts > high)
    with new_figure(WIDE, 2.0) as figure:
        ax = figure.subplots()
        ax.axhspan(low, high, color=RULE, linewidth=0)
        ax.bar(
            edges[:-1],
            counts,
            width=0.096,
            align="edge",
            color=np.where(outside, ORANGE, BLUE),
        )
        ax.axhline(len(ranks) / BINS, color=INK, linewidth=0.9, linestyle=(0, (4, 3)))
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["lowest", "25 %", "middle", "75 %", "highest"])
        ax.set_xlabel("place of the true value among its draws")
        ax.set_ylabel("values")
        return image(figure, alt)
