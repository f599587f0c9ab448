r"""MICE with forests: each hole gets a value that a row in the same leaves shows, round by round.

    x_ij ~ uniform over { x_kj : row k shows x_j and shares a leaf with row i in some tree }

counted once for each tree in which they meet: the method "rf" of R's mice, with its settings (10
trees, leaves of about 5, a third of the columns at each split, 5 rounds, which start from values
drawn from each column). Draws follow any shape of dependence and noise, where MICE's follow lines
and MissForest's predictions have no noise at all. Not in the paper.

References:
    Doove, van Buuren and Dusseldorp, Recursive partitioning for missing data imputation in the
    presence of interaction effects, 2014.
"""

from __future__ import annotations

from typing import final

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from misscnf import InputError
from misscnf.draws import derive_generator
from misscnf_study.rivals.contract import Floats, Imputer, others

__all__ = ["MiceForest", "DonorForest"]

SMALLEST_SPLIT = 6
"""A node of 5 rows or fewer is a leaf, as in R's randomForest."""


class DonorForest:
    """A forest that answers with a value seen in training.

    Arguments:
        features: (N, p) of rows that show the target.
        target: (N,)
        trees: How many trees.
        seed: The forest's.
    """

    def __init__(self, features: Floats, target: Floats, trees: int, seed: int) -> None:
        self._forest = RandomForestRegressor(
            trees, max_features=1.0 / 3.0, min_samples_split=SMALLEST_SPLIT, random_state=seed
        ).fit(features, target)
        leaves = self._forest.apply(features)
        size = int(leaves.max()) + 1
        self._counts = np.stack([np.bincount(leaf, minlength=size) for leaf in leaves.T])
        self._starts = np.cumsum(self._counts, axis=1) - self._counts
        # Tree by tree, all targets with those of a leaf side by side.
        self._donors = np.stack([target[np.argsort(leaf, kind="stable")] for leaf in leaves.T])

    def draw(self, features: Floats, generator: np.random.Generator) -> Floats:
        """Draws a donor's value for each row, (N,)."""
        leaves = self._forest.apply(features)
        tree = np.arange(leaves.shape[1])
        upto = np.cumsum(self._counts[tree, leaves], axis=1)
        pick = (generator.random(len(leaves)) * upto[:, -1]).astype(np.int64)
        chosen = (upto <= pick[:, None]).sum(axis=1)
        row = np.arange(len(leaves))
        leaf = leaves[row, chosen]
        # What is left of the pick counts from the end of the chosen tree's leaf.
        last = self._starts[chosen, leaf] + self._counts[chosen, leaf]
        return self._donors[chosen, last + pick - upto[row, chosen]]


@final
class MiceForest(Imputer):
    """Draws from the leaves of chained forests.

    Only the forests of the last round are kept; any table, the one learned from too, is drawn
    from them in as many rounds.

    Arguments:
        rounds: Passes over the columns.
        trees: Trees in each forest.
    """

    def __init__(self, rounds: int = 5, trees: int = 10) -> None:
        if rounds < 1 or trees < 1:
            raise InputError(f"rounds and trees are at least 1; got {rounds} and {trees}.")
        self.rounds = rounds
        self.trees = trees

    def _learn(self, values: Floats, seed: int) -> None:
        self._seed = seed
        self._known = [column[~np.isnan(column)] for column in values.T]
        self._forests: dict[int, DonorForest] = {}
        lost = np.isnan(values)
        generator = self._generator("learn")
        self._learned = self._start(values, generator)
        self._shown = ~lost
        for sweep in range(self.rounds):
            for j in np.flatnonzero(lost.any(axis=0)).tolist():
                self._forests[j] = self._grow(j, sweep)
                self._redraw(self._learned, lost, j, generator)

    def _fill(self, values: Floats) -> Floats:
        lost = np.isnan(values)
        generator = self._generator("complete")
        filled = self._start(values, generator)
        columns = np.flatnonzero(lost.any(axis=0)).tolist()
        for j in columns:
            if j not in self._forests:  # it had no holes to learn to fill
                self._forests[j] = self._grow(j, self.rounds)
        for _ in range(self.rounds):
            for j in columns:
                self._redraw(filled, lost, j, generator)
        return filled

    def _grow(self, j: int, sweep: int) -> DonorForest:
        shown = self._shown[:, j]
        seed = derive_generator(self._seed, "mice_forest", sweep, j).initial_seed() % 2**32
        return DonorForest(
            others(self._learned, j)[shown], self._learned[shown, j], self.trees, seed
        )

    def _redraw(
        self, filled: Floats, lost: NDArray[np.bool_], j: int, generator: np.random.Generator
    ) -> None:
        rows = lost[:, j]
        filled[rows, j] = self._forests[j].draw(others(filled, j)[rows], generator)

    def _start(self, values: Floats, generator: np.random.Generator) -> Floats:
        """Fills holes with values drawn from their columns."""
        filled = values.copy()
        for j, known in enumerate(self._known):
            lost = np.isnan(values[:, j])
            filled[lost, j] = generator.choice(known, int(lost.sum()))
        return filled

    def _generator(self, purpose: str) -> np.random.Generator:
        return np.random.default_rng(
            derive_generator(self._seed, "mice_forest", purpose).initial_seed()
        )
