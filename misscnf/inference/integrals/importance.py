r"""Guided draws where a component holds several hidden nodes.

Draws from the prior come first: they see every mode. Where too few of them matter, more are drawn
as far as `Effort.pilot_draws` allows, and then their weighted moments make a guide g in noise
space (`proposal`). New points come from a defensive mixture

    q(u) = (1 − α) g(u) + α N(u; 0, I),

weighed by N(u; 0, I) e(u) / q(u). Guides are refined and draws doubled until enough matter. Points
of one round never make the guide of that round.

Training needs draws from the posterior rather than integrals, step after step. Resampling K points
has a bias of order 1 / effective draws, and to keep those rounds whose weights look even is to
turn away the rounds that found another mode. Both errors vanish where the point at which the row
was last is a candidate beside the new ones,

    P(next = u_k) ∝ w_k,    k = 1 … K and the last point:

a Markov chain whose law is the posterior whatever q and K are (iterated sampling importance
resampling: Tjelmeland 2004; Andrieu, Lee and Vihola 2018), as long as a round does not decide
itself whether it counts. So a guided round counts where enough points of the round before made its
guide, and the second one in any case. Rounds of the prior are still taken by their own weights:
they see all modes, and a second round for every easy row would double a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from misscnf.draws import uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.integral import Accept, Effort, WeightedDraws, chunks
from misscnf.inference.integrals.prior import random_scores
from misscnf.inference.integrals.proposal import MOST_NODES, Guide, fit_guide
from misscnf.inference.integrals.sweep import Sweep
from misscnf.mechanisms import standard_normal_log_prob
from misscnf.model import StructuralModel

__all__ = ["guided_draws"]

PRIOR_SHARE = 1 / 32
"""α: so many of the points still come from the prior."""
WELL_EXPLORED = 32.0
"""Effective points of the prior that make a guide which knows all modes of some weight."""


def guided_draws(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    generator: torch.Generator,
    accept: Accept,
    last: Tensor | None = None,
) -> Iterator[WeightedDraws]:
    """Yields blocks of components, those that the limit cut short included.

    Arguments:
        model: The structural model.
        values: (N, d) with finite numbers in the holes.
        components: What is hidden, and its evidence.
        effort: How hard to work.
        generator: Where randomness comes from.
        accept: Says what has been integrated well enough.
        last: (N, d) where rows were last, nan where nowhere; None where no chain is kept.
    """
    search = _Search(model, values, effort, generator, accept, last)
    small = components.size <= MOST_NODES
    for chosen in (small, ~small):
        if chosen.any():
            yield from search.pilot_draws(components.select(chosen), effort)


@dataclass(frozen=True)
class _Round:
    """The points of a round, weighed."""

    points: Tensor
    """(C, K, m), that of the chain last"""
    integral: WeightedDraws
    chained: Tensor
    """(C,) whether the component goes on from where it was last"""

    def fit_guide(self, keep: Tensor) -> tuple[Components, Guide]:
        """Returns some components (C,), and the guide that new points made for them."""
        part, fresh = self.integral.components.select(keep), self.integral.fresh[keep]
        points = self.points[keep][:, : fresh.shape[1], : int(part.size.max())]
        return part, fit_guide(part, points, fresh)


@dataclass(frozen=True)
class _Search:
    """What all rounds share."""

    model: StructuralModel
    values: Tensor
    effort: Effort
    generator: torch.Generator
    accept: Accept
    last: Tensor | None

    def pilot_draws(self, components: Components, effort: Effort) -> Iterator[WeightedDraws]:
        """Draws from the prior; small components may have four times as many again and again."""
        found = self._round(components, effort, None)
        done, below_target = self._finished(self.accept(found.integral), self.effort)
        if done.any():
            yield found.integral.select(done, below_target)
        more = replace(effort, draws=4 * effort.draws)
        affordable = more.draws <= min(effort.limit, effort.pilot_draws // effort.randomisations)
        unknown = ~found.chained & (found.integral.effective_size() < WELL_EXPLORED)
        further = ~done & unknown & (components.size <= MOST_NODES) & affordable
        for keep in chunks(components, further, more):
            yield from self.pilot_draws(components.select(keep), more)
        for keep in chunks(components, ~done & ~further, self.effort):
            yield from self.follow(*found.fit_guide(keep), self.effort)

    def follow(
        self, components: Components, guide: Guide, effort: Effort
    ) -> Iterator[WeightedDraws]:
        """Draws by a guide; accepts what is good, refines the guides of the rest."""
        found = self._round(components, effort, guide)
        second = effort.draws > self.effort.draws
        good = torch.where(found.chained, guide.firm | second, self.accept(found.integral))
        done, below_target = self._finished(good, effort)
        if done.any():
            yield found.integral.select(done, below_target)
        for keep in chunks(components, ~done, effort):
            yield from self.follow(*found.fit_guide(keep), effort.doubled())

    def _finished(self, good: Tensor, effort: Effort) -> tuple[Tensor, int]:
        """Returns what needs no further round, (C,), and how many of these the limit cut short."""
        if effort.draws < effort.limit:
            return good, 0
        return torch.ones_like(good), int((~good).sum())

    def _round(self, components: Components, effort: Effort, guide: Guide | None) -> _Round:
        sweep = Sweep(self.model, self.values, components)
        points = _propose(components, effort, self.generator, self.values, guide)
        chained = torch.zeros_like(components.row, dtype=torch.bool)
        if self.last is not None:
            before, chained = _last_points(sweep, self.last)
            points = torch.cat([points, before], 1)
        hidden, log_evidence = sweep(points[components.cell_component, :, components.slots()])
        log_weight = log_evidence + _log_ratio(points, effort, guide)
        if self.last is not None:
            log_weight[~chained, -1] = -torch.inf
        revisited = self.last is not None
        integral = WeightedDraws(
            components, hidden, log_weight, effort.randomisations, revisited=revisited
        )
        return _Round(points, integral, chained)


def _propose(
    components: Components,
    effort: Effort,
    generator: torch.Generator,
    like: Tensor,
    guide: Guide | None,
) -> Tensor:
    """Returns the points of a round, (C, K, m)."""
    scores = random_scores(components, effort, generator, like)
    if guide is None:
        return scores
    # Evenly placed from a start by chance, so that each part of the guide gets its share.
    start = uniform_numbers((len(scores), effort.randomisations, 1), generator, like)
    place = (start + torch.arange(effort.draws, device=start.device)) / effort.draws
    guided = guide.points(scores, place.flatten(1))
    # A set of its own for the prior, smaller by PRIOR_SHARE: parts of one set are not even.
    kept = random_scores(components, replace(effort, draws=_few(effort)), generator, like)
    parts = [part.unflatten(1, (effort.randomisations, -1)) for part in (guided, kept)]
    return torch.cat(parts, dim=2).flatten(1, 2)


def _few(effort: Effort) -> int:
    """Returns how many points of a guided round still come from the prior."""
    return max(1, round(PRIOR_SHARE * effort.draws))


def _log_ratio(points: Tensor, effort: Effort, guide: Guide | None) -> Tensor:
    """Returns log N(u; 0, I) / q(u) at points (C, K, m), shape (C, K)."""
    if guide is None:
        return points.new_zeros(points.shape[:2])
    share = _few(effort) / (_few(effort) + effort.draws)
    log_prior = standard_normal_log_prob(points).sum(-1)
    log_guide = guide.log_density(points)
    log_q = torch.logaddexp(math.log(share) + log_prior, math.log1p(-share) + log_guide)
    return log_prior - log_q


def _last_points(sweep: Sweep, last: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the noise of where components were last (C, 1, m), and whether it is known, (C,)."""
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
