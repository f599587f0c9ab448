r"""Proposals that look ahead: Gaussian in the noise of each cell, given the values before it.

Around a mode ĥ of the integrand (`linearisation`) the hidden values are nearly normal with the
precision Λ = LᵀL, L lower triangular, so that δ = h − ĥ goes along the graph by

    δ_i | δ_<i ~ N(e_i, 1 / L_ii²),    e_i = (y_i − Σ_{j<i} L_ij δ_j) / L_ii,    Lᵀ y = g.

Read as a law of the noise u_i, this is the noise's own N(0, 1) times what the evidence further
down says of h_i. The second is taken from the linearisation; the mechanism is not. With b_i the
slope of u_i in h_i, and ρ_i = f_i(û_i; h_pa) − ĥ_i what the parents as drawn have moved,

    u_i | h_<i ~ N( û_i + b_i (e_i − ρ_i) + (b_i³ / L_ii²) (ρ_i − ρ_i^lin),  b_i² / L_ii² ).

So where evidence is weak the proposal is the prior, bent as the mechanisms bend it; where it is
sharp the values are held where it wants them; and where all is linear-Gaussian it is the
posterior. (Optimal control has the same law: a rollout under the feedback of the linearised
problem.) Its path without scores is the next point of the search for a mode, so that a search and
a draw are one function.

Several modes make a mixture Σ_j π_j g_j(u), each with the mass of its Laplace approximation,

    log π_j = F(ĥ_j) + ½ g · Λ⁻¹ g − Σ_i log (L_ii / b_i) + const.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from misscnf.inference.integrals.linearisation import Linearisation
from misscnf.inference.integrals.sweep import Sweep

__all__ = ["Guide", "GuidedPoints"]


class GuidedPoints(NamedTuple):
    """What a sweep under a guide returns. K points of each component."""

    noise: Tensor
    """(C, K, m)"""
    values: Tensor
    """(H, K)"""
    log_evidence: Tensor
    """(C, K)"""
    log_parts: Tensor
    """(C, K, J) log g_j(u), up to (2π)^(m/2)"""


class Guide(NamedTuple):
    """J proposals for each component, padded by standard normal noise to size m."""

    centre: Tensor
    """(C, J, m) ĥ"""
    noise: Tensor
    """(C, J, m) û"""
    constant: Tensor
    """(C, J, m) the mean of the noise where nothing has moved"""
    feedback: Tensor
    """(C, J, m, m) by how much it changes with the values before it: strictly lower triangular"""
    response: Tensor
    """(C, J, m) and with what the parents make of û"""
    root: Tensor
    """(C, J, m) standard deviations of the noise"""
    log_share: Tensor
    """(C, J) log π_j; Laplace's approximation of the masses as long as they are not normalised"""

    @staticmethod
    def of(at: Linearisation, damping: Tensor | None = None) -> Guide:
        """Makes the guide of a linearisation; damped (C, J), it moves less."""
        own = at.slopes.diagonal(dim1=-2, dim2=-1)
        precision = at.precision
        if damping is not None:
            more = damping[..., None] * precision.diagonal(dim1=-2, dim2=-1)
            precision = precision + torch.diag_embed(more)
        lower = _reverse_cholesky(precision, own)
        diagonal = lower.diagonal(dim1=-2, dim2=-1)
        y = torch.linalg.solve_triangular(
            lower.transpose(-1, -2), at.gradient[..., None], upper=True
        )[..., 0]
        square = (own / diagonal) ** 2
        before = torch.tril(lower, -1) / diagonal[..., None]
        feedback = square[..., None] * torch.tril(at.slopes, -1) - own[..., None] * before
        constant = at.noise + own / diagonal * y
        root = own / diagonal
        log_share = at.log_target + 0.5 * y.square().sum(-1) + root.log().sum(-1)
        response = own * (square - 1.0)
        return Guide(at.centre, at.noise, constant, feedback, response, root, log_share)

    @property
    def rise(self) -> Tensor:
        """By how much the integrand rises to the top of its parabola, (C, J)."""
        return 0.5 * ((self.constant - self.noise) / self.root).square().sum(-1)

    def with_prior(self, share: Tensor) -> Guide:
        """Adds the prior as a first part, of a share (C,) of its own."""
        share = share.to(self.log_share)[:, None]
        first = [torch.zeros_like(part[:, :1]) for part in self]
        prior = Guide(*first)._replace(root=first[-2] + 1.0, log_share=share.log())
        rest = self._replace(log_share=self.log_share + torch.log1p(-share))
        return Guide(*(torch.cat(pair, 1) for pair in zip(prior, rest, strict=True)))

    def part_at(self, place: Tensor) -> Tensor:
        """Returns which part uniform numbers (C, K) fall to, (C, K)."""
        upto = self.log_share.exp().cumsum(1).to(place)
        return torch.searchsorted(upto, place).clamp(max=upto.shape[1] - 1)

    def of_some(self, components: Tensor, parts: Tensor | slice = slice(None)) -> Guide:
        """Returns the guide of some components, or some parts of it."""
        return Guide(*(part[components, parts] for part in self))

    def replaced(self, components: Tensor, other: Guide) -> Guide:
        """Returns it with that of some components (C,) replaced by another."""
        parts = max(self.root.shape[1], other.root.shape[1])
        empty = (0.0,) * 5 + (1.0, -torch.inf)  # a part without a share
        found = []
        for mine, its, fill in zip(self, other, empty, strict=True):
            whole = mine.new_full((len(mine), parts, *mine.shape[2:]), fill)
            whole[:, : mine.shape[1]] = mine
            some = torch.full_like(whole[components], fill)
            some[tuple(slice(size) for size in its.shape)] = its
            whole[components] = some
            found.append(whole)
        return Guide(*found)

    def to(self, like: Tensor) -> Guide:
        """Returns it in the precision of a tensor."""
        return Guide(*(part.to(like) for part in self))

    def sweep(
        self, sweep: Sweep, part: Tensor, scores: Tensor, held: Tensor | None = None
    ) -> GuidedPoints:
        """Carries points through the graph.

        Arguments:
            sweep: The components.
            part: (C, K) which of the J proposals moves a point; −1 where the scores are its noise.
            scores: (C, K, m) standard normal; zeros make the path of the means.
            held: (H, K) what cells without an invertible mechanism are held at, instead of drawn;
                a path of the means, whose evidence is not asked for.
        """
        c, like, (count, parts, m) = sweep.components, self.centre, self.centre.shape
        points, moves = part.shape[1], part >= 0
        offset = self.constant - (self.feedback @ self.centre[..., None])[..., 0]
        inside, noise = like.new_zeros(count, m, points), torch.zeros_like(scores)
        log_parts = like.new_zeros(count, parts, points)
        log_evidence = like.new_zeros(count, points)
        values = like.new_zeros(len(c.cell_node), points)
        for visit in sweep.visits:
            if visit.own is not None and held is not None:
                continue
            mechanism, parents = sweep.model.mechanism(visit.node), visit.parents(values)
            if visit.own is not None:
                log_evidence.index_add_(0, visit.at, mechanism.log_prob(visit.own, parents))
                continue
            of, slot = sweep.cells(visit), sweep.slot[visit.at]
            if held is not None and not mechanism.invertible:
                values[visit.at] = held[visit.at]
                continue
            mean = offset[of, :, slot, None] + self.feedback[of, :, slot] @ inside[of]
            generate = mechanism.noise_map(parents)
            if visit.cell is not None and mechanism.invertible:
                made = generate(self.noise[of, :, slot].T[..., None])
                moved = made.transpose(0, 1) - self.centre[of, :, slot, None]
                mean = mean + self.response[of, :, slot, None] * moved
            root, mine = self.root[of, :, slot, None], part[of].clamp(min=0)[:, None]
            score = scores[of, :, slot]
            drawn = mean + root * score[:, None]
            u = torch.where(moves[of], drawn.gather(1, mine)[:, 0], score)
            log_density = -0.5 * ((u[:, None] - mean) / root).square() - root.log()
            log_parts.index_add_(0, of, log_density)
            value = generate(u) if mechanism.invertible else mechanism.draw(u, parents)
            values[visit.at], noise[of, :, slot] = value, u
            if mechanism.invertible:
                inside[of, slot] = value
        return GuidedPoints(noise, values, log_evidence, log_parts.transpose(1, 2))


def _reverse_cholesky(precision: Tensor, own: Tensor) -> Tensor:
    """Returns L, lower triangular, with LᵀL the precision; the prior's where there is none."""
    root, failed = torch.linalg.cholesky_ex(torch.nan_to_num(precision).flip(-1, -2))
    lower = root.flip(-1, -2).transpose(-1, -2)
    return torch.where((failed > 0)[..., None, None], torch.diag_embed(own), lower)
