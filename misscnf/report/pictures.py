r"""Pictures that live inside the page: SVG in a data address, with words for those who cannot see.

They are drawn for a phone: 4.4 inches are the width of a narrow screen, small multiples stand two
in a row there and four on a desk. Names come from the user, so nothing in them is mathematics to
matplotlib. The salt makes the same picture the same bytes. What is drawn into the axes is drawn by
`misscnf.plots`, for the page as for everybody.
"""

from __future__ import annotations

import base64
import io
import math
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from misscnf import plots
from misscnf.display.style import STYLE
from misscnf.graph import CausalGraph
from misscnf.identification import Report
from misscnf.identification.pictures import Curve, draw_coverage
from misscnf.plots.canvas import short
from misscnf.plots.forest import Row, draw_rows
from misscnf.plots.graphs import draw_nodes, sheet_height
from misscnf.plots.holes import draw_patterns, shown_patterns
from misscnf.queries.effects import Effect
from misscnf.report.effects import Line
from misscnf.report.model_checks import NoiseCheck, Overimputation
from misscnf.report.settings import Limits
from misscnf.report.words import Answer, signed, whole

__all__ = ["Image", "new_figure", "image", "draw_forest", "draw_curve", "draw_holes"]
__all__ += ["draw_family", "draw_graph", "draw_training", "draw_noise", "draw_ranks"]


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
    spread = Answer(lines[0].answer).spread
    equal = {line.heading: "equal by construction" for line in lines if line.answer.equal_groups}
    told = [f"{line.heading} {line.label}: {_told(line.answer, spread)}" for line in lines]
    told += [f"{name}: {words}" for name, words in equal.items()]
    rows, heading = list[Row](), ""
    for line in lines:
        if line.heading and line.heading != heading:
            rows.append(Row(line.heading, told=equal.get(line.heading, "")))
        heading = line.heading
        rows.append(_row(line, spread, main=line is lines[0]))
    with new_figure(STYLE.wide, 0.75 + 0.235 * len(rows)) as figure:
        draw_rows(figure.subplots(), rows, unit)
        return image(figure, f"Forest plot, {unit}. {'; '.join(told)}.")


def _row(line: Line, spread: float, *, main: bool) -> Row:
    answer = line.answer
    factor = 100.0 if answer.event is not None else 1.0
    ends = None
    if answer.interval is not None:
        ends = factor * answer.interval[0], factor * answer.interval[1]
    told, inset = _told(answer, spread), bool(line.heading)
    return Row(line.label, factor * (answer.estimate or 0.0), ends, told, inset, main)


def _told(answer: Effect, spread: float) -> str:
    estimate, ends = Answer(answer).numbers(spread)
    return f"{signed(estimate)} ({ends})" if ends else signed(estimate)


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
        plots.curve(curve, arms=arms, outcome=outcome, ax=above)
        above.set_xlabel("")
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


def holes_caption(report: Report, limits: Limits) -> str:
    """Says what the patterns are, and what is left out of them."""
    told = "What rows show together (filled) and lack (cross), the most frequent pattern first."
    found = report.patterns.head(limits.most_patterns)
    names, drawn = (
        list(report.graph.nodes),
        shown_patterns(report, len(found), limits.most_columns),
    )
    lacked = int((~found[names]).any().sum())
    more = len(report.patterns) - len(found)
    told += f" And {more} more." if more else ""
    if len(drawn.columns) < lacked:
        told += (
            f" Of {lacked} columns that these rows lack, the {len(drawn.columns)} that most "
            f"of them lack."
        )
    elif len(drawn.columns) < len(names):
        told += f" These rows show all of the other {len(names) - len(drawn.columns)} columns."
    return told


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
    parts = []
    for name, words in (("train", "training rows"), ("validation", "held-out rows")):
        if name in history and not history[name].isna().all():
            values = history[name].to_numpy(dtype=float)
            known = values[np.isfinite(values)]
            parts.append(f"{words} from {known[0]:.3f} to {known[-1]:.3f}")
    with new_figure(STYLE.wide, 2.3) as figure:
        plots.training(history, ax=figure.subplots())
        figure.legend(loc="outside upper left", ncols=3, fontsize=8)
        return image(figure, f"Training curve, mean log-density a row: {'; '.join(parts)}.")


def draw_noise(check: NoiseCheck, limits: Limits) -> Image:
    """Draws the sorted noise of a node against what a standard normal would give."""
    said = "no departure" if check.ok else "a departure"
    alt = f"Quantiles of the noise of {check.node} against a standard normal: {said} found."
    with new_figure(STYLE.small, 1.8) as figure:
        ax, points = figure.subplots(), limits.quantiles
        plots.noise(check.noise, name=check.node, ok=check.ok, points=points, ax=ax)
        return image(figure, alt)


def draw_graph(
    graph: CausalGraph,
    shares: Mapping[str, float],
    uncovered: Collection[str],
    asked: Collection[str],
) -> Image:
    """Draws a graph, each node with the share of rows that show it with its parents."""
    graph = graph.without_auxiliary()
    causes = {name: ", ".join(graph.parents_of(name)) or "nothing here" for name in graph.nodes}
    seen = {
        k: "hidden" if math.isnan(s) else f"{100 * s:.0f} % of rows" for k, s in shares.items()
    }
    told = (f"{k}, {seen[k]}, caused by {v}" for k, v in causes.items())
    with new_figure(STYLE.wide, sheet_height(graph)) as figure:
        figure.set_layout_engine("none")
        draw_nodes(figure.add_axes((0.0, 0.0, 1.0, 1.0)), graph, shares, uncovered, asked)
        return image(figure, f"The causal graph. {'; '.join(told)}.")


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
