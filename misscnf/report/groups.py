r"""Effects in groups: everybody, those who are treated, and halves of the table.

Groups are made along columns that the treatment does not change, confounders first: by their
levels where they have few, else at the median. Each is one line of the forest plot.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd

from misscnf.data.cells import Label
from misscnf.data.codecs import Levels
from misscnf.data.table import IncompleteTable
from misscnf.queries.effects import Effect
from misscnf.queries.groups import Where
from misscnf.report.asking import DRAWS_OF_PARTS, Question, contrasts
from misscnf.report.digits import label, nearby

__all__ = ["Line", "forest_lines"]

MOST_GROUPS = 8
"""Lines of groups in the plot."""
MOST_CONTRASTS = 6
"""Levels of a treatment that are compared with the most frequent one."""
FEW_LEVELS = 3
"""A column with more is split at its median."""
LEAST_SHARE = 0.05
"""Smaller groups are left out: little is known about them."""


@dataclass(frozen=True)
class Line:
    """One effect of the forest plot."""

    heading: str
    """What it stands under: everybody, or the column that makes the groups."""
    label: str
    answer: Effect


def forest_lines(question: Question, table: IncompleteTable) -> list[Line]:
    """Returns the effects to show, the one that opens the report first.

    Arguments:
        question: The question.
        table: The rows.
    """
    column = question.column(question.treatment)
    pairs = contrasts(column, table)
    several = len(pairs) > 1
    lines = []
    for value, versus in pairs[:MOST_CONTRASTS]:
        name = f"{label(value)} against {label(versus)}" if several else "everybody"
        lines.append(Line("Everybody" if several else "", name, question.ask(value, versus)))
    value, versus = pairs[0]
    if isinstance(column, Levels):
        treated = question.ask(value, versus, treated=True, draws=DRAWS_OF_PARTS)
        lines.append(Line("", f"those with {question.treatment} = {label(value)}", treated))
    return [*lines, *_group_lines(question, table, value, versus)]


def _group_lines(
    question: Question, table: IncompleteTable, value: Label, versus: Label
) -> list[Line]:
    lines: list[Line] = []
    for name in _splitting_columns(question):
        parts = _parts(question, table, name)
        if len(parts) < 2 or len(lines) + len(parts) > MOST_GROUPS:
            continue
        for shown, where in parts:
            answer = question.ask(value, versus, where=where, draws=DRAWS_OF_PARTS)
            lines.append(Line(name, shown, answer))
    return lines


def _splitting_columns(question: Question) -> list[str]:
    """Returns columns that the treatment leaves alone, those that confound first."""
    graph = question.model.graph_
    t, y = graph.index(question.treatment), graph.index(question.outcome)
    free = graph.ancestral_closure([y]) - graph.descendants([t])
    confounders = graph.ancestral_closure([t])
    return [graph.nodes[i] for i in sorted(free, key=lambda i: (i not in confounders, i))]


def _parts(question: Question, table: IncompleteTable, name: str) -> list[tuple[str, Where]]:
    """Returns the groups that a column makes: their names, and who is in them."""
    column = question.column(name)
    raw = table.raw[:, table.nodes.index(name)]
    seen = raw[~np.isnan(raw)]
    if isinstance(column, Levels) and len(column.levels) <= FEW_LEVELS:
        return [
            (label(level), partial(_has_level, name, level))
            for code, level in enumerate(column.levels)
            if (seen == code).mean() >= LEAST_SHARE
        ]
    if isinstance(column, Levels):
        if any(isinstance(level, str) for level in column.levels):
            return []  # text has no median to split at
        seen = np.array(column.levels, dtype=float)[seen.astype(np.int64)]
    low, median, high = np.quantile(seen, (0.25, 0.5, 0.75))
    middle = nearby(float(median), float(high - low))
    if not LEAST_SHARE <= (seen <= middle).mean() <= 1.0 - LEAST_SHARE:
        return []
    shown = label(middle)
    return [
        (f"{shown} or less", partial(_is_at_most, name, middle)),
        (f"above {shown}", partial(_is_above, name, middle)),
    ]


def _has_level(name: str, level: Label, units: pd.DataFrame) -> np.ndarray:
    return (units[name] == level).to_numpy(dtype=bool)


def _is_at_most(name: str, middle: float, units: pd.DataFrame) -> np.ndarray:
    return units[name].to_numpy(dtype=float) <= middle


def _is_above(name: str, middle: float, units: pd.DataFrame) -> np.ndarray:
    return units[name].to_numpy(dtype=float) > middle
