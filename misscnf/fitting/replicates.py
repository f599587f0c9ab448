r"""Replicates of a fit: what it might have been, had other rows been drawn.

The sampling error of any answer is its spread over replicates of the fit on weighted rows (the
Bayesian bootstrap, Rubin 1981): one Newton step each where it is made of lines and curves
(`solve.sandwich`), networks trained together where it is not (`train`). Neither solves an integral
again: both use a few completions of each row by the fit (`completions`).
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.errors import solvable
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.sandwich import one_step_replicates
from misscnf.fitting.threads import one_thread
from misscnf.fitting.train.ensemble import EpochWatcher, train_ensemble
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel, Structure

__all__ = ["bootstrap_weights", "replicate_fit"]


def bootstrap_weights(count: int, rows: int, seed: int) -> Tensor:
    """Returns Exp(1) weights of the rows for each replicate, with mean one, (count, rows)."""
    generator = derive_generator(seed, "bootstrap")
    weights = torch.empty(count, rows, dtype=torch.float64).exponential_(generator=generator)
    return weights / weights.mean(1, keepdim=True)


@solvable()
@one_thread()
def replicate_fit(
    model: StructuralModel,
    structure: Structure,
    rows: RowSource,
    settings: Settings,
    *,
    seed: int = 0,
    count: int | None = None,
    watch: EpochWatcher | None = None,
) -> list[StructuralModel]:
    """Returns models that differ from a fit by its sampling error, in double precision.

    Arguments:
        model: The fit.
        structure: Its graph, domains and ties.
        rows: The rows of the fit.
        settings: How the fit was trained.
        seed: Where randomness starts.
        count: How many; None for as many as the settings say.
        watch: Called after each epoch, where networks are trained.
    """
    replication = settings.replicates
    solved = _is_solved(model)
    count = count or (replication.solved if solved else replication.networks)
    weights = bootstrap_weights(count, len(rows), seed)
    if solved:
        return _one_step(model, rows, weights, settings, seed)
    starts: list[StructuralModel | None] = [None] * count
    if settings.linear_start:
        line = fit_linear(structure, rows, settings).model
        starts = list(_one_step(line, rows, weights, settings, seed))
    models = []
    for replicate, start in enumerate(starts):
        found = _afresh(model, start)
        found.initialise(derive_generator(seed, "replicate", replicate))
        models.append(found.float())
    generator, effort = derive_generator(seed, "particles"), settings.integration.completions
    times = replication.completions_of_networks
    completions = Completions.draw(model, rows, times, generator, effort).to(torch.float32)
    order = torch.randperm(len(completions), generator=derive_generator(seed, "held out"))
    held_out = int(replication.held_out * len(order))
    split = order[held_out:], order[:held_out]
    training = replace(settings.training, steps_an_epoch=replication.steps_an_epoch)
    settings = replace(settings, training=training)
    train_ensemble(models, completions, split, weights.float(), settings, seed, watch)
    return [found.double().eval().requires_grad_(requires_grad=False) for found in models]


def _is_solved(model: StructuralModel) -> bool:
    """Says whether the model has nothing that is trained."""
    return all(model.block(block).solvable for block in range(len(model.blocks)))


def _afresh(model: StructuralModel, line: StructuralModel | None) -> StructuralModel:
    """Returns a model with mechanisms of the same shapes, as they start.

    Curves rest on what the fit chose for them, and start where it ended: there is but one maximum.
    """
    mechanisms: list[Mechanism] = []
    for block in range(len(model.blocks)):
        fitted = model.block(block)
        mechanisms.append(type(fitted)(**fitted.spec()))
        if fitted.curve_size is not None:
            mechanisms[-1].start_from(fitted)
        elif line is not None:
            mechanisms[-1].start_from(line.block(block))
    return model.like(mechanisms)


def _one_step(
    model: StructuralModel, rows: RowSource, weights: Tensor, settings: Settings, seed: int
) -> list[StructuralModel]:
    """Returns the lines and curves of each set of weights, (B, N)."""
    generator, effort = derive_generator(seed, "particles of the line"), settings.integration
    times = settings.replicates.completions_of_solved
    completions = Completions.draw(model, rows, times, generator, effort.completions)
    return one_step_replicates(model, completions, weights, seed, settings.replicates)
