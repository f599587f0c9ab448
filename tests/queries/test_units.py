"""Averages over rows: weighted least squares on the same weights is the oracle."""

import numpy as np
import pandas as pd
import pytest
import torch

from misscnf import MissCNF
from misscnf.errors import InputError
from misscnf.fitting.replicates import bootstrap_weights
from misscnf.queries.influence import Spread
from misscnf.queries.units import Units


def table(n=500):
    rng = np.random.default_rng(0)
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    t = a + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "t": t, "y": t + 2 * a - b + rng.normal(size=n)})


def mean_at_zero(df, weights):
    """Returns E[y; do(t = 0)] by weighted least squares, over the weighted rows."""
    x = np.column_stack([np.ones(len(df)), df[["a", "b", "t"]]])
    root = np.sqrt(weights)[:, None]
    slopes = np.linalg.lstsq(x * root, df["y"] * root[:, 0], rcond=None)[0]
    x[:, 3] = 0.0
    return np.average(x @ slopes, weights=weights)


@pytest.fixture(scope="module")
def model():
    return MissCNF("{a, b} -> t; {a, b}, t -> y", "linear", progress=False).fit(table())


def test_who_the_rows_are_is_inside_the_interval(model):
    df = table()
    weights = bootstrap_weights(100, len(df), 0).numpy()
    oracle = [mean_at_zero(df, one) for one in weights]
    middle, half = mean_at_zero(df, np.ones(len(df))), Spread.of(oracle).half_width(0.95)
    low, high = middle - half, middle + half
    curve = model.curve("y", "t", [0.0], interval=0.95)
    # Replicates take one Newton step where least squares goes to the end: 3 % of the width.
    assert curve["mean_lower"][0] == pytest.approx(low, abs=0.03 * (high - low))
    assert curve["mean_upper"][0] == pytest.approx(high, abs=0.03 * (high - low))
    assert curve["mean"][0] == pytest.approx(0.5 * (low + high), abs=1e-6)


def test_the_law_of_complete_members_is_in_no_answer_about_rows(model, tmp_path):
    """The observed rows are their law: with their lines spoilt, every figure has the same bits."""
    model.save(tmp_path / "model")
    spoilt = MissCNF.load(tmp_path / "model")
    for name in ("a", "b"):
        law = spoilt.model_.mechanism(spoilt.graph_.index(name))
        for parameter in law.parameters():
            parameter.data.add_(3.0)
    for asked in ({}, {"where": "a > 0"}, {"where": "b < t"}):
        do = {"do": {"t": 1.0}, "versus": {"t": 0.0}}
        one, other = (its.effect("y", **do, **asked, data=table()) for its in (model, spoilt))
        assert one.estimate == other.estimate
    assert not spoilt.sample(50, seed=0)["a"].equals(model.sample(50, seed=0)["a"])


def test_rows_are_saved_with_replicates_and_by_nothing_else(model, tmp_path):
    fresh = MissCNF("{a, b} -> t; {a, b}, t -> y", "linear", progress=False).fit(table())
    fresh.save(tmp_path / "plain")
    with pytest.raises(InputError, match="needs the table of the fit"):
        MissCNF.load(tmp_path / "plain").effect("y", {"t": 1.0}, {"t": 0.0})
    asked = {"do": {"t": 1.0}, "versus": {"t": 0.0}, "interval": 0.9}
    first = model.effect("y", **asked)
    model.save(tmp_path / "replicated")
    again = MissCNF.load(tmp_path / "replicated").effect("y", **asked)
    assert (again.estimate, again.interval) == (first.estimate, first.interval)
    assert again.population == "rows"


def test_holes_are_completed_and_reweighted_by_each_replicate():
    df = table(2000)
    rng = np.random.default_rng(1)
    holed = df.copy()
    for name in ("a", "y"):
        holed.loc[rng.random(len(df)) < 0.3, name] = np.nan
    model = MissCNF("{a, b} -> t; {a, b}, t -> y", "linear", progress=False).fit(holed)
    rows = model.effect("y", do={"t": 1.0}, interval=0.95)
    units = model.effect("y", do={"t": 1.0}, interval=0.95, population="model")
    # The law is right, so both say E[y; do(t = 1)] − E[y] = 1 − E[t] = 1. With 2,000 rows each has
    # an error of 0.08; they share the fit, and differ by the simulated units.
    assert rows.population == "rows"
    assert rows.estimate == pytest.approx(units.estimate, abs=0.05)
    widths = [end[1] - end[0] for end in (rows.interval, units.interval)]
    assert widths[0] == pytest.approx(widths[1], rel=0.25)
    assert rows.interval[0] < 1.0 < rows.interval[1]


def test_groups_rules_and_values_of_rows(model):
    df = table()
    above = model.effect("y", do={"t": 1.0}, versus={"t": 0.0}, where="a > 0")
    assert above.draws == 200 * int((df["a"] > 0).sum())  # 100,000 units in all
    shifted = model.effect("y", do={"t": lambda t: t + 1.0})
    same = model.effect("y", do={"t": 1.0}, versus={"t": 0.0})
    assert shifted.estimate == pytest.approx(same.estimate, abs=1e-9)
    one_a_row = model.effect("y", do={"t": df["t"] + 1.0})
    assert one_a_row.estimate == pytest.approx(same.estimate, abs=1e-9)
    assert shifted.mean_versus == pytest.approx(df["y"].mean(), abs=1e-9)  # rows are what they are


def test_a_population_that_is_none_is_refused(model):
    with pytest.raises(InputError, match="population is 'rows' or 'model'"):
        model.effect("y", do={"t": 1.0}, population="everyone")


def test_monte_carlo_errors_of_rows_come_from_their_completions():
    values = torch.zeros(6, 1)
    of_rows = Units(values, values, None, np.repeat([0, 1, 2], 2), 3)
    numbers = np.array([1.0, 3.0, 2.0, 4.0, 3.0, 5.0])
    assert of_rows.mean(numbers) == 3.0
    assert of_rows.covariance([numbers])[0, 0] == pytest.approx(1.0 / 3.0)  # of 2, 3 and 4
    assert Units.alike(6).covariance([numbers])[0, 0] == pytest.approx(numbers.var(ddof=1) / 6)


@pytest.fixture(scope="module")
def confounded():
    """Two covariates that go together, and a graph that denies it."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=400)
    b = 0.7 * a + 0.7 * rng.normal(size=400)
    t = (rng.random(400) < 1.0 / (1.0 + np.exp(-a - b))).astype(int)
    table = pd.DataFrame({"a": a, "b": b, "t": t, "y": t + a + b + rng.normal(size=400)})
    table.loc[rng.random(400) < 0.2, "y"] = np.nan
    arrows = "a -> t; b -> t; a -> y; b -> y; t -> y"
    fits = {
        graph: MissCNF(graph, "linear", progress=False).fit(table)
        for graph in (arrows, f"{arrows}; a -> b")
    }
    return table, *fits.values()


ON_T = {"do": {"t": 1}, "versus": {"t": 0}}


def test_rows_are_the_default_where_they_deny_the_law_of_the_covariates(confounded):
    _, wrong, right = confounded
    effect = wrong.effect("y", **ON_T)
    assert effect.population == "rows"
    assert "the rows deny b ⟂ a among the covariates" in str(effect)
    assert not effect.notes  # rows that show both lean on no independence of theirs
    assert "the rows of the table" in effect._repr_html_()
    assert wrong.curve("y", "t", [0, 1]).attrs["population"] == "rows"
    assert right.effect("y", **ON_T).population == "model"
    assert "units that the model draws." in str(right.effect("y", **ON_T))


def test_who_is_asked_for_is_averaged_over(confounded):
    _, wrong, _ = confounded
    effect = wrong.effect("y", **ON_T, population="model")
    assert effect.population == "model"
    assert "b ⟂ a" in " ".join(effect.notes)


def test_a_loaded_model_asks_for_the_rows_that_would_be_safer(confounded, tmp_path):
    table, wrong, _ = confounded
    wrong.save(tmp_path / "model")
    loaded = MissCNF.load(tmp_path / "model")
    effect = loaded.effect("y", **ON_T)
    assert effect.population == "model"
    assert "give the table of the fit" in str(effect)
    assert loaded.effect("y", **ON_T, data=table).population == "rows"
