r"""Lines and curves at the maximum where rows hide much together: EM on moving chains.

Each round moves K chains of every row a little (`inference.chains`), and takes one step with what
their completions say: for each mechanism with coefficients w and noise of size σ,

    w* = (Σ x xᵀ / σ² + τ)⁻¹ Σ x y / σ²,    σ*² = mean (y − w*·x)²,    θ ← θ + ω (θ* − θ),

the sums over rows and completions, τ the prior precision of curves. With ω = 1 it is EM, one draw
instead of an expectation (Celeux and Diebolt 1985). Any ω below 2 has the same limit (Peters and
Walker 1978), and more than 1 gets there sooner where most of what is known of a coefficient is
hidden.

The steps come to rest but for the noise of their completions: a round then gains as much as the
one before. From there on the estimates of further rounds are averaged (Polyak and Juditsky 1992),
which takes that noise out, whatever the memory of the chains. So a round needs few sweeps and few
chains, and costs edges × rows, where a round of `monte_carlo` solves an integral a row, and rests
on ratios of likelihoods that completions in many dimensions do not give.

A scale that a network sets stays, and weighs the rows of its mean.
"""

from __future__ import annotations

import logging
import math

import torch
from torch import Tensor

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.completions import complete
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.monte_carlo import RIDGE, RoundWatcher
from misscnf.inference.chains import Chains
from misscnf.inference.elimination import Plan
from misscnf.mechanisms import LinearMean
from misscnf.mechanisms.gaussian import SMALLEST_LOG_SCALE
from misscnf.mechanisms.history import read_parents_by
from misscnf.model import StructuralModel

__all__ = ["maximise_on_chains", "only_linear_means"]

logger = logging.getLogger("misscnf")


class _Block:
    """A linear mean with its scale, and what the factors with nothing hidden say of them."""

    def __init__(
        self, mean: LinearMean, nodes: tuple[int, ...], plan: Plan, values: Tensor
    ) -> None:
        self.mean, self.graph = mean, plan.graph
        free, drawn = plan.free[plan.pattern], plan.label[plan.pattern] >= 0
        self.drawn = {i: drawn[:, i].nonzero()[:, 0] for i in nodes}
        self.rows = int(free[:, list(nodes)].sum() + drawn[:, list(nodes)].sum())
        seen = [self._design(values[None], i, free[:, i].nonzero()[:, 0]) for i in nodes]
        self.seen = torch.stack([design.T @ design for design in seen]).sum(0)
        """(c + 1, c + 1) second moments of columns and the node's own, of free factors"""
        self.averaged: tuple[Tensor, Tensor] | None = None

    def _design(self, completed: Tensor, node: int, rows: Tensor) -> Tensor:
        """Returns columns and the node's own, over a scale that stays, (K n, c + 1)."""
        parents = torch.stack(
            [completed[:, rows, j].flatten() for j in self.graph.parents[node]]
            or [completed.new_zeros(0)],
            -1,
        )
        own = completed[:, rows, node].reshape(-1, 1)
        parents = parents.reshape(len(own), -1)
        parents = read_parents_by(self.graph.readings.get(node), parents)
        design = torch.cat([self.mean.columns(parents), own], 1)
        if not self.mean.constant_scale:
            design = design * torch.exp(-self.mean.log_scale(parents))[:, None]
        return design

    @property
    def log_scale(self) -> Tensor:
        """The scale that moves, (1,); that of weighted columns is one."""
        nothing = self.seen.new_zeros(1, 0)
        return self.mean.log_scale(nothing) if self.mean.constant_scale else self.seen.new_zeros(1)

    def step(self, completed: Tensor, length: float) -> float:
        """Goes so many times as far as EM; returns what EM would gain on the completions."""
        moments = self.seen.clone()
        for node, rows in self.drawn.items():
            design = self._design(completed, node, rows)
            moments += design.T @ design / len(completed)
        w, log_scale, prior = self.mean.coefficients, self.log_scale, self.mean.prior_precision
        precision = torch.exp(-2.0 * log_scale)
        information = precision * moments[:-1, :-1] + prior.diag()
        ridge = RIDGE * information.diagonal().mean() * torch.eye(len(w)).to(w)
        slope = precision * (moments[:-1, -1] - moments[:-1, :-1] @ w) - prior * w
        step = torch.cholesky_solve(slope[:, None], torch.linalg.cholesky(information + ridge))
        gain, step = 0.5 * float(slope @ step[:, 0]), step[:, 0]
        left = torch.cat([-w - step, w.new_ones(1)])
        found = 0.5 * torch.log((left @ moments @ left / max(self.rows, 1)).clamp(min=1e-300))
        moved = found.clamp(min=SMALLEST_LOG_SCALE) - log_scale
        self.mean.write(w + length * step, log_scale + length * moved)
        return gain + self.mean.constant_scale * self.rows * float(moved.square())

    def average(self, rounds: int) -> None:
        """Takes where the mean and its scale are into an average of so many rounds."""
        now = (self.mean.coefficients, self.log_scale)
        if self.averaged is None:
            self.averaged = now
        else:
            first, second = (
                torch.lerp(a, b, 1.0 / rounds) for a, b in zip(self.averaged, now, strict=True)
            )
            self.averaged = first, second

    def write_average(self) -> None:
        """Gives the mechanism that average."""
        if self.averaged is not None:
            self.mean.write(*self.averaged)


def maximise_on_chains(
    model: StructuralModel,
    rows: RowSource,
    settings: Settings,
    seed: int,
    chains: Chains,
    watch: RoundWatcher | None = None,
    modes: Tensor | None = None,
    *,
    rough: bool = False,
    near: bool = False,
) -> int:
    """Moves lines and curves to the maximum of the likelihood, in place; networks stay.

    Arguments are those of `maximise_monte_carlo`, and:
        chains: Chains of the rows. Moved.

    Returns:
        The number of rounds.
    """
    solving, plan = settings.solving, Plan.of(model.graph, rows)
    values = torch.cat([batch.values for batch in rows.batches()])
    blocks = [
        _Block(mean, nodes, plan, values)
        for block, nodes in enumerate(model.blocks)
        if (mean := model.block(block).linear_mean()) is not None
    ]
    burn_in = 0 if chains.sweeps else solving.burn_in
    settling = burn_in + (0 if near else solving.settling_rounds)
    averaged = 0 if rough else solving.averaged_rounds
    before, number = math.inf, 0
    while number < settling + averaged:
        about = (derive_generator(seed, "settle", number), settings.integration.training)
        completed = complete(model, rows, plan, chains.count, *about, modes, chains)
        if number >= burn_in:
            gain = sum(block.step(completed, solving.overrelaxation) for block in blocks)
            logger.debug("round %d of EM on chains: %.2f nats.", number, gain)
            if number < settling and gain > solving.at_rest * before:
                settling = number + 1
            before = gain
        if number >= settling:
            for block in blocks:
                block.average(number - settling + 1)
        number += 1
        if watch is not None:
            watch(number, settling + averaged)
    for block in blocks:
        block.write_average()
    return number


def only_linear_means(model: StructuralModel) -> bool:
    """Says whether all that is solved for are lines and curves with normal noise."""
    laws = [model.block(block) for block in range(len(model.blocks))]
    means = [law.linear_mean() is not None for law in laws]
    solved = [law.solvable for law in laws]
    return any(means) and all(mean for mean, its in zip(means, solved, strict=True) if its)
