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

Where integrals are drawn, curvature that is still within its noise is taken from the scores, whose
outer product has the same expectation under the model (Berndt, Hall, Hall and Hausman 1974):

    vᵀ A v ≈ Σ_i (s_i · v)².

It needs far fewer draws, since a score errs by vᵀ V_i v / K only. What does not stand out of that
is not told from a flat likelihood. Along a curve its prior then speaks alone: rows are taken to
say nothing, and replicates are as wide as the prior. Anything else is refused.
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
    spread_along,
)
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.model import StructuralModel

__all__ = [
    "measure_weak_directions",
    "redraw_heavy_rows",
    "by_scores_where_untold",
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
    heavy = _heavy_rows(found)
    if not len(heavy):
        return found
    coarse = measure_information(model, completions, found.settings, heavy)
    fine, _ = _drawn_finely(heavy, model, rows, generator, effort, found.settings)
    return replace(
        found,
        scores=found.scores.index_copy(0, heavy, fine.scores),
        matrix=found.matrix - coarse.matrix + fine.matrix,
        complete=found.complete - coarse.complete + fine.complete,
    )


def by_scores_where_untold(
    found: Information,
    model: StructuralModel,
    rows: RowSource,
    completions: Completions,
    generator: Generator,
    effort: Effort | None = None,
) -> Information:
    """Returns the information with scores for curvature where that is within its noise.

    Arguments:
        found: The information by drawn integrals, whose heavy rows were drawn finely.
        model: The fit, in double precision.
        rows: The rows.
        completions: Completions of the rows by it, where they are not heavy.
        generator: Where randomness comes from.
        effort: How hard to work on posteriors that have no closed form.
    """
    settings, count = found.settings, completions.count
    most_noise = math.sqrt(4.0 * settings.heavy_share / count)  # since all rows take back one
    said, basis = _in_white(found)
    low = (said.abs() < settings.least_told * most_noise).nonzero()[:, 0]
    if not len(low):
        return found
    heavy = _heavy_rows(found)
    spread, noise = spread_along(model, completions, basis[:, low])
    noise[heavy] *= count / (settings.completions_of_heavy * _rounds(heavy, settings))
    untold = said[low].abs() < settings.least_told * noise.sum(0).sqrt()
    if not bool(untold.any()):
        return found
    at, directions = low[untold], basis[:, low[untold]]
    scores, errs = found.scores, spread[:, untold] / count
    most = (spread[:, untold] > settings.heavy_share).any(1).nonzero()[:, 0]
    if len(most):
        rounds = _drawn_finely(most, model, rows, generator, effort, settings)[1]
        scores = scores.index_copy(0, most, rounds.mean(1))
        errs[most] = (rounds @ directions).var(1) / rounds.shape[1]
    along, drawn = scores @ directions, said[at]
    squares, by_curves = along.T @ along, found.prior_precision @ directions.square()
    shown = squares.diag() + by_curves  # the prior of a curve is a law, that of a line a bound
    bound = (found.prior - found.prior_precision) @ directions.square()
    by_chance = errs.sum(0) + settings.least_shown * (2.0 * errs.square().sum(0)).sqrt()
    # where scores are no more than chance, the prior of a curve alone says how far it may go
    silent = shown < by_chance
    if bool((silent & (by_curves < bound)).any()) or bool((shown < bound).any()):
        return replace(found, told=False)
    along = torch.where(silent, 0.0, along)
    scores = scores - (scores @ directions - along) @ torch.linalg.inv(basis)[at]
    squares = along.T @ along
    # curvature that may be right, and leaves the wider interval of the two, stays
    stays = (drawn > noise[:, untold].sum(0).sqrt()) & (drawn < squares.diag()) & ~silent
    at, directions, squares = at[~stays], directions[:, ~stays], squares[~stays][:, ~stays]
    prior, white, back = found.prior.diag(), said.diag(), torch.linalg.inv(basis)
    white[at[:, None], at] = squares + directions.T @ prior @ directions
    return replace(found, scores=scores, matrix=back.T @ white @ back - prior)


def _drawn_finely(
    few: Tensor,
    model: StructuralModel,
    rows: RowSource,
    generator: Generator,
    effort: Effort | None,
    settings: Replication,
) -> tuple[Information, Tensor]:
    """Returns what a few rows say, by many completions of each, and their scores by rounds.

    These are (n, rounds, p).
    """
    rounds, times = _rounds(few, settings), settings.completions_of_heavy
    found = list[Information]()
    copies = torch.arange(len(few)).repeat_interleave(rounds)
    scores = list[Tensor]()
    for some in copies.split(max(1, ENTRIES_AT_ONCE // (times * rows.columns))):
        drawn = Completions.draw(model, SelectedRows(rows, few[some]), times, generator, effort)
        found.append(measure_information(model, drawn, settings))
        scores.append(found[-1].scores)
    by_rounds = torch.cat(scores).unflatten(0, (len(few), rounds))
    matrix, complete = (
        torch.stack([getattr(one, name) for one in found]).sum(0) / rounds
        for name in ("matrix", "complete")
    )
    whole = replace(found[0], scores=by_rounds.mean(1), matrix=matrix, complete=complete)
    return whole, by_rounds


def _heavy_rows(found: Information) -> Tensor:
    """Returns the rows whose completions take back most of what complete rows would say."""
    settings, taken_back = found.settings, found.taken_back
    assert taken_back is not None
    most = taken_back.argsort(descending=True, stable=True)[: settings.most_heavy]
    return most[taken_back[most] > settings.heavy_share].sort().values


def _rounds(heavy: Tensor, settings: Replication) -> int:
    """Returns how often each of some heavy rows is completed."""
    return max(2, settings.rounds_of_heavy // max(1, len(heavy)))


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
