"""The suite `real`: its answers are those of the files, and its rivals what they are called."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from misscnf_study.commands import choose_trials, print_table, run_trials
from misscnf_study.real import REAL
from misscnf_study.real.methods import METHODS, Numbers, complete_cases, mice
from misscnf_study.real.question import Question, hide
from misscnf_study.real.tables import EARNINGS, QUESTIONS

from misscnf import CausalGraph, InputError


def loaded(name):
    try:
        return QUESTIONS[name].load(0)
    except InputError as error:
        pytest.skip(str(error))


def plain_difference(df, question):
    said = df[question.outcome]
    y = said if pd.api.types.is_numeric_dtype(said) else (said == said.max()).astype(float)
    arms = [y[df[question.treatment] == arm].mean() for arm in (question.do, question.versus)]
    return arms[0] - arms[1]


@pytest.mark.parametrize(
    ("name", "within"),
    [
        *((f"star_{grade}", 0.006) for grade in "k123"),
        ("thornton", 0.0001),
        ("indomethacin", 1e-9),
        ("nsw", 0.01),
    ],
)
def test_the_answer_of_a_trial_is_the_difference_in_its_file(name, within):
    df, answer = loaded(name)
    assert plain_difference(df, QUESTIONS[name]) == pytest.approx(answer, abs=within)


def test_the_answer_is_that_of_the_experiment_where_its_controls_are_replaced():
    assert loaded("lalonde")[1] == loaded("nsw_cps")[1] == EARNINGS


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_fits_its_table(name):
    df, answer = loaded(name)
    question = QUESTIONS[name]
    assert np.isfinite(answer)
    assert set(df[question.treatment].dropna()) >= {question.do, question.versus}
    graph = CausalGraph.read(*question.drawn(df))
    treatment, outcome = graph.index(question.treatment), graph.index(question.outcome)
    assert outcome in graph.descendants([treatment])
    numbers = Numbers.of(df, question)
    assert set(numbers.frame["t"]) == {0.0, 1.0}


@pytest.fixture(scope="module")
def simulated():
    rng = np.random.default_rng(0)
    x, sex = rng.normal(size=2000), rng.choice(["f", "m"], 2000)
    t = (rng.random(2000) < 1 / (1 + np.exp(-x))) * 1
    y = 2.0 * t + x + (sex == "m") + rng.normal(size=2000)
    df = pd.DataFrame({"x": x, "sex": sex, "t": t, "y": y})
    return Question(lambda seed: (df, 2.0), "t", "y"), df


def test_complete_cases_are_least_squares_with_robust_errors(simulated):
    question, df = simulated
    found = complete_cases(df, question, 0)
    design = sm.add_constant(
        pd.DataFrame({"t": df["t"], "x": df["x"], "m": (df["sex"] == "m") * 1.0})
    )
    oracle = sm.OLS(df["y"], design).fit(cov_type="HC1", use_t=True)
    assert found.estimate == pytest.approx(oracle.params["t"], abs=1e-9)
    assert [found.lower, found.upper] == pytest.approx(oracle.conf_int().loc["t"].tolist())


def test_mice_undoes_what_loss_given_the_outcome_does_to_complete_cases(simulated):
    # x is lost where y is high: complete cases are biased by far more than the 0.2 that is
    # four standard errors of the pooled answer.
    question, df = simulated
    rng = np.random.default_rng(1)
    holed = df.assign(x=df["x"].mask(rng.random(2000) < 1 / (1 + np.exp(2 - 2 * df["y"]))))
    assert abs(complete_cases(holed, question, 0).estimate - 2.0) > 0.3
    assert abs(mice(holed, question, 0).estimate - 2.0) < 0.2


def test_hidden_cells_have_the_rate_that_was_asked_for(simulated):
    # Standard error of the share: 0.01.
    df = hide(simulated[1], {"y": 0.3}, ["x", "t"], seed=3)
    assert abs(df["y"].isna().mean() - 0.3) < 0.04
    assert df.drop(columns="y").notna().all(axis=None)


def test_a_trial_is_run_kept_and_printed(tmp_path):
    trials = choose_trials("real", scm=["nhefs"], method=["complete_cases"])
    assert [trial.id for trial in trials] == ["real-nhefs-own-none-complete_cases-auto-0"]
    assert run_trials(trials, tmp_path, quiet=True) == 0
    assert run_trials(choose_trials(trials[0].id), tmp_path, quiet=True) == 0  # nothing left
    text = print_table("real", "kl", tmp_path, "md", {})
    assert "| nhefs | 3.5 | 3.38 (2.45 to 4.31) |" in text
    assert "1 of 1" in text


def test_methods_are_those_of_the_suite():
    assert REAL.methods == tuple(METHODS)
    with pytest.raises(InputError, match="has no knn"):
        choose_trials("real", method=["knn"])
