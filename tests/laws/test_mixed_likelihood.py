"""The likelihood of mixed rows, against sums over all states and grids."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from mixed_models import (
    DISCRETE_ONLY,
    DOMAINS,
    MIXED,
    Reference,
    all_patterns,
    every_pattern,
    generator,
    mixed_model,
    mixture_log_prob,
    rows_of,
)
from scipy import stats

from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Efforts
from misscnf.inference.likelihood import observed_log_prob
from misscnf.inference.posterior import draw_completions
from misscnf.mechanisms import Gaussian, GumbelMax, Ordinal
from misscnf.model import StructuralModel

GRID_ERROR = 1e-8
"""The tables hold all but 1e-9 of the mass: `test_the_tables_hold_all_of_the_mass`."""
SHAPES = {"lines": (), "networks": (8,)}


def evaluate(model, values, observed, seed=2, effort=Efforts.evaluation, **plan):
    return observed_log_prob(
        model, values, Plan.make(model.graph, observed, **plan), generator(seed), effort
    )


def references(reference, values, observed):
    rows = zip(values, observed, strict=True)
    return torch.stack([reference.log_prob(x, seen) for x, seen in rows])


def assert_within_stated_error(found, exact, oracle_error=GRID_ERROR):
    """Stated errors are below 0.01, and differences within four of them.

    |t| > 4 has probability 1.2e-3 (15 degrees of freedom); more such rows than the count allows
    has probability 1e-4 in each call. None is off by more than ten tolerances of an evaluation.
    """
    assert (found.standard_error < 0.01).all()
    difference = (found.log_prob - exact).abs()
    assert (difference < 0.03 + oracle_error).all()
    beyond = difference > 4.0 * found.standard_error + oracle_error
    allowed = stats.binom.isf(1e-4, len(exact), 2.0 * stats.t.sf(4.0, 15))
    assert beyond.sum() <= allowed, f"{beyond.sum()} of {len(exact)} rows are beyond 4 errors"


def assert_exact(found, exact, within=1e-9):
    torch.testing.assert_close(found.log_prob, exact, rtol=0.0, atol=within)
    assert (found.standard_error == 0.0).all()
    assert found.effective_draws.isinf().all()


# Against tables of all states


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", DISCRETE_ONLY)
@pytest.mark.parametrize("joint", [False, True], ids=["components", "joint"])
def test_discrete_models_are_exact_on_every_pattern(case, shape, joint):
    model = mixed_model(DISCRETE_ONLY[case], SHAPES[shape])
    reference = Reference(model)
    values, observed = every_pattern(model, reference, 3)
    assert len(model.graph) == 5
    found = evaluate(model, values, observed, joint=joint)
    assert_exact(found, references(reference, values, observed))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", MIXED)
def test_mixed_models_agree_with_tables_on_every_pattern(case, shape):
    model = mixed_model(MIXED[case], SHAPES[shape])
    reference = Reference(model)
    values, observed = every_pattern(model, reference, 3)
    found = evaluate(model, values, observed)
    assert_within_stated_error(found, references(reference, values, observed))


@pytest.mark.parametrize("text", [DISCRETE_ONLY["diamond"], MIXED["a count above all"]])
def test_sums_in_pieces_are_the_sums_at_once(text):
    model = mixed_model(text)
    values, observed = every_pattern(model, Reference(model), 2)
    whole = evaluate(model, values, observed)
    pieces = evaluate(
        model, values, observed, effort=replace(Efforts.evaluation, cells_at_once=2**8)
    )
    error = (whole.standard_error**2 + pieces.standard_error**2).sqrt()
    assert ((pieces.log_prob - whole.log_prob).abs() <= 4.0 * error + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("case", MIXED)
def test_rare_rows_agree_with_tables_too(case, shape):
    model = mixed_model(MIXED[case], SHAPES[shape])
    reference = Reference(model)
    far = [[-3.5, 4.0][i % 2] for i in range(len(model.graph))]
    rare = [12.0 if m.domain.kind == "count" else 0.0 for m in model.mechanisms]
    chosen = [
        y if m.domain.discrete else x for x, y, m in zip(far, rare, model.mechanisms, strict=True)
    ]
    observed = all_patterns(len(model.graph))
    values = torch.where(observed, reference.snapped(torch.tensor([chosen])), 0.0)
    exact = references(reference, values, observed)
    assert exact.min() < -6.0
    # A count that is cut at 1e-12 may matter more where what is seen is rare: 1e-6 at most here.
    assert_within_stated_error(evaluate(model, values, observed), exact, 1e-6)


def test_the_tables_hold_all_of_the_mass():
    for text, hidden in itertools.product([*MIXED.values(), *DISCRETE_ONLY.values()], [(), (8,)]):
        model = mixed_model(text, hidden)
        nothing = torch.zeros(len(model.graph))
        total = Reference(model).log_prob(nothing, nothing.bool())
        assert abs(total) < 1e-9, text


# Interventions


@pytest.mark.parametrize("case", ["confounded", "a count above all", "a count below a number"])
def test_a_clamp_is_the_mutilated_model(case):
    model = mixed_model(MIXED[case], (8,))
    for held in range(1, 4):
        reference = Reference(model, held=[held])
        observed, clamps = all_patterns(4), {held: torch.tensor(1.0)}
        seen = observed | (torch.arange(4) == held)
        values = torch.where(seen, reference.snapped(rows_of(model, 1, 3, clamps)), 0.0)
        found = evaluate(model, values, observed, clamped=[held])
        assert_within_stated_error(found, references(reference, values, seen))


CLAMPED = {
    # The held node has hidden parents that its children do not: they are not to be mixed up.
    "b1": ("x1 -> b1; x2 -> b1; x2 -> x3; b1 -> x3; k -> x3", [["x3"], ["x1", "x3"]]),
    "x1": ("k1 -> x1; x2 -> x1; x2 -> x3; x1 -> x3; k2 -> x3; k2 -> x2", [["x3"], ["k1", "x3"]]),
    "n": ("x1 -> n; x2 -> n; x1 -> b; x2 -> k; n -> k; n -> b", [["b", "k"], ["k"]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CLAMPED)
def test_a_clamp_below_hidden_causes_is_the_mutilated_model(name, shape):
    text, shown = CLAMPED[name]
    model = mixed_model(text, SHAPES[shape])
    nodes, held = model.graph.nodes, model.graph.index(name)
    reference = Reference(model, held=[held])
    observed = torch.tensor([[node in seen for node in nodes] for seen in shown]).repeat(3, 1)
    seen = observed | (torch.arange(len(nodes)) == held)
    x = reference.snapped(rows_of(model, len(seen), 3, {held: torch.tensor(1.0)}))
    values = torch.where(seen, x, 0.0)
    found = evaluate(model, values, observed, clamped=[held])
    assert_within_stated_error(found, references(reference, values, seen))


def test_a_clamp_on_a_discrete_model_is_exact():
    model = mixed_model(DISCRETE_ONLY["diamond"])
    for held in range(5):
        reference = Reference(model, held=[held])
        x = rows_of(model, 2, 3, {held: torch.tensor(1.0)}).repeat_interleave(32, 0)
        observed = all_patterns(5).repeat(2, 1)
        observed[:, held] = True
        values = torch.where(observed, x, 0.0)
        found = evaluate(model, values, observed, clamped=[held])
        assert_exact(found, references(reference, values, observed))


# Mixtures of Gaussians


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "b -> x1; x1 -> x2; b -> x3; x2 -> x3; k -> x2",
        "b -> k; k -> x1; x1 -> x2; b -> x2; x2 -> x3",
        "o -> x1; x1 -> x2; b -> x3; o -> b; x3 -> x4",
    ],
)
def test_linear_models_with_kinds_above_numbers_are_exact_mixtures(text):
    model = mixed_model(text)
    d = len(model.graph)
    observed = all_patterns(d)
    values = torch.where(observed, rows_of(model, 1, 1), 0.0)
    rows = zip(values, observed, strict=True)
    exact = torch.stack([mixture_log_prob(model, *row) for row in rows])
    assert_exact(evaluate(model, values, observed), exact)


# Too many states to sum


def test_too_many_states_are_drawn():
    names = [f"l{i}" for i in range(6)]
    model = mixed_model("; ".join(f"{name} -> x" for name in names))
    assert Efforts.evaluation.enumeration.most_states < 6**6
    every = torch.cartesian_prod(*[torch.arange(6.0)] * 6)
    log_prior = model.log_factors(torch.cat([every, torch.zeros(len(every), 1)], 1))[:, :6].sum(1)
    x = torch.linspace(-2.0, 2.0, 5)
    exact = [log_prior + model.mechanism(6).log_prob(v.expand(len(every)), every) for v in x]
    values = torch.cat([torch.zeros(5, 6), x[:, None]], 1)
    found = evaluate(model, values, torch.tensor([[False] * 6 + [True]]).expand(5, 7))
    assert (found.standard_error > 0.0).all()
    assert_within_stated_error(found, torch.logsumexp(torch.stack(exact), 1))


def test_a_count_with_too_many_values_is_drawn():
    model = mixed_model("n -> x; n -> b")
    with torch.no_grad():
        model.mechanism(0).location.bias.fill_(math.log(6000.0))
        for node in (1, 2):
            part = model.mechanism(node)
            line = part.mean if isinstance(part, Gaussian) else part.location
            line.weight[:, 0].mul_(2e-3)
    every = torch.arange(60_000.0)
    most = Efforts.evaluation.enumeration.most_states
    assert model.mechanism(0).support(torch.zeros(1, 0), 1e-12) > most
    b, x = model.graph.index("b"), model.graph.index("x")
    values = torch.zeros(6, 3)
    values[:, x], values[:, b] = torch.linspace(-1.0, 3.0, 6), torch.arange(6.0) % 2
    log_joint = model.log_factors(
        torch.where(torch.arange(3) == 0, every[:, None, None], values[None])
    ).sum(-1)
    found = evaluate(model, values, torch.tensor([[False, True, True]]).expand(6, 3))
    assert_within_stated_error(found, torch.logsumexp(log_joint, 0))


def test_a_dozen_hidden_counts_are_drawn():
    """16,385 states each, the product of twelve overflows an integer."""
    names = [f"n{i}" for i in range(12)]
    text = "; ".join(f"x -> {name}; {name} -> b" for name in names) + "; n0 -> n; n1 -> n; n -> b"
    model = mixed_model(text)
    observed = torch.tensor([[name == "b" for name in model.graph.nodes]]).repeat(2, 1)
    values = torch.where(observed, torch.tensor([[0.0], [1.0]]), 0.0)
    found = evaluate(model, values, observed, effort=Effort(draws=1024, limit=1024))
    # Both values of a binary node: 0.03 is far above what 1,024 draws leave.
    assert abs(found.log_prob.exp().sum() - 1.0) < 0.03


def test_too_many_integrals_are_drawn():
    text = "; ".join(f"l{i} -> x1" for i in range(4)) + "; x1 -> x2"
    model = mixed_model(text)
    assert Efforts.evaluation.enumeration.most_integrals < 6**4
    rows, every = torch.zeros(6**4, 6), torch.cartesian_prod(*[torch.arange(6.0)] * 4)
    rows[:, :4] = every
    log_prior = model.log_factors(rows)[:, :4].sum(1)
    below, line = model.mechanism(4), model.mechanism(5).linear_form()
    mean = line.intercept + line.weights * below.generate(torch.zeros(6**4), every)
    spread = below.generate(torch.ones(6**4), every) - below.generate(torch.zeros(6**4), every)
    scale = ((line.weights * spread) ** 2 + line.scale**2).sqrt()
    x = torch.linspace(-2.0, 2.0, 5)
    normal = torch.distributions.Normal(mean, scale).log_prob(x[:, None])
    values = torch.cat([torch.zeros(5, 5), x[:, None]], 1)
    found = evaluate(model, values, torch.tensor([[False] * 5 + [True]]).expand(5, 6))
    assert_within_stated_error(found, torch.logsumexp(log_prior + normal, 1))


# Prior draws and single precision


def test_the_paper_s_estimator_is_unbiased_on_mixed_rows():
    model = mixed_model(MIXED["confounded"], (8,))
    reference = Reference(model)
    x = reference.snapped(rows_of(model, 1, 3))
    observed = torch.tensor([[False, False, False, True]])
    exact, times = reference.log_prob(x[0], observed[0]), 4000
    effort = Effort(draws=8, adapt=False, independent=True)
    found = evaluate(model, x.expand(times, -1), observed.expand(times, -1), effort=effort)
    ratio = torch.exp(found.log_prob - exact)
    # |z| > 4 once in 16,000.
    assert abs(ratio.mean() - 1.0) < 4.0 * ratio.std() / math.sqrt(times)


@pytest.mark.parametrize("case", ["confounded", "a count below a number", "a count above all"])
def test_single_precision_serves(case):
    model = mixed_model(MIXED[case], (8,))
    reference = Reference(model)
    values, observed = every_pattern(model, reference, 2)
    exact = references(reference, values, observed)
    found = evaluate(model.float(), values.float(), observed)
    assert found.log_prob.dtype == torch.float32
    assert ((found.log_prob - exact).abs() < 4.0 * found.standard_error + 1e-4).all()


# What cannot be, and what does not matter


class Copy(GumbelMax):
    """The category of the parent, for sure."""

    def logits(self, parents):
        same = parents == torch.arange(self.levels)
        return torch.where(same, 0.0, -math.inf)


def with_copies(text, copies):
    """A model in which some nodes copy their only parent."""
    model = mixed_model(text)
    made = [
        Copy(DOMAINS[name[0]].levels) if name in copies else model.mechanism(i)
        for i, name in enumerate(model.graph.nodes)
    ]
    return StructuralModel(model.graph, made)


def test_states_that_cannot_be_add_nothing():
    model = with_copies("k1 -> k2; k2 -> x1; x1 -> x2; k1 -> b", ["k2"])
    reference = Reference(model)
    at = {"k1": 2.0, "k2": 2.0, "x1": 0.6, "x2": -0.4, "b": 1.0}
    x = torch.tensor([at[name] for name in model.graph.nodes])
    observed = all_patterns(5)
    values = torch.where(observed, x, 0.0)
    found = evaluate(model, values, observed)
    assert_within_stated_error(found, references(reference, values, observed))
    assert not found.effective_draws.isnan().any()
    assert not found.standard_error.isnan().any()


IMPOSSIBLE = {
    "nothing hidden": ("k -> b", {"b": 7.0, "k": 0.0}),
    "a category hidden": ("k -> b", {"b": 7.0}),
    "a number hidden": ("x -> b", {"b": 7.0}),
    "two numbers hidden": ("x1 -> x2; x2 -> b; x1 -> b", {"b": 7.0}),
    "both hidden": ("k -> b; x -> b", {"b": 7.0}),
    "a count hidden below a number": ("x -> n; n -> b", {"b": 7.0}),
    "a fraction of a count": ("x -> n; k -> n", {"n": 1.5}),
    "possible and impossible": ("k -> b; k -> o", {"b": 1.0, "o": 9.0}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", IMPOSSIBLE)
def test_what_cannot_be_has_density_zero_and_is_never_nan(case):
    text, seen = IMPOSSIBLE[case]
    model = mixed_model(text, (8,))
    values = torch.tensor([[seen.get(name, 0.0) for name in model.graph.nodes]]).repeat(3, 1)
    observed = torch.tensor([[name in seen for name in model.graph.nodes]]).repeat(3, 1)
    values[2, observed[2]] = 0.0  # a row that can be, in between
    values[1, observed[1]] = 0.0
    found = evaluate(model, values, observed)
    assert found.log_prob[0] == -math.inf
    assert found.log_prob[1:].isfinite().all()
    assert (found.standard_error[1:] < 0.01).all()
    assert not found.effective_draws.isnan().any()
    for effort in (Effort(), replace(Efforts.evaluation, closed_form=False)):
        again = evaluate(model, values, observed, effort=effort).log_prob
        assert again[0] == -math.inf
        torch.testing.assert_close(again[1:], found.log_prob[1:], rtol=0.0, atol=0.3)
    drawn = draw_completions(model, values, Plan.make(model.graph, observed), 4, generator())
    assert drawn.isfinite().all()


def test_evidence_that_contradicts_itself_has_density_zero():
    model = with_copies("k1 -> k2; k1 -> k3", ["k2", "k3"])
    found = evaluate(model, torch.tensor([[0.0, 1.0, 2.0]]), torch.tensor([[False, True, True]]))
    assert found.log_prob[0] == -math.inf


@pytest.mark.slow
@pytest.mark.parametrize("case", ["confounded", "a count below a number"])
def test_barren_columns_and_values_in_the_holes_change_nothing(case):
    model = mixed_model(MIXED[case], (8,))
    graph = model.graph
    values, observed = every_pattern(model, Reference(model), 1)
    first = evaluate(model, values, observed)
    other = torch.where(
        observed, values, torch.randint(0, 99, values.shape, generator=generator()) * 1e3
    )
    again = evaluate(model, other, observed)
    assert torch.equal(first.log_prob, again.log_prob)
    more = CausalGraph.from_edges(
        [*graph.edges, (graph.nodes[0], "b9"), (graph.nodes[3], "b9"), ("b9", "n9")], graph.nodes
    )
    domains = [DOMAINS[name[0]] for name in graph.nodes]
    leaves = [Ordinal([domains[0], domains[3]]), mixed_model("b -> n").mechanism(1)]
    larger = StructuralModel(more, [*model.mechanisms, *leaves])
    holes = torch.zeros(len(values), 2)
    wide = evaluate(larger, torch.cat([values, holes], 1), torch.cat([observed, holes.bool()], 1))
    assert torch.equal(first.log_prob, wide.log_prob)


@pytest.mark.parametrize("case", MIXED)
def test_empty_rows_have_log_density_zero(case):
    model = mixed_model(MIXED[case], (8,))
    empty = torch.zeros(3, len(model.graph))
    found = evaluate(model, empty, empty.bool())
    assert (found.log_prob == 0.0).all()
    assert (found.standard_error == 0.0).all()
