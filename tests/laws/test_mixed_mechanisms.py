"""Laws of every mechanism with point masses: its measure, its noise, and how it is built."""

import json
import math

import pytest
import torch
from discrete_mechanisms import PARENTS, parents_of
from mechanisms import randomised
from mixed_mechanisms import CENSORED, CLIPPED, POINT_MASSES, ZEROS
from scipy import stats

from misscnf.mechanisms import Semicontinuous

ROWS = 12


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=PARENTS)
def domains(request):
    return PARENTS[request.param]


@pytest.fixture(params=POINT_MASSES)
def name(request):
    return request.param


@pytest.fixture
def mechanism(name, domains):
    found = randomised(POINT_MASSES[name](domains), generator(2), size=0.5)
    return found.requires_grad_(requires_grad=False)


@pytest.fixture
def parents(domains):
    return parents_of(domains, ROWS, generator(1))


def scores(count=400, reach=5.0):
    return torch.linspace(-reach, reach, count, dtype=torch.float64)


def values(mechanism, parents, count=400):
    return mechanism.generate(scores(count).expand(len(parents), -1), parents[:, None, :])


def test_the_masses_and_the_density_sum_to_one(mechanism, parents):
    """The trapezoid rule, on points as dense as the law is, over the rest between its ends."""
    domain = mechanism.domain
    atoms = torch.tensor(domain.atoms).expand(ROWS, -1)
    mass = mechanism.log_prob(atoms, parents[:, None, :]).exp().sum(1)
    rest = mechanism.mixture(parents[:, None, :]).rest
    x = rest(torch.linspace(-9.0, 9.0, 20_001).expand(ROWS, -1))
    assert not domain.at_atom(x).any()
    density = mechanism.log_prob(x, parents[:, None, :]).exp()
    total = mass + torch.trapezoid(density, x, dim=1)
    torch.testing.assert_close(total, torch.ones(ROWS), rtol=0.0, atol=2e-5)


def test_values_stay_within_the_support(mechanism, parents):
    x, domain = values(mechanism, parents), mechanism.domain
    low, high = domain.ends
    assert (domain.at_atom(x).any(-1) | ((x > low) & (x < high))).all()
    assert domain.at_atom(x).any()
    far = mechanism.generate(torch.tensor([[-1e3, -30.0, 30.0, 1e3]]), parents[:, None, :])
    assert ((far >= low) & (far <= high)).all()


def test_the_map_is_monotone(mechanism, parents):
    assert (values(mechanism, parents).diff(dim=1) >= 0).all()


def test_the_noise_of_a_value_makes_it_again(mechanism, parents):
    x = values(mechanism, parents)
    u = mechanism.abduct(x, parents[:, None, :], generator(3))
    again = mechanism.generate(u, parents[:, None, :])
    at = mechanism.domain.at_atom(x).any(-1)
    assert torch.equal(again[at], x[at])
    torch.testing.assert_close(again[~at], x[~at], rtol=1e-8, atol=1e-9)
    rest = scores().expand_as(u)[~at]
    torch.testing.assert_close(u[~at], rest, rtol=1e-6, atol=1e-6)


def test_noise_and_value_have_the_law_together(mechanism, parents):
    """Noise drawn among those that make a value is standard normal again (rate 1e-4 a case)."""
    u = torch.randn(ROWS, 2000, generator=generator(4))
    x = mechanism.generate(u, parents[:, None, :])
    drawn = mechanism.abduct(x, parents[:, None, :], generator(5))
    for row in drawn[:3]:
        assert stats.kstest(row.numpy(), "norm").pvalue > 1e-4 / 24


def test_the_distribution_function_is_that_of_the_density(mechanism, parents):
    """P(x ≤ c) by the noise map against masses and the trapezoid rule below c."""
    pa = parents[:1]
    u = torch.linspace(-8.0, 8.0, 160_001)
    x = mechanism.generate(u, pa)
    cut = float(x[90_000])
    below = float(torch.trapezoid((x <= cut).double() * stats_pdf(u), u))
    atoms = [a for a in mechanism.domain.atoms if a <= cut]
    mass = mechanism.log_prob(torch.tensor(atoms), pa).exp().sum() if atoms else 0.0
    points = mechanism.mixture(pa[:, None, :]).rest(torch.linspace(-9, 9, 200_001)[None])[0]
    points = torch.cat([points[points < cut], torch.tensor([cut])])
    if mechanism.domain.at_atom(points[-1]).any():
        points = points[:-1]
    density = mechanism.log_prob(points, pa).exp()
    expected = float(mass + torch.trapezoid(density, points))
    assert below == pytest.approx(expected, abs=5e-4)


def stats_pdf(u):
    return torch.exp(-0.5 * u * u) / math.sqrt(2.0 * math.pi)


def test_what_is_outside_has_probability_zero(mechanism, parents):
    low, high = mechanism.domain.ends
    outside = [x for x in (low - 1.0, high + 1.0) if math.isfinite(x)]
    x = torch.tensor([*outside, math.nan]).expand(ROWS, -1)
    assert (mechanism.log_prob(x, parents[:, None, :]) == -math.inf).all()


def test_gradients_are_finite_and_reach_every_parameter(mechanism, parents):
    mechanism.requires_grad_()
    x, pa = values(mechanism, parents, 40).detach(), parents[:, None, :].clone().requires_grad_()
    mechanism.log_prob(x, pa).sum().backward()
    gradients = [parameter.grad for parameter in mechanism.parameters()]
    assert all(g is not None and g.isfinite().all() and (g != 0).any() for g in gradients)
    assert pa.shape[-1] == 0 or pa.grad.isfinite().all()


def test_a_spec_survives_json_and_rebuilds_the_mechanism(mechanism, parents):
    again = type(mechanism)(**json.loads(json.dumps(mechanism.spec())))
    again.load_state_dict(mechanism.state_dict())
    assert again.spec() == mechanism.spec()
    assert again.domain == mechanism.domain
    x = values(mechanism, parents, 20)
    assert torch.equal(values(again, parents, 20), x)
    pa = parents[:, None, :]
    assert torch.equal(again.log_prob(x, pa), mechanism.log_prob(x, pa))


@pytest.mark.parametrize("verb", ["log_prob", "generate", "abduct"])
def test_parents_of_a_row_are_shared_by_its_draws(mechanism, parents, verb):
    x = values(mechanism, parents, 7)
    found = []
    for pa in (parents[:, None, :], parents[:, None, :].expand(-1, 7, -1)):
        more = (generator(7),) if verb == "abduct" else ()
        found.append(getattr(mechanism, verb)(x, pa, *more).expand_as(x))
    torch.testing.assert_close(found[0], found[1], rtol=1e-12, atol=1e-12)


def test_single_precision_serves(mechanism, parents):
    x, pa = values(mechanism, parents, 30), parents[:, None, :]
    exact = mechanism.log_prob(x, pa)
    single = mechanism.float()
    found = single.log_prob(x.float(), pa.float())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=2e-3)
    assert single.generate(torch.zeros(ROWS, 1).float(), pa.float()).dtype == torch.float32


def test_a_clipped_normal_law_is_one_of_these():
    """x = min(max(0.4 + 0.35 u, 0), 1): masses by Φ, the rest a normal law that is cut off."""
    law = Semicontinuous(0, CLIPPED).requires_grad_(requires_grad=False)
    clipped = stats.norm(0.4, 0.35)
    masses = torch.tensor([clipped.cdf(0.0), clipped.sf(1.0)])
    law.logits.bias.copy_(torch.log(masses / (1.0 - masses.sum())))
    law.mean.bias.fill_((0.4 - 0.5) / 0.25)
    wide = math.log(0.35 / 0.25)  # before the bound on the scale
    law.log_scale.bias.fill_(math.log(8.0) - math.log(math.expm1(math.log(8.0) - wide)))
    x, none = torch.tensor([0.1, 0.5, 0.95]), torch.zeros(1, 0)
    torch.testing.assert_close(law.log_prob(x, none), torch.tensor(clipped.logpdf(x)))
    u = torch.linspace(-3.0, 3.0, 41)
    expected = (0.4 + 0.35 * u).clamp(0.0, 1.0)
    torch.testing.assert_close(law.generate(u, none), expected, rtol=1e-9, atol=1e-9)


def test_the_rest_above_zero_is_log_normal():
    law = Semicontinuous(0, ZEROS).requires_grad_(requires_grad=False)
    law.logits.bias.fill_(math.log(3.0))  # three quarters are zeros
    law.mean.bias.fill_(0.5)
    law.log_scale.bias.fill_(math.log(0.5))
    # log x = 0.5 + 0.8 (0.5 + 0.5 u) = 0.9 + 0.4 u
    x, none = torch.tensor([0.5, 2.0, 9.0]), torch.zeros(1, 0)
    expected = math.log(0.25) + stats.lognorm(0.4, scale=math.exp(0.9)).logpdf(x)
    torch.testing.assert_close(law.log_prob(x, none), torch.tensor(expected))
    assert float(law.log_prob(torch.tensor(0.0), none)) == pytest.approx(math.log(0.75))


def test_a_rest_that_is_cut_off_is_that_of_scipy():
    law = Semicontinuous(0, CENSORED).requires_grad_(requires_grad=False)
    law.mean.bias.fill_(-1.0)
    x = torch.linspace(0.01, 3.0, 9)
    scale = 0.8 * 8.0 / (1.0 + 8.0)  # log 8 − softplus(log 8) = log(8 / 9)
    mean = 1.2 - 0.8
    cut = stats.truncnorm((0.0 - mean) / scale, math.inf, loc=mean, scale=scale)
    expected = torch.tensor(cut.logpdf(x)) + math.log(0.5)
    torch.testing.assert_close(law.log_prob(x, torch.zeros(1, 0)), expected)
