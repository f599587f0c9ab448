"""Where the time of a fit goes, and what is said of it before it starts."""

import itertools
import logging

import numpy as np
import pandas as pd
import pytest
import torch

import misscnf.fitting.expectation as expectation_home
import misscnf.fitting.timings as timings_home
from misscnf import MissCNF
from misscnf.data.domains import CONTINUOUS, Categorical
from misscnf.data.rows import MemoryRows
from misscnf.fitting.expectation import expected_duration, pace
from misscnf.fitting.timings import Timings
from misscnf.graph import CausalGraph
from misscnf.model import Structure


def test_a_stage_that_is_entered_again_adds_up(monkeypatch):
    clock = itertools.count(0.0, 2.0)
    monkeypatch.setattr(timings_home.time, "monotonic", lambda: next(clock))
    timings = Timings()
    for name in ("one", "two", "one"):
        with timings.stage(name):
            pass
    assert timings == {"one": 4.0, "two": 2.0}
    with pytest.raises(ValueError, match="stop"), timings.stage("two"):
        raise ValueError("stop")
    assert timings["two"] == 4.0


def test_a_fit_says_what_it_may_take_and_what_it_took(caplog, tmp_path, monkeypatch):
    monkeypatch.setattr(expectation_home, "pace", lambda: 1.0)
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    df = pd.DataFrame({"a": a, "b": a + rng.normal(size=300)}).mask(rng.random((300, 2)) < 0.1)
    with caplog.at_level(logging.INFO, "misscnf"):
        model = MissCNF("a -> b", progress=False).fit(df)
    assert "roughly 2 s of processor time if all are lines, 3 s if most" in caplog.text
    assert {"linear model", "testing lines", "testing noise"} <= model.timings_.keys()
    assert all(seconds >= 0.0 for seconds in model.timings_.values())
    with caplog.at_level(logging.DEBUG, "misscnf"):
        model.effect("b", {"a": 1.0}, {"a": 0.0}, interval=0.95, draws=100)
    assert "replicates of the fit: other forms 0.0 s, completing rows" in caplog.text
    model.save(tmp_path / "m")
    assert MissCNF.load(tmp_path / "m").timings_ == model.timings_


def test_a_fit_with_a_bar_says_what_it_may_take_without_a_log(capsys):
    df = pd.DataFrame({"a": np.random.default_rng(0).normal(size=200)})
    df["b"] = df.a + np.random.default_rng(1).normal(size=200)
    MissCNF("a -> b", progress=True).fit(df)
    assert "of processor time if all are lines" in capsys.readouterr().err
    MissCNF("a -> b", progress=False).fit(df)
    assert capsys.readouterr().err == ""


def test_holes_edges_and_a_slow_machine_take_time(monkeypatch):
    monkeypatch.setattr(expectation_home, "pace", lambda: 1.0)
    values = torch.zeros(60_000, 3)
    some = MemoryRows(values, torch.ones(60_000, 3, dtype=torch.bool))
    none = MemoryRows(values, torch.zeros(60_000, 3, dtype=torch.bool))
    numbers, levels = [CONTINUOUS] * 3, [Categorical(3)] * 3
    one, two = (CausalGraph.read(text) for text in ("a -> b; c", "a -> b; b -> c; a -> c"))
    few, more = Structure.of(one, numbers), Structure.of(two, numbers)
    in_all = "s of processor time if all are lines"
    assert f"5 {in_all}, 6 s if most" in expected_duration(few, some)
    assert f"5 {in_all}, 20 s if most" in expected_duration(few, none)
    assert f"11 {in_all}, 57 s if most" in expected_duration(more, none)
    assert f"6 {in_all}" in expected_duration(Structure.of(one, levels), none)
    monkeypatch.setattr(expectation_home, "pace", lambda: 3.0)
    assert f"15 {in_all}, 62 s if most" in expected_duration(few, none)


def test_the_pace_of_a_machine_is_a_positive_number_found_once():
    assert 0.0 < pace() < 1000.0
    assert pace() == pace()
