"""A modelled loss: likelihood, posterior and every verb, against quadrature and known truths."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from scipy import stats

from misscnf import InputError, MissCNF
from misscnf.draws import derive_generator
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals.effort import Efforts
from misscnf.inference.likelihood import observed_log_prob

ROWS = 1500
LOSS = {"y": ["y"]}


def world(seed=0, rows=ROWS):
    """x → y → z, y lost the likelier the higher it is; returns all values, and the table."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = x + rng.normal(size=rows)
    full = pd.DataFrame({"x": x, "y": y, "z": 0.5 * y + rng.normal(size=rows)})
    lost = rng.random(rows) < 1.0 / (1.0 + np.exp(-1.5 * y))
    return full, full.assign(y=full["y"].mask(lost))


@pytest.fixture(scope="module")
def fitted():
    full, df = world()
    return full, df, MissCNF("x -> y -> z", "linear", loss=LOSS, progress=False).fit(df)


def by_quadrature(truth, row):
    """log p of what a row shows, by 4,001 points along y where it is lost."""
    if not np.isnan(row.y):
        return float(truth.log_prob(torch.tensor([row.x, row.y, row.z, 0.0]).double()))
    y = torch.linspace(-12.0, 12.0, 4001, dtype=torch.float64)
    whole = torch.stack([torch.full_like(y, row.x), y, torch.full_like(y, row.z), y**0], -1)
    return float(torch.trapezoid(truth.log_prob(whole).exp(), y).log())


def test_the_likelihood_is_that_of_quadrature(fitted):
    """With points enough to 1e-6; as it is printed, to its stated error."""
    _, df, model = fitted
    truth, rows = model.structural_model(), df.iloc[:40]
    expected = [by_quadrature(truth, row) for row in rows.itertuples()]
    values = torch.tensor(rows.assign(r=rows["y"].isna()).astype(float).to_numpy())
    plan = Plan.make(truth.graph, ~values.isnan())
    usual = Efforts().evaluation
    fine = replace(usual, quadrature=replace(usual.quadrature, fewest_points=200))
    found = observed_log_prob(truth, values.nan_to_num(), plan, derive_generator(0), fine)
    assert found.log_prob.numpy() == pytest.approx(expected, abs=1e-6)
    printed = model.log_prob(rows, quality=True)
    off = (printed["log_prob"] - expected).abs()
    assert (off <= 6 * printed["standard_error"] + 1e-9).all()


def test_values_alone_on_request(fitted):
    _, df, model = fitted
    rows = df.dropna().iloc[:20]
    together, alone = model.log_prob(rows), model.log_prob(rows, holes=False)
    shown = model.structural_model().log_factors(
        torch.tensor(rows.assign(r=0.0).to_numpy(), dtype=torch.float64)
    )
    assert (together - alone).to_numpy() == pytest.approx(shown[:, 3].numpy(), abs=1e-9)


def test_ranks_of_lost_values_are_uniform_only_if_the_loss_is_modelled():
    """Kolmogorov-Smirnov at 1e-3 on rows that the fit never saw; ignoring the loss fails.

    The fit has eight times as many rows as are ranked, so that its own error is too small to show.
    """
    _, rows = world(seed=1, rows=6000)
    full, df = world(seed=2, rows=750)
    lost = df["y"].isna().to_numpy()
    for loss, uniform in ((LOSS, True), (None, False)):
        model = MissCNF("x -> y -> z", "linear", loss=loss, progress=False).fit(rows)
        drawn = model.impute(df[lost], 99)["y"].to_numpy().reshape(99, -1)
        below = (drawn < full.loc[lost, "y"].to_numpy()).sum(0)
        ranks = (below + np.random.default_rng(0).random(len(below))) / 100
        assert (stats.kstest(ranks, "uniform").pvalue > 1e-3) == uniform


def test_every_verb(fitted, tmp_path):
    _, df, model = fitted
    assert list(model.impute(df, 1).columns) == ["x", "y", "z"]
    assert list(model.sample(10).columns) == ["x", "y", "z"]
    share = model.sample(4000, holes=True)["y"].isna().mean()
    assert share == pytest.approx(df["y"].isna().mean(), abs=4 * 0.5 / 4000**0.5 + 0.05)
    measured = model.sample(2000, do={"missing(y)": False}, holes=True)
    assert not measured["y"].isna().any()
    other = model.counterfactual(df.iloc[:5], do={"x": 0.0})
    assert list(other.columns) == ["x", "y", "z"]
    effect = model.effect("y", do={"x": 1.0}, versus={"x": 0.0}, interval=0.95)
    assert effect.interval[0] < 1.0 < effect.interval[1]
    model.save(tmp_path / "model")
    again = MissCNF.load(tmp_path / "model")
    assert again.sample(5, holes=True).equals(model.sample(5, holes=True))
    pd.testing.assert_series_equal(again.log_prob(df), model.log_prob(df))


def test_slopes_of_the_loss(fitted):
    """1.5 a unit of y, whose observed deviation is the unit of the slope; within four errors."""
    _, df, model = fitted
    model.effect("y", do={"x": 1.0}, versus={"x": 0.0}, interval=0.95)
    (line,) = model.loss_.itertuples()
    assert (line.column, line.driver) == ("y", "y")
    assert abs(line.log_odds - 1.5 * df["y"].std()) < 4 * line.standard_error
    assert line.lower < line.odds_ratio < line.upper
    assert "the odds that y is lost" in line.sentence
    (own,) = model.summary().query("column == 'missing(y)'").itertuples()
    assert (own.cause, own.coefficient) == ("y", line.log_odds)


def test_a_step_of_a_count_that_drives_a_loss_is_its_deviation():
    rng = np.random.default_rng(3)
    count = 1 + rng.poisson(3.0, 600)
    df = pd.DataFrame({"n": count, "y": count + rng.normal(size=600)})
    df.loc[rng.random(600) < 1 / (1 + np.exp(3.0 - 0.5 * count)), "y"] = np.nan
    model = MissCNF("n -> y; n -> missing(y)", "linear", progress=False).fit(df)
    design = sm.add_constant(df["n"] / df["n"].std())
    law = sm.Logit(df["y"].isna(), design).fit(disp=False)
    assert model.loss_["log_odds"].item() == pytest.approx(law.params["n"], rel=0.01)


def test_a_column_that_is_left_out_is_not_said_to_be_lost(fitted):
    _, df, model = fitted
    unknown = model.impute(df[["x", "z"]].iloc[:1000], 1)["y"].mean()
    lost = model.impute(df.assign(y=np.nan).iloc[:1000], 1)["y"].mean()
    assert lost > unknown + 0.1


def test_bad_losses_are_refused(fitted):
    _, df, _ = fitted
    with pytest.raises(InputError, match="no cell of that column is lost"):
        MissCNF("x -> y -> z", "linear", loss={"x": ["x"]}).fit(df)
    with pytest.raises(InputError, match="rename or drop that column"):
        MissCNF("x -> y -> z", "linear", loss=LOSS).fit(df.assign(**{"missing(y)": 0}))


def test_what_rows_know_of_a_slope():
    """With a shadow they know it; where shape alone tells, and rows are few, a note says so."""
    _, df = world(seed=3, rows=400)
    told = MissCNF("x -> y -> z", "linear", loss=LOSS, progress=False).fit(df)
    asked = {"do": {"x": 1.0}, "versus": {"x": 0.0}, "interval": 0.95}
    effect = told.effect("y", **asked)
    assert told.loss_["known"].item() > 0.8
    assert not any("hardly tell" in note for note in effect.notes)
    rng = np.random.default_rng(0)
    alone = pd.DataFrame({"x": rng.normal(size=60), "y": rng.normal(size=60)})
    alone.loc[rng.random(60) < 0.5, "y"] = np.nan
    weak = MissCNF("x -> y", "linear", loss={"y": ["y", "x"]}, progress=False).fit(alone)
    effect = weak.effect("y", **asked)
    own = weak.loss_.query("driver == 'y'").iloc[0]
    assert own["known"] < 0.8
    assert "The rows hardly tell" in own["sentence"]
    assert any("hardly tell how y drives its own loss" in note for note in effect.notes)


def test_a_loss_that_is_sure_beyond_some_value_is_told_in_plain_numbers():
    """All above the mean are lost: the slope has no end, and numbers stay readable."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    y = 0.6 * x + rng.normal(size=300)
    df = pd.DataFrame({"x": x, "y": np.where(y > y.mean(), np.nan, y)})
    about = {"loss": {"y": ["y"]}, "settings": {"solving.loss_slopes": (5.0,)}, "progress": False}
    (line,) = MissCNF("x -> y", "linear", **about).fit(df).loss_.itertuples()
    assert line.log_odds > 7.0
    assert "are over 1000 times as high" in line.sentence
    assert "high values are lost almost for sure" in line.doubt
