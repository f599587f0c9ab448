"""The checks of the model: quiet where it is right, and loud about the right column where not."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from misscnf import MissCNF
from misscnf.report.model_checks import _ranks, integrals, noise_checks, overimpute
from misscnf.report.settings import FitChecks
from misscnf.report.verdicts import integral_sentence

GRAPH = "a -> b; a -> c; b -> c; k -> c; a -> g"


def table(noise=None, rows=1200):
    rng = np.random.default_rng(3)
    a, b, c = rng.normal(size=(3, rows))
    b += 0.8 * a
    k = rng.choice(["p", "q", "r"], rows)
    shift = pd.Series(k).map({"p": 0.0, "q": 1.0, "r": 2.0}).to_numpy()
    spread = c if noise is None else noise(rng, c, a)
    g = (rng.random(rows) < 1 / (1 + np.exp(-a))).astype(int)
    frame = pd.DataFrame({"a": a, "b": b, "k": k, "c": a - b + shift + spread, "g": g})
    for name in ("b", "k", "g"):
        frame[name] = frame[name].where(rng.random(rows) > 0.2)
    return frame


def fit(frame):
    model = MissCNF(GRAPH, preset="linear", progress=False).fit(frame)
    return model, model._read(frame)


@pytest.fixture(scope="module")
def right():
    frame = table()
    return frame, *fit(frame)


def test_a_right_model_is_left_in_peace(right):
    _, model, rows = right
    assert [
        check.node for check in noise_checks(model, rows, FitChecks(), 0) if not check.ok
    ] == []
    found = overimpute(model, rows, FitChecks(), 0)
    assert found.ok
    assert found.within(0.5) == pytest.approx(0.5, abs=0.06)
    assert found.within(0.9) == pytest.approx(0.9, abs=0.04)


def test_noise_has_mean_zero_and_spread_one_for_every_kind(right):
    _, model, rows = right
    for check in noise_checks(model, rows, FitChecks(), 0):
        assert abs(check.noise.mean()) < 0.15, check.node
        assert check.noise.std() == pytest.approx(1.0, abs=0.12), check.node
        assert (np.diff(check.noise) >= 0).all()


def test_skewed_noise_is_found_in_its_column():
    model, rows = fit(table(lambda rng, c, a: 2.0 * rng.exponential(size=len(a))))
    wrong = [check for check in noise_checks(model, rows, FitChecks(), 0) if not check.ok]
    assert [check.node for check in wrong] == ["c"]
    assert wrong[0].p_value < 0.01


def test_noise_that_goes_with_a_parent_names_it():
    model, rows = fit(table(lambda rng, c, a: c * np.exp(0.8 * a)))
    (check,) = [check for check in noise_checks(model, rows, FitChecks(), 0) if not check.ok]
    assert (check.node, check.parent) == ("c", "a")
    assert check.parent_p_value < 0.01


def test_a_model_that_is_too_sure_of_a_column_is_found(right):
    frame, model, _ = right
    spread = frame.assign(c=3.0 * frame["c"])
    found = overimpute(model, model._read(spread), FitChecks(), 0)
    assert "c" in found.columns.loc[~found.columns["ok"], "column"].tolist()
    assert found.within(0.9) < 0.85


def test_ranks_of_levels_are_uniform_too():
    rng = np.random.default_rng(0)
    drawn, truth = rng.binomial(3, 0.4, (49, 4000)), rng.binomial(3, 0.4, 4000)
    ranks = _ranks(drawn, truth, rng.random(4000))
    assert stats.kstest(ranks, "uniform").pvalue > 0.01
    assert (ranks > 0).all()
    assert (ranks < 1).all()


def test_too_few_rows_are_not_overimputed(right):
    frame, model, _ = right
    assert overimpute(model, model._read(frame.head(10)), FitChecks(), 0) is None


def test_integrals_tell_exact_rows_from_drawn_ones(right):
    frame, model, _ = right
    quality = model.log_prob(frame, quality=True)
    finite = quality["effective_draws"][np.isfinite(quality["effective_draws"])]
    found = integrals(model, model._read(frame), FitChecks(integral_rows=len(frame)), 0)
    assert found.exact == len(frame) - len(finite)
    assert found.smallest == (finite.min() if len(finite) else np.inf)
    assert found.score == pytest.approx(quality["log_prob"].mean())
    whole = model._read(frame.dropna())
    some = integrals(model, whole, FitChecks(integral_rows=20), 0)
    assert (some.rows, some.exact, some.table) == (20, 20, len(whole))
    assert integral_sentence(some).startswith(
        "The likelihood of each of 20 rows by chance is exact"
    )
