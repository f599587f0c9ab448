"""Guides: proposals that look ahead, made of the modes of an integrand."""

import itertools
import math
from dataclasses import replace

import pytest
import torch

from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Efforts, integrate
from misscnf.inference.integrals.closed_form import closed_form
from misscnf.inference.integrals.guide import Guide
from misscnf.inference.integrals.linearisation import linearise
from misscnf.inference.integrals.modes import find_modes
from misscnf.inference.integrals.problem import Problem
from misscnf.inference.integrals.sweep import Sweep
from misscnf.mechanisms import Gaussian, Mechanism, Spline, standard_normal_log_prob
from misscnf.model import StructuralModel


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class Formula(Mechanism):
    """x = m(parents) + s u."""

    def __init__(self, mean, scale=1.0):
        super().__init__()
        self.mean, self.scale = mean, scale

    def generate(self, u, parents):
        return self.mean(parents) + self.scale * u

    def abduct(self, x, parents, generator=None):
        return (x - self.mean(parents)) / self.scale

    def log_prob(self, x, parents):
        return standard_normal_log_prob(self.abduct(x, parents)) - math.log(self.scale)

    def spec(self):
        return {}


class Opaque(Formula):
    """The same, by a way that torch cannot follow."""

    def abduct(self, x, parents, generator=None):
        return super().abduct(x.detach(), parents.detach())


def line(weight, scale):
    mechanism = Gaussian(1).double()
    mechanism.set_line(0.3, [weight], scale)
    return mechanism


def chain(mechanisms):
    """x0 -> x1 -> …, x0 standard normal."""
    names = [f"x{i}" for i in range(len(mechanisms) + 1)]
    graph = CausalGraph.from_edges(itertools.pairwise(names), names)
    return StructuralModel(graph, [Gaussian(0).double(), *mechanisms])


@torch.no_grad()
def last_seen(model, rows, seed=0):
    """Rows of a model of which the last node is seen alone."""
    d = len(model.graph)
    truth = model.generate(torch.randn(rows, d, generator=generator(seed), dtype=torch.float64))
    observed = (torch.arange(d) == d - 1).expand(rows, d)
    return torch.where(observed, truth, 0.0), Plan.make(model.graph, observed).components()


def draw(model, values, components, guide, count=64, seed=1):
    """Returns log-weights of points under a guide of one part."""
    sweep = Sweep(model, values, components)
    shape = (len(components), count, int(components.size.max()))
    scores = torch.randn(shape, generator=generator(seed), dtype=torch.float64)
    guide = guide.with_prior(torch.full(shape[:1], 0.5))  # which no point comes from
    found = guide.sweep(sweep, torch.ones(shape[:2], dtype=torch.int64), scores)
    return found.log_evidence + found.log_parts[..., 0] - found.log_parts[..., 1]


@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("size", [2, 30])
def test_a_guide_is_the_posterior_where_all_is_linear(size, scale):
    # Tied mechanisms, and one step from anywhere.
    model = chain([line(0.9, 0.7)] * (size - 1) + [line(1.2, scale)])
    values, components = last_seen(model, 5)
    with torch.no_grad():
        sweep, noise = Sweep(model, values, components), torch.zeros(5, 1, size)
        at = linearise(sweep, torch.ones(5 * size, 1), noise, 1.0)
        log_weight = draw(model, values, components, Guide.of(at))
        exact = torch.cat([i.log_integral() for i in closed_form(model, values, components)])
    torch.testing.assert_close(log_weight, exact[:, None].expand_as(log_weight), rtol=0, atol=1e-6)


def test_slopes_that_torch_cannot_follow_come_from_differences():
    models = [
        chain([kind(lambda p: torch.tanh(p[..., 0]), 0.5) for _ in range(3)])
        for kind in (Formula, Opaque)
    ]
    values, components = last_seen(models[0], 4)
    at = torch.randn(12, 2, generator=generator(3), dtype=torch.float64)
    sweeps = (Sweep(model, values, components) for model in models)
    one, other = (linearise(sweep, at, torch.zeros(4, 2, 3), 1.0) for sweep in sweeps)
    for mine, its in zip(one, other, strict=True):
        torch.testing.assert_close(mine, its, rtol=1e-6, atol=1e-6)


def test_a_guide_is_a_density():
    # E_g[p / g] = 1 for the prior p, wherever the parts of the guide are.
    model = chain([Formula(lambda p: torch.sin(2.0 * p[..., 0]), 0.6) for _ in range(4)])
    values, components = last_seen(model, 50)
    problem = Problem(model, values, Efforts.evaluation, generator())
    start = torch.randn(200, 4, generator=generator(2), dtype=torch.float64)
    with torch.no_grad():
        sweep = problem.sweep(components)
        guide = find_modes(problem, sweep, start, torch.zeros(50, 4, 4)).with_prior(
            torch.full((50,), 0.2)
        )
        parts = guide.root.shape[1]
        scores = torch.randn(50, 4000, 4, generator=generator(3), dtype=torch.float64)
        place = torch.rand(50, 4000, generator=generator(4), dtype=torch.float64)
        found = guide.sweep(sweep, guide.part_at(place), scores)
    torch.testing.assert_close(guide.log_share.exp().sum(1), torch.ones(50).double())
    log_q = torch.logsumexp(found.log_parts + guide.log_share[:, None], -1)
    for j in range(parts):
        mine = guide.log_share[:, j].isfinite()
        ratio = torch.exp(found.log_parts[mine, :, j] - log_q[mine])
        error = ratio.std(1) / math.sqrt(ratio.shape[1])
        away = ((ratio.mean(1) - 1.0) / error).abs()
        assert (away < 4.5).all()  # at most 250 tests: one seed in 500 fails


def both_modes(ancestors, scale=0.1):
    """y = x² + noise, below a chain of hidden ancestors of x."""
    steps = [Formula(lambda p: 0.8 * p[..., 0] + 0.2, 0.6) for _ in range(ancestors)]
    return chain([*steps, Formula(lambda p: p[..., 0] ** 2, scale)])


def right_share(model, values):
    """The exact posterior probability that x is positive: x alone is normal."""
    mean, variance = 0.0, 1.0
    for _ in range(len(model.graph) - 2):
        mean, variance = 0.8 * mean + 0.2, 0.64 * variance + 0.36
    x = torch.linspace(-6.0, 6.0, 120_001, dtype=torch.float64)
    prior = -0.5 * (x - mean) ** 2 / variance
    shares = []
    for y in values[:, -1]:
        law = torch.softmax(prior - 0.5 * ((y - x**2) / model.mechanism(-1).scale) ** 2, 0)
        shares.append(law[x > 0].sum())
    return torch.stack(shares)


@pytest.mark.parametrize("ancestors", [1, 7])
def test_both_modes_have_their_share(ancestors):
    model = both_modes(ancestors)
    values, components = last_seen(model, 300, seed=4)
    effort = replace(Efforts.imputation, pilot_draws=0)
    drawn, x = torch.empty(300, 40, dtype=torch.float64), ancestors
    with torch.no_grad():
        for integral in integrate(model, values, components, effort, generator(5)):
            c = integral.components
            cells = c.cell_node == x
            drawn[c.cell_row[cells]] = integral.draw(40, generator(6))[cells]
    exact = right_share(model, values)
    gap = (drawn > 0).double().mean(1) - exact
    # 40 draws from at least 64 effective points. Rows at six standard errors, a binomial's tail
    # included, and their sum at four: fewer than one seed in 10,000 fails.
    variance = exact * (1.0 - exact) * (1 / 40 + 1 / 64)
    assert (gap.abs() < 6.0 * variance.sqrt() + 1 / 40).all()
    assert abs(float(gap.sum() / variance.sum().sqrt())) < 4.0
    assert float(exact.min()) < 0.6  # both modes count


def test_estimates_of_few_points_are_unbiased_where_noise_is_not_normal():
    # x0 -> x1 -> y with splines: the average of p̂ over many seeds is a sum over a grid.
    steps = []
    for seed in (1, 2):
        spline = Spline(1).double()
        with torch.no_grad():
            spline.base.set_line(0.2, [1.1], 0.5)
            bias = spline.shape.bias
            bias.copy_(torch.randn(bias.shape, generator=generator(seed), dtype=torch.float64))
        steps.append(spline)
    model, rows = chain(steps), 4000
    one, _ = last_seen(model, 1, seed=8)
    values = one.expand(rows, -1).contiguous()
    components = Plan.make(model.graph, (torch.arange(3) == 2).expand(rows, 3)).components()
    # Four points a guide: nothing is good enough for the prior, and nothing goes on.
    effort = Effort(draws=4, limit=8, least_effective=100.0, effective_share=2.0)
    with torch.no_grad():
        found = torch.cat(
            [i.log_integral() for i in integrate(model, values, components, effort, generator(9))]
        )
        axis = torch.linspace(-7.0, 7.0, 701, dtype=torch.float64)
        grid = torch.cartesian_prod(axis, axis)
        rows_ = torch.cat([grid, one[:, 2:].expand(len(grid), 1)], 1)
        exact = torch.logsumexp(model.log_prob(rows_), 0) + 2 * math.log(axis[1] - axis[0])
    ratio = torch.exp(found - exact)
    error = float(ratio.std()) / math.sqrt(rows)
    assert error < 0.05
    assert abs(float(ratio.mean()) - 1.0) < 4.5 * error  # one seed in 150,000 fails
