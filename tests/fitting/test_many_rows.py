"""Passes over all rows: the maximum in memory, the same bits for any number of workers."""

import logging
from dataclasses import replace

import joblib
import numpy as np
import pytest
import torch
from row_sources import ShardedRows

from misscnf import InputError
from misscnf.data.domains import CONTINUOUS, Binary
from misscnf.data.rows import MemoryRows, SelectedRows
from misscnf.fitting import many_rows
from misscnf.fitting.many_rows import fit_many, move_to_all
from misscnf.fitting.select.means import Rival
from misscnf.fitting.settings import preset_settings
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.train.checkpoint import Checkpoint
from misscnf.graph import CausalGraph
from misscnf.model import Structure

GRAPH = CausalGraph.read("a -> b; b -> c; a -> c")
STRUCTURE = Structure.of(GRAPH, [CONTINUOUS, Binary(0.5, 0.5), CONTINUOUS])
TO_THE_END = {"streaming.information_rows": 400, "streaming.tolerance": 1e-7}
SETTINGS = preset_settings("linear", TO_THE_END)


def vector(model):
    return torch.cat([part.detach().flatten() for part in model.parameters()])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    a = rng.normal(size=1200)
    b = (a + rng.normal(size=1200) > 0) * 1.0
    values = torch.tensor(np.stack([a, b, b - 0.5 * a + rng.normal(size=1200)], 1))
    observed = torch.tensor(rng.random(values.shape) >= 0.25)
    return MemoryRows(torch.where(observed, values, 0.0), observed)


@pytest.fixture(scope="module")
def start(rows):
    some = SelectedRows(rows, torch.arange(400))
    return some, fit_linear(STRUCTURE, some, SETTINGS).model


@pytest.fixture(scope="module")
def maximum(rows):
    return vector(fit_linear(STRUCTURE, rows, SETTINGS).model)


def test_passes_end_at_the_maximum(rows, start, maximum):
    sample, line = start
    found, passes = move_to_all(line, rows, sample, SETTINGS)
    assert float((vector(line) - maximum).abs().max()) > 0.02
    # the search in memory stops within a thousandth of standard errors of about 0.1
    torch.testing.assert_close(vector(found), maximum, rtol=0, atol=1e-4)
    _, gradient = many_rows._pass_over(found, rows, SETTINGS.integration.linear)
    assert float(gradient.abs().max()) < 1e-2  # where a standard error away is 10
    assert passes == sorted(passes)


def test_two_workers_find_the_bits_of_one(rows, start, monkeypatch):
    monkeypatch.setattr(many_rows, "ROWS_AT_ONCE", 500)
    sample, line = start
    shards = ShardedRows(rows.values, rows.observed)
    one, _ = move_to_all(line, rows, sample, SETTINGS)
    with joblib.parallel_config("threading", n_jobs=2):
        two, _ = move_to_all(line, shards, sample, SETTINGS)
    assert torch.equal(vector(one), vector(two))


@pytest.mark.parametrize("length", [1.0, 2.5])
@pytest.mark.parametrize("last", [1, 2, 3, None])
def test_passes_that_were_interrupted_go_on_to_the_same_bits(
    rows, start, tmp_path, monkeypatch, length, last
):
    """Also where a step was too long and is tried again at a quarter, and after the last pass."""
    sample, line = start
    measured = many_rows._information

    def too_little(*given):
        found = measured(*given)
        return replace(found, matrix=found.matrix / length)

    monkeypatch.setattr(many_rows, "_information", too_little)
    whole, passes = move_to_all(line, rows, sample, SETTINGS)
    assert (len(set(passes)) < len(passes)) == (length > 2)

    def stop(record, _):
        if record.epoch == (last or len(passes)):
            raise KeyboardInterrupt

    place = Checkpoint(tmp_path, "all rows", "these")
    with pytest.raises(KeyboardInterrupt):
        move_to_all(line, rows, sample, SETTINGS, watch=stop, checkpoint=place)
    again, later = move_to_all(line, rows, sample, SETTINGS, checkpoint=place)
    torch.testing.assert_close(vector(again), vector(whole), rtol=0, atol=0)
    assert later == passes


def test_a_checkpoint_of_other_rows_is_refused(rows, start, tmp_path):
    sample, line = start
    Checkpoint(tmp_path, "all rows", "these").write(line.state_dict(), {"passes": [0.0]})
    with pytest.raises(InputError, match="belongs to another table"):
        move_to_all(line, rows, sample, SETTINGS, checkpoint=Checkpoint(tmp_path, "all rows", "o"))


def test_the_fit_says_what_of_it_is_of_all_rows(rows):
    sample = SelectedRows(rows, torch.arange(600))
    fitted, of_all = fit_many(STRUCTURE, rows, (sample, None), SETTINGS)
    assert of_all
    assert {record.stage for record in fitted.history} == {"all 1200 rows"}


def test_a_form_that_is_no_longer_in_question_is_said(rows, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "misscnf")
    few, real = SelectedRows(rows, torch.arange(300)), many_rows.fit_model

    def with_a_rival(*given, **about):
        return replace(real(*given, **about), rivals={2: Rival("curve", 0.3)})

    monkeypatch.setattr(many_rows, "fit_model", with_a_rival)
    fitted, _ = fit_many(STRUCTURE, few, (few, None), SETTINGS)
    assert not fitted.rivals
    assert "whether the law of 'c' is the curve that was not taken" in caplog.text
