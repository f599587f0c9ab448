"""Which nodes earn a network: curves do, lines do not; who judges a row did not see it."""

import copy
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from misscnf import MissCNF
from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import CrossFit, Folds, RichSet, cross_fit
from misscnf.fitting.select.forms import build_model
from misscnf.fitting.select.given import Given, some_rows
from misscnf.fitting.settings import Shape, preset_settings
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.simplified_newton import maximise_lines
from misscnf.graph import CausalGraph
from misscnf.model import Structure

GRAPH = "a -> b; b -> c; a -> d"
SETTINGS = preset_settings("auto", {"epochs": 25})


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
    yield MissCNF(GRAPH, settings={"epochs": 25, "selection.curves": False}, progress=False).fit(
        table()
    )
    torch.set_default_dtype(before)


@pytest.fixture(scope="module")
def crossed(model):
    rows, domains = model._table, model.schema_.domains
    pair = rows.values, rows.observed
    line = fit_linear(Structure.of(model.graph_, domains), MemoryRows(*pair)).model
    completions = Completions.draw(line, MemoryRows(*pair), 16, derive_generator(0, "rows"))
    folds = Folds.of(len(completions), SETTINGS.selection, seed=0)
    lines = maximise_lines(line, completions, folds.weights())
    starts = [
        build_model(Structure.of(model.graph_, domains), SETTINGS.shape, its_line, seed)
        for seed, its_line in enumerate(lines)
    ]
    every = frozenset({1, 2, 3})
    given = Given(Structure.of(model.graph_, domains), MemoryRows(*pair), SETTINGS, 0)
    return cross_fit(completions, folds, starts, lines, every, given)


def test_folds_deal_every_row_out_once():
    folds = Folds.of(603, SETTINGS.selection, seed=1)
    rows = torch.cat([folds.rows(fold) for fold in range(folds.count)])
    assert sorted(rows.tolist()) == list(range(603))
    sizes = [len(folds.rows(fold)) for fold in range(folds.count)]
    assert max(sizes) - min(sizes) <= 1
    weights = folds.weights()
    assert (weights[folds.fold, torch.arange(603)] == 0).all()
    assert (weights > 0).sum(0).tolist() == [folds.count - 1] * 603
    assert not torch.equal(folds.fold, Folds.of(603, SETTINGS.selection, seed=2).fold)


@pytest.mark.slow
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
    assert nodes["b"]["elpd_difference"] > 0.1
    assert nodes["b"]["elpd_difference"] > 5 * nodes["b"]["standard_error"]
    assert model.comparison_["elpd_difference"] == pytest.approx(nodes["b"]["elpd_difference"])


@pytest.mark.slow
def test_gains_by_node_add_up_along_a_path(crossed):
    """From no network to all of them, one node after another: the total, to rounding."""
    nodes, before, total = sorted(crossed.candidates), frozenset(), 0.0
    for node in nodes:
        total += crossed.elpd_difference(before | {node}, before).mean
        before |= {node}
    assert total == pytest.approx(crossed.elpd_difference(crossed.candidates, frozenset()).mean)
    assert crossed.elpd_difference(before, before) == ElpdDifference(0.0, 0.0)


@pytest.fixture(scope="module")
def many():
    """Completions of nine nodes, and plain and rich models of every fold, which differ at random;
    x2 and x5 share a mechanism."""
    edges = "x0 -> x1 -> x2; x1 -> x3 -> x4; x0 -> x5; x4 -> x6; x5 -> x6; x6 -> x7 -> x8"
    graph, g = CausalGraph.read(edges), torch.Generator().manual_seed(0)
    keys = ["x2" if name == "x5" else name for name in graph.nodes]
    structure = Structure.of(graph, [CONTINUOUS] * 9, keys)
    values = torch.randn(200, 9, generator=g, dtype=torch.float64)
    rows = MemoryRows(values, torch.rand(200, 9, generator=g) < 0.6)

    def moved(model):
        found = copy.deepcopy(model)
        for parameter in found.parameters():
            parameter.data += 0.15 * torch.randn(parameter.shape, generator=g)
        return found

    line = structure.build(Shape(hidden=())).double()
    for block in range(len(line.blocks)):
        line.block(block).start_unseen(0.5)
    folds = Folds.of(200, SETTINGS.selection, 0)
    plain = [moved(line) for _ in range(folds.count)]
    rich = [moved(line) for _ in range(folds.count)]
    return Completions.draw(line, rows, 8, g), folds, rich, plain


def brute_force(many, candidates, rich):
    """log p of every row with some blocks rich, every factor of the table evaluated."""
    completions, folds, *models = many
    answer = torch.empty(len(completions), dtype=torch.float64)
    for fold in range(folds.count):

        def log_factor(i, own, parents, fold=fold):
            block = models[0][fold].block_of[i]
            if block not in candidates:
                return None
            model = models[0 if block in rich else 1][fold]
            return model.mechanism(i).log_prob(own, parents).expand(own.shape)[None]

        rows = folds.rows(fold)
        answer[rows] = completions.log_prob(rows, log_factor)[0].detach()
    return answer


def choose_by_brute_force(many, candidates, z):
    """Backward elimination that asks every block again after each removal."""
    chosen = candidates
    while chosen:
        whole = brute_force(many, candidates, chosen)
        ratio, weakest = min(
            (ElpdDifference.of(whole - brute_force(many, candidates, chosen - {b})).ratio, b)
            for b in chosen
        )
        if ratio > z:
            break
        chosen -= {weakest}
    return chosen


def test_sets_of_rich_blocks_are_worth_what_all_factors_say(many):
    candidates = frozenset(range(1, 8))
    crossed = CrossFit(*many, candidates)
    assert set(crossed.moves) == candidates
    for rich in (frozenset(), frozenset({1, 4}), frozenset({2, 3, 6}), candidates):
        now, wanted = RichSet(crossed, rich), brute_force(many, candidates, rich)
        assert torch.allclose(now.log_prob(), wanted, atol=1e-10)
        for block in candidates:
            both = (brute_force(many, candidates, rich | {block}), rich - {block})
            gain = both[0] - brute_force(many, candidates, both[1])
            assert torch.allclose(now.gain(block), gain, atol=1e-10)
        now.toggle(3)
        now.toggle(3)
        assert torch.allclose(now.log_prob(), wanted, atol=1e-10)


@pytest.mark.parametrize("z", [-1.0, 0.0, 0.5, 1.5])
def test_asking_neighbours_only_chooses_what_asking_everyone_does(many, z):
    candidates = frozenset(range(8))
    found = CrossFit(*many, candidates).choose(dict.fromkeys(candidates, z))
    assert found == choose_by_brute_force(many, candidates, z)


def test_a_row_is_judged_by_the_fold_that_left_it_out(many):
    completions, folds, rich, plain = many
    candidates = frozenset({1, 2, 3})
    other = CrossFit(completions, folds, [plain[0], *rich[1:]], plain, candidates)
    whole = CrossFit(*many, candidates)
    one, two = (RichSet(crossed, candidates).log_prob() for crossed in (whole, other))
    assert (((one - two).abs() > 1e-9) == (folds.fold == 0)).double().mean() > 0.9
    assert torch.equal(one[folds.fold != 0], two[folds.fold != 0])


@pytest.mark.slow
def test_a_higher_bar_keeps_fewer_nodes(crossed):
    def choose(z: float) -> frozenset[int]:
        return crossed.choose(dict.fromkeys(crossed.candidates, z))

    assert choose(-math.inf) == crossed.candidates
    assert choose(math.inf) == frozenset()
    assert choose(2.0) == {1}  # b


@pytest.mark.slow
def test_lines_stay_lines():
    """Four linear tables of 400 rows, three candidates each: at 1.5 standard errors a false
    network has a chance of at most 6.7 % a node and a false curve too, so seven or more of 12
    nodes one of 1e-3."""
    found = 0
    for seed in range(4):
        rng = np.random.default_rng(seed)
        a = rng.normal(size=400)
        b = a + rng.normal(size=400)
        df = pd.DataFrame({"a": a, "b": b, "c": a - b + rng.normal(size=400)})
        df["d"] = df.c + rng.normal(size=400)
        df.loc[rng.random(400) < 0.3, "b"] = np.nan
        graph = "a -> b; a -> c; b -> c; c -> d"
        fitted = MissCNF(graph, settings={"epochs": 6, "selection.folds": 3}, progress=False).fit(
            df
        )
        bent = sum(not mechanism.mean.is_line for mechanism in fitted.model_.mechanisms)
        assert (fitted.chosen_ == "linear") == (bent == 0)
        found += bent
    assert found < 7


@pytest.mark.slow
def test_long_tables_are_judged_by_some_of_their_rows():
    values = torch.arange(500.0)[:, None].expand(500, 3)
    rows = MemoryRows(values, torch.ones_like(values, dtype=torch.bool))
    assert some_rows(rows, SETTINGS.selection, seed=0) is rows
    found = some_rows(rows, replace(SETTINGS.selection, most_rows=100), seed=0)
    assert len(found) == 100
    some, observed = found.take(torch.arange(100))
    assert some.shape == observed.shape == (100, 3)
    assert len(some[:, 0].unique()) == 100
    settings = {"epochs": 2, "selection.most_rows": 100, "selection.curves": False}
    settings |= {"selection.noise": False, "selection.steps": 40}
    fitted = MissCNF(GRAPH, settings=settings, progress=False).fit(table())
    assert set(fitted.comparison_["nodes"]) == {"b", "c", "d"}


@pytest.mark.slow
def test_a_model_with_some_networks_is_saved_and_replicated(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    pd.testing.assert_frame_equal(loaded.sample(20), model.sample(20))
    assert loaded.comparison_ == model.comparison_
    effect = model.effect("c", {"a": 1}, {"a": 0}, interval=0.9, replicates=5)
    assert effect.interval[0] < effect.estimate < effect.interval[1]
    found, _ = next(iter(model._cache.replicates.values()))
    kept = found.models
    kinds = {len(m.mechanisms[1].mean.hidden) for m in kept}
    assert kinds == {3}
    assert not kept[0].mechanisms[2].mean.hidden
