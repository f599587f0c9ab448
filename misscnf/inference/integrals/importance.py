r"""Adaptive importance sampling where a component holds several hidden nodes.

Draws from the prior come first: they see every mode. Where too few of them are effective, a
component gets more as far as `Effort.pilot_draws` allows. Then the modes of the integrand are
searched from some of the points (`modes`), and a guide along the graph is made of them (`guide`).
New points come from a defensive mixture of its parts g_j and the prior,

    q(u) = (1 − α) Σ_j π_j g_j(u) + α N(u; 0, I),

with the weights N(u; 0, I) e(u) / q(u). Draws are doubled until enough are effective, and a guide
that is of little use is made anew. Points of one round never make the proposal of that round.

Training needs draws from the posterior rather than integrals, step after step. Resampling K points
has a bias of order 1 / effective size, and to keep only the rounds whose weights look even is to
reject the rounds that found another mode. Both errors vanish where the row's last completion is a
candidate beside the new points,

    P(next = u_k) ∝ w_k,    k = 1 … K and the last point:

a Markov chain whose stationary law is the posterior whatever q and K are (iterated sampling
importance resampling: Tjelmeland 2004; Andrieu, Lee and Vihola 2018), as long as a round does not
decide itself whether it counts. So the first round with a proposal counts, whatever its weights.
Rounds of the prior are still accepted by their own weights: they see all modes, and a second round
for every easy row would double a step.

A model that is fitted moves little from one step to the next, and so do the modes of a row.
Whoever integrates the same rows again and again passes `modes`, which remember them. Where more
than `ImportanceRules.most_nodes` nodes are hidden together, the search then starts at the modes
found last, with no round of the prior before it, and is mostly over at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from misscnf.draws import uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.effort import Effort
from misscnf.inference.integrals.guide import Guide
from misscnf.inference.integrals.integral import Accept, WeightedDraws, chunks
from misscnf.inference.integrals.modes import choose_starts, find_modes
from misscnf.inference.integrals.prior import random_scores
from misscnf.inference.integrals.problem import Problem
from misscnf.inference.integrals.sweep import Sweep

__all__ = ["importance_sampling"]


def importance_sampling(
    problem: Problem,
    components: Components,
    accept: Accept,
    last: Tensor | None = None,
    modes: Tensor | None = None,
) -> Iterator[WeightedDraws]:
    """Yields the integrals of components, those that the limit cut short included.

    Arguments are those of `integrate`, and:
        accept: Says what has been integrated well enough.
    """
    sampler = _Sampler(problem, accept, last, modes)
    small = components.size <= problem.effort.importance.most_nodes
    known = sampler.known_modes(components)
    for chosen in (small, ~small & (known == 0)):
        if chosen.any():
            yield from sampler.from_prior(components.select(chosen), problem)
    for count in known[~small].unique().tolist():
        if count:
            yield from sampler.from_modes(components, ~small & (known == count), count)


@dataclass(frozen=True)
class _Round:
    """The points of a round, weighed."""

    points: Tensor
    """(C, K, m) their noise"""
    integral: WeightedDraws
    chained: Tensor
    """(C,) whether the component has a state of a chain among its points"""


@dataclass(frozen=True)
class _Sampler:
    """What all rounds share."""

    problem: Problem
    accept: Accept
    last: Tensor | None
    modes: Tensor | None

    def known_modes(self, components: Components) -> Tensor:
        """Returns how many modes of each component are remembered, (C,)."""
        known = torch.zeros_like(components.row)
        if self.modes is not None:
            there = ~self.modes[components.row, :, components.node].isnan()
            known = there.cumprod(1).sum(1)
        return known

    def from_modes(
        self, components: Components, chosen: Tensor, count: int
    ) -> Iterator[WeightedDraws]:
        """Draws by guides around so many remembered modes of the chosen components (C,)."""
        assert self.modes is not None
        problem, rules = self.problem, self.problem.effort.importance
        for keep in _by_size(components, chosen, problem.effort):
            mine = components.select(keep)
            sweep = problem.sweep(mine)
            starts = self.modes[mine.cell_row, :count, mine.cell_node].to(problem.values)
            noise = starts.new_zeros(len(mine), count, int(mine.size.max()))
            found = find_modes(problem, sweep, starts, noise)
            self._remember(sweep, found)
            share = starts.new_full((len(mine),), rules.prior_share)
            yield from self.from_guide(mine, found.with_prior(share), problem)

    def _remember(self, sweep: Sweep, found: Guide) -> None:
        """Keeps the modes of large components, but for those that hold cells in a search."""
        if self.modes is None:
            return
        c = sweep.components
        invertible = [sweep.model.mechanism(i).invertible for i in range(len(sweep.model.graph))]
        held = ~torch.tensor(invertible, device=c.cell_node.device)[c.cell_node]
        kept = c.size > self.problem.effort.importance.most_nodes
        kept[c.cell_component[held]] = False
        most = min(self.modes.shape[1], found.centre.shape[1])
        centre = found.centre[:, :most]
        none = (found.log_share[:, :most] == -torch.inf) | ~centre.isfinite().all(-1)
        centre = torch.where(none[..., None], torch.nan, centre)
        at = kept[c.cell_component]
        row, node = c.cell_row[at], c.cell_node[at]
        self.modes[row, :, node] = torch.nan
        self.modes[row, :most, node] = centre[c.cell_component, :, sweep.slot][at].to(self.modes)

    def from_prior(self, components: Components, problem: Problem) -> Iterator[WeightedDraws]:
        """Draws from the prior; accepts what is good, gives the rest more pilot draws or none."""
        effort, rules = problem.effort, problem.effort.importance
        found = self._prior_round(components, problem)
        done, below_target = self._finished(self.accept(found.integral), self.problem.effort)
        if done.any():
            yield found.integral.select(done, below_target)
        more = problem.with_draws(rules.pilot_growth * effort.draws)
        most = min(effort.limit, effort.pilot_draws // effort.randomisations)
        unknown = ~found.chained & (found.integral.effective_size() < rules.enough_pilots)
        further = ~done & unknown & (components.size <= rules.most_nodes)
        further &= more.effort.draws <= most
        for keep in chunks(components, further, more.effort):
            yield from self.from_prior(components.select(keep), more)
        for keep in _by_size(components, ~done & ~further, self.problem.effort):
            guide = self._guide(found, keep)
            yield from self.from_guide(components.select(keep), guide, self.problem)

    def from_guide(
        self, components: Components, guide: Guide, problem: Problem
    ) -> Iterator[WeightedDraws]:
        """Draws by a guide; accepts what is good, and draws twice as much for the rest.

        A guide that is of little use is made anew, from the points that it gave; where many nodes
        are hidden once only, since what is left then is seldom a mode that was missed.
        """
        found = self._guided_round(components, guide, problem)
        good = found.chained | self.accept(found.integral)
        done, below_target = self._finished(good, problem.effort)
        if done.any():
            yield found.integral.select(done, below_target)
        share, more = (
            found.integral.effective_size() / found.integral.fresh.shape[1],
            problem.doubled(),
        )
        poor = ~done & (share < problem.effort.importance.useful_share)
        if problem.effort.draws > self.problem.effort.draws:
            poor &= components.size <= problem.effort.importance.most_nodes
        if poor.any():
            guide = guide.replaced(poor, self._guide(found, poor))
        for keep in _by_size(components, ~done, more.effort):
            yield from self.from_guide(components.select(keep), guide.of_some(keep), more)

    def _guide(self, before: _Round, keep: Tensor) -> Guide:
        """Makes a guide for some components (C,) from the points of a round."""
        rules, integral = self.problem.effort.importance, before.integral.select(keep)
        sweep = self.problem.sweep(integral.components)
        starts = choose_starts(sweep, integral, rules)
        values = integral.values.gather(1, starts[integral.components.cell_component])
        row = torch.arange(len(starts), device=starts.device)[:, None]
        guide = find_modes(self.problem, sweep, values, before.points[keep][row, starts])
        self._remember(sweep, guide)
        share = integral.effective_size() / integral.fresh.shape[1]
        return guide.with_prior(share.clamp(rules.prior_share, rules.most_prior))

    def _finished(self, good: Tensor, effort: Effort) -> tuple[Tensor, int]:
        """Returns what needs no further round, (C,), and how many of these the limit cut short."""
        if effort.draws < effort.limit:
            return good, 0
        return torch.ones_like(good), int((~good).sum())

    def _prior_round(self, components: Components, problem: Problem) -> _Round:
        sweep = problem.sweep(components)
        state, chained = self._state(sweep)
        points = torch.cat([random_scores(components, problem), state], 1)
        hidden, log_weight = sweep(points[components.cell_component, :, sweep.slot])
        integral = WeightedDraws(components, hidden, log_weight, problem.effort.randomisations)
        return self._weighed(points, integral, chained)

    def _guided_round(self, components: Components, guide: Guide, problem: Problem) -> _Round:
        sweep, effort = problem.sweep(components), problem.effort
        # Systematic, from a random start, so that each part of the guide gets its share.
        shape = (len(components), effort.randomisations, 1)
        start = uniform_numbers(shape, problem.generator, problem.values)
        place = (start + torch.arange(effort.draws, device=start.device)) / effort.draws
        part = guide.part_at(place.flatten(1))
        state, chained = self._state(sweep)
        part = torch.cat([part, part.new_full(state.shape[:2], -1)], 1)
        scores = torch.cat([random_scores(components, problem), state], 1)
        guide = guide.to(problem.values)
        found = guide.sweep(sweep, part, scores)
        log_prior = found.log_parts[..., 0]
        log_q = torch.logsumexp(found.log_parts + guide.log_share[:, None, :], -1)
        log_weight = found.log_evidence + log_prior - log_q
        integral = WeightedDraws(components, found.values, log_weight, effort.randomisations)
        control = torch.exp(log_prior - log_q)
        return self._weighed(found.noise, replace(integral, control=control), chained)

    def _state(self, sweep: Sweep) -> tuple[Tensor, Tensor]:
        """Returns the noise of the last completions (C, 1 or 0, m), and whether it is known."""
        c, like = sweep.components, self.problem.values
        known = torch.full_like(c.row, self.last is not None, dtype=torch.bool)
        points = like.new_zeros(len(c), 0 if self.last is None else 1, int(c.size.max()))
        if self.last is None:
            return points, known
        values = self.last[c.cell_row, c.cell_node]
        # Where several noises make a value, as of a discrete cell, a component keeps no chain.
        single = torch.tensor(sweep.model.invertible, device=values.device)[c.cell_node]
        known[c.cell_component[values.isnan() | ~single]] = False
        at = known[c.cell_component]
        noise = sweep.abduct(torch.where(at, values, 0.0)[:, None])
        points[c.cell_component[at], 0, sweep.slot[at]] = noise[at, 0]
        return points, known

    def _weighed(self, points: Tensor, integral: WeightedDraws, chained: Tensor) -> _Round:
        if self.last is None:
            return _Round(points, integral, chained)
        integral.log_weight[~chained, -1] = -torch.inf
        return _Round(points, replace(integral, retained=True), chained)


def _by_size(components: Components, keep: Tensor, effort: Effort) -> Iterator[Tensor]:
    """Splits the kept components into parts that fit into memory, of similar size: (C,) each.

    A search holds matrices of all its starts, a round its points.
    """
    if not keep.any():
        return
    size, rules = components.size, effort.importance
    order = torch.argsort(size, stable=True)
    order = order[keep[order]]
    points = effort.draws * effort.randomisations
    cells = (rules.starts * size[order] ** 2).maximum(points * size[order])
    part = cells.cumsum(0) // effort.cells_at_once
    for number in part.unique().tolist():
        mine = torch.zeros_like(keep)
        mine[order[part == number]] = True
        yield mine
