"""Values after an option become what the column of the fitted model holds."""

import json
import re

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


@pytest.mark.slow
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


@pytest.mark.slow
def test_the_curve_of_a_category_has_a_line_a_level(model, call, here):
    model.save(here / "levels")
    result = call("effect levels --on time --do weight=60:80:10 --versus weight=70 --draws 50")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 2 + 3 * 3


def test_a_pair_has_two_names():
    assert read_pair(None) is None
    assert read_pair(" t : y ") == ("t", "y")


RULES = {
    "a cap": ("dose=min(dose, 2)", {"dose": "min(dose, 2)"}),
    "a shift": ("dose=dose+1", {"dose": "dose+1"}),
    "a threshold": ("t=age > 60", {"t": "age > 60"}),
    "an equality": ("t=age == 60", {"t": "age == 60"}),
    "a column": ("dose=age", {"dose": "age"}),
    "a draw": ("t=bernoulli(0.3)", {"t": "bernoulli(0.3)"}),
    "a rule of labels": ("sex='f' if age > 50 else sex", {"sex": "'f' if age > 50 else sex"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", RULES)
def test_rules_after_an_option_are_those_of_python(call, here, name):
    word, do = RULES[name]
    fitted = MissCNF.load(here / "model")
    assert call(["sample", "model", "--rows", "20", "--do", word, "--out", "s.csv"]).exit_code == 0
    written = pd.read_csv(here / "s.csv")
    python = fitted.sample(20, do=do)
    np.testing.assert_allclose(written.y, python.y)
    assert written[word.partition("=")[0]].tolist() == pytest.approx(
        python[word.partition("=")[0]].tolist()
    )
    for verb in ("counterfactual", "log-prob"):
        result = call([verb, "model", "data.csv", "--do", word, "--out", f"{verb}.csv"])
        assert result.exit_code == 0, result.stderr
    result = call(["effect", "model", "--on", "y", "--do", word, "--draws", "500"])
    assert f"do({word.partition('=')[0]} = {word.partition('=')[2]})" in result.stdout
    answer = call(["effect", "model", "--on", "y", "--do", word, "--draws", "500", "--json"])
    effect = fitted.effect("y", do, draws=500)
    assert json.loads(answer.stdout)["estimate"] == pytest.approx(effect.estimate)
    assert json.loads(answer.stdout)["do"] == do


def test_a_name_in_backticks_is_the_name(call):
    plain = call(["sample", "model", "--rows", "3", "--do", "dose=2"])
    assert call(["sample", "model", "--rows", "3", "--do", "`dose`=2"]).stdout == plain.stdout


def test_a_rule_beside_a_grid_and_on_the_treated(call, here):
    grid = ["effect", "model", "--on", "y", "--do", "dose=1:2:0.5", "--do", "t=age > 60"]
    assert len(call([*grid, "--draws", "50"]).stdout.splitlines()) == 2 + 3
    treated = ["effect", "model", "--on", "y", "--do", "t=age > 50", "--treated"]
    assert "on those with t = age > 50" in call([*treated, "--draws", "500"]).stdout


REFUSED = {
    "downstream": ("t=y > 3", "--do t=y > 3: the rule for 't' reads 'y', which is downstream"),
    "unknown column": ("t=agee > 60", "--do t=agee > 60: .*no node 'agee'; did you mean 'age'?"),
    "unknown function": ("dose=mni(dose, 2)", "--do dose=mni.*: .*did you mean min"),
    "attribute": ("dose=dose.real", "--do dose=dose.real: .*which an expression cannot have"),
    "import": ("dose=__import__('os')", "--do dose=__import__.*which is not there"),
    "subscript": ("dose=dose[0]", "--do dose=.*which an expression cannot have"),
    "half a rule": ("dose=dose +", "--do dose=dose .: expected a number.*cannot be read"),
    "a wrong level": ("sex=g", "--do sex=g: expected one of the levels 'f', 'm'"),
    "a tower": ("dose=dose + 10**10**10", "missing or infinite"),
    "a level that a rule makes": ("sex='g' if age > 0 else sex", "'g'; expected one of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rules_that_are_none_are_refused_by_their_option(call, name):
    word, words = REFUSED[name]
    result = call(["sample", "model", "--rows", "5", "--do", word])
    assert result.exit_code == 2
    assert re.search(words, result.stderr), result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
