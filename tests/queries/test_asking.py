"""Effects in groups, on the treated and along a dose, and their intervals."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch

from misscnf import InputError, MissCNF
from misscnf.queries.asking import Asked

ROWS = 600
EFFECT = {"do": {"t": 1}, "versus": {"t": 0}}


def people(rows=ROWS, seed=0):
    """Older people are treated more often, and the treatment does more for them."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 10, rows)
    t = (rng.logistic(size=rows) < (age - 50) / 10).astype(int)
    y = 1.0 + 0.05 * age + 2.0 * t + rng.normal(size=rows)
    z = (rng.logistic(size=rows) < y - 4).astype(int)
    df = pd.DataFrame({"age": age, "t": t, "y": y, "z": z})
    df["ward"] = np.where(rng.random(rows) < 0.5, "A", np.where(y > 4, "B", "C"))
    for name in ("age", "y"):
        df.loc[rng.random(rows) < 0.2, name] = np.nan
    return df


GRAPH = "age -> t; age -> y; t -> y; y -> z; y -> ward"


@pytest.fixture(scope="module")
def model():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield MissCNF(GRAPH, "linear", progress=False).fit(people())
    torch.set_default_dtype(before)


@pytest.fixture(scope="module")
def interacting(model):
    """The same, with an effect of exactly (age − 40) / 10 on y, so that groups differ."""
    other = MissCNF(GRAPH, "linear", progress=False).fit(people())
    y = other.model_.mechanism(other.graph_.index("y"))
    unit = other.schema_.columns[other.graph_.index("y")].unit
    ages = other.schema_.columns[other.graph_.index("age")]
    plain = y.generate

    def generate(u, parents):
        age = torch.from_numpy(ages.decode(parents[..., 0].numpy()))
        own = plain(u, torch.stack([parents[..., 0], torch.zeros_like(age)], -1))
        return own + parents[..., 1] * (age - 40) / 10 / unit.scale

    y.generate = generate
    return other


@pytest.mark.slow
def test_a_group_is_decided_before_any_intervention(interacting):
    """E[(age − 40) / 10] in all, above 50, and among those who take t by themselves."""
    sample = interacting.sample(100_000, seed=3)
    wanted = (sample.age - 40) / 10
    everyone = interacting.effect("y", **EFFECT).estimate
    assert everyone == pytest.approx(wanted.mean(), abs=0.02)
    old = interacting.effect("y", **EFFECT, where="age > 50")
    assert old.estimate == pytest.approx(wanted[sample.age > 50].mean(), abs=0.02)
    assert old.group == "where age > 50"
    assert old.draws < 100_000
    treated = interacting.effect("y", **EFFECT, treated=True)
    assert treated.estimate == pytest.approx(wanted[sample.t == 1].mean(), abs=0.02)
    assert treated.estimate > everyone + 0.2
    both = interacting.effect("y", **EFFECT, treated=True, where=lambda df: df.age <= 50)
    young = wanted[(sample.t == 1) & (sample.age <= 50)].mean()
    assert both.estimate == pytest.approx(young, abs=0.02)
    assert both.group == "where the function holds, on those with t = 1"


def test_a_group_may_depend_on_what_the_treatment_changes(interacting):
    """Units with a high natural y: a counterfactual group; both arms keep its members."""
    high = interacting.effect("y", do={"t": 0}, versus=None, where="y > 6 and t == 0")
    assert high.estimate == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("age >", "cannot be read as an expression"),
        ("weight > 3", "reads 'weight', and the graph has no node"),
        ("t > 'a'", "cannot be worked out"),
        ("age > 10**10**10", "no unit of"),
        ("bernoulli(0.5)", "does not say yes or no"),
        ("age + 1", "does not say yes or no"),
        ("age > 1000", "no unit of"),
        ("ward == 'D'", "'ward' is one of the levels 'A', 'B', 'C', and never 'D'"),
        ("age > 50 and t in (0, 2)", "'t' is one of the levels 0, 1, and never 2"),
        ("@model > 1", "cannot be read as an expression"),
        ("age.max() > 1", "which an expression cannot have"),
    ],
)
def test_conditions_that_are_none(model, where, sentence):
    with pytest.raises(InputError, match=sentence):
        model.effect("y", **EFFECT, where=where)


def test_no_effect_by_construction_is_said(model):
    found = model.effect("age", {"t": 1}, {"t": 0}, draws=100)
    assert found.estimate == 0.0
    assert "no way from t to age: there is no effect by construction" in str(found)
    assert model.effect("y", {"t": 1, "z": 1}, draws=100).notes == ()


def test_the_treated_need_levels(model):
    with pytest.raises(InputError, match="'age' is continuous; use where="):
        model.effect("y", do={"age": 60}, treated=True)


def test_one_value_a_unit_stays_with_its_unit(model):
    """An array of clamps, cut down to the group and to the units of replicates."""
    half = np.arange(20_000) % 2
    slope = model.effect("y", **EFFECT).estimate
    whole = model.effect("y", {"t": half}, {"t": 0}, draws=20_000)
    assert whole.estimate == pytest.approx(slope / 2, abs=1e-9)
    some = model.effect(
        "y", {"t": half}, {"t": 0}, where="t == 1", draws=20_000, interval=0.9, replicates=5
    )
    assert some.estimate == pytest.approx(slope / 2, rel=0.05)
    assert some.interval[0] < slope / 2 < some.interval[1]


def test_a_curve_is_its_effects(model):
    values = [40.0, 50.0, 65.0]
    curve = model.curve("y", "age", values, versus={"age": 50}, interval=0.9, replicates=8)
    for value, row in zip(values, curve.itertuples(), strict=True):
        effect = model.effect(
            "y", {"age": value}, {"age": 50}, interval=0.9, replicates=8, draws=20_000
        )
        assert row.age == value
        assert row.estimate == pytest.approx(effect.estimate, abs=1e-9)
        assert row.mean == pytest.approx(effect.mean)
        assert (row.lower, row.upper) == pytest.approx(effect.interval, abs=1e-9)
        assert row.mean_lower < row.mean < row.mean_upper
    assert curve.estimate[1] == 0.0


@pytest.mark.slow
def test_a_curve_of_risks(model):
    curve = model.curve("ward", "t", [0, 1], event="B")
    assert curve["mean"].between(0, 1).all()
    assert curve["mean"][1] > curve["mean"][0]
    levels = model.curve("ward", "t", [0, 1], interval=0.9)
    assert levels.level.tolist() == ["A", "B", "C"] * 2
    assert levels.t.tolist() == [0, 0, 0, 1, 1, 1]
    assert levels.groupby("t")["mean"].sum().tolist() == pytest.approx([1.0, 1.0])
    assert levels["mean"][4] == pytest.approx(curve["mean"][1])
    assert (levels.lower < levels.upper).all()
    with pytest.raises(InputError, match="needs values"):
        model.curve("y", "t", [])


@pytest.mark.slow
def test_intervals_of_every_measure(model):
    effect = model.effect("z", **EFFECT, interval=0.95)
    assert effect.level == 0.95
    assert effect.replicates == 100
    for estimate, interval in (
        (effect.estimate, effect.interval),
        (effect.risk_ratio, effect.risk_ratio_interval),
        (effect.odds_ratio, effect.odds_ratio_interval),
    ):
        assert interval[0] < estimate < interval[1]
    assert effect.odds_ratio_interval[0] > 0
    assert "95 % interval" in str(effect)
    ward = model.effect("ward", **EFFECT, interval=0.95)
    assert (ward.probabilities.lower < ward.probabilities.difference).all()
    assert (ward.probabilities.upper > ward.probabilities.difference).all()
    assert ward.interval is None


def test_a_higher_level_is_wider_and_the_estimate_stays(model):
    narrow, wide = (model.effect("y", **EFFECT, interval=level) for level in (0.5, 0.99))
    assert narrow.estimate == wide.estimate == model.effect("y", **EFFECT).estimate
    assert wide.interval[0] < narrow.interval[0] < narrow.interval[1] < wide.interval[1]


@pytest.mark.slow
def test_replicates_are_made_once(model, monkeypatch):
    import misscnf.queries.asking as home

    calls = []
    real = home.replicate_fit
    monkeypatch.setattr(home, "replicate_fit", lambda *a, **k: calls.append(1) or real(*a, **k))
    fresh = MissCNF(GRAPH, "linear", progress=False).fit(people(300))
    first = fresh.effect("y", **EFFECT, interval=0.9, replicates=6)
    again = fresh.effect("y", **EFFECT, interval=0.9, replicates=6, data=people(300))
    assert len(calls) == 1
    assert first.interval == again.interval
    fresh.effect("y", **EFFECT, interval=0.9, replicates=7)
    assert len(calls) == 2


def test_a_loaded_model_asks_for_its_table_once(tmp_path):
    fresh = MissCNF(GRAPH, "linear", progress=False).fit(people())
    fresh.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    with pytest.raises(InputError, match="needs the table of the fit"):
        loaded.effect("y", **EFFECT, interval=0.95)
    effect = loaded.effect("y", **EFFECT, interval=0.95, data=people())
    assert effect.interval == pytest.approx(fresh.effect("y", **EFFECT, interval=0.95).interval)
    rows = loaded.effect("y", **EFFECT, population="rows", draws=1200)
    assert rows.estimate == fresh.effect("y", **EFFECT, population="rows", draws=1200).estimate


def test_another_table_than_that_of_the_fit_is_told(tmp_path, caplog):
    fresh = MissCNF(GRAPH, "linear", progress=False).fit(people())
    fresh.effect("y", **EFFECT, interval=0.95, data=people(300), replicates=6)
    assert "not the one that the model was fitted to" in caplog.text


def test_a_group_is_refused_before_any_replicate(monkeypatch):
    fresh = MissCNF(GRAPH, "linear", progress=False).fit(people())
    monkeypatch.setattr(
        "misscnf.queries.asking.replicate_fit", lambda *a, **k: pytest.fail("replicates were made")
    )
    for where, why in {
        "age >": "cannot be read",
        "t = 1": "two of them compare: 't == 1'",
        "weight > 3": "no node 'weight'",
        "ward > 3": "cannot be worked out",
        "age + 1": "does not say yes or no",
        "age > 500": "no unit of",
        ("age > 3",): "not of type tuple; join several",
        1: "not of type int",
    }.items():
        with pytest.raises(InputError, match=why):
            fresh.effect("y", **EFFECT, where=where, interval=0.95)
    with pytest.raises(InputError, match="not of type list; join several with `and`"):
        fresh.effect("y", **EFFECT, where=["age > 3"])


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.2, "much"])
def test_levels_that_are_none(model, level):
    with pytest.raises(InputError, match="interval is a level"):
        model.effect("y", **EFFECT, interval=level)


def test_few_replicates_are_refused(model):
    with pytest.raises(InputError, match="replicates is a whole number of at least 5"):
        model.effect("y", **EFFECT, interval=0.95, replicates=4)


@pytest.mark.slow
def test_on_complete_rows_the_interval_is_that_of_a_robust_regression():
    """The spread of 400 replicates has a standard error of 3.5 %; 15 % is more than 4 of them."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 300))
    df = pd.DataFrame({"a": a, "b": b, "y": 2 * a - b + (0.5 + np.abs(a)) * rng.normal(size=300)})
    fit = MissCNF("a -> y; b -> y", "linear", progress=False).fit(df)
    effect = fit.effect("y", {"a": 1}, {"a": 0}, interval=0.95, draws=100, replicates=400)
    design = sm.add_constant(df[["a", "b"]])
    robust = sm.OLS(df.y, design).fit(cov_type="HC0")
    lower, upper = robust.conf_int().loc["a"]
    assert effect.estimate == pytest.approx(robust.params["a"], abs=1e-6)
    assert effect.interval[1] - effect.interval[0] == pytest.approx(upper - lower, rel=0.15)
    assert (upper - lower) > 1.3 * np.ptp(sm.OLS(df.y, design).fit().conf_int().loc["a"])


@pytest.mark.slow
def test_proper_imputations_differ_by_what_the_fit_does_not_know_too():
    """The mean of a column of which half is lost at random: 100 rows, so its law is uncertain.

    Of 200 completed tables, the variance of the mean is σ²/n · (n_lost/n) by the draws alone, and
    about twice that with the fit's own uncertainty (n_lost = n_seen). A ratio of two variances of
    200 has a standard error of 14 %; 1.5 is three of them below 2 and above 1.
    """
    rng = np.random.default_rng(3)
    df = pd.DataFrame({"a": rng.normal(size=100), "b": rng.normal(size=100)})
    df.loc[::2, "b"] = np.nan
    fit = MissCNF("a -> b", "linear", progress=False).fit(df)
    spread = [
        fit.impute(df, 200, proper=proper).groupby(level="draw")["b"].mean().var()
        for proper in (False, True)
    ]
    assert spread[1] / spread[0] > 1.5
    proper = fit.impute(df, 3, proper=True)
    for draw in range(3):
        seen = proper.loc[draw].b[df.b.notna().to_numpy()]
        assert (seen.to_numpy() == df.b.dropna().to_numpy()).all()
    pd.testing.assert_frame_equal(proper, fit.impute(df, 3, proper=True))
    assert not proper.loc[0].equals(proper.loc[1])


def test_units_are_swept_as_far_as_a_question_needs_and_then_on(model):
    """What is swept for one question, and added for the next, is what one sweep makes."""
    asked, fit = Asked(model.model_), model.model_
    noise = model._noise(50, 3, "effect")
    whole, few = fit.generate(noise), fit.graph.ancestral_closure([1])
    first = asked.natural(noise, few)
    assert torch.equal(first[:, sorted(few)], whole[:, sorted(few)])
    assert len(few) == len(fit.graph) or bool(first.isnan().any())
    assert torch.equal(asked.natural(noise), whole)
    kept = asked.natural(noise)
    assert asked.natural(noise[:20]).data_ptr() == kept.data_ptr()  # the first of the same units
    assert torch.equal(asked.natural(noise + 1.0), fit.generate(noise + 1.0))


def test_fewer_units_are_the_first_of_more(model):
    assert torch.equal(model._units(30, 0), model._units(100_000, 0)[:30])
