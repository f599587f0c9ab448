r"""The modes of an integrand, and a guide that knows them.

From each of S points a search climbs F (`linearisation`): the path of a `guide` without scores is
a step of Gauss and Newton, taken along the mechanisms, and damped after Levenberg and Marquardt
where F did not rise. Searches that end at the same place, by the measure of the curvature there,
are one mode.
"""

from __future__ import annotations

import torch
from torch import Tensor

from misscnf.inference.elimination import Plan
from misscnf.inference.integrals.effort import Effort, ImportanceRules
from misscnf.inference.integrals.guide import Guide
from misscnf.inference.integrals.integral import WeightedDraws, effective_size
from misscnf.inference.integrals.linearisation import Linearisation, linearise
from misscnf.inference.integrals.problem import Problem
from misscnf.inference.integrals.sweep import Sweep

__all__ = ["choose_starts", "find_modes", "room_for_modes"]


def room_for_modes(plan: Plan, effort: Effort, like: Tensor) -> Tensor | None:
    """Returns where the modes of N rows can be remembered, (N, S, d), all nan so far.

    None where no row hides so much together that they would be.
    """
    rules = effort.importance
    if plan.largest() <= rules.most_nodes:
        return None
    return like.new_full((len(plan), rules.remembered, len(plan.graph)), torch.nan)


def choose_starts(sweep: Sweep, found: WeightedDraws, rules: ImportanceRules) -> Tensor:
    """Chooses points of large weight that are far from each other, (C, S).

    The heaviest comes first, then always the one with the largest tempered weight times squared
    distance to the nearest so far. Distances are between what the evidence reads, in standard
    deviations of the points: there it can be explained in another way.
    """
    c, values = found.components, found.values[:, : found.fresh.shape[1]]
    scores = (values - values.mean(1, keepdim=True)) / values.std(1, keepdim=True).clamp(min=1e-9)
    read = sweep.read_by_evidence()
    weight = torch.softmax(_tempered(found.fresh, rules.flat), -1)
    chosen = [weight.argmax(1)]
    nearest = torch.full_like(weight, torch.inf)
    for _ in range(1, rules.starts):
        away = scores - scores.gather(1, chosen[-1][c.cell_component, None])
        square = torch.zeros_like(weight).index_add_(
            0, c.cell_component[read], away[read].square().to(weight)
        )
        nearest = torch.minimum(nearest, square)
        chosen.append((weight * nearest).argmax(1))
    return torch.stack(chosen, 1)


def _tempered(log_weight: Tensor, share: float) -> Tensor:
    """Raises weights to a power β ≤ 1, found by bisection, that leaves enough effective points."""
    top = log_weight.amax(-1, keepdim=True)
    # Where no point has any weight, all are alike.
    log_weight = torch.where(top.isfinite(), log_weight - top, 0.0)
    least = share * log_weight.shape[-1]
    low, high = torch.zeros_like(top), torch.ones_like(top)
    low = torch.where((effective_size(log_weight) >= least)[:, None], 1.0, low)
    for _ in range(10):
        middle = 0.5 * (low + high)
        flat = (effective_size(middle * log_weight) >= least)[:, None]
        low, high = torch.where(flat, middle, low), torch.where(flat, high, middle)
    return torch.where(log_weight.isfinite(), low * log_weight, -torch.inf)


def find_modes(problem: Problem, sweep: Sweep, starts: Tensor, noise: Tensor) -> Guide:
    """Searches for modes from values (H, S) of the hidden cells and their noise (C, S, m).

    Returns the guide of those found; a part that is not a mode of its own has no share.
    """
    rules = problem.effort.importance
    at = linearise(sweep, starts, noise, rules.held_width)
    at = _climb(problem, sweep, at, noise, torch.zeros_like(at.log_target), rules.most_steps)
    return _distinct(at, rules)


def _climb(
    problem: Problem, sweep: Sweep, at: Linearisation, noise: Tensor, damping: Tensor, steps: int
) -> Linearisation:
    """Goes on with all searches; once most components are done, with the others alone."""
    rules, components = problem.effort.importance, sweep.components
    for taken in range(steps):
        climbing = (Guide.of(at).rise > rules.rise).any(1)
        if not climbing.any():
            break
        if 2 * int(climbing.sum()) < len(climbing):
            rest = problem.sweep(components.select(climbing))
            part = at.of_some(climbing, components, int(rest.components.size.max()))
            given = (noise[climbing], damping[climbing], steps - taken)
            return at.replaced(climbing, components, _climb(problem, rest, part, *given))
        step = _step(sweep, at, damping, problem.values)
        there = linearise(sweep, step, noise, rules.held_width)
        better = there.log_target > at.log_target
        at = there.where(better, at, components)
        damping = torch.where(better, 0.1 * damping, (10.0 * damping).clamp(min=rules.damping))
        damping = torch.where(damping < 0.1 * rules.damping, 0.0, damping)
    return at


def _step(sweep: Sweep, at: Linearisation, damping: Tensor, like: Tensor) -> Tensor:
    """Returns the next points of the searches, (H, S)."""
    guide = Guide.of(at, damping).to(like)
    part = torch.arange(damping.shape[1], device=like.device).expand_as(damping)
    return guide.sweep(sweep, part, torch.zeros_like(guide.centre), at.values).values


def _distinct(at: Linearisation, rules: ImportanceRules) -> Guide:
    """Returns the guide of the modes that differ, in order of their mass, with their shares."""
    found = Guide.of(at)
    order = torch.nan_to_num(found.log_share, nan=-torch.inf).argsort(1, descending=True)
    row = torch.arange(len(order), device=order.device)[:, None]
    centre, precision, log_mass = (
        part[row, order] for part in (at.centre, at.precision, found.log_share)
    )
    new = log_mass >= log_mass[:, :1] - rules.depth
    new[:, 0] = True
    for j in range(1, new.shape[1]):
        away = centre[:, j, None] - centre[:, :j]
        square = torch.einsum("cjm,cjmn,cjn->cj", away, precision[:, :j], away)
        new[:, j] &= ~(new[:, :j] & (square < rules.same_mode)).any(1)
    share = torch.softmax(torch.where(new, log_mass, -torch.inf), 1)
    share = torch.where(new, torch.nan_to_num(share).clamp(min=rules.least_share), 0.0)
    log_share = (share / share.sum(1, keepdim=True)).log()
    # The new ones first, and no more parts than some component has modes.
    first = torch.argsort((~new).int(), dim=1, stable=True)[:, : int(new.sum(1).max())]
    return found.of_some(row, order.gather(1, first))._replace(
        log_share=log_share.gather(1, first)
    )
