"""Cells of a table as the page tells them."""

import numpy as np
import pytest

from misscnf.studio.tables import drawn_text


@pytest.mark.parametrize(
    ("value", "shown", "told"),
    [
        (6.8, "6.8", "6.8"),  # as the row has it
        (8.362190848, "6.8", "8.362"),
        (1234567.8, None, "1234568"),
        (0.000123456, None, "0.0001235"),
        (0.0, None, "0"),
        (2, None, "2"),
        ("old", "new", "old"),
        (np.nan, None, None),
        (-np.inf, None, "-inf"),
    ],
)
def test_a_drawn_cell_is_told_as_it_stands_or_with_four_digits(value, shown, told):
    assert drawn_text(value, shown) == told


def test_draws_that_differ_by_rounding_are_one():
    draws = 0.1 + 0.2 + np.array([0.0, -1e-16, 3e-15])
    assert len({*draws}) == 3
    assert {drawn_text(value, None) for value in draws} == {"0.3"}
