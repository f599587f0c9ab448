"""Numbers and sentences that a person reads."""

from types import SimpleNamespace

import pandas as pd
import pytest

from misscnf.data.codecs import Levels
from misscnf.data.table import IncompleteTable
from misscnf.fitting.settings import Settings
from misscnf.queries.effects import Effect
from misscnf.report.effects import Question, contrasts, dose_grid
from misscnf.report.model_checks import Integrals
from misscnf.report.settings import EffectRules
from misscnf.report.verdicts import held_out_sentence, integral_sentence
from misscnf.report.words import Answer, label, plural, rounded, signed, significant, whole

MINUS_TWO = "\N{MINUS SIGN}2"


def effect(estimate, interval=None, **more):
    common = {"outcome": "y", "do": {"t": 1}, "versus": {"t": 0}, "standard_error": 0.001}
    level = None if interval is None else 0.95
    return Effect(**common, estimate=estimate, draws=1000, interval=interval, level=level, **more)


@pytest.mark.parametrize(
    ("value", "spread", "shown"),
    [
        (3.3519, 0.95, "3.35"),
        (3.3519, 1.9, "3.4"),
        (-0.04, 1.0, "0.0"),
        (-3.36, 1.0, "\N{MINUS SIGN}3.4"),
        (12345.6, 300.0, "12,350"),
        (0.00123456, 0.00034, "0.00123"),
        (2.0, 0.0, "2"),
        (float("inf"), 1.0, "not finite"),
    ],
)
def test_digits_are_those_that_the_spread_leaves(value, spread, shown):
    assert rounded(value, spread) == shown


def test_small_words_for_numbers():
    assert [significant(x) for x in (0.12345, 1234.5, -2.0)] == ["0.123", "1230", MINUS_TWO]
    assert [signed(x) for x in ("1.5", "0.0", MINUS_TWO)] == ["+1.5", "0.0", MINUS_TWO]
    assert (whole(1629), whole(16290)) == ("1629", "16,290")
    assert [label(x) for x in ("a", True, 50.5, 1.0, -2)] == ["a", "True", "50.5", "1", MINUS_TWO]
    assert (plural(1, "row"), plural(2, "family", "families")) == ("1 row", "2 families")


def test_an_interval_without_zero_says_so():
    told = Answer(effect(3.35, (2.4, 4.3), mean=5.36, mean_versus=2.01))
    assert told.figure == "+3.35"
    assert told.interval == "95 % interval 2.40 to 4.30"
    assert told.sentence == (
        "If everybody had t = 1 rather than 0, the mean of y would be 3.35 higher: 5.36 rather "
        "than 2.01."
    )
    assert told.caution.endswith("Zero, no effect at all, is not in it.")


def test_an_interval_with_zero_says_so():
    told = Answer(effect(-0.5, (-2.0, 1.0), mean=1.0, mean_versus=1.5))
    assert "0.5 lower: 1.0 rather than 1.5" in told.sentence
    assert told.caution.endswith("Zero, no effect at all, is in it.")


def test_without_an_interval_nothing_is_promised():
    told = Answer(effect(0.0, mean=1.0, mean_versus=1.0))
    assert told.interval == ""
    assert "No interval was computed" in told.caution
    assert "would be the same" in told.sentence


def test_a_risk_is_in_percentage_points_with_its_ratios():
    told = Answer(
        effect(
            0.12,
            (0.05, 0.19),
            mean=0.43,
            mean_versus=0.31,
            measure="risk difference",
            event="late",
            risk_ratio=1.387,
            risk_ratio_interval=(1.1, 1.7),
            odds_ratio=1.68,
        )
    )
    assert told.figure == "+12.0"
    assert told.unit == "percentage points in the risk of y = late"
    assert "12.0 percentage points higher: 43 % rather than 31 %" in told.sentence
    assert told.ratios == "Risk ratio 1.39 (1.10 to 1.70), odds ratio 1.68."


def ask(values, kinds=None):
    table = IncompleteTable.read(
        pd.DataFrame({"t": values, "u": range(len(values))}), ("t", "u"), kinds=kinds
    )
    return Question(None, table, "t", "u", None, EffectRules())


@pytest.mark.parametrize(
    ("values", "kind", "pairs"),
    [
        (["no", "yes", "no", None], "binary", [("yes", "no")]),
        (["a", "b", "b", "c", "b", "c"], "categorical", [("c", "b"), ("a", "b")]),
        ([0, 1, 1, 2, 2, 3, 3, 4, None], "ordinal", [(3, 1)]),
        ([1, 1, 1, 1, 1, 1, 1, 1, 2, 3], "ordinal", [(3, 1)]),
        ([0.0, 1.111, 2.222, 3.333, 4.0], "continuous", [(3.3, 1.1)]),
        ([0, 1, 1, 2, 5, 6, 8, 9], "count", [(6, 1)]),
    ],
)
def test_what_is_compared_depends_on_the_kind_of_treatment(values, kind, pairs):
    question = ask(values, {"t": kind})
    column = question.column("t")
    assert contrasts(question) == pairs
    doses = dose_grid(question)
    assert bool(doses) == (kind in ("ordinal", "continuous", "count"))
    assert not isinstance(column, Levels) or doses in ([], list(column.levels))


def test_few_effective_draws_are_a_warning():
    fine = Integrals(100, 60, 0, 45.0, 80.0, 30.0, 0, -3.0, 100)
    few = Integrals(100, 60, 0, 12.0, 80.0, 30.0, 3, -3.0, 100)
    lost = Integrals(100, 60, 2, 45.0, 80.0, 30.0, 0, -3.0, 100)
    assert (fine.ok, few.ok, lost.ok) == (True, False, False)
    assert "40 rows of 100 were averaged by draws" in integral_sentence(fine)
    assert "3 rows had fewer than 30, which is few" in integral_sentence(few)
    assert "2 rows of 100 have probability zero" in integral_sentence(lost)


def test_interactions_that_were_earned_are_no_line_that_was_kept():
    found = {"elpd_difference": 1.2, "standard_error": 0.03}
    model = SimpleNamespace(
        comparison_=found,
        settings_=Settings(),
        curves_=[],
        networks_=[],
        interactions_=["y"],
        forms_={},
    )
    assert "were kept" not in held_out_sentence(model)
    model.comparison_ = {"elpd_difference": 0.01, "standard_error": 0.03}
    assert "which is too little" in held_out_sentence(model)
