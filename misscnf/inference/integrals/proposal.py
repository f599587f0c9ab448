r"""Guides: Gaussian mixtures in noise space that follow weighted points.

Points u_k with weights w_k show where a posterior lies, and a proposal for the next round is

    g(u) = Σ_j π_j N(u; μ_j, S_j),

with (π, μ, S) by weighted maximum likelihood (population Monte Carlo: Cappé et al. 2008). One
Gaussian does for one mode. A child that does not rise all the way with its parent, as x² does,
leaves two, and a Gaussian that has found one of them never proposes the other; so where the points
are more likely by a mixture, by more than its numbers are worth (half of Akaike's), it is used.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from misscnf.inference.elimination import Components
from misscnf.inference.integrals.integral import effective_draws
from misscnf.mechanisms import standard_normal_log_prob

__all__ = ["Guide", "fit_guide"]

INFLATION = 1.2
"""Guides are a little wider than what they follow: too wide costs less than too narrow."""
PARTS = 4
MOST_NODES = 4
"""Components with more hidden nodes get one Gaussian: few points say nothing of modes there."""
WIDE_SHARE = 0.25
"""Of the one Gaussian beside a mixture."""
ROUNDS = 2
MOST_POINTS = 256
"""Of more points, so many are resampled before a guide is fitted."""
LEAST_SHARE = 0.05
"""Of a part of the mixture, so that a mode that few points have seen is looked at again."""


class Guide(NamedTuple):
    """A mixture of J Gaussians for each component, padded by standard normals to size m."""

    share: Tensor
    """(C, J), sums to one"""
    mean: Tensor
    """(C, J, m)"""
    root: Tensor
    """(C, J, m, m) lower triangular"""
    firm: Tensor
    """(C,) whether enough points made it, without flattening their weights"""

    def points(self, scores: Tensor, place: Tensor) -> Tensor:
        """Carries standard normal points into the guide.

        Arguments:
            scores: (C, K, m).
            place: (C, K) uniform numbers that choose the part of each.
        """
        part = torch.searchsorted(self.share.cumsum(1), place).clamp(max=self.share.shape[1] - 1)
        points = torch.zeros_like(scores)
        for j in range(self.share.shape[1]):
            moved = self.mean[:, j, None, :] + scores @ self.root[:, j].transpose(1, 2)
            points = torch.where((part == j)[..., None], moved, points)
        return points

    def log_density(self, points: Tensor) -> Tensor:
        """Returns log g at points (C, K, m), shape (C, K)."""
        return torch.logsumexp(_log_parts(points, self.share, self.mean, self.root), -1)


def fit_guide(components: Components, points: Tensor, log_weight: Tensor) -> Guide:
    """Fits a guide to weighted points, flattened until enough of them count.

    Arguments:
        components: What is hidden.
        points: (C, K, m).
        log_weight: (C, K).
    """
    m = points.shape[-1]
    # Where no point has any weight, the guide stays where the points are.
    lost = (log_weight == -torch.inf).all(-1, keepdim=True)
    log_weight = torch.where(lost, 0.0, log_weight)
    flat, firm = _temper(log_weight, components.size)
    weight = torch.softmax(flat, dim=-1)
    count = effective_draws(flat)
    points, weight = _fewer(points, weight)
    used = torch.arange(m, device=points.device) < components.size[:, None]
    points = torch.where(used[:, None, :], points, 0.0)
    firm &= ~lost[:, 0]
    one = Guide(*_mixture(points, weight, torch.ones_like(weight)[..., None], used, count), firm)
    if m > MOST_NODES:
        return one
    belongs = _slabs(points, weight)
    for _ in range(ROUNDS):
        mixture = _mixture(points, weight, belongs, used, count)
        belongs = torch.softmax(_log_parts(points, *mixture), -1)
    several = Guide(*_mixture(points, weight, belongs, used, count), firm)
    gain = (weight * (several.log_density(points) - one.log_density(points))).sum(1)
    more_numbers = (PARTS - 1) * (1 + m + m * (m + 1) / 2)
    return _together(one, several, count * gain > 0.5 * more_numbers)


def _together(one: Guide, several: Guide, pays: Tensor) -> Guide:
    """Puts a mixture beside the one Gaussian where it pays (C,), and lets it stand alone else."""
    # The wide Gaussian stays a part: between narrow ones a proposal must not be thin.
    alone = torch.where(pays, WIDE_SHARE, 1.0).to(one.share)[:, None]
    return Guide(
        torch.cat([alone, (1.0 - alone) * several.share], 1),
        torch.cat([one.mean, several.mean], 1),
        torch.cat([one.root, several.root], 1),
        one.firm,
    )


def _fewer(points: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Resamples many points evenly to few of equal weight."""
    if weight.shape[1] <= MOST_POINTS:
        return points, weight
    place = (torch.arange(MOST_POINTS, device=weight.device).to(weight) + 0.5) / MOST_POINTS
    upto = weight.cumsum(-1)
    chosen = torch.searchsorted(upto, place * upto[:, -1:]).clamp(max=weight.shape[1] - 1)
    few = points.gather(1, chosen[..., None].expand(-1, -1, points.shape[-1]))
    return few, torch.full_like(chosen, 1.0 / MOST_POINTS, dtype=weight.dtype)


def _slabs(points: Tensor, weight: Tensor) -> Tensor:
    """Cuts points into slabs of equal weight along their longest axis, (C, K, J) of 0 and 1."""
    mean = torch.einsum("ck,ckm->cm", weight, points)
    centred = points - mean[:, None, :]
    covariance = torch.einsum("ck,ckm,ckn->cmn", weight, centred, centred)
    axis = torch.linalg.eigh(covariance).eigenvectors[..., -1]
    order = torch.einsum("ckm,cm->ck", centred, axis).argsort(-1)
    sorted_weight = weight.gather(1, order)
    middle = sorted_weight.cumsum(-1) - 0.5 * sorted_weight
    slab = torch.empty_like(order).scatter_(1, order, (middle * PARTS).long().clamp(0, PARTS - 1))
    return torch.nn.functional.one_hot(slab, PARTS).to(points)


def _mixture(
    points: Tensor, weight: Tensor, belongs: Tensor, used: Tensor, count: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns shares, means and roots of Gaussians.

    Arguments:
        points: (C, K, m).
        weight: (C, K), sums to one.
        belongs: (C, K, J) how much of a point belongs to which part.
        used: (C, m) which numbers of its points a component has.
        count: (C,) how many points count.
    """
    m = points.shape[-1]
    mine = weight[..., None] * belongs
    share = mine.sum(1).clamp(min=1e-6)
    mean = torch.einsum("ckj,ckm->cjm", mine, points) / share[..., None]
    centred = points[:, None] - mean[:, :, None]
    covariance = torch.einsum("ckj,cjkm,cjkn->cjmn", mine, centred, centred)
    within = covariance.sum(1, keepdim=True)
    covariance = covariance / share[..., None, None]
    # Few points know little about a covariance: shrink it towards the common one, and that to
    # its diagonal.
    count = count[:, None, None, None]
    whole = m / (m + count)
    eye = torch.eye(m, device=points.device, dtype=points.dtype)
    within = (1 - whole) * within + whole * within * eye
    shrink = m / (m + count * share[..., None, None]) if belongs.shape[-1] > 1 else 1.0
    covariance = (1 - shrink) * covariance + shrink * within + 1e-6 * eye
    both = used[:, None, :, None] & used[:, None, None, :]
    covariance = torch.where(both, INFLATION * covariance, eye)
    share = share.clamp(min=LEAST_SHARE)
    return share / share.sum(1, keepdim=True), mean, torch.linalg.cholesky(covariance)


def _log_parts(points: Tensor, share: Tensor, mean: Tensor, root: Tensor) -> Tensor:
    """Returns log π_j N(u; μ_j, S_j) at points (C, K, m), shape (C, K, J)."""
    eye = torch.eye(points.shape[-1], device=points.device, dtype=points.dtype)
    inverse = torch.linalg.solve_triangular(root, eye.expand_as(root), upper=False)
    log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    found = []
    for j in range(share.shape[1]):
        scores = (points - mean[:, j, None, :]) @ inverse[:, j].transpose(1, 2)
        constant = (share[:, j].log() - log_det[:, j])[:, None]
        found.append(standard_normal_log_prob(scores).sum(-1) + constant)
    return torch.stack(found, -1)


def _temper(log_weight: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Flattens weights by a power β ≤ 1 until about 2m + 4 points count, by bisection.

    Returns:
        The log-weights, and whether they were flat enough as they came, (C,).
    """
    log_weight = log_weight - log_weight.amax(-1, keepdim=True)
    enough = (2 * size + 4).clamp(max=log_weight.shape[-1] // 2)
    firm = effective_draws(log_weight) >= enough
    if firm.all():
        return log_weight, firm
    low, high = torch.zeros_like(log_weight[:, :1]), torch.ones_like(log_weight[:, :1])
    for _ in range(10):
        middle = 0.5 * (low + high)
        flat_enough = (effective_draws(middle * log_weight) >= enough)[:, None]
        low, high = torch.where(flat_enough, middle, low), torch.where(flat_enough, high, middle)
    flat = torch.where(log_weight.isfinite(), low * log_weight, -torch.inf)
    return torch.where(firm[:, None], log_weight, flat), firm
