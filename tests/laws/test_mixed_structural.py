"""How kinds enter a network as parents, and what counterfactuals of kinds may do."""

import itertools

import pytest
import torch
from discrete_mechanisms import CATEGORICAL, COUNT, ORDINAL, POSITIVE_COUNT, parents_of
from mechanisms import randomised
from mixed_models import DISCRETE_ONLY, MIXED, generator, mixed_model, rows_of
from scipy import stats

from misscnf.data import domains as kinds
from misscnf.data.domains import CONTINUOUS
from misscnf.mechanisms import Categorical, Count, Encoding, Gaussian, Ordinal

ROWS = 200
FINITE = [
    kinds.Binary(location=0.3, scale=0.4),
    kinds.Ordinal(location=0.3, scale=0.4, levels=2),
    kinds.Ordinal(location=1.2, scale=0.7, levels=3),
    kinds.Ordinal(location=3.0, scale=2.0, levels=7),
    kinds.Categorical(2),
    kinds.Categorical(6),
]
EVERY = [FINITE[0], CONTINUOUS, ORDINAL, CATEGORICAL, COUNT, POSITIVE_COUNT]

# Parents


@pytest.mark.parametrize("domain", FINITE, ids=lambda d: f"{d.kind} of {d.states}")
def test_a_line_can_be_every_function_of_a_finite_parent(domain):
    encoding = Encoding([domain])
    features = encoding(torch.arange(float(domain.states))[:, None])
    assert (
        features.shape == (domain.states, encoding.features) == (domain.states, domain.states - 1)
    )
    design = torch.cat([torch.ones(domain.states, 1), features], 1)
    assert torch.linalg.matrix_rank(design) == domain.states
    assert torch.linalg.cond(design) < 50.0


def test_features_stand_side_by_side_in_the_order_of_the_parents():
    encoding, parents = Encoding(EVERY), parents_of(EVERY, 50, generator())
    parts = [Encoding([d])(x[:, None]) for d, x in zip(EVERY, parents.T, strict=True)]
    assert torch.equal(encoding(parents), torch.cat(parts, 1))
    assert encoding.sizes == [1, 1, 3, 2, 2, 1]


def test_features_are_what_the_table_says():
    parents = torch.tensor([[1.0, -0.7, 2.0, 1.0, 0.0, 6.0]])
    binary = (1.0 - 0.3) / 0.4
    ordinal = [(2.0 - 1.3) / 1.1, 0.0, 1.0]
    expected = [binary, -0.7, *ordinal, 1.0, 0.0, (0.0 - 2.0) / 1.8, 1.0, (6.0 - 4.0) / 2.0]
    torch.testing.assert_close(Encoding(EVERY)(parents), torch.tensor([expected]))


def test_the_linear_form_with_discrete_parents_is_the_law():
    mechanism = randomised(Gaussian(EVERY), generator(1)).requires_grad_(requires_grad=False)
    parents, x = parents_of(EVERY, 50, generator()), torch.randn(50, generator=generator(2))
    form = mechanism.linear_form()
    assert [i for i, weight in enumerate(form.weights) if weight] == [1]
    mean = form.intercept + parents @ form.weights + form.offset(parents)
    torch.testing.assert_close(mechanism.generate(torch.zeros(50), parents), mean)
    torch.testing.assert_close(mechanism.generate(x, parents), mean + form.scale * x)
    # What a continuous parent is does not matter to the offset.
    other = parents.clone()
    other[:, 1] = 1e6
    assert torch.equal(form.offset(other), form.offset(parents))


# Structure

GRAPHS = {**MIXED, **DISCRETE_ONLY}


@pytest.fixture(params=GRAPHS)
def model(request):
    return mixed_model(GRAPHS[request.param], (8,))


def test_noise_has_one_number_a_node_and_one_a_category(model):
    sizes = [m.domain.states if m.domain.kind == "categorical" else 1 for m in model.mechanisms]
    assert model.noise_width == sum(sizes)
    x = rows_of(model, 20, 1)
    assert x.shape == (20, len(model.graph))
    assert model.abduct(x, generator(2)).shape == (20, model.noise_width)


def test_abducted_noise_makes_the_row_again(model):
    x = rows_of(model, ROWS, 1)
    again = model.generate(model.abduct(x, generator(2)))
    discrete = torch.tensor(model.discrete)
    assert torch.equal(again[:, discrete], x[:, discrete])
    torch.testing.assert_close(again, x, rtol=1e-9, atol=1e-9)


def test_abducted_noise_of_rows_is_standard_normal(model):
    x = rows_of(model, 2000, 1)
    noise = model.abduct(x, generator(2))
    # One KS test a number, and the correlations of all pairs, at 1e-6 each.
    assert all(stats.kstest(u.numpy(), "norm").pvalue > 1e-6 for u in noise.T)
    between = (noise.T @ noise / len(noise)).fill_diagonal_(0.0)
    assert (between.abs() < 5.0 / len(noise) ** 0.5).all()


def test_a_counterfactual_of_nothing_is_the_factual(model):
    x, d = rows_of(model, ROWS, 1), len(model.graph)
    assert torch.equal(model.counterfactual(x, {}, generator(3)), x)
    for nodes in itertools.chain.from_iterable(
        itertools.combinations(range(d), n) for n in (1, 2)
    ):
        held = {i: x[:, i] for i in nodes}
        same = model.counterfactual(x, held, generator(3))
        discrete = torch.tensor(model.discrete)
        assert torch.equal(same[:, discrete], x[:, discrete])
        torch.testing.assert_close(same, x, rtol=1e-9, atol=1e-9)


def test_a_counterfactual_moves_only_descendants_to_legal_values(model):
    x = rows_of(model, ROWS, 1)
    for node in range(len(model.graph)):
        other = model.counterfactual(x, {node: torch.tensor(1.0)}, generator(3))
        assert (other[:, node] == 1.0).all()
        for i, mechanism in enumerate(model.mechanisms):
            if i not in model.graph.descendants([node]):
                assert torch.equal(other[:, i], x[:, i])
            elif mechanism.domain.discrete:
                assert mechanism.log_prob(other[:, i], model.parents_of(other, i)).isfinite().all()


def test_counterfactuals_of_a_sample_have_the_law_of_the_intervention(model):
    """Averaged over rows, "had it been so" is "let it be so": two samples, each value's share."""
    n = 2500
    x = rows_of(model, n, 1)
    clamps = {0: torch.tensor(1.0)}
    other, fresh = model.counterfactual(x, clamps, generator(3)), rows_of(model, n, 4, clamps)
    for i, mechanism in enumerate(model.mechanisms):
        a, b = other[:, i], fresh[:, i]
        if not mechanism.domain.discrete:
            assert stats.ks_2samp(a.numpy(), b.numpy()).pvalue > 1e-6
            continue
        size = int(max(a.max(), b.max())) + 1
        table = torch.stack([torch.bincount(v.long(), minlength=size) for v in (a, b)])
        rare = table.sum(0) < 10
        table = torch.cat([table[:, ~rare], table[:, rare].sum(1, keepdim=True)], 1)
        table = table[:, table.sum(0) > 0]
        if table.shape[1] > 1:
            assert stats.chi2_contingency(table.numpy()).pvalue > 1e-6


# The couplings that are assumed


def moved(mechanism, x, parents, others, seed=5):
    return mechanism.generate(mechanism.abduct(x, parents, generator(seed)), others)


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_an_ordinal_never_falls_where_its_odds_only_rise(levels):
    mechanism = randomised(Ordinal(2, levels), generator(1)).requires_grad_(requires_grad=False)
    parents, others = torch.randn(2, 5000, 2, generator=generator(2))
    x = mechanism.generate(torch.randn(5000, generator=generator(3)), parents)
    after = moved(mechanism, x, parents, others)
    rises = mechanism.location(others)[:, 0] >= mechanism.location(parents)[:, 0]
    assert (after >= x)[rises].all()
    assert (after <= x)[~rises].all()
    assert (after > x).any()
    assert (after < x).any()


@pytest.mark.parametrize("dispersed", [False, True])
def test_a_count_never_falls_where_its_mean_rises(dispersed):
    mechanism = randomised(Count(2, dispersed=dispersed), generator(1))
    mechanism.requires_grad_(requires_grad=False)
    parents, others = torch.randn(2, 5000, 2, generator=generator(2))
    x = mechanism.generate(torch.randn(5000, generator=generator(3)), parents)
    after = moved(mechanism, x, parents, others)
    rises = mechanism.log_mean(others) >= mechanism.log_mean(parents)
    assert (after >= x)[rises].all()
    assert (after <= x)[~rises].all()
    assert (after > x).any()


@pytest.mark.parametrize("levels", [2, 3, 6])
def test_a_category_that_gains_on_all_others_wins_again(levels):
    mechanism = randomised(Categorical(2, levels), generator(1)).requires_grad_(
        requires_grad=False
    )
    parents, others = torch.randn(2, 20_000, 2, generator=generator(2))
    u = torch.randn(20_000, levels, generator=generator(3))
    x = mechanism.generate(u, parents)
    after = moved(mechanism, x, parents, others)
    gain = torch.log_softmax(mechanism.logits(others), -1)
    gain = gain - torch.log_softmax(mechanism.logits(parents), -1)
    own = gain.gather(1, x.long()[:, None])
    stable = (gain <= own).all(1)  # no other category gained more
    assert stable.sum() > 1000
    assert torch.equal(after[stable], x[stable])
    # A category that lost against the winner never takes its place.
    taken = gain.gather(1, after.long()[:, None])
    assert (taken >= own).all()
    assert (after != x).any()


def test_a_binary_counterfactual_has_the_probabilities_of_the_monotone_coupling():
    """P(y₁ = 1 | y₀ = 0) = (p₁ − p₀) / (1 − p₀), by hand."""
    mechanism = Ordinal(1).requires_grad_(requires_grad=False)
    mechanism.location.bias.fill_(-1.0)
    mechanism.location.weight.fill_(1.5)
    low, high, n = torch.zeros(20_000, 1), torch.ones(20_000, 1), 20_000
    p0, p1 = torch.sigmoid(torch.tensor([-1.0, 0.5])).tolist()
    share = moved(mechanism, torch.zeros(n), low, high).mean().item()
    expected = (p1 - p0) / (1.0 - p0)
    # Within 4.5 standard errors: 7e-6.
    assert abs(share - expected) < 4.5 * (expected * (1.0 - expected) / n) ** 0.5
    assert (moved(mechanism, torch.ones(n), low, high) == 1.0).all()
