"""Which column of a table belongs to which node: by name, and never by guessing.

A name that is repeated has no one column; a name that is a number is not the text of it.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Sequence

import pandas as pd

from misscnf.data.cells import listed
from misscnf.errors import InputError

__all__ = ["locate_columns"]

logger = logging.getLogger("misscnf")


def locate_columns(
    frame: pd.DataFrame, nodes: Sequence[str], *, require_all: bool
) -> dict[str, int]:
    """The position of each node's column, of those that have one.

    Arguments:
        frame: The table.
        nodes: The nodes of the graph.
        require_all: Whether a node without a column is refused.
    """
    places: dict[str, list[int]] = {node: [] for node in nodes}
    lookalikes = {str(name): name for name in frame.columns if not isinstance(name, str)}
    for j, name in enumerate(frame.columns):
        if isinstance(name, str) and name in places:
            places[name].append(j)
    for node, found in places.items():
        if len(found) > 1:
            raise InputError(
                f"the table has {len(found)} columns named {node!r}; drop or rename all but one."
            )
        if not found and node in lookalikes:
            raise InputError(
                f"node {node!r} is text, and the table's column {lookalikes[node]!r} is named by "
                f"a {type(lookalikes[node]).__name__}; rename the columns with "
                f"frame.columns = frame.columns.astype(str)."
            )
    absent = [node for node in nodes if not places[node]]
    if absent and require_all:
        raise InputError("; ".join(_absence(node, frame.columns) for node in absent) + ".")
    if absent:
        logger.info("Nodes without a column are missing in every row: %s.", listed(absent))
    return {node: found[0] for node, found in places.items() if found}


def _absence(node: str, columns: pd.Index) -> str:
    folded = {str(name).casefold(): name for name in columns}
    close = [folded[name] for name in difflib.get_close_matches(node.casefold(), folded)]
    if close:
        return f"node {node!r} has no column in the table (did you mean {listed(close)}?)"
    return f"node {node!r} has no column in the table, which has {listed(columns)}"
