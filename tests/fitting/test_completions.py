"""The likelihood near a fit by completions, against closed forms and sums."""

import pytest
import torch
from oracles import gaussian_total

from misscnf.data.domains import CONTINUOUS, Binary
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Shape
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel, Structure

DIAMOND = CausalGraph.from_edges([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
BINARY = Binary(location=0.5, scale=0.5)


def linear(seed, graph=DIAMOND):
    """A linear model with random coefficients."""
    generator = derive_generator(seed, "model")
    mechanisms = []
    for parents in graph.parents:
        mechanism = Gaussian(len(parents)).double()
        weights = torch.randn(len(parents), generator=generator)
        mechanism.set_line(torch.tensor(0.3), 0.7 * weights, torch.tensor(0.8))
        mechanisms.append(mechanism)
    return StructuralModel(graph, mechanisms)


def moved(model, by, seed=5):
    """A copy with every parameter moved a little."""
    other = StructuralModel(model.graph, [type(m)(**m.spec()) for m in model.mechanisms]).double()
    other.load_state_dict(model.state_dict())
    generator = derive_generator(seed, "move")
    with torch.no_grad():
        for parameter in other.parameters():
            parameter += by * torch.randn(parameter.shape, generator=generator)
    return other


def holes(rows, d, seed=1, share=0.4):
    generator = derive_generator(seed, "holes")
    return torch.rand(rows, d, generator=generator) > share


def log_factor(model):
    """One set of parameters."""
    return lambda node, own, parents: model.mechanism(node).log_prob(own, parents)[None]


def exact(model, values, observed):
    plan = Plan.make(model.graph, observed)
    filled = torch.where(observed, values, 0.0)
    return observed_log_prob(model, filled, plan, derive_generator(0, "exact")).log_prob


@pytest.mark.slow
@pytest.mark.parametrize("by", [0.0, 0.05])
def test_the_ratio_of_likelihoods_is_that_of_the_closed_form(by):
    """A ratio that spreads by up to 0.4 is averaged over 4096 completions: an error of 0.006 a row
    and of 0.0004 in the mean of 300 rows; five of each are allowed."""
    fit = linear(0)
    other = moved(fit, by)
    observed = holes(300, 4)
    values = fit.generate(torch.randn(300, 4, generator=derive_generator(2, "rows"))).detach()
    completions = Completions.draw(
        fit, MemoryRows(values, observed), 4096, derive_generator(3, "particles")
    )
    rows = torch.arange(300)
    found, base = (
        completions.log_prob(rows, log_factor(model)).detach()[0] for model in (other, fit)
    )
    wanted = exact(other, values, observed) - exact(fit, values, observed)
    assert (found - base - wanted).abs().max() < 0.03
    assert (found - base - wanted).mean().abs() < 0.002
    if by:
        assert wanted.abs().max() > 0.3  # the step is felt


def test_hidden_discrete_nodes_move_too():
    """A hidden binary parent: even completions leave far less than its spread of 0.1."""
    graph = CausalGraph.from_edges([("a", "b"), ("b", "c")])
    domains = [CONTINUOUS, BINARY, CONTINUOUS]
    fit = Structure.of(graph, domains).build(Shape(hidden=())).double()
    fit = moved(fit, 0.7, seed=8)
    other = moved(fit, 0.1)
    values = fit.generate(torch.randn(200, 3, generator=derive_generator(2, "rows"))).detach()
    observed = torch.tensor([True, False, True]).expand(200, 3)
    completions = Completions.draw(
        fit, MemoryRows(values, observed), 2048, derive_generator(3, "particles")
    )
    found, base = (
        completions.log_prob(torch.arange(200), log_factor(model)).detach()[0]
        for model in (other, fit)
    )
    wanted = exact(other, values, observed) - exact(fit, values, observed)
    assert (found - base - wanted).abs().max() < 0.005
    assert wanted.abs().max() > 0.05


def test_the_gradient_at_the_fit_is_fishers():
    """About 250 rows with scores that spread by one, over 4096 completions: an error of 0.25."""
    fit = linear(0)
    observed = holes(400, 4)
    values = fit.generate(torch.randn(400, 4, generator=derive_generator(2, "rows"))).detach()
    completions = Completions.draw(
        fit, MemoryRows(values, observed), 4096, derive_generator(3, "particles")
    )
    rows = torch.arange(400)
    gradients = []
    for total in (
        lambda: completions.log_prob(rows, log_factor(fit)).sum(),
        lambda: gaussian_total(fit, values, observed),
    ):
        fit.zero_grad()
        total().backward()
        gradients.append(torch.cat([p.grad.flatten() for p in fit.parameters()]))
    assert (gradients[0] - gradients[1]).abs().max() < 1.0
    assert gradients[1].abs().max() > 30.0


def test_rows_are_independent_of_their_company():
    fit = linear(0)
    observed = holes(60, 4)
    values = fit.generate(torch.randn(60, 4, generator=derive_generator(2, "rows"))).detach()
    completions = Completions.draw(
        fit, MemoryRows(values, observed), 8, derive_generator(3, "particles")
    )
    other = moved(fit, 0.1)
    whole = completions.log_prob(torch.arange(60), log_factor(other))
    some = torch.tensor([41, 3, 17])
    assert torch.allclose(completions.log_prob(some, log_factor(other)), whole[:, some])


def test_alike_completions_are_evaluated_once():
    graph = CausalGraph.from_edges([("a", "b"), ("b", "c")])
    domains = [CONTINUOUS, BINARY, CONTINUOUS]
    fit = moved(Structure.of(graph, domains).build(Shape(hidden=())).double(), 0.7, seed=8)
    values = fit.generate(torch.randn(50, 3, generator=derive_generator(2, "rows"))).detach()
    observed = torch.tensor([True, False, True]).expand(50, 3)
    completions = Completions.draw(
        fit, MemoryRows(values, observed), 16, derive_generator(3, "particles")
    )
    cells = completions.families(torch.arange(50)).nodes
    assert len(cells[2].own) <= 100  # two values of b, sixteen completions
    assert torch.equal(cells[1].own[cells[1].place], completions.completed[:, :, 1])
    assert torch.equal(cells[2].parents[cells[2].place][..., 0], completions.completed[:, :, 1])
