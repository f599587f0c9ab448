r"""How much each row weighs in an answer, and on how many rows it rests.

With s_i the score of row i, A the information of the table and g = ∂answer/∂θ,

    ψ_i = gᵀ A⁻¹ s_i

is by how much the answer would move, were row i counted once more; left out, it moves by −ψ_i.
The sampling variance is Σ ψ_i² (the sandwich). As an estimate of it, that sum is only as good as
rows are many behind it: with

    m = (Σ ψ_i²)² / Σ ψ_i⁴

equal shares, the quantile is that of a t with m − 1 degrees of freedom (Satterthwaite 1946). Where
m is small, residuals of rows that a line passes through are small too, and say less than the
information does: the variance is then at least gᵀ A⁻¹ g.

Replicates moved θ, and answered: g is the slope of their answers in their moves. Coefficients that
ran off, such as that of a level of which no row has the event, are held by a prior alone, and what
A⁻¹ makes of an error of their slope has no end. Theirs is zero where the answers do not go with
their moves.

Rivals of the fit (`fitting.rivals`), each with another form of one block, add to the variance what
their answers differ by, squared, times their weights. That is not estimated from few rows: half
widths t s and z √Σ are squared and added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.special import expit, logit, ndtri, stdtrit
from torch import Tensor

from misscnf.fitting.replicates import Replicates
from misscnf.fitting.settings import Replication
from misscnf.fitting.solve.sandwich import Information

__all__ = ["Influence", "Spread", "influence_on"]


@dataclass(frozen=True)
class Influence:
    """What the rows and the prior of curves have to do with the sampling error of an answer."""

    rows: np.ndarray
    """(N,) ψ"""
    of_prior: float
    """the variance that the priors of curves add"""
    by_information: float
    """gᵀ A⁻¹ g"""
    by_rows_alone: float
    """the same without the prior that bounds what the table says nothing of"""

    @property
    def leading(self) -> int:
        """How many rows make up half of Σ ψ², those that weigh most."""
        squares = np.sort(self.rows**2)[::-1].cumsum()
        return int(np.searchsorted(squares, 0.5 * squares[-1])) + 1


@dataclass(frozen=True)
class Spread:
    """The standard error of an answer, and the degrees of freedom that it is known with."""

    error: float
    degrees: float
    influence: Influence | None = None
    by_rows: float = 0.0
    """The variance by the scores or the information of the rows alone, whichever is larger: that
    of replicates, which a prior bounds, where these are not known."""
    of_forms: float = 0.0
    """The error that the choice of forms leaves, beside that of the rows."""
    unsettled: tuple[str, ...] = ()
    """Forms that rows hardly tell apart, where they are most of the error, and what they move."""

    @staticmethod
    def of(
        answers: Sequence[Any] | np.ndarray,
        replicates: Replicates | None = None,
        by_line: Sequence[Any] | np.ndarray | None = None,
        by_form: Sequence[Any] | np.ndarray = (),
    ) -> Spread:
        """Returns the spread of what B replicates answer, each a number.

        Of a fit with networks, the line tells on how many rows the answer rests, by what its
        replicates answer. The fit and its rivals answer `by_form`, with the same units.
        """
        found = Spread._of_rows(answers, replicates, by_line)
        if replicates is None or not len(by_form):
            return found
        own, *others = (float(answer) for answer in by_form)
        return found._with_rivals([other - own for other in others], replicates)

    def _with_rivals(self, moves: Sequence[float], replicates: Replicates) -> Spread:
        """Returns the spread with what rivals move the answer by."""
        between, unsettled = 0.0, list[str]()
        for move, rival in zip(moves, replicates.rivals, strict=True):
            share = rival.rival.weight * move**2
            if not np.isfinite(share):
                continue
            between += share
            if share > self.error**2:
                unsettled.append(
                    f"with a {rival.rival.form} for {rival.node} it moves by {move:+.3g}"
                )
        return replace(self, of_forms=between**0.5, unsettled=tuple(unsettled))

    @staticmethod
    def _of_rows(
        answers: Sequence[Any] | np.ndarray,
        replicates: Replicates | None,
        by_line: Sequence[Any] | np.ndarray | None,
    ) -> Spread:
        """Returns the spread with the forms of the fit."""
        found = np.asarray(answers, dtype=np.float64)
        variance, degrees = float(np.var(found, ddof=1)), len(found) - 1.0
        if replicates is not None and replicates.line is not None and by_line is not None:
            line = Spread._of_rows(by_line, replicates.line, None)
            if line.degrees < replicates.settings.few_shares:
                variance = max(variance, line.error**2)
                degrees = min(degrees, line.degrees)
            by_rows = max(variance, line.by_rows)
            return Spread(variance**0.5, degrees, line.influence, by_rows)
        influence = None if replicates is None else influence_on(found, replicates)
        if influence is None or replicates is None or not variance > 0:
            return Spread(variance**0.5, degrees, by_rows=variance)
        squares = influence.rows**2
        sandwich = float(squares.sum()) + influence.of_prior
        equal = variance**2 / max(float((squares**2).sum()), 1e-300)
        if equal < replicates.settings.few_shares:
            variance += max(0.0, influence.by_information - sandwich)
        degrees = 1.0 / (1.0 / max(equal - 1.0, 1.0) + 1.0 / degrees)
        by_rows = max(sandwich, influence.by_rows_alone)
        return Spread(variance**0.5, degrees, influence, by_rows)

    def doubts(self, settings: Replication) -> tuple[str, ...]:
        """Returns what to know where few rows, or a choice of form, carry the answer."""
        return (*self._doubt_of_forms(), *self._doubt_of_rows(settings))

    def _doubt_of_forms(self) -> tuple[str, ...]:
        if not self.unsettled:
            return ()
        told = "; ".join(self.unsettled)
        return (f"the rows hardly tell which form is right, and the answer hangs on it: {told}.",)

    def _doubt_of_rows(self, settings: Replication) -> tuple[str, ...]:
        if self.influence is None:
            return ()
        leading, count = self.influence.leading, len(self.influence.rows)
        if leading > min(settings.few_rows, settings.few_share * count):
            return ()
        them = "one" if leading == 1 else leading
        return (
            f"the answer hangs on a handful of rows: half of its sampling variance comes from "
            f"{them} of {count}.",
        )

    def half_width(self, level: float) -> float:
        """Returns half of the interval, in the scale of the answers."""
        side = 0.5 + level / 2.0
        of_rows = self.error * float(stdtrit(self.degrees, side))
        return math.hypot(of_rows, self.of_forms * float(ndtri(side)))

    def interval(
        self, value: float, level: float, ends: tuple[float, float] = (-math.inf, math.inf)
    ) -> tuple[float, float]:
        """Returns value ± half a width, inside the ends of what the value can be.

        Where that would leave them it is taken on the scale that has no ends, the logit between
        two of them and the logarithm of the distance from one, by the delta method.
        """
        half, (low, high) = self.half_width(level), ends
        if (low <= value - half and value + half <= high) or not low < value < high:
            return value - half, value + half
        if math.isinf(high):
            away = value - low
            return low + away * math.exp(-half / away), low + away * math.exp(half / away)
        if math.isinf(low):
            away = high - value
            return high - away * math.exp(half / away), high - away * math.exp(-half / away)
        share = (value - low) / (high - low)
        step = half / ((high - low) * share * (1.0 - share))
        lower, upper = expit(logit(share) + np.array([-step, step]))
        return low + (high - low) * float(lower), low + (high - low) * float(upper)


def influence_on(answers: np.ndarray, replicates: Replicates) -> Influence | None:
    """Returns the influence of rows on an answer, from what B replicates answer, (B,).

    None where the fit has networks, whose scores are not known, or an answer is not a number.
    """
    about, moves = replicates.information, replicates.moves
    if about is None or moves is None or not np.isfinite(answers).all():
        return None
    gradient = _slope(moves, answers, about)
    direction = about.newton_moves(gradient[None])[0]
    rows = about.scores @ direction
    of_prior = float((about.prior_precision * direction.square()).sum())
    by_information = float(gradient @ direction)
    free = (moves.std(0) > 0).nonzero()[:, 0]
    alone = _quadratic(about.matrix + about.prior_precision.diag(), gradient, free)
    return Influence(rows.numpy(), of_prior, by_information, max(alone, by_information))


def _slope(moves: Tensor, answers: np.ndarray, about: Information) -> Tensor:
    """Returns the slope of answers in the moves of the parameters, (p,).

    Along directions that a prior alone holds it is zero, unless the answers go with the moves more
    closely than chance has it.
    """
    free, apart = moves.std(0) > 0, answers - answers.mean()
    strength, turn = torch.linalg.eigh(about.matrix + about.prior_precision.diag())
    held = (strength < about.settings.prior_spread**-2) & ((free[:, None] * turn).norm(dim=0) > 0)
    if bool(held.any()):
        moves = moves @ turn
    size = moves.std(0).clamp(min=1e-300)
    steps = ((moves - moves.mean(0)) / size).numpy()
    together = np.abs(apart @ steps) / (len(apart) * max(float(apart.std()), 1e-300))
    heard = ~held.numpy() | (together > about.settings.clearly / math.sqrt(len(apart)))
    slopes = np.zeros(steps.shape[1])
    slopes[heard], *_ = np.linalg.lstsq(steps[:, heard], apart, rcond=1e-6)
    found = torch.from_numpy(slopes).to(size) / size
    return torch.where(free, turn @ found if bool(held.any()) else found, 0.0)


def _quadratic(matrix: Tensor, gradient: Tensor, free: Tensor) -> float:
    """Returns gᵀ A⁻¹ g over some parameters, zero where A has no inverse that is positive."""
    part = matrix[free][:, free]
    scale = part.diagonal().clamp(min=1e-300).rsqrt()  # logits that ran off have tiny entries
    factor, failed = torch.linalg.cholesky_ex(scale[:, None] * part * scale)
    if failed:
        return 0.0
    half = torch.linalg.solve_triangular(factor, (scale * gradient[free])[:, None], upper=False)
    return float(half.square().sum())
