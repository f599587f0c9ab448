r"""Nearest neighbours: a hole gets the mean of its column over the k nearest rows that show it.

Distances are Euclidean over the cells that two rows both show, scaled up for those they do not
(scikit-learn's KNNImputer). Columns are standardised by their observed cells first, so that units
have no say. Not in the paper.
"""

from __future__ import annotations

from typing import final

import numpy as np
from sklearn import config_context
from sklearn.impute import KNNImputer

from misscnf import InputError
from misscnf_study.rivals.contract import Floats, Imputer

__all__ = ["Knn"]

MEGABYTES = 64
"""Distances are computed in pieces of this size; all of 20,000 rows' would take 3.2 GB."""


@final
class Knn(Imputer):
    """Fills with the mean of the nearest rows.

    Arguments:
        neighbours: How many rows, k.
    """

    def __init__(self, neighbours: int = 5) -> None:
        if neighbours < 1:
            raise InputError(f"nearest neighbours need at least one; got {neighbours}.")
        self.neighbours = neighbours

    def _learn(self, values: Floats, seed: int) -> None:
        spread = np.nanstd(values, axis=0)
        self._centre = np.nanmean(values, axis=0)
        self._spread = np.where(spread > 0.0, spread, 1.0)
        self._imputer = KNNImputer(n_neighbors=self.neighbours)
        self._imputer.fit((values - self._centre) / self._spread)

    def _fill(self, values: Floats) -> Floats:
        with config_context(working_memory=MEGABYTES):
            filled = self._imputer.transform((values - self._centre) / self._spread)
        return self._centre + self._spread * filled
