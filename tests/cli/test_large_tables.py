"""Verbs on tables that are larger than memory: the answers in memory, a batch at a time."""

import json

import numpy as np
import pandas as pd
import pytest

import misscnf.cli.outputs as outputs_home
from misscnf.data import streams


@pytest.fixture
def small_batches(monkeypatch):
    """Rows come in batches of 64; the table has 200."""
    frames = streams.TableStream.frames
    monkeypatch.setattr(
        streams.TableStream, "frames", lambda self, columns=None: frames(self, columns, 64)
    )


@pytest.fixture
def run(call, here, small_batches):
    """Calls a verb on the table in memory and from disk, and returns both files."""
    table = pd.read_csv("data.csv")
    table["kept"] = table["dose"].where(table.index > 150)  # no value in the first batches
    table["whole"] = table["t"].astype("Int64")
    table.to_parquet("data.parquet")

    def both(verb, words, out, given="data.parquet"):
        found = []
        for folder, memory in (("one", []), ("other", ["--memory", "1kB"])):
            (here / folder).mkdir(exist_ok=True)
            line = [verb, "model", given, *words.split(), "--out", f"{folder}/{out}", *memory]
            result = call(line)
            assert result.exit_code == 0, result.stderr
            files = sorted((here / folder).iterdir())
            read = pd.read_csv if out.endswith(".csv") else pd.read_parquet
            found.append([read(path) for path in files])
        assert [p.name for p in sorted((here / "one").iterdir())] == [p.name for p in files]
        return found

    return both


def same(one, other):
    pd.testing.assert_frame_equal(one, other, check_dtype=False)


@pytest.mark.parametrize("out", ["scores.csv", "scores.parquet"])
def test_densities(run, out):
    (one,), (other,) = run("log-prob", "--given age", out)
    same(one[[".id"]], other[[".id"]])
    exact = one["standard_error"] == 0
    np.testing.assert_allclose(one["log_prob"][exact], other["log_prob"][exact], rtol=1e-9)
    drawn = (one["log_prob"] - other["log_prob"]).abs() / (one["standard_error"] + 1e-9)
    assert drawn[~exact].median() < 2.0  # both have that error: 0.95 is expected of 80 rows


@pytest.mark.parametrize("out", ["tables.csv", "tables.parquet"])
def test_imputations_are_in_order_and_keep_what_is_there(run, out):
    (one,), (other,) = run("impute", "--draws 2 --original", out)
    assert list(one.columns) == list(other.columns)
    same(one[[".imp", ".id", "id", "kept"]], other[[".imp", ".id", "id", "kept"]])
    assert other[["age", "sex", "t", "y"]][other[".imp"] > 0].notna().all(axis=None)
    came = one[".imp"] == 0
    same(one[came], other[came])
    shown = pd.concat([one.loc[came, "age"]] * 3, ignore_index=True).notna()
    same(one.loc[shown, ["age"]], other.loc[shown, ["age"]])
    first = one[".id"] <= 64  # the first batch has the seed itself, and its draws
    assert np.isfinite(other.loc[first, "y"][~came]).all()


def test_a_file_for_each_table(run):
    one, other = run("impute", "--draws 2 --wide", "tables.csv")
    assert len(one) == len(other) == 2
    assert list(one[1].columns) == list(other[1].columns)
    same(one[1][["id", "dose"]], other[1][["id", "dose"]])


@pytest.mark.parametrize("words", ["", "--draws 2"])
def test_counterfactuals(run, words):
    (one,), (other,) = run("counterfactual", f"--do t=0 {words}", "worlds.parquet")
    assert list(one.columns) == list(other.columns)
    assert (other["t"] == 0).all()
    same(one[["id", "dose", "kept"]], other[["id", "dose", "kept"]])


def test_what_needs_replicates_says_so(call, here):
    line = ["impute", "model", "data.csv", "--proper", "--out", "x.csv", "--memory", "1kB"]
    result = call(line)
    assert result.exit_code == 2
    assert "misscnf fit --replicates" in result.stderr
    assert not (here / "x.csv").exists()


def test_check_looks_at_rows_by_chance_and_says_so(call, here, monkeypatch):
    sample = streams.TableStream.sample
    monkeypatch.setattr(streams.TableStream, "sample", lambda self, most: sample(self, 150))
    line = ["check", "data.csv", "--graph", "graph.dot", "--json"]
    whole, part = call(line), call([*line, "--memory", "1kB"])
    assert whole.exit_code == part.exit_code
    assert "looked at 150 of 200 rows, by chance" in part.stderr
    found = [json.loads(one.stdout) for one in (whole, part)]
    assert [one["rows"] for one in found] == [200, 150]


def test_standard_output_is_no_place_for_batches(call):
    result = call(["log-prob", "model", "data.csv", "--memory", "1kB"])
    assert result.exit_code == 2
    assert "give --out a file" in result.stderr


@pytest.mark.parametrize("out", ["x.csv", "x.parquet"])
def test_a_full_disk_leaves_nothing_half_written(run, call, here, monkeypatch, out):
    (here / out).write_text("as it was")
    add, times = outputs_home.TableParts.add, []

    def full(self, frame):
        times.append(1)
        if len(times) == 3:
            raise OSError(28, "No space left on device")
        add(self, frame)

    monkeypatch.setattr(outputs_home.TableParts, "add", full)
    before = sorted(here.iterdir())
    result = call(["log-prob", "model", "data.csv", "--out", out, "--memory", "1kB"])
    assert result.exit_code == 2
    assert f"'{out}' cannot be written: No space left on device" in result.stderr
    assert (here / out).read_text() == "as it was"
    assert sorted(here.iterdir()) == before
