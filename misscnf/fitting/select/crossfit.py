r"""What deserves a richer mechanism? Cross-fitting: no row has a say in what judges it.

A few held-out rows cannot tell a curve from a line. Here each of F folds is left out in turn. A
plain and a rich model are both fitted to the other folds, on the likelihood of completions of a
fit to all rows (`completions`, with weight zero for what is left out), and every row is judged by
the models that did not see it, the rich one at the epoch that the rows of the other folds like
best.

With ℓ_i(S) the log-density of row i where the blocks of S have rich mechanisms and the others
plain ones, a block stays in S if

    mean_i [ ℓ_i(S) − ℓ_i(S \ {block}) ]  >  z · its standard error,

paired row by row. Blocks that do not are taken out one by one, the weakest first. A block changes
its own factors only, and the components that these belong to (`completions`): of each component
Σ log φ is kept, and what one block more or less means costs one sum over what the block touches.
After a block has left, only those that share a component with it are asked again.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts are imported when they are first used
import torch
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.given import Given
from misscnf.fitting.settings import Selection, Settings
from misscnf.fitting.train.ensemble import train_folds
from misscnf.model import StructuralModel

__all__ = ["CrossFit", "Folds", "RichSet", "cross_fit"]


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


@dataclass(frozen=True)
class _Move:
    """What the rich mechanism of a block says beyond the plain one, for rows it did not see."""

    rows: Tensor
    """(f,) the row of each free factor"""
    free: Tensor
    """(f,) log φ_rich − log φ_plain"""
    components: Tensor
    """(e,) those that a factor of the block belongs to, each once"""
    ratio: Tensor
    """(K, e) the same differences in every completion"""


class CrossFit:
    """Models of every fold, and how they judge the rows that they did not see.

    Other blocks are as the fit has them.

    Arguments:
        completions: Completions of all rows, K of each.
        folds: Which rows are left out together.
        rich: One model a fold.
        plain: One model a fold.
        candidates: The blocks that are compared.
        beside: Blocks that are as the plain models have them, whoever is rich.
    """

    def __init__(
        self,
        completions: Completions,
        folds: Folds,
        rich: Sequence[StructuralModel],
        plain: Sequence[StructuralModel],
        candidates: frozenset[int],
        beside: frozenset[int] = frozenset(),
    ) -> None:
        self.candidates, self.row_count = candidates, len(completions)
        self._nodes = {b: plain[0].blocks[b] for b in sorted(candidates | beside)}
        parts = [
            self._evaluate(completions, folds.rows(fold), pair)
            for fold, pair in enumerate(zip(rich, plain, strict=True))
        ]
        self.free = torch.stack([free for free, *_ in parts]).sum(0)
        """(N,) Σ_free log φ of the plain models"""
        self.ratio = torch.cat([ratio for _, ratio, *_ in parts], 1)
        """(K, C) Σ log φ_plain / φ_fit of each component"""
        self.component_row = torch.cat([row for _, _, row, _ in parts])
        """(C,)"""
        before = [0, *itertools.accumulate(ratio.shape[1] for _, ratio, *_ in parts)]
        self.moves = {
            b: _joined([moves[b] for *_, moves in parts], before) for b in sorted(candidates)
        }

    @torch.no_grad()
    def _evaluate(
        self,
        completions: Completions,
        rows: Tensor,
        models: tuple[StructuralModel, StructuralModel],
    ) -> tuple[Tensor, Tensor, Tensor, dict[int, _Move]]:
        """Returns what the plain models of a fold say, and what the rich ones say beyond it."""
        nodes = [i for mine in self._nodes.values() for i in mine]
        families = completions.families(rows, nodes)
        free = completions.completed.new_zeros(self.row_count)
        ratio = free.new_zeros(completions.count, len(families.component_row))
        moves = {}
        for block, mine in self._nodes.items():
            cells, gains = [families.nodes[i] for i in mine], []
            for i, c in zip(mine, cells, strict=True):
                rich, plain = (
                    model.law(i).log_prob(c.own, c.parents).expand(c.own.shape) for model in models
                )
                free.index_add_(0, rows[c.free], plain[: len(c.free)])
                ratio.index_add_(1, c.component, plain[c.place] - c.log_factor)
                gains.append(rich - plain)
            pairs = list(zip(cells, gains, strict=True))
            of_free = torch.cat([gain[: len(c.free)] for c, gain in pairs])
            inside = torch.cat([gain[c.place] for c, gain in pairs], 1)
            touched, which = torch.cat([c.component for c in cells]).unique(return_inverse=True)
            inside = inside.new_zeros(len(inside), len(touched)).index_add(1, which, inside)
            moves[block] = _Move(
                rows[torch.cat([c.free for c in cells])], of_free, touched, inside
            )
        return free, ratio, rows[families.component_row], moves

    def elpd_difference(self, rich: frozenset[int], over: frozenset[int]) -> ElpdDifference:
        """Returns what richness in some blocks gains over richness in others."""
        return ElpdDifference.of(RichSet(self, rich).log_prob() - RichSet(self, over).log_prob())

    def choose(self, z: Mapping[int, float]) -> frozenset[int]:
        """Returns the blocks that earn a rich mechanism, each by its z standard errors."""
        chosen, sharing = RichSet(self, self.candidates), self._sharing()
        ratios = {block: chosen.elpd_difference(block).ratio for block in self.candidates}
        while ratios:
            above, weakest = min((ratio - z[block], block) for block, ratio in ratios.items())
            if above > 0.0:
                break
            chosen.toggle(weakest)
            del ratios[weakest]
            for block in sharing[weakest] & ratios.keys():
                ratios[block] = chosen.elpd_difference(block).ratio
        return frozenset(ratios)

    def _sharing(self) -> dict[int, set[int]]:
        """Returns the blocks with which each shares a component: only theirs is news to it."""
        blocks = list(self.moves)
        columns = [self.moves[b].components.numpy() for b in blocks]
        ends = np.cumsum([0, *map(len, columns)])
        where = np.concatenate([np.zeros(0, dtype=np.int64), *columns])
        shape = (len(blocks), len(self.component_row))
        touches = scipy.sparse.csr_array((np.ones(len(where)), where, ends), shape=shape)
        pairs = (touches @ touches.T).tocoo()
        found: dict[int, set[int]] = {b: set() for b in blocks}
        for one, other in zip(pairs.row, pairs.col, strict=True):
            found[blocks[one]].add(blocks[other])
        return found


class RichSet:
    """ℓ_i(S), in parts: what one more or one less block in S changes costs what it touches.

    Arguments:
        crossed: The models.
        rich: S.
    """

    def __init__(self, crossed: CrossFit, rich: Collection[int]) -> None:
        self.crossed, self.rich = crossed, set[int]()
        self.free, self.ratio = crossed.free.clone(), crossed.ratio.clone()
        for block in sorted(rich):
            self.toggle(block)

    def log_prob(self) -> Tensor:
        """Returns log p(x_O) of every row, up to constants, (N,)."""
        inner = torch.logsumexp(self.ratio, 0) - math.log(len(self.ratio))
        return self.free.index_add(0, self.crossed.component_row, inner)

    def gain(self, block: int) -> Tensor:
        r"""Returns ℓ(S ∪ {block}) − ℓ(S \ {block}) of every row, (N,)."""
        move, gain = self.crossed.moves[block], torch.zeros_like(self.free)
        with_it = without = self.ratio[:, move.components]
        if block in self.rich:
            without = with_it - move.ratio
        else:
            with_it = without + move.ratio
        inner = torch.logsumexp(with_it, 0) - torch.logsumexp(without, 0)
        gain.index_add_(0, self.crossed.component_row[move.components], inner)
        return gain.index_add_(0, move.rows, move.free)

    def elpd_difference(self, block: int) -> ElpdDifference:
        """Returns what the richness of a block gains, the others as they are in S."""
        return ElpdDifference.of(self.gain(block))

    def toggle(self, block: int) -> None:
        """Takes a block into S, or out of it."""
        move, sign = self.crossed.moves[block], -1.0 if block in self.rich else 1.0
        self.free.index_add_(0, move.rows, sign * move.free)
        self.ratio.index_add_(1, move.components, sign * move.ratio)
        self.rich ^= {block}


def _joined(moves: Sequence[_Move], before: Sequence[int]) -> _Move:
    """Returns the moves of all folds as one, components numbered through."""
    shifted = [move.components + start for move, start in zip(moves, before, strict=False)]
    return _Move(
        torch.cat([move.rows for move in moves]),
        torch.cat([move.free for move in moves]),
        torch.cat(shifted),
        torch.cat([move.ratio for move in moves], 1),
    )


def cross_fit(
    completions: Completions,
    folds: Folds,
    starts: Sequence[StructuralModel],
    plain: Sequence[StructuralModel],
    candidates: frozenset[int],
    given: Given,
    steps: int | None = None,
    beside: frozenset[int] = frozenset(),
) -> CrossFit:
    """Trains a rich model for every fold beside its plain one.

    Arguments:
        completions: Completions of all rows, in double precision.
        folds: Which rows are left out together.
        starts: A rich model a fold as it starts; it is trained in place.
        plain: A fitted plain model a fold.
        candidates: The blocks that are trained and compared; others are as the fit has them.
        given: Settings, seed and who looks on.
        steps: About how many steps of training; None for the epochs and batches of the settings.
        beside: Blocks that are trained too, and not compared.
    """
    settings = given.settings
    if steps is not None:
        settings = _short_training(settings, len(completions), steps)
    models, single = [start.float() for start in starts], completions.to(torch.float32)
    about = (folds.weights().float(), folds.fold, settings, given.seed)
    train_folds(models, single, *about, candidates | beside, given.watch)
    rich = [start.double() for start in starts]
    return CrossFit(completions, folds, rich, plain, candidates, beside)


def _short_training(settings: Settings, rows: int, steps: int) -> Settings:
    training = replace(settings.training, batch=settings.selection.comparison_batch)
    steps_an_epoch = math.ceil(rows / training.batch_for(rows))
    epochs = min(math.ceil(steps / steps_an_epoch), math.ceil(training.epochs / 2))
    return replace(settings, training=replace(training, epochs=epochs))
