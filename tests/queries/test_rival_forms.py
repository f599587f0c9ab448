"""Forms that rows hardly tell apart: intervals know of both."""

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF
from misscnf.data.rows import MemoryRows
from misscnf.fitting import rivals
from misscnf.fitting.replicates import Replicates
from misscnf.fitting.rivals import SolvedRival
from misscnf.fitting.select.means import Rival
from misscnf.model import Structure
from misscnf.queries.influence import Spread

QUESTION = {"do": {"t": 0.0}, "versus": {"t": -1.0}, "interval": 0.95}


def bent(rows, seed, lost=0.0):
    rng = np.random.default_rng(seed)
    t = rng.normal(size=rows)
    y = np.exp(0.9 * t) + rng.normal(size=rows)
    return pd.DataFrame({"t": t, "y": np.where(rng.random(rows) < lost, np.nan, y)})


@pytest.fixture(scope="module")
def short():
    """24 rows: fewer than a curve is taken by."""
    return MissCNF("t -> y", kinds="continuous", progress=False).fit(bent(24, 5))


def test_a_line_of_few_bent_rows_has_a_curve_beside_it(short):
    assert str(short.forms_["y"]) == "line"
    rival = short.rivals_["y"]
    assert rival.form == "curve"
    assert 0.05 < rival.weight < 1.0


def test_the_interval_is_wider_by_what_the_other_form_answers(short, monkeypatch):
    effect = short.effect("y", **QUESTION)
    monkeypatch.setattr(Spread, "_with_rivals", lambda spread, *_: spread)
    alone = short.effect("y", **QUESTION)
    assert effect.estimate == alone.estimate
    wide, narrow = (upper - lower for lower, upper in (effect.interval, alone.interval))
    assert wide > 1.05 * narrow
    assert alone.mean_interval != effect.mean_interval


def test_rivals_are_saved_with_replicates_and_found_again_without(short, tmp_path):
    table = bent(24, 5)
    fresh = MissCNF("t -> y", kinds="continuous", progress=False).fit(table)
    fresh.save(tmp_path / "fit")  # no interval was asked for yet
    expected = fresh.effect("y", **QUESTION)
    fresh.save(tmp_path / "replicated")
    assert MissCNF.load(tmp_path / "replicated").effect("y", **QUESTION) == expected
    later = MissCNF.load(tmp_path / "fit")
    assert later.rivals_ == fresh.rivals_
    assert later.effect("y", data=table, **QUESTION) == expected


def test_a_clear_choice_has_no_rival():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    table = pd.DataFrame({"t": x, "y": x + x**2 + 0.5 * rng.normal(size=400)})
    model = MissCNF("t -> y", kinds="continuous", progress=False).fit(table)
    assert str(model.forms_["y"]) == "curve"
    assert not model.rivals_


def test_the_variance_grows_by_the_weighted_square_and_says_so(short):
    others = [SolvedRival(1, Rival("curve", weight), short.model_) for weight in (0.5, 0.1)]
    source = Replicates([], rivals=tuple(others))
    answers = np.random.default_rng(0).normal(size=100)
    alone = Spread.of(answers, source)
    spread = Spread.of(answers, source, None, [1.0, 4.0, 1.5])
    assert spread.of_forms**2 == pytest.approx(0.5 * 3.0**2 + 0.1 * 0.5**2)
    expected = np.hypot(alone.half_width(0.95), 1.959964 * spread.of_forms)
    assert spread.half_width(0.95) == pytest.approx(expected)
    (doubt,) = spread.doubts(source.settings)
    assert "with a curve for y it moves by +3" in doubt


def test_the_line_of_a_curve_is_least_squares_and_no_other_block_is_fitted_for_it(monkeypatch):
    def refused(*_, **__):
        raise AssertionError("the linear model of all blocks was fitted")

    rng = np.random.default_rng(0)
    t = rng.normal(size=200)
    table = pd.DataFrame({"t": t, "y": t + t**2 + 0.5 * rng.normal(size=200)})
    model = MissCNF("t -> y", kinds="continuous", progress=False).fit(table)
    assert str(model.forms_["y"]) == "curve"
    monkeypatch.setattr(rivals, "fit_linear", refused)
    structure = Structure.of(model.graph_, model.schema_.domains)
    values = model._table.values
    rows = MemoryRows(values, model._table.observed)
    asked = {1: Rival("line", 0.5)}
    (found,) = rivals.solve_rivals(model.model_, structure, rows, model.settings_, 0, asked)
    slope, start = np.polyfit(*values.numpy().T, 1)
    form = found.model.mechanism(1).linear_form()
    assert form.weights.tolist() == pytest.approx([slope], abs=1e-5)
    assert float(form.intercept) == pytest.approx(start, abs=1e-5)
