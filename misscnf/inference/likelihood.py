r"""The log-density of what each row shows, with its quality.

    log p(x_O) = Σ_{free} log φ_i + Σ_components log E_u[evidence]     (Proposition 1)

Free factors are exact. Each component's integral carries its standard error and its effective
sample size; a row's standard error adds theirs in squares (components are drawn independently),
and its effective size is that of its worst component.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Efforts, integrate
from misscnf.inference.integrals.enumeration import factors_log_prob
from misscnf.model import StructuralModel
from misscnf.threads import row_parts, side_by_side, spawn

__all__ = ["RowLikelihood", "observed_log_prob", "free_log_prob"]


@dataclass(frozen=True)
class RowLikelihood:
    """What is known of each row's log-density. N rows."""

    log_prob: Tensor
    """(N,)"""
    standard_error: Tensor
    """(N,); zero where exact"""
    effective_draws: Tensor
    """(N,); effective sample size of the worst component, infinite where exact"""


def observed_log_prob(
    model: StructuralModel,
    values: Tensor,
    plan: Plan,
    generator: Generator,
    effort: Effort = Efforts.evaluation,
    modes: Tensor | None = None,
) -> RowLikelihood:
    """Evaluates log p(x_O) of each row.

    Arguments:
        model: The structural model.
        values: (N, d) with finite numbers in the holes.
        plan: The plan of these rows.
        generator: Where randomness comes from.
        effort: How hard to work on what has no closed form.
        modes: (N, S, d) those of earlier calls; see `integrate`. Written to.
    """
    parts = [rows.to(values.device) for rows in row_parts(len(values), effort.rows_at_once)]

    def work(part: tuple[Tensor, Generator]) -> list[Tensor]:
        rows, its_generator = part
        known = None if modes is None else modes[rows]
        about = (plan.select(rows), its_generator, effort, known)
        found = _evaluate(model, values[rows], *about)
        if modes is not None and known is not None:
            modes[rows] = known
        return found

    with torch.no_grad():
        found = side_by_side(work, list(zip(parts, spawn(generator, len(parts)), strict=True)))
    return RowLikelihood(*(torch.cat(column) for column in zip(*found, strict=True)))


def _evaluate(
    model: StructuralModel,
    values: Tensor,
    plan: Plan,
    generator: Generator,
    effort: Effort,
    modes: Tensor | None,
) -> list[Tensor]:
    """Returns what a `RowLikelihood` holds."""
    log_prob = free_log_prob(model, values, plan)
    variance = torch.zeros_like(log_prob)
    effective = torch.full_like(log_prob, math.inf)
    about = (effort, generator, None, modes)
    for integral in integrate(model, values, plan.components(), *about):
        row = integral.components.row
        log_prob.index_add_(0, row, integral.log_integral().to(log_prob))
        variance.index_add_(0, row, integral.standard_error().to(log_prob) ** 2)
        effective.scatter_reduce_(0, row, integral.effective_size().to(log_prob), "amin")
    return [log_prob, variance.sqrt(), effective]


def free_log_prob(model: StructuralModel, values: Tensor, plan: Plan) -> Tensor:
    """Returns the sum of each row's free factors, (N,)."""
    return factors_log_prob(model, values, plan.free[plan.pattern])
