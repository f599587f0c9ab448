r"""Adaptive quadrature where a component is one hidden number.

First, equally spaced points on a wide window find the bulk of f(u) = N(u; 0, 1) e(u). Where too
few of them fall into it, f is interpolated through all points so far, its *knots*, and new points
are placed along the interpolant q, again and again; each round finds a peak to a tenth of its last
width. Every set of points is randomly shifted, so that each round's estimate

    (1/K) Σ_k f(u_k) / q(u_k)

is unbiased on the window. Equally spaced points resolve a smooth bulk with a handful of them: for
a normal bulk of width s and spacing h, the error is about exp(−2π² s²/h²).

Between two knots q is exponential. Where knots resolve f, its logarithm is nearly straight between
them, in the tails as in the bulk, and the weights f/q are nearly constant. Where they do not, q
falls from the higher knot no more steeply than `QuadratureRules.steepest`, so that new points look
for the peak. Two sharp peaks may differ by hundreds of nats at their nearest knots and yet be
equally high: while a peak is unresolved, its knot is lifted to the top of the parabola through it
and its neighbours, and all heights are flattened.

Point masses of the number's law (`Mixture`) are no part of f: they are added as they are, and u is
the noise of the rest.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from misscnf.draws import shifted_points, uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.effort import Effort, QuadratureRules
from misscnf.inference.integrals.integral import Accept, WeightedDraws, chunks
from misscnf.inference.integrals.problem import Problem
from misscnf.inference.integrals.sweep import Sweep
from misscnf.mechanisms import standard_normal_log_prob

__all__ = ["quadrature", "Knots", "Interpolant"]


def quadrature(
    problem: Problem, components: Components, accept: Accept, knots: Knots | None = None
) -> Iterator[WeightedDraws]:
    """Yields the integrals of components of one cell, those that the limit cut short included.

    Each round accepts what is good and passes the rest, with its knots, on to the next.

    Arguments:
        problem: The model, the table and the effort.
        components: What is hidden, and its evidence.
        accept: Says what has been integrated well enough.
        knots: What earlier rounds found; None in the first.
    """
    effort = problem.effort
    points, log_q = _propose(len(components), problem, knots)
    sweep = problem.sweep(components)
    atoms = sweep.atoms
    part = 0 if atoms else None
    hidden, log_evidence = sweep(points[components.cell_component], part)
    log_target = log_evidence + standard_normal_log_prob(points)
    first = knots is None
    log_weight = log_target - log_q
    if atoms:
        hidden, log_weight = _beside_atoms(sweep, atoms, hidden, log_weight, effort)
    integral = WeightedDraws(
        components, hidden, log_weight, effort.randomisations, may_have_gaps=not first
    )
    if knots is None:
        knots = Knots.at(points, log_target, effort.quadrature)
    else:
        knots = knots.add(points, log_target)
    depth = _depth(effort)
    done = accept(integral) & (knots.outward(depth)[:, 0] == 0) & ~knots.unresolved(depth)
    below_target = 0
    if effort.draws >= effort.limit:
        below_target, done = int((~done).sum()), torch.ones_like(done)
    if done.any():
        yield integral.select(done, below_target)
    more = problem if first else problem.doubled()  # better places before more points
    for keep in chunks(components, ~done, effort):
        yield from quadrature(more, components.select(keep), accept, knots.select(keep))


def _beside_atoms(
    sweep: Sweep, atoms: int, hidden: Tensor, log_weight: Tensor, effort: Effort
) -> tuple[Tensor, Tensor]:
    """Puts the point masses of the hidden cells beside points of the rest, in all randomisations.

    Each stands there as often as the rest has points, so that a sure one is no lonely draw.
    """
    values, weights = [hidden], [log_weight]
    for part in range(1, 1 + atoms):
        at, found = sweep(torch.zeros_like(hidden[:, :1]), part)
        values.append(at.expand_as(hidden))
        weights.append(found.expand_as(log_weight))
    shape = (effort.randomisations, -1)
    sides = [
        torch.cat([piece.unflatten(1, shape) for piece in pieces], 2).flatten(1)
        for pieces in (values, weights)
    ]
    return sides[0], sides[1] + math.log(1 + atoms)


def _propose(count: int, problem: Problem, knots: Knots | None) -> tuple[Tensor, Tensor]:
    """Returns points and log q at them, (C, K) each."""
    effort, fractions = problem.effort, _fractions(count, problem)
    if knots is None:
        half = effort.quadrature.half_window
        points = half * (2.0 * fractions - 1.0)
        return points, torch.full_like(points, -math.log(2.0 * half))
    interpolant = knots.interpolant()
    points, log_q = interpolant.sample(fractions)
    outward = knots.outward(_depth(effort))
    if not outward.any():
        return points, log_q
    # Where the bulk may lie beyond the knots, half of the points fill as wide a window there.
    near, log_near = interpolant.sample((2.0 * fractions).clamp(max=1.0))
    low, high = knots.points[:, :1], knots.points[:, -1:]
    reach = outward * (high - low)
    far = torch.where(reach > 0, high, low) + reach * (2.0 * fractions - 1.0)
    is_near = fractions < 0.5
    both = torch.where(is_near, near, far)
    log_both = math.log(0.5) + torch.where(is_near, log_near, -torch.log(high - low))
    inside = outward == 0
    return torch.where(inside, points, both), torch.where(inside, log_q, log_both)


def _fractions(count: int, problem: Problem) -> Tensor:
    """Returns randomly shifted, equally spaced fractions, (C, K)."""
    effort, rules = problem.effort, problem.effort.quadrature
    shape = (count, effort.randomisations, 1)
    shifts = uniform_numbers(shape, problem.generator, problem.values)
    points = max(rules.fewest_points, effort.draws // rules.draws_a_point)
    return shifted_points(points, shifts).flatten(1)


def _depth(effort: Effort) -> float:
    """Returns how many nats below its top the integrand no longer matters."""
    rules = effort.quadrature
    return rules.rough_depth if effort.tolerance is None else rules.depth


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
    rules: QuadratureRules

    @staticmethod
    def at(points: Tensor, log_target: Tensor, rules: QuadratureRules) -> Knots:
        """Orders points (C, n) and what was found at them."""
        points, order = points.sort(dim=1)
        return Knots(points, _finite(log_target, rules.below).gather(1, order), rules)

    def add(self, points: Tensor, log_target: Tensor) -> Knots:
        """Returns these knots and some more."""
        points = torch.cat([self.points, points], dim=1)
        return Knots.at(points, torch.cat([self.log_target, log_target], dim=1), self.rules)

    def select(self, keep: Tensor) -> Knots:
        """Returns the knots of some components, (C,) True where kept."""
        return Knots(self.points[keep], self.log_target[keep], self.rules)

    def outward(self, depth: float) -> Tensor:
        """Returns where the integrand has not fallen by `depth` at its ends.

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
        return (peak & high & (fall > self.rules.steepest)).any(1)

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
        log_height = log_height - log_height.amax(1, keepdim=True)
        log_height = log_height.clamp(min=-self.rules.floor)
        step = log_height.diff(dim=1)
        top = torch.maximum(log_height[:, :-1], log_height[:, 1:])
        fall = step.abs().clamp(1e-4, self.rules.steepest)
        return Interpolant(self.points, top, fall, step > 0)

    def _flattened(self) -> Tensor:
        """Lifts peaks to their parabolas, then flattens until none falls too steeply."""
        peak, rise, fall = self._peaks
        sharpest = torch.where(peak, fall, 0.0).amax(1, keepdim=True)
        lifted = self.log_target.clone()
        lifted[:, 1:-1] += rise
        most = 2.0 * self.rules.steepest
        return lifted * (most / sharpest.clamp(min=most))


def _finite(log_target: Tensor, below: float) -> Tensor:
    """Puts zeros of the integrand, −∞, below the lowest knot that is none; all even if all are."""
    zero = log_target == -torch.inf
    if not zero.any():
        return log_target
    lowest = torch.where(zero, torch.inf, log_target).amin(1, keepdim=True)
    return torch.where(zero, torch.where(lowest.isfinite(), lowest, 0.0) - below, log_target)


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
        """Returns points and log q at fractions (C, K) of the mass, in [0, 1); (C, K) each."""
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
