"""Values after an option become what the column of the fitted model holds."""

import numpy as np
import pandas as pd
import pytest

from misscnf import InputError, MissCNF
from misscnf.cli.arguments import read_arm, read_pair, read_values


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "flag": rng.random(120) < 0.5,
            "time": rng.choice(["1:2:3", "4:5:6", "late"], 120),
            "grade": rng.choice([1, 2, 3], 120),
            "visits": rng.poisson(4.0, 120),
            "weight": rng.normal(70.0, 9.0, 120),
        }
    )
    return MissCNF("flag; time; grade; visits; weight", preset="linear", progress=False).fit(table)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("flag=true", True),
        ("flag=False", False),
        ("flag=1", True),
        ("time=late", "late"),
        ("time=1:2:3", "1:2:3"),  # a level, not a grid
        ("grade=2", 2),
        ("grade=2.0", 2),
        ("visits=7", 7.0),
        ("weight= -1e1 ", -10.0),
    ],
)
def test_a_value_is_what_the_column_holds(model, word, value):
    read = read_arm([word], "--do", model)
    assert read == {word.partition("=")[0]: value}
    assert model.sample(2, do=read).shape == (2, 5)


@pytest.mark.parametrize("word", ["flag=2", "time=Late", "grade=1.5", "visits=1.5", "weight=nan"])
def test_a_value_that_the_column_cannot_hold_is_refused(model, word):
    with pytest.raises(InputError, match=f"^--do {word}: expected "):
        read_arm([word], "--do", model)


def test_a_grid_has_both_ends_and_round_numbers(model):
    single, name, values = read_values(["weight=0:0.3:0.1", "grade=1"], "--do", model)
    assert (single, name, values) == ({"grade": 1}, "weight", [0.0, 0.1, 0.2, 0.3])
    assert read_values(["grade=1:3:1"], "--do", model)[2] == [1, 2, 3]
    assert read_values(["weight=0:1:0.3"], "--do", model)[2] == [0.0, 0.3, 0.6, 0.9]
    with pytest.raises(InputError, match="one column can have a grid"):
        read_values(["weight=0:1:1", "grade=1:2:1"], "--do", model)


def test_the_curve_of_a_category_has_a_line_a_level(model, call, here):
    model.save(here / "levels")
    result = call("effect levels --on time --do weight=60:80:10 --versus weight=70 --draws 50")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2 + 3 * 3


def test_a_pair_has_two_names():
    assert read_pair(None) is None
    assert read_pair(" t : y ") == ("t", "y")
