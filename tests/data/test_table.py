"""A table with holes: what is read, what is refused, and what comes back."""

import json
import logging
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.integrate import trapezoid

from misscnf.data.codecs import Continuous
from misscnf.data.scales import Unit
from misscnf.data.table import IncompleteTable, Schema
from misscnf.errors import InputError

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


def continuous(frame, nodes=NODES) -> IncompleteTable:
    return IncompleteTable.read(frame, nodes, kinds="continuous")


def fitted(cells, dtype=None) -> IncompleteTable:
    return continuous(pd.DataFrame({"x": pd.Series(cells, dtype=dtype)}), ["x"])


def plain(name, location, scale) -> Schema:
    return Schema((Continuous(name, Unit(location, scale)),))


# Reading


def test_columns_come_by_name_in_node_order(frame):
    table = continuous(frame)
    assert table.nodes == NODES
    assert table.shape == (4, 3)
    assert len(table) == 4
    np.testing.assert_array_equal(table.raw, frame[list(NODES)].to_numpy())


def test_values_are_standardised_over_observed_cells_and_holes_are_zero(frame):
    table = continuous(frame)
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
    table = continuous(frame)
    pd.testing.assert_index_equal(table.index, frame.index)
    frame.index.name = "changed"
    assert table.index.name == "who"


def test_users_frame_is_unchanged_and_not_shared(frame):
    before = frame.copy(deep=True)
    table = continuous(frame)
    table.values.fill_(7.0)
    table.raw.fill(7.0)
    pd.testing.assert_frame_equal(frame, before)


def test_column_outside_the_graph_is_ignored_and_said_so(frame, caplog):
    frame[3] = 1.0
    with caplog.at_level(logging.INFO, logger="misscnf"):
        table = continuous(frame)
    assert table.ignored == ("note", "3")
    assert "'note', '3'" in caplog.text


def test_repeated_columns_outside_the_graph_do_no_harm(frame):
    frame.columns = ["y", "x", "x2", "t"]
    frame = frame.rename(columns={"x": "other", "x2": "x"})
    frame.insert(0, "other", 1.0, allow_duplicates=True)
    assert continuous(frame).ignored == ("other", "other")


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


# Bad tables, with the words their sentence must hold

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


def test_columns_are_listed_once_for_all_nodes_without_one():
    frame = pd.DataFrame({"q": THREE, "age": THREE})
    with pytest.raises(InputError) as told:
        IncompleteTable.read(frame, ["x", "agee", "w"])
    assert str(told.value) == (
        "node 'agee' has no column in the table (did you mean 'age'?); "
        "nodes 'x', 'w' have no column in the table, which has 'q', 'age'."
    )


def test_every_node_without_a_column_is_named():
    table = pd.DataFrame({"age": THREE})
    with pytest.raises(InputError, match=r"node 'ages'.*'age'.*node 'weight'"):
        IncompleteTable.read(table, ["ages", "weight"])


@pytest.mark.parametrize("require_all", [True, False])
def test_column_named_by_a_number_is_hinted_at(require_all):
    schema = plain("3", 0.0, 1.0)
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
    schema = plain("x", 1.0, 2.0)
    table = IncompleteTable.read(pd.DataFrame({"x": cells}), ["x"], schema)
    assert table.schema is schema
    expected = [0.0 if cell is None or math.isnan(cell) else 0.5 for cell in cells]
    assert table.values[:, 0].tolist() == expected


def test_new_rows_may_lack_a_column_only_if_said_so(frame, caplog):
    schema = continuous(frame).schema
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
    schema = plain("x", 0.0, 1e-3)
    with pytest.raises(InputError, match=words):
        IncompleteTable.read(rows, ["x"], schema)


def test_schema_of_other_nodes_is_refused(frame):
    schema = continuous(frame).schema
    with pytest.raises(InputError, match="schema is of the nodes"):
        IncompleteTable.read(frame, ("t", "x", "y"), schema)


# Units, there and back


def test_units_round_trip(frame):
    schema = continuous(frame).schema
    draws = np.random.default_rng(1).normal(size=(5, 4, 3))
    assert schema.encode(draws).shape == draws.shape
    np.testing.assert_allclose(schema.decode(schema.encode(draws)), draws, rtol=1e-12)
    np.testing.assert_allclose(schema.encode(draws)[..., 2], (draws[..., 2] - 30) / 16.32993, 1e-6)


def test_density_in_the_users_units_integrates_to_one(frame):
    schema = continuous(frame).schema
    for column in schema.columns:
        x = column.unit.location + column.unit.scale * np.linspace(-12, 12, 4001)
        z = column.encode(x)
        log_density = -0.5 * z**2 - 0.5 * math.log(2 * math.pi) + column.log_slope(x)
        assert trapezoid(np.exp(log_density), x) == pytest.approx(1.0, abs=1e-10)


def test_schema_survives_json(frame):
    schema = continuous(frame).schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema


NUMBERS = Continuous("x", Unit()).to_dict()


def test_a_whole_schema_is_read():
    assert Schema.from_dict({"columns": [NUMBERS]}).columns == (Continuous("x", Unit()),)


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {"columns": 3},
        {"columns": [{name: entry for name, entry in NUMBERS.items() if name != "scale"}]},
        {"columns": [{"kind": "ordinal", "name": "x"}]},
        {"columns": [{"kind": "interval", "name": "x"}]},
        {"columns": [{**NUMBERS, "dtype": {}}]},
        {"columns": [{**NUMBERS, "scale": "wide"}]},
        {"columns": [{**NUMBERS, "scale": 0.0}]},
        {"columns": [{**NUMBERS, "location": HOLE}]},
    ],
)
def test_broken_schema_is_refused(entry):
    with pytest.raises(InputError, match="not the schema of a table"):
        Schema.from_dict(entry)


def test_decode_frame_has_the_users_units_labels_and_node_order(frame):
    table = continuous(frame)
    decoded = table.schema.decode_frame(table.values.float().requires_grad_(), table.index)
    assert list(decoded.columns) == list(NODES)
    assert (decoded.dtypes == np.float64).all()
    pd.testing.assert_index_equal(decoded.index, frame.index)
    there = table.observed.numpy()
    np.testing.assert_allclose(decoded.to_numpy()[there], table.raw[there], atol=1e-5)
    # A hole holds the standardised zero, which is the mean of its column.
    assert decoded.loc["bob", "y"] == pytest.approx(30.0)


def test_decode_frame_of_other_rows_takes_their_labels(frame):
    table = continuous(frame)
    labels = pd.Index(["eve", "fay"])
    decoded = table.schema.decode_frame(torch.zeros(2, 3), index=labels)
    pd.testing.assert_index_equal(decoded.index, labels)
    pd.testing.assert_index_equal(
        table.schema.decode_frame(torch.zeros(2, 3)).index, pd.RangeIndex(2)
    )


def test_completed_tables_have_observed_cells_bit_for_bit():
    generator = np.random.default_rng(2)
    cells = generator.normal(3.0, 7.0, size=(500, 2)) * [1e-9, 1e9]
    cells[generator.random(cells.shape) < 0.4] = HOLE
    table = IncompleteTable.read(pd.DataFrame(cells, columns=["x", "y"]), ["x", "y"])
    there = table.observed.numpy()
    decoded = table.schema.decode_frame(table.values).to_numpy()
    assert (decoded[there] != cells[there]).any()  # decoding alone would not do
    draws = torch.from_numpy(generator.normal(size=(3, 500, 2)))
    labels = pd.MultiIndex.from_product([range(3), table.index])
    completed = table.complete(draws, labels)
    pd.testing.assert_index_equal(completed.index, labels)
    restored = completed.to_numpy().reshape(3, 500, 2)
    for k in range(3):
        assert restored[k][there].tobytes() == cells[there].tobytes()
    drawn = table.schema.decode(draws.numpy())
    np.testing.assert_array_equal(restored[:, ~there], drawn[:, ~there])
    replaced = table.complete(draws[0], replaced=[1]).to_numpy()
    np.testing.assert_array_equal(replaced[:, 1], drawn[0, :, 1])
    assert replaced[there[:, 0], 0].tobytes() == cells[there[:, 0], 0].tobytes()


def test_values_of_another_table_complete_nothing(frame):
    table = continuous(frame)
    with pytest.raises(InputError, match=r"\(1, 3\).*\(4, 3\)"):
        table.complete(torch.zeros(1, 3))


@pytest.mark.parametrize(
    "rows", [torch.tensor([3, 0]), torch.tensor([True, False, False, True])], ids=["at", "where"]
)
def test_select_takes_rows_with_all_that_belongs_to_them(frame, rows):
    table = continuous(frame)
    part = table.select(rows)
    labels = ["dan", "ann"] if rows.dtype == torch.int64 else ["ann", "dan"]
    assert part.index.tolist() == labels
    assert part.shape == (2, 3)
    np.testing.assert_array_equal(part.raw, frame.loc[labels, list(NODES)].to_numpy())
    np.testing.assert_array_equal(part.observed.numpy(), ~np.isnan(part.raw))
    torch.testing.assert_close(part.values, table.values[rows])
    assert part.schema is table.schema
    assert part.ignored == table.ignored


def test_a_table_that_was_read_is_handed_on_and_knows_all_columns():
    frame = pd.DataFrame({"k": ["p", "q", "p"], "x": THREE, "u": [1, 2, 3]})
    table = IncompleteTable.read(frame, ["x"])
    assert IncompleteTable.read(table, ["x"]) is table
    assert IncompleteTable.read(table, ["x"], table.schema) is table
    assert (table.columns, table.ignored) == (("k", "x", "u"), ("k", "u"))
    for nodes, schema in ((["u"], None), (["x"], IncompleteTable.read(frame * 2, ["x"]).schema)):
        with pytest.raises(InputError, match="give the DataFrame that it was read from"):
            IncompleteTable.read(table, nodes, schema)


def test_tables_share_a_digest_only_if_they_are_the_same():
    frame = pd.DataFrame({"x": [1.0, 2.5, np.nan], "y": [3.0, 4.5, 5.0]})
    own = IncompleteTable.read(frame, ["x", "y"]).digest
    others = [
        IncompleteTable.read(frame.rename(columns={"x": "z"}), ["z", "y"]),
        IncompleteTable.read(frame.fillna(2.0), ["x", "y"]),
        IncompleteTable.read(frame.iloc[::-1], ["x", "y"]),
    ]
    assert own == IncompleteTable.read(frame.copy(), ["x", "y"]).digest
    assert len({own, *(other.digest for other in others)}) == 4
