"""Every way of integrating, by name: its value, its draws and its gradient are the integral's.

A way is a line of the table, and three laws hold or fail for it by name. The oracle is a table of
the joint law (`mixed_models.Reference`), which knows nothing of components, proposals or points.
"""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from mixed_models import Reference, generator, mixed_model, rows_of
from scipy import stats

from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Efforts, EnumerationRules, HermiteRules
from misscnf.inference.integrals.closed_form import closed_form
from misscnf.inference.integrals.dispatch import without_enumeration
from misscnf.inference.integrals.enumeration import enumeration
from misscnf.inference.integrals.hermite import bends_by_levels, gauss_hermite
from misscnf.inference.integrals.importance import importance_sampling
from misscnf.inference.integrals.prior import prior_draws
from misscnf.inference.integrals.problem import Problem
from misscnf.inference.integrals.quadrature import quadrature
from misscnf.inference.likelihood import free_log_prob

EFFORT = Efforts.evaluation
ORACLE_ERROR = 1e-7
"""The trapezoid rule and the cut of counts."""


def precise(integral):
    return integral.standard_error() <= EFFORT.tolerance


def by_closed_form(problem, components):
    yield from closed_form(problem.model, problem.values, components)


def by_enumeration(problem, components):
    yield from enumeration(problem, components, without_enumeration)


def by_quadrature(problem, components):
    yield from quadrature(problem, components, precise)


def by_gauss_hermite(problem, components):
    effort = replace(EFFORT, hermite=HermiteRules(8, error=1e-12), draws=256)
    found, left = gauss_hermite(replace(problem, effort=effort), components)
    assert not left.any()
    yield from found


def by_importance(problem, components):
    yield from importance_sampling(problem, components, precise)


def by_guide(problem, components):
    # No round of the prior is good enough: it makes a guide, and that one's round is judged.
    accept = lambda found: precise(found) & (found.control is not None)  # noqa: E731
    few = replace(problem, effort=replace(EFFORT, pilot_draws=0))
    yield from importance_sampling(few, components, accept)


def by_prior(problem, components):
    yield prior_draws(problem.with_draws(256), components)


def by_paper(problem, components):
    effort = replace(EFFORT, draws=256, independent=True)
    yield prior_draws(replace(problem, effort=effort), components)


@dataclass(frozen=True)
class Way:
    integrals: object
    graph: str
    seen: str
    hidden: tuple = ()
    """Widths of the mechanisms' networks."""
    exact: bool = False


NUMBERS = "x1 -> x2; x1 -> x3; x2 -> x3"
WAYS = {
    "closed form": Way(by_closed_form, NUMBERS, "x3", exact=True),
    "enumeration": Way(by_enumeration, "k -> b; k -> n; b -> o; n -> o", "o", (8,), exact=True),
    "enumeration of closed forms": Way(by_enumeration, "k -> x1; x1 -> x2", "x2", exact=True),
    "enumeration of quadratures": Way(by_enumeration, "k -> x1; x1 -> x2", "x2", (8,)),
    "enumeration of importance sampling": Way(by_enumeration, "b -> x1; " + NUMBERS, "x3", (8,)),
    "Gauss-Hermite": Way(by_gauss_hermite, "x1 -> b; x1 -> x2", "x2 b", exact=True),
    "Gauss-Hermite in two": Way(by_gauss_hermite, NUMBERS + "; x2 -> b", "x3 b", exact=True),
    "quadrature": Way(by_quadrature, "x1 -> x2; x1 -> b; x2 -> b", "x2 b", (8,)),
    "quadrature beside point masses": Way(by_quadrature, "s -> x2; s -> b; x2 -> b", "x2 b", (8,)),
    "enumeration of point masses": Way(by_enumeration, "k -> s; s -> x2; k -> x2", "x2"),
    "importance sampling of point masses": Way(by_importance, "s -> x1; x1 -> x2; s -> x2", "x2"),
    "a guide beside point masses": Way(by_guide, "x1 -> s; s -> x2; x1 -> x2", "x2"),
    "importance sampling": Way(by_importance, NUMBERS, "x3", (8,)),
    "importance sampling by a guide": Way(by_guide, NUMBERS, "x3", (8,)),
    "a guide to linear evidence": Way(by_guide, NUMBERS, "x3"),
    "a guide to a binary child": Way(by_guide, "x1 -> x2; x1 -> b; x2 -> b", "b", (8,)),
    "a guide beside a hidden kind": Way(by_guide, "x1 -> k; x1 -> x2; k -> x2", "x2", (8,)),
    "importance sampling of kinds": Way(by_importance, "x1 -> k; x1 -> x2; k -> x2", "x2", (8,)),
    "quasi-random draws from the prior": Way(by_prior, NUMBERS, "x3", (8,)),
    "independent draws from the prior": Way(by_paper, NUMBERS, "x3", (8,)),
}


class Case:
    """A row, many times, with its oracle."""

    def __init__(self, name, rows):
        self.way, self.rows = WAYS[name], rows
        self.model = mixed_model(self.way.graph, self.way.hidden, seed=3).requires_grad_()
        self.reference = Reference(self.model)
        with torch.no_grad():
            self.x = self.reference.snapped(rows_of(self.model, 1, 5))[0]
        nodes = self.model.graph.nodes
        self.observed = torch.tensor([node in self.way.seen.split() for node in nodes])
        self.values = torch.where(self.observed, self.x, 0.0).expand(rows, -1)
        self.plan = Plan.make(self.model.graph, self.observed.expand(rows, -1))
        assert len(self.plan.components()) == rows, "one component a row"

    def log_prob(self):
        return self.reference.log_prob(self.x, self.observed)

    @torch.no_grad()
    def integrals(self, seed=1):
        components = self.plan.components()
        problem = Problem(self.model, self.values, EFFORT, generator(seed))
        return list(self.way.integrals(problem, components))

    @torch.no_grad()
    def posterior(self):
        """The hidden nodes with their axes, and the law of each on its axis."""
        axes = {i: self.reference.axes[i] for i in (~self.observed).nonzero()[:, 0].tolist()}
        law = torch.softmax(self.reference.posterior(self.x, self.observed).flatten(), 0)
        law = law.reshape([len(axis) for axis in axes.values()])
        for place, (node, axis) in enumerate(axes.items()):
            yield node, axis, law.movedim(place, 0).flatten(1).sum(1) if len(axes) > 1 else law


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_the_value_is_the_integral_within_its_stated_error(name):
    case = Case(name, 100)
    with torch.no_grad():
        exact, found = case.log_prob(), free_log_prob(case.model, case.values, case.plan)
    error = torch.full_like(found, torch.nan)
    for integral in case.integrals():
        row = integral.components.row
        found[row] += integral.log_integral()
        error[row] = integral.standard_error()
        assert integral.effective_size().isinf().all() == case.way.exact
    assert (error == 0.0).all() == case.way.exact
    assert (error < 0.05).all()
    # 16 randomisations: |t| > 4 once in 800 rows; more than allowed once in 10,000 ways.
    beyond = (found - exact).abs() > 4.0 * error + ORACLE_ERROR
    assert beyond.sum() <= stats.binom.isf(1e-4, case.rows, 2.0 * stats.t.sf(4.0, 15))


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_draws_follow_the_posterior(name):
    case = Case(name, 200)
    integrals = case.integrals()
    for count, even in ((1, False), (4, True)):
        drawn = case.values.expand(count, -1, -1).clone()
        for integral in integrals:
            c = integral.components
            drawn[:, c.cell_row, c.cell_node] = integral.draw(count, generator(2), even=even).T
        for node, axis, law in case.posterior():
            for power in (1, 2):
                mean, square = law @ axis**power, law @ axis ** (2 * power)
                average = (drawn[..., node] ** power).mean(0)  # of a row; rows are independent
                spread = average.std() if even else (square - mean**2).sqrt()
                away = abs(average.mean() - mean)
                # About 100 tests at 4.5 standard errors: one seed in 1,500 fails somewhere.
                assert away < 4.5 * spread / math.sqrt(case.rows) + ORACLE_ERROR


@pytest.mark.slow
@pytest.mark.parametrize("name", WAYS)
def test_the_expected_log_factors_have_the_gradient_of_the_integral(name):
    case, times = Case(name, 5), 12
    case.log_prob().backward()
    exact, found = flat_gradient(case.model), []
    for seed in range(times):
        total = free_log_prob(case.model, case.values, case.plan).mean()
        for integral in case.integrals(seed):
            weight = torch.full((len(integral.components),), 1.0 / case.rows)
            total = total + integral.expected_log_factors(case.model, case.values, weight)
        total.backward()
        found.append(flat_gradient(case.model))
    found = torch.stack(found)
    error = found.std(0) / math.sqrt(times)
    assert exact.abs().max() > 0.1
    # Some 600 parameters at |t| > 9, 11 degrees of freedom: one seed in 800 fails. Averages by
    # normalised weights are biased by about 1 / effective size.
    bias = 1e-6 if case.way.exact else 2e-3
    assert ((found.mean(0) - exact).abs() < 9.0 * error + bias).all()


@pytest.mark.parametrize("name", WAYS)
def test_a_table_in_single_precision_has_the_same_value(name):
    case = Case(name, 5)  # networks are trained in it
    exact = free_log_prob(case.model, case.values, case.plan).detach()
    for integral in case.integrals():
        exact[integral.components.row] += integral.log_integral()
    case.model, case.values = case.model.float(), case.values.float()
    found = free_log_prob(case.model, case.values, case.plan)
    for integral in case.integrals():
        found = found.index_add(0, integral.components.row, integral.log_integral().to(found))
        weight = torch.full((len(integral.components),), 1.0 / case.rows)
        integral.expected_log_factors(case.model, case.values, weight).backward()
        integral.draw(3, generator(2))
    # The same random numbers, rounded: a guide's place moves with them.
    tolerance = 1e-4 if case.way.exact else 0.05
    assert torch.allclose(found.double(), exact, rtol=0.0, atol=tolerance)


def flat_gradient(model):
    parameters = list(model.parameters())
    gradient = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in parameters]
    model.zero_grad()
    return torch.cat([part.flatten() for part in gradient])


# Gauss-Hermite, where few points are not enough


def test_steep_evidence_is_left_to_another_way():
    model = mixed_model("x1 -> b", seed=3)
    plan = Plan.make(model.graph, torch.tensor([[False, True]]))
    components = plan.components()
    assert bends_by_levels(model, components).all()
    effort = replace(Efforts.linear, hermite=HermiteRules(5))
    for slope, steep in ((1.0, False), (400.0, True)):
        with torch.no_grad():
            model.mechanism(1).location.weight.fill_(slope)
        values = torch.tensor([[0.0, 1.0]], dtype=torch.float64)
        found, left = gauss_hermite(Problem(model, values, effort, generator(1)), components)
        assert left.tolist() == [steep]
        assert len(found) == (not steep)


def test_a_network_that_bends_the_evidence_is_read_in_the_precision_of_the_table():
    model = mixed_model("x1 -> b", (8,), seed=3)
    plan = Plan.make(model.graph, torch.tensor([[False, True]]))
    found = {}
    for dtype in (torch.float64, torch.float32):
        model, values = model.to(dtype), torch.tensor([[0.0, 1.0]], dtype=dtype)
        problem = Problem(model, values, EFFORT, generator(1))
        (integral,), left = gauss_hermite(problem, plan.components(), 16)
        assert not left.any()
        assert integral.draw(3, generator(2)).isfinite().all()
        found[dtype] = integral.log_integral().item()
    assert found[torch.float32] == pytest.approx(found[torch.float64], abs=1e-5)


# What an effort is


def test_an_effort_goes_through_plain_values_and_back():
    effort = replace(EFFORT, enumeration=EnumerationRules(most_states=7), tolerance=None)
    assert Effort.from_dict(effort.to_dict()) == effort
    assert Effort.from_dict(effort.to_dict()) != EFFORT


@pytest.mark.parametrize("count", [1, 64, 65, 99, 1000])
def test_more_completions_get_more_points_in_proportion(count):
    base = Efforts.imputation
    effort = base.for_completions(count)
    times = effort.draws // base.draws
    assert effort.draws >= base.points_a_draw * count
    assert times == 1 or effort.draws < 2 * base.points_a_draw * count
    assert effort.least_effective == times * base.least_effective
    assert (effort.limit, effort.pilot_draws) == (times * base.limit, times * base.pilot_draws)
