r"""Adaptive importance sampling where a component holds several hidden nodes.

Draws from the prior come first: they see every mode. Where too few of them are effective, a
component gets more as far as `Effort.pilot_draws` allows, and then a proposal g is fitted to the
weighted points (`proposal`). New points come from a defensive mixture

    q(u) = (1 − α) g(u) + α N(u; 0, I),

with the weights N(u; 0, I) e(u) / q(u). Proposals are fitted anew and draws doubled until enough
are effective. Points of one round never make the proposal of that round.

Training needs draws from the posterior rather than integrals, step after step. Resampling K points
has a bias of order 1 / effective size, and to keep only the rounds whose weights look even is to
reject the rounds that found another mode. Both errors vanish where the row's last completion is a
candidate beside the new points,

    P(next = u_k) ∝ w_k,    k = 1 … K and the last point:

a Markov chain whose stationary law is the posterior whatever q and K are (iterated sampling
importance resampling: Tjelmeland 2004; Andrieu, Lee and Vihola 2018), as long as a round does not
decide itself whether it counts. So a round with a proposal counts where the proposal was fitted to
enough effective points of the round before, and the second such round in any case. Rounds of the
prior are still accepted by their own weights: they see all modes, and a second round for every
easy row would double a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Generator, Tensor

from misscnf.draws import uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.effort import Effort, ImportanceRules
from misscnf.inference.integrals.integral import Accept, WeightedDraws, chunks
from misscnf.inference.integrals.prior import random_scores
from misscnf.inference.integrals.proposal import Proposal, fit_proposal
from misscnf.inference.integrals.sweep import Sweep
from misscnf.mechanisms import standard_normal_log_prob
from misscnf.model import StructuralModel

__all__ = ["importance_sampling"]


def importance_sampling(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    generator: Generator,
    accept: Accept,
    last: Tensor | None = None,
) -> Iterator[WeightedDraws]:
    """Yields the integrals of components, those that the limit cut short included.

    Arguments are those of `integrate`, and:
        accept: Says what has been integrated well enough.
    """
    sampler = _Sampler(model, values, effort, generator, accept, last)
    small = components.size <= effort.importance.most_nodes
    for chosen in (small, ~small):
        if chosen.any():
            yield from sampler.from_prior(components.select(chosen), effort)


@dataclass(frozen=True)
class _Round:
    """The points of a round, weighed."""

    points: Tensor
    """(C, K, m), the state of the chain last"""
    integral: WeightedDraws
    chained: Tensor
    """(C,) whether the component has a state of a chain among its points"""

    def fit_proposal(self, keep: Tensor, rules: ImportanceRules) -> tuple[Components, Proposal]:
        """Returns some components (C,), and a proposal for them fitted to the new points."""
        part, fresh = self.integral.components.select(keep), self.integral.fresh[keep]
        points = self.points[keep][:, : fresh.shape[1], : int(part.size.max())]
        return part, fit_proposal(part, points, fresh, rules)


@dataclass(frozen=True)
class _Sampler:
    """What all rounds share."""

    model: StructuralModel
    values: Tensor
    effort: Effort
    generator: Generator
    accept: Accept
    last: Tensor | None

    def from_prior(self, components: Components, effort: Effort) -> Iterator[WeightedDraws]:
        """Draws from the prior; accepts what is good, gives the rest more pilot draws or none."""
        rules = effort.importance
        found = self._round(components, effort, None)
        done, below_target = self._finished(self.accept(found.integral), self.effort)
        if done.any():
            yield found.integral.select(done, below_target)
        more = replace(effort, draws=rules.pilot_growth * effort.draws)
        affordable = more.draws <= min(effort.limit, effort.pilot_draws // effort.randomisations)
        unknown = ~found.chained & (found.integral.effective_size() < rules.enough_pilots)
        further = ~done & unknown & (components.size <= rules.most_nodes) & affordable
        for keep in chunks(components, further, more):
            yield from self.from_prior(components.select(keep), more)
        for keep in chunks(components, ~done & ~further, self.effort):
            yield from self.from_proposal(*found.fit_proposal(keep, rules), self.effort)

    def from_proposal(
        self, components: Components, proposal: Proposal, effort: Effort
    ) -> Iterator[WeightedDraws]:
        """Draws from a proposal; accepts what is good, fits new proposals to the rest."""
        found = self._round(components, effort, proposal)
        second = effort.draws > self.effort.draws
        counts = proposal.untempered | second
        good = torch.where(found.chained, counts, self.accept(found.integral))
        done, below_target = self._finished(good, effort)
        if done.any():
            yield found.integral.select(done, below_target)
        for keep in chunks(components, ~done, effort):
            fitted = found.fit_proposal(keep, effort.importance)
            yield from self.from_proposal(*fitted, effort.doubled())

    def _finished(self, good: Tensor, effort: Effort) -> tuple[Tensor, int]:
        """Returns what needs no further round, (C,), and how many of these the limit cut short."""
        if effort.draws < effort.limit:
            return good, 0
        return torch.ones_like(good), int((~good).sum())

    def _round(self, components: Components, effort: Effort, proposal: Proposal | None) -> _Round:
        sweep = Sweep(self.model, self.values, components)
        points = self._propose(components, effort, proposal)
        chained, retained = torch.zeros_like(components.row, dtype=torch.bool), False
        if self.last is not None:
            state, chained = _last_points(sweep, self.last)
            points, retained = torch.cat([points, state], 1), True
        hidden, log_evidence = sweep(points[components.cell_component, :, components.slots()])
        log_weight = log_evidence + _log_ratio(points, effort, proposal)
        if retained:
            log_weight[~chained, -1] = -torch.inf
        found = (components, hidden, log_weight, effort.randomisations)
        return _Round(points, WeightedDraws(*found, retained=retained), chained)

    def _propose(
        self, components: Components, effort: Effort, proposal: Proposal | None
    ) -> Tensor:
        """Returns the points of a round, (C, K, m)."""
        generator, like = self.generator, self.values
        scores = random_scores(components, effort, generator, like)
        if proposal is None:
            return scores
        # Systematic, from a random start, so that each part of the proposal gets its share.
        start = uniform_numbers((len(scores), effort.randomisations, 1), generator, like)
        place = (start + torch.arange(effort.draws, device=start.device)) / effort.draws
        proposed = proposal.points(scores, place.flatten(1))
        # A smaller set of its own for the prior: parts of one quasi-random set are not even.
        few = replace(effort, draws=_prior_draws(effort))
        prior = random_scores(components, few, generator, like)
        sets = [points.unflatten(1, (effort.randomisations, -1)) for points in (proposed, prior)]
        return torch.cat(sets, dim=2).flatten(1, 2)


def _prior_draws(effort: Effort) -> int:
    """Returns how many points of a round with a proposal still come from the prior."""
    return max(1, round(effort.importance.prior_share * effort.draws))


def _log_ratio(points: Tensor, effort: Effort, proposal: Proposal | None) -> Tensor:
    """Returns log N(u; 0, I) / q(u) at points (C, K, m), shape (C, K)."""
    if proposal is None:
        return points.new_zeros(points.shape[:2])
    share = _prior_draws(effort) / (_prior_draws(effort) + effort.draws)
    log_prior = standard_normal_log_prob(points).sum(-1)
    log_proposal = proposal.log_density(points)
    log_q = torch.logaddexp(math.log(share) + log_prior, math.log1p(-share) + log_proposal)
    return log_prior - log_q


def _last_points(sweep: Sweep, last: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the noise of the last completions (C, 1, m), and whether it is known, (C,)."""
    c = sweep.components
    values = last[c.cell_row, c.cell_node]
    # The noise of a discrete cell is not one number: such components keep no chain.
    discrete = torch.tensor(sweep.model.discrete, device=values.device)[c.cell_node]
    known = torch.ones_like(c.row, dtype=torch.bool)
    known[c.cell_component[values.isnan() | discrete]] = False
    at = known[c.cell_component]
    noise = sweep.abduct(torch.where(at, values, 0.0)[:, None])
    points = noise.new_zeros(len(c), 1, int(c.size.max()))
    points[c.cell_component[at], 0, c.slots()[at]] = noise[at, 0]
    return points, known
