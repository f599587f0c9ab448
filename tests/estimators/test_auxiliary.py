"""Auxiliary columns: what they tell of lost values counts, and nothing is claimed of them.

The world: t is a coin, y = t + e, and a = 0.8 e + 0.6 v, all normal. So the effect of t on y is 1.
y is lost the more often the higher a is among the treated, and by a coin among the others: at
random given a, and not without it.
"""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import expit
from sklearn.base import clone

from misscnf import CausalGraph, InputError, MissCNF, check
from misscnf.report import write_report

ARMS = {"do": {"t": 1}, "versus": {"t": 0}}


def world(logit):
    rng = np.random.default_rng(24)
    t, e, v, loss = rng.integers(0, 2, 2000), *rng.normal(size=(2, 2000)), rng.uniform(size=2000)
    a = 0.8 * e + 0.6 * v
    df = pd.DataFrame({"t": t, "y": t + e, "a": a, "noise": rng.normal(size=2000)})
    df.loc[loss < expit(logit(t, a)), "y"] = np.nan
    return df


@pytest.fixture(scope="module")
def table():
    return world(lambda t, a: 3.0 * t * a)


def fitted(df, auxiliary=None):
    return MissCNF("t -> y", "linear", auxiliary=auxiliary, progress=False).fit(df, validation=0.0)


def factored(df):
    """Anderson (1957): where y alone is lost, regressions give the maximum of the likelihood."""
    shown = df.dropna()
    of_y = sm.OLS(shown["y"], sm.add_constant(shown[["t", "a"]])).fit().params
    of_a = sm.OLS(df["a"], sm.add_constant(df[["t"]])).fit().params
    return of_y["t"] + of_y["a"] * of_a["t"]


@pytest.fixture(scope="module")
def model(table):
    return fitted(table, ["a"])


def test_a_column_that_explains_the_loss_takes_the_bias_away(table, model):
    """Four standard errors: a right fit fails with one seed in 16,000, and the seed is fixed."""
    found = model.effect("y", **ARMS, interval=0.95)
    error = (found.interval[1] - found.interval[0]) / (2 * 1.96)
    assert abs(found.estimate - 1.0) < 4.0 * error
    assert abs(fitted(table).effect("y", **ARMS).estimate - 1.0) > 4.0 * error


def test_the_effect_is_that_of_the_factored_likelihood(table, model):
    assert model.effect("y", **ARMS).estimate == pytest.approx(factored(table), abs=2e-3)


def test_a_loss_cannot_hide_what_an_auxiliary_column_depends_on():
    """Lost by a one way among the treated, the other way among the rest: as if t did nothing."""
    df = world(lambda t, a: 2.0 * (2 * t - 1) * a)
    assert abs(fitted(df).effect("y", **ARMS).estimate) < 0.1
    model = fitted(df, ["a"])
    assert model.graph_.parents_of("a") == ("t", "y")
    assert model.effect("y", **ARMS).estimate == pytest.approx(factored(df), abs=2e-3)


def test_a_column_of_noise_changes_nothing(table):
    plain, with_noise = (fitted(table, some).effect("y", **ARMS) for some in (None, ["noise"]))
    error = np.hypot(plain.standard_error, with_noise.standard_error)
    assert abs(plain.estimate - with_noise.estimate) <= 4.0 * error + 1e-6


def test_several_auxiliary_columns_are_pruned_and_filled(table):
    holed = table.assign(b=table["a"] + 0.1 * np.sin(np.arange(2000.0)))
    holed.loc[:199, "b"] = np.nan
    graph = fitted(holed, ["b", "noise", "a"]).graph_
    assert graph.parents_of("noise") == ()
    assert "a" in graph.parents_of("b")  # the most complete one comes first
    assert graph.without_auxiliary() == CausalGraph.read("t -> y")
    full = fitted(holed, ["b"]).impute(holed, draws=1)
    assert list(full.columns) == list(holed.columns)
    assert full.notna().all(axis=None)
    drawn = full["b"].to_numpy()[:200]
    assert np.corrcoef(drawn, full["y"].to_numpy()[:200])[0, 1] > 0.5


def test_a_saved_model_and_a_clone_know_their_auxiliary_columns(table, model, tmp_path):
    model.save(tmp_path)
    loaded = MissCNF.load(tmp_path)
    assert loaded.graph_ == model.graph_
    assert loaded.graph_.auxiliary == ("a",)
    assert loaded.effect("y", **ARMS).estimate == model.effect("y", **ARMS).estimate
    again = clone(loaded).fit(table, validation=0.0)
    assert again.graph_ == model.graph_
    assert clone(model).get_params()["auxiliary"] == ["a"]
    assert "auxiliary   a" in str(loaded)
    assert repr(model.graph_) == "CausalGraph(3 nodes: t → y; auxiliary a)"


@pytest.mark.parametrize(
    ("auxiliary", "said"),
    [
        (["zz"], "the table has no auxiliary column 'zz'"),
        (["nois"], "did you mean 'noise'"),
        (["t"], "'t' is given as auxiliary, and is in the graph already"),
        ("a", "auxiliary is a list of columns"),
        (["a", "a"], "'a' appears twice"),
    ],
)
def test_names_that_cannot_be_auxiliary_are_refused(table, auxiliary, said):
    with pytest.raises(InputError, match=said):
        fitted(table, auxiliary)
    with pytest.raises(InputError, match=said):
        check(table, "t -> y", auxiliary=auxiliary)


def test_nothing_is_claimed_of_an_auxiliary_column(table, model):
    refused = [
        lambda: model.effect("y", do={"a": 1.0}, versus={"a": 0.0}),
        lambda: model.effect("a", **ARMS),
        lambda: model.sample(5, do={"a": 0.0}),
        lambda: model.counterfactual(table.head(), do={"a": 0.0}),
        lambda: check(table, "t -> y", ("t", "a"), auxiliary=["a"]),
        lambda: check(table, "t -> y", ("a", "y"), auxiliary=["a"]),
    ]
    for ask in refused:
        with pytest.raises(InputError, match="'a' is an auxiliary column, without a place"):
            ask()
    with pytest.raises(InputError, match="makes a cause of the auxiliary column 'a'"):
        CausalGraph.from_edges([("a", "y")], auxiliary=["a"])
    assert model.effect("a").estimate == pytest.approx(table["a"].mean(), abs=0.05)


def test_an_intervention_leaves_auxiliary_columns_out(table, model):
    assert list(model.sample(5)) == ["t", "y", "a"]
    assert list(model.sample(5, do={"t": 1})) == ["t", "y"]
    rows = table[["t", "y", "a"]].head()
    assert list(model.sample(given=rows, do={"t": 1})) == ["t", "y"]
    assert list(model.counterfactual(rows, do={"t": 1})) == ["t", "y"]
    ends = model.counterfactual(rows, do={"t": 1}, interval=0.9)
    assert list(ends) == ["t", "y", "y_lower", "y_upper"]
    with_a, without = (model.log_prob(some, do={"t": 1}) for some in (rows, rows.assign(a=np.nan)))
    assert np.array_equal(with_a, without)


def test_an_auxiliary_column_may_drive_a_loss(table):
    for graph, loss in (("t -> y", {"y": ["a"]}), ("t -> y; a -> missing(y)", None)):
        model = MissCNF(graph, "linear", loss=loss, auxiliary=["a"], progress=False).fit(table)
        assert model.graph_.parents_of("missing(y)") == ("a",)
        assert model.graph_.auxiliary == ("a",)
    holed = table.assign(a=table["a"].where(table.index > 9))
    model = MissCNF("t -> y", "linear", loss="self", auxiliary=["a"], progress=False).fit(holed)
    assert "missing(a)" not in model.graph_.nodes


def test_check_and_page_offer_what_is_outside_and_are_content_with_it(table, model, tmp_path):
    offered = str(check(table, "t -> y"))
    assert "give them as auxiliary=[…] (--auxiliary), or draw them as nodes" in offered
    report = check(table, "t -> y", auxiliary=["a"])
    assert report.loss_outside == []
    assert "doubtful" not in str(report)
    assert list(report.nodes["node"]) == ["t", "y"]
    assert report.contradictions == ()
    assert "a" not in {*report.consequences["outcome"], *report.consequences["treatment"]}
    without, within = fitted(table), tmp_path / "page.html"
    write_report(without, table, within, effect=("t", "y"))
    assert "fit again with auxiliary=" in within.read_text(encoding="utf-8")
    write_report(model, table, within, effect=("t", "y"))
    page = within.read_text(encoding="utf-8")
    assert "fit again with auxiliary=" not in page
    assert "(2 variables, 1 arrow) was taken as given" in page.replace("\u00a0", " ")
    assert "Auxiliary columns, of which no cause is claimed: a." in page
