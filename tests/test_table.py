import json
import logging
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from misscnf.errors import InputError
from misscnf.table import ColumnScale, IncompleteTable, Schema, read_table

HOLE = float("nan")


@pytest.fixture
def frame() -> pd.DataFrame:
    """Three nodes out of order, one column outside the graph, a row of holes only."""
    return pd.DataFrame(
        {
            "y": [10.0, HOLE, 30.0, 50.0],
            "note": ["a", "b", "c", "d"],
            "x": [0.1, HOLE, 0.3, HOLE],
            "t": [1, HOLE, 0, 1],
        },
        index=pd.Index(["ann", "bob", "cleo", "dan"], name="who"),
    )


NODES = ("x", "t", "y")


def fitted(cells, dtype=None) -> IncompleteTable:
    return IncompleteTable.read(pd.DataFrame({"x": pd.Series(cells, dtype=dtype)}), ["x"])


# Reading


def test_columns_come_by_name_in_node_order(frame):
    table = IncompleteTable.read(frame, NODES)
    assert table.nodes == NODES
    assert table.shape == (4, 3)
    assert len(table) == 4
    np.testing.assert_array_equal(table.raw, frame[list(NODES)].to_numpy())


def test_values_are_standardised_over_observed_cells_and_holes_are_zero(frame):
    table = IncompleteTable.read(frame, NODES)
    there = ~frame[list(NODES)].isna().to_numpy()
    assert table.values.dtype == torch.float64
    assert table.observed.dtype == torch.bool
    np.testing.assert_array_equal(table.observed.numpy(), there)
    assert (table.values[~table.observed] == 0.0).all()
    for j in range(3):
        z = table.values[table.observed[:, j], j]
        assert z.mean().item() == pytest.approx(0.0, abs=1e-12)
        assert z.std(correction=0).item() == pytest.approx(1.0)


def test_index_is_kept_and_independent_of_the_users(frame):
    table = IncompleteTable.read(frame, NODES)
    pd.testing.assert_index_equal(table.index, frame.index)
    frame.index.name = "changed"
    assert table.index.name == "who"


def test_users_frame_is_unchanged_and_not_shared(frame):
    before = frame.copy(deep=True)
    table = IncompleteTable.read(frame, NODES)
    table.values.fill_(7.0)
    table.raw.fill(7.0)
    pd.testing.assert_frame_equal(frame, before)


def test_column_outside_the_graph_is_ignored_and_said_so(frame, caplog):
    frame[3] = 1.0
    with caplog.at_level(logging.INFO, logger="misscnf"):
        table = IncompleteTable.read(frame, NODES)
    assert table.ignored == ("note", "3")
    assert "'note', '3'" in caplog.text


def test_repeated_columns_outside_the_graph_do_no_harm(frame):
    frame.columns = ["y", "x", "x2", "t"]
    frame = frame.rename(columns={"x": "other", "x2": "x"})
    frame.insert(0, "other", 1.0, allow_duplicates=True)
    assert IncompleteTable.read(frame, NODES).ignored == ("other", "other")


def test_large_offset_keeps_its_deviation():
    noise = np.random.default_rng(0).standard_normal(10_001)
    table = fitted(1e9 + noise)
    expected = (noise - noise.mean()) / noise.std()
    # The cells themselves are rounded to 1e-7, and nothing more may be lost.
    np.testing.assert_allclose(table.values[:, 0].numpy(), expected, atol=5e-7)


@pytest.mark.parametrize("unit", [1e-200, 1e-3, 1e200, 1e308])
def test_extreme_units_standardise(unit):
    z = fitted([-unit, unit, HOLE]).values[:, 0]
    torch.testing.assert_close(z, torch.tensor([-1.0, 1.0, 0.0], dtype=torch.float64))


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
    "categories of words": (pd.Categorical(["a", "b", "a"]), ["'x'", "'a'", "'ann'"]),
    "list": ([1.0, [2.0], 3.0], ["'x'", "[2.0]", "'bob'", "NaN"]),
    "complex": ([1.0, 2.0, 1j], ["'x'", "(1+0j)", "'ann'"]),
    "dates": (pd.date_range("2020", periods=3), ["'x'", "dates", "datetime64"]),
    "durations": (pd.to_timedelta([1, 2, 3]), ["'x'", "durations", "timedelta64"]),
    "too large to average": ([1.7e308, 1.6e308, 1.5e308], ["'x'", "larger units"]),
}


@pytest.mark.parametrize(("cells", "words"), BAD_COLUMNS.values(), ids=BAD_COLUMNS.keys())
def test_bad_column_is_named_in_one_sentence(cells, words):
    table = pd.DataFrame({"fine": [1, 2, 3], "x": cells}, index=LABELS)
    with pytest.raises(InputError) as caught:
        IncompleteTable.read(table, ["fine", "x"])
    message = str(caught.value)
    assert [word for word in words if word not in message] == []
    assert "'fine'" not in message
    assert message.endswith(".")
    assert "\n" not in message


THREE = [1.0, 2.0, 3.0]
BAD_TABLES = {
    "no rows": (pd.DataFrame({"x": []}), ["no rows"]),
    "repeated column": (
        pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["x", "x"]),
        ["2 columns named 'x'"],
    ),
    "misspelt column": (
        pd.DataFrame({"X": THREE, "z": THREE}),
        ["node 'x' has no column", "did you mean 'X'?"],
    ),
    "nothing alike": (
        pd.DataFrame({"q": THREE, "r": THREE}),
        ["node 'x' has no column", "'q', 'r'"],
    ),
    "no column at all": (pd.DataFrame(index=[0, 1]), ["node 'x' has no column"]),
    "array": (np.zeros((3, 1)), ["DataFrame", "ndarray"]),
    "nothing": (None, ["DataFrame", "NoneType"]),
}


@pytest.mark.parametrize(("source", "words"), BAD_TABLES.values(), ids=BAD_TABLES.keys())
def test_bad_table_is_explained(source, words):
    with pytest.raises(InputError) as caught:
        IncompleteTable.read(source, ["x"])
    assert [word for word in words if word not in str(caught.value)] == []


def test_every_node_without_a_column_is_named():
    table = pd.DataFrame({"age": THREE})
    with pytest.raises(InputError, match=r"node 'ages'.*'age'.*node 'weight'"):
        IncompleteTable.read(table, ["ages", "weight"])


@pytest.mark.parametrize("require_all", [True, False])
def test_column_named_by_a_number_is_hinted_at(require_all):
    schema = fitted(THREE).schema
    schema = Schema((ColumnScale("3", schema.columns[0].location, schema.columns[0].scale),))
    with pytest.raises(InputError, match=r"node '3'.*column 3 .*int.*astype\(str\)"):
        IncompleteTable.read(pd.DataFrame({3: THREE}), ["3"], schema, require_all=require_all)


@pytest.mark.parametrize(
    ("index", "label"),
    [
        (pd.RangeIndex(2), "labelled 1;"),
        (pd.Index([5, 9]), "labelled 9;"),
        (pd.MultiIndex.from_tuples([("a", 1), ("b", 2)]), "labelled ('b', 2);"),
    ],
)
def test_rows_are_named_by_their_label(index, label):
    with pytest.raises(InputError) as caught:
        IncompleteTable.read(pd.DataFrame({"x": [1.0, np.inf]}, index=index), ["x"])
    assert label in str(caught.value)


# New rows, read with the schema of the fitted ones


@pytest.mark.parametrize(
    "cells", [[2.0], [2.0, 2.0], [HOLE], [None, None]], ids=["one", "constant", "hole", "None"]
)
def test_new_rows_may_be_constant_or_missing(cells):
    schema = Schema((ColumnScale("x", 1.0, 2.0),))
    table = IncompleteTable.read(pd.DataFrame({"x": cells}), ["x"], schema)
    assert table.schema is schema
    expected = [0.0 if cell is None or math.isnan(cell) else 0.5 for cell in cells]
    assert table.values[:, 0].tolist() == expected


def test_new_rows_may_lack_a_column_only_if_said_so(frame, caplog):
    schema = IncompleteTable.read(frame, NODES).schema
    rows = frame.drop(columns="t")
    with pytest.raises(InputError, match="node 't' has no column"):
        IncompleteTable.read(rows, NODES, schema)
    with caplog.at_level(logging.INFO, logger="misscnf"):
        table = IncompleteTable.read(rows, NODES, schema, require_all=False)
    assert table.observed.any(dim=0).tolist() == [True, False, True]
    assert "missing in every row: 't'" in caplog.text


def test_fitted_rows_need_every_column_whatever_is_said(frame):
    with pytest.raises(InputError, match="node 't' has no column"):
        IncompleteTable.read(frame.drop(columns="t"), NODES, require_all=False)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (pd.DataFrame({"x": [1.0, np.inf]}), "infinite"),
        (pd.DataFrame({"x": [1.0, "high"]}), "'high'"),
        (pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), "2 columns named 'x'"),
        (
            pd.DataFrame({"x": [1.0, 1e308]}),
            r"too far from the fitted ones \(1e\+308\).*labelled 1",
        ),
        (pd.DataFrame({"x": []}), "no rows"),
    ],
)
def test_new_rows_are_still_checked(rows, words):
    schema = Schema((ColumnScale("x", 0.0, 1e-3),))
    with pytest.raises(InputError, match=words):
        IncompleteTable.read(rows, ["x"], schema)


def test_schema_of_other_nodes_is_refused(frame):
    schema = IncompleteTable.read(frame, NODES).schema
    with pytest.raises(InputError, match="schema is of the nodes"):
        IncompleteTable.read(frame, ("t", "x", "y"), schema)


# Units, there and back


def test_units_round_trip(frame):
    schema = IncompleteTable.read(frame, NODES).schema
    draws = np.random.default_rng(1).normal(size=(5, 4, 3))
    assert schema.encode(draws).shape == draws.shape
    np.testing.assert_allclose(schema.decode(schema.encode(draws)), draws, rtol=1e-12)
    np.testing.assert_allclose(schema.encode(draws)[..., 2], (draws[..., 2] - 30) / 16.32993, 1e-6)


def test_density_in_the_users_units_integrates_to_one(frame):
    schema = IncompleteTable.read(frame, NODES).schema
    assert schema.log_jacobian.shape == (3,)
    for j, column in enumerate(schema.columns):
        x = column.location + column.scale * np.linspace(-12, 12, 4001)
        z = column.encode(x)
        log_density = -0.5 * z**2 - 0.5 * math.log(2 * math.pi) + schema.log_jacobian[j]
        assert np.trapezoid(np.exp(log_density), x) == pytest.approx(1.0, abs=1e-10)


def test_schema_survives_json(frame):
    schema = IncompleteTable.read(frame, NODES).schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"columns": 3},
        {"columns": [{"kind": "continuous", "name": "x", "location": 0.0}]},
        {"columns": [{"kind": "ordinal", "name": "x"}]},
        {"columns": [{"kind": "continuous", "name": "x", "location": 0.0, "scale": "wide"}]},
        {"columns": [{"kind": "continuous", "name": "x", "location": 0.0, "scale": 0.0}]},
        {"columns": [{"kind": "continuous", "name": "x", "location": HOLE, "scale": 1.0}]},
    ],
)
def test_broken_schema_is_refused(entry):
    with pytest.raises(InputError, match="not the schema of a table"):
        Schema.from_dict(entry)


def test_decode_frame_has_the_users_units_labels_and_node_order(frame):
    table = IncompleteTable.read(frame, NODES)
    decoded = table.decode_frame(table.values.float().requires_grad_())
    assert list(decoded.columns) == list(NODES)
    assert (decoded.dtypes == np.float64).all()
    pd.testing.assert_index_equal(decoded.index, frame.index)
    there = table.observed.numpy()
    np.testing.assert_allclose(decoded.to_numpy()[there], table.raw[there], atol=1e-5)
    # A hole holds the standardised zero, which is the mean of its column.
    assert decoded.loc["bob", "y"] == pytest.approx(30.0)


def test_decode_frame_of_other_rows_takes_their_labels(frame):
    table = IncompleteTable.read(frame, NODES)
    labels = pd.Index(["eve", "fay"])
    decoded = table.decode_frame(torch.zeros(2, 3), index=labels)
    pd.testing.assert_index_equal(decoded.index, labels)
    pd.testing.assert_index_equal(
        table.schema.decode_frame(torch.zeros(2, 3)).index, pd.RangeIndex(2)
    )


def test_restore_returns_observed_cells_bit_for_bit():
    generator = np.random.default_rng(2)
    cells = generator.normal(3.0, 7.0, size=(500, 2)) * [1e-9, 1e9]
    cells[generator.random(cells.shape) < 0.4] = HOLE
    table = IncompleteTable.read(pd.DataFrame(cells, columns=["x", "y"]), ["x", "y"])
    there = table.observed.numpy()
    decoded = table.decode_frame(table.values).to_numpy()
    assert (decoded[there] != cells[there]).any()  # decoding alone would not do
    draws = torch.from_numpy(generator.normal(size=(3, 500, 2)))
    restored = table.restore(draws)
    assert restored.shape == (3, 500, 2)
    for k in range(3):
        assert restored[k][there].tobytes() == cells[there].tobytes()
    np.testing.assert_array_equal(
        restored[:, ~there], table.schema.decode(draws.numpy())[:, ~there]
    )


def test_restore_refuses_values_of_another_table(frame):
    table = IncompleteTable.read(frame, NODES)
    with pytest.raises(InputError, match=r"\(1, 3\).*\(4, 3\)"):
        table.restore(torch.zeros(1, 3))


@pytest.mark.parametrize(
    "rows", [torch.tensor([3, 0]), torch.tensor([True, False, False, True])], ids=["at", "where"]
)
def test_select_takes_rows_with_all_that_belongs_to_them(frame, rows):
    table = IncompleteTable.read(frame, NODES)
    part = table.select(rows)
    labels = ["dan", "ann"] if rows.dtype == torch.int64 else ["ann", "dan"]
    assert part.index.tolist() == labels
    assert part.shape == (2, 3)
    np.testing.assert_array_equal(part.raw, frame.loc[labels, list(NODES)].to_numpy())
    np.testing.assert_array_equal(part.observed.numpy(), ~np.isnan(part.raw))
    torch.testing.assert_close(part.values, table.values[rows])
    assert part.schema is table.schema
    assert part.ignored == table.ignored


# Files


@pytest.mark.parametrize("extension", [".csv", ".CSV", ".tsv", ".parquet"])
def test_files_give_the_same_table_as_their_frame(frame, tmp_path, extension):
    path = tmp_path / f"table{extension}"
    if extension == ".parquet":
        frame.to_parquet(path)
    else:
        frame.rename_axis(None).to_csv(path, sep="\t" if extension == ".tsv" else ",")
    for source in (path, str(path)):
        table = IncompleteTable.read(source, NODES)
        np.testing.assert_array_equal(table.raw, frame[list(NODES)].to_numpy())
        assert table.ignored == (("note",) if extension == ".parquet" else ("Unnamed: 0", "note"))
    if extension == ".parquet":
        pd.testing.assert_index_equal(table.index, frame.index)


def test_frame_is_returned_as_it_is(frame):
    assert read_table(frame) is frame


def test_csv_reads_holes_booleans_and_a_separator_at_the_end_of_lines(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xef\xbb\xbfx,NA\n1.5,TRUE,\nNA,,\n,FALSE,\n2.5,true,\n")
    table = IncompleteTable.read(path, ["x", "NA"])
    expected = [[1.5, 1.0], [HOLE, HOLE], [HOLE, 0.0], [2.5, 1.0]]
    np.testing.assert_array_equal(table.raw, expected)


BAD_FILES = {
    "empty": ("table.csv", b"", ["is empty"]),
    "empty parquet": ("table.parquet", b"", ["is empty"]),
    "blank lines": ("table.csv", b"\n\n", ["is empty"]),
    "header only": ("table.csv", b"x,y\n", ["no rows"]),
    "binary": ("table.csv", b"\x89PNG\r\n\x1a\n\x00", ["not UTF-8", "encoding="]),
    "ragged": ("table.csv", b"x,y\n1,2\n3,4,5\n", ["cannot be read as .csv", "line 3"]),
    "open quote": ("table.tsv", b'x\ty\n"1\t2\n', ["cannot be read as .tsv"]),
    "unnamed column": ("table.csv", b"x,y\na,1,2\nb,3,4\n", ["more fields", "index_col=0"]),
    "not parquet": ("table.parquet", b"x,y\n1,2\n3,4\n", ["cannot be read as .parquet"]),
    "other extension": ("table.xlsx", b"x", ["'.xlsx'", ".csv, .tsv, .parquet"]),
    "no extension": ("table", b"x", [".csv, .tsv, .parquet"]),
    "repeated header": ("table.csv", b"x,x\n1,2\n3,4\n", ["2 columns named 'x'"]),
    "word": ("table.csv", b"x\n1\nunknown\n3\n", ["'x'", "'unknown'", "labelled 1", "na_values="]),
    "infinity": ("table.csv", b"x\n1\n-inf\n", ["'x'", "infinite", "labelled 1"]),
    "other separator": ("table.csv", b"x;y\n1;2\n", ["node 'x'", "'x;y'"]),
}


# Users do not run with warnings as errors, and what pandas only warns of must still be refused.
@pytest.mark.filterwarnings("ignore::pandas.errors.ParserWarning")
@pytest.mark.parametrize(("name", "content", "words"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_bad_file_is_explained(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        IncompleteTable.read(path, ["x"])
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "words"),
    [("absent.csv", "there is no file"), ("", "is a directory"), ("x" * 5000, "cannot be opened")],
    ids=["absent", "directory", "impossible"],
)
def test_path_without_a_file_is_explained(tmp_path, name, words):
    with pytest.raises(InputError, match=words):
        read_table(tmp_path / name)
