"""Laws of a structural model: its density, and what interventions and counterfactuals may move."""

import itertools

import pytest
import torch
from mechanisms import MECHANISMS, random_model
from oracles import gaussian_log_prob

from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel

GRAPH = CausalGraph.read("a -> b; a -> c; b -> d; c -> d; d -> e; f -> e")
D = len(GRAPH)
ROWS = 32


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=MECHANISMS)
def model(request):
    return random_model(GRAPH, MECHANISMS[request.param], seed=3)


@pytest.fixture
def noise():
    return torch.randn(ROWS, D, generator=generator(1))


def subsets():
    return [s for size in (1, 2) for s in itertools.combinations(range(D), size)]


def line(graph):
    """A model of unit lines x = Σ parents + u, for sums done by hand."""
    made = []
    for parents in graph.parents:
        made.append(Gaussian(len(parents)))
        made[-1].set_line(0.0, [1.0] * len(parents), 1.0)
    return StructuralModel(graph, made).requires_grad_(requires_grad=False)


def test_log_prob_of_a_linear_model_is_its_dense_gaussian(noise):
    model = random_model(GRAPH, MECHANISMS["gaussian"], seed=3)
    x = model.generate(noise)
    expected = torch.stack([gaussian_log_prob(model, row, torch.ones(D).bool()) for row in x])
    torch.testing.assert_close(model.log_prob(x), expected, rtol=0.0, atol=1e-10)


def test_log_prob_is_the_sum_of_the_factors(model, noise):
    x = model.generate(noise)
    factors = model.log_factors(x)
    torch.testing.assert_close(model.log_prob(x), factors.sum(-1))
    for i in range(D):
        parents = x[:, [GRAPH.index(name) for name in GRAPH.parents_of(GRAPH.nodes[i])]]
        assert torch.equal(factors[:, i], model.mechanisms[i].log_prob(x[:, i], parents))


def test_generate_and_abduct_invert_each_other(model, noise):
    x = model.generate(noise)
    torch.testing.assert_close(model.abduct(x), noise, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(model.generate(model.abduct(x)), x, rtol=1e-9, atol=1e-9)


def test_leading_axes_are_carried_along(model, noise):
    many = noise.reshape(4, 8, D)
    x = model.generate(many)
    torch.testing.assert_close(x.flatten(0, 1), model.generate(noise))
    torch.testing.assert_close(model.abduct(x).flatten(0, 1), model.abduct(x.flatten(0, 1)))
    torch.testing.assert_close(model.log_prob(x).flatten(), model.log_prob(x.flatten(0, 1)))


def test_an_intervention_moves_only_itself_and_its_descendants(model, noise):
    before = model.generate(noise)
    for nodes in subsets():
        after = model.generate(noise, {i: torch.tensor(1.0 + i) for i in nodes})
        below = GRAPH.descendants(nodes)
        for i in range(D):
            if i in nodes:
                assert (after[:, i] == 1.0 + i).all()
            elif i in below:
                assert not torch.equal(after[:, i], before[:, i])
            else:
                assert torch.equal(after[:, i], before[:, i])


@pytest.mark.slow
def test_a_counterfactual_moves_only_itself_and_its_descendants(model, noise):
    factual = model.generate(noise)
    for nodes in subsets():
        clamps = {i: torch.tensor(1.0 + i) for i in nodes}
        other = model.counterfactual(factual, clamps)
        for i in set(range(D)) - GRAPH.descendants(nodes):
            assert torch.equal(other[:, i], factual[:, i])
        # The noise is the row's own: acting on the model or on the row comes to the same.
        torch.testing.assert_close(other, model.generate(noise, clamps), rtol=1e-9, atol=1e-8)


@pytest.mark.slow
def test_intervening_on_what_was_observed_changes_nothing(model, noise):
    factual = model.generate(noise)
    for nodes in subsets():
        held = {i: factual[:, i] for i in nodes}
        assert torch.equal(model.generate(noise, held), factual)
        same = model.counterfactual(factual, held)
        torch.testing.assert_close(same, factual, rtol=1e-9, atol=1e-8)
        same = model.counterfactual(factual, {i: lambda x: x for i in nodes})
        torch.testing.assert_close(same, factual, rtol=1e-9, atol=1e-8)


def test_a_counterfactual_without_clamps_is_the_factual(model, noise):
    factual = model.generate(noise)
    assert torch.equal(model.counterfactual(factual, {}), factual)


def test_two_interventions_reach_across_an_untouched_mediator():
    # causalflows 0.1.0 takes u_c from the mediator before do(a), so that c misses its value.
    model = line(CausalGraph.read("a -> m; m -> c; c -> e"))
    factual = torch.tensor([[0.5, 2.0, -1.0, 4.0]])  # u = (0.5, 1.5, −3, 5)
    clamps = {0: torch.tensor(3.0), 2: torch.tensor(1.0)}
    expected = torch.tensor([[3.0, 4.5, 1.0, 6.0]])
    torch.testing.assert_close(model.counterfactual(factual, clamps), expected)
    torch.testing.assert_close(model.generate(model.abduct(factual), clamps), expected)


def test_two_interventions_hold_exactly_in_every_model(model, noise):
    # a and d are held; b and c between them follow a, and e follows d.
    a, d = GRAPH.index("a"), GRAPH.index("d")
    factual = model.generate(noise)
    other = model.counterfactual(factual, {a: torch.tensor(3.0), d: torch.tensor(1.0)})
    assert (other[:, a] == 3.0).all()
    assert (other[:, d] == 1.0).all()
    for name in ("b", "c", "e"):
        i = GRAPH.index(name)
        parents = other[:, list(GRAPH.parents[i])]
        natural = model.mechanism(i).generate(noise[:, i], parents)
        torch.testing.assert_close(other[:, i], natural, rtol=1e-9, atol=1e-8)


def test_a_clamp_may_hold_a_value_for_each_row(model, noise):
    held = torch.linspace(-2.0, 2.0, ROWS)
    together = model.generate(noise, {1: held})
    assert torch.equal(together[:, 1], held)
    alone = [model.generate(noise[i], {1: held[i]}) for i in range(ROWS)]
    torch.testing.assert_close(together, torch.stack(alone))
    many = model.generate(noise.expand(3, ROWS, D), {1: held})
    torch.testing.assert_close(many, together.expand(3, ROWS, D))


def test_a_shift_moves_the_natural_value(model, noise):
    factual = model.generate(noise)
    shifted = model.generate(noise, {1: lambda x: x + 0.7})
    torch.testing.assert_close(shifted[:, 1], factual[:, 1] + 0.7)
    same = model.generate(noise, {1: factual[:, 1] + 0.7})
    torch.testing.assert_close(shifted, same)


def test_a_shift_below_another_clamp_starts_from_the_value_under_it():
    model = line(CausalGraph.read("a -> m; m -> c"))
    factual = torch.tensor([[0.5, 2.0, -1.0]])  # u = (0.5, 1.5, −3)
    clamps = {0: torch.tensor(3.0), 1: lambda x: x + 10.0}
    expected = torch.tensor([[3.0, 14.5, 11.5]])
    torch.testing.assert_close(model.counterfactual(factual, clamps), expected)
    shifts = {0: lambda x: 2.0 * x, 1: lambda x: x + 10.0}
    expected = torch.tensor([[1.0, 12.5, 9.5]])
    torch.testing.assert_close(model.counterfactual(factual, shifts), expected)


def test_complete_regenerates_only_the_cells_it_is_told(model, noise):
    x = model.generate(torch.randn(ROWS, D, generator=generator(2)))
    where = torch.rand(ROWS, D, generator=generator(4)) < 0.5
    done = model.complete(x, range(D), noise, where=where)
    assert torch.equal(done[~where], x[~where])
    torch.testing.assert_close(model.abduct(done)[where], noise[where], rtol=1e-9, atol=1e-8)


def test_the_jacobians_are_zero_off_the_graph(model):
    noise = torch.randn(D, generator=generator(5))
    x = model.generate(noise)
    moved = torch.autograd.functional.jacobian(model.generate, noise)
    read = torch.autograd.functional.jacobian(model.abduct, x)
    for i, j in itertools.product(range(D), range(D)):
        assert (moved[i, j] != 0.0) == (j in GRAPH.ancestral_closure([i]))
        assert (read[i, j] != 0.0) == (j in GRAPH.families[i])


def test_nothing_given_is_written_to(model, noise):
    x = model.generate(noise)
    held, where = torch.linspace(-2.0, 2.0, ROWS), noise > 0.0
    given = (noise, x, held, where)
    before = [tensor.clone() for tensor in given]
    model.log_prob(x)
    model.abduct(x)
    clamps = {1: held, 2: lambda v: v + 1.0}
    model.generate(noise, clamps)[:] = 0.0
    model.counterfactual(x, clamps)[:] = 0.0
    model.complete(x, [1, 4], noise, where=where)[:] = 0.0
    assert all(torch.equal(now, then) for now, then in zip(given, before, strict=True))


def test_the_number_of_mechanisms_must_fit():
    with pytest.raises(ValueError, match="6 nodes need as many mechanisms; got 1"):
        StructuralModel(GRAPH, [Gaussian(0)])
