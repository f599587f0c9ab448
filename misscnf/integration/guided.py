r"""Guided draws where a component holds several hidden nodes.

Draws from the prior come first. Where too few of them matter, their weighted mean and covariance
make a Gaussian guide g in noise space, and new points come from a defensive mixture

    q(u) = (1 − α) g(u) + α N(u; 0, I),

weighed by N(u; 0, I) e(u) / q(u). Guides are refined and draws doubled until enough matter. Points
of one round never make the guide of that round, so that each estimate is unbiased.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from misscnf.elimination import Components
from misscnf.integration.blocks import Accept, Effort, WeightedDraws, chunks, effective_draws
from misscnf.integration.prior import random_scores
from misscnf.integration.sweep import Sweep
from misscnf.mechanisms import standard_normal_log_prob
from misscnf.structural import StructuralModel

__all__ = ["guided_draws"]

PRIOR_SHARE = 1 / 32
"""α: so many of the points still come from the prior."""
INFLATION = 1.2
"""Guides are a little wider than what they follow: too wide costs less than too narrow."""


class _Guide(NamedTuple):
    """A Gaussian for each component, padded by standard normals to the largest size m."""

    mean: Tensor
    """(C, m)"""
    root: Tensor
    """(C, m, m) lower triangular"""

    def points(self, scores: Tensor) -> Tensor:
        """Carries standard normal points (C, K, m) into the guide."""
        return self.mean[:, None, :] + scores @ self.root.transpose(1, 2)

    def log_density(self, points: Tensor) -> Tensor:
        """Returns log g at points (C, K, m), shape (C, K)."""
        eye = torch.eye(self.mean.shape[1], device=points.device, dtype=points.dtype)
        inverse = torch.linalg.solve_triangular(self.root, eye.expand_as(self.root), upper=False)
        scores = (points - self.mean[:, None, :]) @ inverse.transpose(1, 2)
        log_det = self.root.diagonal(dim1=1, dim2=2).log().sum(1)
        return standard_normal_log_prob(scores).sum(-1) - log_det[:, None]


def guided_draws(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    generator: torch.Generator,
    accept: Accept,
    guide: _Guide | None = None,
) -> Iterator[WeightedDraws]:
    """Yields blocks of components, those that the limit cut short included.

    Each round accepts what is good and passes the rest, with its guides, on to the next.
    """
    points, log_ratio = _propose(components, effort, generator, values, guide)
    noise = points[components.cell_component, :, components.slots()]
    hidden, log_evidence = Sweep(model, values, components)(noise)
    block = WeightedDraws(components, hidden, log_evidence + log_ratio, effort.replicates)
    done = accept(block)
    short = 0
    if effort.draws >= effort.limit:
        short, done = int((~done).sum()), torch.ones_like(done)
    if done.any():
        yield block.select(done, short)
    for keep in chunks(components, ~done, effort):
        part = components.select(keep)
        used = points[keep][..., : int(part.size.max())]
        better = _fit_guide(part, used, block.log_weight[keep])
        more = effort if guide is None else effort.doubled()  # the first guide gets a chance
        yield from guided_draws(model, values, part, more, generator, accept, better)


def _propose(
    components: Components,
    effort: Effort,
    generator: torch.Generator,
    like: Tensor,
    guide: _Guide | None,
) -> tuple[Tensor, Tensor]:
    """Returns points (C, K, m) and log N(u; 0, I) / q(u) at them, (C, K)."""
    scores = random_scores(components, effort, generator, like)
    if guide is None:
        return scores, scores.new_zeros(scores.shape[:2])
    # A set of its own for the prior, smaller by PRIOR_SHARE: parts of one set are not even.
    fewer = replace(effort, draws=max(1, round(PRIOR_SHARE * effort.draws)))
    kept = random_scores(components, fewer, generator, like)
    parts = [part.unflatten(1, (effort.replicates, -1)) for part in (guide.points(scores), kept)]
    points = torch.cat(parts, dim=2).flatten(1, 2)
    share = fewer.draws / (fewer.draws + effort.draws)
    log_prior = standard_normal_log_prob(points).sum(-1)
    log_guide = guide.log_density(points)
    log_q = torch.logaddexp(math.log(share) + log_prior, math.log1p(-share) + log_guide)
    return points, log_prior - log_q


def _fit_guide(components: Components, points: Tensor, log_weight: Tensor) -> _Guide:
    """Matches mean and covariance of weighted points, tempered until enough of them count."""
    m = points.shape[-1]
    # Where no point has any weight, the guide stays where the points are.
    lost = (log_weight == -torch.inf).all(-1, keepdim=True)
    log_weight = torch.where(lost, 0.0, log_weight)
    weight = torch.softmax(_temper(log_weight, components.size), dim=-1)
    mean = torch.einsum("ck,ckm->cm", weight, points)
    centred = points - mean[:, None, :]
    covariance = torch.einsum("ck,ckm,ckn->cmn", weight, centred, centred)
    # Few points know little about a covariance: shrink it towards its diagonal.
    count = effective_draws(torch.log(weight))[:, None, None]
    shrink = m / (m + count)
    diagonal = torch.diag_embed(covariance.diagonal(dim1=1, dim2=2) + 1e-6)
    covariance = INFLATION * ((1 - shrink) * covariance + shrink * diagonal)
    used = torch.arange(m, device=points.device) < components.size[:, None]
    mean = torch.where(used, mean, 0.0)
    both = used[:, :, None] & used[:, None, :]
    eye = torch.eye(m, device=points.device, dtype=points.dtype)
    covariance = torch.where(both, covariance, eye)
    return _Guide(mean, torch.linalg.cholesky(covariance))


def _temper(log_weight: Tensor, size: Tensor) -> Tensor:
    """Flattens weights by a power β ≤ 1 until about 2m + 4 points count, by bisection."""
    log_weight = log_weight - log_weight.amax(-1, keepdim=True)
    enough = (2 * size + 4).clamp(max=log_weight.shape[-1] // 2)
    whole = (effective_draws(log_weight) >= enough)[:, None]
    if whole.all():
        return log_weight
    low, high = torch.zeros_like(log_weight[:, :1]), torch.ones_like(log_weight[:, :1])
    for _ in range(10):
        middle = 0.5 * (low + high)
        flat_enough = (effective_draws(middle * log_weight) >= enough)[:, None]
        low, high = torch.where(flat_enough, middle, low), torch.where(flat_enough, high, middle)
    flat = torch.where(log_weight.isfinite(), low * log_weight, -torch.inf)
    return torch.where(whole, log_weight, flat)
