"""Networks that all rows train in lanes: what memory would have found, the same bits each time."""

import os
import signal
from dataclasses import replace

import joblib
import numpy as np
import pytest
import torch
from row_sources import ShardedRows

from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows, SelectedRows
from misscnf.fitting import many_rows
from misscnf.fitting.fit import fit_model
from misscnf.fitting.many_rows import fit_many
from misscnf.fitting.settings import Settings, Streaming, preset_settings
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.train import lanes
from misscnf.fitting.train.checkpoint import Checkpoint
from misscnf.fitting.train.lanes import shards, train_in_lanes
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Shape
from misscnf.model import Structure
from misscnf.workers import workers

GRAPH = CausalGraph.read("a -> b; b -> c")
STRUCTURE = Structure.of(GRAPH, [CONTINUOUS] * 3)
SETTINGS = preset_settings(
    "auto",
    {
        "selection.compare": False,  # every node with parents has a network
        "shape": Shape(hidden=(16, 16)),
        "training.epochs": 10,
        "streaming.shard_rows": 500,
        "streaming.group_rows": 50,
        "streaming.lanes": 2,
        "streaming.information_rows": 300,
        "streaming.passes": 2,
    },
)


def in_passes(count, **training):
    """Returns settings that walk through 3,000 rows so often, in batches of 187."""
    steps = count * 3000 / (2 * 187)
    streaming = replace(SETTINGS.streaming, network_steps=round(steps))
    return replace(SETTINGS, streaming=streaming, training=replace(SETTINGS.training, **training))


def draw(rows, seed):
    rng = np.random.default_rng(seed)
    a, u, v = rng.normal(size=(3, rows))
    b = np.sin(2 * a) + 0.5 * u
    values = torch.tensor(np.stack([a, b, np.tanh(2 * b) + 0.5 * v], 1))
    observed = torch.ones(rows, 3, dtype=torch.bool)
    observed[:, 1] = torch.tensor(rng.random(rows) >= 0.4)
    return MemoryRows(torch.where(observed, values, 0.0), observed), values


def distance(model, values):
    """Returns the Kullback-Leibler divergence from the truth, on complete rows."""
    normal = torch.distributions.Normal
    a, b, c = values.T
    truth = normal(0, 1).log_prob(a) + normal(torch.sin(2 * a), 0.5).log_prob(b)
    truth = truth + normal(torch.tanh(2 * b), 0.5).log_prob(c)
    with torch.no_grad():
        return float((truth - model.log_prob(values)).mean())


def vector(model):
    return torch.cat([part.detach().flatten() for part in model.parameters()])


@pytest.fixture(scope="module")
def rows():
    return draw(3000, 0)[0]


@pytest.fixture(scope="module")
def start(rows):
    some = SelectedRows(rows, torch.arange(500))
    return fit_model(STRUCTURE, some, None, SETTINGS).model


def test_every_row_is_walked_through_once_a_pass():
    rules = Streaming(group_rows=10, shard_rows=40, lanes=3)
    rounds = shards(1234, 0, rules, 2)
    assert {len(groups) for groups in rounds} == {3}
    for of_pass in (rounds[: len(rounds) // 2], rounds[len(rounds) // 2 :]):
        seen = torch.cat([groups for lanes_of_round in of_pass for groups in lanes_of_round])
        assert sorted(seen.tolist()) == list(range(124))
    assert not torch.equal(rounds[0][0], shards(1234, 1, rules, 2)[0][0])


@pytest.mark.slow
def test_lanes_find_what_memory_finds():
    """Divergences from the truth, after as many visits of each row."""
    all_rows, (_, fresh) = draw(6000, 0)[0], draw(20_000, 99)
    some = SelectedRows(all_rows, torch.arange(1000))
    sample = fit_model(STRUCTURE, some, None, SETTINGS).model
    memory = fit_model(STRUCTURE, all_rows, None, SETTINGS).model
    streamed, _ = train_in_lanes(sample, all_rows, None, SETTINGS)
    found = [distance(model, fresh) for model in (sample, memory, streamed)]
    assert found[0] > 2.0 * found[1]
    assert found[2] < 1.05 * found[1]


def test_passes_are_those_of_memory_or_fewer():
    rules, training = Streaming(), Settings().training
    assert rules.network_passes(3000, training) == 60
    assert rules.network_passes(10**6, training) == 5
    assert rules.network_passes(10**8, training) == 1


def test_lines_come_close_to_their_maximum(rows):
    """The gap in log-likelihood to the maximum for all rows."""
    few = SelectedRows(rows, torch.arange(300))
    start = fit_linear(STRUCTURE, few, SETTINGS).model
    maximum = fit_linear(STRUCTURE, rows, SETTINGS).model
    given = (rows, None, in_passes(4, learning_rate=0.02))
    found, _ = train_in_lanes(start, *given)
    effort = SETTINGS.integration.linear
    values = [many_rows._pass_over(m, rows, effort)[0] for m in (start, found, maximum)]
    assert values[2] - values[0] > 5
    assert values[2] - values[1] < 0.1 * (values[2] - values[0])


def test_two_workers_find_the_bits_of_one(rows, start):
    shards_of_rows = ShardedRows(rows.values, rows.observed)
    one, history = train_in_lanes(start, rows, None, in_passes(1))
    with joblib.parallel_config("threading", n_jobs=2):
        two, _ = train_in_lanes(start, shards_of_rows, None, in_passes(1))
    assert torch.equal(vector(one), vector(two))
    assert not torch.equal(vector(one), vector(start))
    assert len(history) == 3
    assert all(np.isfinite(record.train) for record in history)


class DeadlyRows(MemoryRows):
    """Rows whose reader is killed, once."""

    def take(self, rows):
        if not self.mark.exists() and os.getpid() != self.owner:
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().take(rows)


def test_a_worker_that_dies_costs_its_walk_and_not_the_answer(rows, start, tmp_path, caplog):
    one, _ = train_in_lanes(start, rows, None, in_passes(1))
    deadly = DeadlyRows(*rows.take(torch.arange(len(rows))))
    object.__setattr__(deadly, "mark", tmp_path / "died")
    object.__setattr__(deadly, "owner", os.getpid())
    with workers(jobs=2), caplog.at_level("WARNING", "misscnf"):
        two, _ = train_in_lanes(start, deadly, None, in_passes(1))
    assert deadly.mark.exists()
    assert "A worker died" in caplog.text
    assert torch.equal(vector(one), vector(two))


def test_a_walk_that_was_interrupted_goes_on_to_the_same_bits(rows, start, tmp_path, monkeypatch):
    monkeypatch.setattr(lanes, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    whole, history = train_in_lanes(start, rows, None, in_passes(1))

    def stop(record, _):
        if record.epoch == 2:
            raise KeyboardInterrupt

    place = Checkpoint(tmp_path, "walk", "these")
    about = (rows, None, in_passes(1), 0, "cpu")
    with pytest.raises(KeyboardInterrupt):
        train_in_lanes(start, *about, stop, place)
    rounds = []
    again, later = train_in_lanes(start, *about, lambda record, _: rounds.append(record), place)
    assert torch.equal(vector(again), vector(whole))
    assert [one.train for one in later] == [one.train for one in history]
    assert len(rounds) == 2  # the second, whose end was not kept yet, and the third


def test_a_walk_that_goes_astray_is_taken_back(rows, start, caplog):
    found, _ = train_in_lanes(start, rows, rows, in_passes(1, learning_rate=3.0))
    assert found is start
    assert "Training on all rows lost" in caplog.text
    better, _ = train_in_lanes(start, rows, rows, in_passes(1))
    assert better is not start


def test_a_fit_with_networks_is_that_of_all_rows(rows, caplog):
    some = SelectedRows(rows, torch.arange(500))
    told = []
    with caplog.at_level("INFO", "misscnf"):
        fitted, of_all = fit_many(
            STRUCTURE, rows, (some, None), in_passes(1), tell=lambda *said: told.append(said)
        )
    assert of_all
    assert "now all 3000 rows move them" in caplog.text
    stages = [record.stage for record in fitted.history]
    assert stages == ["networks, all 3000 rows"] * 3 + ["all 3000 rows"] * 2
    assert (3000, 3000, "networks, all rows") in told


def test_networks_beside_much_that_is_hidden_stay_those_of_the_sample(rows, caplog):
    some = SelectedRows(rows, torch.arange(500))
    training = replace(SETTINGS.training, most_together=0)
    fitted, of_all = fit_many(STRUCTURE, rows, (some, None), replace(SETTINGS, training=training))
    assert not of_all
    assert "some rows hide more than 0 columns together" in caplog.text
    assert fitted.history[-1].stage == "of 500 rows by chance"
