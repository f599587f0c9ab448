"""Which cells rows show together: counted a batch at a time, the same as all at once."""

import numpy as np
import pytest

from misscnf.data.patterns import PatternCounts, as_keys, from_keys


@pytest.fixture(params=[1, 7, 8, 9, 64, 65, 130])
def observed(request):
    rng = np.random.default_rng(request.param)
    few = rng.random((5, request.param)) < 0.5
    return few[rng.integers(5, size=300)]


def test_keys_stand_for_rows_and_sort_as_they_do(observed):
    keys = np.unique(as_keys(observed))
    rows = from_keys(keys, observed.shape[1])
    np.testing.assert_array_equal(rows, np.unique(observed, axis=0))


def test_batches_count_as_all_rows_at_once(observed):
    found = PatternCounts(observed.shape[1])
    for batch in np.array_split(observed, 4):
        found.add(batch)
    rows, counts = np.unique(observed, axis=0, return_counts=True)
    np.testing.assert_array_equal(found.observed, rows)
    np.testing.assert_array_equal(found.rows, counts)


def test_columns_in_another_order_are_counted_anew(observed):
    found = PatternCounts(observed.shape[1])
    found.add(observed)
    some = list(range(observed.shape[1]))[::-2]
    rows, counts = np.unique(observed[:, some], axis=0, return_counts=True)
    np.testing.assert_array_equal(found.in_order(some).observed, rows)
    np.testing.assert_array_equal(found.in_order(some).rows, counts)
