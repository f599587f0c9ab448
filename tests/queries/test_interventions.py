"""Policies through the front door: every form that `do=` takes, in every verb, and refusals."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from misscnf import Draw, InputError, MissCNF


def people(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 10, rows)
    t = (rng.logistic(size=rows) < (age - 50) / 10).astype(int)
    dose = 2 + 0.02 * age + 0.5 * rng.normal(size=rows)
    ward = rng.choice(["east", "north", "west"], rows)
    visits = rng.poisson(np.exp(0.02 * age))
    y = 0.05 * age + 2 * t + dose + (ward == "east") + 0.2 * visits + rng.normal(size=rows)
    z = (rng.logistic(size=rows) < y - 9).astype(int)
    pressure = 80 + age + 5 * rng.normal(size=rows)
    df = pd.DataFrame({"age": age, "t": t, "dose": dose, "ward": ward, "visits": visits})
    df["y"], df["z"], df["blood pressure"] = y, z, pressure
    for name in ("age", "y", "t", "ward"):
        df[name] = df[name].where(rng.random(rows) > 0.2)
    return df


@pytest.fixture(scope="module")
def df():
    return people()


@pytest.fixture(scope="module")
def model(df):
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    edges = [
        ("age", "t"), ("age", "dose"), ("age", "y"), ("t", "y"), ("dose", "y"), ("ward", "y"),
        ("age", "visits"), ("visits", "y"), ("y", "z"), ("age", "blood pressure"),
    ]  # fmt: skip
    yield MissCNF(edges, "linear", progress=False).fit(df)
    torch.set_default_dtype(before)


def slope(model, name):
    return model.effect("y", {name: 1}, {name: 0}, draws=10).estimate


SAME = {
    "a shift": ("dose", lambda dose: dose + 1, lambda any_name: any_name + 1, "dose + 1"),
    "a cap": ("dose", lambda dose: np.minimum(dose, 2), lambda d: d.clip(upper=2), "min(dose, 2)"),
    "a threshold": ("t", lambda age: age > 60, lambda age: (age > 60) * 1.0, "age > 60"),
    "a dynamic rule": (
        "dose",
        lambda dose, age: dose + 0.1 * age,
        lambda *, age, dose: dose + 0.1 * age,
        "dose + 0.1 * age",
    ),
    "a rule of labels": (
        "ward",
        lambda ward, age: ward.where(age > 50, "west"),
        lambda age, ward: np.where(age > 50, ward, "west"),
        "ward if age > 50 else 'west'",
    ),
    "a later column": ("dose", lambda visits: 1.0 * visits, None, "visits"),
    "a name that is no word": ("dose", None, None, "`blood pressure` / 50"),
    "a count": ("visits", lambda visits: visits + 2, None, "visits + 2"),
    "a constant": ("dose", lambda: 3.0, 3.0, "1 + 2"),
    "settings of a function": ("dose", lambda dose, k=1: dose + k, np.positive, "dose + 1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SAME)
def test_a_rule_is_the_same_however_it_is_written(model, df, name):
    column, *ways = SAME[name]
    ways = [way for way in ways if way is not None and way is not np.positive]
    first, *others = [
        (
            model.sample(40, do={column: way}, seed=2),
            model.counterfactual(df.head(30), do={column: way}, draws=2, seed=1),
            model.effect("y", {column: way}, draws=500).estimate,
            model.log_prob(df.head(8), do={column: way}),
            model.sample(2, given=df.head(8), do={column: way}),
        )
        for way in ways
    ]
    for other in others:
        for one, two in zip(first, other, strict=True):
            if isinstance(one, float):
                assert one == two
            elif isinstance(one, pd.Series):
                pd.testing.assert_series_equal(one, two)
            else:
                pd.testing.assert_frame_equal(one, two)


@pytest.mark.slow
def test_effects_of_rules_have_closed_forms_in_a_linear_model(model):
    """E[Y | do(dose + 1)] − E[Y] is the slope; a rule of age has what it gives away on average."""
    plain = model.sample(20_000, seed=0)
    shift = model.effect("y", {"dose": lambda dose: dose + 1})
    assert shift.estimate == pytest.approx(slope(model, "dose"), abs=1e-9)
    assert str(shift).startswith("effect on y of do(dose = dose + 1) versus no intervention")
    cap = model.effect("y", {"dose": "min(dose, 3)"}, draws=20_000)
    lost = (plain.dose - plain.dose.clip(upper=3)).mean()
    assert cap.estimate == pytest.approx(-slope(model, "dose") * lost, rel=0.05)
    assert "do(dose = 'min(dose, 3)')" in str(cap)
    rule = model.effect("y", {"t": "age > 60"}, {"t": 0}, draws=20_000)
    assert rule.estimate == pytest.approx(slope(model, "t") * (plain.age > 60).mean(), rel=0.05)
    assert model.effect("y", {"t": "age > 60"}, {"t": lambda age: age > 60}).estimate == 0.0


def test_rules_read_the_intervened_world(model):
    """age is moved first, the rule for t and the natural dose follow it."""
    drawn = model.sample(200, do={"age": 70.0, "t": "age > 60", "dose": "dose + 1"}, seed=1)
    moved = model.sample(200, do={"age": 70.0}, seed=1)
    assert (drawn.t == 1).all()
    np.testing.assert_allclose(drawn.dose, moved.dose + 1)


def test_where_and_treated_are_decided_without_the_policy(model):
    natural = model.sample(20_000, seed=5)
    old = model.effect("y", {"t": "age > 60"}, {"t": 0}, where="age > 60")
    assert old.estimate == pytest.approx(slope(model, "t"), abs=1e-9)
    follow = model.effect("y", {"t": "age > 50"}, {"t": 0}, treated=True, draws=20_000)
    agree = natural[natural.t == (natural.age > 50)]
    assert follow.draws / 20_000 == pytest.approx(len(agree) / len(natural), abs=0.02)
    share = (agree.t == 1).mean()
    assert follow.estimate == pytest.approx(slope(model, "t") * share, rel=0.05)
    assert follow.group == "on those with t = 'age > 50'"
    by_chance = model.effect("y", {"t": Draw(0.5)}, treated=True, draws=20_000)
    assert by_chance.estimate == pytest.approx(0.0, abs=1e-12)  # they take it by themselves
    with pytest.raises(InputError, match="'dose' is continuous; use where="):
        model.effect("y", {"dose": "dose + 1"}, treated=True)


@pytest.mark.slow
def test_a_curve_takes_further_policies_and_policies_along_it(model):
    curve = model.curve("y", "dose", [2.0, "dose + 1"], do={"t": "age > 60"}, draws=2000)
    again = model.effect("y", {"dose": "dose + 1", "t": "age > 60"}, draws=2000)
    assert curve["mean"][1] == pytest.approx(again.mean)
    with_interval = model.effect("y", {"dose": "dose + 1"}, interval=0.9, replicates=5)
    low, high = with_interval.interval
    assert low < with_interval.estimate < high


DRAWS = {
    "levels": ("ward", Draw({"east": 0.2, "west": 0.8}), "choose('east', 0.2, 'west', 0.8)"),
    "a chance": ("t", Draw(0.3), "bernoulli(0.3)"),
    "a chance by age": (
        "t",
        Draw(lambda age: 1 / (1 + np.exp(-(age - 50)))),
        "bernoulli(1 / (1 + exp(-(age - 50))))",
    ),
    "numbers": ("dose", Draw(stats.norm(3.0, 0.5)), "normal(3, 0.5)"),
    "around the natural value": (
        "dose",
        Draw(lambda dose: stats.norm(dose + 1, 0.2)),
        "normal(dose + 1, 0.2)",
    ),
    "counts": ("visits", Draw(lambda age: stats.poisson(age / 20)), "poisson(age / 20)"),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_is_the_same_as_a_text_and_reproducible(model, df, name):
    column, rule, text = DRAWS[name]
    one, two = (model.sample(400, do={column: way}, seed=3) for way in (rule, text))
    pd.testing.assert_frame_equal(one, two)
    assert not one[column].equals(model.sample(400, do={column: rule}, seed=4)[column])
    effects = [model.effect("y", {column: way}, {column: rule}, draws=50) for way in (rule, text)]
    assert [effect.estimate for effect in effects] == [0.0, 0.0]
    scores = [model.log_prob(df.head(6), do={column: way}) for way in (rule, text)]
    pd.testing.assert_series_equal(*scores)


def test_a_draw_follows_its_law(model, df):
    """Shares and moments of 20,000 units within 4.5 standard errors."""
    wards = model.sample(20_000, do={"ward": Draw({"east": 0.2, "west": 0.8})}).ward
    assert set(wards) == {"east", "west"}
    assert (wards == "east").mean() == pytest.approx(0.2, abs=4.5 * np.sqrt(0.16 / 20_000))
    dose = model.sample(20_000, do={"dose": Draw(stats.norm(3.0, 0.5))}).dose
    assert stats.kstest(dose, stats.norm(3.0, 0.5).cdf).pvalue > 1e-4
    # New noise: in a counterfactual, the draw does not depend on what the row was.
    rows = df.dropna().head(200)
    drawn = model.counterfactual(rows, do={"t": Draw(0.5)}, draws=50)
    shares = drawn.groupby("row").t.mean().to_numpy()
    was = rows.t.to_numpy() == 1
    gap = shares[was].mean() - shares[~was].mean()
    assert abs(gap) < 4.5 * np.sqrt(0.25 / 50 * (1 / was.sum() + 1 / (~was).sum()))
    assert 0.05 < shares.std() < 0.1  # √(0.25 / 50) = 0.071: each draw of each row anew


def test_log_prob_under_a_rule_is_that_of_holding_what_it_says(model, df):
    shown = df[df.age.notna()].head(50)
    ruled = model.log_prob(shown, do={"t": "age > 50"})
    held = model.log_prob(shown, do={"t": (shown.age > 50).astype(int)})
    pd.testing.assert_series_equal(ruled, held, rtol=1e-9)


def test_log_prob_under_a_draw_has_its_density_in_the_users_units(model, df):
    rows = df.dropna().head(20)
    law = stats.norm(3.0, 0.5)
    drawn = model.log_prob(rows, do={"dose": Draw(law)})
    held = model.log_prob(rows, do={"dose": rows.dose})
    np.testing.assert_allclose(drawn, held + law.logpdf(rows.dose), rtol=0, atol=1e-8)
    coin = model.log_prob(rows, do={"t": Draw(0.3)})
    held = model.log_prob(rows, do={"t": rows.t})
    np.testing.assert_allclose(coin, held + np.log(np.where(rows.t == 1, 0.3, 0.7)), atol=1e-8)
    # Hidden, it is a mixture of both arms.
    hidden = rows.assign(t=np.nan)
    arms = [model.log_prob(hidden, do={"t": t}) for t in (0, 1)]
    mixed = np.logaddexp(np.log(0.7) + arms[0], np.log(0.3) + arms[1])
    np.testing.assert_allclose(model.log_prob(hidden, do={"t": Draw(0.3)}), mixed, atol=1e-8)


def test_holes_in_what_a_rule_reads_are_integrated(model, df):
    """p(y; t := age > 50) with age missing, against a large sample's kernel-free average."""
    row = pd.DataFrame({"y": [7.0]})
    found = model.log_prob(row, do={"t": "age > 50"}, quality=True)
    ages = model.sample(4000, seed=9)[["age", "dose", "ward", "visits"]]
    under = ages.assign(y=7.0)
    arms = under.assign(t=(under.age > 50).astype(int))
    parts = model.log_prob(arms, given=["age", "dose", "ward", "visits"], do={"t": arms.t})
    average = np.exp(parts).mean()
    error = np.exp(parts).std() / np.sqrt(4000)
    assert np.exp(found.log_prob[0]) == pytest.approx(average, abs=4.5 * error)
    drawn = model.sample(50, given=df.head(40), do={"t": "age > 50", "dose": "dose + 1"})
    assert ((drawn.t == 1) == (drawn.age > 50)).all()
    assert not drawn.isna().any().any()


def test_check_says_where_a_rule_leads(model, df):
    far = model.check(df, ("dose", "y"), do={"dose": "dose + 100"})
    assert "under do(dose = 'dose + 100')" in far.question
    assert any("extrapolated" in sentence for sentence in far.warnings)
    assert not model.check(df, ("dose", "y"), do={"dose": "dose"}).warnings


def test_what_was_asked_can_be_pickled(model):
    model.effect("y", {"t": 1}, {"t": 0}, interval=0.9, replicates=5, draws=100)
    again = pickle.loads(pickle.dumps(model))
    one, two = (m.effect("y", {"t": "age > 50"}, draws=100) for m in (model, again))
    assert one == two


BAD = {
    "downstream": ({"t": "y > 3"}, "the rule for 't' reads 'y', which is downstream of it"),
    "downstream argument": ({"t": lambda t, z: t}, "'t' reads 'z', which is downstream"),
    "circle": ({"t": "dose > 2", "dose": "1.0 * t"}, "'t' and 'dose' read one another"),
    "unknown column": ({"t": "agee > 3"}, "reads 'agee', and .*did you mean 'age'"),
    "unknown argument": ({"t": lambda t, agee: t}, "reads 'agee', and .*did you mean 'age'"),
    "python's min": ({"dose": lambda dose: min(dose, 2)}, "it gets whole columns, so use numpy"),
    "a frame": ({"dose": lambda d: d["dose"] + 1}, "that its arguments are called like"),
    "what comes back": ({"ward": "'south' if age > 50 else ward"}, "'south'; expected one of"),
    "infinite": ({"dose": "1 / 0 * dose"}, "expression '1 / 0 . dose' .*missing or infinite"),
    "syntax": ({"dose": "dose +"}, "'dose': expected a number.*cannot be read as an expression"),
    "attribute": ({"dose": "dose.real"}, "which an expression cannot have"),
    "sum of chances": ({"ward": Draw({"east": 0.2, "west": 0.9})}, "with a sum of 1"),
    "level of a draw": ({"ward": Draw({"south": 1.0})}, "'south'; expected one of the levels"),
    "chance of a number": ({"dose": Draw(0.3)}, "one probability is for a column with two"),
    "numbers for levels": ({"ward": Draw(stats.norm(0, 1))}, "expected probabilities of"),
    "chance above one": ({"t": Draw(lambda age: age)}, "probabilities that are not at least 0"),
    "rows outside a function": ({"dose": Draw(stats.norm([1, 2], 1))}, "give a function of col"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_policy_is_refused_in_one_sentence(model, name):
    do, words = BAD[name]
    with pytest.raises(InputError, match=words) as caught:
        model.sample(5, do=do)
    assert "\n" not in str(caught.value)


def test_single_numbers_have_no_density(model, df):
    trial = {"dose": Draw({1.0: 0.5, 4.0: 0.5})}
    assert set(model.sample(50, do=trial).dose) == {1.0, 4.0}
    with pytest.raises(InputError, match="single numbers and no density"):
        model.log_prob(df.head(3), do=trial)
