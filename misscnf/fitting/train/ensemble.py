r"""Replicates of a trained fit: B networks at once, each on its own weights of the rows.

The weighted (Bayesian) bootstrap: replicate b maximises Σ_rows w_row^b log p_θ(x_O) with w ~
Exp(1), on the likelihood of completions of the fit (`completions`). It starts as a fit to such
rows would, from the line of its own weights and hidden layers of its own, and follows the same
schedule, averaging and choice of the epoch that is kept, so that its spread is that of the whole
procedure: a common start would make replicates alike where that epoch comes early. The B sets of
parameters are stacked and trained together: an optimiser that works element by element does not
mix them.

The prior of a curve counts as data do: each replicate is drawn towards weights of its own, from
that prior. What the rows say little of then spreads as widely as the prior leaves it, where
replicates that all shrink to the same line would agree on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence

import torch
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.settings import Settings
from misscnf.fitting.stacked import Ensemble, Parameters
from misscnf.fitting.train.loop import ERRORS_TO_BEAT
from misscnf.fitting.train.schedule import make_schedule
from misscnf.model import StructuralModel

__all__ = ["EpochWatcher", "Training", "train_ensemble"]

EVALUATIONS_AT_ONCE = 400_000
"""Of one mechanism, over replicates, rows and completions: bounds the memory of a step."""

EpochWatcher = Callable[[int, int], None]
"""Takes how many epochs are done, and of how many."""


def train_ensemble(
    models: Sequence[StructuralModel],
    completions: Completions,
    rows: tuple[Tensor, Tensor],
    weights: Tensor,
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
) -> None:
    """Trains all models in place, each on its own weights of the rows.

    Arguments:
        models: The starting points, B of them, in the precision of the completions.
        completions: The likelihood near the fit.
        rows: Which rows to learn from, and which choose the best epoch (maybe none).
        weights: (B, N).
        settings: How the fit was trained.
        seed: Where randomness starts.
        watch: Called after each epoch.
    """
    training = Training(models, completions, rows, weights, settings, seed)
    training.draw_priors()
    training.run(watch)


class Training:
    """Stacked parameters on their way: now, averaged, and the best of each replicate."""

    def __init__(
        self,
        models: Sequence[StructuralModel],
        completions: Completions,
        rows: tuple[Tensor, Tensor],
        weights: Tensor,
        settings: Settings,
        seed: int,
        nodes: Collection[int] | None = None,
    ) -> None:
        self.models, self.ensemble = models, Ensemble(models, nodes)
        self.completions, self.weights = completions, weights
        (self.train, self.held_out), self.settings, self.seed = rows, settings, seed
        self.now = self.ensemble.parameters
        self.optimiser = torch.optim.AdamW(
            [tensor for node in self.now for tensor in node.values()],
            lr=settings.learning_rate,
            weight_decay=0.0,
            fused=True,
        )
        self.batch = settings.batch_for(len(self.train))
        steps = settings.epochs * math.ceil(len(self.train) / self.batch)
        self.schedule = make_schedule(settings.schedule, settings.learning_rate, steps)
        self.averaged, self.best = _copy(self.now), _copy(self.now)
        self.highest = weights.new_full((len(models),), -math.inf)
        self.step = 0
        self.priors = self.ensemble.priors()

    def draw_priors(self) -> None:
        """Draws where the weights of curves are drawn to, for every replicate."""
        generator = derive_generator(self.seed, "priors")
        for prior in self.priors:
            drawn = torch.randn(prior.centre.shape, generator=generator, dtype=torch.float64)
            prior.centre.copy_(drawn / prior.prior_precision.double().sqrt())

    def run(self, watch: EpochWatcher | None = None) -> None:
        """Trains for all epochs, and writes what is kept into the models."""
        for epoch in range(self.settings.epochs):
            self._run_epoch(epoch)
            if watch is not None:
                watch(epoch + 1, self.settings.epochs)
        may_choose = self.settings.keep_best and len(self.held_out)
        self.ensemble.write(self._kept() if may_choose else self.averaged, self.models)

    @torch.no_grad()
    def _kept(self) -> list[Parameters]:
        """Returns the averages at the end, or at an epoch that is clearly better."""
        gaps = []
        for rows in self._pieces(self.held_out):
            best, last = (self._log_prob(rows, of) for of in (self.best, self.averaged))
            gaps.append(self.weights[:, rows] * (best - last))
        better = [ElpdDifference.of(gap).ratio > ERRORS_TO_BEAT for gap in torch.cat(gaps, 1)]
        kept = _copy(self.averaged)
        for node, best_node in zip(kept, self.best, strict=True):
            for name, tensor in node.items():
                tensor[better] = best_node[name][better]
        return kept

    def _run_epoch(self, epoch: int) -> None:
        """Visits every row once, in an order of its own; keeps what held-out rows like best."""
        shuffle = derive_generator(self.seed, "shuffle replicates", epoch)
        order = self.train[torch.randperm(len(self.train), generator=shuffle)]
        for rows in order.split(self.batch):
            self._step(rows)
        if len(self.held_out):
            self._keep_best()

    def _step(self, rows: Tensor) -> None:
        self.optimiser.zero_grad(set_to_none=True)
        for piece in self._pieces(rows):
            log_prob = self._log_prob(piece, self.now)
            (-(self.weights[:, piece] * log_prob).sum() / len(rows)).backward()
        for prior in self.priors:
            (-prior.log_prob(self.now) / len(self.train)).backward()
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.rate(self.step)
        self.optimiser.step()
        self.step += 1
        rate = self.settings.averaging
        share = 1.0 if rate is None else max(1.0 - rate, 1.0 / (1.0 + self.step))
        for averaged, now in zip(self.averaged, self.now, strict=True):
            for name, tensor in averaged.items():
                tensor.lerp_(now[name].detach(), share)

    @torch.no_grad()
    def _keep_best(self) -> None:
        found = self._judge()
        self.schedule.observe(float(found.mean()) / len(self.held_out))
        better = found > self.highest
        self.highest = torch.where(better, found, self.highest)
        for best, averaged in zip(self.best, self.averaged, strict=True):
            for name, tensor in best.items():
                tensor[better] = averaged[name][better]

    def _judge(self) -> Tensor:
        """Returns what the held-out rows say of the averaged weights of each replicate, (B,)."""
        found = torch.zeros_like(self.highest)
        for piece in self._pieces(self.held_out):
            found += (self.weights[:, piece] * self._log_prob(piece, self.averaged)).sum(1)
        return found

    def _log_prob(self, rows: Tensor, parameters: list[Parameters]) -> Tensor:
        return self.completions.log_prob(rows, self.ensemble.log_factor(parameters))

    def _pieces(self, rows: Tensor) -> tuple[Tensor, ...]:
        return rows.split(
            max(1, EVALUATIONS_AT_ONCE // (self.ensemble.size * self.completions.count))
        )


def _copy(parameters: list[Parameters]) -> list[Parameters]:
    return [
        {name: tensor.detach().clone() for name, tensor in node.items()} for node in parameters
    ]
