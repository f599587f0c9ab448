r"""Proposals of importance sampling: Gaussian mixtures in noise space, fitted to weighted points.

Points u_k with weights w_k show where a posterior lies, and a proposal for the next round is

    g(u) = Σ_j π_j N(u; μ_j, S_j),

with (π, μ, S) by weighted maximum likelihood (population Monte Carlo: Cappé et al. 2008). One
Gaussian does for one mode. A child that does not rise all the way with its parent, as x² does,
leaves two modes, and a Gaussian that has found one of them never proposes the other. So a mixture
is used where the points are more likely by it, by more than its further parameters cost
(`ImportanceRules.penalty`).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from misscnf.inference.elimination import Components
from misscnf.inference.integrals.effort import ImportanceRules
from misscnf.inference.integrals.integral import effective_size
from misscnf.mechanisms import standard_normal_log_prob

__all__ = ["Proposal", "fit_proposal"]


class Proposal(NamedTuple):
    """A mixture of J Gaussians for each component, padded by standard normals to size m."""

    share: Tensor
    """(C, J), sums to one"""
    mean: Tensor
    """(C, J, m)"""
    root: Tensor
    """(C, J, m, m) lower triangular"""
    untempered: Tensor
    """(C,) whether it was fitted to enough effective points by their weights as they are"""

    def points(self, scores: Tensor, place: Tensor) -> Tensor:
        """Carries standard normal points (C, K, m) to the Gaussians at uniform places (C, K)."""
        part = torch.searchsorted(self.share.cumsum(1), place).clamp(max=self.share.shape[1] - 1)
        points = torch.zeros_like(scores)
        for j in range(self.share.shape[1]):
            moved = self.mean[:, j, None, :] + scores @ self.root[:, j].transpose(1, 2)
            points = torch.where((part == j)[..., None], moved, points)
        return points

    def log_density(self, points: Tensor) -> Tensor:
        """Returns log g at points (C, K, m), shape (C, K)."""
        return torch.logsumexp(self.log_parts(points), -1)

    def log_parts(self, points: Tensor) -> Tensor:
        """Returns log π_j N(u; μ_j, S_j) at points (C, K, m), shape (C, K, J)."""
        root = self.root
        eye = torch.eye(points.shape[-1], device=points.device, dtype=points.dtype)
        inverse = torch.linalg.solve_triangular(root, eye.expand_as(root), upper=False)
        log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        found = []
        for j in range(self.share.shape[1]):
            scores = (points - self.mean[:, j, None, :]) @ inverse[:, j].transpose(1, 2)
            constant = (self.share[:, j].log() - log_det[:, j])[:, None]
            found.append(standard_normal_log_prob(scores).sum(-1) + constant)
        return torch.stack(found, -1)


def fit_proposal(
    components: Components, points: Tensor, log_weight: Tensor, rules: ImportanceRules
) -> Proposal:
    """Fits a proposal to weighted points, tempered until enough of them are effective.

    Arguments:
        components: What is hidden.
        points: (C, K, m).
        log_weight: (C, K).
        rules: How proposals are made.
    """
    m = points.shape[-1]
    # Where no point has any weight, the proposal stays where the points are.
    lost = (log_weight == -torch.inf).all(-1, keepdim=True)
    log_weight = torch.where(lost, 0.0, log_weight)
    tempered, untempered = _temper(log_weight, components.size, rules)
    weight = torch.softmax(tempered, dim=-1)
    count = effective_size(tempered)
    points, weight = _resample(points, weight, rules.most_points)
    used = torch.arange(m, device=points.device) < components.size[:, None]
    points = torch.where(used[:, None, :], points, 0.0)
    untempered &= ~lost[:, 0]

    def maximised(responsibility: Tensor) -> Proposal:
        return Proposal(*_maximise(points, weight, responsibility, used, count, rules), untempered)

    one = maximised(torch.ones_like(weight)[..., None])
    if m > rules.most_nodes:
        return one
    several = maximised(_strata(points, weight, rules.parts))
    for _ in range(rules.em_steps):
        several = maximised(torch.softmax(several.log_parts(points), -1))
    difference = (weight * (several.log_density(points) - one.log_density(points))).sum(1)
    more_parameters = (rules.parts - 1) * (1 + m + m * (m + 1) / 2)
    pays = count * difference > rules.penalty * more_parameters
    return _together(one, several, pays, rules.wide_share)


def _together(one: Proposal, several: Proposal, pays: Tensor, wide_share: float) -> Proposal:
    """Adds a mixture to the one Gaussian where it pays, (C,); elsewhere its parts get no share."""
    alone = torch.where(pays, wide_share, 1.0).to(one.share)[:, None]
    return Proposal(
        torch.cat([alone, (1.0 - alone) * several.share], 1),
        torch.cat([one.mean, several.mean], 1),
        torch.cat([one.root, several.root], 1),
        one.untempered,
    )


def _resample(points: Tensor, weight: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """Resamples more than `most` points systematically to so many of equal weight."""
    if weight.shape[1] <= most:
        return points, weight
    place = (torch.arange(most, device=weight.device).to(weight) + 0.5) / most
    upto = weight.cumsum(-1)
    chosen = torch.searchsorted(upto, place * upto[:, -1:]).clamp(max=weight.shape[1] - 1)
    few = points.gather(1, chosen[..., None].expand(-1, -1, points.shape[-1]))
    return few, torch.full_like(chosen, 1.0 / most, dtype=weight.dtype)


def _strata(points: Tensor, weight: Tensor, parts: int) -> Tensor:
    """Cuts points into strata of equal weight along their first principal axis.

    (C, K, J) of 0 and 1: the responsibilities that expectation-maximisation starts from.
    """
    mean = torch.einsum("ck,ckm->cm", weight, points)
    centred = points - mean[:, None, :]
    covariance = torch.einsum("ck,ckm,ckn->cmn", weight, centred, centred)
    axis = torch.linalg.eigh(covariance).eigenvectors[..., -1]
    order = torch.einsum("ckm,cm->ck", centred, axis).argsort(-1)
    sorted_weight = weight.gather(1, order)
    middle = sorted_weight.cumsum(-1) - 0.5 * sorted_weight
    number = (middle * parts).long().clamp(0, parts - 1)
    stratum = torch.empty_like(order).scatter_(1, order, number)
    return torch.nn.functional.one_hot(stratum, parts).to(points)


def _maximise(
    points: Tensor,
    weight: Tensor,
    responsibility: Tensor,
    used: Tensor,
    count: Tensor,
    rules: ImportanceRules,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns shares, means and roots of Gaussians: the M-step, with shrunk covariances.

    A point (C, K, m), of whose numbers (C, m) are used, belongs to J Gaussians by its
    responsibility (C, K, J); count (C,) is the effective size of the points.
    """
    m = points.shape[-1]
    mine = weight[..., None] * responsibility
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
    shrink = m / (m + count * share[..., None, None]) if responsibility.shape[-1] > 1 else 1.0
    covariance = (1 - shrink) * covariance + shrink * within + 1e-6 * eye
    both = used[:, None, :, None] & used[:, None, None, :]
    covariance = torch.where(both, rules.inflation * covariance, eye)
    share = share.clamp(min=rules.least_share)
    return share / share.sum(1, keepdim=True), mean, torch.linalg.cholesky(covariance)


def _temper(log_weight: Tensor, size: Tensor, rules: ImportanceRules) -> tuple[Tensor, Tensor]:
    """Raises weights to a power β ≤ 1, found by bisection, that leaves enough effective points.

    Returns also whether enough points were effective as they came, (C,).
    """
    log_weight = log_weight - log_weight.amax(-1, keepdim=True)
    enough = rules.points_a_node * size + rules.points_at_least
    enough = enough.clamp(max=log_weight.shape[-1] // 2)
    untempered = effective_size(log_weight) >= enough
    if untempered.all():
        return log_weight, untempered
    low, high = torch.zeros_like(log_weight[:, :1]), torch.ones_like(log_weight[:, :1])
    for _ in range(10):
        middle = 0.5 * (low + high)
        flat = (effective_size(middle * log_weight) >= enough)[:, None]
        low, high = torch.where(flat, middle, low), torch.where(flat, high, middle)
    tempered = torch.where(log_weight.isfinite(), low * log_weight, -torch.inf)
    return torch.where(untempered[:, None], log_weight, tempered), untempered
