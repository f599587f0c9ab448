r"""Adaptive quadrature where a component is one hidden number.

First, equally spaced points on a wide window find the bulk of f(u) = N(u; 0, 1) e(u). Where too
few of them fall into it, f is interpolated through all points so far and new ones are placed along
the interpolant, again and again; a peak is found to a tenth of its last width in each round. Every
set of points is randomly shifted, so that each round's estimate

    (1/K) Σ_k f(u_k) / q(u_k)

is unbiased on the window. Equally spaced points resolve a smooth bulk with a handful of them: for
a normal bulk of width s and spacing h, the error is about exp(−2π² s²/h²).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from misscnf.draws import shifted_points, uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.integral import Accept, Effort, WeightedDraws, chunks
from misscnf.inference.integrals.knots import Knots
from misscnf.inference.integrals.sweep import Sweep
from misscnf.mechanisms import standard_normal_log_prob
from misscnf.model import StructuralModel

__all__ = ["quadrature"]

FEWEST_POINTS = 20
"""At a spacing of 0.65, a bulk of more than half the prior's width is resolved at once."""
HALF_WINDOW = 6.5
"""The prior holds all but 1e-10 of its mass within ±6.5."""


def quadrature(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    generator: torch.Generator,
    accept: Accept,
    knots: Knots | None = None,
) -> Iterator[WeightedDraws]:
    """Yields blocks of components, those that the limit cut short included.

    Each round accepts what is good and passes the rest, with its knots, on to the next.
    """
    points, log_q = _propose(len(components), effort, generator, values, knots)
    hidden, log_evidence = Sweep(model, values, components)(points[components.cell_component])
    log_target = log_evidence + standard_normal_log_prob(points)
    first = knots is None
    integral = WeightedDraws(
        components, hidden, log_target - log_q, effort.randomisations, patchy=not first
    )
    depth = _depth(effort)
    knots = Knots.at(points, log_target) if knots is None else knots.add(points, log_target)
    done = accept(integral) & (knots.outward(depth)[:, 0] == 0) & ~knots.unresolved(depth)
    below_target = 0
    if effort.draws >= effort.limit:
        below_target, done = int((~done).sum()), torch.ones_like(done)
    if done.any():
        yield integral.select(done, below_target)
    more = effort if first else effort.doubled()  # better places before more points
    for keep in chunks(components, ~done, effort):
        part = components.select(keep)
        yield from quadrature(model, values, part, more, generator, accept, knots.select(keep))


def _propose(
    count: int, effort: Effort, generator: torch.Generator, like: Tensor, knots: Knots | None
) -> tuple[Tensor, Tensor]:
    """Returns points and log q at them, (C, K) each."""
    fractions = _fractions(count, effort, generator, like)
    if knots is None:
        points = HALF_WINDOW * (2.0 * fractions - 1.0)
        return points, torch.full_like(points, -math.log(2.0 * HALF_WINDOW))
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
    half = fractions < 0.5
    both = torch.where(half, near, far)
    log_both = math.log(0.5) + torch.where(half, log_near, -torch.log(high - low))
    inside = outward == 0
    return torch.where(inside, points, both), torch.where(inside, log_q, log_both)


def _fractions(count: int, effort: Effort, generator: torch.Generator, like: Tensor) -> Tensor:
    """Returns shifted, equally spaced fractions, (C, K): a quarter of the draws suffices."""
    shifts = uniform_numbers((count, effort.randomisations, 1), generator, like)
    return shifted_points(max(FEWEST_POINTS, effort.draws // 4), shifts).flatten(1)


def _depth(effort: Effort) -> float:
    """Returns how many nats below its top f stops to matter: 20 are less than 1e-8 of the mass."""
    return 8.0 if effort.tolerance is None else 20.0
