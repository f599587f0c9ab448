"""Fits of rows that hide much together: EM on moving chains, and networks on their completions."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from test_monte_carlo import GRAPH, STRUCTURE, _slope, bent, table, total_log_prob

from misscnf import MissCNF
from misscnf.data.rows import MemoryRows
from misscnf.fitting.settings import Settings, preset_settings
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.stochastic_em import maximise_on_chains, only_linear_means
from misscnf.fitting.train import loop
from misscnf.inference.chains import ChainRules, Chains
from misscnf.inference.integrals import Effort, ImportanceRules
from misscnf.mechanisms import Gaussian, Shape
from misscnf.model import StructuralModel


def maximised(model, rows, seed=0, watch=None):
    """Moves a model to the maximum; returns the rounds it took."""
    chains = Chains.of(len(rows[0]), rows[0].shape[1], ChainRules())
    return maximise_on_chains(model, MemoryRows(*rows), Settings(), seed, chains, watch)


def test_lines_end_at_the_maximum_of_full_information():
    """lavaan's likelihood, to half a nat in 1500 rows: ten coefficients, each off by a third of a
    standard error at most (the noise of 48 completions)."""
    rows = table(lambda a: 0.8 * a)
    found = fit_linear(STRUCTURE, MemoryRows(*rows)).model
    best = total_log_prob(found, rows)
    with torch.no_grad():
        found.mechanism(1).mean.weight.fill_(0.2)
        found.mechanism(2).mean.bias.fill_(0.5)
        found.mechanism(2).log_scale.bias.fill_(0.5)
    assert total_log_prob(found, rows) < best - 100
    maximised(found, rows)
    assert best - 0.5 < total_log_prob(found, rows) <= best + 1e-6


@pytest.mark.slow
def test_a_curve_ends_where_likelihood_and_prior_have_no_slope():
    """In posterior errors of all c coefficients together, of which chance leaves √c: the noise of
    four chains over sixteen rounds adds an eighth of that variance at most."""
    rows = table(np.square)
    model, seen = bent(rows), []
    coefficients = sum(part.numel() for part in model.parameters())
    noise = (coefficients / 8) ** 0.5
    rounds = maximised(model, rows, watch=lambda *progress: seen.append(progress))
    assert _slope(model, rows) < noise
    assert [done for done, _ in seen] == list(range(1, rounds + 1))


def test_only_means_that_are_linear_in_their_coefficients_are_served():
    rows = table(np.square, rows=100)
    line = fit_linear(STRUCTURE, MemoryRows(*rows)).model
    assert only_linear_means(line)
    network = Gaussian(1, (8,)).double()  # stays as it is
    beside = StructuralModel(GRAPH, [line.mechanism(0), network, line.mechanism(2)])
    assert only_linear_means(beside)


def wide_table():
    """A chain of four sines, of which rows hide two together."""
    rng = np.random.default_rng(0)
    x = [rng.normal(size=600)]
    for _ in range(3):
        x.append(np.sin(2.0 * x[-1]) + 0.3 * rng.normal(size=600))
    df = pd.DataFrame(np.stack(x, 1), columns=list("abcd"))
    return df.mask(rng.random(df.shape) < 0.3)


def settings(**changes):
    """Those of a fit that takes two nodes hidden together for many."""
    rules = ImportanceRules(starts=2, most_steps=4, most_nodes=1)
    about = {"integration.training": Effort(importance=rules), "training.most_together": 1}
    return preset_settings("auto", {**about, "shape": Shape(hidden=(32, 32)), **changes})


@pytest.mark.slow
def test_networks_are_trained_on_completions_where_rows_hide_much_together():
    """Better than lines by 0.3 nats or more, on rows that it has not seen (0.8 here)."""
    df = wide_table()
    given = settings(**{"selection.compare": False, "epochs": 30})
    found = MissCNF("a -> b -> c -> d", given, progress=False).fit(df.iloc[:500])
    line = MissCNF("a -> b -> c -> d", "linear", progress=False).fit(df.iloc[:500])
    fresh = df.iloc[500:]
    assert found.log_prob(fresh).mean() > line.log_prob(fresh).mean() + 0.3


@pytest.mark.slow
def test_training_on_completions_that_was_interrupted_ends_in_the_same_bits(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    given, df = settings(**{"selection.compare": False, "epochs": 6}), wide_table()
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    state = whole / "network" / "state.json"
    save = loop.Trainer._save

    def save_and_copy(self):
        save(self)
        if json.loads(state.read_bytes())["state"]["loop"]["epoch"] == 3:
            shutil.copytree(whole, stopped)

    monkeypatch.setattr(loop.Trainer, "_save", save_and_copy)
    fits = [
        MissCNF("a -> b -> c -> d", given, progress=False).fit(df, checkpoint=folder)
        for folder in (whole, stopped)
    ]
    assert stopped.exists()
    first, second = (dict(fit.model_.named_parameters()) for fit in fits)
    assert all(torch.equal(first[name], second[name]) for name in first)
