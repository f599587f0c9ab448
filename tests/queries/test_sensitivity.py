"""Effects along what cannot be known of a loss: known truths, straight lines, enumeration."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.special import expit

from misscnf import InputError, MissCNF, Sensitivity
from misscnf.data.domains import Binary, Continuous, Count
from misscnf.mechanisms import HeldSlope, Ordinal
from misscnf.queries.effects import Effect
from misscnf.queries.shifts import Shift

ARMS = {"do": {"t": 1}, "versus": {"t": 0}}
SLOPE = 0.9
"""Of the loss, a unit of y."""


def world(rows=2000, seed=0):
    """x → t → y ← x with an effect of one, y lost the likelier the higher it is."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    t = (rng.random(rows) < expit(x)).astype(int)
    y = t + 0.8 * x + rng.normal(size=rows)
    lost = rng.random(rows) < expit(SLOPE * y - 0.8)
    return pd.DataFrame({"x": x, "t": t, "y": np.where(lost, np.nan, y)})


@pytest.fixture(scope="module")
def df():
    return world()


@pytest.fixture(scope="module")
def model(df):
    return MissCNF("x -> t; x, t -> y", "linear", progress=False).fit(df)


@pytest.fixture(scope="module")
def along(model, df):
    strengths = [-1.0, 0.0, 1.0, SLOPE * df["y"].std()]
    return model.sensitivity("y", **ARMS, strength=strengths)


def test_without_strength_the_loss_is_at_random(model, along):
    """The held slope is zero, so that the loss says nothing of the value."""
    plain = model.effect("y", **ARMS, interval=0.95)
    line = along.to_frame().set_index("strength").loc[0.0]
    assert line["estimate"] == pytest.approx(plain.estimate, abs=1e-4)
    assert line["lower"] == pytest.approx(plain.interval[0], abs=0.03)  # other random numbers


def test_at_the_true_strength_the_effect_is_the_truth(model, along):
    """Within 3.3 standard errors, of an error rate of 1e-3; at random it is not."""
    frame = along.to_frame()
    best = frame.iloc[-1]
    error = (best["upper"] - best["lower"]) / 2 / 1.96
    assert abs(best["estimate"] - 1.0) < 3.3 * error
    means = frame.set_index("strength").loc[[0.0, best["strength"]], "mean"]
    assert abs(means.iloc[1] - 1.0) < 0.1 < abs(means.iloc[0] - 1.0)  # of y under t = 1


def test_the_curve_is_monotone(along):
    """More of the high values are lost, and more of these where t = 1."""
    frame = along.to_frame()
    assert (frame[["estimate", "mean", "mean_versus"]].diff().iloc[1:] > 0).all(axis=None)


def test_a_modelled_loss_is_held_too(df, model, along):
    """The same path from another start, where the graph has the loss with what drives it."""
    told = MissCNF("x -> t; x, t -> y", "linear", loss={"y": ["y", "x", "t"]}, progress=False).fit(
        df
    )
    found = told.sensitivity("y", **ARMS, strength=[-1.0, 1.0], interval=None).to_frame()
    expected = along.to_frame().set_index("strength").loc[[-1.0, 1.0], "estimate"]
    assert found["estimate"].to_numpy() == pytest.approx(expected.to_numpy(), abs=2e-3)
    assert told.model_.mechanism(3).name == "ordinal"  # the fit is left as it is


def test_a_shift_is_a_straight_line_by_the_share_lost(model, df):
    found = model.sensitivity("y", **ARMS, shift={"do": [-2, 0, 1]})
    frame = found.to_frame()
    slope = np.diff(frame["estimate"]) / np.diff(frame["shift"])
    assert slope[0] == pytest.approx(slope[1], abs=1e-9)
    # by hand: logistic regression of the loss on x and t, at t = 1 and the rows' own x
    x, t, lost = df["x"].to_numpy(), df["t"].to_numpy(), df["y"].isna().to_numpy()
    columns = np.column_stack([np.ones_like(x), x, t])
    weights = np.zeros(3)
    for _ in range(25):
        p = expit(columns @ weights)
        weights += np.linalg.solve((columns.T * (p * (1 - p))) @ columns, columns.T @ (lost - p))
    share = expit(weights[0] + weights[1] * x + weights[2]).mean()
    assert slope[0] == pytest.approx(share, abs=0.01)  # over units of the model, not rows
    assert (frame["mean_versus"] == frame["mean_versus"].iloc[0]).all()
    assert frame["upper"].iloc[0] - frame["lower"].iloc[0] > 0


def test_the_same_shift_in_both_arms_and_a_grid(model):
    both = model.sensitivity("y", **ARMS, shift=[1.0], interval=None).to_frame()
    grid = model.sensitivity("y", **ARMS, shift={"do": [0, 1], "versus": [0, 1]}, interval=None)
    frame = grid.to_frame().set_index(["shift_do", "shift_versus"])["estimate"]
    assert frame[1, 1] == pytest.approx(both["estimate"].iloc[0], abs=1e-12)
    assert frame[1, 1] - frame[0, 1] == pytest.approx(frame[1, 0] - frame[0, 0], abs=1e-9)
    assert grid.tipping_point is None
    effect = frame[0, 0]
    far = model.sensitivity(
        "y", **ARMS, shift={"do": [0, -9 * effect], "versus": [0]}, interval=None
    )
    side = "above" if effect > 0 else "below"
    assert far.told == f"The estimate is {side} zero at 50 % of the points of the grid."
    assert len(grid.plot().collections) > 0


def test_a_ratio_multiplies_what_is_lost(model):
    shown = model.sensitivity("y", **ARMS, ratio=[1, 3], interval=None).to_frame()
    plain = model.effect("y", **ARMS, draws=20_000)
    assert shown["estimate"].iloc[0] == pytest.approx(plain.estimate, abs=1e-6)
    assert shown["mean"].iloc[1] > shown["mean"].iloc[0]


def test_odds_of_lost_events_by_enumeration():
    """Of a binary cause, a binary outcome and a loss by both, all eight cells are known."""
    rng = np.random.default_rng(3)
    t = rng.integers(0, 2, 3000)
    y = (rng.random(3000) < np.where(t, 0.6, 0.3)).astype(float)
    lost = rng.random(3000) < np.where(t, 0.5, 0.2)
    df = pd.DataFrame({"t": t, "y": np.where(lost, np.nan, y)})
    model = MissCNF("t -> y", "linear", progress=False).fit(df)
    found = model.sensitivity("y", **ARMS, ratio={"do": [1, 4]}).to_frame()
    p = df.loc[df["t"] == 1, "y"].mean()
    share = df.loc[df["t"] == 1, "y"].isna().mean()
    raised = 4 * p / (1 - p) / (1 + 4 * p / (1 - p))
    assert found["mean"].to_numpy() == pytest.approx(
        [p, (1 - share) * p + share * raised], abs=1e-3
    )
    assert found["estimate"].iloc[1] - found["estimate"].iloc[0] == pytest.approx(
        share * (raised - p), abs=1e-3
    )
    with pytest.raises(InputError, match="whose odds are multiplied; ask for ratio="):
        model.sensitivity("y", **ARMS, shift=[1])


def test_odds_where_a_level_drives_its_own_loss():
    """p(level | lost) by Bayes' rule, its odds multiplied, put together again."""
    chance, lost = np.array([[0.2, 0.5, 0.3]]), np.array([[0.1, 0.4, 0.6]])
    found = Shift(times=2.0).of_chances(chance * (1 - lost), chance * lost, event=2)
    given = (chance * lost / (chance * lost).sum())[0]
    odds = 2 * given[2] / (1 - given[2])
    raised = odds / (1 + odds)
    others = given[:2] / given[:2].sum() * (1 - raised)
    expected = (chance * (1 - lost))[0] + (chance * lost).sum() * np.array([*others, raised])
    assert found[0] == pytest.approx(expected, abs=1e-12)


def line(lower, upper):
    """A result with these ends at shifts 0, 1, 2, …"""
    ends = list(zip(lower, upper, strict=True))
    effects = [
        Effect("y", {"t": 1}, {"t": 0}, sum(end) / 2, 0.0, 0.0, 0.0, 9, interval=end, level=0.95)
        for end in ends
    ]
    points = tuple((float(i),) for i in range(len(ends)))
    return Sensitivity("y", "shift", ("shift",), points, tuple(effects), "lost values of y")


def test_the_tipping_point_is_interpolated():
    found = line([-3.0, -2.5, -2.0], [-1.0, -0.25, 0.5])
    assert found.tipping_point == pytest.approx(1 + 0.25 / 0.75)
    assert "meets zero at a shift of 1.33" in str(found)
    assert "higher by 1.33" in found.told
    axes = found.plot()
    assert [text.get_text() for text in axes.texts] == ["tips at 1.33"]
    other = line([0.5, 0.4], [1.0, 1.0])
    assert other.tipping_point is None
    assert "at every shift from 0 to 1" in other.told
    assert line([0.5], [1.0]).told.endswith("leaves zero out at the one shift, 0.")
    assert "holds zero already" in line([-1.0, 0.5], [1.0, 1.0]).told


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"strength": ["strong"]}, "strength is numbers"),
        ({"strength": "1"}, "strength is numbers"),
        ({"strength": [np.nan]}, "strength is numbers"),
        ({"strength": []}, "strength is numbers"),
        ({"ratio": [0.0]}, "ratio is positive numbers"),
        ({"strength": {"do": [1]}}, "strength is a list of numbers"),
        ({"shift": {"drug": [1]}}, "or {'do': …, 'versus': …}"),
        ({}, "along one of strength=, shift= and ratio=; got none"),
        ({"strength": [0], "shift": [0]}, "got strength and shift"),
        ({"strength": [0], "loss": "x"}, "no cell of 'x' is lost"),
        ({"strength": [0], "loss": "z"}, "'z'"),
        ({"strength": [0], "loss": ["y"]}, "loss is one column"),
        ({"shift": [0], "loss": "x"}, "a shift is of lost values of the outcome 'y'"),
        ({"strength": [0], "do": {}}, "needs an intervention"),
    ],
)
def test_bad_questions_are_refused(model, given, sentence):
    with pytest.raises(InputError) as refused:
        model.sensitivity("y", **{**ARMS, **given})
    assert sentence in str(refused.value)


@pytest.mark.slow
def test_networks_are_trained_on_along_the_path():
    """The mean of y under t = 1 is one; of the rows that show y it is lower."""
    rng = np.random.default_rng(0)
    x, t = rng.normal(size=800), rng.integers(0, 2, 800)
    y = t + 1.5 * np.sin(2.5 * x) + 0.5 * rng.normal(size=800)
    df = pd.DataFrame({"x": x, "t": t, "y": np.where(rng.random(800) < expit(y), np.nan, y)})
    few = {"selection.curves": False, "epochs": 10}
    model = MissCNF("x, t -> y", settings=few, progress=False).fit(df)
    assert "network" in str(model.forms_["y"])
    strengths = [0.0, df["y"].std()]
    means = model.sensitivity("y", **ARMS, strength=strengths, interval=None).to_frame()["mean"]
    assert means[1] > means[0] + 0.03
    assert abs(means[1] - 1.0) < 0.15


def test_doubts_are_told():
    found = line([-3.0, -2.5], [-1.0, -0.25])
    first = replace(found.effects[0], doubts=("few rows.",))
    told = replace(found, effects=(first, *found.effects[1:]), notes=("beyond.",))
    assert told.cautions == ("beyond.", "few rows.")
    assert "But few rows." in str(told)


def test_a_saved_model_asks_for_its_table(model, df, tmp_path):
    model.save(tmp_path / "model")
    again = MissCNF.load(tmp_path / "model")
    with pytest.raises(InputError, match="needs the table of the fit"):
        again.sensitivity("y", **ARMS, shift=[0])
    found = again.sensitivity("y", **ARMS, shift=[0, 1], data=df, interval=None)
    own = model.sensitivity("y", **ARMS, shift=[0, 1], interval=None)
    pd.testing.assert_frame_equal(found.to_frame(), own.to_frame())


def test_a_held_slope_is_no_parameter():
    """It starts as the line that it holds a slope of, and adds the strength times a deviation."""
    count = Count(location=3.0, scale=2.0, has_zero=True)
    whole = Ordinal([Continuous(), count, Binary(0.5, 0.5)]).double()
    with torch.no_grad():
        whole.location.weight.copy_(torch.tensor([[0.3, 1.0, 7.0, -0.4]]))
        whole.location.bias.fill_(0.2)
    law = HeldSlope(whole.parents, 1, 0.8).double().requires_grad_(requires_grad=False)
    law.start_from(whole)
    parents = torch.tensor([[0.5, 4.0, 1.0]], dtype=torch.float64)
    logit = 0.2 + 0.3 * 0.5 + 0.8 * (4.0 - 3.0) / 2.0 - 0.4 * (1.0 - 0.5) / 0.5
    found = law.log_prob(torch.ones(1, dtype=torch.float64), parents).exp()
    assert float(found) == pytest.approx(expit(logit), abs=1e-12)
    assert sum(part.numel() for part in law.parameters()) == 3
    assert HeldSlope(**law.spec()).strength == 0.8


TRIAL = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "antidepressant.csv"


@pytest.mark.skipif(not TRIAL.exists(), reason="the trial's table is not in this repository")
def test_the_published_tipping_point_of_a_trial():
    """Published: −2.79, −2.55, −2.31 at 0, 1, 2 on the drug arm, by imputation and ANCOVA; tip at
    2.27. With 1,000 replicates the tip has a Monte-Carlo error of about 0.2 by itself."""
    long = pd.read_csv(TRIAL)
    wide = long.pivot(index="PATIENT", columns="VISIT", values="change")
    wide.columns = [f"change{visit:.0f}" for visit in wide.columns]
    df = long.groupby("PATIENT")[["basval", "THERAPY"]].first().join(wide)
    columns = list(df)
    graph = "; ".join(f"{', '.join(columns[:i])} -> {columns[i]}" for i in range(2, len(columns)))
    model = MissCNF(graph, "linear", progress=False).fit(df.reset_index(drop=True))
    arms = {"do": {"THERAPY": "DRUG"}, "versus": {"THERAPY": "PLACEBO"}}
    asked = {"shift": {"do": [0, 1, 2, 3]}, "replicates": 1000}
    found = model.sensitivity("change7", **arms, **asked)
    estimates = found.to_frame()["estimate"].to_numpy()
    assert estimates[:3] == pytest.approx([-2.79, -2.55, -2.31], abs=0.1)
    assert found.tipping_point == pytest.approx(2.27, abs=0.3)
