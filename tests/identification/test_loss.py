"""How values are lost: Little's test, holes explained by columns, structural holes, the graph."""

import numpy as np
import pandas as pd
import pytest
import torch
from simulated import mcar_normal_table, mixed_table

from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.graph import CausalGraph
from misscnf.identification import check
from misscnf.identification.families import find_patterns
from misscnf.identification.little import PatternMoments, em_moments, little_test
from misscnf.identification.loss import fit_logistic, holm, likelihood_ratio_test
from misscnf.model import Structure

HOLE = float("nan")


# Little's test


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "columns", "tables", "most"), [(500, 4, 200, 20), (150, 6, 80, 12)]
)
def test_little_rejects_a_true_mcar_as_often_as_it_says(rows, columns, tables, most):
    # 40 % holes and correlations of 0.9, in the second with about three rows a pattern. At a
    # true 5 %, more rejections than these have a chance below 2 in 1000, and none at all one
    # below 2 in 100. The benchmark makes 1000 tables.
    tests = [little_test(mcar_normal_table(s, rows, columns, 0.9, 0.4)) for s in range(tables)]
    assert 1 <= sum(test.p_value < 0.05 for test in tests) <= most


def test_little_finds_loss_that_hangs_on_another_column():
    values = mcar_normal_table(0, 500, 3, 0.5, 0.0)
    values[values[:, 0] > 0.8, 1] = HOLE
    assert little_test(values).p_value < 1e-6


def test_little_says_nothing_where_it_cannot():
    assert little_test(np.full((5, 2), HOLE)) is None
    assert little_test(np.random.default_rng(0).normal(size=(50, 3))) is None


def test_little_is_made_on_the_most_frequent_patterns_of_a_wide_table():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3000, 40))
    shown = rng.random((200, 40)) < 0.8
    values[~shown[rng.integers(0, 200, 3000)]] = HOLE
    test = little_test(values)
    assert test.patterns == 62
    assert test.row_share < 0.5
    assert test.p_value > 0.001  # a true MCAR: once in 1000 seeds


def test_em_finds_the_moments_that_maximise_the_likelihood():
    # A saturated linear model has the same maximum, found by another way (L-BFGS).
    values = mcar_normal_table(3, 400, 3, 0.7, 0.3)
    values = values[~np.isnan(values).all(axis=1)]
    patterns = find_patterns(~np.isnan(values))
    moments = PatternMoments.of(values, patterns.observed, patterns.of_row)
    mean, covariance, converged = em_moments(moments)
    assert converged
    graph = CausalGraph.read("a -> b; a -> c; b -> c")
    filled = torch.from_numpy(np.nan_to_num(values))
    rows = MemoryRows(filled, torch.from_numpy(~np.isnan(values)))
    fit = fit_linear(Structure.of(graph, [CONTINUOUS] * 3), rows)
    first, second, _ = fit.model.requires_grad_(requires_grad=False).linear_forms()
    assert mean[0] == pytest.approx(float(first.intercept), abs=1e-4)
    assert covariance[0, 0] == pytest.approx(float(first.scale) ** 2, abs=1e-4)
    assert covariance[0, 1] / covariance[0, 0] == pytest.approx(float(second.weights), abs=1e-4)


# Logistic regression


def test_logistic_regression_finds_its_weights():
    # Standard errors are about 0.02.
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20000, 2))
    happens = rng.random(20000) < 1.0 / (1.0 + np.exp(-(0.5 + x @ [1.0, -0.7])))
    fit = fit_logistic(x, happens)
    assert fit.intercept == pytest.approx(0.5, abs=0.08)
    np.testing.assert_allclose(fit.weights, [1.0, -0.7], atol=0.08)


def test_logistic_regression_survives_separation():
    x = np.linspace(-1.0, 1.0, 200)[:, None]
    fit = fit_logistic(x, x[:, 0] > 0.0)
    assert np.isfinite(fit.weights).all()
    assert fit.weights[0] > 10.0


@pytest.mark.slow
def test_the_likelihood_ratio_test_keeps_its_level():
    # 400 tests at 5 %: a count outside 6 to 36 has a chance below 1 in 1000.
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(400):
        x = rng.normal(size=(150, 2))
        happens = rng.random(150) < 1.0 / (1.0 + np.exp(-x[:, 0]))
        full, reduced = fit_logistic(x, happens), fit_logistic(x[:, :1], happens)
        rejected += likelihood_ratio_test(full, reduced) < 0.05
    assert 6 <= rejected <= 36


def test_holm_by_hand():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03]), [0.03, 0.06, 0.06])


# Holes explained


def test_holes_are_explained_by_the_column_they_hang_on():
    rng = np.random.default_rng(0)
    a = rng.normal(size=3000)
    table = pd.DataFrame({"a": a, "b": a + rng.normal(size=3000), "c": rng.normal(size=3000)})
    table.loc[rng.random(3000) < 1.0 / (1.0 + np.exp(-1.5 * a)), "c"] = HOLE
    report = check(table, "a -> b; b -> c")
    (line,) = report.loss
    assert line.column == "c"
    assert [by.column for by in line.by if by.kept] == ["a"]
    assert line.by[0].odds == pytest.approx(np.exp(1.5), rel=0.2)
    assert "lost more often where a is high" in report.summary()
    assert "not lost completely at random" in report.summary()


@pytest.mark.slow
def test_holes_at_random_are_rarely_explained():
    # 40 tables, Holm at 5 % each: more than 8 with an explanation have a chance below 1 in 1000.
    explained = 0
    for seed in range(40):
        values = mcar_normal_table(seed, 300, 4, 0.8, 0.3)
        report = check(pd.DataFrame(values, columns=list("abcd")), "a -> b; b -> c; c -> d")
        explained += any(line.by for line in report.loss)
    assert explained <= 8


# Structural holes


def test_holes_where_another_column_has_a_level_are_asked_about():
    rng = np.random.default_rng(0)
    sex = rng.choice(["man", "woman"], 200)
    table = pd.DataFrame({"sex": sex, "pregnancies": rng.poisson(2.0, 200).astype(float)})
    table.loc[table["sex"] == "man", "pregnancies"] = HOLE
    table.loc[:3, "pregnancies"] = HOLE
    report = check(table, "sex -> pregnancies")
    (hole,) = report.structural_holes
    assert hole.column == "pregnancies"
    assert hole.where == "sex is man"
    assert hole.question.endswith("should not be imputed.")
    assert "Please ask" in report.summary()


def test_holes_at_random_are_not_asked_about():
    values = mcar_normal_table(0, 2000, 4, 0.8, 0.3)
    report = check(pd.DataFrame(values, columns=list("abcd")), "a -> b; b -> c; c -> d")
    assert report.structural_holes == ()


# The graph against the rows


def test_an_edge_that_is_left_out_is_told():
    rng = np.random.default_rng(0)
    a = rng.normal(size=2000)
    b = a + rng.normal(size=2000)
    table = pd.DataFrame({"a": a, "b": b, "c": b + 0.8 * a + rng.normal(size=2000)})
    table = table.mask(rng.random(table.shape) < 0.2)
    report = check(table, "a -> b; b -> c")
    (line,) = report.contradictions
    assert (line.node, line.other, line.given) == ("c", "a", ("b",))
    assert report.ok  # information, no alarm
    assert check(table, "a -> b; b -> c; a -> c").contradictions == ()


@pytest.mark.slow
def test_the_true_graph_is_not_contradicted():
    # 30 mixed, bent tables with MAR holes, Holm at 1 % each: more than 3 have a chance below 1 in
    # 3000. The benchmark makes 100.
    tables = [mixed_table(seed) for seed in range(30)]
    told = [check(table, graph, effect=effect).denied for graph, effect, table, _ in tables]
    assert sum(map(bool, told)) <= 3


@pytest.mark.slow
def test_an_arrow_that_an_effect_leans_on_is_missed_if_it_is_left_out():
    # 10 tables; at a power of 80 %, fewer than 4 have a chance below 1 in 1000.
    tables = [mixed_table(seed, wrong=True) for seed in range(10)]
    reports = [check(table, graph, effect=effect) for graph, effect, table, _ in tables]
    found = [
        any({line.node, line.other} == set(dropped) for line in report.denied)
        for report, (*_, dropped) in zip(reports, tables, strict=True)
    ]
    assert sum(found) >= 4


def confounded(rows=1500, seed=0):
    """Two confounders that go together, a treatment and an outcome; nothing is hidden."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b = 0.8 * a + 0.6 * rng.normal(size=rows)
    t = (a + b + rng.normal(size=rows) > 0) * 1.0
    y = t * (1 + a * b) + a + b + rng.normal(size=rows)
    return pd.DataFrame({"a": a, "b": b, "t": t, "y": y, "z": a + rng.normal(size=rows)})


APART = "a -> t; b -> t; a -> y; b -> y; t -> y"


def test_an_effect_leans_on_the_law_of_its_covariates():
    table = confounded()
    report = check(table, APART, effect=("t", "y"))
    (line,) = report.denied
    assert (line.node, line.other) == ("b", "a")
    assert line.correlation == pytest.approx(0.8, abs=0.05)
    assert report.family_positivity
    assert not report.ok
    assert "the answer leans on b ⟂ a" in report.summary()
    assert report.to_dict()["denied"][0]["node"] == "b"
    assert check(table, APART + "; a -> b", effect=("t", "y")).ok
    assert check(table, "{a, b} -> t; {a, b}, t -> y", effect=("t", "y")).ok
    # Over rows that show both, no law of them is needed; where one has holes, it is.
    assert report.denied_over(rows=True) == ()
    holed = table.assign(a=table["a"].mask(np.arange(len(table)) % 5 == 0))
    assert len(check(holed, APART, effect=("t", "y")).denied_over(rows=True)) == 1


@pytest.mark.parametrize(
    ("graph", "effect", "leans"),
    [
        ("a -> t; b -> t; b -> y; t -> y", ("t", "y"), True),  # a cause of t, and of y
        ("a -> t; b -> t; a -> y; b -> y; t -> y; z", ("t", "y"), True),  # a and b, whatever z
        ("a -> b; a -> t; b -> t; a -> y; b -> y; t -> y; z", ("t", "y"), False),  # z alone
        ("a -> b; a -> y; b -> y; t -> y; z", ("t", "y"), False),  # t is set, and nothing hidden
    ],
)
def test_what_an_effect_leans_on(graph, effect, leans):
    report = check(confounded(), graph, effect=effect)
    assert report.contradictions
    assert bool(report.denied) == leans


def test_loss_that_hangs_on_a_common_effect_does_not_accuse_its_causes():
    # Two independent causes, one lost where the outcome is high: rows that show it are chosen by
    # a common effect, and in them the two go together. Five tables at 1 %.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 3000))
        y = a + b + 0.5 * rng.normal(size=3000)
        table = pd.DataFrame({"a": a, "b": b, "y": y})
        table.loc[rng.random(3000) < 1.0 / (1.0 + np.exp(-2.0 * y)), "a"] = HOLE
        shown = table.dropna()
        assert abs(shown["a"].corr(shown["b"])) > 0.15
        assert check(table, "a -> y; b -> y", effect=("a", "y")).contradictions == ()


def test_dependences_without_a_correlation_are_seen():
    rng = np.random.default_rng(0)
    a = rng.normal(size=1000)
    table = pd.DataFrame({"a": a, "b": a**2 + rng.normal(size=1000), "y": rng.normal(size=1000)})
    table["y"] += table["a"] + table["b"]
    assert check(table, "a -> y; b -> y", effect=("a", "y")).denied
    levels = np.where(np.abs(a) > 1, "far", np.where(a > 0, "right", "left"))
    assert check(table.assign(b=levels), "a -> y; b -> y", effect=("a", "y")).denied
