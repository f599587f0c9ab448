r"""What a report asks of its model: which two values of the treatment to compare, and in whom.

| treatment | compared |
|---|---|
| two levels | the higher with the lower |
| levels without an order | each with the most frequent |
| numbers, levels with an order | the 75th percentile with the 25th |

An outcome whose levels have no number is asked for by the level whose chance changes most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from misscnf.data.cells import Label
from misscnf.data.codecs import Column, Levels
from misscnf.data.table import IncompleteTable
from misscnf.estimators.misscnf import MissCNF
from misscnf.queries.effects import Effect
from misscnf.queries.groups import Where
from misscnf.report.digits import nearby

__all__ = ["Question", "open_question", "contrasts", "dose_grid", "DRAWS_OF_PARTS"]

DRAWS = 20_000
"""Units of an effect: the Monte-Carlo error is far below any sampling error then."""
DRAWS_OF_PARTS = 5_000
"""Of a group, or a value along a curve: each replicate of the fit is asked for all of them."""
GRID = 15
"""Values along a dose-response curve."""
QUARTILES = (0.25, 0.75)
RANGE = (0.025, 0.975)


@dataclass(frozen=True, eq=False)
class Question:
    """The effect of a treatment on an outcome, asked of a fitted model."""

    model: MissCNF
    data: pd.DataFrame
    treatment: str
    outcome: str
    level: float | None
    """The level of intervals; None for none."""
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
        draws: int = DRAWS,
    ) -> Effect:
        """Returns the effect of one value of the treatment against another.

        Arguments:
            value: The first arm.
            versus: The second.
            where: Tells who is in the group; everybody if None.
            treated: Whether to average over those who have the first value by themselves.
            draws: Units that are averaged.
        """
        return self.model.effect(
            self.outcome,
            {self.treatment: value},
            {self.treatment: versus},
            where=where,
            treated=treated,
            event=self.event,
            interval=self.level,
            data=self.data,
            replicates=self.replicates,
            draws=draws,
            seed=self.seed,
        )

    def curve(self, values: list[Label], versus: Label) -> pd.DataFrame:
        """Returns the outcome along values of the treatment."""
        return self.model.curve(
            self.outcome,
            self.treatment,
            values,
            versus={self.treatment: versus},
            event=self.event,
            interval=self.level,
            data=self.data,
            replicates=self.replicates,
            draws=DRAWS_OF_PARTS,
            seed=self.seed,
        )

    @property
    def has_effect(self) -> bool:
        """Whether the graph lets the treatment reach the outcome."""
        graph = self.model.graph_
        return graph.index(self.outcome) in graph.descendants([graph.index(self.treatment)])

    def column(self, name: str) -> Column:
        """Returns the codec of a column."""
        return self.model.schema_.columns[self.model.graph_.index(name)]


def open_question(
    model: MissCNF,
    table: IncompleteTable,
    data: pd.DataFrame,
    effect: tuple[str, str],
    level: float | None,
    replicates: int | None,
    seed: int,
) -> Question:
    """Returns the question, of an event where the outcome's levels have no number.

    Arguments:
        model: The fitted model.
        table: Its rows.
        data: The same as they came.
        effect: (treatment, outcome).
        level: The level of intervals.
        replicates: Of the fit, for intervals.
        seed: Where randomness starts.
    """
    question = Question(model, data, effect[0], effect[1], level, replicates, seed=seed)
    value, versus = contrasts(question.column(effect[0]), table)[0]
    first = replace(question, level=None).ask(value, versus)
    if first.estimate is not None or first.probabilities is None:
        return question
    change = first.probabilities["difference"].abs()
    return replace(question, event=first.probabilities["level"][int(change.to_numpy().argmax())])


def contrasts(column: Column, table: IncompleteTable) -> list[tuple[Label, Label]]:
    """Returns the pairs of values to compare, the one that opens the report first.

    Arguments:
        column: The treatment's codec.
        table: The rows.
    """
    seen = _seen(column, table)
    if isinstance(column, Levels) and column.kind == "categorical":
        codes, counts = np.unique(seen.astype(np.int64), return_counts=True)
        base, *others = codes[np.argsort(-counts, kind="stable")]
        return [(column.levels[code], column.levels[base]) for code in others]
    if isinstance(column, Levels) and column.kind == "binary":
        return [(column.levels[1], column.levels[0])]
    low, high = _ends(column, seen, QUARTILES)
    return [(high, low)]


def dose_grid(column: Column, table: IncompleteTable) -> list[Label]:
    """Returns values of a numeric treatment along most of its range; none where it has no number.

    Arguments:
        column: The treatment's codec.
        table: The rows.
    """
    seen = _seen(column, table)
    if isinstance(column, Levels):
        text = any(isinstance(level, str) for level in column.levels)
        return [] if text or column.kind != "ordinal" else list(column.levels)
    low, high = np.quantile(seen, RANGE)
    values = np.linspace(low, high, GRID)
    if column.domain.kind == "count":
        values = np.unique(np.rint(values))
    return [float(value) for value in values] if low < high else []


def _seen(column: Column, table: IncompleteTable) -> np.ndarray:
    raw = table.raw[:, table.nodes.index(column.name)]
    return raw[~np.isnan(raw)]


def _ends(column: Column, seen: np.ndarray, shares: tuple[float, float]) -> tuple[Label, Label]:
    """Returns two quantiles that differ, as values of the column, the lower first."""
    whole = column.domain.discrete
    low, high = np.quantile(seen, shares, method="nearest" if whole else "linear")
    if low == high:
        low, high = seen.min(), seen.max()
    if isinstance(column, Levels):
        return column.levels[int(low)], column.levels[int(high)]
    if whole:
        return int(low), int(high)
    spread = float(high - low)
    return nearby(float(low), spread), nearby(float(high), spread)
