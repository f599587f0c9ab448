r"""Ties of a wide table: columns that are one thing measured again, as in L1, L2, L3.

    ties=[["L1", "L2", "L3"], ["A1", "A2", "A3"]]

Columns of a tie have one codec, learned from the cells of all of them, and those of them whose
causes play the same part have one mechanism: L2 of L1 and A1 is to L3 of L2 and A2 as one visit is
to the next. A first column, which has other causes, has a mechanism of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pandas as pd

from misscnf.data.kinds import KindRules, Kinds, choose_columns, read_requests
from misscnf.data.table import IncompleteTable, Schema
from misscnf.errors import InputError
from misscnf.graph import CausalGraph

__all__ = ["Ties", "read_ties", "tied_keys", "tied_schema"]

Ties = Sequence[Sequence[str]]
"""Columns that are one thing measured again, each in the order of its visits."""


def read_ties(ties: object, graph: CausalGraph) -> Ties:
    """Refuses ties of what is no column of the graph, or in two of them."""
    lists = isinstance(ties, Iterable) and not isinstance(ties, str)
    found = [list(tie) if not isinstance(tie, str) else [] for tie in ties] if lists else []  # type: ignore[attr-defined]
    if not found or any(len(tie) < 2 for tie in found):
        raise InputError(
            f"ties are lists of two columns or more, such as [['L1', 'L2', 'L3']]; got {ties!r}."
        )
    home: dict[str, int] = {}
    for number, tie in enumerate(found):
        for name in tie:
            place = graph.index(name)
            if place in graph.indicators or place in graph.latent_nodes:
                raise InputError(f"{name!r} has no column of its own, and cannot be tied.")
            if name in home:
                raise InputError(f"{name!r} is tied twice; a column is in one tie at most.")
            home[name] = number
    return found


def tied_schema(table: IncompleteTable, ties: Ties, kinds: Kinds, rules: KindRules) -> Schema:
    """Returns codecs that the columns of a tie share."""
    cells = dict(zip(table.nodes, table.cells, strict=True))
    columns = dict(zip(table.nodes, table.schema.columns, strict=True))
    notes = dict(zip(table.nodes, table.schema.notes, strict=True))
    asked = read_requests(kinds, table.nodes, table.columns)
    for tie in ties:
        wanted = {asked.get(name) for name in tie}
        if len(wanted) > 1:
            raise InputError(
                f"{tie[0]!r} and {tie[-1]!r} are tied, and kinds asks for different things of "
                f"tied columns; ask the same of all."
            )
        together = pd.concat([cells[name] for name in tie], ignore_index=True)
        own = {tie[0]: table.schema.kinds[tie[0]]} if wanted != {None} else None
        (codec,), (note,) = choose_columns([together], [tie[0]], own, [], rules)
        for name in tie:
            columns[name] = replace(codec, name=name)  # type: ignore[type-var]
            notes[name] = replace(note, holes=notes[name].holes)
    return Schema(tuple(columns.values()), tuple(notes.values()))


def tied_keys(graph: CausalGraph, ties: Ties) -> list[str]:
    """Returns the key of each node's mechanism: tied nodes with causes in the same parts share."""
    place = {name: (number, k) for number, tie in enumerate(ties) for k, name in enumerate(tie)}
    keys, orders = list(graph.nodes), dict[tuple[object, ...], tuple[int, tuple[object, ...]]]()
    for i, name in enumerate(graph.nodes):
        if name not in place:
            continue
        number, k = place[name]
        parts = tuple(
            (place[p][0], k - place[p][1]) if p in place else p for p in graph.parents_of(name)
        )
        first, order = orders.setdefault((number, *sorted(map(repr, parts))), (i, parts))
        if order != parts:
            raise InputError(
                f"{graph.nodes[first]!r} and {name!r} are tied, and their causes come in another "
                f"order; name the columns of the graph visit by visit, always in the same order."
            )
        keys[i] = graph.nodes[first]
    return keys
