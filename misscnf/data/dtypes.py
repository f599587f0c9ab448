r"""The dtype of a column: kept through a saved model, and given back to what is drawn for it.

A whole-number dtype takes the nearest number that it holds, and says how often it had to cut one
off at its ends; a float is never rounded beyond its own precision. What pandas cannot name in
JSON, or what cannot hold drawn values, gives way to float64 or object, and the log says so.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pandas.api.extensions import ExtensionDtype
from pandas.api.types import is_float_dtype, is_integer_dtype, is_object_dtype

from misscnf.data.cells import Label, plain
from misscnf.errors import InputError

__all__ = [
    "Dtype",
    "FLOAT",
    "OBJECT",
    "dtype_to_dict",
    "dtype_from_dict",
    "is_whole",
    "can_hold_numbers",
    "can_hold_labels",
    "restorable",
    "number_series",
]

Dtype = np.dtype[Any] | ExtensionDtype

FLOAT = np.dtype("float64")
OBJECT = np.dtype("object")

_ARROW_TEXT = {"string[pyarrow]": pa.string(), "large_string[pyarrow]": pa.large_string()}

logger = logging.getLogger("misscnf")


def dtype_to_dict(dtype: Dtype) -> dict[str, Any]:
    """Returns plain values that name a dtype, for JSON."""
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        return {
            "name": "category",
            "categories": [plain(category) for category in categories],
            "of": dtype_to_dict(categories.dtype),
            "ordered": bool(dtype.ordered),
        }
    if isinstance(dtype, pd.StringDtype):
        missing = "NA" if dtype.na_value is pd.NA else "NaN"
        return {"name": "string", "storage": dtype.storage, "missing": missing}
    return {"name": str(dtype), "arrow": isinstance(dtype, pd.ArrowDtype)}


def dtype_from_dict(entry: Mapping[str, Any]) -> Dtype:
    """Returns the dtype that `dtype_to_dict` named."""
    name = entry["name"]
    if name == "category":
        categories = pd.Index(list(entry["categories"]), dtype=dtype_from_dict(entry["of"]))
        return pd.CategoricalDtype(categories, ordered=entry["ordered"])
    if name == "string" and "storage" in entry:
        return _text_dtype(entry["storage"], entry["missing"])
    if entry.get("arrow") and name in _ARROW_TEXT:
        return pd.ArrowDtype(_ARROW_TEXT[name])
    try:
        return pd.api.types.pandas_dtype(name)
    except (TypeError, NotImplementedError) as error:
        raise InputError(f"{name!r} is not a dtype that this pandas knows.") from error


def _text_dtype(storage: Any, missing: str) -> Dtype:  # noqa: ANN401 - pandas' own names
    if missing == "NA":
        return pd.StringDtype(storage)
    try:
        return pd.StringDtype(storage, na_value=np.nan)
    except TypeError:  # a pandas before 3, which had no such text
        return OBJECT


def restorable(dtype: Dtype) -> bool:
    """Whether a saved model can name this dtype and find it again."""
    try:
        return bool(dtype_from_dict(dtype_to_dict(dtype)) == dtype)
    except (InputError, TypeError, ValueError):
        return False


def is_whole(dtype: Dtype) -> bool:
    """Whether a dtype holds whole numbers only."""
    return is_integer_dtype(dtype)


def can_hold_numbers(dtype: Dtype) -> bool:
    """Whether drawn numbers can be written in this dtype and the dtype be saved."""
    if isinstance(dtype, pd.SparseDtype):
        return False
    fits = is_whole(dtype) or is_float_dtype(dtype) or is_object_dtype(dtype)
    return bool(fits) and restorable(dtype)


def can_hold_labels(dtype: Dtype, labels: Sequence[Label]) -> bool:
    """Whether every level can be written in this dtype, and read from it again as it was."""
    if isinstance(dtype, pd.SparseDtype):
        return False
    if isinstance(dtype, pd.CategoricalDtype):
        return {*labels} <= {plain(category) for category in dtype.categories}
    try:
        written = pd.Series(list(labels), dtype=dtype)
    except (TypeError, ValueError, OverflowError):
        return False
    return [plain(cell) for cell in written] == list(labels)


def number_series(
    numbers: np.ndarray, dtype: Dtype, name: str, *, low: float, high: float
) -> pd.Series:
    """Returns numbers (N,) in a dtype that holds them, inside an open interval.

    Arguments:
        numbers: The numbers.
        dtype: A dtype that `can_hold_numbers`.
        name: The column's name.
        low: No number is at or below this.
        high: No number is at or above this.
    """
    if is_whole(dtype):
        return pd.Series(_whole(numbers, dtype, name, low, high), dtype=dtype, name=name)
    if is_object_dtype(dtype):
        return pd.Series(numbers.tolist(), dtype=object, name=name)
    kind = _numpy_dtype(dtype)
    with np.errstate(over="ignore"):
        written = numbers.astype(kind)
    if kind != FLOAT and np.isfinite(low):  # rounding to fewer digits may reach the ends
        ends = np.array([low, high]).astype(kind)
        inner = np.nextafter(ends, ends[::-1])
        written = np.where(written <= low, inner[0], written)
        written = np.where(written >= high, inner[1], written).astype(kind)
    return pd.Series(written, dtype=dtype, name=name)


def _numpy_dtype(dtype: Any) -> np.dtype[Any]:  # noqa: ANN401 - nullable and Arrow's have one too
    return np.dtype(getattr(dtype, "numpy_dtype", dtype))


def _whole(numbers: np.ndarray, dtype: Dtype, name: str, low: float, high: float) -> np.ndarray:
    info = np.iinfo(_numpy_dtype(dtype))
    least, most = float(info.min), float(info.max)
    if int(most) > info.max:  # float64 has no such number, and the next above it overflows
        most = float(np.nextafter(most, 0.0))
    rounded = np.rint(numbers)
    cut = int(np.count_nonzero((rounded < least) | (rounded > most)))
    if cut:
        logger.warning(
            "Column %r: %d values do not fit its dtype %s and were cut off at its ends.",
            name,
            cut,
            dtype,
        )
    least, most = max(least, np.floor(low) + 1.0), min(most, np.ceil(high) - 1.0)
    return np.clip(rounded, least, most).astype(info.dtype)
