r"""The mechanism of loss: which columns' holes are explained by what other columns show.

For each column j with holes and each other column c, among the rows that show c, the score test of
a logistic regression of the holes of j on u and u², with u the rank of c scaled to ±1 (on its
levels, if c has no order):

    n R² ~ χ²(k)     if the holes of j have nothing to do with c,

corrected for all pairs (Holm). Columns that pass are then fitted together, by a logistic
regression on the rows that show them, and kept if a likelihood-ratio test says so.

What this can say: loss is not completely at random if anything is found. What no table can say:
that loss depends on nothing but what is shown (MAR), since the lost values are not there to look.

Structural holes: a column may be missing exactly where another has certain values. Pregnancies
are empty for all men: there is no value that was lost, and imputing one answers a question that
nobody has. A table cannot tell such a hole from a lost value, so it is asked about:

    shown(j) = 0 of all rows with c ∈ A,      shown(j) in nearly all others.

The search is that of `regions`, with the column alone in place of a family.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
from scipy.special import chdtrc, expit

from misscnf.identification.columns import Column
from misscnf.identification.regions import Region, Search
from misscnf.identification.scan import Axis
from misscnf.identification.settings import CheckSettings, LossRules

__all__ = [
    "LogisticFit",
    "fit_logistic",
    "likelihood_ratio_test",
    "holm",
    "Explanation",
    "Explained",
    "explain_holes",
    "find_structural_holes",
]


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A logistic regression with an intercept."""

    intercept: float
    weights: np.ndarray
    log_likelihood: float


def fit_logistic(features: np.ndarray, happens: np.ndarray, penalty: float = 1e-4) -> LogisticFit:
    """Fits P(happens | x) = σ(b + w · x) to features of a scale near one, by Newton's method.

    The penalty is a ridge: weights stay finite where the two are separated exactly.
    """
    design = np.column_stack([np.ones(len(features)), features])
    target = happens.astype(np.float64)
    ridge = np.full(design.shape[1], penalty)
    ridge[0] = 1e-10
    share = np.clip(target.mean(), 1e-9, 1.0 - 1e-9)
    start = np.zeros(design.shape[1])
    start[0] = np.log(share / (1.0 - share))

    def negative(w: np.ndarray) -> float:
        return 0.5 * float(w @ (ridge * w)) - _log_likelihood(design @ w, target)

    def slope(w: np.ndarray) -> np.ndarray:
        return ridge * w - design.T @ (target - expit(design @ w))

    def curvature(w: np.ndarray) -> np.ndarray:
        p = expit(design @ w)
        return (design * (p * (1.0 - p))[:, None]).T @ design + np.diag(ridge)

    found = scipy.optimize.minimize(
        negative, start, jac=slope, hess=curvature, method="trust-exact"
    ).x
    return LogisticFit(float(found[0]), found[1:], _log_likelihood(design @ found, target))


def likelihood_ratio_test(full: LogisticFit, reduced: LogisticFit) -> float:
    """Returns the p-value of the features that a fit has beside those of another."""
    difference = full.log_likelihood - reduced.log_likelihood
    return float(chdtrc(len(full.weights) - len(reduced.weights), max(0.0, 2.0 * difference)))


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Returns p-values corrected for their number, such that any false one is as rare as said."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = p[order] * (len(p) - np.arange(len(p)))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def _log_likelihood(scores: np.ndarray, target: np.ndarray) -> float:
    return float((target * scores - np.logaddexp(0.0, scores)).sum())


@dataclass(frozen=True)
class Explanation:
    """A column that goes with the holes of another."""

    column: str
    odds: float | None
    """Odds of a hole at one standard deviation more (at 1 against 0, if binary); None if the
    column has levels without an order."""
    p_value: float
    """Corrected for all tests."""
    kept: bool
    """Whether it still explains holes beside the others."""
    levels: tuple[str, ...] | None = None
    """The two levels of a binary column: the odds are those of the second against the first."""


@dataclass(frozen=True)
class Explained:
    """The holes of one column, and what goes with them, strongest first."""

    column: str
    holes: int
    share: float
    by: tuple[Explanation, ...]
    tested: int
    """How many columns could be tested."""


def explain_holes(
    columns: Sequence[Column], rules: LossRules, seed: int = 0
) -> tuple[list[Explained], float]:
    """Explains the holes of each node, by nodes and other columns.

    Beside a line for each node with holes stands the smallest corrected p-value of all tests (1 if
    there was none): the p-value of a test that all losses are completely at random. The seed picks
    rows where there are more than a regression needs.
    """
    holey = [c for c in columns if c.node is not None and not c.observed.all()]
    if not holey:
        return [], 1.0
    statistics, p_values = _score_tests(columns, holey, rules)
    tested = ~np.isnan(p_values)
    corrected = np.ones_like(p_values)
    corrected[tested] = holm(p_values[tested])
    rng = np.random.default_rng(seed)
    lines = []
    for j, column in enumerate(holey):
        passed = np.flatnonzero(corrected[:, j] < rules.level)
        passed = passed[np.argsort(-statistics[passed, j], kind="stable")]
        others = [columns[int(c)] for c in passed]
        by = _together(column, others, corrected[passed, j], rules, rng)
        holes = int((~column.observed).sum())
        share = holes / len(column.values)
        lines.append(Explained(column.name, holes, share, by, int(tested[:, j].sum())))
    return lines, float(corrected.min())


def _score_tests(
    columns: Sequence[Column], holey: Sequence[Column], rules: LossRules
) -> tuple[np.ndarray, np.ndarray]:
    """Returns n R² and its p-value for each column and each holey one, NaN where untested."""
    holes = np.column_stack([~column.observed for column in holey]).astype(np.float32)
    statistics = np.zeros((len(columns), len(holey)))
    p_values = np.full((len(columns), len(holey)), np.nan)
    for c, column in enumerate(columns):
        features, part = _rank_features(column), holes[column.observed]
        if len(part) <= 2 * rules.fewest or not features.shape[1]:
            continue
        share = part.mean(axis=0, dtype=np.float64)
        along = features.T @ part.astype(np.float64)
        slopes = np.linalg.lstsq(features.T @ features, along, rcond=1e-8)[0]
        explained = (along * slopes).sum(axis=0)
        count = share * len(part)
        enough = (count >= rules.fewest) & (len(part) - count >= rules.fewest)
        enough &= np.array([other is not column for other in holey])
        variance = np.where(enough, share * (1.0 - share), 1.0)
        statistics[c] = np.where(enough, explained / variance, 0.0)
        p = chdtrc(features.shape[1], np.maximum(statistics[c], 0.0))
        p_values[c] = np.where(enough, p, np.nan)
    return statistics, p_values


def _rank_features(column: Column) -> np.ndarray:
    """Returns centred features of the rows that show a column, (n, k)."""
    values = column.values[column.observed]
    levels, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    if len(levels) < 2:
        return np.zeros((len(values), 0))
    if not column.ordered:
        features = (codes[:, None] == np.arange(1, len(levels))).astype(np.float64)
    else:
        middle = np.cumsum(counts) - (counts - 1) / 2.0
        u = (2.0 * middle / (len(values) + 1.0) - 1.0)[codes]
        features = u[:, None] if len(levels) == 2 else np.column_stack([u, u**2])
    return features - features.mean(axis=0)


def _together(
    column: Column,
    by: Sequence[Column],
    p_values: np.ndarray,
    rules: LossRules,
    rng: np.random.Generator,
) -> tuple[Explanation, ...]:
    """Fits the columns that passed together, and tells which are still needed."""
    strongest = _that_are_shown_together(column, by[: rules.most_together], rules.fewest)
    if not strongest:
        return tuple(
            Explanation(other.name, None, float(p), kept=True)
            for other, p in zip(by, p_values, strict=True)
        )
    features = [other.features() for other in strongest]
    shown = np.flatnonzero(np.all([~np.isnan(f).any(axis=1) for f in features], axis=0))
    if len(shown) > rules.most_rows:
        shown = np.sort(rng.choice(shown, rules.most_rows, replace=False))
    hole = ~column.observed[shown]
    parts = [f[shown] for f in features]
    fit = fit_logistic(np.column_stack(parts), hole)
    none = np.empty((len(hole), 0))
    without = [np.column_stack([none, *parts[:i], *parts[i + 1 :]]) for i in range(len(parts))]
    tests = [likelihood_ratio_test(fit, fit_logistic(reduced, hole)) for reduced in without]
    kept = holm(tests) < rules.level
    if not kept.any():  # they tell the same story: keep the strongest
        kept[0] = True
    places = np.cumsum([0, *(part.shape[1] for part in parts)])
    found = []
    for i, other in enumerate(strongest):
        levels = other.labels if other.labels is not None and len(other.labels) == 2 else None
        # Features are standardised: a step from one of two levels to the other is more than one.
        unit = 1.0 if levels is None else 1.0 / max(float(np.nanstd(other.values)), 1e-9)
        odds = float(np.exp(np.clip(unit * fit.weights[places[i]], -50.0, 50.0)))
        told = odds if parts[i].shape[1] == 1 else None
        p = float(p_values[by.index(other)])
        found.append(Explanation(other.name, told, p, bool(kept[i]), levels))
    return tuple(sorted(found, key=lambda line: not line.kept))


def _that_are_shown_together(column: Column, by: Sequence[Column], fewest: int) -> list[Column]:
    """Returns the strongest columns that enough rows show together, with and without holes."""
    chosen: list[Column] = []
    shown = np.ones(len(column.values), dtype=bool)
    for other in by:
        both = shown & other.observed
        seen = int((both & column.observed).sum())
        if min(seen, int(both.sum()) - seen) >= fewest * (len(chosen) + 1):
            chosen.append(other)
            shown = both
    return chosen


def find_structural_holes(
    columns: Sequence[Column], axes: Sequence[Axis], settings: CheckSettings
) -> list[Region]:
    """Returns where columns are never there, although elsewhere they are."""
    holey = [c for c in columns if c.node is not None and not c.observed.all()]
    if not holey:
        return []
    shown = np.column_stack([column.observed for column in holey])
    names, members = [c.name for c in holey], [frozenset({c.node or 0}) for c in holey]
    found = Search(shown, names, members, axes, settings.structural_regions).stretches()
    lines = []
    for regions in found:
        never = [region for region in regions if region.flagged and region.whole == 0]
        best = max(never, key=lambda region: region.elsewhere, default=None)
        if best is not None and best.elsewhere >= settings.structural.shown_elsewhere:
            lines.append(best)
    return lines
