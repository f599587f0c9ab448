"""Mean imputation: every hole gets the mean of its column (paper, "Mean imputation").

It keeps each mean and loses spread and dependence: the density of a completed column is narrower
than the truth's and has an atom.
"""

from __future__ import annotations

from typing import final

from sklearn.impute import SimpleImputer

from misscnf_study.rivals.contract import Floats, Imputer

__all__ = ["Mean"]


@final
class Mean(Imputer):
    """Fills with the mean of the observed cells."""

    def _learn(self, values: Floats, seed: int) -> None:
        self._imputer = SimpleImputer(strategy="mean").fit(values)

    def _fill(self, values: Floats) -> Floats:
        return self._imputer.transform(values)
