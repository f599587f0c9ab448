"""Draws of what is hidden: calibrated, exact where the law is known, and nothing else moved."""

import math
from dataclasses import replace

import pytest
import torch
from mechanisms import MECHANISMS, random_model
from oracles import gaussian_conditional
from scipy import stats

from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Efforts
from misscnf.inference.posterior import draw_completions, draw_hidden
from misscnf.mechanisms import Gaussian, Latent
from misscnf.model import StructuralModel

FIVE = CausalGraph.read("a -> b; a -> c; b -> d; c -> d; d -> e; c -> e")
STAR = CausalGraph.from_edges([("h", f"c{i}") for i in range(6)])
BENCH = CausalGraph.from_edges([(h, f"c{i}") for i in range(6) for h in "hk"], ["h", "k"])
DRAWS = 99


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def curved(graph, seed, scale=None):
    """Networks with fixed random weights, and a small noise below the roots where one is given."""
    model = random_model(graph, lambda p: Gaussian(p, (8,)), seed, size=1.5)
    if scale is not None:
        for i, parents in enumerate(graph.parents):
            model.mechanism(i).log_scale.bias.fill_(math.log(scale) if parents else 0.0)
    return model


def hidden_cause():
    """A hidden number with a cause that is shown, and three bent children."""
    graph = CausalGraph.read("w -> u; u -> a; u -> b; u -> c; w -> c; a -> c", None, ["u"])
    model = curved(graph, 6, 0.4)
    law = Latent(1).double()
    law.set_line(0.0, [0.7], 1.0)
    laws = [law if i in graph.latent_nodes else model.mechanism(i) for i in range(len(graph))]
    return StructuralModel(graph, laws).requires_grad_(requires_grad=False)


def table(model, rows, share, seed):
    """Rows of a model with each cell hidden at random; zeros in the holes."""
    x = model.generate(torch.randn(rows, len(model.graph), generator=generator(seed)))
    observed = torch.rand(x.shape, generator=generator(seed + 1)) >= share
    return x, torch.where(observed, x, 0.0), observed


def assert_uniform(ranks):
    """Ranks among 99 draws fall into ten equal bins: a chi-square test at 1e-4."""
    counts = torch.bincount(ranks // 10, minlength=10).double()
    assert stats.chisquare(counts.numpy()).pvalue > 1e-4, counts.tolist()


CALIBRATED = {
    # Holes everywhere: single and joint posteriors, and barren cells.
    "random holes": lambda: (curved(FIVE, 1), [], 0.4),
    # A hidden root whose six children tell it precisely: the prior is a poor proposal.
    "hidden root": lambda: (curved(STAR, 2, 0.2), ["h"], 0.0),
    "two hidden roots": lambda: (curved(BENCH, 3, 0.2), ["h", "k"], 0.0),
    # Causes that nobody measures, below one that is shown, with and without holes beside them.
    "hidden cause": lambda: (hidden_cause(), ["u"], 0.0),
    "hidden cause and holes": lambda: (hidden_cause(), ["u"], 0.3),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CALIBRATED)
def test_hidden_values_rank_uniformly_among_their_imputations(case):
    model, always, share = CALIBRATED[case]()
    rows = 600 if always else 3000
    x, _, observed = table(model, rows, share, seed=4)
    observed &= torch.tensor([name not in always for name in model.graph.nodes])
    values = torch.where(observed, x, 0.0)
    plan = Plan.make(model.graph, observed)
    drawn = draw_completions(model, values, plan, DRAWS, generator(5))
    rank = (drawn < x).sum(0)
    # A test for each node with holes, 14 over the five cases: one in 700 seeds fails.
    for node in (~observed).any(0).nonzero()[:, 0].tolist():
        assert_uniform(rank[~observed[:, node], node])


@pytest.mark.slow
@pytest.mark.parametrize("effort", ["closed form", "drawn"])
def test_draws_of_a_linear_model_follow_the_exact_conditional(effort):
    model = random_model(FIVE, MECHANISMS["gaussian"], seed=1)
    rows = 4000
    observed = torch.tensor([name in "bde" for name in FIVE.nodes])
    x = model.generate(torch.randn(rows, 5, generator=generator(1)))
    plan = Plan.make(FIVE, observed.expand(rows, 5))
    how = replace(Efforts.imputation, closed_form=effort == "closed form")
    drawn = draw_hidden(model, torch.where(observed, x, 0.0), plan, 1, how, generator(2))
    assert_standard_normal(residuals(model, x, drawn, observed))


@pytest.mark.slow
@pytest.mark.parametrize("seen", ["ace", "a", "e", "cd"])
def test_completions_of_a_linear_model_follow_the_exact_conditional(seen):
    model = random_model(FIVE, MECHANISMS["gaussian"], seed=1)
    rows = 4000
    observed = torch.tensor([name in seen for name in FIVE.nodes])
    x = model.generate(torch.randn(rows, 5, generator=generator(1)))
    plan = Plan.make(FIVE, observed.expand(rows, 5))
    drawn = draw_completions(model, torch.where(observed, x, 0.0), plan, 1, generator(2))
    assert_standard_normal(residuals(model, x, drawn, observed))


def residuals(model, x, drawn, observed):
    """Completions with their exact conditional mean and covariance taken off, (draws · N, m)."""
    lost = ~observed
    mean = torch.stack([gaussian_conditional(model, row, observed)[0] for row in x])
    root = torch.linalg.cholesky(gaussian_conditional(model, x[0], observed)[1])
    away = (drawn[..., lost] - mean).flatten(0, 1)
    return torch.linalg.solve_triangular(root, away.T, upper=False).T


def assert_standard_normal(z):
    """Means and covariances of standard normal numbers, each within 4.5 errors: 7e-6 a number."""
    n, m = z.shape
    assert (z.mean(0).abs() < 4.5 / math.sqrt(n)).all()
    error = (1.0 + torch.eye(m)).sqrt() / math.sqrt(n)  # of z_i z_j and of z_i²
    assert ((z.T @ z / n - torch.eye(m)).abs() < 4.5 * error).all()


@pytest.mark.slow
def test_draws_under_a_clamp_follow_the_mutilated_model():
    # a → c → e with a → b: given b and do(c), e follows c alone, and a only what b says.
    graph = CausalGraph.read("a -> b; a -> c; c -> e; a -> e")
    model = random_model(graph, MECHANISMS["gaussian"], seed=1)
    held, rows = graph.index("c"), 4000
    x = model.generate(torch.randn(rows, 4, generator=generator(1)), {held: torch.tensor(1.5)})
    observed = torch.tensor([name in "bc" for name in graph.nodes])
    plan = Plan.make(graph, observed.expand(rows, 4), clamped=[held])
    drawn = draw_completions(model, torch.where(observed, x, 0.0), plan, 1, generator(2))
    assert (drawn[..., held] == 1.5).all()
    cut = CausalGraph.from_edges([e for e in graph.edges if e[1] != "c"], graph.nodes)
    kept = {name: model.mechanism(i) for i, name in enumerate(graph.nodes)} | {"c": Gaussian(0)}
    other = StructuralModel(cut, [kept[name] for name in cut.nodes])
    order = [graph.index(name) for name in cut.nodes]
    z = residuals(other, x[:, order], drawn[..., order], observed[order])
    assert_standard_normal(z)


def test_both_peaks_of_a_posterior_are_drawn():
    # y = |h| + 0.1 u: the sign of h is lost, and both are as likely.
    graph = CausalGraph.read("h -> y")
    fold = Gaussian(1, (2,), activation="relu")
    fold.set_line(0.0, [0.0], 0.1)
    with torch.no_grad():
        fold.mean.weights[0].copy_(torch.tensor([[1.0], [-1.0]]))
        fold.mean.last.fill_(1.0)
    model = StructuralModel(graph, [Gaussian(0), fold])
    values = torch.tensor([[0.0, 2.0]]).expand(200, 2)
    plan = Plan.make(graph, torch.tensor([[False, True]]).expand(200, 2))
    drawn = draw_completions(model, values, plan, 100, generator())[..., 0]
    share = (drawn > 0.0).double().mean(0)
    # A share of 100 fair draws leaves (0.2, 0.8) once in 10⁹; 200 rows are one in five million.
    assert ((share > 0.2) & (share < 0.8)).all()


@pytest.mark.parametrize("kind", ["gaussian", "gaussian, network mean", "spline", "affine"])
def test_observed_cells_are_untouched_and_nothing_given_is_written_to(kind):
    model = random_model(FIVE, MECHANISMS[kind], seed=1)
    _, values, observed = table(model, 200, 0.5, seed=1)
    before = values.clone()
    drawn = draw_completions(model, values, Plan.make(FIVE, observed), 3, generator(2))
    assert drawn.shape == (3, 200, 5)
    assert drawn.isfinite().all()
    assert torch.equal(values, before)
    assert torch.equal(drawn[:, observed], values[observed].expand(3, -1))
    # Of what is unobserved, every cell is filled anew in each completion.
    assert (drawn[0] != drawn[1])[~observed].double().mean() > 0.95


def test_barren_nodes_follow_their_mechanism():
    model = curved(FIVE, 1)
    _, values, observed = table(model, 2000, 0.5, seed=1)
    plan = Plan.make(FIVE, observed)
    drawn = draw_completions(model, values, plan, 2, generator(2))
    barren = plan.barren()
    noise = model.abduct(drawn)
    # Given their completed parents, barren cells have fresh noise: one KS test in 10,000 fails.
    assert barren.sum() > 1000
    for one in noise:
        assert stats.kstest(one[barren].numpy(), "norm").pvalue > 1e-4
    pairs = torch.corrcoef(noise[:, barren])[0, 1]
    assert abs(pairs) < 4.0 / math.sqrt(int(barren.sum()))  # |z| > 4 once in 16,000


def test_draw_hidden_leaves_barren_cells_alone():
    model = curved(FIVE, 1)
    _, values, observed = table(model, 100, 0.5, seed=1)
    plan = Plan.make(FIVE, observed)
    with torch.no_grad():
        drawn = draw_hidden(model, values, plan, 2, Effort(), generator())
    hidden = plan.hidden[plan.pattern]
    assert torch.equal(drawn[:, ~hidden], values[~hidden].expand(2, -1))
    assert (drawn[:, hidden] != values[hidden]).all()


def test_the_same_generator_gives_the_same_draws():
    model = curved(FIVE, 1)
    _, values, observed = table(model, 50, 0.5, seed=1)
    plan = Plan.make(FIVE, observed)
    first, again, other = (
        draw_completions(model, values, plan, 4, generator(seed)) for seed in (7, 7, 8)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_values_in_the_holes_change_nothing():
    model = curved(FIVE, 1)
    _, values, observed = table(model, 50, 0.5, seed=1)
    plan = Plan.make(FIVE, observed)
    first = draw_completions(model, values, plan, 2, generator())
    filled = torch.where(observed, values, 1e6)
    assert torch.equal(draw_completions(model, filled, plan, 2, generator()), first)


def test_complete_tables_come_back_as_they_are_and_empty_ones_are_samples():
    model = curved(FIVE, 1)
    x = model.generate(torch.randn(2000, 5, generator=generator()))
    full = torch.ones(2000, 5, dtype=torch.bool)
    drawn = draw_completions(model, x, Plan.make(FIVE, full), 2, generator())
    assert torch.equal(drawn, x.expand(2, -1, -1))
    drawn = draw_completions(model, torch.zeros_like(x), Plan.make(FIVE, ~full), 1, generator(1))
    # Five Kolmogorov-Smirnov tests at 1e-5 against fresh samples: one in 20,000 fails.
    for node in range(5):
        assert stats.ks_2samp(drawn[0, :, node], x[:, node]).pvalue > 1e-5
