r"""The g-formula's own check: the natural course by the model beside what was observed.

Drawn without any intervention, people of the model should look like those of the table at every
visit. The table is asked twice:

    shown       those who were there and showed the value: who left is not among them
    completed   everybody, holes and lost visits completed by the model given what each showed

If those who left are unlike those who stayed, what is shown moves away from both others, and that
is no fault of the model. If the natural course leaves the completed table, its laws do not fit:
with n people who show a value of standard deviation s, by more than z s / √n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import ndtri

from misscnf.data.codecs import Column, Levels
from misscnf.data.panel import Panel
from misscnf.data.table import IncompleteTable
from misscnf.display.style import STYLE
from misscnf.estimators.fitted import FittedFlow
from misscnf.graph.template import at_visit
from misscnf.report.pictures import Image, image, new_figure
from misscnf.report.words import label

__all__ = ["Course", "natural_courses", "draw_course", "draw_follow_up", "mark_visits"]


@dataclass(frozen=True)
class Course:
    """A column along the visits."""

    column: str
    what: str
    """What of it is drawn, such as its mean."""
    table: pd.DataFrame
    """A row a visit: time, natural, completed, shown, error (of the mean), ok."""

    @property
    def ok(self) -> bool:
        """Whether the natural course stays with the table at every visit."""
        return bool(self.table["ok"].all())


def natural_courses(
    model: FittedFlow, table: IncompleteTable, draws: int, level: float, seed: int
) -> list[Course]:
    """Returns the courses of all columns that have a mean.

    Arguments:
        model: The fit.
        table: Its table, a row a person.
        draws: People that the model draws.
        level: The chance of one false alarm in all tests together.
        seed: Where randomness starts.
    """
    panel = model.panel_
    assert panel is not None
    natural = model.sample(draws, seed=seed)
    values = model._draw(table, 1, {}, seed)
    about = {"flat": True, "replaced": (), "exact": ()}
    completed = panel.long(model._frame(table, values, **about))  # type: ignore[arg-type]
    known = model._frame(table, values, **about).where(  # type: ignore[arg-type]
        pd.DataFrame(_shown(table), index=table.index, columns=list(table.nodes))
    )
    found = []
    for name in panel.template.varying:
        codec = table.schema.columns[table.nodes.index(panel.at(name)[0])]
        if name in panel.events or not _has_mean(codec):
            continue
        shown = pd.concat(
            {v: known[node] for v, node in _by_visit(panel, name, known)}, names=[panel.time]
        )
        parts = [
            _numbers(frame[name], codec).groupby(frame[panel.time])
            for frame in (natural, completed)
        ]
        seen = _numbers(shown.dropna(), codec).groupby(level=0)
        lines = pd.DataFrame(
            {
                "natural": parts[0].mean(),
                "completed": parts[1].mean(),
                "shown": seen.mean(),
                "error": seen.std() / np.sqrt(seen.count()),
            }
        ).dropna()
        found.append(Course(name, _what(name, codec), lines.rename_axis("time").reset_index()))
    tests = sum(len(one.table) for one in found)
    most = float(ndtri(1.0 - level / (2.0 * max(tests, 1))))
    return [_judged(one, most) for one in found]


def _judged(course: Course, most: float) -> Course:
    table = course.table
    away = (table["natural"] - table["completed"]).abs()
    return Course(course.column, course.what, table.assign(ok=away <= most * table["error"]))


def _by_visit(panel: Panel, name: str, frame: pd.DataFrame) -> list[tuple[float, str]]:
    nodes = [(v, at_visit(name, v)) for v in panel.visits]
    return [(v, node) for v, node in nodes if node in frame]


def _shown(table: IncompleteTable) -> np.ndarray:
    left_out = {*table.schema.fixed}
    keep = [j not in left_out for j in range(len(table.nodes))]
    return table.observed.numpy() & np.array(keep)


def _has_mean(codec: Column) -> bool:
    if not isinstance(codec, Levels):
        return True
    return codec.kind == "binary" or not any(isinstance(level, str) for level in codec.levels)


def _numbers(cells: pd.Series, codec: Column) -> pd.Series:
    """Returns cells as numbers: of two levels, whether it is the higher one."""
    if isinstance(codec, Levels) and codec.kind == "binary":
        return (cells == codec.levels[-1]).astype(float)
    return pd.to_numeric(cells).astype(float)


def _what(name: str, codec: Column) -> str:
    if isinstance(codec, Levels) and codec.kind == "binary":
        return f"share with {name} = {label(codec.levels[-1])}"
    return f"mean of {name}"


def draw_course(course: Course) -> Image:
    """Draws a column's course: a line by the model, dots for the table."""
    table = course.table
    colour = STYLE.blue if course.ok else STYLE.orange
    with new_figure(STYLE.small, 1.5) as figure:
        ax = figure.subplots()
        ax.errorbar(
            table["time"],
            table["completed"],
            yerr=2.0 * table["error"],
            fmt="o",
            markersize=3,
            color=STYLE.ink,
            elinewidth=0.8,
        )
        ax.plot(table["time"], table["shown"], "x", color=STYLE.soft, markersize=4)
        ax.plot(table["time"], table["natural"], color=colour)
        mark_visits(ax, table["time"])
        ax.set_title(course.what)
        told = "; ".join(
            f"{line.time:g}: {line.natural:.3g}, completed {line.completed:.3g}, "
            f"shown {line.shown:.3g}"
            for line in table.itertuples()
        )
        return image(figure, f"{course.what} by visit, natural course by the model. {told}.")


def draw_follow_up(lines: pd.DataFrame, time: str, columns: Sequence[str]) -> Image:
    """Draws how many are seen at each visit, and the share of holes of each column."""
    with new_figure(STYLE.wide, 2.4) as figure:
        ax = figure.subplots()
        ax.bar(lines["time"], lines["seen"], color=STYLE.pale_blue, width=0.7 * _step(lines))
        mark_visits(ax, lines["time"])
        ax.set_xlabel(time)
        ax.set_ylabel("people seen")
        other = ax.twinx()
        other.spines["right"].set_visible(True)
        for number, name in enumerate(columns):
            style = ("-", "--", ":", "-.")[number % 4]
            other.plot(lines["time"], 100.0 * lines[name], style, color=STYLE.orange, label=name)
        other.set_ylim(0.0, 100.0)
        other.set_ylabel("% of their cells missing")
        if columns:
            other.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=4, fontsize=7)
        told = "; ".join(f"{line.time:g}: {line.seen:g} people" for line in lines.itertuples())
        return image(figure, f"People seen at each visit. {told}.")


def mark_visits(ax: Axes, times: pd.Series) -> None:
    """Puts marks of an axis at visits, and at no time between them."""
    inches = ax.figure.get_size_inches()[0] if isinstance(ax.figure, Figure) else STYLE.wide
    every = int(np.ceil(len(times) / (2.5 * inches)))
    some = times.to_numpy()[::every]
    ax.set_xticks(some, [f"{time:g}" for time in some])


def _step(lines: pd.DataFrame) -> float:
    return float(np.diff(lines["time"]).min()) if len(lines) > 1 else 1.0
