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

What errs is V = Σ_i Cov[s_i | x_O], from K completions of each row: by about vᵀ V_i v √(2 / K) for
each. Over thousands of rows that is next to nothing; but a row far out may hide the child of a
curve, and be most of C by itself. Such rows, few by nature, are completed anew many times over.
Where integrals are drawn, curvature that is still within its noise is not told from a flat
likelihood, and is refused as one.
"""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Generator, Tensor

from misscnf.data.rows import RowSource, SelectedRows
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Replication
from misscnf.fitting.solve.fisher import row_log_likelihood
from misscnf.fitting.solve.sandwich import (
    ENTRIES_AT_ONCE,
    Information,
    measure_information,
    moved,
    noise_along,
)
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.model import StructuralModel

__all__ = [
    "measure_weak_directions",
    "redraw_heavy_rows",
    "is_told",
    "without_open_directions",
]


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
    settings = found.settings
    said, basis = _in_white(found)
    weak = min(int((said < settings.weak_share).sum()), settings.most_weak)
    if not weak:
        return found
    back = torch.linalg.inv(basis)
    scores, matrix = found.scores @ basis, basis.T @ found.matrix @ basis
    plan, step = Plan.of(model.graph, rows), settings.weak_step
    for i in range(weak):
        ends = [_at(model, h * basis[:, i], rows, plan, effort) for h in (step, -step)]
        (above, rise), (below, fall) = ends
        scores[:, i] = (above - below) / (2 * step)
        matrix[:, i] = matrix[i, :] = basis.T @ (fall - rise) / (2 * step)
    matrix[:weak, :weak] = (matrix[:weak, :weak] + matrix[:weak, :weak].T) / 2
    return replace(found, scores=scores @ back, matrix=back.T @ matrix @ back)


def redraw_heavy_rows(
    found: Information,
    model: StructuralModel,
    rows: RowSource,
    completions: Completions,
    generator: Generator,
    effort: Effort | None = None,
) -> Information:
    """Returns the information with those rows drawn finely that make most of its noise.

    Arguments:
        found: Scores and information of the rows, from completions.
        model: The fit, in double precision.
        rows: The rows.
        completions: Completions of the rows by it.
        generator: Where randomness comes from.
        effort: How hard to work on posteriors that have no closed form.
    """
    heavy, settings = _heavy_rows(found), found.settings
    if not len(heavy):
        return found
    coarse = measure_information(model, completions, settings, heavy)
    matrix, complete = found.matrix - coarse.matrix, found.complete - coarse.complete
    scores = found.scores.index_fill(0, heavy, 0.0)
    rounds, times = _rounds(heavy, settings), settings.completions_of_heavy
    copies = heavy.repeat_interleave(rounds)
    for some in copies.split(max(1, ENTRIES_AT_ONCE // (times * rows.columns))):
        drawn = Completions.draw(model, SelectedRows(rows, some), times, generator, effort)
        fine = measure_information(model, drawn, settings)
        scores.index_add_(0, some, fine.scores / rounds)
        matrix += fine.matrix / rounds
        complete += fine.complete / rounds
    return replace(found, scores=scores, matrix=matrix, complete=complete)


def is_told(found: Information, model: StructuralModel, completions: Completions) -> bool:
    """Says whether the drawn curvature of a table is above its noise in every direction.

    Arguments:
        found: The information, whose heavy rows were drawn finely.
        model: The fit, in double precision.
        completions: Completions of the rows by it, where they are not heavy.
    """
    settings, count = found.settings, completions.count
    most_noise = math.sqrt(4.0 * settings.heavy_share / count)  # since all rows take back one
    said, basis = _in_white(found)
    low = said < settings.least_told * most_noise
    if not bool(low.any()):
        return True
    noise = noise_along(model, completions, basis[:, low])
    heavy = _heavy_rows(found)
    noise[heavy] *= count / (settings.completions_of_heavy * _rounds(heavy, settings))
    return bool((said[low] > settings.least_told * noise.sum(0).sqrt()).all())


def _heavy_rows(found: Information) -> Tensor:
    """Returns the rows whose completions take back most of what complete rows would say."""
    settings, taken_back = found.settings, found.taken_back
    assert taken_back is not None
    most = taken_back.argsort(descending=True, stable=True)[: settings.most_heavy]
    return most[taken_back[most] > settings.heavy_share].sort().values


def _rounds(heavy: Tensor, settings: Replication) -> int:
    """Returns how often each of some heavy rows is completed."""
    return max(1, settings.rounds_of_heavy // max(1, len(heavy)))


def _in_white(found: Information) -> tuple[Tensor, Tensor]:
    """Returns what rows say in directions in which completed rows say one, from the least on."""
    prior = found.prior.diag()
    size, turn = torch.linalg.eigh(found.complete + prior)
    if not bool(size.min() > 0):
        return torch.ones_like(size), turn
    white = turn / size.sqrt()
    said, turn = torch.linalg.eigh(white.T @ (found.matrix + prior) @ white)
    return said, white @ turn


def without_open_directions(found: Information) -> Information:
    """Returns the information with directions closed of which rows beside hidden causes say none.

    Models on a ridge of the likelihood have the same law of what is shown, and so the same of
    every effect that is identified. A replicate need not move along it; a step of some length
    would leave the ridge, which bends. Of effects that are not identified an interval says nothing
    here, and their note says so (`identification.hidden`).
    """
    prior = found.prior.diag()
    said, basis = _in_white(found)
    is_open = said < found.settings.open_share
    if not bool(is_open.any()):
        return found
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
