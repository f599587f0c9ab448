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

The models of cross-fitting are trained likewise, one for each fold, with weight zero for the rows
that it leaves out (`train_folds`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import torch
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Settings
from misscnf.fitting.stacked import Ensemble, Parameters
from misscnf.fitting.train.loop import EpochRecord, Trainer
from misscnf.fitting.train.objective import Objective, StepReport
from misscnf.model import StructuralModel

__all__ = ["CompletionLikelihood", "EpochWatcher", "train_ensemble", "train_folds"]

EVALUATIONS_AT_ONCE = 400_000
"""Of one mechanism, over replicates, rows and completions: bounds the memory of a step."""

EpochWatcher = Callable[[int, int], None]
"""Takes how many epochs are done, and of how many."""


class CompletionLikelihood(Objective):
    """The likelihood of completions, for B models with weights of the rows each.

    Arguments:
        models: The starting points, B of them, in the precision of the completions.
        completions: The likelihood near the fit.
        rows: Which rows to learn from, and which judge (maybe none).
        weights: (B, N).
        settings: How to train.
        seed: Where randomness starts.
        blocks: The blocks that are trained; None for all. Others are as the fit has them.
    """

    def __init__(
        self,
        models: Sequence[StructuralModel],
        completions: Completions,
        rows: tuple[Tensor, Tensor],
        weights: Tensor,
        settings: Settings,
        seed: int,
        blocks: Collection[int] | None = None,
    ) -> None:
        self.ensemble, self.replicates = Ensemble(models, blocks), (len(models),)
        self.parameters = {
            f"{block}/{name}": parameter
            for block, mine in enumerate(self.ensemble.parameters)
            for name, parameter in mine.items()
        }
        self.completions, self.weights, self.seed = completions, weights, seed
        block_of = models[0].block_of
        self.nodes = frozenset(
            i for i, block in enumerate(block_of) if blocks is None or block in blocks
        )
        self.rows, self.judges = rows
        self.epochs, self.held_out, self.state = settings.training.epochs, len(self.judges), {}
        self.priors = self.ensemble.priors()

    def draw_priors(self) -> None:
        """Draws where the weights of curves are drawn to, for every replicate."""
        generator = derive_generator(self.seed, "priors")
        for prior in self.priors:
            drawn = torch.randn(prior.centre.shape, generator=generator, dtype=torch.float64)
            prior.centre.copy_(drawn / prior.precision.double().sqrt())

    def __len__(self) -> int:
        return len(self.rows)

    def order(self, epoch: int) -> Tensor:
        """Returns the rows to learn from, shuffled."""
        shuffle = derive_generator(self.seed, "shuffle replicates", epoch)
        return self.rows[torch.randperm(len(self), generator=shuffle)]

    def gradient(self, rows: Tensor, epoch: int, step: int) -> StepReport:
        """Adds the gradients of all replicates to their parameters."""
        for piece in self._pieces(rows):
            log_prob = self._log_prob(piece, self.parameters)
            if log_prob.requires_grad:  # these rows may show nothing that is trained
                (-(self.weights[:, piece] * log_prob).sum() / len(rows)).backward()
        for prior in self.priors:
            (-prior.log_prob(self.ensemble.parameters) / len(self)).backward()
        return StepReport()

    def validate(self, parameters: Mapping[str, Tensor]) -> Tensor:
        """Returns the weighted log-densities of the held-out rows, up to constants, (B, n)."""
        return self.weights[:, self.judges] * self.log_prob(self.judges, parameters)

    @torch.no_grad()
    def log_prob(self, rows: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        """Returns the log-densities of rows up to constants, (B, n)."""
        return torch.cat([self._log_prob(piece, parameters) for piece in self._pieces(rows)], 1)

    def _log_prob(self, rows: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        by_block: list[Parameters] = [
            {name: parameters[f"{block}/{name}"] for name in mine}
            for block, mine in enumerate(self.ensemble.parameters)
        ]
        families = self.completions.families(rows, self.nodes)
        return families.log_prob(self.ensemble.log_factor(by_block))

    def _pieces(self, rows: Tensor) -> tuple[Tensor, ...]:
        of_a_row = self.ensemble.size * self.completions.count
        return rows.split(max(1, EVALUATIONS_AT_ONCE // of_a_row))


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

    Arguments are those of `CompletionLikelihood`; `watch` is called after each epoch.
    """
    objective = CompletionLikelihood(models, completions, rows, weights, settings, seed)
    objective.draw_priors()
    Trainer(objective, settings.training).run(_counting(watch))
    objective.ensemble.write(objective.ensemble.parameters, models)


def train_folds(
    models: Sequence[StructuralModel],
    completions: Completions,
    weights: Tensor,
    fold: Tensor,
    settings: Settings,
    seed: int,
    blocks: Collection[int] | None = None,
    watch: EpochWatcher | None = None,
) -> None:
    """Trains a model for each fold in place, to the epoch that the other folds' rows like best.

    Every row is judged by the model that does not see it. A model's own fold has no say in its
    epoch, so that it may compare this model with others later.

    Arguments are those of `CompletionLikelihood`, and:
        weights: (F, N), zero for the rows of a model's own fold.
        fold: (N,) the fold of each row.
        watch: Called after each epoch.
    """
    everyone = torch.arange(len(completions))
    given = (weights, settings, seed, blocks)
    objective = CompletionLikelihood(models, completions, (everyone, everyone), *given)
    left_out = [(fold == one).nonzero()[:, 0] for one in range(len(models))]

    def judge(parameters: Mapping[str, Tensor]) -> Tensor:
        unseen = []
        for one, its in enumerate(left_out):
            mine = {name: tensor[one : one + 1] for name, tensor in parameters.items()}
            unseen.append(objective.log_prob(its, mine).sum())
        each = torch.stack(unseen)
        return (each.sum() - each) / len(everyone)

    Trainer(objective, settings.training, judge=judge, keep="best").run(_counting(watch))
    objective.ensemble.write(objective.ensemble.parameters, models)


def _counting(watch: EpochWatcher | None) -> Callable[[EpochRecord, int], None] | None:
    return None if watch is None else lambda record, epochs: watch(record.epoch, epochs)
