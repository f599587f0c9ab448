"""Lines of weighted rows: weighted least squares, and no slope left where rows have holes."""

import torch

from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.sandwich import one_step_replicates
from misscnf.fitting.solve.simplified_newton import _value_and_gradient, maximise_lines
from misscnf.graph import CausalGraph
from misscnf.model import Structure

GRAPH = CausalGraph.read("a -> c; b -> c")


def rows(count=400, lost=0.0, seed=0):
    g = torch.Generator().manual_seed(seed)
    a, b, u = torch.randn(3, count, generator=g, dtype=torch.float64)
    values = torch.stack([a, b, 0.5 + a - 2.0 * b + 0.3 * u], 1)
    return values, torch.rand(values.shape, generator=g) >= lost


def weights(count, sets=3):
    w = torch.empty(sets, count, dtype=torch.float64)
    w.exponential_(generator=torch.Generator().manual_seed(5))
    return w / w.mean(1, keepdim=True)


def test_complete_rows_give_weighted_least_squares():
    values, observed = rows()
    w = weights(len(values))
    line = fit_linear(Structure.of(GRAPH, [CONTINUOUS] * 3), MemoryRows(values, observed)).model
    completions = Completions.draw(
        line, MemoryRows(values, observed), 2, derive_generator(0, "rows")
    )
    design = torch.cat([torch.ones(len(values), 1), values[:, :2]], 1)
    for found, mine in zip(maximise_lines(line, completions, w), w, strict=True):
        root = mine.sqrt()[:, None]
        by_hand = torch.linalg.lstsq(root * design, root * values[:, 2:]).solution[:, 0]
        mean = found.mechanism(2).mean
        got = torch.cat([mean.bias, mean.weight[0]])
        assert torch.allclose(got, by_hand, atol=1e-4)
        left = values[:, 2] - design @ by_hand
        scale = (mine * left.square()).sum().div(mine.sum()).sqrt()
        assert torch.allclose(found.mechanism(2).log_scale.bias.exp(), scale, rtol=1e-3)


def test_with_holes_no_slope_is_left_and_one_step_is_beaten():
    values, observed = rows(lost=0.6)
    w = weights(len(values))
    line = fit_linear(Structure.of(GRAPH, [CONTINUOUS] * 3), MemoryRows(values, observed)).model
    completions = Completions.draw(
        line, MemoryRows(values, observed), 32, derive_generator(0, "rows")
    )
    once, _ = _value_and_gradient(one_step_replicates(line, completions, w), completions, w)
    start, slope_before = _value_and_gradient([line] * 3, completions, w)
    best, slope = _value_and_gradient(maximise_lines(line, completions, w), completions, w)
    assert (best > start).all()
    assert (best >= once - 0.1).all()
    assert float(slope.norm()) < 0.1 * float(slope_before.norm())
