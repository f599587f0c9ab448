r"""The cells of a column as they come.

A cell is a number, text, True or False, or a hole: what pandas calls missing (NaN, None, NA, NaT).
It is read, or a sentence says which one is not, by the label of its row.
"""

from __future__ import annotations

import math
import numbers
import reprlib
from collections.abc import Iterable
from decimal import Decimal

import numpy as np
import pandas as pd
from pandas.api.types import is_any_real_numeric_dtype, is_bool_dtype

from misscnf.errors import InputError

__all__ = ["Label", "plain", "quoted", "read_numbers", "observed_cells", "distinct_labels"]
__all__ += ["is_text", "mostly_numbers_as_text", "refuse_dates", "refuse_holes_of_r"]
__all__ += ["row_label", "level_text", "listed"]

Label = str | bool | int | float
"""What a level can be called: the types that JSON keeps apart."""


def level_text(level: Label) -> str:
    """Returns a level as people write it: holes have made 1 the number 1.0."""
    return f"{level:g}" if isinstance(level, float) and level.is_integer() else str(level)


def plain(cell: object) -> Label | None:
    """Returns a cell as one of Python's own types, or None where it is nothing of the kind."""
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    if isinstance(cell, numbers.Integral):
        return int(cell)
    if isinstance(cell, numbers.Real | Decimal):
        return float(cell)
    return None


def quoted(cell: object) -> str:
    """Returns a cell as sentences show it, np.int64(3) as 3."""
    label = plain(cell)
    return reprlib.repr(cell if label is None else label)


def listed(names: Iterable[object], most: int = 8) -> str:
    """Returns names in a row, and how many more there are."""
    names = list(names)
    shown = ", ".join(map(repr, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def row_label(index: pd.Index, row: int) -> str:
    """Returns the user's label of the row at a position."""
    return repr(index[[row]].tolist()[0])  # a list holds Python's own 3, not np.int64(3)


def observed_cells(cells: pd.Series) -> pd.Series:
    """Returns the cells that are no holes, with their row labels."""
    return cells[cells.notna().to_numpy()]


def refuse_dates(cells: pd.Series, name: str) -> None:
    """Refuses dates and durations, which are neither numbers nor levels."""
    if cells.dtype.kind in "mM":
        raise InputError(
            f"column {name!r} holds dates or durations ({cells.dtype}), and only numbers and "
            f"levels can be used; make it a number, such as the days since a reference date "
            f"(--dates {name} counts them from 1970-01-01)."
        )


def refuse_holes_of_r(cells: pd.Series, name: str) -> None:
    """Refuses the number by which R keeps the NA of whole numbers, where it comes as a number."""
    if not is_any_real_numeric_dtype(cells):
        return
    lost = (cells == -(2**31)).to_numpy(dtype=bool, na_value=False)
    if lost.any():
        raise InputError(
            f"column {name!r} has {-(2**31)} in the row labelled "
            f"{row_label(cells.index, int(lost.argmax()))}: so reticulate hands over the NA of "
            f"R's whole numbers; make the column as.numeric() in R, or these cells NaN."
        )


def read_numbers(cells: pd.Series, name: str) -> np.ndarray:
    """Reads a column as finite float64 with NaN in its holes (N,)."""
    refuse_dates(cells, name)
    refuse_holes_of_r(cells, name)
    if is_any_real_numeric_dtype(cells) or is_bool_dtype(cells):
        raw = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        raw = _read_objects(cells, name)
    infinite = np.isinf(raw)
    if infinite.any():
        row = int(infinite.argmax())
        raise InputError(
            f"column {name!r} has an infinite value ({raw[row]}) in the row labelled "
            f"{row_label(cells.index, row)}; make it a finite number, or NaN if it is missing."
        )
    return raw


def _read_objects(column: pd.Series, name: str) -> np.ndarray:
    """Cell by cell, since an object column may hold anything."""
    cells = column.to_numpy(dtype=object)
    raw = np.full(len(cells), np.nan)
    there = np.flatnonzero(~pd.isna(cells)).tolist()
    refused = [j for j in there if not isinstance(cells[j], numbers.Real | Decimal | np.bool_)]
    if refused:
        _refuse_cells(cells, refused, column.index, name)
    for j in there:
        try:
            raw[j] = float(cells[j])
        except OverflowError:  # an integer beyond float64, refused as infinite by the caller
            raw[j] = math.inf
    return raw


def _refuse_cells(cells: np.ndarray, refused: list[int], index: pd.Index, name: str) -> None:
    # One word in a file makes its whole column text: that word is the cell to name.
    words = [j for j in refused if not _is_number_as_text(cells[j])]
    row = (words or refused)[0]
    if not words:
        advice = "convert the column with pandas.to_numeric"
    elif isinstance(cells[row], str):
        advice = "make it a number, or a hole with pandas.read_csv(path, na_values=...)"
    else:
        advice = "make it a number, or NaN if it is missing"
    raise InputError(
        f"column {name!r} has {reprlib.repr(cells[row])}, which is not a number, in the row "
        f"labelled {row_label(index, row)}; {advice}."
    )


def _is_number_as_text(cell: object) -> bool:
    try:
        return isinstance(cell, str) and not math.isnan(float(cell))
    except ValueError:
        return False


def is_text(cells: pd.Series) -> bool:
    """Whether every observed cell is a text, and there is one."""
    if is_any_real_numeric_dtype(cells) or is_bool_dtype(cells):
        return False
    seen = observed_cells(cells)
    if isinstance(seen.dtype, pd.StringDtype):
        return len(seen) > 0
    return len(seen) > 0 and all(isinstance(cell, str) for cell in seen)


def mostly_numbers_as_text(cells: pd.Series) -> bool:
    """Whether most observed cells are numbers that were stored as text."""
    frequencies = observed_cells(cells).value_counts()
    numbers = [_is_number_as_text(text) for text in frequencies.index]
    return bool(2 * frequencies.to_numpy()[numbers].sum() > frequencies.sum())


def distinct_labels(cells: pd.Series, name: str) -> list[Label]:
    """Returns the distinct observed values as levels: sorted, or in a Categorical's own order."""
    seen = observed_cells(cells)
    if isinstance(seen.dtype, pd.CategoricalDtype):
        categories = seen.dtype.categories
        return [_level(categories[code], name) for code in np.unique(seen.cat.codes)]
    distinct = seen if seen.dtype == object else seen.unique().tolist()
    found = dict.fromkeys(_level(cell, name) for cell in distinct)
    if len({isinstance(label, str) for label in found}) > 1:
        read_numbers(cells, name)  # names the first cell that is not a number
    return sorted(found)


def _level(cell: object, name: str) -> Label:
    label = plain(cell)
    if label is None or label != label or label in (math.inf, -math.inf):
        raise InputError(
            f"column {name!r} has the level {reprlib.repr(cell)}, and a level is text, a finite "
            f"number, True or False; rename its levels, for a Categorical with "
            f"frame[{name!r}].cat.rename_categories(str)."
        )
    return label
