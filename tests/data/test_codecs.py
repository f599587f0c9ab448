"""Codecs: every dtype goes in with holes and comes out as it was, with legal values only."""

import json
import logging
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from misscnf.data import domains
from misscnf.data.codecs import CODECS, Count, Levels
from misscnf.data.domains import CONTINUOUS, Domain
from misscnf.data.kinds import say_rounded
from misscnf.data.table import IncompleteTable, Schema
from misscnf.errors import InputError

HOLE = float("nan")
ARROW = pd.ArrowDtype

STAGES = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)
WARDS = pd.CategoricalDtype(["w2", "w1", "closed"])
NUMBERS = {
    "float64": pd.Series([1.5, HOLE, 0.25, 3.0]),
    "float32": pd.Series([1.5, HOLE, 0.25, 3.0], dtype="float32"),
    "Float64": pd.Series([1.5, None, 0.25, 3.0], dtype="Float64"),
    "int64": pd.Series([12, 40, 31, 77]),
    "Int64": pd.Series([12, None, 31, 77], dtype="Int64"),
    "Int8": pd.Series([12, None, 31, 77], dtype="Int8"),
    "UInt16": pd.Series([12, None, 31, 77], dtype="UInt16"),
    "object": pd.Series([12, None, 31.5, 77], dtype=object),
    "arrow double": pd.Series([1.5, None, 0.25, 3.0], dtype=ARROW(pa.float64())),
    "arrow int": pd.Series([12, None, 31, 77], dtype=ARROW(pa.int64())),
}
BINARY = {
    "bool": pd.Series([True, False, True, True]),
    "boolean": pd.Series([True, None, False, True], dtype="boolean"),
    "object of bools": pd.Series([True, None, False, True], dtype=object),
    "object of words": pd.Series(["yes", None, "no", "yes"], dtype=object),
    "str": pd.Series(["yes", None, "no", "yes"], dtype="str"),
    "string": pd.Series(["yes", None, "no", "yes"], dtype="string"),
    "string, python": pd.Series(["yes", None, "no", "yes"], dtype=pd.StringDtype("python")),
    "arrow string": pd.Series(["yes", None, "no", "yes"], dtype=ARROW(pa.string())),
    "arrow bool": pd.Series([True, None, False, True], dtype=ARROW(pa.bool_())),
    "0/1 floats": pd.Series([1.0, HOLE, 0.0, 1.0]),
    "0/1 float32": pd.Series([1.0, HOLE, 0.0, 1.0], dtype="float32"),
    "0/1 ints": pd.Series([1, 0, 0, 1]),
    "1/2 Int8": pd.Series([1, None, 2, 1], dtype="Int8"),
    "category of bools": pd.Series([True, None, False, True], dtype="category"),
    "category of ints": pd.Series([7, None, 3, 7], dtype="category"),
}
LEVELS = {
    "ordered category": pd.Series(["low", None, "high", "mid"], dtype=STAGES),
    "unordered category": pd.Series(["w1", None, "w2", "closed"], dtype=WARDS),
    "category of ints": pd.Series([7, None, 3, 5], dtype="category"),
    "object of words": pd.Series(["a", None, "b", "c"], dtype=object),
    "str": pd.Series(["a", None, "b", "c"], dtype="str"),
    "ints": pd.Series([3, 1, 2, 3]),
    "floats": pd.Series([3.0, HOLE, 1.0, 2.0]),
    "Int64": pd.Series([3, None, 1, 2], dtype="Int64"),
}
COUNTS = {
    "int64": pd.Series([0, 4, 2, 9]),
    "Int64": pd.Series([0, None, 2, 9], dtype="Int64"),
    "floats": pd.Series([0.0, HOLE, 2.0, 9.0]),
    "object": pd.Series([0, None, 2, 9], dtype=object),
}
MASSES = {
    "float64": pd.Series([0.0, 0.0, 2.5, 1.25]),
    "float32": pd.Series([0.0, 0.0, 2.5, 1.25], dtype="float32"),
    "int64": pd.Series([0, 0, 25, 10]),
    "object": pd.Series([0, 0, 2.5, 10], dtype=object),
}
TABLE = [
    *(("semicontinuous", name, cells) for name, cells in MASSES.items()),
    *(("heavy-tailed", name, cells) for name, cells in NUMBERS.items()),
    *(("continuous", name, cells) for name, cells in NUMBERS.items()),
    *(("binary", name, cells) for name, cells in BINARY.items()),
    *(("categorical", name, cells) for name, cells in [*LEVELS.items(), *BINARY.items()]),
    *(("ordinal", name, cells) for name, cells in LEVELS.items() if cells.dtype != object),
    *(("count", name, cells) for name, cells in COUNTS.items()),
]
TABLE = [row for row in TABLE if row[:2] != ("ordinal", "str")]  # its order is not known


@pytest.fixture(params=TABLE, ids=lambda row: f"{row[0]}, {row[1]}")
def case(request):
    kind, _, cells = request.param
    return kind, cells, read(cells, kind)


def read(cells, kind=None, **options) -> IncompleteTable:
    kinds = None if kind is None else {"x": kind}
    return IncompleteTable.read(pd.DataFrame({"x": cells}), ["x"], kinds=kinds, **options)


def draws(column, count):
    """Values that a model could draw, the extremes included."""
    if column.domain.states is not None:
        return np.arange(count) % float(column.domain.states)
    if column.domain.kind == "count":
        return np.arange(count, dtype=float)
    return np.linspace(0.0 if column.domain.kind == "semicontinuous" else -3.0, 3.0, count)


def column_is_exact(kind, cells):
    """Whether drawn numbers are neither standardised nor rounded."""
    return kind not in ("continuous", "heavy-tailed") and (kind, cells.dtype) not in (
        ("semicontinuous", np.int64),
        ("semicontinuous", np.float32),
    )


def test_every_kind_has_a_codec_and_a_case():
    for registry in (CODECS, Domain.by_kind):  # but for kinds that other tests bring
        ours = {kind for kind, cls in registry.items() if cls.__module__.startswith("misscnf.")}
        assert ours - {"latent", "class", "fixed"} == {
            kind for kind, _, _ in TABLE
        }  # these have no cells


def test_observed_cells_come_back_object_for_object_in_their_dtype(case):
    _, cells, table = case
    values = torch.tensor(draws(table.schema.columns[0], 12)).reshape(3, 4, 1)
    found = table.complete(values, pd.RangeIndex(12))["x"]
    assert found.dtype == cells.dtype
    assert not found.isna().any()
    there = np.flatnonzero(cells.notna())
    for draw in range(3):
        for row in there:
            before, after = cells.iloc[row], found.iloc[4 * draw + row]
            assert type(after) is type(before)
            assert after == before


def test_samples_have_the_dtype_and_legal_values(case):
    kind, cells, table = case
    values = torch.tensor(draws(table.schema.columns[0], 40))[:, None]
    found = table.schema.decode_frame(values)["x"]
    assert found.dtype == cells.dtype
    assert not found.isna().any()
    if kind in ("binary", "ordinal", "categorical"):
        assert set(found) == set(cells.dropna())
    again = IncompleteTable.read(pd.DataFrame({"x": found}), ["x"], table.schema)
    if column_is_exact(kind, cells):
        torch.testing.assert_close(again.values, values)


def test_a_schema_survives_json_with_its_labels_and_dtype(case):
    _, cells, table = case
    again = Schema.from_dict(json.loads(json.dumps(table.schema.to_dict())))
    assert again == table.schema
    column = again.columns[0]
    assert column.dtype == cells.dtype
    if isinstance(column, Levels):
        types = [type(level) for level in table.schema.columns[0].levels]
        assert [type(level) for level in column.levels] == types


def test_values_are_codes_counts_and_standardised_numbers():
    stage = read(LEVELS["ordered category"], "ordinal")
    assert stage.values[:, 0].tolist() == [0.0, 0.0, 2.0, 1.0]
    assert stage.observed[:, 0].tolist() == [True, False, True, True]
    assert read(COUNTS["floats"], "count").values[:, 0].tolist() == [0.0, 0.0, 2.0, 9.0]
    z = read(NUMBERS["Int64"], "continuous")
    assert z.values[z.observed].mean().item() == pytest.approx(0.0, abs=1e-12)


def test_domains_say_what_a_mechanism_needs():
    stage = read(LEVELS["ordered category"], "ordinal").schema.domains[0]
    assert stage == domains.Ordinal(1.0, stage.scale, 3)
    assert stage.scale == pytest.approx((2 / 3) ** 0.5)
    assert read(LEVELS["unordered category"]).schema.domains[0] == domains.Categorical(3)
    assert read(BINARY["0/1 floats"]).schema.domains[0].location == pytest.approx(2 / 3)
    counts = read(COUNTS["int64"], "count").schema.domains[0]
    assert counts == domains.Count(3.75, counts.scale, has_zero=True)
    assert counts.scale == pytest.approx(3.344, abs=1e-3)
    assert not read(pd.Series([1, 4, 2, 9]), "count").schema.domains[0].has_zero
    assert read(NUMBERS["float64"], "continuous").schema.domains[0] == CONTINUOUS


# What is not seen at fit


def new_rows(cells, schema, **options):
    frame = pd.DataFrame({"x": cells}, index=["ann", "bob", "cleo"])
    return IncompleteTable.read(frame, ["x"], schema, **options)


@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_an_unseen_level_is_refused_by_value_column_and_row(dtype):
    schema = read(LEVELS["ordered category"]).schema
    with pytest.raises(InputError, match=r"'x' has 'top' in the row labelled 'cleo'") as caught:
        new_rows(pd.Series(["low", None, "top"], dtype=dtype).array, schema)
    assert "'low', 'mid', 'high'" in str(caught.value)
    assert "unseen='missing'" in str(caught.value)


def test_an_unseen_level_may_be_a_hole(caplog):
    schema = read(LEVELS["ordered category"]).schema
    table = new_rows(["low", "top", "top"], schema, unseen="missing")
    assert table.observed[:, 0].tolist() == [True, False, False]
    assert "'x': 2 cells" in caplog.text


@pytest.mark.parametrize("cell", [[1.0], 2.5, "1", np.inf, Decimal(9)])
def test_what_is_no_level_at_all_is_refused_alike(cell):
    schema = read(BINARY["0/1 floats"]).schema
    with pytest.raises(InputError, match="which was not seen at fit"):
        new_rows(pd.Series([1, 0, cell], dtype=object).array, schema)


@pytest.mark.parametrize(
    "cells", [[True, False, None], [1, 0, None], [Fraction(1), Decimal(0), None], [1.0, 0.0, HOLE]]
)
def test_equal_numbers_are_one_level_however_they_are_stored(cells):
    for labels in (BINARY["0/1 floats"], BINARY["0/1 ints"], BINARY["boolean"]):
        table = new_rows(cells, read(labels).schema)
        assert table.values[:, 0].tolist() == [1.0, 0.0, 0.0]
        assert table.observed[:, 0].tolist() == [True, True, False]


def test_rows_whose_dtype_cannot_hold_a_level_take_the_fitted_one():
    schema = read(LEVELS["ordered category"]).schema
    narrow = pd.Categorical(["low", None, "mid"], categories=["low", "mid"])
    values = torch.tensor([[0.0], [2.0], [1.0]])
    for cells in (narrow, [HOLE] * 3):
        found = new_rows(cells, schema).complete(values)["x"]
        assert found.dtype == STAGES
        assert found.iloc[1] == "high"


# Impossible values

IMPOSSIBLE = {
    "negative count": ("count", COUNTS["int64"], -1, "whole number of at least 0"),
    "fractional count": ("count", COUNTS["int64"], 1.5, "whole number of at least 0"),
    "zero on a log scale": ("positive", NUMBERS["float64"], 0.0, "number above 0"),
    "beyond its ends": (
        {"kind": "bounded", "low": 0, "high": 10},
        NUMBERS["float64"],
        10.0,
        "number between 0 and 10",
    ),
}


@pytest.mark.parametrize(
    ("kind", "cells", "cell", "words"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys()
)
def test_impossible_values_are_refused_or_noted(kind, cells, cell, words):
    schema = read(cells, kind).schema
    with pytest.raises(InputError, match=words) as caught:
        new_rows([2, cell, None], schema)
    assert "'x'" in str(caught.value)
    assert "'bob'" in str(caught.value)
    assert f"{cell:g}" in str(caught.value)
    table = new_rows([2, cell, None], schema, keep_impossible=True)
    assert table.impossible[:, 0].tolist() == [False, True, False]
    assert table.observed[:, 0].tolist() == [True, False, False]
    assert table.values.isfinite().all()
    assert words in table.explain(1, [0])
    assert table.explain(0, [0]) == ""


# Dtypes that round, and those that cannot stay


def test_whole_number_dtypes_round_and_floats_never_do():
    values = torch.tensor([[-0.4], [0.3]])
    ages = read(NUMBERS["Int64"], "continuous")
    numbers = ages.schema.columns[0].decode(values.numpy())[:, 0]
    assert ages.schema.decode_frame(values)["x"].tolist() == np.rint(numbers).tolist()
    floats = read(NUMBERS["Int64"].astype("Float64"), "continuous")
    assert floats.schema.decode_frame(values)["x"].tolist() == numbers.tolist()


def test_rounding_is_said_once_at_fit(caplog):
    with caplog.at_level(logging.INFO, "misscnf"):
        say_rounded(read(NUMBERS["Int64"], "continuous").schema.columns)
    assert "Draws of the column 'x' are rounded, since the table has whole" in caplog.text


def test_what_is_held_is_shown_as_it_is_held():
    ages = read(NUMBERS["int64"], "continuous")
    at = torch.tensor(ages.schema.encode(np.array([[50.5]])))
    assert ages.schema.decode_frame(at, exact=[0])["x"].tolist() == [50.5]
    at = torch.tensor(ages.schema.encode(np.array([[50.0]])))
    assert ages.schema.decode_frame(at, exact=[0])["x"].dtype == "int64"


def test_a_small_dtype_cuts_off_and_says_so(caplog):
    ages = read(NUMBERS["Int8"], "continuous")
    values = torch.tensor([[30.0], [-30.0]])
    assert ages.schema.decode_frame(values)["x"].tolist() == [127, -128]
    assert "2 values do not fit its dtype Int8" in caplog.text


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_a_bent_column_stays_between_its_ends_in_any_dtype(dtype):
    cells = pd.Series([1, 2, 3, 8], dtype=dtype)
    table = read(cells, {"kind": "bounded", "low": 0, "high": 10})
    found = table.schema.decode_frame(torch.tensor([[-60.0], [-3.0], [3.0], [60.0]]))["x"]
    assert found.dtype == dtype
    assert found.between(0, 10, inclusive="neither").all()


def test_rows_of_whole_numbers_do_not_round_what_was_fitted_as_fractions():
    schema = read(NUMBERS["float64"], "continuous").schema
    table = new_rows([1, 2, 3], schema)
    found = table.complete(torch.tensor([[0.1], [0.2], [0.3]]), replaced=[0])["x"]
    assert found.dtype == "float64"
    np.testing.assert_array_equal(found, schema.decode(np.array([[0.1], [0.2], [0.3]]))[:, 0])


@pytest.mark.parametrize(
    "cells",
    [
        pd.Series([True, False, True]),
        pd.Series([3, 1, 7], dtype="category"),
        pd.Series(pd.arrays.SparseArray([1.0, HOLE, 0.0])),
        pd.Series([Decimal(1), None, Decimal(0)], dtype=ARROW(pa.decimal128(5, 2))),
    ],
    ids=lambda cells: str(cells.dtype),
)
def test_numbers_in_a_dtype_that_cannot_hold_them_come_back_as_float64(cells):
    table = read(cells, "continuous")
    assert table.complete(torch.full((3, 1), 0.1))["x"].dtype == "float64"


def test_unused_categories_stay_in_the_dtype_and_are_no_levels(caplog):
    cells = pd.Series(["low", "high", None, "low"], dtype=STAGES)
    with caplog.at_level(logging.INFO, "misscnf"):
        table = read(cells)
    assert table.schema.columns[0].levels == ("low", "high")
    assert table.schema.decode_frame(torch.tensor([[1.0]]))["x"].dtype == STAGES
    assert "1 categories are never seen" in caplog.text


def test_labels_that_json_cannot_keep_are_refused():
    cut = pd.cut(pd.Series([1.0, 5.0, 9.0]), [0, 3, 6, 10])
    with pytest.raises(InputError, match=r"'x'.*Interval.*rename_categories"):
        read(cut)


def test_counts_in_objects_come_back_as_whole_numbers():
    table = read(COUNTS["object"], "count")
    assert isinstance(table.schema.columns[0], Count)
    found = table.complete(torch.tensor([[0.0], [5.0], [0.0], [0.0]]))["x"]
    assert found.tolist() == [0, 5, 2, 9]
    assert type(found.iloc[1]) is int


def test_numbers_in_a_file_are_levels_whose_texts_are_numbers():
    """A table with the levels '0' and '1' is 0 and 1 in a CSV file, and comes back as texts."""
    cells = pd.Series(["0", "1", None, "1"], dtype="category")
    fitted = IncompleteTable.read(pd.DataFrame({"a": cells}), ["a"])
    rows = pd.DataFrame({"a": [1.0, np.nan, 0.0]})
    table = IncompleteTable.read(rows, ["a"], fitted.schema)
    assert table.raw[:, 0].tolist()[::2] == [1.0, 0.0]
    assert table.complete(torch.ones(3, 1))["a"].tolist() == ["1", "1", "0"]
    with pytest.raises(InputError, match="has 2"):
        IncompleteTable.read(pd.DataFrame({"a": [2]}), ["a"], fitted.schema)
