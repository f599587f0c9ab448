r"""The dtypes that columns come in, and that drawn cells go back to.

The dtype of a column is kept through a saved model, and given back to what is drawn for it. A
whole-number dtype takes the nearest number that it holds, and says how often it had to cut one
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

__all__ = ["Dtype", "FLOAT", "OBJECT", "to_dict", "from_dict", "restorable", "can_hold_numbers"]
__all__ += ["can_hold_labels", "write_numbers"]

logger = logging.getLogger("misscnf")

Dtype = np.dtype[Any] | ExtensionDtype

FLOAT = np.dtype("float64")
OBJECT = np.dtype("object")


def to_dict(dtype: Dtype) -> dict[str, Any]:
    """Returns plain values that name a dtype, for JSON."""
    if isinstance(dtype, pd.CategoricalDtype):
        categories = dtype.categories
        return {
            "name": "category",
            "categories": [plain(category) for category in categories],
            "of": to_dict(categories.dtype),
            "ordered": bool(dtype.ordered),
        }
    if isinstance(dtype, pd.StringDtype):
        missing = "NA" if dtype.na_value is pd.NA else "NaN"
        return {"name": "string", "storage": dtype.storage, "missing": missing}
    return {"name": str(dtype), "arrow": isinstance(dtype, pd.ArrowDtype)}


def from_dict(entry: Mapping[str, Any]) -> Dtype:
    """Returns the dtype that `to_dict` named."""
    name = entry["name"]
    if name == "category":
        categories = pd.Index(list(entry["categories"]), dtype=from_dict(entry["of"]))
        return pd.CategoricalDtype(categories, ordered=entry["ordered"])
    if name == "string" and "storage" in entry:
        return _text_dtype(entry["storage"], entry["missing"])
    texts = {"string[pyarrow]": pa.string, "large_string[pyarrow]": pa.large_string}
    if entry.get("arrow") and name in texts:
        return pd.ArrowDtype(texts[name]())
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
        return bool(from_dict(to_dict(dtype)) == dtype)
    except (InputError, TypeError, ValueError):
        return False


def can_hold_numbers(dtype: Dtype) -> bool:
    """Whether drawn numbers can be written in this dtype and the dtype be saved."""
    if isinstance(dtype, pd.SparseDtype):
        return False
    fits = is_integer_dtype(dtype) or is_float_dtype(dtype) or is_object_dtype(dtype)
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


def write_numbers(
    numbers: np.ndarray, dtype: Dtype, name: str, ends: tuple[float, float]
) -> pd.Series:
    """Returns numbers (N,) in a dtype that `can_hold_numbers`, between the ends of an interval."""
    low, high = ends
    if is_integer_dtype(dtype):
        return pd.Series(_whole(numbers, dtype, name, low, high), dtype=dtype, name=name)
    if is_object_dtype(dtype):
        return pd.Series(numbers.tolist(), dtype=object, name=name)
    kind = _numpy_dtype(dtype)
    with np.errstate(over="ignore"):
        written = numbers.astype(kind)
    if kind != FLOAT and np.isfinite(low):  # rounding to fewer digits may reach the ends
        rounded = np.array(ends).astype(kind)
        inner = np.nextafter(rounded, rounded[::-1])
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
        sentence = "Column %r: %d values do not fit its dtype %s and were cut off at its ends."
        logger.warning(sentence, name, cut, dtype)
    least, most = max(least, np.floor(low) + 1.0), min(most, np.ceil(high) - 1.0)
    return np.clip(rounded, least, most).astype(info.dtype)
