r"""What a report asks of its model: which two values of the treatment to compare, and in whom.

| treatment | compared |
|---|---|
| two levels | the higher with the lower |
| levels without an order | each with the most frequent |
| numbers, levels with an order | the 75th percentile with the 25th |

An outcome whose levels have no number is asked for by the level whose chance changes most.

Effects are asked for in everybody, in those who are treated and in groups. Groups are made along
columns that the treatment does not change, confounders first: by their levels where they have
few, else at the median. Each is one line of the forest plot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from misscnf.data.cells import Label
from misscnf.data.codecs import Column, Levels
from misscnf.data.table import IncompleteTable
from misscnf.estimators.misscnf import MissCNF
from misscnf.queries.effects import Effect
from misscnf.queries.groups import Where, nearby, split
from misscnf.report.settings import EffectRules
from misscnf.report.words import label

__all__ = ["Question", "open_question", "contrasts", "dose_grid", "Line", "forest_lines"]


@dataclass(frozen=True, eq=False)
class Question:
    """The effect of a treatment on an outcome, asked of a fitted model."""

    model: MissCNF
    table: IncompleteTable
    treatment: str
    outcome: str
    level: float | None
    """The level of intervals; None for none."""
    rules: EffectRules
    replicates: int | None = None
    """Of the fit, that intervals come from; None for as many as the model likes."""
    event: Label | None = None
    """The level of the outcome whose risk is compared."""
    seed: int = 0

    def ask(
        self,
        value: Label,
        versus: Label,
        *,
        where: Where | None = None,
        treated: bool = False,
        draws: int | None = None,
    ) -> Effect:
        """Returns the effect of one value of the treatment against another.

        It is averaged over everybody, or a group, or those who have the first value by themselves.
        """
        given = self._given(versus, self.rules.draws if draws is None else draws)
        arm = {self.treatment: value}
        return self.model.effect(self.outcome, arm, where=where, treated=treated, **given)

    def curve(self, values: list[Label], versus: Label) -> pd.DataFrame:
        """Returns the outcome along values of the treatment."""
        given = self._given(versus, self.rules.draws_of_parts)
        return self.model.curve(self.outcome, self.treatment, values, **given)

    def _given(self, versus: Label, draws: int) -> dict[str, Any]:
        return {
            "versus": {self.treatment: versus},
            "event": self.event,
            "interval": self.level,
            "data": self.table,
            "replicates": self.replicates,
            "draws": draws,
            "seed": self.seed,
        }

    @property
    def has_effect(self) -> bool:
        """Whether the graph lets the treatment reach the outcome."""
        graph = self.model.graph_
        return graph.index(self.outcome) in graph.descendants([graph.index(self.treatment)])

    def column(self, name: str) -> Column:
        """Returns the codec of a column."""
        return self.table.schema.columns[self.table.nodes.index(name)]

    def seen(self, name: str) -> np.ndarray:
        """Returns the values of a column that the rows show, codes for levels."""
        raw = self.table.raw[:, self.table.nodes.index(name)]
        return raw[~np.isnan(raw)]


def open_question(question: Question) -> Question:
    """Returns the question, of an event where the outcome's levels have no number."""
    value, versus = contrasts(question)[0]
    first = replace(question, level=None).ask(value, versus)
    if first.estimate is not None or first.probabilities is None:
        return question
    change = first.probabilities["difference"].abs()
    return replace(question, event=first.probabilities["level"][int(change.to_numpy().argmax())])


def contrasts(question: Question) -> list[tuple[Label, Label]]:
    """Returns the pairs of values to compare, the one that opens the report first."""
    column, seen = question.column(question.treatment), question.seen(question.treatment)
    if isinstance(column, Levels) and column.kind == "categorical":
        codes, counts = np.unique(seen.astype(np.int64), return_counts=True)
        base, *others = codes[np.argsort(-counts, kind="stable")]
        return [(column.levels[code], column.levels[base]) for code in others]
    if isinstance(column, Levels) and column.kind == "binary":
        return [(column.levels[1], column.levels[0])]
    whole, shares = column.domain.discrete, question.rules.compared
    low, high = np.quantile(seen, shares, method="nearest" if whole else "linear")
    if low == high:
        low, high = seen.min(), seen.max()
    if isinstance(column, Levels):
        return [(column.levels[int(high)], column.levels[int(low)])]
    if whole:
        return [(int(high), int(low))]
    spread = float(high - low)
    return [(nearby(float(high), spread), nearby(float(low), spread))]


def dose_grid(question: Question) -> list[Label]:
    """Returns values of a numeric treatment along most of its range; none if it has no number."""
    column = question.column(question.treatment)
    if isinstance(column, Levels):
        text = any(isinstance(level, str) for level in column.levels)
        return [] if text or column.kind != "ordinal" else list(column.levels)
    low, high = np.quantile(question.seen(question.treatment), question.rules.range)
    values = np.linspace(low, high, question.rules.grid)
    if column.domain.kind == "count":
        values = np.unique(np.rint(values))
    return [float(value) for value in values] if low < high else []


@dataclass(frozen=True)
class Line:
    """One effect of the forest plot."""

    heading: str
    """What it stands under: everybody, or the column that makes the groups."""
    label: str
    answer: Effect


def forest_lines(question: Question) -> list[Line]:
    """Returns the effects to show, the one that opens the report first."""
    rules, pairs = question.rules, contrasts(question)
    several = len(pairs) > 1
    lines = []
    for value, versus in pairs[: rules.most_contrasts]:
        name = f"{label(value)} against {label(versus)}" if several else "everybody"
        lines.append(Line("Everybody" if several else "", name, question.ask(value, versus)))
    value, versus = pairs[0]
    if isinstance(question.column(question.treatment), Levels):
        treated = question.ask(value, versus, treated=True, draws=rules.draws_of_parts)
        lines.append(Line("", f"those with {question.treatment} = {label(value)}", treated))
    groups = 0
    for name in _splitting_columns(question):
        parts = split(
            question.column(name), question.seen(name), rules.few_levels, rules.least_share
        )
        if len(parts) < 2 or groups + len(parts) > rules.most_groups:
            continue
        groups += len(parts)
        for part in parts:
            answer = question.ask(value, versus, where=part, draws=rules.draws_of_parts)
            lines.append(Line(name, part.label, answer))
    return lines


def _splitting_columns(question: Question) -> list[str]:
    """Returns columns that the treatment leaves alone, those that confound first."""
    graph = question.model.graph_
    t, y = graph.index(question.treatment), graph.index(question.outcome)
    free = graph.ancestral_closure([y]) - graph.descendants([t])
    confounders = graph.ancestral_closure([t])
    return [graph.nodes[i] for i in sorted(free, key=lambda i: (i not in confounders, i))]
