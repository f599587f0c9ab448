r"""Pictures of effects: the forest plot and the dose-response curve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from misscnf.queries.effects import Effect
from misscnf.report.answer import estimate_and_interval, spread_of
from misscnf.report.digits import signed
from misscnf.report.figures import (
    BLUE,
    INK,
    ORANGE,
    PALE_BLUE,
    SOFT,
    WIDE,
    Image,
    image,
    new_figure,
    short,
)
from misscnf.report.groups import Line

__all__ = ["draw_forest", "draw_curve"]

LINE_INCHES = 0.235


def draw_forest(lines: Sequence[Line], unit: str) -> Image:
    """Draws effects with their intervals, one below the other.

    Arguments:
        lines: The effects.
        unit: What their numbers are of.
    """
    places, headings = _places(lines)
    rows = (max(places) if places else 0) + 1
    numbers = [_told(line.answer, spread_of(lines[0].answer)) for line in lines]
    told = "; ".join(
        f"{line.heading} {line.label}: {number}"
        for line, number in zip(lines, numbers, strict=True)
    )
    alt = f"Forest plot, {unit}. {told}."
    with new_figure(WIDE, 0.75 + LINE_INCHES * rows) as figure:
        ax = figure.subplots()
        ax.axvline(0.0, color=SOFT, linewidth=0.9, linestyle=(0, (4, 3)))
        factor = 1.0
        for place, line in zip(places, lines, strict=True):
            factor = 100.0 if line.answer.event is not None else 1.0
            _draw_line(ax, place, line.answer, factor, first=line is lines[0])
        _write_sides(ax, places, headings, lines, numbers)
        ax.set_ylim(rows - 0.4, -0.6)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel(short(unit, 62), fontsize=8)
        ax.grid(axis="x")
        return image(figure, alt)


def _told(answer: Effect, spread: float) -> str:
    estimate, ends = estimate_and_interval(answer, spread)
    return f"{signed(estimate)} ({ends})" if ends else signed(estimate)


def _places(lines: Sequence[Line]) -> tuple[list[int], dict[int, str]]:
    """Returns the row of each line, and the rows of the headings above groups."""
    places: list[int] = []
    headings: dict[int, str] = {}
    row, heading = 0, ""
    for line in lines:
        if line.heading and line.heading != heading:
            headings[row] = line.heading
            row += 1
        heading = line.heading
        places.append(row)
        row += 1
    return places, headings


def _draw_line(ax: Axes, place: int, answer: Effect, factor: float, *, first: bool) -> None:
    estimate = factor * (answer.estimate or 0.0)
    colour = BLUE if first else INK
    if answer.interval is not None:
        lower, upper = (factor * end for end in answer.interval)
        ax.plot([lower, upper], [place, place], color=colour, linewidth=2.2 if first else 1.4)
    ax.plot(
        [estimate],
        [place],
        marker="D" if first else "s",
        markersize=6 if first else 4.5,
        color=colour,
        markeredgecolor="white",
        markeredgewidth=0.6,
    )


def _write_sides(
    ax: Axes,
    places: list[int],
    headings: dict[int, str],
    lines: Sequence[Line],
    numbers: list[str],
) -> None:
    """Writes names left, numbers right."""
    # Spaces that SVG keeps: it drops ordinary ones before a word.
    indented = [
        f"\N{EN SPACE}{short(line.label, 24)}" if line.heading else short(line.label, 26)
        for line in lines
    ]
    names = dict(zip(places, indented, strict=True)) | {
        row: short(name, 26) for row, name in headings.items()
    }
    rows = sorted(names)
    ax.set_yticks(rows, [names[row] for row in rows], ha="left")
    longest = max(len(name) for name in names.values())
    ax.tick_params(axis="y", length=0, pad=4.9 * longest)
    for row, tick in zip(rows, ax.get_yticklabels(), strict=True):
        tick.set_fontweight("bold" if row in headings or row == places[0] else "normal")
    right = ax.secondary_yaxis("right")
    right.set_yticks(places, numbers)
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)


def draw_curve(
    curve: pd.DataFrame,
    treatment: str,
    outcome: str,
    seen: np.ndarray,
    arms: tuple[float, float] | None,
) -> Image:
    """Draws the outcome along the treatment, with its band and where the rows are.

    Arguments:
        curve: What `MissCNF.curve` returns, chances in percent.
        treatment: The column along.
        outcome: What the curve is of, in words.
        seen: The treatment's values in the rows.
        arms: The two values that the report compares, if they are numbers.
    """
    x = curve[treatment].to_numpy(dtype=float)
    y = curve["mean"].to_numpy(dtype=float)
    alt = (
        f"Dose-response curve: {outcome} is {y[0]:.3g} at {treatment} = {x[0]:.3g} and "
        f"{y[-1]:.3g} at {treatment} = {x[-1]:.3g}."
    )
    with new_figure(WIDE, 2.75) as figure:
        above, below = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [5, 1]})
        if "mean_lower" in curve:
            above.fill_between(
                x, curve["mean_lower"], curve["mean_upper"], color=PALE_BLUE, linewidth=0
            )
        above.plot(x, y, color=BLUE, marker="o" if len(x) <= 8 else "", markersize=4)
        for arm in arms or ():
            above.axvline(arm, color=ORANGE, linewidth=0.9, linestyle=(0, (4, 3)))
        above.set_ylabel(short(outcome, 34))
        above.grid(axis="y")
        _draw_rows(below, seen, x)
        below.set_xlabel(short(treatment, 50))
        return image(figure, alt)


def _draw_rows(ax: Axes, seen: np.ndarray, x: np.ndarray) -> None:
    """Draws how many rows have which value of the treatment."""
    inside = seen[(seen >= x[0]) & (seen <= x[-1])]
    ax.hist(inside, bins=min(30, max(len(np.unique(inside)), 1)), color=SOFT)
    ax.set_yticks([])
    ax.spines["left"].set_visible(False)
    ax.set_ylabel("rows", rotation=0, ha="right", va="center")
