r"""What deserves a richer mechanism? Cross-fitting: no row has a say in what judges it.

A few held-out rows cannot tell a curve from a line. Here each of F folds is left out in turn. A
plain and a rich model are both fitted to the other folds, on the likelihood of completions of a
fit to all rows (`completions`, with weight zero for what is left out), and every row is judged by
the models that did not see it, the rich one at the epoch that the rows of the other folds like
best.

With ℓ_i(S) the log-density of row i where the nodes of S have rich mechanisms and the others plain
ones, a node stays in S if

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
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.settings import Settings
from misscnf.fitting.stacked import Parameters
from misscnf.fitting.train.ensemble import EpochWatcher, Training
from misscnf.model import StructuralModel

__all__ = ["COMPLETIONS", "CrossFit", "Folds", "cross_fit", "some_rows"]

STEPS = 320
"""Enough to tell a curve from a line; what is chosen is trained in full afterwards."""
BATCH = 1024
FEW_ROWS = 10_000
"""Up to so many, five folds; beyond, three say as much and cost less."""
COMPLETIONS = 8
MOST_ROWS = 50_000
MOST_CELLS = 20_000_000
"""Of all completions. Longer tables are judged by some of their rows."""


@dataclass(frozen=True)
class Folds:
    """Which rows are left out together."""

    fold: Tensor
    """(N,) the fold of each row"""
    count: int

    @staticmethod
    def of(rows: int, seed: int) -> Folds:
        """Deals the rows of a table out."""
        count = 5 if rows <= FEW_ROWS else 3
        order = torch.randperm(rows, generator=derive_generator(seed, "folds"))
        fold = torch.empty(rows, dtype=torch.int64)
        fold[order] = torch.arange(rows) % count
        return Folds(fold, count)

    def weights(self) -> Tensor:
        """Returns the weight of each row for the models of each fold, with mean one, (F, N)."""
        seen = self.fold != torch.arange(self.count)[:, None]
        return seen.double() * (self.count / (self.count - 1.0))

    def rows(self, fold: int) -> Tensor:
        """Returns the rows of a fold."""
        return (self.fold == fold).nonzero()[:, 0]


class CrossFit:
    """Models of every fold, and how they judge the rows that they did not see.

    Arguments:
        completions: Completions of all rows.
        folds: Which rows are left out together.
        rich: One model a fold.
        plain: One model a fold.
        candidates: The nodes that are compared.
        only: Whether the other nodes are as the fit has them, or those of the plain models.
    """

    def __init__(
        self,
        completions: Completions,
        folds: Folds,
        rich: Sequence[StructuralModel],
        plain: Sequence[StructuralModel],
        candidates: frozenset[int],
        *,
        only: bool = False,
    ) -> None:
        self.completions, self.candidates = completions, candidates
        self._nodes = candidates if only else frozenset(range(len(plain[0].graph)))
        self._parts = [
            self._evaluate(folds.rows(fold), pair)
            for fold, pair in enumerate(zip(rich, plain, strict=True))
        ]

    @torch.no_grad()
    def _evaluate(
        self, rows: Tensor, models: tuple[StructuralModel, StructuralModel]
    ) -> tuple[Tensor, dict[int, list[Tensor]]]:
        """Returns the rows, and log φ of every node by its rich mechanism and by its plain one."""
        cells = self.completions.families(rows).nodes
        found = {
            i: [
                model.mechanism(i).log_prob(c.own, c.parents).expand(c.own.shape)[None]
                for model in models
            ]
            for i, c in enumerate(cells)
            if i in self._nodes
        }
        return rows, found

    def log_prob(self, nodes: frozenset[int]) -> Tensor:
        """Returns log p(x_O) of every row, up to constants, with some nodes rich, (N,)."""
        answer = self.completions.completed.new_zeros(len(self.completions))
        for rows, found in self._parts:
            picked = {i: pair[0 if i in nodes else 1] for i, pair in found.items()}
            answer[rows] = self.completions.log_prob(rows, lambda i, *_, p=picked: p.get(i))[0]
        return answer

    def elpd_difference(self, nodes: frozenset[int], over: frozenset[int]) -> ElpdDifference:
        """Returns what richness in some nodes gains over richness in others."""
        return ElpdDifference.of(self.log_prob(nodes) - self.log_prob(over))

    def choose(self, errors_to_beat: float) -> frozenset[int]:
        """Returns the nodes that earn a rich mechanism."""
        chosen = self.candidates
        while chosen:
            ratio, weakest = min(
                (self.elpd_difference(chosen, chosen - {node}).ratio, node) for node in chosen
            )
            if ratio > errors_to_beat:
                break
            chosen -= {weakest}
        return chosen


def some_rows(rows: tuple[Tensor, Tensor], seed: int) -> tuple[Tensor, Tensor]:
    """Returns as many rows as are worth their time, by chance."""
    count, columns = rows[0].shape
    most = min(MOST_ROWS, MOST_CELLS // (columns * COMPLETIONS))
    if count <= most:
        return rows
    some = torch.randperm(count, generator=derive_generator(seed, "judges"))[:most]
    return rows[0][some], rows[1][some]


def cross_fit(
    completions: Completions,
    folds: Folds,
    starts: Sequence[StructuralModel],
    plain: Sequence[StructuralModel],
    candidates: frozenset[int],
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
    *,
    only: bool = False,
    steps: int | None = STEPS,
) -> CrossFit:
    """Trains a rich model for every fold beside its plain one.

    Arguments:
        completions: Completions of all rows, in double precision.
        folds: Which rows are left out together.
        starts: A rich model a fold as it starts; it is trained in place.
        plain: A fitted plain model a fold.
        candidates: The nodes that are compared.
        settings: How networks are trained.
        seed: Where randomness starts.
        watch: Called after each epoch.
        only: Whether only candidates are trained; the other nodes are as the fit has them.
        steps: About how many steps of training; None for the epochs and batches of the settings.
    """
    if steps is not None:
        settings = replace(settings, batch=BATCH)
        steps_an_epoch = math.ceil(len(completions) / settings.batch_for(len(completions)))
        epochs = min(math.ceil(steps / steps_an_epoch), math.ceil(settings.epochs / 2))
        settings = replace(settings, epochs=epochs)
    single = [start.float() for start in starts]
    nodes = candidates if only else None
    _FoldTraining(single, completions.to(torch.float32), folds, settings, seed, nodes).run(watch)
    rich = [start.double() for start in starts]
    return CrossFit(completions, folds, rich, plain, candidates, only=only)


class _FoldTraining(Training):
    """Models of all folds, each at the epoch that the rows of the other folds like best."""

    def __init__(
        self,
        models: Sequence[StructuralModel],
        completions: Completions,
        folds: Folds,
        settings: Settings,
        seed: int,
        nodes: frozenset[int] | None,
    ) -> None:
        everyone = torch.arange(len(completions))
        weights = folds.weights().float()
        super().__init__(models, completions, (everyone, everyone), weights, settings, seed, nodes)
        self.folds = folds

    def _kept(self) -> list[Parameters]:
        return self.best

    def _judge(self) -> Tensor:
        unseen = torch.stack([self._unseen(fold) for fold in range(self.folds.count)])
        return unseen.sum() - unseen

    def _unseen(self, fold: int) -> Tensor:
        """Returns the log-density of a fold's rows by the model that does not see them."""
        mine = [
            {name: tensor[fold : fold + 1] for name, tensor in node.items()}
            for node in self.averaged
        ]
        parts = [self._log_prob(p, mine).sum() for p in self._pieces(self.folds.rows(fold))]
        return torch.stack(parts).sum()
