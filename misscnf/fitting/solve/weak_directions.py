r"""The information in directions of which rows say little, from the likelihood itself.

With C what completed rows would say and A = C − M what they do say, completions give M with an
error of some percent (`sandwich`). That is nothing where A is most of C, and everything where a
handful of rows breaks a ridge: where x confounds t and y and five rows of thousands show it, A is
a thousandth of C, and an A that is off by 3 % of C is noise, or not even positive.

So the directions v with vᵀ A v < ρ vᵀ C v are measured again, by differences of the exact gradient
and of the exact log-density of each row (`fisher`):

    A v = −(∇ℓ(θ̂ + h v) − ∇ℓ(θ̂ − h v)) / 2h,      s_i · v = (ℓ_i(θ̂ + h v) − ℓ_i(θ̂ − h v)) / 2h.

That needs integrals that are sums, closed forms or quadrature: differences of drawn ones are
differences of their noise (`replicates` looks at that first).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from misscnf.data.rows import RowSource
from misscnf.fitting.solve.fisher import row_log_likelihood
from misscnf.fitting.solve.sandwich import Information, moved
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.model import StructuralModel

__all__ = ["measure_weak_directions", "without_open_directions"]


def measure_weak_directions(
    found: Information, model: StructuralModel, rows: RowSource, effort: Effort
) -> Information:
    """Returns the information with its weak directions measured again.

    Arguments:
        found: Scores and information of the rows, from completions.
        model: The fit, in double precision.
        rows: The rows.
        effort: How hard to work on integrals that have no closed form.
    """
    settings, prior = found.settings, found.prior.diag()
    size, turn = torch.linalg.eigh(found.complete + prior)
    if not bool(size.min() > 0):
        return found
    white = turn / size.sqrt()  # columns in which completed rows say one
    said, turn = torch.linalg.eigh(white.T @ (found.matrix + prior) @ white)
    weak = int((said < settings.weak_share).sum())
    weak = min(weak, settings.most_weak)  # eigenvalues rise
    if not weak:
        return found
    basis, back = white @ turn, torch.linalg.inv(white @ turn)
    scores, matrix = found.scores @ basis, basis.T @ found.matrix @ basis
    plan, step = Plan.of(model.graph, rows), settings.weak_step
    for i in range(weak):
        ends = [_at(model, h * basis[:, i], rows, plan, effort) for h in (step, -step)]
        (above, rise), (below, fall) = ends
        scores[:, i] = (above - below) / (2 * step)
        matrix[:, i] = matrix[i, :] = basis.T @ (fall - rise) / (2 * step)
    matrix[:weak, :weak] = (matrix[:weak, :weak] + matrix[:weak, :weak].T) / 2
    return replace(found, scores=scores @ back, matrix=back.T @ matrix @ back)


def without_open_directions(found: Information) -> Information:
    """Returns the information with directions closed of which rows beside hidden causes say none.

    Models on a ridge of the likelihood have the same law of what is shown, and so the same of
    every effect that is identified. A replicate need not move along it; a step of some length
    would leave the ridge, which bends. Of effects that are not identified an interval says nothing
    here, and their note says so (`identification.hidden`).
    """
    prior = found.prior.diag()
    size, turn = torch.linalg.eigh(found.complete + prior)
    if not bool(size.min() > 0):
        return found
    white = turn / size.sqrt()
    said, turn = torch.linalg.eigh(white.T @ (found.matrix + prior) @ white)
    is_open = said < found.settings.open_share
    if not bool(is_open.any()):
        return found
    basis = white @ turn
    back = torch.linalg.inv(basis)
    scores = torch.where(is_open, 0.0, found.scores @ basis) @ back
    matrix = back.T @ torch.where(is_open, 1.0, said).diag() @ back - prior
    return replace(found, scores=scores, matrix=matrix)


def _at(
    model: StructuralModel, move: Tensor, rows: RowSource, plan: Plan, effort: Effort
) -> tuple[Tensor, Tensor]:
    """Returns the log-density of each row (N,) and the gradient of their sum (p,) close by."""
    there = moved(model, move).requires_grad_()
    log_prob = row_log_likelihood(there, rows, plan, effort)
    slopes = [
        torch.zeros_like(part) if part.grad is None else part.grad for part in there.parameters()
    ]
    return log_prob, len(rows) * torch.cat([slope.flatten() for slope in slopes])
