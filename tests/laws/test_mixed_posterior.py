"""Draws of what is hidden in mixed rows, against tables of all states, and counterfactuals."""

import math
from dataclasses import replace

import pytest
import torch
from mixed_models import (
    DISCRETE_ONLY,
    MIXED,
    Reference,
    all_patterns,
    generator,
    mixed_model,
    rows_of,
)
from scipy import stats

from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Efforts, EnumerationRules, integrate
from misscnf.inference.posterior import draw_completions

DRAWS = 2000
RATE = 1e-5
"""Of each chi-square test; some 300 of them, so that one seed in 300 fails somewhere."""


def snapped_row(model, reference, seed):
    return reference.snapped(rows_of(model, 1, seed))[0]


def axis_law(reference, x, observed, node):
    """Posterior of one unobserved node over its axis, and the posterior means of its values."""
    log_joint = reference.posterior(x, observed)
    lost = [i for i in range(len(observed)) if not observed[i]]
    others = [place for place, i in enumerate(lost) if i != node]
    log_law = torch.logsumexp(log_joint, others) if others else log_joint
    return torch.softmax(log_law, 0)


def cells_of(reference, node, values):
    """Bins of a node: its values, or intervals of 15 points of a grid."""
    axis = reference.axes[node]
    place = (axis - values[..., None]).abs().argmin(-1)
    return place if reference.model.discrete[node] else place // 15


def assert_follows(reference, x, observed, node, drawn):
    law = axis_law(reference, x, observed, node)
    cells = cells_of(reference, node, reference.axes[node])
    expected = torch.zeros(int(cells.max()) + 1).index_add(0, cells, law) * len(drawn)
    seen = torch.bincount(cells_of(reference, node, drawn), minlength=len(expected)).double()
    common = expected >= 5.0
    expected = torch.cat([expected[common], expected[~common].sum()[None]])
    seen = torch.cat([seen[common], seen[~common].sum()[None]])
    assert not ((expected < 1e-6) & (seen > 0)).any(), "a value that cannot be"
    kept = expected > 0.5
    expected, seen = expected[kept], seen[kept]
    if len(seen) > 1:
        expected = expected * seen.sum() / expected.sum()
        assert stats.chisquare(seen.numpy(), expected.numpy()).pvalue > RATE, (node, observed)


def assert_completions_follow(
    model, reference, x, patterns, seed, clamped=(), effort=Efforts.imputation
):
    """One row many times, under some patterns: each unobserved node follows its posterior."""
    for observed in patterns:
        lost = (~observed).nonzero()[:, 0].tolist()
        values = torch.where(observed, x, 0.0).expand(DRAWS // 4, -1)
        plan = Plan.make(model.graph, observed.expand(DRAWS // 4, -1), clamped=clamped)
        drawn = draw_completions(model, values, plan, 4, generator(seed), effort).flatten(0, 1)
        assert (drawn[:, observed] == x[observed]).all()
        for node in lost:
            assert_follows(reference, x, observed, node, drawn[:, node])


def some_patterns(d, count, seed):
    every = all_patterns(d)[1:-1]
    return every[torch.randperm(len(every), generator=generator(seed))[:count]]


@pytest.mark.slow
@pytest.mark.parametrize("case", DISCRETE_ONLY)
def test_completions_of_discrete_rows_follow_the_posterior(case):
    model = mixed_model(DISCRETE_ONLY[case], (8,))
    reference = Reference(model)
    x = snapped_row(model, reference, 5)
    assert_completions_follow(model, reference, x, some_patterns(5, 6, 1), seed=6)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(), (8,)], ids=["lines", "networks"])
@pytest.mark.parametrize("case", MIXED)
def test_completions_of_mixed_rows_follow_the_posterior(case, shape):
    model = mixed_model(MIXED[case], shape)
    reference = Reference(model)
    x = snapped_row(model, reference, 5)
    patterns = some_patterns(len(model.graph), 4, 2)
    assert_completions_follow(model, reference, x, patterns, seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["chain", "two counts"])
def test_completions_by_draws_follow_the_posterior_too(case):
    effort = replace(Efforts.imputation, enumeration=EnumerationRules(most_states=1))
    model = mixed_model(DISCRETE_ONLY[case], (8,))
    reference = Reference(model)
    x = snapped_row(model, reference, 5)
    assert_completions_follow(model, reference, x, some_patterns(5, 4, 3), seed=8, effort=effort)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (MIXED["confounded"], "b"),
        (MIXED["confounded"], "x2"),
        ("x1 -> b; x2 -> b; x2 -> o; b -> o; k -> o", "b"),
    ],
)
def test_completions_under_a_clamp_follow_the_mutilated_model(text, name):
    model = mixed_model(text, (8,))
    held, d = model.graph.index(name), len(model.graph)
    reference = Reference(model, held=[held])
    x = reference.snapped(rows_of(model, 1, 5, {held: torch.tensor(1.0)}))[0]
    patterns = some_patterns(d, 5, 4)
    patterns[0] = torch.arange(d) == d - 1
    patterns[:, held] = True
    assert_completions_follow(model, reference, x, patterns, seed=9, clamped=[held])


def test_pairs_of_hidden_cells_are_drawn_together():
    """b and x1 of "x1 -> b -> x2": their joint posterior, not only its margins."""
    model = mixed_model("x1 -> b; b -> x2; x1 -> x2; x2 -> o", (8,), seed=4)
    reference = Reference(model)
    x = snapped_row(model, reference, 5)
    b, x1 = model.graph.index("b"), model.graph.index("x1")
    observed = torch.tensor([name in ("x2", "o") for name in model.graph.nodes])
    plan = Plan.make(model.graph, observed.expand(2000, -1))
    values = torch.where(observed, x, 0.0).expand(2000, -1)
    drawn = draw_completions(model, values, plan, 4, generator(1)).flatten(0, 1)
    log_joint = reference.posterior(x, observed)  # over x1 and b, in graph order
    law = torch.softmax(log_joint.flatten(), 0).reshape(log_joint.shape)
    law = law if x1 < b else law.T
    axis = reference.axes[x1]
    centre = (law.sum(1) @ axis).item()
    for state in (0, 1):
        for high in (False, True):
            inside = (axis > centre) == high
            share = law[inside, state].sum().item()
            found = ((drawn[:, b] == state) & ((drawn[:, x1] > centre) == high)).double().mean()
            # The grid puts half a step, at most 2.5 % here, on either side of the centre.
            error = 4.5 * math.sqrt(share * (1.0 - share) / len(drawn))
            assert abs(found - share) < error + 0.025


EVEN = {
    "discrete": (DISCRETE_ONLY["two counts"], ()),
    "closed form": ("k -> x1; b -> x1; x1 -> x2; k -> x3; x3 -> x2", ()),
    "quadrature": (MIXED["a chain of numbers and kinds"], (8,)),
    "importance sampling": (MIXED["confounded"], (8,)),
    "a count above": (MIXED["a count above all"], (8,)),
}


@pytest.mark.slow
@pytest.mark.parametrize("draws", [2, 5, 16])
@pytest.mark.parametrize("case", EVEN)
def test_even_draws_average_right(case, draws):
    """Means of values and of products, as of independent draws: within 4.5 errors (7e-6)."""
    text, shape = EVEN[case]
    model = mixed_model(text, shape)
    d, rows = len(model.graph), 1000
    x = rows_of(model, 1, 5)[0]
    observed = torch.arange(d) == d - 1
    values = torch.where(observed, x, 0.0).expand(rows, d)
    components = Plan.make(model.graph, observed.expand(rows, d)).components()
    hidden = sorted(set(components.cell_node.tolist()))
    integrals = list(integrate(model, values, components, Effort(), generator(1)))
    averages = []
    for even, count in ((True, draws), (False, 16)):
        filled = values.expand(count, rows, d).clone()
        for integral in integrals:
            c = integral.components
            filled[:, c.cell_row, c.cell_node] = integral.draw(count, generator(2), even=even).T
        pairs = [filled[..., i] * filled[..., j] for i in hidden for j in hidden if i <= j]
        averages.append(torch.stack([*filled[..., hidden].unbind(-1), *pairs], -1).mean(0))
    difference = averages[0].mean(0) - averages[1].mean(0)
    error = ((averages[0].var(0) + averages[1].var(0)) / rows).sqrt()
    assert (difference.abs() < 4.5 * error + 1e-12).all()
