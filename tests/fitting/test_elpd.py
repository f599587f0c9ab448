"""Which epoch is kept: the last, unless held-out rows clearly favour another."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

from misscnf import MissCNF
from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.settings import Shape, preset_settings
from misscnf.fitting.train.ensemble import Training
from misscnf.graph import CausalGraph
from misscnf.model import Structure

UNASKED = {"compare_linear": False, "epochs": 30, "shape": Shape(hidden=(32, 32))}
"""Networks for all nodes, whether they deserve them or not."""


def curve(rows, seed):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    return pd.DataFrame({"a": a, "b": np.sin(2.0 * a) + 0.3 * rng.normal(size=rows)})


def chance(rows, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"a": rng.normal(size=rows), "b": rng.normal(size=rows)})


def fit(train, held_out, **changes):
    settings = {**UNASKED, **changes}
    model = MissCNF("a -> b", kinds="continuous", settings=settings, progress=False)
    return model.fit(train, validation=held_out)


def parameters(model):
    return torch.cat([p.flatten() for p in model.model_.parameters()])


def test_a_gain_in_standard_errors():
    assert ElpdDifference.of(torch.tensor([1.0, 3.0])).ratio == pytest.approx(2.0)
    assert ElpdDifference.of(torch.zeros(5)).ratio == 0.0
    assert ElpdDifference.of(torch.ones(5)).ratio == math.inf
    assert ElpdDifference.of(torch.ones(1)).ratio == 0.0  # one row is no evidence


def test_the_last_epoch_is_kept_though_another_was_better_by_luck():
    train, held_out = curve(1000, 0), curve(100, 1)
    model, last = fit(train, held_out), fit(train, held_out, keep_best=False)
    best_epoch = model.history_.validation.idxmax()
    assert best_epoch < len(model.history_) - 1
    assert torch.equal(parameters(model), parameters(last))
    assert model.history_.kept.tolist() == [False] * (len(model.history_) - 1) + [True]


def test_an_earlier_epoch_is_kept_where_the_last_clearly_bends_to_its_rows():
    train, held_out = chance(60, 0), chance(2000, 1)
    model, last = fit(train, held_out), fit(train, held_out, keep_best=False)
    elpd_difference = ElpdDifference.of(
        torch.tensor((model.log_prob(held_out) - last.log_prob(held_out)).to_numpy())
    )
    assert elpd_difference.ratio > 3.0
    assert model.history_.kept.idxmax() == model.history_.validation.idxmax()
    assert model.history_.validation.max() == pytest.approx(
        model.log_prob(held_out).mean(), abs=1e-3
    )


def test_each_replicate_keeps_its_own_epoch():
    """Both learn from forty rows of chance; held-out rows weigh nothing for the second."""
    graph, settings = CausalGraph.read("a -> b"), preset_settings("auto", UNASKED)
    models = [
        Structure.of(graph, [CONTINUOUS] * 2).build(settings.shape).double() for _ in range(2)
    ]
    for model in models:
        model.initialise(torch.Generator().manual_seed(0))
    table = torch.tensor(chance(2040, 2).to_numpy())
    generator = torch.Generator().manual_seed(0)
    completions = Completions.draw(
        models[0], MemoryRows(table, torch.ones_like(table).bool()), 1, generator
    )
    rows = torch.arange(2040).split([40, 2000])
    weights = torch.ones(2, 2040, dtype=torch.float64)
    weights[1, 40:] = 0.0
    training = Training(models, completions, rows, weights, settings, seed=0)
    training.run()
    best, last = (
        torch.cat([tensor.flatten(1) for tensor in of[1].values()], 1)
        for of in (training.best, training.averaged)
    )
    kept = [torch.cat([p.flatten() for p in model.mechanism(1).parameters()]) for model in models]
    assert torch.equal(kept[0], best[0])
    assert torch.equal(kept[1], last[1])
    assert not torch.equal(best[0], last[0])
