r"""Models around a fit that differ in how a column is lost.

    logit P(missing(y) = 1 | y, v) = s z_y + a + bᵀ v

v is what else drives the loss: what the graph says, or, where it says nothing, all causes of y
that no row hides. With the latter, s = 0 is ignorable and the fit itself. For other s the rows
that lost y say something of y, and all else is refitted; each s starts from its neighbour
(`fitting.refit`).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from misscnf.data.rows import MemoryRows
from misscnf.data.table import IncompleteTable
from misscnf.errors import InputError
from misscnf.fitting.refit import Refitter
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.graph import CausalGraph
from misscnf.graph.indicators import indicator_of
from misscnf.mechanisms import HeldSlope, Mechanism
from misscnf.model import StructuralModel, Structure
from misscnf.queries.asking import Asked, Cache, EffectMixin
from misscnf.queries.losses import slope_of_loss

__all__ = ["with_indicator", "at_strengths"]

Fitted = TypeVar("Fitted", bound=EffectMixin)


def with_indicator(
    fitted: Fitted, column: str, drivers: Iterable[str] | None, table: IncompleteTable
) -> Fitted:
    """Returns a fit whose graph has the indicator of a column; as it is, where it has it already.

    Arguments:
        fitted: The fit.
        column: The column.
        drivers: What drives its loss beside itself; None for what the graph says, or all causes
            of it that no row hides.
        table: The table of the fit.
    """
    graph, name = fitted.graph_, indicator_of(column)
    if bool(table.observed[:, graph.index(column)].all()):
        raise InputError(
            f"no cell of {column!r} is lost, so nothing depends on why; name a column with holes."
        )
    if name in graph.nodes:
        if drivers is not None:
            raise InputError(
                f"the graph says what drives the loss of {column!r}; name the column alone, "
                f"loss={column!r}."
            )
        return _other(fitted, graph, table, fitted.model_, fitted._cache)
    shown = table.observed.all(0)
    if drivers is None:
        above = graph.ancestral_closure([graph.index(column)]) - {graph.index(column)}
        varies = table.values.amax(0) > table.values.amin(0)  # the time of a visit does not
        drivers = [graph.nodes[i] for i in sorted(above) if shown[i] and varies[i]]
    places = [graph.index(driver) for driver in drivers]
    law = _fit_law([*places], column, fitted, table)
    wider = _with_arrows(graph, [(graph.nodes[i], name) for i in places], name)
    model = fitted.model_
    laws = {model.keys[nodes[0]]: model.block(b) for b, nodes in enumerate(model.blocks)}
    found = StructuralModel(wider, {**laws, name: law}, (*model.keys, name))
    table = table.with_indicator(name)
    if not bool(shown[places].all()):  # then it has a say in what is hidden
        rows = MemoryRows(table.values, table.observed)
        found = Refitter(found, rows, fitted.settings_, fitted.seed).maximum(found)
    return _other(fitted, wider, table, found.eval().requires_grad_(requires_grad=False))


def at_strengths(
    fitted: Fitted, column: str, strengths: Sequence[float]
) -> Iterator[tuple[int, Fitted]]:
    """Yields a fit at each strength of a column's own say in its loss, and which one it is.

    They come along the path from the fit, each side after the other.

    Arguments:
        fitted: A fit whose graph has the indicator of the column.
        column: The column.
        strengths: Log-odds that a standard deviation of it adds.
    """
    graph, table = fitted.graph_, fitted._table
    assert table is not None
    name, own = indicator_of(column), graph.index(column)
    _refuse_unordered(fitted, own)
    indicator, begin = graph.index(name), 0.0
    if own in graph.parents[indicator]:
        begin = slope_of_loss(fitted.model_, own, indicator, fitted.schema_.columns)
    else:
        if len(fitted.model_.blocks[fitted.model_.block_of[indicator]]) > 1:
            raise InputError(
                f"the losses of {column!r} and of other visits share a mechanism, and the graph "
                f"has no arrow from the value to its loss; draw it, as in L[t] -> missing(L)[t], "
                "and fit again."
            )
        graph = _with_arrows(graph, [(column, name)], name)
    parents = graph.parents[indicator]
    domains, place = [fitted.schema_.domains[i] for i in parents], parents.index(own)

    def held(model: StructuralModel, strength: float) -> StructuralModel:
        law = HeldSlope(domains, place, strength).double()
        law.start_from(model.mechanism(indicator))
        laws = [model.block(b) for b in range(len(model.blocks))]
        laws[model.block_of[indicator]] = law
        keys = [model.keys[nodes[0]] for nodes in model.blocks]
        return StructuralModel(graph, dict(zip(keys, laws, strict=True)), model.keys)

    start = held(fitted.model_, begin)
    rows = MemoryRows(table.values, table.observed)
    refitter = Refitter(start, rows, fitted.settings_, fitted.seed)
    order = [int(i) for i in np.argsort(strengths, kind="stable")]
    above = [i for i in order if strengths[i] >= begin]
    for side in (above, [i for i in reversed(order) if i not in above]):
        near = start
        for i in side:
            near = refitter.maximum(held(near, strengths[i]))
            other = _other(fitted, graph, table, near)
            other.rivals_ = {}  # forms that were not taken would be fitted anew at each strength
            yield i, other


def _fit_law(
    drivers: list[int], column: str, fitted: EffectMixin, table: IncompleteTable
) -> Mechanism:
    """Returns the logistic line of a loss in some columns."""
    names = [f"driver {i}" for i in drivers]
    family = CausalGraph.from_edges([(cause, "lost") for cause in names], [*names, "lost"])
    table = table.with_indicator(indicator_of(column))
    places = [*drivers, len(table.nodes) - 1]
    rows = MemoryRows(table.values[:, places], table.observed[:, places])
    structure = Structure.of(family, [table.schema.domains[i] for i in places])
    return fit_linear(structure, rows, fitted.settings_).model.mechanism(len(drivers))


def _with_arrows(
    graph: CausalGraph, arrows: Iterable[tuple[str, str]], indicator: str
) -> CausalGraph:
    """Returns a graph with more arrows into an indicator, its nodes where they were."""
    nodes = list(dict.fromkeys([*graph.nodes, indicator]))
    found = CausalGraph.from_edges([*graph.edges, *arrows], nodes, graph.blocks, graph.auxiliary)
    if found.nodes != tuple(nodes):
        raise InputError(
            f"{indicator!r} stands before what drives it; draw the arrow into {indicator!r} in "
            f"the graph, and fit again."
        )
    return found.with_readings(graph.readings)  # an indicator is told by its drivers as they are


def _other(
    fitted: Fitted,
    graph: CausalGraph,
    table: IncompleteTable,
    model: StructuralModel,
    cache: Cache | None = None,
) -> Fitted:
    """Returns a fit of the same rows by another model, which shares all else."""
    found = copy.copy(fitted)
    found.graph_, found.model_, found.schema_ = graph, model, table.schema
    found._table, found._digest = table, table.digest
    found._stands_for = None  # it is refitted to this table
    found._cache = cache or Cache(Asked(model))
    found.progress = False
    return found


def _refuse_unordered(fitted: EffectMixin, node: int) -> None:
    column = fitted.schema_.columns[node]
    if column.domain.kind == "categorical":
        raise InputError(
            f"{column.name!r} has levels without an order, and a strength goes up or down; ask "
            f"for ratio= and an event instead."
        )
