r"""What deserves a richer mechanism? Cross-fitting: no row has a say in what judges it.

A few held-out rows cannot tell a curve from a line. Here each of F folds is left out in turn. A
plain and a rich model are both fitted to the other folds, on the likelihood of completions of a
fit to all rows (`completions`, with weight zero for what is left out), and every row is judged by
the models that did not see it, the rich one at the epoch that the rows of the other folds like
best.

With ℓ_i(S) the log-density of row i where the blocks of S have rich mechanisms and the others
plain ones, a block stays in S if

    mean_i [ ℓ_i(S) − ℓ_i(S \ {block}) ]  >  z · its standard error,

paired row by row. Blocks that do not are taken out one by one, the weakest first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from misscnf.data.rows import RowSource, SelectedRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.settings import Selection, Settings
from misscnf.fitting.train.ensemble import EpochWatcher, train_folds
from misscnf.model import StructuralModel

__all__ = ["CrossFit", "Folds", "cross_fit", "some_rows"]


@dataclass(frozen=True)
class Folds:
    """Which rows are left out together."""

    fold: Tensor
    """(N,) the fold of each row"""
    count: int

    @staticmethod
    def of(rows: int, settings: Selection, seed: int) -> Folds:
        """Deals the rows of a table out."""
        count = settings.folds if rows <= settings.few_rows else settings.folds_of_many
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
        candidates: The blocks that are compared.
        only: Whether the other blocks are as the fit has them, or those of the plain models.
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
        self._blocks = candidates if only else frozenset(range(len(plain[0].blocks)))
        self._block_of = plain[0].block_of
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
        found = {}
        for i, c in enumerate(cells):
            if self._block_of[i] in self._blocks:
                pair = (model.mechanism(i).log_prob(c.own, c.parents) for model in models)
                found[i] = [log_prob.expand(c.own.shape)[None] for log_prob in pair]
        return rows, found

    def log_prob(self, rich: frozenset[int]) -> Tensor:
        """Returns log p(x_O) of every row, up to constants, with some blocks rich, (N,)."""
        answer = self.completions.completed.new_zeros(len(self.completions))
        for rows, found in self._parts:
            picked = {i: pair[0 if self._block_of[i] in rich else 1] for i, pair in found.items()}
            answer[rows] = self.completions.log_prob(rows, lambda i, *_, p=picked: p.get(i))[0]
        return answer

    def elpd_difference(self, rich: frozenset[int], over: frozenset[int]) -> ElpdDifference:
        """Returns what richness in some blocks gains over richness in others."""
        return ElpdDifference.of(self.log_prob(rich) - self.log_prob(over))

    def choose(self, z: float) -> frozenset[int]:
        """Returns the blocks that earn a rich mechanism, by z standard errors."""
        chosen = self.candidates
        while chosen:
            ratio, weakest = min(
                (self.elpd_difference(chosen, chosen - {block}).ratio, block) for block in chosen
            )
            if ratio > z:
                break
            chosen -= {weakest}
        return chosen


def some_rows(rows: RowSource, settings: Selection, seed: int) -> RowSource:
    """Returns as many rows as are worth their time, by chance."""
    most = min(settings.most_rows, settings.most_cells // (rows.columns * settings.completions))
    if len(rows) <= most:
        return rows
    some = torch.randperm(len(rows), generator=derive_generator(seed, "judges"))[:most]
    return SelectedRows(rows, some)


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
    steps: int | None = None,
) -> CrossFit:
    """Trains a rich model for every fold beside its plain one.

    Arguments:
        completions: Completions of all rows, in double precision.
        folds: Which rows are left out together.
        starts: A rich model a fold as it starts; it is trained in place.
        plain: A fitted plain model a fold.
        candidates: The blocks that are compared.
        settings: How networks are trained.
        seed: Where randomness starts.
        watch: Called after each epoch.
        only: Whether only candidates are trained; the other blocks are as the fit has them.
        steps: About how many steps of training; None for the epochs and batches of the settings.
    """
    if steps is not None:
        settings = _short_training(settings, len(completions), steps)
    models, single = [start.float() for start in starts], completions.to(torch.float32)
    blocks, weights = candidates if only else None, folds.weights().float()
    train_folds(models, single, weights, folds.fold, settings, seed, blocks, watch)
    rich = [start.double() for start in starts]
    return CrossFit(completions, folds, rich, plain, candidates, only=only)


def _short_training(settings: Settings, rows: int, steps: int) -> Settings:
    training = replace(settings.training, batch=settings.selection.comparison_batch)
    steps_an_epoch = math.ceil(rows / training.batch_for(rows))
    epochs = min(math.ceil(steps / steps_an_epoch), math.ceil(training.epochs / 2))
    return replace(settings, training=replace(training, epochs=epochs))
