"""Several starts of a loss that depends on the value it hides."""

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF


def world(slope, share, seed=0, rows=1000):
    """x → y, about so many y lost with a slope on y itself."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = x + rng.normal(size=rows)
    level = np.log(share / (1.0 - share))
    lost = rng.random(rows) < 1.0 / (1.0 + np.exp(-level - slope * y))
    return pd.DataFrame({"x": x, "y": np.where(lost, np.nan, y)})


@pytest.mark.parametrize(("slope", "share"), [(-1.5, 0.3), (1.5, 0.3)])
def test_every_start_is_told_and_the_best_is_kept(slope, share, tmp_path):
    """The slope is found on either side of zero; within four standard errors of the truth."""
    df = world(slope, share)
    model = MissCNF("x -> y", "linear", loss={"y": ["y"]}, progress=False).fit(df)
    starts = model.loss_starts_
    assert sorted(starts["start"]) == [-1.5, 0.0, 1.5]
    assert starts["kept"].sum() == 1
    assert (starts["below"] >= 0.0).all()
    assert starts.loc[starts["kept"], "below"].item() == 0.0
    effect = model.effect("y", do={"x": 1.0}, versus={"x": 0.0}, interval=0.95)
    assert abs(effect.estimate - 1.0) < effect.interval[1] - effect.interval[0]
    (line,) = model.loss_.itertuples()
    assert abs(line.log_odds - slope * df["y"].std()) < 4 * line.standard_error
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(MissCNF.load(tmp_path / "model").loss_starts_, starts)


def test_no_starts_where_no_value_drives_its_own_loss():
    df = world(1.5, 0.3, rows=300)
    assert MissCNF("x -> y", "linear", progress=False).fit(df).loss_starts_.empty
    told = MissCNF("x -> y", "linear", loss={"y": ["x"]}, progress=False).fit(df)
    assert told.loss_starts_.empty


def test_losses_of_losses(tmp_path):
    """Who drops out at the first visit is lost at the second too: an indicator as a parent."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=500)
    first = x + rng.normal(size=500)
    second = first + rng.normal(size=500)
    lost = rng.random(500) < 1.0 / (1.0 + np.exp(1.0 - first))
    later = lost | (rng.random(500) < 0.2)
    df = pd.DataFrame({"x": x, "v1": np.where(lost, np.nan, first)})
    df["v2"] = np.where(later, np.nan, second)
    loss = {"v1": ["v1"], "v2": ["missing(v1)"]}
    model = MissCNF("x -> v1 -> v2", "linear", loss=loss, progress=False).fit(df)
    drivers = set(zip(model.loss_["column"], model.loss_["driver"], strict=True))
    assert {column for column, _ in drivers} == {"v1", "v2"}
    kept = model.sample(2000, do={"missing(v1)": False}, holes=True)
    assert not kept["v1"].isna().any()
    assert model.sample(2000, holes=True)["v1"].isna().any()
