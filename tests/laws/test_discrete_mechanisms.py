"""Laws of every discrete mechanism: its probabilities, its noise, and how it is built."""

import json
import math

import numpy as np
import pytest
import torch
from discrete_mechanisms import DISCRETE, PARENTS, parents_of, random_discrete
from scipy import special, stats

from misscnf.mechanisms import Categorical, Count, Ordinal

ROWS = 24
MANY = 3000
TAIL = 1e-12


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=PARENTS)
def domains(request):
    return PARENTS[request.param]


@pytest.fixture(params=DISCRETE)
def name(request):
    return request.param


@pytest.fixture
def mechanism(name, domains):
    return random_discrete(name, domains).requires_grad_(requires_grad=False)


@pytest.fixture
def parents(domains):
    return parents_of(domains, ROWS, generator(1))


def log_table(mechanism, parents, size=None):
    """log p of every value 0, 1, …, size − 1, (..., size); all of the support if None."""
    size = size or int(mechanism.support(parents, TAIL).max())
    values = torch.arange(size).to(parents)
    log_prob = mechanism.log_prob(values, parents[..., None, :])
    return log_prob.expand(*parents.shape[:-1], size)


def drawn(mechanism, parents, count, seed):
    """Values drawn by their probabilities alone, (rows, count)."""
    table = log_table(mechanism, parents).exp()
    return torch.multinomial(table, count, replacement=True, generator=generator(seed)).double()


def assert_follows(values, probabilities, rate=1e-5):
    """A chi-square test of one sample; values expected less than 5 times are counted together."""
    seen = torch.bincount(values.long(), minlength=len(probabilities)).double()
    assert len(seen) == len(probabilities), "a value outside the support"
    expected = probabilities * len(values)
    common = expected >= 5.0
    seen = torch.cat([seen[common], seen[~common].sum()[None]])
    expected = torch.cat([expected[common], expected[~common].sum()[None]])
    kept = expected > 0.5  # what is left over may be next to nothing
    seen, expected = seen[kept], expected[kept]
    if len(seen) > 1:
        expected = expected * seen.sum() / expected.sum()
        assert stats.chisquare(seen.numpy(), expected.numpy()).pvalue > rate


# Probabilities


def test_probabilities_sum_to_one(mechanism, parents):
    total = log_table(mechanism, parents).exp().sum(-1)
    assert (total <= 1.0 + 1e-12).all()
    assert (total >= 1.0 - 2e-12).all()


def test_the_support_holds_the_mass_and_no_more(mechanism, parents):
    support, table = mechanism.support(parents, TAIL), log_table(mechanism, parents).exp()
    assert support.shape == parents.shape[:-1]
    assert not support.dtype.is_floating_point
    if mechanism.domain.states is not None:
        assert (support == mechanism.domain.states).all()
        return
    place = torch.arange(table.shape[1])
    rounding = 2e-14
    within = torch.where(place < support[:, None], table, 0.0).sum(1)
    assert (1.0 - within <= TAIL + rounding).all()
    fewer = torch.where(place < support[:, None] - 1, table, 0.0).sum(1)
    assert (1.0 - fewer >= TAIL - rounding).all()


@pytest.mark.parametrize("name", ["count", "count, Poisson"])
@pytest.mark.parametrize("log_mean", [-50.0, -3.0, 0.0, 5.0, 8.0])
def test_log_probabilities_of_counts_are_those_of_scipy(name, log_mean):
    mechanism = random_discrete(name, ()).requires_grad_(requires_grad=False)
    mechanism.location.bias.fill_(log_mean)
    mean, k = math.exp(log_mean), torch.arange(0, 5000, 7).double()
    expected = stats.poisson.logpmf(k, mean)
    if mechanism.dispersion is not None:
        r = 1.0 / (mechanism.dispersion.exp().item() + 1e-6)
        # By the failures, since p rounds to one where the mean is tiny.
        expected = stats.nbinom.logpmf(k, r, r / (r + mean)) if log_mean > -9 else None
    if expected is not None:
        found = mechanism.log_prob(k, torch.zeros(len(k), 0))
        torch.testing.assert_close(found, torch.from_numpy(expected), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("dispersed", [False, True])
def test_counts_are_the_quantiles_of_their_tails(dispersed):
    """Of small and large means, near the middle and far out, by scipy's incomplete integrals."""
    count = Count(1, dispersed=dispersed).double().requires_grad_(requires_grad=False)
    log_mean = torch.linspace(-4.0, 6.0, 60, dtype=torch.float64)
    score = torch.linspace(-9.0, 9.0, 41, dtype=torch.float64)[:, None].expand(-1, 60)
    parents = log_mean[:, None]
    count.location.weight.fill_(1.0)
    count.location.bias.zero_()
    found = count.generate(score, parents).numpy()
    mean, size = log_mean.exp().numpy(), 1.0 / (1.0 + count.least_dispersion)
    law = stats.nbinom(size, size / (size + mean)) if dispersed else stats.poisson(mean)
    lower = score.numpy() <= 0.0
    upto, beyond = special.ndtr(score.numpy()), special.ndtr(-score.numpy())
    for step, reaches in ((0, True), (-1, False)):
        held = np.where(lower, law.cdf(found + step) >= upto, law.sf(found + step) <= beyond)
        sure = np.where(lower, abs(law.cdf(found + step) / upto - 1.0), 1.0) > 1e-9
        sure &= np.where(lower, 1.0, abs(law.sf(found + step) / beyond - 1.0)) > 1e-9
        assert (held == reaches)[sure].all()


def test_cut_points_are_those_of_the_cumulative_logits():
    mechanism = Ordinal(1, 4).requires_grad_(requires_grad=False)
    mechanism.location.bias.fill_(0.3)
    mechanism.location.weight.fill_(2.0)
    mechanism.spacing.bias.copy_(torch.tensor([0.5, 1.5]).log())
    table = log_table(mechanism, torch.tensor([[0.7]])).exp()[0]
    # logit P(x ≤ k) = −(0.3 + 1.4), then half and one and a half more.
    expected = torch.sigmoid(torch.tensor([-1.7, -1.2, 0.3]))
    torch.testing.assert_close(table.cumsum(0)[:3], expected)


VALUES_OF_NONE = [-1.0, 0.5, 1e-9, -math.inf, math.inf, math.nan]


def test_what_is_no_value_has_probability_zero(mechanism, parents):
    wrong = list(VALUES_OF_NONE)
    if mechanism.domain.states is not None:
        wrong += [mechanism.domain.states, 1e9]
    x = torch.tensor(wrong).expand(ROWS, -1)
    log_prob = mechanism.requires_grad_().log_prob(x, parents[:, None, :])
    assert (log_prob == -math.inf).all()
    legal = mechanism.log_prob(torch.zeros(ROWS), parents)
    (torch.where(log_prob.isfinite(), log_prob, 0.0).sum() + legal.sum()).backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in mechanism.parameters())


# Noise


def far(parents, domains):
    """The same parents with continuous ones thirty times as far out."""
    factor = torch.tensor([1.0 if domain.discrete else 30.0 for domain in domains])
    return parents * factor if len(domains) else parents


@pytest.mark.parametrize("reach", ["near", "far"])
def test_generate_inverts_abduct_exactly(mechanism, parents, domains, reach):
    parents = parents if reach == "near" else far(parents, domains)
    values = torch.arange(float(mechanism.domain.states or 25))
    if mechanism.domain.states is None:  # far beyond the support, and where the bulk is
        bulk = mechanism.generate(torch.linspace(-4.0, 4.0, 9), parents[:, None, :])
        values = torch.cat([2.0 * values.expand(ROWS, -1), bulk.expand(ROWS, -1)], 1)
    x = values.expand(ROWS, -1)[..., None].expand(-1, -1, 8)
    pa = parents[:, None, None, :]
    again = mechanism.generate(mechanism.abduct(x, pa, generator(3)), pa)
    # A value of less than 1e-300 has no noise in floating point, and the incomplete beta function
    # does not tell neighbours above a million apart.
    possible = (mechanism.log_prob(x, pa) > -690.0) & (x < 1e6)
    assert possible.double().mean() > 0.3
    assert torch.equal(again[possible], x[possible])
    assert (again >= 0).all()
    assert again.isfinite().all()


def test_abducted_noise_of_a_sample_is_standard_normal(mechanism, parents):
    few = parents[:4]
    x = drawn(mechanism, few, MANY, seed=4)
    noise = mechanism.abduct(x, few[:, None, :], generator(5))
    noise = noise.reshape(4, MANY, mechanism.noise_size)
    # KS tests of each number in each row, and of all rows together: 30 at most, at 1e-6 each.
    for k in range(mechanism.noise_size):
        assert stats.kstest(noise[..., k].flatten().numpy(), "norm").pvalue > 1e-6
        assert all(stats.kstest(row[:, k].numpy(), "norm").pvalue > 1e-6 for row in noise)
    # Independent of each other: products of u, and of u² − 1, within 5 errors: 6e-7 each.
    flat = noise.flatten(0, 1)
    for numbers in (flat, (flat**2 - 1.0) / math.sqrt(2.0)):
        between = (numbers.T @ numbers / len(flat)).fill_diagonal_(0.0)
        assert (between.abs() < 5.0 / math.sqrt(len(flat))).all()


@pytest.mark.parametrize("verb", ["generate", "draw"])
def test_noise_makes_the_law(mechanism, parents, verb):
    size = mechanism.noise_size if verb == "generate" else 1
    for row in parents[:3]:
        u = torch.randn(MANY, size, generator=generator(6))
        x = getattr(mechanism, verb)(u if size > 1 else u[:, 0], row)
        assert x.shape == (MANY,)
        # Three tests at 1e-5 for each mechanism, both verbs: one seed in 300 fails somewhere.
        assert_follows(x, log_table(mechanism, row[None])[0].exp())


@pytest.mark.parametrize("name", [n for n in DISCRETE if not n.startswith("categorical")])
@pytest.mark.parametrize("verb", ["generate", "draw"])
def test_values_never_fall_with_the_noise(mechanism, parents, verb):
    u = torch.cat([torch.tensor([-37.0, -20.0]), torch.linspace(-9.0, 9.0, 300)])
    u = torch.cat([u, torch.tensor([20.0, 37.0])])
    x = getattr(mechanism, verb)(u.expand(ROWS, -1), parents[:, None, :])
    assert x.isfinite().all()
    assert (x.diff(dim=1) >= 0).all()
    assert (x[:, 0] == 0).all()
    top = mechanism.domain.states
    assert (x[:, -1] == top - 1).all() if top else (x[:, -1] > x[:, -3]).all()


def test_abduct_says_that_it_needs_a_generator(mechanism, parents):
    with pytest.raises(ValueError, match="abduct needs a generator"):
        mechanism.abduct(torch.zeros(ROWS), parents)


# Gradients


def test_gradients_are_finite_and_reach_every_parameter(mechanism, parents):
    mechanism.requires_grad_()
    values = torch.arange(mechanism.domain.states or 12).double()
    pa = parents[:, None, :].clone().requires_grad_()
    # Values weigh differently: the scores of all levels would cancel where they are as likely.
    (mechanism.log_prob(values, pa) * (1.0 + values)).sum().backward()
    gradients = {n: p.grad for n, p in mechanism.named_parameters() if p.numel()}
    assert all(g is not None and g.isfinite().all() for g in gradients.values())
    assert all((g != 0).any() for g in gradients.values()), gradients
    assert pa.shape[-1] == 0 or pa.grad.isfinite().all()


@pytest.mark.parametrize("bias", [-50.0, 50.0])
def test_gradients_are_finite_at_extreme_logits(mechanism, parents, bias):
    mechanism.requires_grad_()
    first = mechanism.others if isinstance(mechanism, Categorical) else mechanism.location
    with torch.no_grad():
        first.bias.fill_(bias)
    values = torch.arange(mechanism.domain.states or 12).double()
    log_prob = mechanism.log_prob(values, parents[:, None, :])
    assert log_prob.isfinite().all()
    log_prob.sum().backward()
    assert all(p.grad.isfinite().all() for p in mechanism.parameters() if p.numel())
    # The unlikely values still pull their logits back. (A line of counts ends at 1.3e9.)
    if not (isinstance(mechanism, Count) and bias > 0):
        assert (first.bias.grad != 0).all()


@pytest.mark.parametrize("spacing", [-30.0, -60.0, -200.0])
def test_a_level_that_is_hardly_ever_seen_has_its_probability_and_its_gradient(spacing):
    mechanism = Ordinal(0, 3)
    with torch.no_grad():
        mechanism.location.bias.fill_(-1.0)
        mechanism.spacing.bias.fill_(spacing)
    log_prob = mechanism.log_prob(torch.tensor([1.0]), torch.zeros(1, 0))
    # σ′(1) times the spacing, to first order.
    expected = torch.tensor([math.log(torch.sigmoid(torch.tensor(1.0)).item())])
    expected += math.log(1.0 - torch.sigmoid(torch.tensor(1.0)).item()) + spacing
    torch.testing.assert_close(log_prob, expected, rtol=0.0, atol=1e-6)
    log_prob.backward()
    torch.testing.assert_close(mechanism.spacing.bias.grad, torch.ones(1))


# Shapes, precision and building


@pytest.mark.parametrize("verb", ["log_prob", "abduct", "draw"])
def test_parents_of_a_row_are_shared_by_its_draws(mechanism, parents, verb):
    x = torch.arange(5).expand(ROWS, 5) % (mechanism.domain.states or 5) * 1.0
    more = (generator(7),) if verb == "abduct" else ()
    shared = getattr(mechanism, verb)(x, parents[:, None, :], *more)
    more = (generator(7),) if verb == "abduct" else ()
    each = getattr(mechanism, verb)(x, parents[:, None, :].expand(-1, 5, -1), *more)
    torch.testing.assert_close(shared.expand_as(each), each, rtol=1e-13, atol=1e-13)


def test_noise_of_a_row_is_carried_along_with_its_shared_parents(mechanism, parents):
    size = mechanism.noise_size
    u = torch.randn(ROWS, 5, size, generator=generator(8))
    u = u if size > 1 else u[..., 0]
    shared = mechanism.generate(u, parents[:, None, :])
    assert shared.shape == (ROWS, 5)
    assert torch.equal(shared, mechanism.generate(u, parents[:, None, :].expand(-1, 5, -1)))


def test_evidence_of_a_row_is_shared_by_its_drawn_parents(mechanism, domains):
    drawn_parents = parents_of(domains, ROWS * 5, generator(9)).reshape(ROWS, 5, -1)
    own = torch.arange(ROWS)[:, None] % (mechanism.domain.states or 9) * 1.0
    each = mechanism.log_prob(own.expand(-1, 5), drawn_parents)
    shared = mechanism.log_prob(own, drawn_parents).expand(-1, 5)
    torch.testing.assert_close(shared, each, rtol=1e-13, atol=1e-13)


def test_single_precision_serves(mechanism, parents):
    values = torch.arange(mechanism.domain.states or 12).double().expand(ROWS, -1)
    exact, pa = mechanism.log_prob(values, parents[:, None, :]), parents[:, None, :].float()
    single = mechanism.float()
    found = single.log_prob(values.float(), pa)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=1e-4, atol=1e-4)
    noise = single.abduct(values.float(), pa, generator(10))
    assert noise.dtype == torch.float32
    again = single.generate(noise, pa)
    assert again.dtype == torch.float32
    assert (again == values).double().mean() > 0.995
    assert single.draw(torch.zeros(ROWS, 1, dtype=torch.float32), pa).dtype == torch.float32


def test_a_spec_survives_json_and_rebuilds_the_mechanism(mechanism, parents):
    again = type(mechanism)(**json.loads(json.dumps(mechanism.spec())))
    again.load_state_dict(mechanism.state_dict())
    assert again.spec() == mechanism.spec()
    assert again.domain == mechanism.domain
    x = torch.arange(ROWS) % (mechanism.domain.states or 9) * 1.0
    for verb in ("log_prob", "abduct"):
        more = (generator(7),) if verb == "abduct" else ()
        first = getattr(mechanism, verb)(x, parents, *more)
        more = (generator(7),) if verb == "abduct" else ()
        assert torch.equal(getattr(again, verb)(x, parents, *more), first)
    assert torch.equal(again.support(parents, TAIL), mechanism.support(parents, TAIL))


def test_the_same_seed_gives_the_same_start(name, domains):
    def start(seed):
        mechanism = DISCRETE[name](domains)
        mechanism.initialise(generator(seed))
        return mechanism.state_dict()

    first, again, other = start(5), start(5), start(6)
    assert all(torch.equal(first[key], again[key]) for key in first)
    networks = [key for key in first if "weights." in key]
    assert not any(torch.equal(first[key], other[key]) for key in networks)
    assert bool(networks) == ("network" in name and bool(domains))


def test_a_network_starts_as_the_line_it_is_given(name, domains, parents):
    if "network" not in name:
        return
    line_name = name.replace(", network of spacings", "").replace(", network", "")
    line, network = random_discrete(line_name, domains), DISCRETE[name](domains)
    network.initialise(generator(5))
    network.start_from(line)
    x = torch.arange(ROWS) % (network.domain.states or 9) * 1.0
    if network.spec().get("spacing_hidden") is not None:
        return  # its spacings are bounded, those of the line are not
    torch.testing.assert_close(network.log_prob(x, parents), line.log_prob(x, parents))


@pytest.mark.parametrize("make", [lambda: Ordinal(0, 1), lambda: Categorical(0, 1)])
def test_a_single_level_is_refused(make):
    with pytest.raises(ValueError, match="at least two; got 1"):
        make()
