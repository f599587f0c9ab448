"""The density that quadrature interpolates between its knots, and places new points along."""

import torch

from misscnf.inference.integrals import QuadratureRules
from misscnf.inference.integrals.quadrature import Knots

RULES = QuadratureRules()


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def interpolants():
    """Three at once: a smooth peak, a sharp one that the knots miss, and a flat line."""
    knots = 10.0 * torch.rand(3, 40, generator=generator(2)) - 5.0
    smooth = -0.5 * (knots[0] - 1.0) ** 2
    sharp = -0.5 * ((knots[1] + 2.0) / 0.01) ** 2
    return knots, torch.stack([smooth, sharp, torch.zeros(40)])


def test_points_follow_the_density_that_is_said_of_them():
    knots, log_target = interpolants()
    fractions = torch.rand(3, 5000, generator=generator(3)).sort(dim=1).values.requires_grad_()
    points, log_q = Knots.at(knots, log_target, RULES).interpolant().sample(fractions)
    # Fractions are the mass below a point: they rise with it, at the rate of the density. From the
    # first knot to the last (below), they rise from 0 to 1: the density integrates to one.
    assert (points.diff(dim=1) > 0.0).all()
    (slope,) = torch.autograd.grad(points.sum(), fractions)
    torch.testing.assert_close(log_q, -slope.log(), rtol=0.0, atol=1e-8)


def test_the_density_goes_through_the_integrand_where_knots_resolve_it():
    knots = torch.linspace(-5.0, 5.0, 41)[None, torch.randperm(41, generator=generator())]
    log_target = 3.0 - 0.5 * knots**2
    fractions = torch.linspace(0.001, 0.999, 999)[None]
    points, log_q = Knots.at(knots, log_target, RULES).interpolant().sample(fractions)
    # A parabola is at most h²/8 above its chords, h = 1/4; and the mass differs by as little.
    expected = -0.5 * points**2 - 0.5 * torch.log(torch.tensor(2.0 * torch.pi))
    torch.testing.assert_close(log_q, expected, rtol=0.0, atol=2 * 0.25**2 / 8)


def test_the_density_falls_no_more_steeply_than_it_may():
    knots = torch.tensor([[-1.0, 0.0, 1.0]])
    points, log_q = (
        Knots.at(knots, torch.tensor([[-500.0, 0.0, -20.0]]), RULES)
        .interpolant()
        .sample(torch.linspace(0.0, 0.999999, 10_001)[None])
    )
    fall = log_q.max() - log_q.min()
    assert RULES.steepest - 0.01 < fall < RULES.steepest + 1e-9
    assert points[0, 0] == -1.0
    # Both sides look the same: the peak may be on either.
    assert abs((points < 0.0).double().mean() - 0.5) < 1e-3


def test_fractions_at_the_ends_stay_on_the_knots():
    knots, log_target = interpolants()
    ends = torch.tensor([0.0, 1.0 - 2.0**-53]).expand(3, 2)
    points, log_q = Knots.at(knots, log_target, RULES).interpolant().sample(ends)
    assert log_q.isfinite().all()
    torch.testing.assert_close(points[:, 0], knots.amin(1))
    # The outermost piece may hold e⁻³⁰ of the peak's mass, which 2⁻⁵³ cuts by a thousandth or so.
    torch.testing.assert_close(points[:, 1], knots.amax(1), rtol=0.0, atol=1e-2)
    assert (points[:, 1] <= knots.amax(1)).all()


def test_knots_that_coincide_do_no_harm():
    knots = torch.tensor([[0.0, 1.0, 1.0, 1.0, 2.0]])
    fractions = torch.linspace(0.0, 0.999, 1000)[None]
    points, log_q = Knots.at(knots, torch.zeros(1, 5), RULES).interpolant().sample(fractions)
    torch.testing.assert_close(points, 2.0 * fractions, rtol=0.0, atol=1e-3)
    assert log_q.isfinite().all()
