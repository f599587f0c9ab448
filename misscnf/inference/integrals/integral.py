r"""What an integral over hidden nodes returns: values of the hidden cells, and their weights.

Points u_k from a proposal q have the weights w_k = N(u_k; 0, I) e(u_k) / q(u_k), so that

    E_u [e] ≈ (1/K) Σ_k w_k,      p(u | x_O) ≈ Σ_k w_k δ(u_k) / Σ_k w_k.

The points come in R independent randomisations of equal size; their spread is the standard error
(a single randomisation has none), and (Σ w)² / Σ w² counts the draws that matter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from misscnf.draws import uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.sweep import Sweep
from misscnf.model import StructuralModel

__all__ = [
    "Accept",
    "Integral",
    "Effort",
    "WeightedDraws",
    "chunks",
    "parts",
    "effective_draws",
]

SMALLEST_STATED_ERROR = 1e-9
"""Below this, rounding decides and not the randomisations."""


@dataclass(frozen=True)
class Effort:
    """How hard to work on what cannot be integrated in closed form."""

    draws: int = 64
    """Points in one randomisation."""
    randomisations: int = 1
    """Independent randomisations; the standard error needs several."""
    least_effective: float = 20.0
    """Draws double until so many of them matter."""
    tolerance: float | None = None
    """Draws double until the standard error of a component is below this too."""
    limit: int = 4096
    """The most points a component gets in one randomisation; falling short is said."""
    pilot_draws: int = 0
    """Points of the prior, over all randomisations, that a component of few nodes may get before
    a guide is tried: what they do not see, a guide will not propose."""
    adapt: bool = True
    """Whether draws follow need; otherwise exactly `draws` from the prior."""
    tail: float = 1e-6
    """Sums over counts leave out at most so much of their mass."""
    independent: bool = False
    """Whether points are independent (the paper's) instead of quasi-random."""
    closed_form: bool = True
    """Whether linear-Gaussian components are integrated in closed form."""

    def doubled(self) -> Effort:
        """Returns the same effort with twice the draws, up to the limit."""
        return replace(self, draws=min(2 * self.draws, max(self.limit, self.draws)))


class Integral(Protocol):
    """Some components with their integrals and their posterior draws."""

    @property
    def components(self) -> Components:
        """What is integrated."""

    def log_integral(self) -> Tensor:
        """Returns log E_u[e], (C,)."""

    def standard_error(self) -> Tensor:
        """Returns the standard error of the log-integral, (C,); nan where it is unknown."""

    def effective_size(self) -> Tensor:
        """Returns how many draws matter, (C,); infinite where the integral is exact."""

    @property
    def below_target(self) -> int:
        """How many components got fewer effective draws than asked for."""

    def draw(self, count: int, generator: torch.Generator, *, even: bool = False) -> Tensor:
        """Returns posterior draws of the hidden cells, (H, count).

        Arguments:
            count: Draws of each component.
            generator: Where randomness comes from.
            even: Whether the draws of a component are spread evenly over its posterior (for
                averages) instead of independent (for imputations).
        """

    def expected_log_factors(
        self, model: StructuralModel, values: Tensor, weight: Tensor
    ) -> Tensor:
        """Returns Σ_c weight_c E[Σ_i log φ_i | x_O] over the components' factors.

        The posterior is held fixed: by Fisher's identity, the gradient by the parameters is that
        of the log-integrals.

        Arguments:
            model: The structural model.
            values: (N, d) the values that the components were integrated with.
            weight: (C,)
        """


def effective_draws(log_weight: Tensor) -> Tensor:
    """Returns (Σ w)² / Σ w² along the last axis; 0 where every weight is zero."""
    count = 2.0 * torch.logsumexp(log_weight, -1) - torch.logsumexp(2.0 * log_weight, -1)
    return torch.nan_to_num(count.exp(), nan=0.0)


@dataclass(frozen=True)
class WeightedDraws:
    """Weighted points: K = replicates × draws of each component."""

    components: Components
    values: Tensor
    """(H, K) values of the hidden cells."""
    log_weight: Tensor
    """(C, K)"""
    randomisations: int = 1
    below_target: int = 0
    """How many components got fewer effective draws than asked for."""
    patchy: bool = False
    """Whether some stretch of the proposal may be too thin for any of the points to fall on it."""
    revisited: bool = False
    """Whether the last point is one where the row was before: it may be drawn again, but says
    nothing of the integral."""

    @property
    def fresh(self) -> Tensor:
        """The log-weights of the points that the proposal gave, (C, K)."""
        return self.log_weight[:, :-1] if self.revisited else self.log_weight

    def log_integral(self) -> Tensor:
        """Returns the log of the mean weight, (C,)."""
        return torch.logsumexp(self.fresh, -1) - math.log(self.fresh.shape[-1])

    def standard_error(self) -> Tensor:
        """Returns the spread of the randomisations' means over their mean, (C,)."""
        count, total = self.fresh.shape
        if self.randomisations == 1:
            return self.fresh.new_full((count,), math.nan)
        parts = self.fresh.reshape(count, self.randomisations, total // self.randomisations)
        means = torch.logsumexp(parts, -1)
        ratio = torch.exp(means - torch.logsumexp(means, -1, keepdim=True)) * self.randomisations
        error = ratio.std(-1) / math.sqrt(self.randomisations)
        if self.patchy:  # a stretch with less than 1/K of the mass is missed by K points
            error = (error**2 + 1.0 / total**2).sqrt()
        return torch.nan_to_num(error, nan=math.inf).clamp(min=SMALLEST_STATED_ERROR)

    def effective_size(self) -> Tensor:
        """Returns (Σ w)² / Σ w², (C,)."""
        return effective_draws(self.fresh)

    def draw(self, count: int, generator: torch.Generator, *, even: bool = False) -> Tensor:
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
        """Returns the block of some of the components, (C,) True where kept."""
        if keep.all():
            return replace(self, below_target=below_target)
        return WeightedDraws(
            self.components.select(keep),
            self.values[keep[self.components.cell_component]],
            self.log_weight[keep],
            self.randomisations,
            below_target,
            self.patchy,
            self.revisited,
        )


Accept = Callable[[WeightedDraws], Tensor]
"""Says for each component whether its integral is good enough, (C,)."""


BUDGET = 2**22
"""Cells × points that one sweep may hold: it bounds memory."""


def parts(components: Components, effort: Effort) -> Tensor:
    """Numbers the components by parts that each fit the budget, (C,).

    Components that begin at the same nodes go together, so that the parts of a large graph visit
    few nodes each, and all parts together make no more calls to mechanisms than one would.
    """
    if len(components.cell_node) * effort.draws * effort.randomisations <= BUDGET:
        return torch.zeros_like(components.row)
    order = torch.argsort(components.node, stable=True)
    points = components.size[order].cumsum(0) * (effort.draws * effort.randomisations)
    part = torch.empty_like(order)
    part[order] = points // BUDGET
    return part.unique(return_inverse=True)[1]


def chunks(components: Components, keep: Tensor, effort: Effort) -> Iterator[Tensor]:
    """Splits the kept components into parts that fit the budget; yields keeps, (C,)."""
    if not keep.any():
        return
    part = parts(components, effort)
    for number in part[keep].unique().tolist():
        yield keep & (part == number)
