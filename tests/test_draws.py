"""Where points go: generators and quasi-random points."""

import itertools

import pytest
import torch
from scipy import stats

from misscnf.draws import derive_generator, normal_scores, shifted_points


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
