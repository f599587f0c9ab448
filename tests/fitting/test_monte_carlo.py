"""Lines and curves at the maximum of the likelihood of what rows show."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

import misscnf.fitting.solve.monte_carlo as home
from misscnf.data.domains import CONTINUOUS, Binary
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.errors import FitError
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Curves, Settings
from misscnf.fitting.smooth.basis import find_basis, fit_curve
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.fitting.solve.sandwich import measure_information
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel, Structure

GRAPH = CausalGraph.read("a -> b; b -> c")
STRUCTURE = Structure.of(GRAPH, [CONTINUOUS] * 3)


def table(form, rows=1500, lost=0.4, seed=0):
    """a, b = form(a) + noise and c = b + noise, some of each lost."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b = form(a) + 0.5 * rng.normal(size=rows)
    values = torch.tensor(np.stack([a, b, b + rng.normal(size=rows)], 1))
    return values, torch.tensor(rng.random(values.shape) >= lost)


def total_log_prob(model, rows):
    """Of what the rows show, with more draws than any fit spends."""
    plan, generator = Plan.make(model.graph, rows[1]), derive_generator(0, "judge")
    values = torch.where(rows[1], rows[0], 0.0)
    effort = Effort(draws=1024)
    with torch.no_grad():
        return float(observed_log_prob(model, values, plan, generator, effort).log_prob.sum())


def bent(rows):
    """Lines, and the curve of b that the rows which show a and b have."""
    line = fit_linear(STRUCTURE, MemoryRows(*rows)).model
    shown = rows[1][:, :2].all(1)
    x, y = rows[0][shown, :1], rows[0][shown, 1]
    seen = int(rows[1][:, 1].sum())
    basis = find_basis(x, y, len(rows[0]), seen, torch.Generator(), Curves())
    curve = fit_curve(basis, (CONTINUOUS,), x, y)
    return StructuralModel(GRAPH, [line.mechanism(0), curve, line.mechanism(2)])


@pytest.mark.slow
def test_lines_settle_at_the_maximum_of_full_information():
    """lavaan's likelihood, to a tenth of a nat in 1500 rows, from a start that is far off."""
    rows = table(lambda a: 0.8 * a)
    found = fit_linear(STRUCTURE, MemoryRows(*rows)).model
    best = total_log_prob(found, rows)
    with torch.no_grad():
        found.mechanism(1).mean.weight.fill_(-0.5)
        found.mechanism(2).mean.bias.fill_(1.0)
        found.mechanism(2).log_scale.bias.fill_(1.0)
    assert total_log_prob(found, rows) < best - 500
    maximise_monte_carlo(found, MemoryRows(*rows), Settings(), 0)
    assert best - 0.1 < total_log_prob(found, rows) <= best + 1e-6


def test_logits_settle_beside_lines():
    graph = CausalGraph.read("a -> b")
    domains = (CONTINUOUS, Binary())
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(1000, generator=generator)
    b = (torch.rand(1000, generator=generator) < torch.sigmoid(1.5 * a - 0.5)).double()
    rows = torch.stack([a, b], 1), torch.rand(1000, 2, generator=generator) > 0.3
    found = fit_linear(Structure.of(graph, domains), MemoryRows(*rows)).model
    best = total_log_prob(found, rows)
    with torch.no_grad():
        next(found.mechanism(1).parameters()).add_(0.5)
    maximise_monte_carlo(found, MemoryRows(*rows), Settings(), 0)
    assert total_log_prob(found, rows) == pytest.approx(best, abs=0.1)


@pytest.mark.slow
def test_a_curve_settles_where_likelihood_and_prior_have_no_slope():
    """In posterior errors of all c coefficients together, with sixteen times the completions of
    the search, whose own noise is √(c / 32) of one at most, on average: here over four."""
    rows = table(np.square)
    start = bent(rows)
    coefficients = sum(part.numel() for part in start.parameters())
    noise = (coefficients / 32) ** 0.5
    assert _slope(start, rows) > 2 * noise
    slopes = []
    for seed in range(4):
        model = copy.deepcopy(start)
        maximise_monte_carlo(model, MemoryRows(*rows), Settings(), seed)
        slopes.append(_slope(model, rows))
    assert np.square(slopes).mean() < noise**2


def _slope(model, rows):
    """√(gᵀ A⁻¹ g) of the gradient g of likelihood and prior and the information A."""
    completions = Completions.draw(model, MemoryRows(*rows), 512, derive_generator(1, "slope"))
    information = measure_information(model, completions)
    precision = information.prior_precision
    weights = nn.utils.parameters_to_vector(model.parameters())
    gradient = information.scores.sum(0) - precision * weights.detach()
    matrix = information.matrix + precision.diag()
    return float((gradient @ torch.linalg.solve(matrix, gradient)).sqrt())


@pytest.mark.slow
def test_without_holes_a_solved_curve_stays():
    rows = table(np.square, lost=0.0)
    model = bent(rows)
    x = rows[0][:, :1]
    before = model.mechanism(1).mean(x).detach()
    assert maximise_monte_carlo(model, MemoryRows(*rows), Settings(), 0) == 1
    moved = model.mechanism(1).mean(x).detach() - before
    assert float(moved.abs().max()) < 1e-3 * 0.5  # of the noise


@pytest.mark.slow
def test_networks_stay_and_lines_beside_them_move():
    rows = table(lambda a: 0.8 * a)
    model = fit_linear(STRUCTURE, MemoryRows(*rows)).model
    network = Gaussian(1, (8,)).double()
    network.initialise(derive_generator(0, "network"))
    model = StructuralModel(GRAPH, [model.mechanism(0), network, model.mechanism(2)])
    before = [nn.utils.parameters_to_vector(model.mechanism(i).parameters()) for i in (1, 2)]
    maximise_monte_carlo(model, MemoryRows(*rows), Settings(), 0)
    after = [nn.utils.parameters_to_vector(model.mechanism(i).parameters()) for i in (1, 2)]
    assert torch.equal(before[0], after[0])
    assert not torch.equal(before[1], after[1])


def test_a_scale_network_weighs_the_rows_of_its_mean_and_stays():
    """On complete rows the line of b ends where weighted least squares have it."""
    a, b, _ = (rows := table(lambda a: 0.8 * a, lost=0.0))[0].T
    law = Gaussian(1, scale_hidden=(8,)).double()
    with torch.no_grad():
        for part in law.log_scale.parameters():
            part.normal_(generator=torch.Generator().manual_seed(0))
    line = fit_linear(STRUCTURE, MemoryRows(*rows)).model
    model = StructuralModel(GRAPH, [line.mechanism(0), law, line.mechanism(2)])
    scale = nn.utils.parameters_to_vector(law.log_scale.parameters())
    maximise_monte_carlo(model, MemoryRows(*rows), Settings(), 0)
    assert torch.equal(nn.utils.parameters_to_vector(law.log_scale.parameters()), scale)
    deviation = torch.exp(law.location_and_log_scale(a[:, None])[1].detach())
    assert float(deviation.max() / deviation.min()) > 3  # so that weights matter
    design = torch.stack([torch.ones_like(a), a], 1) / deviation[:, None]
    best = torch.linalg.lstsq(design, (b / deviation)[:, None]).solution[:, 0]
    assert law.linear_mean().coefficients.tolist() == pytest.approx(best.tolist(), abs=1e-6)


@pytest.mark.slow
def test_same_seed_same_bits_and_who_looks_on_sees_every_round():
    rows, seen = table(np.square), []
    first, second = bent(rows), bent(rows)
    rounds = maximise_monte_carlo(
        first, MemoryRows(*rows), Settings(), 0, lambda *progress: seen.append(progress)
    )
    maximise_monte_carlo(second, MemoryRows(*rows), Settings(), 0)
    assert [done for done, _ in seen] == list(range(1, rounds + 1))
    for name, tensor in first.state_dict().items():
        assert torch.equal(tensor, second.state_dict()[name]), name


@pytest.mark.slow
def test_a_far_row_bends_the_tail_and_not_the_middle():
    """One row at twelve deviations, thirty errors off: among the others, the curve moves by a
    tenth of the noise at most."""
    rows = table(np.sin, lost=0.0)
    far = torch.tensor([[12.0, 15.0, 15.0]], dtype=torch.float64)
    values, observed = torch.cat([rows[0], far]), torch.ones(len(rows[0]) + 1, 3).bool()
    inner = rows[0][:, :1]
    inner = inner[(inner.abs() < 2.0)[:, 0]]
    with_it, without = (
        bent(table).mechanism(1).mean(inner).detach() for table in ((values, observed), rows)
    )
    assert float((with_it - without).abs().max()) < 0.1 * 0.5


@pytest.mark.slow
def test_a_node_that_its_parent_decides_stays_within_numbers():
    rows = table(lambda a: 0.8 * a, rows=300)
    values = rows[0].clone()
    values[:, 1] = values[:, 0]
    model = fit_linear(STRUCTURE, MemoryRows(values, rows[1])).model
    maximise_monte_carlo(model, MemoryRows(values, rows[1]), Settings(), 0)
    assert all(parameter.isfinite().all() for parameter in model.parameters())
    assert float(model.mechanism(1).log_scale.bias.detach()) >= np.log(1e-4) - 1e-9


@pytest.mark.slow
def test_what_leaves_the_numbers_behind_leaves_the_model_alone(monkeypatch):
    def fail(*_, **__):
        raise FitError("no likelihood at the start")

    monkeypatch.setattr(home, "_maximise_completions", fail)
    rows = table(np.square)
    model, untouched = bent(rows), bent(rows)
    maximise_monte_carlo(model, MemoryRows(*rows), Settings(), 0)
    for name, tensor in untouched.state_dict().items():
        assert torch.equal(tensor, model.state_dict()[name]), name
