r"""What a report asks of its model: which two values of the treatment to compare, and in whom.

| treatment | compared |
|---|---|
| two levels | the higher with the lower |
| levels without an order | each with the most frequent |
| numbers, levels with an order | the 75th percentile with the 25th |

An outcome whose levels have no number is asked for by the level whose chance changes most.

Effects are asked for in everybody, in those who are treated and in groups: by the levels of a
column where these are few, else at its median. Each group is one line of the forest plot, and its
difference from the first one a line of the table below. Whoever asks may name the columns.
Otherwise they are columns that the treatment does not change: strata first (parents of the outcome
with few levels) and columns that the model lets modify the effect, then confounders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from misscnf.data.cells import Label
from misscnf.data.codecs import Column, Levels
from misscnf.data.table import IncompleteTable
from misscnf.errors import InputError
from misscnf.estimators.fitted import FittedFlow
from misscnf.queries.by import GroupEffects
from misscnf.queries.effects import Effect
from misscnf.queries.groups import Part, may_differ, nearby, split
from misscnf.report.settings import EffectRules
from misscnf.report.words import label, of_group

__all__ = ["Question", "open_question", "contrasts", "dose_grid", "Line", "forest_lines"]
__all__ += ["group_effects"]


@dataclass(frozen=True, eq=False)
class Question:
    """The effect of a treatment on an outcome, asked of a fitted model."""

    model: FittedFlow
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
    groups: tuple[str, ...] = ()
    """Columns that make the groups; none for those that suggest themselves."""
    seed: int = 0

    def ask(
        self,
        value: Label,
        versus: Label,
        *,
        by: list[Part] | None = None,
        treated: bool = False,
        draws: int | None = None,
    ) -> Effect:
        """Returns the effect of one value of the treatment against another.

        It is averaged over everybody, or those who have the first value by themselves, and over
        each of the groups as well.
        """
        given = self._given(versus, self.rules.draws if draws is None else draws)
        arm = {self.treatment: value}
        return self.model.effect(self.outcome, arm, by=by, treated=treated, **given)

    def curve(self, values: list[Label], versus: Label) -> pd.DataFrame:
        """Returns the outcome along values of the treatment."""
        given = self._given(versus, self.rules.draws_of_curve)
        about = (self.outcome, self.treatment, values)
        found = self.model.curve(*about, **given | {"interval": None})
        if self.level is not None:
            few = self.model.curve(*about, **given | {"draws": self.rules.draws_of_band})
            for end in {"mean_lower", "mean_upper"} & {*few}:
                found[end] = found["mean"] + few[end] - few["mean"]
                if found.attrs["statistic"] == "risk":
                    found[end] = found[end].clip(0.0, 1.0)
        return found

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


def forest_lines(question: Question, groups: Sequence[GroupEffects]) -> list[Line]:
    """Returns the effects to show, the one that opens the report first and groups last."""
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
    everybody = lines[0].answer
    for found in groups:
        for name, answer in found.effects.items():
            # What is equal by construction differs by the luck of the draws at most.
            equal = replace(everybody, group=answer.group, equal_groups=True)
            lines.append(Line(found.by, of_group(name), equal if answer.equal_groups else answer))
    return lines


def group_effects(question: Question) -> list[GroupEffects]:
    """Returns the effect that opens the report in the groups of some columns, a column each."""
    value, versus = contrasts(question)[0]
    found = [
        question.ask(value, versus, by=parts, draws=question.rules.draws_of_parts).groups
        for parts in _splits(question)
    ]
    return [groups for groups in found if groups is not None]


def _splits(question: Question) -> list[list[Part]]:
    """Returns the groups of each column: of those that were named, or of a few that were not."""
    rules, found = question.rules, list[list[Part]]()
    for name in question.groups or _splitting_columns(question):
        few = rules.few_named_levels if question.groups else rules.few_levels
        parts = split(question.column(name), question.seen(name), few, rules.least_share)
        if question.groups and len(parts) < 2:
            raise InputError(
                f"{name!r} makes no groups to compare; name a column with two to {few} levels, or "
                f"one of numbers."
            )
        room = rules.most_groups - sum(len(one) for one in found)
        if len(parts) > 1 and (question.groups or len(parts) <= room):
            found.append(parts)
    return found


def _splitting_columns(question: Question) -> list[str]:
    """Returns columns that the treatment leaves alone: strata and modifiers, then confounders."""
    graph = question.model.graph_
    t, y = graph.index(question.treatment), graph.index(question.outcome)
    free = graph.ancestral_closure([y]) - graph.descendants([t]) - graph.latent_nodes
    confounders = graph.ancestral_closure([t])

    def rank(node: int) -> tuple[int, bool, int]:
        column = question.column(graph.nodes[node])
        few = isinstance(column, Levels) and len(column.levels) <= question.rules.few_levels
        stratum = few and node in graph.parents[y]
        modifies = may_differ(question.model.model_, [t], y, [node])
        return -stratum - modifies, node not in confounders, node

    return [graph.nodes[node] for node in sorted(free, key=rank)]
