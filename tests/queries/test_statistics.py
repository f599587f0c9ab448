"""Statistics of an outcome against numpy and scipy."""

import numpy as np
import pytest
from scipy import stats

from misscnf.queries.statistics import read_statistic

VALUES = np.random.default_rng(0).lognormal(size=1001)


def test_statistics_are_those_of_numpy_and_scipy():
    assert read_statistic("mean").of(VALUES) == pytest.approx(VALUES.mean())
    assert read_statistic("median").of(VALUES) == pytest.approx(np.median(VALUES))
    hazen = np.quantile(VALUES, 0.9, method="hazen")
    assert read_statistic(0.9).of(VALUES) == pytest.approx(hazen)
    trimmed = stats.trim_mean(VALUES[:1000], 0.1)
    assert read_statistic("trimmed").of(VALUES[:1000]) == pytest.approx(trimmed)


@pytest.mark.parametrize("asked", ["mean", "median", "trimmed", 0.2])
def test_weights_count_like_repeated_values(asked):
    weights = np.random.default_rng(1).integers(0, 4, size=len(VALUES)).astype(float)
    found = read_statistic(asked).of(VALUES, weights)
    repeated = read_statistic(asked).of(np.repeat(VALUES, weights.astype(int)))
    assert found == pytest.approx(repeated, rel=2e-3)
