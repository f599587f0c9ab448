"""Tables from files: what a file shows is what the table holds, or a sentence says why not."""

import numpy as np
import pandas as pd
import pytest

from misscnf.data.files import Reading
from misscnf.data.table import IncompleteTable, read_table
from misscnf.errors import InputError

HOLE = float("nan")
NODES = ("x", "t", "y")


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
    "other separator": ("table.csv", b"x:y\n1:2\n", ["node 'x'", "'x:y'"]),
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


# ------------------------------------------------------------------------- what people really have


def test_a_semicolon_file_with_decimal_commas_is_recognised(tmp_path, caplog):
    caplog.set_level("INFO", "misscnf")
    path = tmp_path / "table.csv"
    path.write_text("x;t;y\n1,5;0;NA\n-2,25;1;3\n")
    found = read_table(path)
    assert found["x"].tolist() == [1.5, -2.25]
    assert "separated by ';', with decimal commas" in caplog.text
    path.write_text('"a, b"|c\n1.5|2\n')
    assert read_table(path).columns.tolist() == ["a, b", "c"]
    path.write_text("x;y\n1.5;2\n")
    assert read_table(path)["x"].tolist() == [1.5]


def test_a_file_is_read_as_it_is_told(tmp_path):
    path = tmp_path / "table.tsv"
    path.write_text("x/when/k\n1,5/2024-01-02/-99\n?/1970-01-02/3\n")
    found = read_table(path, reading=Reading(("-99", "?"), "/", ",", ("when",)))
    assert found["x"].tolist()[0] == 1.5
    assert found["x"].isna().tolist() == [False, True]
    assert found["k"].isna().tolist() == [True, False]
    assert found["when"].tolist() == [19724.0, 1.0]
    for dates, why in {
        ("nobody",): "no column 'nobody'",
        ("x",): "cannot be read as dates",
    }.items():
        with pytest.raises(InputError, match=why):
            read_table(path, reading=Reading(separator="/", dates=dates))


@pytest.mark.parametrize("extension", [".csv.gz", ".parquet", ".dta"])
def test_codes_are_holes_in_every_kind_of_file(tmp_path, extension):
    path = tmp_path / f"table{extension}"
    frame = pd.DataFrame({"x": [1.5, -99.0, 2.0], "s": ["a", "b", "unknown"]})
    write = {".csv.gz": frame.to_csv, ".parquet": frame.to_parquet, ".dta": frame.to_stata}
    write[extension](path, **({"write_index": False} if extension == ".dta" else {}))
    found = read_table(path, reading=Reading(("-99", "unknown")))
    assert found["x"].isna().tolist() == [False, True, False]
    assert found["s"].isna().tolist() == [False, False, True]


def test_labels_of_stata_and_spss_come_along(tmp_path):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS files need the extra `files`")
    labels = pd.Categorical(["yes", "no", None, "yes"], ["yes", "no"])
    frame = pd.DataFrame({"x": [1.0, 2.0, HOLE, 4.0], "smokes": labels})
    frame.to_stata(tmp_path / "table.dta", write_index=False)
    codes = frame.assign(smokes=[1.0, 2.0, HOLE, 1.0])
    given = {"variable_value_labels": {"smokes": {1: "yes", 2: "no"}}}
    pyreadstat.write_sav(codes, tmp_path / "table.sav", **given)
    for name in ("table.dta", "table.sav"):
        found = read_table(tmp_path / name)
        assert found["smokes"].astype(object).where(found["smokes"].notna(), None).tolist() == [
            "yes",
            "no",
            None,
            "yes",
        ]
        assert not found["smokes"].cat.ordered
        np.testing.assert_array_equal(found["x"], frame["x"])


@pytest.mark.parametrize("name", ["table.dta", "table.sav"])
def test_labels_of_some_values_leave_a_column_of_numbers_a_column_of_numbers(
    tmp_path, caplog, name
):
    pyreadstat = pytest.importorskip("pyreadstat", reason="SPSS files need the extra `files`")
    frame = pd.DataFrame({"y": [1.5, 2.5, -99.0, 4.0], "arm": [0, 1, 1, 0]})
    labels = {"y": {-99: "not known"}, "arm": {0: "none", 1: "drug"}}
    if name.endswith("sav"):
        pyreadstat.write_sav(frame, tmp_path / name, variable_value_labels=labels)
    else:
        frame = frame.assign(y=[1, 2, -99, 4])
        frame.to_stata(tmp_path / name, write_index=False, value_labels=labels)
    with caplog.at_level("INFO", "misscnf"):
        found = read_table(tmp_path / name)
    np.testing.assert_array_equal(found["y"], frame["y"])
    assert found["arm"].tolist() == ["none", "drug", "drug", "none"]
    assert "Not every value of 'y' has a label in the file" in caplog.text


@pytest.mark.parametrize("version", [5, 8])
def test_both_transport_formats_of_sas_are_read(tmp_path, version):
    pyreadstat = pytest.importorskip("pyreadstat", reason="written with the extra `files`")
    frame = pd.DataFrame({"x": [1.5, HOLE, -2.0], "arm": ["drug", "none", "drug"]})
    pyreadstat.write_xport(frame, tmp_path / "table.xpt", file_format_version=version)
    found = read_table(tmp_path / "table.xpt")
    np.testing.assert_allclose(found["x"], frame["x"])
    assert found["arm"].tolist() == frame["arm"].tolist()


def test_text_of_sas_need_not_be_utf8(tmp_path, caplog, monkeypatch):
    """The usual SAS of a German hospital writes Windows-1252, and says so only in .sas7bdat."""
    pyreadstat = pytest.importorskip("pyreadstat", reason="written with the extra `files`")
    frame = pd.DataFrame({"x": [1.5, -2.0], "ward": ["Köln", "Bonn!"]})
    pyreadstat.write_xport(frame, tmp_path / "table.xpt", file_format_version=5)
    written = (tmp_path / "table.xpt").read_bytes()
    (tmp_path / "table.xpt").write_bytes(
        written.replace("Köln".encode(), "Köln ".encode("cp1252"))
    )
    with caplog.at_level("INFO", "misscnf"):
        assert read_table(tmp_path / "table.xpt")["ward"].tolist() == ["Köln", "Bonn!"]
    assert "read as Windows-1252" in caplog.text
    (tmp_path / "table.sas7bdat").write_bytes(b"no such writer")
    monkeypatch.setattr(pd, "read_sas", lambda path, encoding: frame.assign(ward=encoding))
    assert read_table(tmp_path / "table.sas7bdat")["ward"].tolist() == ["infer", "infer"]


def test_a_code_in_many_rows_is_asked_about(caplog):
    caplog.set_level("INFO", "misscnf")
    rng = np.random.default_rng(0)
    age = np.where(rng.random(200) < 0.1, -99.0, rng.normal(50, 10, 200).round())
    rate = np.where(rng.random(200) < 0.1, 9, rng.integers(1, 6, 200))
    fine = np.where(rng.random(200) < 0.1, 99, rng.integers(60, 99, 200))
    df = pd.DataFrame({"age": age, "rate": rate, "fine": fine, "few": [-99, -99, *range(198)]})
    kinds = IncompleteTable.read(df, list(df)).schema.describe().set_index("column")
    count = int((age == -99).sum())
    assert f"-99 stands in {count} rows" in kinds.loc["age", "offer"]
    assert "say --na -99, or df.replace(-99" in caplog.text
    assert "9 stands in" in kinds.loc["rate", "offer"]
    assert "stands in" not in kinds.loc["fine", "offer"] + kinds.loc["few", "offer"]
