r"""Indicators of loss: nodes that say whether a value is there.

A value that is lost because of itself, or of other hidden values, leaves a trace: that it is lost.
In a graph this is one more node, the indicator of a column, with what drives the loss as parents,

    missing(y) = 1{the cell of y is a hole},        y -> missing(y);  dose -> missing(y)

(the m-graphs of Mohan, Pearl and Tian 2013). An indicator is never lost itself, and no column of
the user's: it is made from the table. It is a cause of other indicators at the most (drop-out
follows drop-out), since what is measured does not depend on being written down.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from misscnf.errors import InputError

__all__ = ["Loss", "indicator_of", "column_of", "check_indicators", "loss_edges"]

Loss: TypeAlias = Literal["self"] | Mapping[str, Iterable[str]]
"""Columns with what drives their loss; "self" for every column with holes, by itself and its
parents."""


def indicator_of(column: str) -> str:
    """Returns the name of a column's indicator."""
    return f"missing({column})"


def column_of(node: str) -> str | None:
    """Returns the column that a node is the indicator of, None if it is none."""
    return node[8:-1].strip() if node.startswith("missing(") and node.endswith(")") else None


def check_indicators(names: Collection[str], edges: Iterable[tuple[str, str]]) -> None:
    """Refuses the indicator of what is no node, and one that is a cause of anything else."""
    for name in names:
        column = column_of(name)
        if column is not None and (column not in names or column_of(column) is not None):
            raise InputError(
                f"{name!r} says whether {column!r} is lost, which is no column of the graph; draw "
                f"{column!r} as a node too, or leave the indicator out."
            )
    for cause, effect in edges:
        if column_of(cause) is not None and column_of(effect) is None:
            raise InputError(
                f"the arrow {cause} → {effect} makes a loss the cause of a value; an indicator "
                f"can only be a cause of other indicators."
            )


def loss_edges(
    loss: Loss, nodes: Sequence[str], parents: Mapping[str, Sequence[str]], holes: Collection[str]
) -> list[tuple[str, str]]:
    """Returns the arrows into indicators that a loss asks for.

    Arguments:
        loss: What drives the loss of which column.
        nodes: The nodes of the graph.
        parents: The direct causes of each.
        holes: The columns that have holes.
    """
    if loss == "self":
        loss = {name: [name, *parents[name]] for name in nodes if name in holes}
    if not isinstance(loss, Mapping):
        raise InputError(
            f"loss is 'self', or {{column: [what drives its loss]}}, such as "
            f"{{'y': ['y', 'dose']}}; got {loss!r}."
        )
    edges = []
    for column, drivers in loss.items():
        if not isinstance(drivers, Iterable):
            raise InputError(
                f"loss has {drivers!r} for {column!r}; expected the names of what drives its "
                f"loss, such as ['{column}', 'dose']."
            )
        for name in [column, *([drivers] if isinstance(drivers, str) else drivers)]:
            if name not in nodes and column_of(str(name)) not in nodes:
                raise InputError(
                    f"the loss of {column!r} names {name!r}, which is no node of the graph; its "
                    f"nodes are {', '.join(nodes[:12])}{', …' * (len(nodes) > 12)}."
                )
        given = [drivers] if isinstance(drivers, str) else list(drivers)
        edges += [(driver, indicator_of(column)) for driver in given]
    return edges
