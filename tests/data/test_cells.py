"""Cells as they come: every dtype is read as numbers, and what is none is named."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from misscnf.data.table import IncompleteTable
from misscnf.errors import InputError

HOLE = float("nan")


def fitted(cells, dtype=None) -> IncompleteTable:
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=dtype)})
    return IncompleteTable.read(frame, ["x"], kinds="continuous")


DTYPES = {
    "float64": pd.Series([1.0, HOLE, 0.0]),
    "float32": pd.Series([1.0, HOLE, 0.0], dtype="float32"),
    "nullable float": pd.Series([1.0, None, 0.0], dtype="Float64"),
    "nullable integer": pd.Series([1, pd.NA, 0], dtype="Int64"),
    "nullable boolean": pd.Series([True, pd.NA, False], dtype="boolean"),
    "arrow float": pd.Series([1.0, None, 0.0], dtype=pd.ArrowDtype(pa.float64())),
    "arrow integer": pd.Series([1, None, 0], dtype=pd.ArrowDtype(pa.int64())),
    "arrow boolean": pd.Series([True, None, False], dtype=pd.ArrowDtype(pa.bool_())),
    "arrow decimal": pd.Series(
        [Decimal(1), None, Decimal(0)], dtype=pd.ArrowDtype(pa.decimal128(5, 2))
    ),
    "sparse": pd.Series(pd.arrays.SparseArray([1.0, HOLE, 0.0])),
    "object with None": pd.Series([1, None, 0.0], dtype=object),
    "object with NaN": pd.Series([1, HOLE, 0.0], dtype=object),
    "object with NA": pd.Series([True, pd.NA, np.bool_(0)], dtype=object),
    "object of exact numbers": pd.Series([Fraction(1), Decimal("NaN"), Decimal(0)], dtype=object),
    "object of numpy scalars": pd.Series([np.float32(1), None, np.int8(0)], dtype=object),
    "categories of integers": pd.Series(pd.Categorical([1, None, 0])),
    "categories of floats": pd.Series(pd.Categorical([1.0, None, 0.0], ordered=True)),
    "categories of booleans": pd.Series(pd.Categorical([True, None, False])),
}


@pytest.mark.parametrize("cells", DTYPES.values(), ids=DTYPES.keys())
def test_dtypes_are_read_as_numbers_with_holes(cells):
    table = fitted(cells)
    np.testing.assert_array_equal(table.raw[:, 0], [1.0, HOLE, 0.0])
    assert table.values[:, 0].tolist() == [1.0, 0.0, -1.0]


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_dtypes_without_holes(dtype):
    assert fitted([1, 0, 1], dtype).raw[:, 0].tolist() == [1.0, 0.0, 1.0]


# Bad input, with the words its sentence must hold

LABELS = ["ann", "bob", "cleo"]
BAD_COLUMNS = {
    "plus infinity": ([1.0, np.inf, 2.0], ["'x'", "infinite", "(inf)", "'bob'"]),
    "minus infinity": ([1.0, 2.0, -np.inf], ["'x'", "infinite", "(-inf)", "'cleo'"]),
    "NA of R": ([1, -(2**31), 2], ["'x'", "-2147483648", "'bob'", "as.numeric()"]),
    "integer beyond float64": ([1, 10**400, 2], ["'x'", "infinite", "'bob'"]),
    "constant": ([0.1, 0.1, HOLE], ["'x'", "constant", "same value (0.1)"]),
    "constant zero": ([0, 0, 0], ["'x'", "constant"]),
    "constant up to rounding": ([0.3, 0.1 + 0.2, 0.3], ["'x'", "constant"]),
    "one value": ([HOLE, 5.0, HOLE], ["'x'", "single observed value (5.0)", "constant"]),
    "no value": ([HOLE, HOLE, HOLE], ["'x'", "no observed value"]),
    "no value, as objects": ([None, pd.NA, None], ["'x'", "no observed value"]),
    "word": ([1.0, 2.0, "unknown"], ["'x'", "'unknown'", "'cleo'", "na_values="]),
    "word among texts": (["1.5", "unknown", "2"], ["'x'", "'unknown'", "'bob'", "na_values="]),
    "numbers as text": ([None, "3.5", "4"], ["'x'", "'3.5'", "'bob'", "pandas.to_numeric"]),
    "constant words": (["a", None, "a"], ["'x'", "constant", "same value ('a')"]),
    "one category": (pd.Categorical(["a", "a", "a"], ["a", "b"]), ["'x'", "constant", "'a'"]),
    "list": ([1.0, [2.0], 3.0], ["'x'", "[2.0]", "'bob'", "NaN"]),
    "complex": ([1.0, 2.0, 1j], ["'x'", "(1+0j)", "'ann'"]),
    "dates": (pd.date_range("2020", periods=3), ["'x'", "dates", "datetime64"]),
    "durations": (pd.to_timedelta([1, 2, 3]), ["'x'", "durations", "timedelta64"]),
    "too large to average": ([1.7e308, 1.6e308, 1.5e308], ["'x'", "larger units"]),
}


@pytest.mark.parametrize(("cells", "words"), BAD_COLUMNS.values(), ids=BAD_COLUMNS.keys())
def test_bad_column_is_named_in_one_sentence(cells, words):
    if any(isinstance(cell, int) and cell > 2**1024 for cell in cells):
        cells = pd.array(cells, dtype=object)  # older versions of pandas overflow by themselves
    table = pd.DataFrame({"fine": [1, 2, 3], "x": cells}, index=LABELS)
    with pytest.raises(InputError) as caught:
        IncompleteTable.read(table, ["fine", "x"])
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "'fine'" not in message
    assert message.endswith(".")
    assert "\n" not in message
