r"""Pictures that live inside the page: SVG in a data address, with words for those who cannot see.

They are drawn for a phone: 4.4 inches are the width of a narrow screen, small multiples stand two
in a row there and four on a desk. Names come from the user, so nothing in them is mathematics to
matplotlib. The salt makes the same picture the same bytes. The graph has a file of its own.
"""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtri

from misscnf.display.style import STYLE
from misscnf.identification import Report
from misscnf.identification.pictures import (
    Curve,
    draw_coverage,
    draw_patterns,
    short,
    shown_patterns,
)
from misscnf.queries.effects import Effect
from misscnf.report.effects import Line
from misscnf.report.model_checks import NoiseCheck, Overimputation
from misscnf.report.settings import Limits
from misscnf.report.words import Answer, signed, whole

__all__ = ["Image", "new_figure", "image", "draw_forest", "draw_curve", "draw_holes"]
__all__ += ["draw_family", "draw_training", "draw_noise", "draw_ranks"]


@dataclass(frozen=True)
class Image:
    """A picture as the page holds it."""

    source: str
    """A data address."""
    alt: str
    """What it shows, in words."""
    width: int
    """Pixels, at most."""
    height: int
    """Pixels at that width."""


@contextmanager
def new_figure(width: float, height: float) -> Iterator[Figure]:
    """Gives an empty figure in the report's style; `image` turns it into an image, inside."""
    with mpl.rc_context(STYLE.rc()):
        yield Figure(figsize=(width, height), layout="constrained")


def image(figure: Figure, alt: str) -> Image:
    """Makes an image of a figure, with what it shows in words."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # Letters that matplotlib's font lacks are measured wrongly, and drawn by the browser.
        warnings.filterwarnings("ignore", message="Glyph")
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    pixels = (round(STYLE.pixels_an_inch * inches) for inches in figure.get_size_inches())
    return Image(f"data:image/svg+xml;base64,{data}", alt, *pixels)


def draw_forest(lines: Sequence[Line], unit: str) -> Image:
    """Draws effects with their intervals, one below the other: names left, numbers right."""
    rows = _forest_rows(lines)
    spread = Answer(lines[0].answer).spread
    equal = {line.heading: "equal by construction" for line in lines if line.answer.equal_groups}
    told = [f"{line.heading} {line.label}: {_told(line.answer, spread)}" for line in lines]
    told += [f"{name}: {words}" for name, words in equal.items()]
    alt = f"Forest plot, {unit}. {'; '.join(told)}."
    with new_figure(STYLE.wide, 0.75 + 0.235 * len(rows)) as figure:
        ax = figure.subplots()
        ax.axvline(0.0, color=STYLE.soft, linewidth=0.9, linestyle=(0, (4, 3)))
        numbers = []
        for place, (name, line) in enumerate(rows):
            if line is not None:
                _draw_line(ax, place, line.answer, first=line is lines[0])
            numbers.append(equal.get(name, "") if line is None else _told(line.answer, spread))
        # A space that SVG keeps: it drops ordinary ones before a word.
        names = [
            f"\N{EN SPACE}{short(name, 24)}" if line and line.heading else short(name, 26)
            for name, line in rows
        ]
        ax.set_yticks(range(len(rows)), names, ha="left")
        ax.tick_params(axis="y", length=0, pad=4.9 * max(map(len, names)))
        for (_, line), tick in zip(rows, ax.get_yticklabels(), strict=True):
            tick.set_fontweight("bold" if line is None or line is lines[0] else "normal")
        right = ax.secondary_yaxis("right")
        right.set_yticks(range(len(rows)), numbers)
        right.tick_params(length=0)
        right.spines["right"].set_visible(False)
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel(short(unit, 62), fontsize=8)
        ax.grid(axis="x")
        return image(figure, alt)


def _forest_rows(lines: Sequence[Line]) -> list[tuple[str, Line | None]]:
    """Returns the lines with their names, and between them the headings of groups."""
    rows: list[tuple[str, Line | None]] = []
    heading = ""
    for line in lines:
        if line.heading and line.heading != heading:
            rows.append((line.heading, None))
        heading = line.heading
        rows.append((line.label, line))
    return rows


def _told(answer: Effect, spread: float) -> str:
    estimate, ends = Answer(answer).numbers(spread)
    return f"{signed(estimate)} ({ends})" if ends else signed(estimate)


def _draw_line(ax: Axes, place: int, answer: Effect, *, first: bool) -> None:
    factor = 100.0 if answer.event is not None else 1.0
    colour, width = (STYLE.blue, 2.2) if first else (STYLE.ink, 1.4)
    if answer.interval is not None:
        ends = [factor * end for end in answer.interval]
        ax.plot(ends, [place, place], color=colour, linewidth=width)
    marker, size = ("D", 6.0) if first else ("s", 4.5)
    edge: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.6}
    estimate = factor * (answer.estimate or 0.0)
    ax.plot([estimate], [place], marker=marker, markersize=size, color=colour, **edge)


def draw_curve(
    curve: pd.DataFrame,
    treatment: str,
    outcome: str,
    seen: np.ndarray,
    arms: tuple[float, float],
) -> Image:
    """Draws the outcome along the treatment, with its band, both arms and the rows' values.

    The curve is what `MissCNF.curve` returns, chances in percent; `outcome` says what it is of.
    """
    x = curve[treatment].to_numpy(dtype=float)
    y = curve["mean"].to_numpy(dtype=float)
    alt = (
        f"Dose-response curve: {outcome} is {y[0]:.3g} at {treatment} = {x[0]:.3g} and "
        f"{y[-1]:.3g} at {treatment} = {x[-1]:.3g}."
    )
    with new_figure(STYLE.wide, 2.75) as figure:
        above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [5, 1]})
        if "mean_lower" in curve:
            band = curve["mean_lower"], curve["mean_upper"]
            above.fill_between(x, *band, color=STYLE.pale_blue, linewidth=0)
        above.plot(x, y, color=STYLE.blue, marker="o" if len(x) <= 8 else "", markersize=4)
        for arm in arms:
            above.axvline(arm, color=STYLE.orange, linewidth=0.9, linestyle=(0, (4, 3)))
        above.set_ylabel(short(outcome, 34))
        above.grid(axis="y")
        inside = seen[(seen >= x[0]) & (seen <= x[-1])]
        below.hist(inside, bins=min(30, max(len(np.unique(inside)), 1)), color=STYLE.soft)
        below.set_yticks([])
        below.spines["left"].set_visible(False)
        below.set_ylabel("rows", rotation=0, ha="right", va="center")
        below.set_xlabel(short(treatment, 50))
        return image(figure, alt)


def draw_holes(report: Report, limits: Limits) -> Image:
    """Draws which columns are seen together, a line a pattern, the most frequent first."""
    patterns = shown_patterns(report, limits.most_patterns, limits.most_columns)
    first = patterns.columns[~patterns.iloc[0]]
    alt = (
        f"Patterns of holes in {len(report.patterns)} lines. The most frequent has "
        f"{patterns.index[0]} rows and {'lacks ' + ', '.join(first) if len(first) else 'no hole'}."
    )
    letters = 0.95 if patterns.shape[1] > 4 else 0.4  # upright above four columns
    with new_figure(STYLE.wide, letters + 0.2 * len(patterns)) as figure:
        labels = [f"{whole(int(n))} rows" for n in patterns.index]
        draw_patterns(figure.subplots(), patterns, labels)
        return image(figure, alt)


def draw_family(curve: Curve) -> Image:
    """Draws how often a family is seen whole along a column, with its region shaded."""
    inside = f" where {curve.within}" if curve.within else ""
    alt = (
        f"Share of rows that show {curve.node} with its parents along {curve.column}{inside}: "
        f"from {curve.chances.min():.0%} to {curve.chances.max():.0%}."
    )
    with new_figure(STYLE.small, 1.65) as figure:
        ax = figure.subplots()
        draw_coverage(ax, curve)
        ax.set_xlabel(short(curve.column, 22))
        ax.set_title(f"{short(curve.node, 14)} seen whole")
        return image(figure, alt)


def draw_training(history: pd.DataFrame) -> Image:
    """Draws the log-density of training and held-out rows after each epoch."""
    epochs = history["epoch"].to_numpy(dtype=float)
    parts = []
    with new_figure(STYLE.wide, 2.3) as figure:
        ax = figure.subplots()
        for name, words, colour, dash in (
            ("train", "training rows", STYLE.soft, (0, (4, 2))),
            ("validation", "held-out rows", STYLE.blue, "-"),
        ):
            if name not in history or history[name].isna().all():
                continue
            values = history[name].to_numpy(dtype=float)
            ax.plot(epochs, values, color=colour, linestyle=dash, label=words)
            known = values[np.isfinite(values)]
            parts.append(f"{words} from {known[0]:.3f} to {known[-1]:.3f}")
            if name == "validation":
                kept = _kept_epoch(history)
                ax.plot(epochs[kept], values[kept], "o", color=STYLE.orange, label="kept")
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


def draw_noise(check: NoiseCheck, limits: Limits) -> Image:
    """Draws the sorted noise of a node against what a standard normal would give."""
    said = "no departure" if check.ok else "a departure"
    alt = f"Quantiles of the noise of {check.node} against a standard normal: {said} found."
    # As many points as the eye tells apart, with both ends: every further one costs bytes.
    some = np.unique(np.linspace(0, len(check.noise) - 1, limits.quantiles).astype(np.int64))
    places, noise = ndtri((some + 0.5) / len(check.noise)), check.noise[some]
    colour = STYLE.blue if check.ok else STYLE.orange
    with new_figure(STYLE.small, 1.8) as figure:
        ax = figure.subplots()
        ax.plot([-4, 4], [-4, 4], color=STYLE.soft, linewidth=0.9, linestyle=(0, (4, 3)))
        ax.plot(places, noise, ".", color=colour, markersize=4, markeredgewidth=0)
        ax.set_xlim(-3.6, 3.6)
        ax.set_ylim(-4.6, 4.6)
        ax.set_xticks([-3, 0, 3])
        ax.set_yticks([-3, 0, 3])
        ax.set_title(short(check.node, 20), color=STYLE.ink if check.ok else STYLE.orange)
        ax.grid(visible=True)
        return image(figure, alt)


def draw_ranks(found: Overimputation, limits: Limits) -> Image:
    """Draws how known values rank among draws of themselves: level if the model is right."""
    from scipy.stats import binom  # here, since only this picture needs it

    ranks, bins = found.ranks, limits.rank_bins
    counts, edges = np.histogram(ranks, bins=bins, range=(0.0, 1.0))
    low, high = binom.interval(limits.chance_band, len(ranks), 1.0 / bins)
    alt = (
        f"Ranks of {len(ranks)} hidden values among {found.draws} draws, in tenths: "
        f"{', '.join(map(str, counts))}; chance leaves {low:.0f} to {high:.0f}."
    )
    outside = (counts < low) | (counts > high)
    with new_figure(STYLE.wide, 2.0) as figure:
        ax = figure.subplots()
        ax.axhspan(low, high, color=STYLE.rule, linewidth=0)
        colours = np.where(outside, STYLE.orange, STYLE.blue)
        ax.bar(edges[:-1], counts, width=0.96 / bins, align="edge", color=colours)
        ax.axhline(len(ranks) / bins, color=STYLE.ink, linewidth=0.9, linestyle=(0, (4, 3)))
        ax.set_xticks([0.0, 0.25, 0.5, 0.75, 1.0], ["lowest", "25 %", "middle", "75 %", "highest"])
        ax.set_xlabel("place of the true value among its draws")
        ax.set_ylabel("values")
        return image(figure, alt)
