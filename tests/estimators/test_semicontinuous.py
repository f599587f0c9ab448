"""Columns with point masses, from a table with holes to effects, draws and files."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch

from misscnf import InputError, MissCNF

GRAPH = "x -> t; x -> y; t -> y"


def table(rows=1500, lost=0.25, seed=0):
    """y is zero, or log y = 0.5 + 0.6 t + 0.3 x + 0.8 noise; being above has a logit."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    t = (rng.random(rows) < 1 / (1 + np.exp(-x))).astype(int)
    some = rng.random(rows) < 1 / (1 + np.exp(1.2 - 0.8 * t - 0.5 * x))
    y = np.where(some, np.exp(0.5 + 0.6 * t + 0.3 * x + 0.8 * rng.normal(size=rows)), 0.0)
    return pd.DataFrame({"x": x, "t": t, "y": y}).mask(rng.random((rows, 3)) < lost)


TRUTH = 1.27  # of the effect of t on y, over a million draws


@pytest.fixture(scope="module")
def model():
    return MissCNF(GRAPH, "linear", progress=False).fit(table())


def test_on_complete_rows_the_fit_is_two_regressions():
    """Logits of zero and a line of the logarithm above it, as statsmodels fits them."""
    df = table(lost=0.0)
    fit = MissCNF(GRAPH, "linear", progress=False).fit(df)
    law, unit = fit.model_.mechanism(2), fit.schema_.columns[2].rest
    design = sm.add_constant(df[["x", "t"]])
    logits = sm.Logit((df.y == 0).astype(float), design).fit(disp=0).params
    line = sm.OLS(np.log(df.y[df.y > 0]), design[df.y > 0]).fit()
    x, t = fit.schema_.columns[0].unit.scale, fit.schema_.domains[1].scale
    per = np.array([x, t])
    slopes = law.logits.weight.detach().numpy()[0] / per
    assert slopes == pytest.approx(logits[["x", "t"]].to_numpy(), abs=2e-3)
    slopes = unit.scale * law.mean.weight.detach().numpy()[0] / per
    assert slopes == pytest.approx(line.params[["x", "t"]].to_numpy(), abs=2e-3)
    scale = unit.scale * float(law.log_scale.bias.exp())
    assert scale == pytest.approx(np.sqrt((line.resid**2).mean()), rel=2e-3)


def test_the_effect_holds_the_truth_with_holes(model):
    """One table, a seed of which 95 of 100 hold."""
    effect = model.effect("y", do={"t": 1}, versus={"t": 0}, interval=0.95)
    assert effect.interval[0] < TRUTH < effect.interval[1]
    assert effect.interval[1] - effect.interval[0] < 1.0


def test_draws_never_leave_the_support(model):
    df = table()
    drawn = model.sample(4000).y
    assert (drawn >= 0).all()
    assert (drawn == 0).mean() == pytest.approx((df.y == 0).sum() / df.y.notna().sum(), abs=0.05)
    completed = model.impute(df, draws=1).y.to_numpy()
    assert (completed >= 0).all()
    assert (completed[df.y.isna()] == 0).mean() > 0.3
    twin = model.counterfactual(df, do={"t": 1}, seed=1).y
    assert (twin >= 0).all()


def test_with_nothing_changed_a_counterfactual_is_the_row(model):
    df = table(200, lost=0.0, seed=3)
    twin = model.counterfactual(df, do={"t": df.t.to_numpy()})
    pd.testing.assert_series_equal(twin.y, df.y, check_exact=False, rtol=1e-6)
    assert (twin.y[df.y == 0] == 0).all()


def test_log_prob_is_a_mass_at_zero_and_a_density_above(model):
    df = pd.DataFrame({"x": [0.3] * 4, "t": [1] * 4, "y": [0.0, 1.0, 2.0, -1.0]})
    found = model.log_prob(df) - model.log_prob(df.assign(y=np.nan))
    grid = np.exp(np.linspace(-8, 8, 4001))
    many = pd.DataFrame({"x": 0.3, "t": 1, "y": grid})
    above = np.exp(model.log_prob(many) - model.log_prob(many.assign(y=np.nan)))
    assert np.exp(found[0]) + np.trapezoid(above, grid) == pytest.approx(1.0, abs=1e-4)
    assert found[3] == -np.inf


def test_a_saved_model_answers_as_before(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    pd.testing.assert_frame_equal(loaded.sample(50), model.sample(50), check_exact=True)
    assert loaded.schema_ == model.schema_


def test_a_hidden_confounder_with_zeros_is_integrated():
    """Its indicator and its amount move both t and y; 30 % of it are lost. One seed of 95 %."""
    rng = np.random.default_rng(5)
    x = np.where(rng.random(1500) < 0.6, 0.0, np.exp(0.6 * rng.normal(size=1500)))
    t = (rng.random(1500) < 1 / (1 + np.exp(0.8 * (x == 0) - 0.5 * x))).astype(int)
    y = t + 0.7 * x - 1.0 * (x == 0) + rng.normal(size=1500)
    df = pd.DataFrame({"x": x, "t": t, "y": y})
    df.loc[rng.random(1500) < 0.3, "x"] = np.nan
    model = MissCNF(GRAPH, "linear", progress=False).fit(df)
    effect = model.effect("y", do={"t": 1}, versus={"t": 0}, interval=0.95)
    assert effect.interval[0] < 1.0 < effect.interval[1]
    filled = model.impute(df, draws=1).x.to_numpy()[df.x.isna()]
    assert (filled == 0).mean() == pytest.approx(0.6, abs=0.1)
    assert torch.isfinite(torch.tensor(model.log_prob(df).to_numpy())).all()


def test_a_value_beyond_an_end_is_refused_with_a_way_on(model):
    words = r'a number of at least 0, where it heaps up \("continuous" in kinds knows no end\)'
    with pytest.raises(InputError, match=words):
        model.effect("x", do={"y": -1.0})


def test_the_paper_refuses_point_masses_in_words():
    with pytest.raises(InputError, match="semicontinuous column has none"):
        MissCNF(GRAPH, "paper", kinds={"t": "continuous"}, progress=False).fit(table(200, 0.0))


def test_an_impossible_value_is_refused_by_its_column():
    df = table(200, lost=0.0)
    df.loc[7, "y"] = -2.0
    asked = {"y": {"kind": "semicontinuous", "at": [0], "scale": "log"}}
    with pytest.raises(InputError, match="only plain fits"):
        MissCNF(GRAPH, kinds=asked, progress=False).fit(df)
