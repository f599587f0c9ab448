"""The mean of a spline mechanism: it is m, and it is learned by least squares."""

import pytest
import torch

from misscnf.mechanisms import Gaussian, Spline
from misscnf.mechanisms.spline import MonotonicRQSTransform


@pytest.fixture
def pair():
    """A bent spline, and the Gaussian with the same mean and scale."""
    g = torch.Generator().manual_seed(0)
    spline = Spline(1, (8,), (8,)).double()
    with torch.no_grad():
        for parameter in spline.parameters():
            parameter.copy_(0.7 * torch.randn(parameter.shape, generator=g, dtype=torch.float64))
    gaussian = Gaussian(1, (8,), (8,)).double()
    gaussian.load_state_dict(spline.base.state_dict())
    return spline, gaussian


@pytest.fixture
def rows():
    g = torch.Generator().manual_seed(1)
    x, parents = torch.randn(2, 50, generator=g, dtype=torch.float64)
    return x, parents[:, None]


def test_m_is_the_mean_given_the_parents(pair):
    """Over 20,000 even quantiles of the noise; the shift comes from 32 points of Gauss'."""
    spline, _ = pair
    u = torch.special.ndtri((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000)
    for value in (-1.0, 0.0, 2.0):
        parents = torch.full((len(u), 1), value, dtype=torch.float64)
        location, log_scale = spline.base.location_and_log_scale(parents[:1])
        apart = (spline.generate(u, parents).mean() - location) / log_scale.exp()
        assert abs(apart.item()) < 5e-3


def test_the_mean_sees_the_slope_of_least_squares(pair, rows):
    spline, gaussian = pair
    x, parents = rows
    weight = torch.linspace(0.5, 2.0, len(x), dtype=torch.float64)
    (weight * spline.log_prob(x, parents)).sum().backward()
    location, log_scale = gaussian.location_and_log_scale(parents)
    variance = log_scale.detach().mul(2.0).exp().mean()
    (-0.5 * weight * (x - location).square() / variance).sum().backward()
    for name, parameter in gaussian.mean.named_parameters():
        torch.testing.assert_close(spline.base.mean.get_parameter(name).grad, parameter.grad)


def test_noise_and_scale_see_the_slope_of_the_likelihood(pair, rows):
    spline, _ = pair
    x, parents = rows
    spline.log_prob(x, parents).sum().backward()
    for name, parameter in spline.named_parameters():
        if name.startswith("base.mean"):
            continue
        flat, slope = parameter.detach().reshape(-1), parameter.grad.reshape(-1)
        for at in range(0, len(flat), 7):
            ends = []
            for step in (1e-6, -1e-6):
                with torch.no_grad():
                    parameter.reshape(-1)[at] += step
                    ends.append(float(spline.log_prob(x, parents).sum()))
                    parameter.reshape(-1)[at] -= step
            assert float(slope[at]) == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-4)


def test_draws_see_the_slope_of_the_density(pair, rows):
    spline, _ = pair
    x, parents = (side.clone().requires_grad_() for side in rows)
    spline.log_prob(x, parents).sum().backward()
    moved = [spline.log_prob(rows[0] + step, rows[1]).sum().item() for step in (1e-6, -1e-6)]
    assert float(x.grad.sum()) == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-5)


def test_knots_that_are_looked_up_are_those_that_are_broadcast():
    law = Spline(1).double()
    g = torch.Generator().manual_seed(2)
    with torch.no_grad():
        law.shape.bias.copy_(torch.randn(law.shape.bias.shape, generator=g, dtype=torch.float64))
    ours, _ = law.requires_grad_(requires_grad=False)._spline(
        torch.zeros(1, 1, dtype=torch.float64)
    )
    parts = law.shape.bias.split([law.bins, law.bins, law.bins - 1])
    zukos = MonotonicRQSTransform(*parts, bound=law.bound)
    x = 3.0 * torch.randn(20, 50, generator=g, dtype=torch.float64)
    assert torch.equal(ours(x), zukos(x))
    assert torch.equal(ours.inv(x), zukos.inv(x))
    assert torch.equal(ours.call_and_ladj(x)[1], zukos.call_and_ladj(x)[1])
