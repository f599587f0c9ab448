"""Verbs on tables that are larger than memory: the answers in memory, a batch at a time."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import misscnf.cli.outputs as outputs_home
from misscnf.data import streams
from misscnf.fitting import settings
from misscnf.identification import checking
from misscnf.options import change


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


@pytest.fixture
def few(monkeypatch):
    """Of the 200 rows 150 are a sample."""
    sample = streams.TableStream.sample
    monkeypatch.setattr(
        streams.TableStream, "sample", lambda self, most, seed=0: sample(self, 150, seed)
    )


def test_check_counts_all_rows_and_says_what_it_looked_for_in_some(call, few, small_batches):
    line = ["check", "data.csv", "--graph", "graph.dot"]
    told = call([*line, "--memory", "1kB"])
    assert "all else was looked for in 150 of them by chance" in told.stdout
    whole, part = call([*line, "--json"]), call([*line, "--json", "--memory", "1kB"])
    one, other = (json.loads(found.stdout) for found in (whole, part))
    assert whole.exit_code == part.exit_code == told.exit_code
    for counted in ("rows", "usage", "monotone"):
        assert one[counted] == other[counted]
    in_order = [
        sorted((line["rows"], *sorted(line["observed"])) for line in found["patterns"])
        for found in (one, other)
    ]
    assert in_order[0] == in_order[1]
    counts = [[line["rows whole"] for line in found["nodes"]] for found in (one, other)]
    assert counts[0] == counts[1]
    assert [one["searched"], other["searched"]] == [200, 150]


def test_a_family_that_only_rows_outside_the_sample_show_is_not_called_never_seen(call, here):
    """One row in 600 shows b with c; two of all rows do, and those of the sample do not."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(1200, 2)), columns=["b", "c"])
    first = np.arange(1200) < 600
    table["b"], table["c"] = table["b"].where(first), table["c"].where(~first)
    stream_rows = streams.derive_generator(0, "sample of rows")
    unseen = int(streams.torch.randperm(1200, generator=stream_rows)[-1])
    table.loc[unseen] = 0.5
    table.to_parquet("never.parquet")
    line = ["check", "never.parquet", "--graph", "b -> c", "--memory", "1kB"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            checking, "Streaming", lambda: SimpleNamespace(sample_rows=1000, bytes_a_cell=200)
        )
        told = call(line).stdout
    assert "almost never seen together, in 1 of 1200 rows" in told


def test_a_model_of_a_file_on_disk_is_asked_from_there(call, here, monkeypatch):
    """Effects and pages take the rows by chance that the fit kept: the same table to the bit."""
    few = change(settings.PRESETS["linear"], {"streaming.sample_rows": 150})
    monkeypatch.setitem(settings.PRESETS, "linear", few)
    read = "--memory 1kB --preset linear --graph graph.dot --out large --quiet"
    assert call(["fit", "data.csv", *read.split()]).exit_code == 0
    arms = ["--on", "y", "--do", "t=1", "--versus", "t=0", "--interval", "0.9", "--json"]
    ask = ["effect", "large", *arms]
    found = call([*ask, "--data", "data.csv", "--population", "rows"])
    assert found.exit_code == 0, found.stderr
    assert "not the one that the model was fitted to" not in found.stderr
    answer = json.loads(found.stdout)
    assert answer["lower"] < 2.0 < answer["upper"]
    page = ["report", "large", "data.csv", "--effect", "t:y", "--interval", "0"]
    assert call([*page, "--out", "page.html"]).exit_code == 0
    text = (here / "page.html").read_text()
    assert "counted in all 200 rows" in text
    assert "is of 150 of them, by chance" in text
    assert "fitted to 150 of 200 rows by chance" not in text  # lines and logits know all rows


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
