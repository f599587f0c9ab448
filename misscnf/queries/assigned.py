r"""Values that an intervention assigns to a column: read, or refused in a sentence.

They come as one value or one a row, in the user's units and labels, whatever holds them: numbers,
lists, arrays, Series, tensors. What the column cannot be is refused with what was expected.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
from torch import Tensor

from misscnf.data.cells import plain, quoted
from misscnf.data.codecs import Column
from misscnf.errors import InputError

__all__ = ["assigned", "refusal"]


def assigned(value: object, rows: int, column: Column, what: str) -> np.ndarray:
    """Returns one value, or one a row, in the model's units, (1,) or (rows,).

    Sentences call it `what`.
    """
    return column.encode(_read_cells(_as_cells(value, rows, column, what), column, what))


def _as_cells(value: object, rows: int, column: Column, what: str) -> pd.Series:
    """Returns what was given as cells: one, or one a row, whatever row labels it has."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if not pd.api.types.is_list_like(value) or isinstance(value, Mapping | set | frozenset):
        single = value.item() if isinstance(value, np.ndarray) else value
        return pd.Series([single], dtype=None if _is_number(single) else object)
    if isinstance(value, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        shape: tuple[int, ...] = (len(value),)
    else:
        shape = np.shape(np.asarray(value, dtype=object))
        value = value if isinstance(value, np.ndarray) else list(value)  # type: ignore[call-overload]
    if shape != (rows,):
        raise InputError(
            f"{what} has shape {shape}; expected {column.expected}, or one for each of the {rows} "
            f"rows."
        )
    return pd.Series(value).reset_index(drop=True)


def _read_cells(cells: pd.Series, column: Column, what: str) -> np.ndarray:
    """Returns raw numbers of cells (n,), or says which cell is none."""
    if cells.isna().any() or _infinite(cells):
        raise InputError(f"{what} is missing or infinite; expected {column.expected}.")
    try:
        raw = column.parse(cells)
    except InputError as error:  # it names a row, and an intervention may have none
        words = (cell for cell in cells if not _is_number(cell))
        raise refusal(what, next(words, cells.iloc[0]), column) from error
    if np.isnan(raw).any():
        raise refusal(what, cells.iloc[int(np.isnan(raw).argmax())], column)
    return raw


def refusal(what: str, cell: object, column: Column) -> InputError:
    """Returns the sentence for what a column cannot be."""
    return InputError(
        f"{what} is {quoted(cell)}; expected {column.expected}, one of these for each row, or a "
        f"function."
    )


def _is_number(cell: object) -> bool:
    return plain(cell) is not None and not isinstance(cell, str)


def _infinite(cells: pd.Series) -> bool:
    if pd.api.types.is_any_real_numeric_dtype(cells):
        return bool(np.isinf(cells.to_numpy(dtype=np.float64, na_value=np.nan)).any())
    return any(isinstance(cell, float) and math.isinf(cell) for cell in cells)
