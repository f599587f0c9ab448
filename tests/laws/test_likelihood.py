"""The likelihood of what a row shows, against closed forms, grids and Algorithm 1 as printed."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from mechanisms import MECHANISMS, random_model
from oracles import LOG_TWO_PI, algorithm_1, gaussian_log_prob, grid_log_prob
from scipy import stats

from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import ALGORITHM_1, Effort, Efforts
from misscnf.inference.likelihood import free_log_prob, observed_log_prob
from misscnf.mechanisms import Affine, Gaussian, Spline
from misscnf.model import StructuralModel

DIAMOND = CausalGraph.read("a -> b; a -> c; b -> d; c -> d")
KITE = CausalGraph.read("a -> b; a -> c; b -> c; c -> d")
FIVE = CausalGraph.read("a -> b; a -> c; b -> d; c -> d; d -> e; c -> e")
DRAWN = replace(Efforts.evaluation, closed_form=False)

CURVED = {
    "network mean": {"make": lambda p: Gaussian(p, (8,)), "size": 1.5, "spread": 0.5},
    "network scale": {"make": lambda p: Gaussian(p, (8,), (8,)), "size": 0.5, "spread": 0.5},
    "spline": {"make": lambda p: Spline(p, (8,)), "size": 1.0, "spread": 0.25},
    "affine": {"make": lambda p: Affine(p, (8, 8)), "size": 1.0, "spread": 0.5},
}
GRID = {0: 2, 1: 2001, 2: 257, 3: 81}
"""Points along each axis, by the number of hidden nodes."""
GRID_ERROR = 5e-4
"""How far the grids were from grids of half the spacing, at most: splines and ReLU have kinks."""


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def all_patterns(d):
    return torch.tensor(list(itertools.product([False, True], repeat=d)))


def every_pattern_of(model, rows, seed=0):
    """Rows of a model, each under every pattern of holes, with zeros in the holes."""
    d = len(model.graph)
    x = model.generate(torch.randn(rows, d, generator=generator(seed)))
    values, observed = x.repeat_interleave(2**d, 0), all_patterns(d).repeat(rows, 1)
    return torch.where(observed, values, 0.0), observed


def linear(graph, weights, scales):
    made = []
    for i, parents in enumerate(graph.parents):
        made.append(Gaussian(len(parents)))
        made[-1].set_line(0.0, weights[i], scales[i])
    return StructuralModel(graph, made).requires_grad_(requires_grad=False)


def repeated(model, x, observed, effort, times, seed, *, joint=False):
    """log p̂ of one row, anew as many times."""
    plan = Plan.make(model.graph, observed.expand(times, -1), joint=joint)
    values = torch.where(observed, x, 0.0).expand(times, -1)
    return observed_log_prob(model, values, plan, generator(seed), effort).log_prob


def assert_within_stated_error(found, exact, oracle_error=1e-8):
    """The stated standard errors are small, and the differences are what they say.

    A standard error from 16 randomisations makes a difference |t| > 4 with probability 1.2e-3 (15
    degrees of freedom; fewer tails with several components). More such rows than the count allows
    has probability 1e-4 in each call.
    """
    assert (found.standard_error < 0.01).all()
    difference = (found.log_prob - exact).abs()
    assert (difference < 0.03 + oracle_error).all(), "ten times the tolerance of an evaluation"
    beyond = difference > 4.0 * found.standard_error + oracle_error
    allowed = stats.binom.isf(1e-4, len(exact), 2.0 * stats.t.sf(4.0, 15))
    assert beyond.sum() <= allowed, f"{beyond.sum()} of {len(exact)} rows are beyond 4 errors"


# Closed form


@pytest.mark.parametrize("joint", [False, True], ids=["components", "joint"])
def test_linear_models_are_exact_on_every_pattern(joint):
    model = random_model(FIVE, MECHANISMS["gaussian"], seed=1)
    values, observed = every_pattern_of(model, 4)
    plan = Plan.make(FIVE, observed, joint=joint)
    found = observed_log_prob(model, values, plan, generator())
    exact = [gaussian_log_prob(model, x, o) for x, o in zip(values, observed, strict=True)]
    torch.testing.assert_close(found.log_prob, torch.stack(exact), rtol=0.0, atol=1e-10)
    assert (found.standard_error == 0.0).all()
    assert found.effective_draws.isinf().all()


def test_a_clamp_is_exact_in_the_mutilated_model():
    model = random_model(FIVE, MECHANISMS["gaussian"], seed=1)
    values, observed = every_pattern_of(model, 2)
    held = FIVE.index("c")
    values[:, held] = 0.7
    plan = Plan.make(FIVE, observed, clamped=[held])
    found = observed_log_prob(model, values, plan, generator()).log_prob
    # Without its edges from above the node is a root, here N(0, 1); then take its factor away.
    names = FIVE.nodes
    mutilated = CausalGraph.from_edges([e for e in FIVE.edges if e[1] != "c"], names)
    kept = {name: model.mechanism(FIVE.index(name)) for name in names} | {"c": Gaussian(0)}
    other = StructuralModel(mutilated, [kept[name] for name in mutilated.nodes])
    order = [FIVE.index(name) for name in mutilated.nodes]
    observed[:, held] = True
    exact = [
        gaussian_log_prob(other, x[order], o[order]) + 0.5 * (0.7**2 + LOG_TWO_PI)
        for x, o in zip(values, observed, strict=True)
    ]
    torch.testing.assert_close(found, torch.stack(exact), rtol=0.0, atol=1e-10)


# Drawn, against exact values


@pytest.mark.slow
@pytest.mark.parametrize("cells", [DRAWN.cells_at_once, 2**11], ids=["at once", "in pieces"])
def test_draws_agree_with_the_dense_gaussian_on_every_pattern(cells):
    effort = replace(DRAWN, cells_at_once=cells)
    model = random_model(FIVE, MECHANISMS["gaussian"], seed=1)
    values, observed = every_pattern_of(model, 8)
    found = observed_log_prob(model, values, Plan.make(FIVE, observed), generator(2), effort)
    exact = [gaussian_log_prob(model, x, o) for x, o in zip(values, observed, strict=True)]
    assert_within_stated_error(found, torch.stack(exact))


@pytest.mark.slow
@pytest.mark.parametrize("graph", [DIAMOND, KITE], ids=["diamond", "kite"])
@pytest.mark.parametrize("kind", CURVED)
def test_curved_models_agree_with_a_grid_on_every_pattern(kind, graph):
    model = random_model(graph, seed=1, **CURVED[kind])
    values, observed = every_pattern_of(model, 4)
    plan = Plan.make(graph, observed)
    found = observed_log_prob(model, values, plan, generator(2))
    points = [GRID[int(count)] for count in plan.hidden[plan.pattern].sum(1)]
    exact = [grid_log_prob(model, *row) for row in zip(values, observed, points, strict=True)]
    assert_within_stated_error(found, torch.stack(exact), GRID_ERROR)


def test_the_grid_agrees_with_the_dense_gaussian():
    model = random_model(DIAMOND, MECHANISMS["gaussian"], seed=1)
    for x, observed in zip(*every_pattern_of(model, 1), strict=True):
        exact = gaussian_log_prob(model, x, observed)
        torch.testing.assert_close(grid_log_prob(model, x, observed), exact, rtol=0, atol=1e-9)


@pytest.mark.slow
def test_sharp_evidence_on_one_hidden_cause():
    graph = CausalGraph.from_edges([("h", f"c{i}") for i in range(8)])
    model = linear(graph, [[]] + [[1.0]] * 8, [1.0] + [0.2] * 8)
    values = model.generate(torch.randn(1000, 9, generator=generator(1)))
    observed = torch.tensor([[False] + [True] * 8]).expand(1000, -1)
    plan = Plan.make(graph, observed)
    found = observed_log_prob(model, values, plan, generator(2), DRAWN)
    exact = torch.stack([gaussian_log_prob(model, x, observed[0]) for x in values])
    assert_within_stated_error(found, exact)


@pytest.mark.slow
def test_sharp_evidence_on_two_hidden_causes():
    edges = [(h, f"c{i}") for i in range(6) for h in ("h", "k")]
    graph = CausalGraph.from_edges(edges, ["h", "k"])
    turns = [[math.cos(i), math.sin(i)] for i in range(6)]
    model = linear(graph, [[], [], *turns], [1.0] * 2 + [0.1] * 6)
    values = model.generate(torch.randn(400, 8, generator=generator(1)))
    observed = torch.tensor([[False] * 2 + [True] * 6]).expand(400, -1)
    plan = Plan.make(graph, observed)
    found = observed_log_prob(model, values, plan, generator(2), DRAWN)
    exact = torch.stack([gaussian_log_prob(model, x, observed[0]) for x in values])
    assert_within_stated_error(found, exact)


@pytest.mark.parametrize("scale", [1.0, 0.1])
@pytest.mark.parametrize("centre", [-9.0, 9.0, 50.0])
def test_evidence_far_in_the_tail(centre, scale):
    found, exact = far_evidence(centre, scale)
    assert_within_stated_error(found, exact)


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_evidence_out_of_reach_is_right_or_said_to_be_unknown(scale):
    found, exact = far_evidence(150.0, scale)
    right = (found.log_prob - exact).abs() < 0.03
    assert (right | ~found.standard_error.isfinite()).all()


def far_evidence(centre, scale):
    graph = CausalGraph.read("h -> y")
    model = linear(graph, [[], [1.0]], [1.0, scale])
    y = centre * (1.0 + scale**2)  # the posterior of h is centred at y / (1 + scale²)
    values = torch.tensor([[0.0, y]]).expand(50, 2)
    observed = torch.tensor([[False, True]]).expand(50, 2)
    found = observed_log_prob(model, values, Plan.make(graph, observed), generator(), DRAWN)
    return found, gaussian_log_prob(model, values[0], observed[0]).expand(50)


@pytest.mark.parametrize("scale", [0.3, 0.1, 0.03, 0.01])
def test_both_peaks_of_a_posterior_count(scale):
    graph = CausalGraph.read("h -> y")
    model = StructuralModel(graph, [Gaussian(0), absolute_value(scale)])
    y = torch.linspace(0.5, 2.5, 200)
    observed = torch.tensor([[False, True]]).expand(200, 2)
    values = torch.stack([torch.zeros(200), y], 1)
    found = observed_log_prob(model, values, Plan.make(graph, observed), generator())
    # On each side of zero, y | h ~ N(|h|, scale²): half a linear-Gaussian posterior.
    variance = 1.0 + scale**2
    half = torch.special.log_ndtr(y / (scale * math.sqrt(variance)))
    exact = math.log(2.0) + half - 0.5 * (y**2 / variance + math.log(variance) + LOG_TWO_PI)
    assert_within_stated_error(found, exact)


def absolute_value(scale):
    """y = |h| + scale · u, by a network of two ReLU units."""
    mechanism = Gaussian(1, (2,), activation="relu")
    mechanism.set_line(0.0, [0.0], scale)
    with torch.no_grad():
        mechanism.mean.weights[0].copy_(torch.tensor([[1.0], [-1.0]]))
        mechanism.mean.last.fill_(1.0)
    return mechanism.requires_grad_(requires_grad=False)


# What is exact without draws, and what never matters


@pytest.mark.parametrize("effort", [Efforts.evaluation, ALGORITHM_1, Effort(draws=1, adapt=False)])
@pytest.mark.parametrize("kind", CURVED)
def test_complete_rows_are_exact_and_empty_ones_are_zero(kind, effort):
    model = random_model(DIAMOND, seed=1, **CURVED[kind])
    x = model.generate(torch.randn(20, 4, generator=generator()))
    full = torch.ones(20, 4, dtype=torch.bool)
    found = observed_log_prob(model, x, Plan.make(DIAMOND, full), generator(), effort)
    torch.testing.assert_close(found.log_prob, model.log_prob(x), rtol=1e-13, atol=1e-13)
    assert (found.standard_error == 0.0).all()
    assert found.effective_draws.isinf().all()
    found = observed_log_prob(model, x, Plan.make(DIAMOND, ~full), generator(), effort)
    assert (found.log_prob == 0.0).all()
    assert (found.standard_error == 0.0).all()


def test_rows_without_missing_ancestors_need_no_draws():
    model = random_model(DIAMOND, seed=1, **CURVED["network mean"])
    x = model.generate(torch.randn(20, 4, generator=generator()))
    observed = torch.tensor([[True, True, False, False]]).expand(20, 4)
    found = observed_log_prob(model, x, Plan.make(DIAMOND, observed), generator())
    torch.testing.assert_close(found.log_prob, model.log_factors(x)[:, :2].sum(1))
    assert (found.standard_error == 0.0).all()


def test_free_factors_are_those_with_nothing_hidden():
    model = random_model(KITE, seed=1, **CURVED["network mean"])
    values, observed = every_pattern_of(model, 1)
    found = free_log_prob(model, values, Plan.make(KITE, observed))
    for x, o, total in zip(values, observed, found, strict=True):
        free = [i for i, family in enumerate(KITE.families) if o[list(family)].all()]
        torch.testing.assert_close(total, model.log_factors(x)[free].sum())


@pytest.mark.slow
@pytest.mark.parametrize("kind", CURVED)
def test_values_in_the_holes_change_nothing(kind):
    model = random_model(KITE, seed=1, **CURVED[kind])
    values, observed = every_pattern_of(model, 2)
    plan = Plan.make(KITE, observed)
    zeros = observed_log_prob(model, values, plan, generator(3))
    other = torch.where(observed, values, 1e6 * torch.randn(values.shape, generator=generator()))
    again = observed_log_prob(model, other, plan, generator(3))
    assert torch.equal(zeros.log_prob, again.log_prob)
    assert torch.equal(zeros.standard_error, again.standard_error)


def test_barren_nodes_change_nothing():
    more = CausalGraph.from_edges([*KITE.edges, ("a", "y"), ("d", "y"), ("y", "z")], KITE.nodes)
    model = random_model(KITE, seed=1, **CURVED["network mean"])
    leaves = [Gaussian(2, (8,)), Gaussian(1)]
    larger = StructuralModel(more, [*model.mechanisms, *leaves])
    values, observed = every_pattern_of(model, 4)
    holes = torch.zeros(len(values), 2)
    small = observed_log_prob(model, values, Plan.make(KITE, observed), generator(3))
    plan = Plan.make(more, torch.cat([observed, holes.bool()], 1))
    large = observed_log_prob(larger, torch.cat([values, holes], 1), plan, generator(3))
    assert torch.equal(small.log_prob, large.log_prob)


@pytest.mark.slow
@pytest.mark.parametrize("kind", CURVED)
def test_the_marginal_density_of_a_column_integrates_to_one(kind):
    model = random_model(KITE, seed=1, **CURVED[kind])
    sample = model.generate(torch.randn(10_000, 4, generator=generator()))
    effort = replace(Efforts.evaluation, limit=256)  # the tails need not be exact, only said
    for node in range(4):
        low, high = sample[:, node].min().item(), sample[:, node].max().item()
        x = torch.linspace(1.3 * low - 0.3 * high, 1.3 * high - 0.3 * low, 201)
        values = torch.where(torch.arange(4) == node, x[:, None], 0.0)
        observed = (torch.arange(4) == node).expand(len(x), 4)
        found = observed_log_prob(model, values, Plan.make(KITE, observed), generator(1), effort)
        density, step = found.log_prob.exp(), x[1] - x[0]
        error = ((density * found.standard_error) ** 2).sum().sqrt() * step
        # Rows err independently: beyond 4 errors once in 16,000. Kinks leave up to 1e-3.
        assert abs(torch.trapezoid(density, x) - 1.0) < 4.0 * error + 1e-3


# Unbiased at any number of draws

FEW = {
    "Algorithm 1": Effort(draws=8, adapt=False, independent=True),
    "quasi-random": Effort(draws=8, adapt=False),
    # No error is small enough for this one: every row goes on to the last round.
    "adapted once": Effort(draws=16, randomisations=2, tolerance=0.0, limit=32),
}
HOLES = {"one hidden": "acd", "two hidden": "ad", "three hidden": "d"}
TIMES = 4000


def informative_row(holes, scale):
    """A curved model whose last node tells much or little, a row of it, and its density."""
    model = random_model(DIAMOND, seed=1, **CURVED["network mean"])
    model.mechanism(3).log_scale.bias.fill_(math.log(scale))
    x = model.generate(torch.randn(4, generator=generator(5)))
    observed = torch.tensor([name in HOLES[holes] for name in DIAMOND.nodes])
    return model, x, observed, grid_log_prob(model, x, observed, GRID[int((~observed).sum())])


@pytest.mark.slow
@pytest.mark.parametrize("scale", [0.5, 5.0], ids=["much evidence", "little evidence"])
@pytest.mark.parametrize("holes", HOLES)
@pytest.mark.parametrize("effort", FEW)
def test_the_mean_over_repeats_is_the_density(effort, holes, scale):
    model, x, observed, exact = informative_row(holes, scale)
    ratio = torch.exp(repeated(model, x, observed, FEW[effort], TIMES, seed=1) - exact)
    # A z-test on 4,000 repeats: |z| > 4 once in 16,000. The grids are right to 1e-6.
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / math.sqrt(TIMES) + 1e-6


@pytest.mark.parametrize("holes", HOLES)
def test_the_mean_of_the_logarithm_is_below(holes):
    model, x, observed, exact = informative_row(holes, 0.1)
    found = repeated(model, x, observed, FEW["Algorithm 1"], TIMES, seed=2)
    # Jensen's gap, about half the variance of p̂/p, is many standard errors wide here.
    assert exact - found.mean() > 4.0 * found.std() / math.sqrt(TIMES)


@pytest.mark.slow
def test_the_paper_s_estimator_has_the_law_of_algorithm_1_as_printed():
    graph = CausalGraph.read("a -> b; b -> c; c -> d; d -> e")
    model = random_model(graph, seed=2, **CURVED["network mean"])
    x = model.generate(torch.randn(5, generator=generator(6)))
    observed = torch.tensor([name in "bde" for name in graph.nodes])  # a and c apart
    effort = replace(ALGORITHM_1, draws=4)
    ours = repeated(model, x, observed, effort, 20_000, seed=3, joint=True)
    rng = generator(4)
    printed = torch.stack([algorithm_1(model, x, observed, 4, rng) for _ in range(1000)])
    ours, printed = torch.exp(ours - ours.mean()), torch.exp(printed - ours.mean())
    # Means, and then variances, differ by more than 4 standard errors once in 16,000 each.
    for power in (1, 2):
        a, b = ((p - ours.mean() * (power - 1)) ** power for p in (ours, printed))
        error = (a.var() / len(a) + b.var() / len(b)).sqrt()
        assert abs(a.mean() - b.mean()) < 4.0 * error
    assert ALGORITHM_1.draws == 512


# Randomness and housekeeping


def test_the_same_generator_gives_the_same_answer():
    model = random_model(DIAMOND, seed=1, **CURVED["network mean"])
    values, observed = every_pattern_of(model, 2)
    plan = Plan.make(DIAMOND, observed)
    first, again, other = (observed_log_prob(model, values, plan, generator(s)) for s in (1, 1, 2))
    assert torch.equal(first.log_prob, again.log_prob)
    assert not torch.equal(first.log_prob, other.log_prob)


def test_rows_of_one_call_err_independently():
    model, x, observed, _ = informative_row("two hidden", 0.5)
    found = repeated(model, x, observed, FEW["quasi-random"], TIMES, seed=1)
    pairs = torch.corrcoef(torch.stack([found[:-1], found[1:]]))[0, 1]
    # Neighbouring rows are uncorrelated: |z| > 4 once in 16,000.
    assert abs(pairs) < 4.0 / math.sqrt(TIMES)
    assert len(found.unique()) == TIMES


def test_a_single_randomisation_has_no_standard_error():
    model = random_model(DIAMOND, seed=1, **CURVED["network mean"])
    values, observed = every_pattern_of(model, 1)
    plan = Plan.make(DIAMOND, observed)
    found = observed_log_prob(model, values, plan, generator(), Effort())
    hidden = plan.hidden[plan.pattern].any(1)
    assert found.standard_error[hidden].isnan().all()
    assert (found.standard_error[~hidden] == 0.0).all()


def test_inputs_are_not_written_to_and_no_rows_are_no_rows():
    model = random_model(DIAMOND, seed=1, **CURVED["network mean"])
    values, observed = every_pattern_of(model, 1)
    before = values.clone()
    plan = Plan.make(DIAMOND, observed)
    observed_log_prob(model, values, plan, generator())
    assert torch.equal(values, before)
    none = observed_log_prob(model, values[:0], plan.select(torch.arange(0)), generator())
    assert none.log_prob.shape == (0,)
