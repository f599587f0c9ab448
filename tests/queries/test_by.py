"""Groups by a column, arms, one arm alone, and what stands beside an answer."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from misscnf import MissCNF
from misscnf.data.codecs import Continuous
from misscnf.data.scales import Unit
from misscnf.errors import InputError
from misscnf.queries.effects import contrast
from misscnf.queries.groups import split

ON_TREATMENT = {"do": {"treated": 1}, "versus": {"treated": 0}}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    sex, treated = rng.choice(["f", "m"], 500), rng.integers(0, 2, 500)
    age = rng.normal(50.0, 10.0, 500)
    y = 0.5 * treated + 0.8 * treated * (sex == "m") + 0.02 * age + rng.normal(size=500)
    y[rng.random(500) < 0.1] = np.nan
    return pd.DataFrame({"sex": sex, "age": age, "treated": treated, "y": y})


@pytest.fixture(scope="module")
def model(table):
    return MissCNF("sex, age, treated -> y", progress=False).fit(table)


@pytest.fixture(scope="module")
def linear(table):
    return MissCNF("sex, age, treated -> y", "linear", progress=False).fit(table)


def test_every_group_has_its_effect_and_the_difference_has_an_interval(model):
    found = model.effect("y", **ON_TREATMENT, by="sex", interval=0.95)
    female, male = found.groups.effects.values()
    alone = model.effect("y", **ON_TREATMENT, where="sex == 'm'", interval=0.95)
    assert list(found.groups.effects) == ["f", "m"]
    assert male.estimate == alone.estimate
    assert male.interval == alone.interval
    (apart,) = found.groups.differences
    assert apart.estimate == pytest.approx(male.estimate - female.estimate)
    assert apart.interval[0] < 0.8 < apart.interval[1]
    # two independent groups: the variance of their difference is the sum of theirs
    half = [(ends[1] - ends[0]) / 2 for ends in (apart.interval, female.interval, male.interval)]
    assert half[0] == pytest.approx(math.hypot(*half[1:]), rel=0.25)
    text = str(found)
    assert "m against f: differs by" in text
    assert "sex m: mean " in text
    assert found.groups.to_dict()["groups"][1]["difference"] == apart.estimate


def test_numbers_are_split_at_their_median_within_a_group(model):
    found = model.effect("y", **ON_TREATMENT, by="age", where="sex == 'f'", draws=20_000)
    below, above = found.groups.effects.values()
    assert below.draws == pytest.approx(above.draws, rel=0.1)
    assert "or less" in next(iter(found.groups.effects))
    assert all("sex == 'f'" in effect.group for effect in (below, above))
    older = model.effect("y", **ON_TREATMENT, by="age", where="age > 60", draws=20_000)
    below, above = older.groups.effects.values()
    assert below.draws == pytest.approx(above.draws, rel=0.1)
    with pytest.raises(InputError, match="'sex' makes no groups to compare"):
        model.effect("y", **ON_TREATMENT, by="sex", where="sex == 'f'")


def test_a_line_says_that_its_groups_are_equal_by_construction(linear, model):
    found = linear.effect("y", **ON_TREATMENT, by="sex", interval=0.95)
    assert any(note.startswith("equal by construction") for note in found.notes)
    assert "equal by construction" in str(found)
    assert found.groups.differences[0].interval is None
    assert linear.effect("y", **ON_TREATMENT, where="age > 60").equal_groups
    assert not linear.effect("y", **ON_TREATMENT).notes
    assert not model.effect("y", **ON_TREATMENT, where="age > 60").equal_groups


def test_the_treated_are_a_group_by_what_causes_the_treatment(table, linear):
    confounded = MissCNF("age -> treated; sex, age, treated -> y", "linear", progress=False)
    found = confounded.fit(table).effect("y", **ON_TREATMENT, treated=True)
    assert found.equal_groups
    assert "no interaction of treated with its causes on y" in str(found)
    by_chance = linear.effect("y", **ON_TREATMENT, treated=True)  # nothing causes it there
    assert not by_chance.equal_groups


def test_without_an_intervention_the_mean_is_that_of_the_outcome(model, linear, table):
    """The outcome is lost at random, so that the rows that show it have the same mean; five
    standard errors."""
    found = linear.effect("y", interval=0.95)
    seen = table["y"].dropna()
    error = seen.std() / math.sqrt(len(seen))
    assert found.estimate == pytest.approx(seen.mean(), abs=error)
    assert (found.interval[1] - found.interval[0]) / 3.92 == pytest.approx(error, rel=0.3)
    assert str(found).startswith("y without intervention: mean ")
    assert found.mean_versus is None
    men = model.effect("sex", event="m")
    assert men.estimate == pytest.approx((table["sex"] == "m").mean(), abs=0.01)
    assert "risk of sex = m: " in str(men)


def test_arms_are_told_with_their_intervals(model):
    found = model.effect("y", **ON_TREATMENT, interval=0.95)
    assert found.mean_interval[0] < found.mean < found.mean_interval[1]
    assert f"mean {found.mean:.2f} ({found.mean_interval[0]:.2f} to" in str(found)


def test_an_error_of_rounding_is_not_told(linear):
    alone = linear.effect("y", **ON_TREATMENT)
    null = replace(alone, estimate=1e-17, standard_error=3.8e-17, mean=1.0, mean_versus=1.0)
    for found in (alone, null):
        assert "Monte-Carlo" not in str(found)
        assert "Monte-Carlo" not in found._repr_html_()
    drawn = replace(alone, standard_error=0.01, risk_ratio=1.2, risk_ratio_error=0.3)
    assert "(Monte-Carlo standard error 0.01), risk ratio 1.2\n" in str(drawn)  # of the difference
    assert "1.2 (Monte-Carlo error 0.3)" in drawn._repr_html_()


def test_plain_estimates_are_those_of_a_regression(model, table):
    found = model.effect("y", **ON_TREATMENT, interval=0.95)
    crude, complete = model.plain_estimates(found)
    shown = table.dropna()
    arms = [shown.y[shown.treated == arm] for arm in (1, 0)]
    assert crude.estimate == pytest.approx(arms[0].mean() - arms[1].mean())
    design = sm.add_constant(
        pd.DataFrame({"t": shown.treated, "m": shown.sex == "m", "age": shown.age}).astype(float)
    )
    fit = sm.OLS(shown.y, design).fit(cov_type="HC1")
    assert complete.estimate == pytest.approx(fit.params["t"])
    assert complete.interval == pytest.approx(tuple(fit.conf_int().loc["t"]))
    assert complete.rows == len(shown)
    assert model.plain_estimates(model.effect("y", do={"age": "age + 1"})) == []


def test_the_crude_estimate_of_a_number_is_the_slope_of_all_rows(model, table):
    """Few rows, or none, have just the two values that are compared."""
    crude = model.plain_estimates(model.effect("y", do={"age": 61.5}, versus={"age": 60.0}))[0]
    shown = table[["age", "y"]].dropna()
    fit = sm.OLS(shown.y, sm.add_constant(shown.age)).fit(cov_type="HC1")
    assert crude.rows == len(shown)
    assert crude.estimate == pytest.approx(1.5 * fit.params["age"])
    assert crude.interval == pytest.approx(tuple(1.5 * fit.conf_int().loc["age"]))
    assert "the treatment alone" in str(crude)


def test_e_values_are_those_of_the_paper():
    """VanderWeele and Ding 2017: a risk ratio of 3.9 (1.8 to 8.7) has 7.26 and 3.0."""
    column = Continuous("y", Unit(0.0, 1.0))
    arms = np.array([1.0, 3.0]), np.array([0.0, 2.0])
    found = contrast(column, {"t": 1}, {"t": 0}, arms)
    ratio = math.exp(0.91 * 1.0 / 1.0)
    assert found.e_values()[0] == pytest.approx(ratio + math.sqrt(ratio * (ratio - 1.0)))
    smoking = type(found)(**{**vars(found), "risk_ratio": 3.9, "risk_ratio_interval": (1.8, 8.7)})
    assert smoking.e_values() == pytest.approx((7.26, 3.0), abs=0.01)
    nothing = type(found)(**{**vars(smoking), "risk_ratio_interval": (0.9, 8.7)})
    assert nothing.e_values()[1] == 1.0


def test_a_column_without_groups_is_refused(model):
    with pytest.raises(InputError, match="nosuch"):
        model.effect("y", **ON_TREATMENT, by="nosuch")
    for several in (["sex", "age"], [], 3):
        with pytest.raises(InputError, match="by is the name of one column"):
            model.effect("y", **ON_TREATMENT, by=several)
    assert split(Continuous("y", Unit(0.0, 1.0)), np.zeros(9), 4, 0.1) == []


def test_groups_of_large_numbers_are_written_out():
    income = np.random.default_rng(0).normal(14_000.0, 4_000.0, 500)
    below, above = split(Continuous("income", Unit(0.0, 1.0)), income, 4, 0.1)
    assert (below.label, above.label) == ("13800 or less", "above 13800")


def test_groups_without_events_differ_by_intervals_that_know_it():
    """Nobody in an arm of a group has the event: its replicates hardly differ, its risk may."""
    sex, treated, event, times = [*zip(
        ("f", 0, 0, 20), ("f", 1, 0, 16), ("f", 1, 1, 4),
        ("m", 0, 0, 18), ("m", 0, 1, 2), ("m", 1, 0, 12), ("m", 1, 1, 8), strict=True
    )]  # fmt: skip
    columns = {"sex": sex, "treated": treated, "y": event}
    table = pd.DataFrame({name: np.repeat(values, times) for name, values in columns.items()})
    model = MissCNF("sex, treated -> y", progress=False).fit(table)
    found = model.effect("y", **ON_TREATMENT, by="sex", interval=0.95)
    female, male = found.groups.effects.values()
    (apart,) = found.groups.differences
    assert apart.interval[0] > -2.0
    assert apart.interval[1] < 2.0
    # Zou 2008 without correlation is the widest that positive ones leave
    below = math.hypot(male.estimate - male.interval[0], female.interval[1] - female.estimate)
    assert 0.4 * below < apart.estimate - apart.interval[0] < 1.5 * below


def test_means_of_an_ordinal_outcome_are_as_sure_as_the_rows_and_stay_on_the_scale():
    """One row in 300 has the lowest of seven levels: the means of arms hardly care."""
    rng = np.random.default_rng(1)
    treated = rng.integers(0, 2, 300)
    latent = 0.8 * treated + rng.logistic(size=300)
    y = np.array([0, 5, 6, 7, 8, 9, 10])[np.searchsorted([-4.6, -1.5, -0.8, 0, 0.6, 1.4], latent)]
    assert (y == 0).sum() == 1
    table = pd.DataFrame({"treated": treated, "y": y})
    model = MissCNF("treated -> y", "linear", kinds={"y": "ordinal"}, progress=False).fit(table)
    found = model.effect("y", **ON_TREATMENT, interval=0.95)
    assert found.ends == (0.0, 10.0)
    for arm, ends in ((1, found.mean_interval), (0, found.mean_versus_interval)):
        own = y[treated == arm]
        width = 3.92 * own.std(ddof=1) / math.sqrt(len(own))
        assert 0.8 * width < ends[1] - ends[0] < 1.25 * width


def test_a_level_that_is_a_word_is_no_rule_and_a_rule_may_differ_between_groups(table):
    words = table.assign(treated=table["treated"].map({0: "no", 1: "yes"}))
    model = MissCNF("sex, age, treated -> y", "linear", progress=False).fit(words)
    found = model.effect("y", {"treated": "yes"}, {"treated": "no"}, by="sex")
    assert "m against f: equal by construction" in str(found)
    by_age = model.effect("y", {"age": "age + 1"}, by="sex", interval=0.9)
    assert by_age.groups.differences[0].estimate == 0.0  # and not 3e-17, with an interval of these
    assert by_age.groups.differences[0].interval is None
    capped = model.effect("y", {"age": "min(age, 40)"}, by="age")
    assert not capped.equal_groups
    assert capped.groups.differences[0].estimate != 0.0
