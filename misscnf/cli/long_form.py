r"""Several tables in one, one below the other; two columns tell where a row belongs, as in mice.

.imp    1, 2, …  the table (0 for the rows as they came)
.id     1, 2, …  the row
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from misscnf.errors import InputError

__all__ = ["carry_along", "number_rows"]


def carry_along(frame: pd.DataFrame, drawn: pd.DataFrame) -> pd.DataFrame:
    """Returns drawn rows with all columns of the table they come from, in its order.

    Arguments:
        frame: The table (N rows).
        drawn: Its columns in the graph, one draw of all rows after the other.
    """
    places = np.tile(np.arange(len(frame)), len(drawn) // len(frame))
    columns = []
    for j, name in enumerate(frame.columns):
        given = frame.iloc[:, j]
        cells = drawn[name] if name in drawn.columns else given.take(places)
        columns.append(cells.reset_index(drop=True).rename(name))
    return pd.concat(columns, axis=1)


def number_rows(table: pd.DataFrame, name: str, draws: int, first: int = 1) -> pd.DataFrame:
    """Returns a long table with the number of the draw and of the row before its columns.

    Arguments:
        table: The rows, one draw after the other.
        name: What the number of the draw is called.
        draws: How many draws there are.
        first: The number of the first draw.
    """
    for taken in (name, ".id"):
        if taken in table.columns:
            raise InputError(f"the table has a column {taken!r} already; rename or drop it.")
    rows = len(table) // draws
    numbers = {
        name: np.repeat(np.arange(first, first + draws), rows),
        ".id": np.tile(np.arange(1, rows + 1), draws),
    }
    return pd.concat([pd.DataFrame(numbers), table], axis=1)
