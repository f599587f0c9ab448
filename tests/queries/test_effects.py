"""Effects on the scale of their outcome, against direct counting."""

import numpy as np
import pandas as pd
import pytest

from misscnf.data.codecs import Continuous, Count, Levels
from misscnf.data.scales import Unit
from misscnf.errors import InputError
from misscnf.queries.effects import contrast

DRAWS = 400
DO, VERSUS = {"t": 1}, {"t": 0}


def arms(levels=2, seed=0, draws=DRAWS):
    """Codes of two arms that share part of their noise."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=draws)
    first, second = (shared + 0.5 * rng.normal(size=draws) + shift for shift in (0.8, 0.0))
    cuts = np.linspace(-0.7, 1.2, levels - 1) if levels > 2 else [0.3]
    return np.digitize(first, cuts).astype(float), np.digitize(second, cuts).astype(float)


CURED = Levels("cured", "binary", ("no", "yes"))
STAGE = Levels("stage", "ordinal", ("I", "II", "III"))
SCORE = Levels("score", "ordinal", (0, 1, 10))
WARD = Levels("ward", "categorical", ("A", "B", "C"))


def test_a_binary_outcome_has_risks_by_counting():
    a, b = arms()
    effect = contrast(CURED, DO, VERSUS, (a, b))
    p, q = (a == 1).sum() / DRAWS, (b == 1).sum() / DRAWS
    assert effect.measure == "risk difference"
    assert effect.event == "yes"
    assert effect.estimate == pytest.approx(p - q)
    assert (effect.mean, effect.mean_versus) == (pytest.approx(p), pytest.approx(q))
    assert effect.risk_ratio == pytest.approx(p / q)
    assert effect.odds_ratio == pytest.approx((p / (1 - p)) / (q / (1 - q)))
    assert effect.probabilities.do.tolist() == pytest.approx([1 - p, p])
    assert effect.probabilities.level.tolist() == ["no", "yes"]


@pytest.mark.slow
def test_the_errors_of_ratios_are_their_spread_over_repetitions():
    """2000 repetitions give a spread within 1.6 % (one standard error); 8 % is 5 of these."""
    found = [contrast(CURED, DO, VERSUS, arms(seed=k)) for k in range(2000)]
    for name, error in (
        ("estimate", "standard_error"),
        ("risk_ratio", "risk_ratio_error"),
        ("odds_ratio", "odds_ratio_error"),
    ):
        spread = np.std([getattr(effect, name) for effect in found])
        stated = np.mean([getattr(effect, error) for effect in found])
        assert stated == pytest.approx(spread, rel=0.08)


def test_another_event_turns_the_signs():
    pair = arms()
    yes, no = (contrast(CURED, DO, VERSUS, pair, event=event) for event in ("yes", "no"))
    assert no.estimate == pytest.approx(-yes.estimate)
    assert no.odds_ratio == pytest.approx(1 / yes.odds_ratio)


def test_a_categorical_outcome_has_probabilities_and_no_estimate():
    a, b = arms(levels=3)
    effect = contrast(WARD, DO, VERSUS, (a, b))
    assert effect.estimate is None
    assert effect.standard_error is None
    table = effect.probabilities
    assert list(table.columns) == ["level", "do", "versus", "difference", "standard_error"]
    for code, row in enumerate(table.itertuples()):
        assert row.do == pytest.approx(np.mean(a == code))
        assert row.difference == pytest.approx(np.mean(a == code) - np.mean(b == code))
    assert table[["do", "versus"]].sum().tolist() == pytest.approx([1.0, 1.0])
    assert "probability of each level" in str(effect)
    assert "A " in str(effect)


@pytest.mark.parametrize("column", [WARD, STAGE, SCORE], ids=lambda column: column.name)
def test_one_level_of_many_may_be_the_event(column):
    a, b = arms(levels=3)
    effect = contrast(column, DO, VERSUS, (a, b), event=column.levels[2])
    assert effect.estimate == pytest.approx(np.mean(a == 2) - np.mean(b == 2))
    assert effect.event == column.levels[2]


def test_an_ordinal_outcome_with_numbers_has_their_mean():
    a, b = arms(levels=3)
    numbers = np.array([0.0, 1.0, 10.0])
    effect = contrast(SCORE, DO, VERSUS, (a, b))
    expected = numbers[a.astype(int)].mean() - numbers[b.astype(int)].mean()
    assert effect.estimate == pytest.approx(expected)
    assert effect.measure == "mean difference"
    assert contrast(STAGE, DO, VERSUS, (a, b)).estimate is None


def test_continuous_and_count_outcomes_have_means_in_their_units():
    a, b = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 4.0])
    weight = contrast(Continuous("weight", Unit(50.0, 10.0)), DO, VERSUS, (a, b))
    assert weight.estimate == pytest.approx(10 * (a - b).mean())
    assert weight.mean == pytest.approx(70.0)
    assert contrast(Count("n", 1.0, 1.0, has_zero=True), DO, VERSUS, (a, b)).mean == 2.0
    bent = contrast(Continuous("w", Unit(0.0, 1.0, "log")), DO, VERSUS, (a, b))
    assert bent.estimate == pytest.approx((np.exp(a) - np.exp(b)).mean())
    assert weight.event is None
    assert weight.probabilities is None


def test_ratios_without_a_denominator_are_none_and_not_nan():
    sure, never = np.ones(10), np.zeros(10)
    effect = contrast(CURED, DO, VERSUS, (sure, never))
    assert effect.estimate == 1.0
    assert effect.risk_ratio is None
    assert effect.odds_ratio is None
    assert "ratio" not in str(effect)
    assert contrast(CURED, DO, VERSUS, (never, sure)).risk_ratio == 0.0


def test_an_effect_says_its_scale_and_its_arms():
    text = str(contrast(CURED, {"stage": "III", "dose": 2.0}, {}, arms()))
    assert "effect on cured of do(stage = 'III', dose = 2) versus no intervention" in text
    assert "risk of cured = yes: " in text
    assert ", difference " in text
    assert "odds ratio" in text
    shifted = str(contrast(CURED, {"dose": lambda dose: dose + 1}, VERSUS, arms()))
    assert "dose = dose + 1" in shifted
    unknown = str(contrast(CURED, {"dose": eval("lambda dose: dose + 1")}, VERSUS, arms()))
    assert "dose = f(dose)" in unknown


def test_events_that_are_no_levels_are_refused():
    with pytest.raises(InputError, match=r"event of 'cured' is 'maybe'.*'no', 'yes'"):
        contrast(CURED, DO, VERSUS, arms(), event="maybe")
    with pytest.raises(InputError, match="'n' has no levels"):
        contrast(Count("n", 1.0, 1.0, has_zero=True), DO, VERSUS, arms(), event=1)


def test_effects_compare_by_their_numbers():
    assert contrast(WARD, DO, VERSUS, arms(3)) == contrast(WARD, DO, VERSUS, arms(3))
    assert isinstance(contrast(WARD, DO, VERSUS, arms(3)).probabilities, pd.DataFrame)
