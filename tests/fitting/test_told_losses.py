"""What rows say of a loss that the graph claims, against worlds whose loss is known."""

import math

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF
from misscnf.fitting.told_losses import LossEvidence


def world(on_y, on_v, rows=3000, seed=0):
    """x, v → y; y lost by a logistic line in y and v."""
    rng = np.random.default_rng(seed)
    x, v = rng.normal(size=(2, rows))
    y = x + 0.5 * v + rng.normal(size=rows)
    lost = rng.random(rows) < 1.0 / (1.0 + np.exp(-on_y * y - on_v * v))
    return pd.DataFrame({"x": x, "v": v, "y": np.where(lost, np.nan, y)})


def fit(df, drivers, **settings):
    """Fits lines by the preset that asks the rows; nothing here is curved."""
    settings = {"selection.noise": False, **{f"solving.{k}": v for k, v in settings.items()}}
    graph = "x -> y; v -> y"
    about = {"loss": {"y": drivers}, "settings": settings, "progress": False}
    return MissCNF(graph, kinds="continuous", **about).fit(df)


def test_rows_name_a_driver_that_the_graph_left_out(caplog, tmp_path):
    """v drives the loss, y does not: causes of y are added, the slope on y is taken as zero.

    A slope of 1 on v is worth some hundred nats in 3,000 rows. With v in, a slope on y that is
    not there is kept in some percent of tables; the seed is fixed.
    """
    df = world(on_y=0.0, on_v=1.0)
    model = fit(df, ["y"])
    assert model.loss_evidence_.added == (("y", "x"), ("y", "v"))
    assert model.loss_evidence_.weighed == ("y",)
    assert "v drives it too" in caplog.text
    slopes = model.loss_.set_index("driver")
    assert slopes["told"].to_dict() == {"x": False, "v": False, "y": True}
    assert slopes.loc["v", "log_odds"] == pytest.approx(1.0, abs=0.2)
    assert slopes.loc["y", "log_odds"] == 0.0
    assert "do not speak" in slopes.loc["y", "sentence"]
    plain = MissCNF("x -> y; v -> y", "linear", kinds="continuous", progress=False).fit(df)
    arms = {"do": {"x": 1.0}, "versus": {"x": 0.0}}
    ignored = plain.effect("y", **arms).estimate
    assert model.effect("y", **arms).estimate == pytest.approx(ignored, abs=0.02)
    model.save(tmp_path / "model")
    loaded = MissCNF.load(tmp_path / "model")
    assert loaded.loss_evidence_ == model.loss_evidence_
    pd.testing.assert_frame_equal(loaded.loss_, model.loss_)


def test_a_loss_that_is_there_stays_as_it_was_told():
    """Twice Schwarz's price of a slope is 8 nats: passed by chance in 1 of 10,000 tables."""
    model = fit(world(on_y=1.0, on_v=0.0), ["y"])
    assert model.loss_evidence_.added == ()
    assert model.loss_evidence_.kept > 0.9
    (line,) = model.loss_.itertuples()
    assert line.log_odds == pytest.approx(1.0 * math.sqrt(2.25), abs=0.6)


@pytest.mark.parametrize(("most", "added"), [(500, ()), (4000, (("y", "x"), ("y", "v")))])
def test_rows_that_leave_it_open_are_joined_by_more(most, added):
    """v is worth some 20 nats in 4,000 rows, price 8.3, and 2.5 in 500 of them, price 6.2."""
    df = world(on_y=0.0, on_v=0.3, rows=4000)
    model = fit(df, ["y"], evidence_rows=500, evidence_most=most)
    assert model.loss_evidence_.added == added


def test_an_interval_knows_that_a_slope_of_zero_is_a_guess():
    """A slope that was taken as zero keeps the standard error of a free one, within a quarter."""
    df, errors = world(on_y=0.0, on_v=1.0), []
    linear = MissCNF(
        "x -> y; v -> y", "linear", loss={"y": ["y", "v"]}, kinds="continuous", progress=False
    )
    for model in (fit(df, ["y", "v"]), linear.fit(df)):
        model.effect("y", do={"x": 1.0}, versus={"x": 0.0}, interval=0.95)
        line = model.loss_.set_index("driver").loc["y"]
        assert (line["log_odds"] == 0.0) == (model is not linear)
        errors.append(line["standard_error"])
    assert errors[0] == pytest.approx(errors[1], rel=0.25)


def test_linear_takes_the_graph_at_its_word():
    model = MissCNF("x -> y; v -> y", "linear", loss={"y": ["y"]}, progress=False)
    evidence = model.fit(world(on_y=0.0, on_v=1.0, rows=500)).loss_evidence_
    assert evidence.added == evidence.weighed == ()


@pytest.mark.parametrize(
    ("weighed", "factor", "kept", "said"),
    [
        (("y",), 1.4, 0.99, "whether lost values of column 'y' drive its own loss (a Bayes"),
        (("y", "z"), 3.0, 0.8, "columns 'y', 'z' drive their own loss (a Bayes factor of 3 "),
        (("y",), 0.2, 0.0, "do not say that lost values of column 'y' drive its own loss"),
        (("y",), 1.9e4, 1.0, None),
    ],
)
def test_what_rows_say_of_a_slope_is_told_unless_nobody_doubts_it(weighed, factor, kept, said):
    told = LossEvidence(weighed=weighed, bayes_factor=factor, kept=kept).sentences()
    assert len(told) == (said is not None)
    assert said is None or said in told[0]
