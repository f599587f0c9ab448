r"""Replicates of a fit: what it might have been, had other rows been drawn.

The sampling error of any answer is its spread over replicates of the fit on weighted rows (the
Bayesian bootstrap, Rubin 1981): Newton steps where it is made of lines and curves (`sandwich`),
networks trained together where it is not (`ensemble`). Neither solves an integral again: both use
a few completions of each row by the fit (`completions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from misscnf.data.domains import Domain
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.generalised_linear import fit_line
from misscnf.fitting.solve.sandwich import one_step_replicates
from misscnf.fitting.threads import one_thread
from misscnf.fitting.train.ensemble import EpochWatcher, train_ensemble
from misscnf.mechanisms import Curve
from misscnf.model import StructuralModel

__all__ = ["bootstrap_weights", "replicate_fit"]

NETWORKS, LINES = 16, 100
"""How many replicates by default: the interval's t has one degree of freedom fewer."""
COMPLETIONS_OF_NETWORKS, COMPLETIONS_OF_LINES = 16, 32
HELD_OUT = 0.1
STEPS_AN_EPOCH = 8
"""Half as many as in the fit: a stacked step costs much, however few its rows."""


def bootstrap_weights(count: int, rows: int, seed: int) -> Tensor:
    """Returns Exp(1) weights of the rows for each replicate, with mean one, (count, rows)."""
    generator = derive_generator(seed, "bootstrap")
    weights = torch.empty(count, rows, dtype=torch.float64).exponential_(generator=generator)
    return weights / weights.mean(1, keepdim=True)


@one_thread()
def replicate_fit(
    model: StructuralModel,
    chosen: str,
    domains: Sequence[Domain],
    rows: tuple[Tensor, Tensor],
    settings: Settings,
    *,
    seed: int = 0,
    count: int | None = None,
    watch: EpochWatcher | None = None,
) -> list[StructuralModel]:
    """Returns models that differ from a fit by its sampling error, in double precision.

    Arguments:
        model: The fit.
        chosen: "linear", "curve" or "network".
        domains: What the values of each node can be.
        rows: Values (N, d) and observed (N, d) of the table of the fit.
        settings: How the fit was trained.
        seed: Where randomness starts.
        count: How many; None for 16 with networks, 100 without.
        watch: Called after each epoch, where networks are trained.
    """
    networks = chosen == "network"
    count = count or (NETWORKS if networks else LINES)
    weights = bootstrap_weights(count, len(rows[0]), seed)
    if not networks:
        return _one_step(model, rows, weights, seed)
    starts: list[StructuralModel | None] = [None] * count
    if settings.linear_start:
        line = fit_line(model.graph, domains, *rows).model
        starts = list(_one_step(line, rows, weights, seed))
    models = []
    for replicate, start in enumerate(starts):
        found = _afresh(model, start)
        found.initialise(derive_generator(seed, "replicate", replicate))
        models.append(found.float())
    generator = derive_generator(seed, "particles")
    completions = Completions.draw(model, *rows, COMPLETIONS_OF_NETWORKS, generator)
    order = torch.randperm(len(completions), generator=derive_generator(seed, "held out"))
    held_out = int(HELD_OUT * len(order))
    split = order[held_out:], order[:held_out]
    single = completions.to(torch.float32)
    settings = replace(settings, steps_an_epoch=STEPS_AN_EPOCH)
    train_ensemble(models, single, split, weights.float(), settings, seed, watch)
    return [found.double().eval().requires_grad_(requires_grad=False) for found in models]


def _afresh(model: StructuralModel, line: StructuralModel | None) -> StructuralModel:
    """Returns a model with mechanisms of the same shapes, as they start.

    Curves rest on what the fit chose for them, and start where it ended: there is but one maximum.
    """
    mechanisms = []
    for i in range(len(model.graph)):
        mechanism = type(model.mechanism(i))(**model.mechanism(i).spec())
        if any(isinstance(part, Curve) for part in mechanism.modules()):
            mechanism.start_from(model.mechanism(i))
        elif line is not None:
            mechanism.start_from(line.mechanism(i))
        mechanisms.append(mechanism)
    return StructuralModel(model.graph, mechanisms)


def _one_step(
    model: StructuralModel, rows: tuple[Tensor, Tensor], weights: Tensor, seed: int
) -> list[StructuralModel]:
    """Returns the lines and curves of each set of weights, (B, N)."""
    generator = derive_generator(seed, "particles of the line")
    completions = Completions.draw(model, *rows, COMPLETIONS_OF_LINES, generator)
    return one_step_replicates(model, completions, weights, seed)
