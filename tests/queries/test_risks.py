"""Intervals of risks, against exact intervals of counts and over simulated tables."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from misscnf import MissCNF
from misscnf.fitting.replicates import Replicates
from misscnf.queries.risks import Risk

GRAPH = {"t": [], "y": ["t"]}


def counted(a, n, b, m):
    """A table with a events in n treated and b in m others."""
    treated = [1] * n + [0] * m
    events = ["yes"] * a + ["no"] * (n - a) + ["yes"] * b + ["no"] * (m - b)
    return pd.DataFrame({"t": treated, "y": events})


def asked(table, graph=None):
    model = MissCNF(graph or GRAPH, preset="linear").fit(table)
    return model.effect("y", do={"t": 1}, versus={"t": 0}, interval=0.95, draws=2000), model


@pytest.mark.parametrize(("events", "people"), [(0, 16), (1, 30), (3, 1000), (16, 16)])
def test_few_events_have_the_exact_interval_of_their_count(events, people):
    effect, _ = asked(counted(events, people, 30, 100))
    wanted = binomtest(events, people).proportion_ci(0.95, "exact")
    assert effect.mean == pytest.approx(events / people, abs=1e-4)
    assert effect.mean_interval == pytest.approx((wanted.low, wanted.high), rel=0.01, abs=1e-4)
    others = binomtest(30, 100).proportion_ci(0.95, "exact")
    assert effect.mean_versus_interval == pytest.approx((others.low, others.high), rel=0.1)
    assert -1 < effect.interval[0] < effect.estimate < effect.interval[1] < 1
    assert ("next to no row" in str(effect)) == (events in (0, people))


def test_no_event_leaves_ratios_open_below_only():
    effect, model = asked(counted(0, 16, 30, 100))
    upper = binomtest(0, 16).proportion_ci(0.95, "exact").high
    assert effect.risk_ratio_interval == pytest.approx((0.0, upper / 0.3), rel=0.05, abs=1e-12)
    levels = effect.probabilities
    assert levels.lower.between(-1, 1).all()
    assert levels.upper.between(-1, 1).all()
    curve = model.curve("y", "t", [0, 1], interval=0.95, draws=2000)
    assert curve.mean_lower.between(0, 1).all()
    assert curve.mean_upper[1] == pytest.approx(upper, rel=0.01)


def test_many_events_have_the_interval_of_replicates():
    """The spread of a hundred replicates is 7 % off."""
    effect, _ = asked(counted(300, 1000, 200, 1000))
    error = math.sqrt(0.3 * 0.7 / 1000 + 0.2 * 0.8 / 1000)
    assert np.diff(effect.interval)[0] == pytest.approx(2 * 1.96 * error, rel=0.2)
    log_error = math.sqrt(0.7 / 300 + 0.8 / 200)
    width = np.diff(np.log(effect.risk_ratio_interval))[0]
    assert width == pytest.approx(2 * 1.96 * log_error, rel=0.2)


def test_arms_that_move_together_have_a_narrow_difference():
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=(2, 100))
    near = -1.0 + 0.1 * shared, -1.2 + 0.1 * shared + 0.01 * own
    answers = [1 / (1 + np.exp(-part)) for part in near]
    values = [1 / (1 + math.exp(1.0)), 1 / (1 + math.exp(1.2))]
    pair = zip(values, answers, strict=True)
    first, second = (Risk.of(p, list(by), [], Replicates([]), 0.95) for p, by in pair)
    own_width = np.diff(first.interval)[0]
    assert np.diff(first.difference(second))[0] < 0.3 * own_width


def test_a_share_of_units_that_is_none_has_no_interval():
    assert Risk.of(0.0, [0.0] * 20, [], Replicates([]), 0.95) is None


@pytest.mark.slow
def test_rare_risks_are_covered():
    """Risks 0.02 and 0.05, 150 people each, 30 tables; of intervals that hold in 95 %, 24 or
    fewer of 30 hold in 3 of 1,000 runs."""
    held = np.zeros(3)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        effect, _ = asked(counted(rng.binomial(150, 0.02), 150, rng.binomial(150, 0.05), 150))
        truths = (effect.interval, -0.03), (effect.risk_ratio_interval, 0.4)
        truths += ((effect.mean_interval, 0.02),)
        held += [lower <= truth <= upper for (lower, upper), truth in truths]
    assert (held >= 25).all()
