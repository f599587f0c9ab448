r"""MICE: each column is drawn from a Bayesian linear regression on the others, round by round.

    x_ij ~ N( x_i,-j · β_j, 1/α_j + x_i,-j' Σ_j x_i,-j )     for each hole (i, j), 100 rounds

This is scikit-learn's IterativeImputer with the settings of the paper (Appendix "Imputation
baselines"): means to begin with, columns by their share of holes, and one draw, not an average of
several. It is called as the paper's library calls it, `fit` and then `transform`, which draws
anew along the regressions of `fit`; the answer is the same to the bit.
"""

from __future__ import annotations

from typing import final

from sklearn.linear_model import BayesianRidge

from misscnf import InputError
from misscnf_study.rivals.contract import Floats, Imputer

try:
    from sklearn.impute import IterativeImputer
except ImportError:  # scikit-learn up to 1.9 wants it enabled first
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

__all__ = ["Mice"]


@final
class Mice(Imputer):
    """Draws from chained linear regressions.

    All regressions are kept for new rows: 8 · rounds · d³ bytes, 50 kB at d = 4 and 0.2 GB at
    d = 64. New rows are drawn from where `fit` left the random state, whatever was completed
    before; so two tables share their random numbers, and only these.

    Arguments:
        rounds: Passes over the columns; the paper's 100 are more than enough.
    """

    def __init__(self, rounds: int = 100) -> None:
        if rounds < 1:
            raise InputError(f"MICE needs at least one round; got {rounds}.")
        self.rounds = rounds

    def _learn(self, values: Floats, seed: int) -> None:
        self._imputer = IterativeImputer(
            BayesianRidge(),
            sample_posterior=True,
            max_iter=self.rounds,
            imputation_order="ascending",
            initial_strategy="mean",
            random_state=seed,
        ).fit(values)
        self._state = self._imputer.random_state_.get_state()

    def _fill(self, values: Floats) -> Floats:
        self._imputer.random_state_.set_state(self._state)
        return self._imputer.transform(values)
