"""The gradient of the likelihood of mixed rows, against that of exact sums and grids."""

import math

import pytest
import torch
from mixed_models import (
    DISCRETE_ONLY,
    MIXED,
    Reference,
    every_pattern,
    generator,
    mixed_model,
    rows_of,
)

from misscnf.fitting.train.objective import fisher_gradient
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, integrate
from misscnf.inference.likelihood import free_log_prob


def exact_gradient(model, values, observed):
    reference = Reference(model)
    rows = zip(values, observed, strict=True)
    sum(reference.log_prob(x, seen) for x, seen in rows).backward()
    return gradient_of(model)


def gradient_of(model):
    gradient = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    return gradient


def found_gradient(model, values, observed, effort):
    plan = Plan.make(model.graph, observed)
    total = free_log_prob(model, values, plan).sum()
    for integral in integrate(model, values, plan.components(), effort, generator(2)):
        total = total + integral.expected_log_factors(
            model, values, torch.ones(len(integral.components))
        )
    total.backward()
    return gradient_of(model)


def assert_same_gradient(model, values, observed, effort, within):
    exact = exact_gradient(model, values, observed)
    found = found_gradient(model, values, observed, effort)
    for name, gradient in exact.items():
        if gradient.numel():
            torch.testing.assert_close(found[name], gradient, rtol=0.0, atol=within)
    assert max(float(g.abs().max()) for g in exact.values() if g.numel()) > 0.5


@pytest.mark.parametrize("shape", [(), (8,)], ids=["lines", "networks"])
@pytest.mark.parametrize("case", DISCRETE_ONLY)
def test_the_gradient_is_that_of_the_exact_sum(case, shape):
    model = mixed_model(DISCRETE_ONLY[case], shape).requires_grad_()
    with torch.no_grad():
        values, observed = every_pattern(model, Reference(model), 1)
    assert_same_gradient(model, values, observed, Effort(tail=1e-12), 1e-8)


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("b -> x1; k -> x1; x1 -> x2", 1e-8),  # mixtures of Gaussians
        ("k -> b; k -> x1; b -> x1; x1 -> x2", 1e-8),
        ("x1 -> x2; x2 -> x3; b -> x3", 1e-8),  # two numbers hidden together
        (MIXED["a number above every kind"], 1e-4),  # quadrature
        (MIXED["a chain of numbers and kinds"], 1e-4),
    ],
)
def test_the_gradient_is_that_of_the_exact_integral(text, within):
    model = mixed_model(text).requires_grad_()
    with torch.no_grad():
        values, observed = every_pattern(model, Reference(model), 1)
    effort = Effort(draws=1024, limit=1024, tail=1e-12)
    assert_same_gradient(model, values, observed, effort, within)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["a chain of numbers and kinds", "confounded"])
def test_the_gradient_of_two_completions_is_unbiased(case):
    model = mixed_model(MIXED[case], (8,)).requires_grad_()
    rows = 3000
    x = rows_of(model, 1, 5).detach()[0]
    observed = torch.arange(4) == 3
    values = torch.where(observed, x, 0.0).expand(rows, 4)
    plan = Plan.make(model.graph, observed.expand(rows, 4))
    pieces = []
    for part in torch.arange(rows).split(rows // 20):
        model.zero_grad()
        fisher_gradient(
            model, values[part], plan.select(part), Effort(), 2, generator(int(part[0]))
        )
        pieces.append(
            torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        )
    found = -torch.stack(pieces)
    model.zero_grad()
    one = plan.select(torch.arange(1))
    total = free_log_prob(model, values[:1], one).sum()
    effort = Effort(draws=1024, limit=1024, least_effective=1e9)
    for integral in integrate(model, values[:1], one.components(), effort, generator(3)):
        total = total + integral.expected_log_factors(model, values[:1], torch.ones(1))
    total.backward()
    exact = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
    error = found.std(0) / math.sqrt(len(found))
    # t with 19 degrees of freedom: beyond 6.5 with probability 3e-6, for some 60 numbers.
    assert ((found.mean(0) - exact).abs() < 6.5 * error + 2e-3).all()
