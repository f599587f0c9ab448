"""Gradients of the observed-data likelihood against autograd and closed forms."""

from dataclasses import replace

import pytest
import torch

from misscnf.data.domains import Continuous
from misscnf.draws import derive_generator
from misscnf.fitting.settings import PRESETS
from misscnf.fitting.train.objective import (
    complete_family_gradient,
    fisher_gradient,
    pathwise_gradient,
)
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import ALGORITHM_1, Effort, integrate
from misscnf.inference.likelihood import free_log_prob
from misscnf.mechanisms import Shape
from misscnf.model.structure import Structure

GRAPH = CausalGraph.read("a -> b; a -> c; b -> c; c -> d")


def incomplete_rows(rows=60):
    generator = derive_generator(0, "rows")
    values = torch.randn(rows, 4, generator=generator)
    return values, torch.rand(rows, 4, generator=generator) < 0.6


def model_of(shape, scale=1.0):
    model = Structure.of(GRAPH, [Continuous()] * len(GRAPH)).build(shape)
    generator = derive_generator(0, "parameters")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return model


def gradient_vector(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def exact_gradient(model, values, plan):
    """Back-propagates the closed form."""
    model.zero_grad()
    log_prob = free_log_prob(model, values, plan).sum()
    for integral in integrate(model, values, plan.components(), Effort(), derive_generator(0)):
        log_prob = log_prob + integral.log_integral().sum()
    (-log_prob / len(values)).backward()
    return gradient_vector(model)


@pytest.mark.slow
def test_fisher_gradient_is_the_gradient_of_the_closed_form():
    """Mean of 400 estimates, each coordinate within 5 standard errors: error rate 1e-5 in all."""
    model = model_of(Shape(hidden=()), scale=0.5)
    values, observed = incomplete_rows()
    plan = Plan.make(GRAPH, observed)
    exact = exact_gradient(model, values, plan)
    estimates = []
    for seed in range(400):
        model.zero_grad()
        fisher_gradient(model, values, plan, Effort(), 2, derive_generator(seed))
        estimates.append(gradient_vector(model).clone())
    estimates = torch.stack(estimates)
    error = estimates.std(0) / len(estimates) ** 0.5
    assert ((estimates.mean(0) - exact).abs() <= 5 * error + 1e-12).all()
    assert exact.norm() > 0.1


def test_fisher_gradient_by_draws_is_nearly_that_of_the_closed_form():
    """Many completions of drawn components: what is left is the bias of their weights."""
    model = model_of(Shape(hidden=()), scale=0.5)
    values, observed = incomplete_rows()
    plan = Plan.make(GRAPH, observed)
    exact = exact_gradient(model, values, plan)
    model.zero_grad()
    effort = Effort(draws=512, least_effective=256, closed_form=False)
    fisher_gradient(model, values, plan, effort, 2000, derive_generator(1))
    assert (gradient_vector(model) - exact).norm() < 0.02 * exact.norm()


def test_fisher_gradient_of_complete_rows_is_exact_and_needs_no_draws():
    model = model_of(Shape(hidden=(8,)), scale=0.3)
    values = torch.randn(20, 4, generator=derive_generator(2))
    plan = Plan.make(GRAPH, torch.ones(20, 4).bool())
    report = fisher_gradient(model, values, plan, Effort(), 2, derive_generator(0))
    found = gradient_vector(model).clone()
    model.zero_grad()
    mean = model.log_prob(values).mean()
    (-mean).backward()
    torch.testing.assert_close(found, gradient_vector(model))
    assert report.log_prob == pytest.approx(float(mean.detach()))


def test_complete_family_gradient_is_that_of_the_families_without_holes():
    model = model_of(Shape(hidden=(8,)), scale=0.3)
    values, observed = incomplete_rows()
    complete_family_gradient(model, values, Plan.make(GRAPH, observed), range(4))
    found = gradient_vector(model).clone()
    model.zero_grad()
    total = torch.zeros(())
    for node, parents in enumerate(GRAPH.parents):
        whole = observed[:, [node, *parents]].all(1)
        assert 0 < int(whole.sum()) < len(values)
        rows = values[whole]
        total = total + model.mechanism(node).log_prob(rows[:, node], rows[:, parents]).sum()
    (-total / len(values)).backward()
    torch.testing.assert_close(found, gradient_vector(model))


def test_a_family_that_no_row_shows_keeps_its_start():
    model = model_of(Shape(hidden=(8,)), scale=0.3)
    values, observed = incomplete_rows()
    observed[:, 3] &= ~observed[:, 2]  # c and d are never seen together
    complete_family_gradient(model, values, Plan.make(GRAPH, observed), range(4))
    assert moved(model) == [True, True, True, False]


def moved(model):
    return [any(p.grad is not None for p in model.mechanism(i).parameters()) for i in range(4)]


def test_complete_family_gradient_is_of_the_nodes_that_are_asked_for():
    model = model_of(Shape(hidden=(8,)), scale=0.3)
    values, observed = incomplete_rows()
    complete_family_gradient(model, values, Plan.make(GRAPH, observed), {1, 3})
    assert moved(model) == [False, True, False, True]


def test_pathwise_gradient_is_that_of_the_estimate_with_the_same_draws():
    """Finite differences of log p̂ under common random numbers."""
    model = model_of(PRESETS["paper"].shape, scale=0.2)
    values, observed = incomplete_rows(30)
    plan = Plan.make(GRAPH, observed, joint=True)
    effort = replace(ALGORITHM_1, draws=32)
    pathwise_gradient(model, values, plan, effort, derive_generator(3))
    analytic = gradient_vector(model).clone()
    direction = torch.randn(len(analytic), generator=derive_generator(4))
    sides = []
    for step in (1e-7, -1e-7):
        moved = model_of(PRESETS["paper"].shape, scale=0.2)
        start = torch.nn.utils.parameters_to_vector(moved.parameters())
        torch.nn.utils.vector_to_parameters(start + step * direction, moved.parameters())
        sides.append(pathwise_gradient(moved, values, plan, effort, derive_generator(3)).log_prob)
    slope = -(sides[0] - sides[1]) / 2e-7
    assert slope == pytest.approx(float(analytic @ direction), rel=1e-5)
