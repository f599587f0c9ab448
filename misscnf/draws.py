r"""Where points go: independent, quasi-random, and along an interpolated density.

An integral over the noise of hidden nodes is an average over points. Independent points are the
paper's; quasi-random ones fill space evenly (Sobol points, each component with random shifts of
its own, so that errors are unbiased and independent); and where one number is hidden, points are
placed where the integrand is, along a piecewise linear density through all values seen so far.

Randomness comes only from generators derived from (seed, purpose, …), never from torch's global
state, so that a resumed run draws what an uninterrupted one would have drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

__all__ = [
    "derive_generator",
    "uniform_numbers",
    "normal_numbers",
    "shifted_points",
    "normal_scores",
    "Interpolant",
    "unresolved",
]


def derive_generator(
    seed: int, *purpose: Hashable, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Returns a generator that depends on the seed and the purpose alone."""
    digest = hashlib.blake2b(repr((seed, *purpose)).encode(), digest_size=8).digest()
    generator = torch.Generator(device=device)
    return generator.manual_seed(int.from_bytes(digest, "little") >> 1)


def uniform_numbers(shape: Sequence[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """Returns independent U(0, 1) numbers on the device and in the precision of a tensor."""
    return torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype)


def normal_numbers(shape: Sequence[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """Returns independent N(0, 1) numbers on the device and in the precision of a tensor."""
    return torch.randn(shape, generator=generator, device=like.device, dtype=like.dtype)


@lru_cache(maxsize=64)
def _sobol(count: int, dims: int) -> Tensor:
    if dims == 1:  # in one dimension, equal spacing is best
        return (torch.arange(count, dtype=torch.float64)[:, None] + 0.5) / count
    return torch.quasirandom.SobolEngine(dims, scramble=False).draw(count, dtype=torch.float64)


def shifted_points(count: int, shifts: Tensor) -> Tensor:
    """Returns a quasi-random set under random shifts.

    Arguments:
        count: Points in the set, k.
        shifts: (..., m), uniform on [0, 1): one shift for each number that is drawn.

    Returns:
        (..., k, m) in [0, 1): each point uniform, all k of them evenly spread.
    """
    base = _sobol(count, shifts.shape[-1]).to(shifts)
    points = base + shifts[..., None, :]
    return points - points.floor()


def normal_scores(uniform: Tensor) -> Tensor:
    """Turns uniform numbers into standard normal ones, kept finite at the ends."""
    tiny = torch.finfo(uniform.dtype).eps / 4
    return torch.special.ndtri(uniform.clamp(tiny, 1.0 - 2 * tiny))


STEEPEST = 3.0
"""An interpolant falls by at most so many nats between knots, so that it covers all of it."""


@dataclass(frozen=True)
class Interpolant:
    """A density that is exponential between knots, through the values of an integrand there.

    Where knots resolve the integrand, its logarithm is nearly straight between them, in the
    tails as in the bulk, and the weights f/q are nearly constant. Where they do not, the density
    falls from the higher knot no more steeply than `STEEPEST`, and so looks for the peak. Two
    sharp peaks may differ by hundreds of nats at their nearest knots and yet be equally high:
    while a peak is unresolved, knots are lifted to where its parabola peaks, and all heights
    flattened.
    """

    knots: Tensor
    """(C, n) increasing"""
    top: Tensor
    """(C, n − 1) log-height at the higher end of each piece"""
    fall: Tensor
    """(C, n − 1) how much the log-height falls towards the other end, at least a little"""
    rising: Tensor
    """(C, n − 1) whether the higher end is the right one"""

    @staticmethod
    def through(points: Tensor, log_target: Tensor) -> Interpolant:
        """Interpolates exp(log_target) at unordered points (C, n)."""
        knots, order = points.sort(dim=1)
        log_height = _flattened(knots, log_target.gather(1, order))
        # Nowhere lower than e^-30 of the peak: a density that is never zero.
        log_height = (log_height - log_height.amax(1, keepdim=True)).clamp(min=-30.0)
        step = log_height.diff(dim=1)
        top = torch.maximum(log_height[:, :-1], log_height[:, 1:])
        return Interpolant(knots, top, step.abs().clamp(1e-4, STEEPEST), step > 0)

    def sample(self, fractions: Tensor) -> tuple[Tensor, Tensor]:
        """Returns points and their log-densities at given fractions of the mass.

        Arguments:
            fractions: (C, K) in [0, 1).

        Returns:
            Points (C, K) and log q at them (C, K).
        """
        width = self.knots.diff(dim=1)
        upto = (width * torch.exp(self.top) * -torch.expm1(-self.fall) / self.fall).cumsum(1)
        total = upto[:, -1:]
        target = fractions * total
        piece = torch.searchsorted(upto, target, right=True).clamp(max=width.shape[1] - 1)
        below = torch.where(piece > 0, upto.gather(1, (piece - 1).clamp(min=0)), 0.0)
        share = ((target - below) / (upto.gather(1, piece) - below)).clamp(0.0, 1.0)
        fall, rising = self.fall.gather(1, piece), self.rising.gather(1, piece)
        # The share of a piece's mass, counted from its higher end, gives the way s from there.
        share = torch.where(rising, 1.0 - share, share)
        s = -torch.log1p(share * torch.expm1(-fall)) / fall
        place = torch.where(rising, 1.0 - s, s)
        points = self.knots.gather(1, piece) + place * width.gather(1, piece)
        return points, self.top.gather(1, piece) - fall * s - torch.log(total)


def unresolved(points: Tensor, log_target: Tensor, depth: float) -> Tensor:
    """Says where some peak that may come within `depth` of the top is not resolved, (C,).

    Arguments:
        points: (C, n) unordered.
        log_target: (C, n) log of the integrand at them.
        depth: Nats below the highest value.
    """
    knots, order = points.sort(dim=1)
    log_height = log_target.gather(1, order)
    peak, rise, fall = _peaks(knots, log_height)
    # How high a peak is between its knots is known only to about what it falls beside them.
    reach = log_height[:, 1:-1] + torch.maximum(rise, fall)
    high = reach > log_height.amax(1, keepdim=True) - depth
    return (peak & high & (fall > STEEPEST)).any(1)


def _peaks(knots: Tensor, log_height: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Looks at the inner knots, (C, n − 2) each.

    Returns:
        Whether a knot is a local maximum, how far the parabola through it and its neighbours
        rises above it, and how much the lesser of both sides falls.
    """
    step, width = log_height.diff(dim=1), knots.diff(dim=1).clamp(min=1e-12)
    left, right = step[:, :-1], -step[:, 1:]
    a, b = width[:, :-1], width[:, 1:]
    peak = (left >= 0) & (right >= 0) & (left + right > 0)
    curvature = (left / a + right / b) / (a + b)
    slope = (left / a * b - right / b * a) / (a + b)
    rise = slope**2 / (4.0 * curvature.clamp(min=torch.finfo(knots.dtype).tiny))
    return peak, torch.where(peak, rise, 0.0), torch.minimum(left, right)


def _flattened(knots: Tensor, log_height: Tensor) -> Tensor:
    """Lifts peaks to their parabolas; then flattens until the sharpest falls by 2 `STEEPEST`."""
    peak, rise, fall = _peaks(knots, log_height)
    sharpest = torch.where(peak, fall, 0.0).amax(1, keepdim=True)
    lifted = torch.cat([log_height[:, :1], log_height[:, 1:-1] + rise, log_height[:, -1:]], dim=1)
    return lifted * (2.0 * STEEPEST / sharpest.clamp(min=2.0 * STEEPEST))
