r"""Which nodes deserve a network? Cross-fitting on every row of a small table.

Two hundred held-out rows cannot tell a curve from a line. Here each of F folds is left out in
turn: its line is one Newton step from the whole line (`one_step`), its networks are trained
together with those of the other folds on the particle likelihood of the line (`ensemble`, with
weight zero for what is left out), and every row is judged by the model that did not see it. The
epoch is chosen for all folds at once, so that many rows stand against one choice. Completions by
the line favour the line a little where much is hidden; completions by a network would favour that
network, and cost a fit.

With ℓ_i(S) the log-density of row i where the nodes of S have networks and the others lines, a
node stays in S if

    mean_i [ ℓ_i(S) − ℓ_i(S \ {node}) ]  >  c · its standard error,

paired row by row. Nodes that do not are taken out one by one, the weakest first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.fitting.ensemble import EpochWatcher, Training
from misscnf.fitting.one_step import one_step_replicates
from misscnf.fitting.particles import Particles
from misscnf.fitting.settings import Settings
from misscnf.structural import StructuralModel

__all__ = ["CrossFit", "Gain", "cross_fit"]

FOLDS = 5
COMPLETIONS = 16
SHARE_OF_EPOCHS = 0.5
"""Enough to tell a curve from a line; the nodes that are chosen are trained in full afterwards."""


@dataclass(frozen=True)
class Gain:
    """A difference of held-out log-densities, in nats a row."""

    mean: float
    error: float

    @property
    def ratio(self) -> float:
        """The mean in standard errors."""
        return self.mean / self.error if self.error > 0 else math.copysign(math.inf, self.mean)

    def to_dict(self) -> dict[str, float]:
        """Returns plain numbers by name."""
        return {"gain": self.mean, "standard_error": self.error}


class CrossFit:
    """Models of every fold, and how they judge the rows that they did not see.

    Arguments:
        particles: Completions of all rows.
        fold: (N,) the fold of each row.
        networks: One model a fold, with a network in every node that can have one.
        lines: One linear model a fold.
    """

    def __init__(
        self,
        particles: Particles,
        fold: Tensor,
        networks: Sequence[StructuralModel],
        lines: Sequence[StructuralModel],
    ) -> None:
        self.particles, self.fold = particles, fold
        self.candidates = frozenset(
            i for i, parents in enumerate(particles.plan.graph.parents) if parents
        )
        with torch.no_grad():
            self._parts = [
                self._evaluate(f, pair) for f, pair in enumerate(zip(networks, lines, strict=True))
            ]

    def _evaluate(
        self, fold: int, models: tuple[StructuralModel, StructuralModel]
    ) -> tuple[Tensor, list[list[Tensor]]]:
        """Returns the rows of a fold, and log φ of every node by its network and by its line."""
        rows = (self.fold == fold).nonzero()[:, 0]
        families = self.particles.families(rows)
        found = [
            [model.mechanism(i).log_prob(c.own, c.parents).expand(c.own.shape) for model in models]
            for i, c in enumerate(families.nodes)
        ]
        return rows, found

    def log_prob(self, nodes: frozenset[int]) -> Tensor:
        """Returns log p(x_O) of every row, up to constants, with networks in some nodes, (N,)."""
        answer = self.particles.completed.new_zeros(len(self.particles))
        for rows, found in self._parts:
            picked = [pair[0 if i in nodes else 1][None] for i, pair in enumerate(found)]
            answer[rows] = self.particles.log_prob(rows, _Given(picked))[0]
        return answer

    def gain(self, nodes: frozenset[int], over: frozenset[int]) -> Gain:
        """Returns what networks in some nodes gain over networks in others."""
        difference = self.log_prob(nodes) - self.log_prob(over)
        return Gain(float(difference.mean()), float(difference.std() / math.sqrt(len(difference))))

    def choose(self, errors_to_beat: float) -> frozenset[int]:
        """Returns the nodes that earn a network."""
        chosen = self.candidates
        while chosen:
            ratio, weakest = min(
                (self.gain(chosen, chosen - {node}).ratio, node) for node in chosen
            )
            if ratio > errors_to_beat:
                break
            chosen -= {weakest}
        return chosen


class _Given:
    """log φ that is known already, for `Particles.log_prob`."""

    def __init__(self, found: list[Tensor]) -> None:
        self.found = found

    def __call__(self, node: int, own: Tensor, parents: Tensor) -> Tensor:
        return self.found[node]


def cross_fit(
    line: StructuralModel,
    starts: Sequence[StructuralModel],
    rows: tuple[Tensor, Tensor],
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
) -> CrossFit:
    """Trains a network and a line for every fold.

    Arguments:
        line: The linear fit to all rows.
        starts: As many fresh networks as folds.
        rows: Values (N, d) and observed (N, d) of all rows.
        settings: How networks are trained.
        seed: Where randomness starts.
        watch: Called after each epoch.
    """
    count, folds = len(rows[0]), len(starts)
    order = torch.randperm(count, generator=derive_generator(seed, "folds"))
    fold = torch.empty(count, dtype=torch.int64)
    fold[order] = torch.arange(count) % folds
    weights = (fold != torch.arange(folds)[:, None]).double() * (folds / (folds - 1.0))
    particles = Particles.draw(line, *rows, COMPLETIONS, derive_generator(seed, "fold rows"))
    lines = one_step_replicates(line, particles, weights)
    for start, its_line in zip(starts, lines, strict=True):
        for i in range(len(line.graph)):
            start.mechanism(i).start_from(its_line.mechanism(i))
        start.float()
    settings = replace(settings, epochs=math.ceil(SHARE_OF_EPOCHS * settings.epochs))
    training = _FoldTraining(
        starts, particles.to(torch.float32), fold, weights.float(), settings, seed
    )
    training.run(watch)
    return CrossFit(particles, fold, [start.double() for start in starts], lines)


class _FoldTraining(Training):
    """Networks of all folds, and the epoch at which the rows they did not see like them best."""

    def __init__(
        self,
        models: Sequence[StructuralModel],
        particles: Particles,
        fold: Tensor,
        weights: Tensor,
        settings: Settings,
        seed: int,
    ) -> None:
        everyone = torch.arange(len(particles))
        super().__init__(models, particles, (everyone, everyone), weights, settings, seed)
        self.fold = fold

    @torch.no_grad()
    def _keep_best(self) -> None:
        total = 0.0
        for fold in range(self.ensemble.size):
            mine = [
                {name: tensor[fold : fold + 1] for name, tensor in node.items()}
                for node in self.averaged
            ]
            for piece in self._pieces((self.fold == fold).nonzero()[:, 0]):
                total += float(self._log_prob(piece, mine).sum())
        self.schedule.observe(total / len(self.fold))
        if total > float(self.highest[0]):
            self.highest[:] = total
            for best, averaged in zip(self.best, self.averaged, strict=True):
                for name, tensor in best.items():
                    tensor.copy_(averaged[name])
