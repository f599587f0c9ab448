"""Tables on disk are what they are in memory: kinds, codecs, numbers and sentences."""

import logging
import re

import numpy as np
import pandas as pd
import pytest
import torch

from misscnf.data import streams
from misscnf.data.files import Reading, read_table
from misscnf.data.large_table import LargeTable
from misscnf.data.streams import TableStream, open_stream, read_size
from misscnf.data.table import IncompleteTable
from misscnf.errors import InputError
from misscnf.graph import CausalGraph

NODES = ("age", "dose", "ward", "falls", "sex", "cost", "late")


def frame(rows=900, seed=0):
    """A column of each kind, with holes."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "age": np.round(rng.normal(50, 9, rows), 2),
            "dose": rng.integers(0, 4, rows),
            "ward": rng.choice(["east", "north", "west"], rows),
            "falls": rng.poisson(2.0, rows),
            "sex": rng.random(rows) < 0.5,
            "cost": np.where(rng.random(rows) < 0.3, 0.0, np.exp(rng.normal(size=rows))),
            "late": rng.standard_t(1.0, rows),
        }
    )
    for name in ("age", "ward", "falls", "late"):
        table[name] = table[name].mask(rng.random(rows) < 0.2)
    return table


@pytest.fixture(params=["one file", "a folder", "csv", "tsv.gz"])
def path(request, tmp_path):
    table = frame()
    if request.param == "one file":
        table.to_parquet(tmp_path / "t.parquet", row_group_size=70)
        return tmp_path / "t.parquet"
    if request.param == "a folder":
        (tmp_path / "t").mkdir()
        for number, part in enumerate(np.array_split(np.arange(len(table)), 3)):
            table.iloc[part].reset_index(drop=True).to_parquet(
                tmp_path / "t" / f"{number}.parquet"
            )
        return tmp_path / "t"
    target, sign = tmp_path / f"t.{request.param}", "," if request.param == "csv" else "\t"
    table.to_csv(target, index=False, sep=sign)
    return target


def test_a_stream_is_the_table_in_memory(path, monkeypatch):
    monkeypatch.setattr(streams, "ROWS_AT_ONCE", 64)  # of a text, when it is brought to Parquet
    whole = IncompleteTable.read(path, NODES)
    stream = open_stream(path, "1kB", 200)
    large = LargeTable.read(stream, NODES, sample_rows=100)
    assert large.sample.schema == whole.schema
    found = list(large.rows.batches(128))
    torch.testing.assert_close(torch.cat([b.values for b in found]), whole.values, rtol=0, atol=0)
    assert torch.equal(torch.cat([b.observed for b in found]), whole.observed)
    assert torch.equal(large.patterns.unique(dim=0), whole.observed.unique(dim=0))
    assert large.log_slope == pytest.approx(float(whole.log_slope().mean()), rel=1e-12)
    some = torch.tensor([5, 899, 3, 128])
    torch.testing.assert_close(large.rows.take(some).values, whole.values[some], rtol=0, atol=0)
    assert len(large.sample) == 100
    mine = whole.select(torch.tensor(large.sample.index.to_numpy()))  # labels count all rows
    assert torch.equal(large.sample.values, mine.values)


def test_batches_have_one_size_whatever_the_files(path):
    stream = open_stream(path, 1, 200)
    sizes = [len(part) for part in stream.frames(size=128)]
    assert sizes == [128] * 7 + [4]
    assert stream.columns == list(frame().columns)
    assert stream.holed_columns() == ["age", "ward", "falls", "late"]


def test_what_fits_is_read_in_memory(path):
    assert open_stream(path, "1GB", 200) is None
    assert open_stream(frame(), 1, 200) is None


def test_types_of_a_text_are_those_of_the_whole(tmp_path, monkeypatch):
    """A word late in a file makes its column words from the start, with zeros before numbers."""
    monkeypatch.setattr(streams, "ROWS_AT_ONCE", 2)
    path = tmp_path / "t.csv"
    path.write_text(
        "code,whole,holed,yes,empty,odd\n01,1,1,True,,True\n02,2,2,,,2\n"
        "x3,3,,False,,\n,4,4,,1.5,x\n"
    )
    stream = open_stream(path, 1, 200)
    (found,) = stream.frames(size=10)
    whole = read_table(path)  # where a hole beside True and False is nan, and None here
    assert found.pop("yes").dropna().tolist() == whole.pop("yes").dropna().tolist()
    pd.testing.assert_frame_equal(found, whole, check_dtype=False)
    assert found["code"].tolist()[:3] == ["01", "02", "x3"]
    assert found["whole"].dtype == "int64"
    assert found["holed"].dtype == "float64"


def test_marks_of_holes_and_dates_are_read_as_in_memory(tmp_path):
    path, how = tmp_path / "t.parquet", Reading(na=("-99",), dates=("day",))
    pd.DataFrame({"x": [1.0, -99, 3], "day": ["2024-01-01", None, "2024-01-03"]}).to_parquet(path)
    stream = open_stream(path, 1, 200, how)
    (found,) = stream.frames()
    pd.testing.assert_frame_equal(found, read_table(path, reading=how))
    assert stream.column("x").isna().tolist() == [False, True, False]


def test_parts_of_a_path_are_columns_and_types_grow(tmp_path):
    for year, x in ((2020, [1, 2]), (2021, [0.5, 1.5])):
        (tmp_path / f"year={year}").mkdir()
        pd.DataFrame({"x": x}).to_parquet(tmp_path / f"year={year}" / "part.parquet")
    (found,) = TableStream("t", streams.Shards.open(tmp_path)).frames()
    assert found["x"].tolist() == [1.0, 2.0, 0.5, 1.5]
    assert found["year"].tolist() == [2020, 2020, 2021, 2021]
    assert read_table(tmp_path)["x"].tolist() == [1.0, 2.0, 0.5, 1.5]


def test_a_cut_off_shard_is_named(tmp_path):
    for number in range(2):
        frame(50).to_parquet(tmp_path / f"part-{number}.parquet")
    whole = (tmp_path / "part-1.parquet").read_bytes()
    (tmp_path / "part-1.parquet").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=r"part-1\.parquet' cannot be read as Parquet"):
        open_stream(tmp_path, 1, 200)


def test_a_folder_of_csv_files_is_told_the_way_on(tmp_path):
    frame(50).to_csv(tmp_path / "part-0.csv", index=False)
    with pytest.raises(InputError, match=r"has 'part-0\.csv' and no \.parquet files"):
        open_stream(tmp_path, 1, 200)


def test_a_shard_with_other_columns_is_named(tmp_path):
    frame(50).to_parquet(tmp_path / "part-0.parquet")
    frame(50).drop(columns="dose").to_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(InputError, match=r"part-1\.parquet' lacks the column 'dose'"):
        open_stream(tmp_path, 1, 200)
    frame(50).assign(more=1).to_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(InputError, match=r"part-0\.parquet' lacks the column 'more'"):
        read_table(tmp_path)


def test_a_cell_is_named_by_its_row_in_the_whole_table(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": np.arange(200.0), "y": np.exp(np.sin(np.arange(200)))}).to_parquet(path)
    stream = open_stream(path, 1, 200)
    whole = list(stream.frames(size=50))
    monkeypatch.setattr(TableStream, "frames", lambda self, columns: iter(whole))
    whole[2].loc[137, "y"] = -1.0
    with pytest.raises(InputError, match=r"-1.*in the row labelled 137"):
        LargeTable.read(stream, ("a", "y"), kinds={"y": "positive"}, sample_rows=10)


def test_losses_and_hidden_causes_are_nodes_without_a_column(tmp_path):
    path = tmp_path / "t.parquet"
    frame().to_parquet(path)
    graph = CausalGraph.read("u -> age; u -> late; age -> missing(age)", latent=["u"])
    large = LargeTable.read(
        open_stream(path, 1, 200), graph.nodes, latent=graph.latent, sample_rows=100
    )
    whole = IncompleteTable.read(path, graph.nodes, latent=graph.latent)
    (batch,) = large.rows.batches()
    assert torch.equal(batch.values, whole.values)
    assert large.sample.schema == whole.schema


def test_a_full_disk_is_said_by_name(tmp_path):
    said = r"temporary folder '/full' \(No space left on device\).*TMPDIR"
    with pytest.raises(InputError, match=said), streams.saying_full("/full"):
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 4e9), ("500 MB", 5e8), ("1.5GiB", 1.5 * 2**30), (1000, 1000.0)]
)
def test_sizes(text, size):
    assert read_size(text) == size


@pytest.mark.parametrize("text", ["", "many", "-1", 0, -3, True, "4 apples", "1..2GB"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InputError, match=re.escape("memory is a size such as '4GB'")):
        read_size(text)


def test_rows_on_disk_go_with_their_table(tmp_path, caplog):
    path = tmp_path / "t.parquet"
    frame().to_parquet(path)
    with caplog.at_level(logging.INFO, "misscnf"):
        large = LargeTable.read(open_stream(path, 1, 200), NODES[:3], sample_rows=10)
    assert "has 900 rows, which are read from disk" in caplog.text
    folder = large.rows.path.parent
    assert folder.is_dir()
    rows = large.rows.in_order([2, 1, 0])
    del large
    assert len(next(rows.batches()).values) == 900
    del rows
    assert not folder.exists()
