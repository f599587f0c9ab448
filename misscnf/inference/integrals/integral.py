r"""What every way of integrating returns, and its form by weighted points.

Points u_k from a proposal q have the weights w_k = N(u_k; 0, I) e(u_k) / q(u_k), so that

    E_u [e] ≈ (1/K) Σ_k w_k,      p(u | x_O) ≈ Σ_k w_k δ(u_k) / Σ_k w_k.

The points come in R independent randomisations of equal size; the spread of their means gives the
standard error (a single randomisation has none). The effective sample size is (Σ w)² / Σ w².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import torch
from torch import Generator, Tensor

from misscnf.draws import uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.effort import Effort
from misscnf.inference.integrals.sweep import Sweep
from misscnf.model import StructuralModel

__all__ = ["Integral", "WeightedDraws", "Accept", "effective_size", "memory_parts", "chunks"]

SMALLEST_STATED_ERROR = 1e-9
"""A smaller spread of the randomisations is rounding."""


class Integral(Protocol):
    """The integrals of some components, with draws from their posteriors."""

    @property
    def components(self) -> Components:
        """What is integrated."""

    def log_integral(self) -> Tensor:
        """Returns log E_u[e], (C,)."""

    def standard_error(self) -> Tensor:
        """Returns the standard error of the log-integral, (C,); nan where it is unknown."""

    def effective_size(self) -> Tensor:
        """Returns the effective sample size, (C,); infinite where the integral is exact."""

    @property
    def below_target(self) -> int:
        """How many components got fewer effective draws than asked for."""

    def draw(self, count: int, generator: Generator, *, even: bool = False) -> Tensor:
        """Returns posterior draws of the hidden cells, (H, count).

        Arguments:
            count: Draws of each component.
            generator: Where randomness comes from.
            even: Whether the draws of a component are spread evenly over its posterior, by
                systematic resampling or in antithetic pairs (for averages), instead of
                independent (for imputations).
        """

    def expected_log_factors(
        self, model: StructuralModel, values: Tensor, weight: Tensor
    ) -> Tensor:
        """Returns Σ_c weight_c E[Σ_i log φ_i | x_O] over the components' factors.

        The posterior is held fixed: by Fisher's identity, the gradient by the parameters is that
        of the log-integrals. The values (N, d) are those that they were integrated with.
        """


def effective_size(log_weight: Tensor) -> Tensor:
    """Returns (Σ w)² / Σ w² along the last axis; 0 where every weight is zero."""
    count = 2.0 * torch.logsumexp(log_weight, -1) - torch.logsumexp(2.0 * log_weight, -1)
    return torch.nan_to_num(count.exp(), nan=0.0)


@dataclass(frozen=True)
class WeightedDraws:
    """Points with importance weights: K = randomisations × draws of each component."""

    components: Components
    values: Tensor
    """(H, K) values of the hidden cells."""
    log_weight: Tensor
    """(C, K)"""
    randomisations: int = 1
    below_target: int = 0
    """How many components got fewer effective draws than asked for."""
    may_have_gaps: bool = False
    """Whether the proposal may be so thin somewhere that no point falls there."""
    control: Tensor | None = None
    """(C, K) the ratio of a density to the proposal's, whose mean is known to be one"""
    retained: bool = False
    """Whether the last point is the state that a Markov chain was in: it may be drawn again, but
    says nothing of the integral."""

    @property
    def fresh(self) -> Tensor:
        """The log-weights of the points that the proposal gave, (C, K)."""
        return self.log_weight[:, :-1] if self.retained else self.log_weight

    @cached_property
    def _means(self) -> tuple[Tensor, Tensor]:
        """The log of the largest weight (C,), and the means of the randomisations over it, (C, R).

        Where one of the densities in q is known to have a mean ratio of one, what its mean is off
        in a randomisation is taken out, by its slope in all others: no bias, and no error left
        where q without it is the posterior (Owen and Zhou 2000).
        """
        top = torch.nan_to_num(self.fresh.amax(1), neginf=0.0)
        weight = torch.exp(self.fresh - top[:, None]).unflatten(1, (self.randomisations, -1))
        means = weight.mean(2)
        if self.control is None or self.randomisations == 1:
            return top, means
        away = self.control.unflatten(1, (self.randomisations, -1)) - 1.0

        def others(sums: Tensor) -> Tensor:
            return sums.sum(1, keepdim=True) - sums

        count = weight.shape[2] * (self.randomisations - 1)
        rest, off = others(weight.sum(2)) / count, others(away.sum(2)) / count
        covariance = others((weight * away).sum(2)) / count - rest * off
        variance = others(away.square().sum(2)) / count - off.square()
        covariance = torch.where(variance > 0, covariance, 0.0)
        variance = torch.where(variance > 0, variance, 1.0)
        better = means - covariance / variance * away.mean(2)
        return top, torch.where(better.sum(1, keepdim=True) > 0, better, means)

    def log_integral(self) -> Tensor:
        """Returns the log of the mean weight, (C,)."""
        top, means = self._means
        return top + torch.log(means.mean(1))

    def standard_error(self) -> Tensor:
        """Returns the spread of the randomisations' means over their mean, (C,)."""
        _, means = self._means
        if self.randomisations == 1:
            return means.new_full((len(means),), math.nan)
        error = means.std(-1) / means.mean(-1) / math.sqrt(self.randomisations)
        if self.may_have_gaps:  # K points may miss a region with less than 1/K of the mass
            error = (error**2 + 1.0 / self.fresh.shape[1] ** 2).sqrt()
        return torch.nan_to_num(error, nan=math.inf).clamp(min=SMALLEST_STATED_ERROR)

    def effective_size(self) -> Tensor:
        """Returns (Σ w)² / Σ w², (C,)."""
        return effective_size(self.fresh)

    def draw(self, count: int, generator: Generator, *, even: bool = False) -> Tensor:
        """Resamples points by their weights, (H, count)."""
        weight = torch.softmax(self.log_weight, -1)
        upto = torch.nan_to_num(weight, nan=1.0).cumsum(-1)
        place = uniform_numbers((len(weight), count), generator, weight)
        if even:
            place = (place + torch.arange(count, device=place.device)) / count
        chosen = torch.searchsorted(upto, place * upto[:, -1:]).clamp(max=weight.shape[-1] - 1)
        return self.values.gather(1, chosen[self.components.cell_component])

    def expected_log_factors(
        self, model: StructuralModel, values: Tensor, weight: Tensor
    ) -> Tensor:
        """Averages over all points by their weights."""
        share = torch.nan_to_num(torch.softmax(self.log_weight.detach(), -1), nan=0.0)
        log_joint = Sweep(model, values, self.components).log_joint(self.values.detach())
        log_joint = torch.where(share > 0, log_joint, 0.0)  # points of no weight may be anywhere
        return (weight[:, None] * share * log_joint).sum()

    def select(self, keep: Tensor, below_target: int = 0) -> WeightedDraws:
        """Returns the integrals of some of the components, (C,) True where kept."""
        if keep.all():
            return replace(self, below_target=below_target)
        return replace(
            self,
            components=self.components.select(keep),
            values=self.values[keep[self.components.cell_component]],
            log_weight=self.log_weight[keep],
            control=None if self.control is None else self.control[keep],
            below_target=below_target,
        )


Accept = Callable[[WeightedDraws], Tensor]
"""Says for each component whether its integral is good enough, (C,)."""


def memory_parts(components: Components, effort: Effort) -> Tensor:
    """Numbers the components by parts that each fit into memory, (C,).

    Components that begin at the same nodes go together, so that the parts of a large graph visit
    few nodes each, and all parts together make no more calls to mechanisms than one would.
    """
    points, most = effort.draws * effort.randomisations, effort.cells_at_once
    if len(components.cell_node) * points <= most:
        return torch.zeros_like(components.row)
    order = torch.argsort(components.node, stable=True)
    part = torch.empty_like(order)
    part[order] = components.size[order].cumsum(0) * points // most
    return part.unique(return_inverse=True)[1]


def chunks(components: Components, keep: Tensor, effort: Effort) -> Iterator[Tensor]:
    """Splits the kept components into parts that fit into memory; yields what to keep, (C,)."""
    if not keep.any():
        return
    part = memory_parts(components, effort)
    for number in part[keep].unique().tolist():
        yield keep & (part == number)
