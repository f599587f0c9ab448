r"""What an integrand is known to be at some knots, and where to look next.

Between knots, the integrand f is interpolated by a density q that is exponential there. Where
knots resolve f, its logarithm is nearly straight between them, in the tails as in the bulk, and
the weights f/q are nearly constant. Where they do not, q falls from the higher knot no more
steeply than `STEEPEST`, and so looks for the peak. Two sharp peaks may differ by hundreds of nats
at their nearest knots and yet be equally high: while a peak is unresolved, knots are lifted to
where its parabola peaks, and all heights flattened.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["Knots", "Interpolant"]

STEEPEST = 3.0
"""An interpolant falls by at most so many nats between knots, so that it covers all of it."""
BELOW = 100.0
"""Where an integrand is zero, it counts as so many nats below the lowest of its other knots."""


class _Peaks(NamedTuple):
    """What the inner knots look like, (C, n − 2) each."""

    peak: Tensor
    """whether a knot is a local maximum"""
    rise: Tensor
    """how far the parabola through it and its neighbours rises above a peak"""
    fall: Tensor
    """how much the lesser of both sides falls"""


@dataclass(frozen=True)
class Knots:
    """Points and the log of an integrand at them, in order."""

    points: Tensor
    """(C, n) increasing"""
    log_target: Tensor
    """(C, n)"""

    @staticmethod
    def at(points: Tensor, log_target: Tensor) -> Knots:
        """Orders points (C, n) and what was found at them."""
        points, order = points.sort(dim=1)
        return Knots(points, _finite(log_target).gather(1, order))

    def add(self, points: Tensor, log_target: Tensor) -> Knots:
        """Returns these knots and some more."""
        return Knots.at(
            torch.cat([self.points, points], dim=1),
            torch.cat([self.log_target, log_target], dim=1),
        )

    def select(self, keep: Tensor) -> Knots:
        """Returns the knots of some components, (C,) True where kept."""
        return Knots(self.points[keep], self.log_target[keep])

    def outward(self, depth: float) -> Tensor:
        """Returns where the integrand has not fallen by `depth` at its ends.

        Returns:
            (C, 1): −1 below the lowest knot, +1 above the highest, 0 nowhere.
        """
        low, high = self.log_target[:, :1], self.log_target[:, -1:]
        beyond = torch.maximum(low, high) > self.log_target.amax(1, keepdim=True) - depth
        return beyond * torch.where(high >= low, 1.0, -1.0).to(low)

    def unresolved(self, depth: float) -> Tensor:
        """Says where some peak that may come within `depth` of the top is not resolved, (C,)."""
        peak, rise, fall = self._peaks
        # How high a peak is between its knots is known only to about what it falls beside them.
        reach = self.log_target[:, 1:-1] + torch.maximum(rise, fall)
        high = reach > self.log_target.amax(1, keepdim=True) - depth
        return (peak & high & (fall > STEEPEST)).any(1)

    @cached_property
    def _peaks(self) -> _Peaks:
        step, width = self.log_target.diff(dim=1), self.points.diff(dim=1).clamp(min=1e-12)
        left, right, slope = step[:, :-1], -step[:, 1:], step / width
        a, b = width[:, :-1], width[:, 1:]
        peak = (left >= 0) & (right >= 0) & (left + right > 0)
        curvature = slope[:, :-1] - slope[:, 1:]  # times a + b
        tilt = slope[:, :-1] * b + slope[:, 1:] * a  # times a + b
        tiny = torch.finfo(width.dtype).tiny
        rise = tilt**2 / (4.0 * (a + b) * curvature.clamp(min=tiny))
        return _Peaks(peak, torch.where(peak, rise, 0.0), torch.minimum(left, right))

    def interpolant(self) -> Interpolant:
        """Returns the density that is exponential between knots."""
        log_height = self._flattened()
        # Nowhere lower than e^-30 of the peak: a density that is never zero.
        log_height = (log_height - log_height.amax(1, keepdim=True)).clamp(min=-30.0)
        step = log_height.diff(dim=1)
        top = torch.maximum(log_height[:, :-1], log_height[:, 1:])
        return Interpolant(self.points, top, step.abs().clamp(1e-4, STEEPEST), step > 0)

    def _flattened(self) -> Tensor:
        """Lifts peaks to their parabolas, then flattens until the sharpest falls by 6 nats."""
        peak, rise, fall = self._peaks
        sharpest = torch.where(peak, fall, 0.0).amax(1, keepdim=True)
        lifted = self.log_target.clone()
        lifted[:, 1:-1] += rise
        return lifted * (2.0 * STEEPEST / sharpest.clamp(min=2.0 * STEEPEST))


def _finite(log_target: Tensor) -> Tensor:
    """Puts zeros of the integrand, −∞, below the lowest knot that is none; all even if all are."""
    zero = log_target == -torch.inf
    if not zero.any():
        return log_target
    lowest = torch.where(zero, torch.inf, log_target).amin(1, keepdim=True)
    return torch.where(zero, torch.where(lowest.isfinite(), lowest, 0.0) - BELOW, log_target)


@dataclass(frozen=True)
class Interpolant:
    """A density that is exponential between knots."""

    knots: Tensor
    """(C, n) increasing"""
    top: Tensor
    """(C, n − 1) log-height at the higher end of each piece"""
    fall: Tensor
    """(C, n − 1) how much the log-height falls towards the other end, at least a little"""
    rising: Tensor
    """(C, n − 1) whether the higher end is the right one"""

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
