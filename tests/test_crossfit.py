"""Which nodes earn a network: curves do, lines do not; who judges a row did not see it."""

import math

import numpy as np
import pandas as pd
import pytest
import torch

import misscnf.fitting.fit as fit_home
from misscnf import MissCNF
from misscnf.draws import derive_generator
from misscnf.fitting.crossfit import CrossFit, Gain, cross_fit
from misscnf.fitting.fit import build_model
from misscnf.fitting.line import fit_line
from misscnf.fitting.settings import preset_settings

GRAPH = "a -> b; b -> c; a -> d"
SETTINGS = preset_settings("auto", epochs=25)


def table(rows=600, seed=0):
    """b is a curve of a; c and d are lines. A quarter of a and b is lost."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b = np.sin(2 * a) + 0.4 * rng.normal(size=rows)
    df = pd.DataFrame(
        {"a": a, "b": b, "c": b + rng.normal(size=rows), "d": a + rng.normal(size=rows)}
    )
    for name in ("a", "b"):
        df.loc[rng.random(rows) < 0.25, name] = np.nan
    return df


@pytest.fixture(scope="module")
def model():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield MissCNF(GRAPH, settings={"epochs": 25}, progress=False).fit(table())
    torch.set_default_dtype(before)


@pytest.fixture(scope="module")
def crossed(model):
    rows, domains = model._table, model.schema_.domains
    pair = rows.values, rows.observed
    line = fit_line(model.graph_, domains, *pair).model
    starts = []
    for fold in range(3):
        start = build_model(model.graph_, domains, SETTINGS.shape, None)
        start.initialise(derive_generator(0, "fold", fold))
        starts.append(start.double())
    return cross_fit(line, starts, pair, SETTINGS, seed=0)


def test_the_curve_earns_a_network_and_the_lines_do_not(model):
    assert model.chosen_ == "network"
    hidden = [bool(mechanism.mean.hidden) for mechanism in model.model_.mechanisms]
    assert dict(zip(model.graph_.nodes, hidden, strict=True)) == {
        "a": False,
        "b": True,
        "c": False,
        "d": False,
    }
    nodes = model.comparison_["nodes"]
    assert nodes["b"]["gain"] > 0.1
    assert nodes["b"]["gain"] > 5 * nodes["b"]["standard_error"]
    assert model.comparison_["gain"] == pytest.approx(nodes["b"]["gain"])


def test_gains_by_node_add_up_along_a_path(crossed):
    """From no network to all of them, one node after another: the total, to rounding."""
    nodes, before, total = sorted(crossed.candidates), frozenset(), 0.0
    for node in nodes:
        total += crossed.gain(before | {node}, before).mean
        before |= {node}
    assert total == pytest.approx(crossed.gain(crossed.candidates, frozenset()).mean)
    assert crossed.gain(before, before) == Gain(0.0, 0.0)


def test_a_row_is_judged_by_the_fold_that_left_it_out(crossed):
    sizes = torch.bincount(crossed.fold)
    assert sizes.tolist() == [200, 200, 200]
    whole = crossed.log_prob(frozenset())
    swapped = CrossFit.__new__(CrossFit)
    swapped.particles, swapped.fold = crossed.particles, crossed.fold
    swapped._parts = [crossed._parts[0]]
    alone = swapped.log_prob(frozenset())
    mine = crossed.fold == 0
    assert torch.equal(alone[mine], whole[mine])
    assert (alone[~mine] == 0).all()


def test_a_higher_bar_keeps_fewer_nodes(crossed):
    assert crossed.choose(-math.inf) == crossed.candidates
    assert crossed.choose(math.inf) == frozenset()
    assert crossed.choose(2.0) == {1}  # b


def test_lines_stay_lines():
    """Eight linear tables of 400 rows, three candidates each: at 1.5 standard errors a false
    network has a chance of 6.7 % a node, so seven or more of 24 one of 1e-3."""
    found = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=400)
        b = a + rng.normal(size=400)
        df = pd.DataFrame({"a": a, "b": b, "c": a - b + rng.normal(size=400)})
        df["d"] = df.c + rng.normal(size=400)
        df.loc[rng.random(400) < 0.3, "b"] = np.nan
        graph = "a -> b; a -> c; b -> c; c -> d"
        fitted = MissCNF(graph, settings={"epochs": 6}, progress=False).fit(df)
        networks = len(fitted_networks(fitted))
        assert (fitted.chosen_ == "linear") == (networks == 0)
        found += networks
    assert found < 7


def fitted_networks(model):
    return [m for m in model.model_.mechanisms if m.mean.hidden]


def test_large_tables_let_held_out_rows_decide(monkeypatch):
    monkeypatch.setattr(fit_home, "MOST_TO_CROSS_FIT", 100)
    fitted = MissCNF(GRAPH, settings={"epochs": 15}, progress=False).fit(table())
    assert "nodes" not in fitted.comparison_
    assert len(fitted_networks(fitted)) in (0, 3)


def test_a_model_with_some_networks_is_saved_and_replicated(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    pd.testing.assert_frame_equal(loaded.sample(20), model.sample(20))
    assert loaded.comparison_ == model.comparison_
    effect = model.effect("c", {"a": 1}, {"a": 0}, interval=0.9, replicates=5)
    assert effect.interval[0] < effect.estimate < effect.interval[1]
    kinds = {len(m.mechanisms[1].mean.hidden) for m in model._kept[next(iter(model._kept))]}
    assert kinds == {3}
    assert not model._kept[next(iter(model._kept))][0].mechanisms[2].mean.hidden
