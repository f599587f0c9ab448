r"""MissForest: each column is predicted by a random forest of the others, sweep by sweep.

Holes start at their column's mean. A sweep visits the incomplete columns; in each, a forest learns
from the rows that show it and predicts the others, and the next column already reads the new
values. Predictions are means, without noise: the completed table is narrower than the truth.

Two presets differ in the forest, the order of columns and the rule that ends it:

- "stekhoven", the original: full trees, the fewest holes first. It ends at the first sweep that
  changes more than the one before, Δ = Σ (x_new − x_old)² / Σ x_new², and answers with the
  completion before that one.
- "paper", what the library that the paper names does with the paper's settings: trees of depth 3,
  columns as they come, up to 100 sweeps. It ends after 6 sweeps in a row in which the best
  cross-validated R² seen, summed over the first two incomplete columns, has not grown. (The
  paper's 10 trees never reach that library's forest: it has 100. A prediction is a mean of
  observed values, so its clipping to their range changes nothing and is left out.)

References:
    Stekhoven and Bühlmann, MissForest: non-parametric missing value imputation for mixed-type
    data, 2012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold, cross_val_score

from misscnf import InputError
from misscnf.draws import derive_generator
from misscnf_study.rivals.contract import Floats, Imputer, means_filled, others

__all__ = ["MissForest", "ForestSettings", "PRESETS"]

ROWS_SCORED = 5_000
COLUMNS_SCORED = 2
PATIENCE = 5
TINY = float(np.finfo(np.float64).tiny)
LEAST_SWEEPS, SETTLED = 11, 1e-8
"""After this many sweeps, one that moves no row by more than the second number is the last."""


@dataclass(frozen=True)
class ForestSettings:
    """How forests are grown and when they end."""

    trees: int = 100
    """Trees in a forest."""
    depth: int | None = None
    """The depth of a tree; None lets it grow until its leaves are small."""
    smallest_split: int = 6
    """The least rows of a node that is split: R's forests leave 5 together."""
    sweeps: int = 10
    """At most so many passes over the columns."""
    order: Literal["fewest_holes", "natural"] = "fewest_holes"
    """The order of columns in a sweep."""
    stop: Literal["change", "score"] = "change"
    """What ends it: a change that grows, or a score that does not."""
    fresh: bool = True
    """Whether each sweep has forests of its own random numbers."""


PRESETS = {
    "stekhoven": ForestSettings(),
    "paper": ForestSettings(
        depth=3, smallest_split=2, sweeps=100, order="natural", stop="score", fresh=False
    ),
}

Forests = dict[int, RandomForestRegressor]


@final
class MissForest(Imputer):
    """Fills with the predictions of chained forests.

    The table learned from comes back as the sweeps left it. Other tables start at the means and go
    through the forests of that last sweep, as often as it took or until nothing changes.

    Arguments:
        preset: A key of `PRESETS`, or settings.
    """

    def __init__(self, preset: str | ForestSettings = "stekhoven") -> None:
        if isinstance(preset, str) and preset not in PRESETS:
            raise InputError(f"MissForest's presets are {', '.join(PRESETS)}; got {preset!r}.")
        self.settings = PRESETS[preset] if isinstance(preset, str) else preset

    def _learn(self, values: Floats, seed: int) -> None:
        self._seed, self._seen, self._lost = seed, values, np.isnan(values)
        self._means = np.nanmean(values, axis=0)
        self._best: dict[int, float] = {}
        self._forests: Forests = {}
        start = means_filled(values, self._means)
        self._completed, self._sweeps = start, 0
        if self._lost.any() and self.settings.stop == "change":
            self._until_change_grows(start)
        elif self._lost.any():
            self._until_score_stalls(start)

    def _fill(self, values: Floats) -> Floats:
        if np.array_equal(values, self._seen, equal_nan=True):
            return self._completed
        lost = np.isnan(values)
        for j in self._ordered(lost):
            if j not in self._forests:  # it had no holes to learn to fill
                self._forests[j] = self._grow(self._completed, j, self.settings.sweeps)
        filled = means_filled(values, self._means)
        for _ in range(max(self._sweeps, 1)):
            before = filled.copy()
            for j in self._ordered(lost):
                self._predict(filled, lost, j, self._forests[j])
            if np.array_equal(before, filled):
                break
        return filled

    def _until_change_grows(self, filled: Floats) -> None:
        smallest = np.inf
        for sweep in range(self.settings.sweeps):
            after, forests = self._sweep(filled, sweep)
            change = float(((after - filled) ** 2).sum() / max((after**2).sum(), TINY))
            if change >= smallest:
                return  # what the sweep before left stands
            self._completed, self._forests, self._sweeps = after, forests, sweep + 1
            filled, smallest = after, change

    def _until_score_stalls(self, filled: Floats) -> None:
        best, waited = -np.inf, 0
        for sweep in range(self.settings.sweeps):
            scores: list[float] = []
            after, forests = self._sweep(filled, sweep, scores)
            moved = np.abs(after - filled).sum(axis=1).max()
            self._completed, self._forests, self._sweeps = after, forests, sweep + 1
            filled = after
            waited = 0 if sum(scores) > best else waited + 1
            best = max(best, sum(scores))
            if waited > PATIENCE or (sweep >= LEAST_SWEEPS and moved < SETTLED):
                return

    def _sweep(
        self, filled: Floats, sweep: int, scores: list[float] | None = None
    ) -> tuple[Floats, Forests]:
        """Predicts every incomplete column; appends scores of the first two where asked."""
        filled, forests = filled.copy(), {}
        for j in self._ordered(self._lost):
            if scores is not None and len(scores) < COLUMNS_SCORED:
                scores.append(self._score(filled, j, sweep))
            forests[j] = self._grow(filled, j, sweep)
            self._predict(filled, self._lost, j, forests[j])
        return filled, forests

    def _ordered(self, lost: np.ndarray) -> list[int]:
        """Returns the incomplete columns, in the order of the preset."""
        holes = lost.sum(axis=0)
        columns = np.flatnonzero(holes)
        if self.settings.order == "fewest_holes":
            columns = columns[np.argsort(holes[columns], kind="stable")]
        return columns.tolist()

    def _grow(self, filled: Floats, j: int, sweep: int) -> RandomForestRegressor:
        shown = ~self._lost[:, j]
        return self._forest(j, sweep).fit(others(filled, j)[shown], filled[shown, j])

    def _predict(
        self, filled: Floats, lost: np.ndarray, j: int, forest: RandomForestRegressor
    ) -> None:
        rows = lost[:, j]
        filled[rows, j] = forest.predict(others(filled, j)[rows])

    def _score(self, filled: Floats, j: int, sweep: int) -> float:
        """Returns the best R² of a column so far, by two folds of at most 5,000 rows."""
        rows = np.flatnonzero(~self._lost[:, j])
        if len(rows) < 4:
            return 0.0
        if len(rows) > ROWS_SCORED:
            rows = np.random.default_rng(self._number("score", sweep, j)).choice(
                rows, ROWS_SCORED, replace=False
            )
        folds = KFold(2, shuffle=True, random_state=self._seed)
        features, target = others(filled, j)[rows], filled[rows, j]
        score = cross_val_score(self._forest(j, sweep), features, target, cv=folds, scoring="r2")
        self._best[j] = max(self._best.get(j, -np.inf), float(score.mean()))
        return self._best[j]

    def _forest(self, j: int, sweep: int) -> RandomForestRegressor:
        seed = self._number("forest", sweep, j) if self.settings.fresh else self._seed
        return RandomForestRegressor(
            self.settings.trees,
            max_depth=self.settings.depth,
            max_features="sqrt",
            min_samples_split=self.settings.smallest_split,
            random_state=seed,
        )

    def _number(self, purpose: str, sweep: int, j: int) -> int:
        generator = derive_generator(self._seed, "miss_forest", purpose, sweep, j)
        return generator.initial_seed() % 2**32
