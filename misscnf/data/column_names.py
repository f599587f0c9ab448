r"""Which column is which: the names of columns that have none, and the column of each node.

Column j of an array is called `xj`, the convention of scikit-learn, so that an array and the
DataFrame with the columns x0, x1, … are one and the same table:

    fit(array, "x0 -> x1")   =   fit(DataFrame(array, columns=["x0", "x1"]), "x0 -> x1")

New rows of a model that was fitted to named columns are taken in the order of that table. The
sentences here say what scikit-learn's checks look for (`check_estimator`), in whole.

A node has the column of its name, and never one by guessing: a name that is repeated has no one
column, and a name that is a number is not the text of it.
"""

from __future__ import annotations

import difflib
import logging
import os
import reprlib
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from misscnf.data.cells import listed, plain
from misscnf.errors import InputError

__all__ = ["ArrayLike", "CellTypeError", "column_names", "name_columns", "refuse_width"]
__all__ += ["locate_columns"]

logger = logging.getLogger("misscnf")

ArrayLike: TypeAlias = Any
"""A numpy array or what numpy makes one of, or a frame with a `to_pandas` method."""


class CellTypeError(InputError, TypeError):
    """A cell is of a type that no column can have."""


def column_names(count: int) -> list[str]:
    """Returns x0, x1, …, the names of columns that have none."""
    return [f"x{j}" for j in range(count)]


def name_columns(
    source: pd.DataFrame | str | os.PathLike[str] | ArrayLike,
    names: Sequence[str] | None = None,
    reader: str = "misscnf",
) -> pd.DataFrame | str | os.PathLike[str]:
    """Returns an array as a DataFrame, and a row that is a Series; others as they are.

    The columns are called x0, x1, … by default; `reader` is who asks, for the sentences.
    """
    if isinstance(source, pd.DataFrame | str | os.PathLike):
        return source
    if isinstance(source, pd.Series) and all(isinstance(name, str) for name in source.index):
        return source.to_frame().T.infer_objects()  # one row, by the names of its cells
    if hasattr(source, "to_pandas") and not isinstance(source, pd.Series):
        return source.to_pandas()
    array = _read_array(source)
    if names is None:
        names = column_names(array.shape[1])
    refuse_width(array.shape[1], len(names), reader)
    frame = pd.DataFrame(array, columns=list(names))
    return frame.infer_objects() if array.dtype == object else frame


def refuse_width(found: int, expected: int, reader: str) -> None:
    """Refuses rows that have not the columns of the fitted table."""
    if found != expected:
        raise InputError(
            f"X has {found} features, but {reader} is expecting {expected} features as input; an "
            f"array has all columns of the fitted table in its order, and a DataFrame may leave "
            f"some out."
        )


def _read_array(source: ArrayLike) -> np.ndarray:
    if hasattr(source, "tocsr"):
        raise InputError(
            "a sparse matrix has zeros where nothing is stored, and holes are something else; "
            "pass a dense array, such as matrix.toarray(), with NaN in the holes."
        )
    try:
        array = np.asarray(source)
    except ValueError as problem:
        raise InputError(
            f"this {type(source).__name__} cannot be read as rows of equal length ({problem}); "
            f"give a DataFrame or a 2-D array."
        ) from problem
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported; give the real numbers that are meant.")
    if array.ndim != 2:
        raise InputError(
            f"a table has two axes, rows and columns, and this {type(source).__name__} has the "
            f"shape {array.shape}. Reshape your data: array.reshape(-1, 1) is one column, "
            f"array.reshape(1, -1) one row."
        )
    if array.shape[1] == 0:
        raise InputError(
            f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is "
            f"required."
        )
    if array.dtype == object:
        _refuse_objects(array)
    return array


def _refuse_objects(array: np.ndarray) -> None:
    for (row, column), cell in np.ndenumerate(array):
        missing = cell is None or cell is pd.NA or cell is pd.NaT
        if not missing and plain(cell) is None:
            raise CellTypeError(
                f"column {column} of the array has {reprlib.repr(cell)} in row {row}; every cell "
                f"of this argument must be a string, a number, True, False or missing."
            )


def locate_columns(
    frame: pd.DataFrame, nodes: Sequence[str], *, require_all: bool
) -> dict[str, int]:
    """The position of each node's column, of those that have one."""
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
        raise InputError(_absence(absent, frame.columns))
    if absent:
        logger.info("Nodes without a column are missing in every row: %s.", listed(absent))
    return {node: found[0] for node, found in places.items() if found}


def _absence(nodes: Sequence[str], columns: pd.Index) -> str:
    """Says which nodes have no column: those with a name like theirs, and what there is."""
    folded = {str(name).casefold(): name for name in columns}
    said, strange = [], []
    for node in nodes:
        close = [folded[name] for name in difflib.get_close_matches(node.casefold(), folded)]
        if close:
            said.append(
                f"node {node!r} has no column in the table (did you mean {listed(close)}?)"
            )
        else:
            strange.append(node)
    if strange:
        have = "node {} has" if len(strange) == 1 else "nodes {} have"
        of = f"{have.format(listed(strange))} no column in the table, which has {listed(columns)}"
        said.append(of)
    return "; ".join(said) + "."
