"""Several starts of a loss that depends on the value it hides."""

import numpy as np
import pandas as pd
import pytest
import torch

from misscnf import MissCNF
from misscnf.data.rows import MemoryRows
from misscnf.fitting.solve.generalised_linear import with_losses_at_random
from misscnf.model import Structure


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
    assert line.doubt == ""
    model.save(tmp_path / "model")
    pd.testing.assert_frame_equal(MissCNF.load(tmp_path / "model").loss_starts_, starts)


def test_a_loss_through_a_network_starts_as_lost_at_random():
    """A line that misses a bend leaves a slope of the loss that makes up for it."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=2000)
    y = 3.0 * np.tanh(2.0 * x) + 0.3 * rng.normal(size=2000)
    df = pd.DataFrame(
        {"x": x, "y": np.where(rng.random(2000) < 1 / (1 + np.exp(1 - y)), np.nan, y)}
    )
    model = MissCNF("x -> y", "linear", loss={"y": ["y"]}, progress=False).fit(df)
    graph, line, table = model.graph_, model.model_, model._read(df)
    structure = Structure.of(graph, model.schema_.domains)
    rows = MemoryRows(table.values.double(), table.observed)
    ((indicator, place),) = graph.own_losses.items()
    assert abs(line.mechanism(indicator).first_slope(place)) > 0.1
    found = with_losses_at_random(line, structure, [indicator], rows, model.settings_)
    assert found.mechanism(indicator).first_slope(place) == 0.0
    none = torch.zeros(1, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64)
    shown = found.mechanism(indicator).log_prob(*none).exp().item()
    assert shown == pytest.approx(df["y"].notna().mean(), abs=1e-6)
    for node in range(2):
        pairs = zip(*(one.mechanism(node).parameters() for one in (line, found)), strict=True)
        assert all(torch.equal(*pair) for pair in pairs)


def test_a_loss_for_sure_is_a_doubt(caplog, tmp_path):
    """Values above a threshold are lost: rows tell a slope that only the normal law knows."""
    df = world(0.0, 0.01)
    df["y"] = df["y"].where(df["y"] < 0.3)
    model = MissCNF("x -> y", "linear", loss={"y": ["y"]}, progress=False).fit(df)
    (line,) = model.loss_.itertuples()
    assert line.log_odds > 3.0
    assert "lost almost for sure" in line.doubt
    assert line.sentence.endswith(line.doubt)
    assert line.doubt in caplog.messages
    model.save(tmp_path / "model")
    for one in (model, MissCNF.load(tmp_path / "model")):
        notes = one.effect("y", do={"x": 1.0}, versus={"x": 0.0}).notes
        assert any("that rests on the shape of the laws" in note for note in notes)


def test_a_search_that_ended_on_the_other_side_is_a_doubt():
    df = world(1.5, 0.3, rows=300)
    model = MissCNF("x -> y", "linear", loss={"y": ["y"]}, progress=False).fit(df)
    assert model.loss_["doubt"].item() == ""
    last = model.loss_starts_.index[-1]
    model.loss_starts_.loc[last, ["slope of y", "below"]] = -1.0, 12.3
    assert "other side of zero (-1.0, 12 nats lower)" in model.loss_["sentence"].item()


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
