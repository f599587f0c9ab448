r"""Plain estimates beside a model's: what the rows say without it.

crude            nothing is adjusted, whoever shows treatment and outcome counts. Levels: the
                 outcome's mean among rows with the first, less that among rows with the second.
                 Numbers, since few rows have just these two values: the least-squares line of the
                 outcome on the treatment, along the step from one to the other
complete cases   least squares with the treatment and everything else that the graph draws into it
                 or into the outcome, levels as indicators, on the rows that show all of these;
                 what the treatment changes is left out

Intervals are normal, with variances that need not be equal (Welch; HC1 of White). They are there
so that a reader sees what the model changed, not to be believed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from misscnf.data.codecs import Levels
from misscnf.data.table import IncompleteTable
from misscnf.display.digits import with_ends
from misscnf.graph import CausalGraph
from misscnf.queries.effects import Effect, Interval

__all__ = ["PlainEstimate", "plain_estimates"]


@dataclass(frozen=True)
class PlainEstimate:
    """An estimate without a model of the holes."""

    name: str
    rows: int
    """Rows that it rests on."""
    estimate: float
    interval: Interval
    line: bool = True
    """Whether it is read off a least-squares line; the crude one of levels compares two means."""
    confounded: bool = False
    """Whether causes of the treatment, which may be common ones, are left in it."""

    def __str__(self) -> str:
        number, lower, upper = with_ends(self.estimate, self.interval)
        alone = " (a line of the outcome on the treatment alone)"
        name = self.name + alone * (self.name == "crude" and self.line)
        return f"{name}, {self.rows} rows: {number} ({lower} to {upper})"


def plain_estimates(
    table: IncompleteTable, graph: CausalGraph, effect: Effect
) -> list[PlainEstimate]:
    """Returns the crude and the complete-case estimate of an effect; none where there is no such.

    They are for one treatment whose two values, or a step between them, are compared.

    Arguments:
        table: The rows, by the fitted schema.
        graph: The graph.
        effect: The effect, of means or of the risk of an event.
    """
    names = {*effect.do, *effect.versus}
    values = [arm.get(name) for arm in (effect.do, effect.versus) for name in names]
    scalar = all(isinstance(value, int | float | str | np.number) for value in values)
    if len(names) != 1 or len(values) != 2 or not scalar or effect.estimate is None:
        return []
    (name,) = names
    t, y = graph.index(name), graph.index(effect.outcome)
    outcome = _numbers(table, y, effect.event)
    treatment = table.raw[:, t]
    column = table.schema.columns[t]
    if isinstance(column, Levels):
        if any(value not in column.levels for value in values):
            return []
        codes = [float(column.levels.index(value)) for value in values]
    else:
        codes = [float(value or 0.0) for value in values]
    level = effect.level or 0.95
    drawn = {*graph.parents[t], *graph.parents[y]} - graph.descendants([t]) - graph.latent_nodes
    others = sorted(drawn - {y})
    if isinstance(column, Levels):
        crude = _two_means(treatment, outcome, codes, level)
    else:
        crude = _least_squares("crude", table, t, [], outcome, codes, level)
    if not others:  # the complete cases would say the same
        return [] if crude is None else [crude]
    complete = _least_squares("complete cases", table, t, others, outcome, codes, level)
    if crude is not None and graph.parents[t]:
        crude = replace(crude, confounded=True)
    found = (crude, complete)
    return [one for one in found if one is not None]


def _numbers(table: IncompleteTable, node: int, event: object) -> np.ndarray:
    """Returns the outcome as numbers: 1 where it is the event, or its value."""
    column, raw = table.schema.columns[node], table.raw[:, node]
    if event is not None and isinstance(column, Levels):
        return np.where(np.isnan(raw), np.nan, raw == column.levels.index(event))
    if isinstance(column, Levels):
        known = np.where(np.isnan(raw), 0, raw).astype(np.int64)
        return np.where(np.isnan(raw), np.nan, np.array(column.levels, dtype=float)[known])
    return raw


def _two_means(
    treatment: np.ndarray, outcome: np.ndarray, codes: list[float], level: float
) -> PlainEstimate | None:
    arms = [outcome[(treatment == code) & ~np.isnan(outcome)] for code in codes]
    if min(len(arm) for arm in arms) < 2:
        return None
    estimate = float(arms[0].mean() - arms[1].mean())
    error = math.sqrt(sum(arm.var(ddof=1) / len(arm) for arm in arms))
    rows = sum(len(arm) for arm in arms)
    return PlainEstimate("crude", rows, estimate, _around(estimate, error, level), line=False)


def _least_squares(
    name: str,
    table: IncompleteTable,
    t: int,
    others: list[int],
    outcome: np.ndarray,
    codes: list[float],
    level: float,
) -> PlainEstimate | None:
    rows = ~np.isnan(outcome) & ~np.isnan(table.raw[:, [t, *others]]).any(1)
    parts = [np.ones((int(rows.sum()), 1))]
    step, treatment = codes[0] - codes[1], table.raw[rows, t]
    column = table.schema.columns[t]
    if isinstance(column, Levels) and column.kind != "binary":
        levels = [code for code in range(len(column.levels)) if code != codes[1]]
        place = 1 + levels.index(int(codes[0]))
        parts.append((treatment[:, None] == np.array(levels)).astype(float))
        step = 1.0
    else:
        place = 1
        parts.append(treatment[:, None])
    for node in others:
        codec, raw = table.schema.columns[node], table.raw[rows, node]
        if isinstance(codec, Levels):
            parts.append((raw[:, None] == np.arange(1, len(codec.levels))).astype(float))
        else:
            parts.append(((raw - raw.mean()) / (raw.std() or 1.0))[:, None])
    design = np.concatenate(parts, 1)
    n, k = design.shape
    if n <= k or not np.ptp(design[:, place]):
        return None
    inverse = np.linalg.pinv(design.T @ design)
    weights = inverse @ (design.T @ outcome[rows])
    left = outcome[rows] - design @ weights
    spread = inverse @ (design.T * left**2) @ design @ inverse * (n / (n - k))
    estimate = float(weights[place] * step)
    error = abs(step) * math.sqrt(max(float(spread[place, place]), 0.0))
    return PlainEstimate(name, n, estimate, _around(estimate, error, level))


def _around(estimate: float, error: float, level: float) -> Interval:
    half = float(ndtri(0.5 + level / 2.0)) * error
    return estimate - half, estimate + half
