"""Fast waves and jumps that no form follows: the test's law, its power, and who is told."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom, kstest

from misscnf import MissCNF
from misscnf.fitting.select import roughness
from misscnf.fitting.select.nonlinearity import times
from misscnf.fitting.select.scores import Left, p_value, residual_of
from misscnf.fitting.settings import Selection
from misscnf.report.model_checks import check_fit
from misscnf.report.settings import ReportSettings
from misscnf.report.verdicts import verdicts

GRAPH = "x -> t; x, w, t -> y; y -> z"


def waving(_, x):
    return np.sin(12.0 * x)


def table(along=lambda _, x: x, rows=800, lost=0.2, seed=0):
    """x is seen; t, w, y and z are lost at random given x."""
    rng = np.random.default_rng(seed)
    x, w, *noise = rng.normal(size=(5, rows))
    t = 0.5 * x + noise[0]
    y = along(rng, x) + w + t + 0.5 * noise[1]
    df = pd.DataFrame({"x": x, "w": w, "t": t, "y": y, "z": y + noise[2]})
    hidden = rng.random((rows, 4)) < (2.0 * lost / (1.0 + np.exp(-x)))[:, None]
    return df.assign(**df.iloc[:, 1:].mask(hidden))


def fit(df, **changes):
    return MissCNF(GRAPH, "linear", progress=False, **changes).fit(df)


@pytest.fixture(scope="module")
def model():
    return fit(table(waving))


@pytest.mark.parametrize("band", Selection().rough_bands)
def test_what_residuals_of_a_line_leave_has_the_law_of_chi_square(band):
    """By Kolmogorov and Smirnov, 200 p-values are uniform; a right test fails in one of 1,000."""
    generator, found = torch.Generator().manual_seed(0), []
    for _ in range(200):
        z, noise = torch.randn(2, 1000, generator=generator, dtype=torch.float64)
        line = torch.stack([torch.ones_like(z), z], 1)
        scores = noise[:, None] - line @ torch.linalg.lstsq(line, noise[:, None]).solution
        phase = z[:, None] * torch.tensor(band, dtype=z.dtype)
        waves = torch.cat([phase.sin(), phase.cos()], 1)
        left = residual_of(times(scores, waves), times(scores, line))
        found.append(p_value(Left.of(left)))
    assert kstest(found, "uniform").pvalue > 1e-3


def test_true_lines_are_seldom_accused():
    """The p-value of a table, Bonferroni's over three families, is below 0.2 in 20 % at most.

    Of 40 tables, 16 or more are then with a chance of 0.3 %; and 2 or more below 0.005 with 2 %.
    """
    told = {"selection.rough_p_value": 0.2}
    found = [fit(table(rows=400, seed=seed), settings=told).rough_ for seed in range(40)]
    lowest = np.array(
        [min((one["p_value"] for one in each.values()), default=1) for each in found]
    )
    assert binom.sf(15, 40, 0.2) < 0.003
    assert binom.sf(1, 40, 0.005) < 0.02
    assert 0 < (lowest < 0.2).sum() < 16
    assert (lowest < 0.005).sum() < 2


@pytest.mark.parametrize(
    "along",
    [waving, lambda _, x: 2.0 * (x > 0.5), lambda _, x: 2.0 * np.mod(2.0 * x, 1.0)],
    ids=["wave", "jump", "sawtooth"],
)
def test_what_no_line_follows_is_found_at_its_node_along_its_parent(along):
    found = fit(table(along)).rough_
    assert found["y"]["along"] == "x"
    assert found["y"]["p_value"] < 0.005
    assert set(found) <= {"y", "z"}


def test_few_rows_that_show_a_family_are_not_asked():
    df = table(waving)
    df.loc[60:, ["y", "z"]] = np.nan
    assert fit(df).rough_ == {}


def test_only_effects_that_lean_on_it_have_a_note(model):
    (note,) = model.effect("y", do={"x": 0.5}, versus={"x": 0.0}, draws=500).notes
    assert "along x" in note
    assert "the mechanism of y" in note
    assert model.effect("t", do={"x": 0.5}, versus={"x": 0.0}, draws=500).notes == ()


def test_a_saved_model_remembers(model, tmp_path):
    model.save(tmp_path / "model")
    again = MissCNF.load(tmp_path / "model")
    assert again.rough_ == model.rough_ != {}
    question = {"do": {"x": 0.5}, "versus": {"x": 0.0}, "draws": 500}
    assert again.effect("y", **question).notes == model.effect("y", **question).notes


def test_the_report_has_a_line_that_says_where_and_what_to_do(model):
    df, settings = table(waving), ReportSettings()
    rows = model._read(df)
    checks = check_fit(model, rows, settings.checks, 0)
    said = {}
    for outcome in ("y", "t"):
        answer = model.effect(outcome, do={"x": 0.5}, versus={"x": 0.0}, draws=500)
        fitted = model.check(df, ("x", outcome), do={"x": 0.5})
        lines = verdicts(model, answer, fitted, checks)
        (said[outcome],) = [line for line in lines if line.about == "Waves and jumps"]
        assert said[outcome].state == "careful"
        assert "y along x" in said[outcome].text
        assert "as levels" in said[outcome].text
        assert not [line for line in lines if line.about == "Range"]
    assert "The answer leans on it" in said["y"].text
    assert "does not lean on it" in said["t"].text
    plain = fit(table())
    (line,) = [
        line
        for line in verdicts(plain, None, plain.check(table()), checks)
        if line.about == "Waves and jumps"
    ]
    assert line.state == "fine"


def test_members_of_a_block_are_not_asked():
    """No cause is claimed among them, so that no answer leans on how they wave."""
    df = table(waving, lost=0.1)[["x", "y", "z"]]
    model = MissCNF("w -> z", "linear", blocks={"w": ["x", "y"]}, progress=False).fit(df)
    assert not set(model.rough_) & {"x", "y"}
    asked = MissCNF("x -> y -> z", "linear", progress=False).fit(df)
    assert "y" in asked.rough_


def test_waves_of_more_levels_than_rows_can_tell_apart_are_not_built(monkeypatch):
    rng = np.random.default_rng(0)
    x, level = rng.normal(size=150), rng.choice(list("abcdef"), 150)
    built = []
    monkeypatch.setattr(roughness, "_Waves", lambda *given: built.append(given))
    model = MissCNF("x -> level", "linear", progress=False)
    model.fit(pd.DataFrame({"x": x, "level": level}))
    assert not built
    assert "level" not in model.rough_
