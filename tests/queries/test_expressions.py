"""The language of rules: what it says, and what it refuses without harm or haste."""

import math

import numpy as np
import pandas as pd
import pytest

from misscnf import InputError
from misscnf.queries.expressions import Expression

CELLS = {
    "dose": pd.Series([1.0, 2.0, 3.0]),
    "age": pd.Series([50, 60, 70], dtype="Int64"),
    "stage": pd.Series(["I", "II", "III"], dtype="category"),
    "well": pd.Series([True, False, True], dtype="boolean"),
    "blood pressure": pd.Series([1, 0, 1], dtype=object),
    "x.1": pd.Series([4.0, 5.0, 6.0]),
}

SAID = {
    "min(dose, 2)": [1, 2, 2],
    "max(dose, 2, age - 58)": [2, 2, 12],
    "dose + 1": [2, 3, 4],
    "-dose ** 2 + age // 20 % 2": [-1, -3, -8],
    "(dose + age) / 2": [25.5, 31, 36.5],
    "age > 60": [False, False, True],
    "50 < age <= 60": [False, True, False],
    "age >= 60 and not well or dose == 1": [True, True, False],
    "stage == 'III'": [False, False, True],
    "stage != 'III' and well": [True, False, False],
    "stage in ('I', \"III\")": [True, False, True],
    "stage not in ['I']": [False, True, True],
    "age in (50, 70)": [True, False, True],
    "'high' if age > 60 else stage": ["I", "II", "high"],
    "where(well, dose, 0)": [1, 0, 3],
    "`blood pressure` * `x.1`": [4, 0, 6],
    "clip(dose, 1.5, 2.5)": [1.5, 2, 2.5],
    "round(dose / 3, 2) + floor(1.5) + ceil(0.2)": [2.33, 2.67, 3],
    "abs(-dose) + exp(0) + log(1) + sqrt(4)": [4, 5, 6],
    "well + 1": [2, 1, 2],
    "1 if dose > 2 else age": [50, 60, 1],
    "'a`b'": "a`b",
    "age > 50 & stage == 'III' | ~well": [False, True, True],
    "dose.between(1.5, 2.5) or age.isna()": [False, True, False],
    "isna(dose) or notna(stage)": [True, True, True],
    "'a|b' != stage": [True, True, True],
    "True": True,
    "10 ** 10 ** 10": math.inf,
}


@pytest.mark.parametrize("text", SAID)
def test_what_is_said(text):
    found = Expression.parse(text).evaluate(CELLS)
    wanted = SAID[text]
    if isinstance(wanted, list):
        assert np.shape(found) == (3,)
        found = np.asarray(found).tolist()
        wanted = wanted if isinstance(wanted[-1], str) else pytest.approx(wanted)
    assert found == wanted


REFUSED = {
    "dose.real": "has 'dose.real', which an expression cannot have",
    "dose[0]": "has 'dose\\[0\\]'",
    "(lambda: 1)()": "cannot have",
    "[x for x in dose]": "cannot have",
    "{1: 2}": "cannot have",
    "f'{dose}'": "cannot have",
    "1j": "cannot have",
    "None": "cannot have",
    "dose ^ age": "another operator",
    "(dose := 1)": "cannot have",
    "min(dose, *age)": "cannot have",
    "min(dose, key=age)": "cannot have",
    "().__class__": "cannot have",
    "__import__('os')": "calls '__import__', which is not there; the functions are min, max",
    "mni(dose, 2)": "did you mean min",
    "min(dose)": "min does not take 1 arguments",
    "choose('a', 1, 'b')": "choose does not take 3 arguments",
    "dose + normal(0, 1)": "is a draw, and must be the whole expression",
    "stage in dose": "after `in`, list values",
    "dose dose": "cannot be read as an expression .invalid syntax",
    "dose = 1": "cannot be read as an expression",
    "": "cannot be read as an expression",
    "dose; age": "cannot be read as an expression",
    "(" * 400 + "1" + ")" * 400: "cannot be read as an expression",
    "-" * 1900 + "1": "nested too deeply|cannot be read",
    "not " * 400 + "well": "nested too deeply|cannot be read",
    "+".join(["dose"] * 300): "nested too deeply",
    "1" * 3000: "2000 characters at most",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text):
    with pytest.raises(InputError, match=REFUSED[text]) as caught:
        Expression.parse(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "text", ["stage + 1", "'a' * 3", "stage > 3", "-stage", "9" * 400, "('I', 'II')", "exp(stage)"]
)
def test_what_cannot_be_worked_out(text):
    with pytest.raises(InputError, match="cannot be worked out") as caught:
        Expression.parse(text).evaluate(CELLS)
    assert "\n" not in str(caught.value)


def test_columns_that_are_read():
    rule = Expression.parse("min(`blood pressure`, dose) if log(age) > 2 else dose")
    assert set(rule.columns) == {"blood pressure", "dose", "age"}
    assert not rule.draws
    assert Expression.parse("normal(dose, 1)").draws
    assert Expression.parse("dose").bare
    assert not Expression.parse("dose + 1").bare


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("bp.sys > 120 and dose < 2", ("bp.sys", "dose")),
        ("bp.sys.between(1, 2)", ("bp.sys",)),
        ("blood pressure + 1", ("blood pressure",)),
        ("class == 'bp.sys' or `blood pressure` > bp", ("class", "blood pressure", "bp")),
    ],
)
def test_names_with_dots_and_spaces_need_no_backticks_where_they_are_known(text, names):
    known = ["bp", "bp.sys", "blood pressure", "class", "dose", "in"]
    assert Expression.parse(text, known).columns == names
