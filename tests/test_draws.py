"""Where points go: generators, quasi-random points, and the interpolated density."""

import itertools

import pytest
import torch
from scipy import stats

from misscnf.draws import derive_generator, normal_scores, shifted_points
from misscnf.inference.integrals.knots import STEEPEST, Knots


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_generator_depends_on_each_part_of_its_purpose():
    purposes = [
        (0,),
        (1,),
        (0, "train"),
        (0, "test"),
        (0, "train", 1),
        (0, "train", "1"),
        (0, "train", 1, 2),
        (0, "train", 2, 1),
        (0, "train", 12),
        (0, "train1"),
        (0, ("train", 1)),
    ]
    first = [torch.rand(4, generator=derive_generator(*purpose)) for purpose in purposes]
    again = [torch.rand(4, generator=derive_generator(*purpose)) for purpose in purposes]
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in itertools.combinations(first, 2))


def test_a_generator_gives_the_same_numbers_in_every_version():
    # A resumed run must draw what the interrupted one would have drawn: pinned for good.
    assert derive_generator(0, "train", 1).initial_seed() == 219968077643412045


def test_one_number_is_spaced_equally():
    points = shifted_points(16, torch.rand(5, 3, 1, generator=generator()))
    assert points.shape == (5, 3, 16, 1)
    ordered = points[..., 0].sort(dim=-1).values
    torch.testing.assert_close(ordered.diff(dim=-1), torch.full((5, 3, 15), 1 / 16))


@pytest.mark.parametrize("dims", [2, 5])
def test_every_coordinate_of_many_numbers_is_stratified(dims):
    shifts = torch.rand(3, dims, generator=generator())
    points = shifted_points(64, shifts)
    back = (points - shifts[:, None, :]).remainder(1.0)
    cells = (64 * back + 0.5).floor().long().remainder(64)
    expected = torch.arange(64)[:, None].expand(64, dims)
    assert all(torch.equal(one.sort(dim=0).values, expected) for one in cells)


def test_every_shifted_point_is_uniform_and_shifts_are_apart():
    points = shifted_points(8, torch.rand(4000, 3, generator=generator(1)))
    assert (points >= 0.0).all()
    assert (points < 1.0).all()
    # 24 Kolmogorov-Smirnov tests at 1e-5 each: fails by chance once in 4,000 seeds.
    for k, j in itertools.product(range(8), range(3)):
        assert stats.kstest(points[:, k, j].numpy(), "uniform").pvalue > 1e-5
    # Two coordinates of one point have independent shifts: |z| > 4.5 once in 140,000.
    correlation = torch.corrcoef(points[:, 3].T)[0, 1]
    assert abs(correlation) < 4.5 / 4000**0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_normal_scores_invert_the_normal_law_and_stay_finite(dtype):
    inside = torch.linspace(0.001, 0.999, 999, dtype=dtype)
    torch.testing.assert_close(torch.special.ndtr(normal_scores(inside)), inside)
    ends = normal_scores(torch.tensor([0.0, 1.0 - torch.finfo(dtype).eps / 2, 1.0], dtype=dtype))
    assert ends.isfinite().all()
    assert ends[0] < -5.0
    assert ends[2] > 5.0


def interpolants():
    """Three at once: a smooth radial basis function, a sharp one that the knots miss, and a flat
    line."""
    knots = 10.0 * torch.rand(3, 40, generator=generator(2)) - 5.0
    smooth = -0.5 * (knots[0] - 1.0) ** 2
    sharp = -0.5 * ((knots[1] + 2.0) / 0.01) ** 2
    return knots, torch.stack([smooth, sharp, torch.zeros(40)])


def test_points_follow_the_density_that_is_said_of_them():
    knots, log_target = interpolants()
    fractions = torch.rand(3, 5000, generator=generator(3)).sort(dim=1).values.requires_grad_()
    points, log_q = Knots.at(knots, log_target).interpolant().sample(fractions)
    # Fractions are the mass below a point: they rise with it, at the rate of the density. From the
    # first knot to the last (below), they rise from 0 to 1: the density integrates to one.
    assert (points.diff(dim=1) > 0.0).all()
    (slope,) = torch.autograd.grad(points.sum(), fractions)
    torch.testing.assert_close(log_q, -slope.log(), rtol=0.0, atol=1e-8)


def test_the_density_goes_through_the_integrand_where_knots_resolve_it():
    knots = torch.linspace(-5.0, 5.0, 41)[None, torch.randperm(41, generator=generator())]
    log_target = 3.0 - 0.5 * knots**2
    fractions = torch.linspace(0.001, 0.999, 999)[None]
    points, log_q = Knots.at(knots, log_target).interpolant().sample(fractions)
    # A parabola is at most h²/8 above its chords, h = 1/4; and the mass differs by as little.
    expected = -0.5 * points**2 - 0.5 * torch.log(torch.tensor(2.0 * torch.pi))
    torch.testing.assert_close(log_q, expected, rtol=0.0, atol=2 * 0.25**2 / 8)


def test_the_density_falls_no_more_steeply_than_it_may():
    knots = torch.tensor([[-1.0, 0.0, 1.0]])
    points, log_q = (
        Knots.at(knots, torch.tensor([[-500.0, 0.0, -20.0]]))
        .interpolant()
        .sample(torch.linspace(0.0, 0.999999, 10_001)[None])
    )
    fall = log_q.max() - log_q.min()
    assert STEEPEST - 0.01 < fall < STEEPEST + 1e-9
    assert points[0, 0] == -1.0
    # Both sides look the same: the peak may be on either.
    assert abs((points < 0.0).double().mean() - 0.5) < 1e-3


def test_fractions_at_the_ends_stay_on_the_knots():
    knots, log_target = interpolants()
    ends = torch.tensor([0.0, 1.0 - 2.0**-53]).expand(3, 2)
    points, log_q = Knots.at(knots, log_target).interpolant().sample(ends)
    assert log_q.isfinite().all()
    torch.testing.assert_close(points[:, 0], knots.amin(1))
    # The outermost piece may hold e⁻³⁰ of the peak's mass, which 2⁻⁵³ cuts by a thousandth or so.
    torch.testing.assert_close(points[:, 1], knots.amax(1), rtol=0.0, atol=1e-2)
    assert (points[:, 1] <= knots.amax(1)).all()


def test_knots_that_coincide_do_no_harm():
    knots = torch.tensor([[0.0, 1.0, 1.0, 1.0, 2.0]])
    fractions = torch.linspace(0.0, 0.999, 1000)[None]
    points, log_q = Knots.at(knots, torch.zeros(1, 5)).interpolant().sample(fractions)
    torch.testing.assert_close(points, 2.0 * fractions, rtol=0.0, atol=1e-3)
    assert log_q.isfinite().all()
