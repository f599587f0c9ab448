"""Chains of completions keep the posterior of what is hidden."""

import math

import pytest
import torch

from misscnf.draws import derive_generator
from misscnf.graph import CausalGraph
from misscnf.inference.chains import Blankets, ChainRules, Chains, can_move
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, integrate
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel

GRAPH = CausalGraph.read("a -> b; a -> c; b, c -> d; c -> e; d, e -> f; f -> g; b -> h")
HIDDEN = ["a", "b", "c", "d", "e", "f"]


def lines():
    """A linear-Gaussian model of eight nodes."""
    generator, laws = torch.Generator().manual_seed(0), []
    for parents in GRAPH.parents:
        law = Gaussian(len(parents)).double()
        weights = 0.5 + torch.rand(len(parents), generator=generator)
        law.set_line(0.2, weights.tolist(), 0.8)
        laws.append(law)
    return StructuralModel(GRAPH, laws)


def moved(model, values, observed, chains, sweeps, seed=0):
    """Runs chains from the prior; returns their states after some sweeps, (d, K, N)."""
    plan = Plan.make(model.graph, observed)
    generator = derive_generator(seed, "chains")
    start = torch.randn(chains, *values.shape, generator=generator, dtype=torch.float64)
    found = Chains.of(len(values), values.shape[1], ChainRules(count=chains))
    found.state.copy_(torch.where(observed, values, start).permute(2, 0, 1))
    found.move(model, Blankets.of(plan, plan.components()), sweeps, generator)
    return found


def test_chains_forget_their_start_and_have_the_law_of_the_closed_form():
    """Means and covariances of six nodes hidden together, of 20,000 chains after 60 sweeps.

    Errors of a mean are within five standard errors: a chance of 1e-5 among twelve.
    """
    model = lines()
    values = torch.zeros(2, 8, dtype=torch.float64)
    values[0, -2:], values[1, -2:] = torch.tensor([2.0, -1.0]), torch.tensor([-1.0, 0.5])
    observed = torch.tensor([name not in HIDDEN for name in GRAPH.nodes]).expand(2, 8)
    plan = Plan.make(GRAPH, observed)
    about = (plan.components(), Effort(), derive_generator(0, "exact"))
    (exact,) = integrate(model, values, *about)
    drawn = exact.draw(20_000, derive_generator(1, "exact")).detach()  # (H, K), sorted by node
    state = moved(model, values, observed, 20_000, 60).state
    c = exact.components
    mine = state[c.cell_node, :, c.cell_row]
    error = math.sqrt(2 / 20_000) * drawn.std(1)
    assert ((mine.mean(1) - drawn.mean(1)).abs() < 5 * error).all()
    for row in range(2):
        at = c.cell_row == row
        exactly, found = (torch.cov(x[at]) for x in (drawn, mine))
        assert torch.allclose(found, exactly, atol=0.05 * float(exactly.diagonal().max()))


class _Squared(Gaussian):
    """x = parent² + noise: its parent may have either sign."""

    def location_and_log_scale(self, parents):
        return parents[..., 0].square(), self.log_scale.bias[0]


def test_fresh_moves_keep_the_share_of_both_modes():
    """a ~ N(0.3, 1) below b = a² + 0.3 u and b = 1: the two signs have the odds of the prior.

    log odds = 0.6 |a| at a given size; the share by quadrature, to four standard errors.
    """
    graph = CausalGraph.read("a -> b")
    a, b = Gaussian(0).double(), _Squared(1).double()
    a.set_line(0.3, [], 1.0)
    b.set_line(0.0, [0.0], 0.3)
    model = StructuralModel(graph, [a, b])
    grid = torch.linspace(-6, 6, 20_001, dtype=torch.float64)
    own, child = torch.zeros(0, dtype=torch.float64), torch.tensor(1.0, dtype=torch.float64)
    with torch.no_grad():
        log_prob = a.log_prob(grid, own.expand(len(grid), 0)) + b.log_prob(child, grid[:, None])
    weight = torch.softmax(log_prob, 0)
    exact = float(weight[grid > 0].sum())
    values, observed = torch.tensor([[0.0, 1.0]]).double(), torch.tensor([[False, True]])
    found = moved(model, values, observed, 10_000, 40).state[0]
    assert float((found > 0).double().mean()) == pytest.approx(exact, abs=4 * 0.5 / 100)


def test_rows_are_moved_where_they_hide_numbers_that_have_no_closed_form():
    graph = CausalGraph.read("a -> b; c -> d")
    laws = [Gaussian(0), _Squared(1), Gaussian(0), Gaussian(1)]
    model = StructuralModel(graph, [law.double() for law in laws])
    model.mechanism(1).linear_form = lambda: None
    plan = Plan.make(graph, torch.tensor([[False, True, False, True]]))
    components = plan.components()
    assert can_move(model, components)[components.node == 0].all()
    assert not can_move(model, components)[components.node == 2].any()


def test_same_generator_same_bits():
    model = lines()
    values, observed = torch.ones(3, 8).double(), torch.zeros(3, 8).bool()
    observed[:, -2:] = True
    first, second = (moved(model, values, observed, 4, 6).state for _ in range(2))
    assert torch.equal(first, second)
