"""Where rows lie does not matter: shards of odd sizes give every solver the fit of the table."""

import numpy as np
import pytest
import torch
from row_sources import ShardedRows

from misscnf.data.domains import CONTINUOUS, Binary
from misscnf.data.rows import JoinedRows, MemoryRows, SelectedRows
from misscnf.fitting.fit import fit_model
from misscnf.fitting.replicates import replicate_fit
from misscnf.fitting.settings import Settings, preset_settings
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Shape
from misscnf.model import Structure

GRAPH = CausalGraph.read("a -> b; b -> c; a -> c")
CONTINUOUS_ONLY = Structure.of(GRAPH, [CONTINUOUS] * 3)
MIXED = Structure.of(GRAPH, [CONTINUOUS, Binary(0.5, 0.5), CONTINUOUS])


def table(structure, rows=500, form=lambda a: 0.8 * a, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b = form(a) + 0.5 * rng.normal(size=rows)
    b = (b > 0) * 1.0 if structure is MIXED else b
    values = np.stack([a, b, b - 0.5 * a + rng.normal(size=rows)], 1)
    observed = torch.tensor(rng.random(values.shape) >= 0.3)
    return torch.where(observed, torch.tensor(values), 0.0), observed


def vector(model):
    return torch.cat([part.detach().flatten() for part in model.parameters()])


def both(rows, work):
    """Returns what some work finds on rows in memory and on shards."""
    shards = ShardedRows(*rows)
    found = work(MemoryRows(*rows)), work(shards)
    assert shards.most > 0
    return found


def alike(rows, work):
    """Asserts that parameters are the same to 1e-6."""
    one, other = both(rows, work)
    torch.testing.assert_close(one, other, atol=1e-6, rtol=0)


@pytest.mark.parametrize("structure", [CONTINUOUS_ONLY, MIXED], ids=["gaussian", "mixed"])
def test_linear_fits(structure):
    alike(table(structure), lambda rows: vector(fit_linear(structure, rows).model))


def test_monte_carlo_maxima():
    def work(rows):
        model = fit_linear(CONTINUOUS_ONLY, rows).model
        with torch.no_grad():
            model.mechanism(2).mean.weight.zero_()
        maximise_monte_carlo(model, rows, Settings(), 0)
        return vector(model)

    alike(table(CONTINUOUS_ONLY), work)


def halves(rows, share=0.85):
    cut = int(share * len(rows))
    order = torch.arange(len(rows))
    return SelectedRows(rows, order[:cut]), SelectedRows(rows, order[cut:])


@pytest.mark.slow
@pytest.mark.parametrize("form", ["curve", "spline noise", "network"])
def test_whole_fits(form):
    """Curves by `auto`; a spline and networks where they are all that is asked for."""
    changes = {
        "curve": {"epochs": 4, "selection.noise": False},
        "spline noise": {"shape": Shape("spline", hidden=()), "selection.compare": False},
        "network": {"shape": Shape(hidden=(8,)), "selection.compare": False},
    }[form]
    settings = preset_settings("auto", {"epochs": 3, **changes})

    def work(rows):
        fitted = fit_model(CONTINUOUS_ONLY, *halves(rows), settings)
        if form == "curve":
            assert fitted.forms[1].curve
        return vector(fitted.model)

    alike(table(CONTINUOUS_ONLY, form=np.square), work)


@pytest.mark.parametrize("networks", [False, True], ids=["solved", "trained"])
def test_replicates(networks):
    settings = preset_settings("auto", {"epochs": 2})
    shape = Shape(hidden=(8,) if networks else ())

    def work(rows):
        line = fit_linear(CONTINUOUS_ONLY, rows).model
        model = CONTINUOUS_ONLY.build(shape).double()
        for block in range(3):
            model.block(block).start_from(line.block(block))
        found = replicate_fit(model, CONTINUOUS_ONLY, rows, settings, count=3)
        return torch.cat([vector(one) for one in found])

    alike(table(CONTINUOUS_ONLY, rows=300), work)


def test_joined_and_selected_rows_are_the_rows_they_name():
    rows = MemoryRows(*table(CONTINUOUS_ONLY, rows=100))
    first, second = halves(rows)
    joined = JoinedRows(second, first)
    order = torch.cat([torch.arange(85, 100), torch.arange(85)])
    numbers = torch.tensor([3, 99, 0, 40, 14, 15, 16])
    for found, wanted in zip(joined.take(numbers), rows.take(order[numbers]), strict=True):
        assert torch.equal(found, wanted)
    batches = list(joined.batches(33))
    assert [len(batch.values) for batch in batches] == [33, 33, 33, 1]
    assert torch.equal(torch.cat([batch.values for batch in batches]), rows.values[order])
