"""The section on lost values: what `sensitivity` says, or how to ask it."""

import numpy as np
import pandas as pd
import pytest

from misscnf import InputError, MissCNF
from misscnf.report import write_report
from misscnf.report.sensitivity import ask_sensitivity, how_to_ask

HOW = {"interval": 0.9, "replicates": 8, "draws": 200, "seed": 0}


@pytest.fixture(scope="module")
def asked():
    rng = np.random.default_rng(0)
    t = rng.normal(size=200)
    df = pd.DataFrame({"t": t, "y": t + rng.normal(size=200)})
    df.loc[:40, "y"] = np.nan
    model = MissCNF("t -> y", "linear", progress=False).fit(df)
    return model, model._read(df), model.effect("y", {"t": 1.0}, {"t": 0.0})


def test_the_section_has_what_the_model_says(asked):
    model, table, effect = asked
    section = ask_sensitivity(model, table, effect, {"shift": {"do": [-5, 0]}}, HOW)
    own = model.sensitivity("y", effect.do, effect.versus, shift={"do": [-5, 0]}, **HOW)
    pd.testing.assert_frame_equal(section.found.to_frame(), own.to_frame())
    assert section.heads == ["shift", "estimate", "lower", "upper", "mean", "mean, versus"]
    assert section.lines[0][0] == "−5"
    assert own.told in section.picture.alt
    assert "plus a shift" in section.assumed
    held = ask_sensitivity(model, table, effect, {"strength": [0]}, {**HOW, "interval": None})
    assert "drives its own loss" in held.assumed


def test_where_nobody_asked_it_says_how(asked):
    model, table, effect = asked
    call = how_to_ask(table, effect)
    assert eval(call.replace("strength=[-1, -0.5, 0, 0.5, 1]", "shift=[0]")).level == 0.95
    other = model.effect("t", {"t": 1.0}, {"t": 0.0})
    assert how_to_ask(table, other) is None


def test_it_is_that_of_an_effect(asked, tmp_path):
    model, table, _ = asked
    with pytest.raises(InputError, match="sensitivity is that of an effect"):
        write_report(model, table, tmp_path / "page.html", sensitivity={"shift": [1]})
