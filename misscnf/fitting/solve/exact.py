r"""The maximum of the likelihood itself, where its integrals are exact.

    θ = argmax  Σ_i log p(x_O; θ) − ½ Σ_j τ_j w_j²

by the quasi-Newton method on Fisher's gradient (`fisher`), in coordinates in which the information
of the rows is one. Beside hidden causes most of what would be known of a mechanism is hidden in
every row. There, rounds of completing and maximising (`monte_carlo`) come to rest far from the
maximum: each moves by what its completions leave free, and these follow the model they came from.
The likelihood itself has no such memory.
Networks are no part of it: where every row shows the family of one whole, the rest is a model by
itself.

A few of the rows lead most of the way. Where some rows have to be drawn, since they hide several
numbers of which one bends another, the search climbs on the others, and rounds of completions
follow on all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import torch

from misscnf.data.rows import RowSource, SelectedRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.fisher import likelihood_noise, row_log_likelihood, rows_by_chance
from misscnf.fitting.solve.quasi_newton import Maximum, maximise
from misscnf.fitting.solve.sandwich import measure_information
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals.closed_form import linear_gaussian
from misscnf.mechanisms import Mechanism, Shape
from misscnf.model import StructuralModel, Structure

__all__ = ["climb", "climb_exact", "is_exact", "lowest", "without_networks"]


def climb_exact(
    model: StructuralModel,
    rows: RowSource,
    settings: Settings,
    *,
    rough: bool = False,
    near: bool = False,
) -> bool:
    """Moves a model without networks to the maximum that rows with exact integrals tell, in place.

    Arguments:
        model: Where the search starts.
        rows: The rows.
        settings: How far it goes.
        rough: Whether to stop near the maximum.
        near: Whether it is near the maximum already, so that no few rows have to lead the way.

    Returns:
        Whether these are all rows; where they are few, nothing is moved.
    """
    solving = settings.solving
    exact = rows if is_exact(model, rows, settings) else _exact_rows(model, rows)
    if len(exact) < solving.least_exact * len(rows):
        return False
    some = rows_by_chance(exact, solving.climb_rows)
    if some is not exact and not near:
        climb(model, some, settings, least_gain=solving.newton_tolerance)
    least_gain = solving.newton_tolerance * (1.0 if rough else 0.01)
    climb(model, exact, settings, least_gain=least_gain)
    return exact is rows


def without_networks(
    model: StructuralModel, structure: Structure, rows: RowSource
) -> StructuralModel | None:
    """Returns a model of all that is solved for, whose mechanisms are those of the model.

    The family of a network that every row shows whole is a factor by itself: without its arrows
    the likelihood of the rest is the same. None where some row hides a part of such a family, or
    where a mean beside a network of the scale is to be moved.
    """
    networks = [b for b in range(len(model.blocks)) if not model.block(b).solvable]
    if not networks:
        return model
    if any(model.block(b).linear_mean() is not None for b in networks):
        return None
    shown = torch.ones(rows.columns, dtype=torch.bool)
    for batch in rows.batches():
        shown &= batch.observed.all(0)
    alone = [i for b in networks for i in structure.blocks[b]]
    if not all(bool(shown[list(structure.graph.families[i])].all()) for i in alone):
        return None
    graph = structure.graph.without_parents(alone)
    rest = Structure.of(graph, structure.domains, structure.keys)
    roots = rest.build(Shape(hidden=())).double().requires_grad_(requires_grad=False)
    blocks = range(len(model.blocks))
    return rest.model([(roots if b in networks else model).block(b) for b in blocks])


def is_exact(model: StructuralModel, rows: RowSource, settings: Settings) -> bool:
    """Says whether no integral of the rows is drawn, or none that other draws would change."""
    return likelihood_noise(model, rows, settings) <= settings.solving.most_noise_of_line


def _exact_rows(model: StructuralModel, rows: RowSource) -> RowSource:
    """Returns the rows of which no component of several numbers has to be drawn."""
    components = Plan.of(model.graph, rows).components()
    drawn = components.row[~linear_gaussian(model, components) & (components.size > 1)]
    exact = torch.ones(len(rows), dtype=torch.bool)
    exact[drawn] = False
    return SelectedRows(rows, exact.nonzero()[:, 0])


def climb(
    model: StructuralModel,
    rows: RowSource,
    settings: Settings,
    steps: int = 500,
    *,
    white: bool = True,
    least_gain: float | None = None,
) -> Maximum:
    """Moves a model towards the maximum of the likelihood, in place, by so many steps at most.

    It ends where steps gain fewer nats in the whole table; without such a number, where they gain
    less than the ninth digit of the mean. Quadrature has an error of its own, below which a search
    only circles.
    """
    plan, effort = Plan.of(model.graph, rows), settings.integration.linear
    blocks = [model.block(block) for block in range(len(model.blocks))]

    def objective() -> float:
        value = float(row_log_likelihood(model, rows, plan, effort).mean())
        priors = [prior for prior in (law.log_prior() for law in blocks) if prior is not None]
        if priors:
            prior = torch.stack(priors).sum() / len(rows)
            prior.backward()
            value += float(prior.detach())
        return value

    return maximise(
        model.parameters(),
        objective,
        lowest=lowest(blocks),
        whitening=_whitening(model, rows, settings) if white else None,
        steps=steps,
        least_gain=None if least_gain is None else least_gain / len(rows),
        no_gain=None if least_gain is None else settings.solving.newton_tolerance / len(rows),
    )


def lowest(mechanisms: Iterable[Mechanism]) -> list[float]:
    """Returns the least value of each of the mechanisms' parameters, in their order."""
    return [
        mechanism.lower_bounds().get(name, -math.inf)
        for mechanism in mechanisms
        for name, parameter in mechanism.named_parameters()
        for _ in range(parameter.numel())
    ]


def _whitening(model: StructuralModel, rows: RowSource, settings: Settings) -> np.ndarray:
    """Returns W with W Wᵀ the inverse of the information a row, bounded where there is little."""
    most = settings.solving.whitening_rows
    if model.graph.own_losses:  # every hole is drawn, also of leaves
        most = settings.solving.loss_rows
    rows = rows_by_chance(rows, most)
    count, effort = settings.solving.whitening_completions, settings.integration.completions
    completions = Completions.draw(model, rows, count, derive_generator(0, "white"), effort)
    said = measure_information(model, completions, settings.replicates)
    information = (said.matrix + said.prior_precision.diag()) / len(rows)
    size, direction = torch.linalg.eigh(information)
    floor = settings.solving.least_information * float(size.max())
    return (direction / size.clamp(min=floor).sqrt()).numpy()
