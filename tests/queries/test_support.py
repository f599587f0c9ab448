"""After a fit: where answers leave what was revealed, and families that no row shows whole."""

import logging

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from misscnf import InputError, MissCNF
from misscnf.queries.support import _share_outside


def table(rows=3000, seed=0, *, revealed=False):
    """x confounds t and y; y is never seen where t is above 1, unless it is revealed."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    t = 0.5 * x + rng.normal(size=rows)
    y = t + x + rng.normal(size=rows)
    df = pd.DataFrame({"x": x, "t": t, "y": y})
    if not revealed:
        df.loc[df["t"] > 1.0, "y"] = np.nan
    return df


GRAPH = "x -> t; x -> y; t -> y"


@pytest.fixture(scope="module")
def model():
    return MissCNF(GRAPH, "linear", progress=False).fit(table())


def test_an_intervention_inside_what_was_revealed_is_no_extrapolation(model):
    report = model.check(table(), ("t", "y"), do={"t": 0.0})
    share = report.support.set_index("node").loc["y", "share outside"]
    assert share < 0.04  # 1 % by construction, with 4000 draws and 2400 rows
    assert not report.warnings


def test_an_intervention_outside_is_said_with_numbers(model):
    report = model.check(table(), ("t", "y"), do={"t": 3.0})
    assert report.support.set_index("node").loc["y", "share outside"] > 0.99
    assert "do(t = 3)" in report.warnings[0]
    assert "extrapolated" in report.summary()
    assert not report.ok


def test_without_an_intervention_the_share_outside_is_that_of_the_hidden_region(model):
    df = table()
    report = model.check(df)
    share = report.support.set_index("node").loc["y", "share outside"]
    # Points beyond the edge count once they are further out than revealed rows are apart.
    assert 0.05 < share < (df["t"] > 1.0).mean() + 0.03


def short_table(rows, seed, *, binary):
    """A plain table, with 20 % of t and y lost at random given x."""
    rng = np.random.default_rng([seed, rows])
    df = table(rows, seed, revealed=True)
    if binary:
        df["t"] = (rng.random(rows) < 1.0 / (1.0 + np.exp(-df["x"]))).astype(float)
        df["y"] = df["t"] + df["x"] + rng.normal(size=rows)
    chance = (0.4 / (1.0 + np.exp(-df["x"]))).to_numpy()[:, None]
    return df.assign(**df[["t", "y"]].mask(rng.random((rows, 2)) < chance))


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "continuous"])
def test_short_plain_tables_are_seldom_accused(binary):
    """If 2 % are, 4 or more of 30 tables with 300 to 1,000 rows are with a chance of 0.3 %."""
    assert binom.sf(3, 30, 0.02) < 0.004
    accused = 0
    for seed, rows in ((seed, rows) for seed in range(10) for rows in (300, 600, 1000)):
        df = short_table(rows, seed, binary=binary)
        model = MissCNF(GRAPH, "linear", progress=False).fit(df)
        accused += bool(model.check(df, ("t", "y"), do={"t": 1.0}).warnings)
    assert accused < 4


@pytest.mark.parametrize("rows", [300, 1000])
def test_short_tables_name_what_lies_beyond_the_data_and_regions_never_revealed(rows):
    df = short_table(rows, 0, binary=False)
    model = MissCNF(GRAPH, "linear", progress=False).fit(df)
    beyond = float(df["t"].max() + 2.0 * df["t"].std())
    assert model.check(df, ("t", "y"), do={"t": beyond}).warnings
    df.loc[df["t"] > 1.0, "y"] = np.nan
    model = MissCNF(GRAPH, "linear", progress=False).fit(df)
    assert model.check(df, ("t", "y"), do={"t": 3.0}).warnings


def test_the_error_of_a_share_is_the_jackknife_over_rows():
    """Against leaving out each revealed point, with the reach kept."""
    rng = np.random.default_rng(0)
    revealed, drawn = rng.normal(size=(60, 2)), 1.5 * rng.normal(size=(500, 2))
    apart = np.linalg.norm(revealed[:, None] - revealed, axis=2) + np.diag(np.full(60, np.inf))
    reach = np.sort(apart.min(1))[[56, 57]] @ [0.05, 0.95]  # the 61 · 0.95-th, from 1
    near = np.linalg.norm(drawn[:, None] - revealed, axis=2)
    without = [(np.delete(near, r, axis=1).min(1) > reach).mean() for r in range(60)]
    share, error = _share_outside(revealed, drawn, 0.05)
    assert share == (near.min(1) > reach).mean()
    assert error == pytest.approx(np.sqrt(60) * np.std(without))


def test_the_share_of_a_region_uses_the_posterior_of_what_hides_it():
    df = table(rows=6000, revealed=True)
    rng = np.random.default_rng(1)
    hidden = df.copy()
    # t is hidden more often where x is high, so that rows which show it hold too few of t > 1;
    # y is hidden where t is seen to be above 1, so that values are lost at random.
    lost = rng.random(len(df)) < 1.0 / (1.0 + np.exp(-2.0 * df["x"]))
    hidden.loc[lost, "t"] = np.nan
    hidden.loc[hidden["t"] > 1.0, "y"] = np.nan
    fitted = MissCNF(GRAPH, "linear", progress=False).fit(hidden)
    regions = fitted.check(hidden).report.regions
    region = regions[regions["flagged"] & (regions["node"] == "y")].iloc[0]
    truth = (df["t"] > 1.0).mean()
    assert abs(region["posterior share"] - truth) < 0.02
    assert region["share"] < truth - 0.03


def test_regions_of_levels_have_a_posterior_share_too():
    rng = np.random.default_rng(2)
    stage = rng.choice(["I", "II", "III"], size=2000)
    y = (stage == "II") + rng.normal(size=2000)
    df = pd.DataFrame({"stage": pd.Categorical(stage, ordered=True), "y": y})
    df.loc[df["stage"] == "III", "y"] = np.nan
    df["sex"] = rng.choice(["f", "m"], size=2000)
    report = MissCNF("stage -> y; sex -> y", "linear", progress=False).fit(df).check(df)
    region = report.report.regions.iloc[0]
    assert region["flagged"]
    assert abs(region["posterior share"] - (stage == "III").mean()) < 1e-12


def test_values_beyond_what_was_seen_are_warned_about(model, caplog):
    with caplog.at_level(logging.WARNING, logger="misscnf"):
        effect = model.effect("y", do={"t": 50.0}, versus={"t": 0.0}, draws=1000)
    assert "do(t = 50) is outside what was seen of t" in effect.notes[0]
    assert effect.notes[0] in caplog.text
    assert model.effect("y", do={"t": 1.0}, versus={"t": 0.0}, draws=1000).notes == ()


def test_what_was_seen_is_saved(model, tmp_path):
    model.save(tmp_path / "model")
    again = MissCNF.load(tmp_path / "model")
    assert again.effect("y", do={"t": 50.0}, draws=100).notes


def test_the_report_is_plain_for_json(model):
    import json

    found = json.loads(json.dumps(model.check(table(500), do={"t": 0.5}).to_dict(), default=str))
    assert found["support"][0]["node"] == "y"


def alternating(rows=400):
    df = table(rows).assign(y=lambda d: d["t"] + d["x"])
    df["y"] += np.random.default_rng(3).normal(size=rows)
    df.loc[::2, "t"] = np.nan
    df.loc[1::2, "y"] = np.nan
    return df


def test_networks_are_not_trained_where_a_family_is_never_whole():
    with pytest.raises(InputError, match=r"no row shows y .*preset='linear'.*allow_uncovered"):
        MissCNF(GRAPH, progress=False).fit(alternating())


def test_a_line_is_fitted_there_with_a_warning(caplog):
    with caplog.at_level(logging.WARNING, logger="misscnf"):
        MissCNF(GRAPH, "linear", progress=False).fit(alternating())
    assert "No row shows y with its parents" in caplog.text


def test_networks_are_trained_there_on_request():
    settings = {"epochs": 1}
    model = MissCNF(GRAPH, settings=settings, allow_uncovered=True, progress=False)
    assert model.fit(alternating()).chosen_ in ("linear", "curve", "network")
