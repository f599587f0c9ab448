"""The commands: what they print, what they refuse, and that a killed sweep goes on."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import misscnf_study
import pytest
from misscnf_study.store import Store
from misscnf_study.suites import SUITES
from typer.testing import CliRunner

import misscnf
from misscnf.cli.app import app

QUICK = ["--rows", "200", "--epochs", "2", "--preset", "linear"]
ONE = ["--scm", "chain_lin", "--mechanism", "mar", "--rate", "0.6", "--seed", "7"]


def call(*words):
    return CliRunner().invoke(app, ["bench", *map(str, words)], catch_exceptions=False)


def lines_of(folder):
    path = Path(folder) / "main.csv"
    return path.read_bytes().count(b"\n") - 1 if path.exists() else 0


def test_a_second_run_does_nothing(tmp_path):
    words = ["run", "main", *ONE, "--method", "misscnf", *QUICK, "--store", tmp_path]
    first = call(*words)
    assert (first.exit_code, lines_of(tmp_path)) == (0, 1)
    assert "ran 1 (1 ok)" in first.stderr
    before = (tmp_path / "main.csv").read_bytes()
    second = call(*words)
    assert second.exit_code == 0
    assert "nothing left to run" in second.stderr
    assert (tmp_path / "main.csv").read_bytes() == before
    assert os.listdir(tmp_path) == ["main.csv"]


@pytest.mark.slow
def test_an_id_runs_its_trial(tmp_path):
    name = "main-chain_lin-complete-none-full-linear-3-rows=200"
    assert call("run", name, "--store", tmp_path, "--quiet").exit_code == 0
    assert list(Store(tmp_path).rows("main").index) == [name]
    assert call("run", name, "--seed", "1").exit_code == 2


@pytest.mark.slow
def test_a_dry_run_lists_what_is_left(tmp_path):
    words = ["run", "main", *ONE, "--method", "mean", "--method", "full", *QUICK]
    assert len(call(*words, "--store", tmp_path / "new", "--dry-run").stdout.split()) == 2
    assert not (tmp_path / "new").exists()
    call(*words, "--store", tmp_path)
    assert call(*words, "--store", tmp_path, "--dry-run").stdout.split() == []


def test_failures_are_rows_and_can_be_redone(tmp_path):
    words = ["run", "main", *ONE, *QUICK, "--store", tmp_path, "--method", "mean"]
    words += ["--method", "sklearn:sklearn.decomposition:PCA"]
    result = call(*words)
    assert result.exit_code == 1
    assert "ran 2 (1 failed, 1 ok)" in result.stderr
    assert sorted(Store(tmp_path).rows("main")["status"]) == ["failed", "ok"]
    assert call(*words).exit_code == 0
    assert lines_of(tmp_path) == 2
    call(*words, "--redo", "failed", "--quiet")
    assert lines_of(tmp_path) == 3
    assert len(Store(tmp_path).rows("main")) == 2


@pytest.mark.slow
def test_tables_and_figures_come_from_the_store(tmp_path):
    call(
        "run", "main", *ONE, *QUICK, "--store", tmp_path, "--method", "mean", "--method", "misscnf"
    )
    table = call("table", "main", "--store", tmp_path)
    assert table.stdout.startswith("| Method | Chain LIN |")
    assert "| MissCNF (200 rows, 2 epochs) | **" in table.stdout
    against = call(
        "table", "main", "--store", tmp_path, "--against", "published", "--format", "csv"
    )
    assert "Ratio mean" in against.stdout
    only = call("table", "main", "--store", tmp_path, "--method", "mean").stdout
    assert "MissCNF" not in only
    figure = call("figure", "main", "--store", tmp_path, "--out", tmp_path / "figures")
    assert figure.stdout.split() == [str(tmp_path / "figures" / "main-kl.png")]
    assert (tmp_path / "figures" / "main-kl.png").stat().st_size > 1000


def test_the_usual_store_is_that_of_a_clone_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "of which results has 0" in call("list").stdout
    Path("study", "results").mkdir(parents=True)
    assert "of which study/results has 0" in call("list").stdout
    monkeypatch.chdir("study")
    assert "of which results has 0" in call("list").stdout


def test_the_list_names_everything(tmp_path):
    text = call("list", "--store", tmp_path).stdout
    for suite in SUITES.values():
        assert f"{suite.name}: {suite.about}" in text
    assert "omiracle" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["run", "mian"], "SUITE: there is no 'mian'; did you mean main?"),
        (
            ["run", "main", "--scm", "chain_li"],
            "--scm: the suite main has no chain_li; did you mean",
        ),
        (
            ["run", "main", "--mechanism", "mnar"],
            "--mechanism: the suite main has no mnar; did you",
        ),
        (
            ["run", "main", "--rate", "0.7"],
            "--rate: the suite main has no 0.7; it has 0.3, 0.6, 0.9",
        ),
        (["run", "main", "--method", "mise"], "--method: there is no 'mise'; did you mean mice?"),
        (["run", "main", "--method", "kip"], "--method: there is no 'kip'; did you mean kpi?"),
        (["run", "main", "--preset", "atuo"], "--preset: misscnf has no atuo; did you mean auto?"),
        (["run", "main", "--jobs", "0"], "--jobs is a whole number"),
        (["run", "main-nonsense"], "is not the id of a trial"),
        (["table", "main", "--store", "nowhere"], "has no rows of the suite main yet"),
        (["figure", "mnar", "--store", "nowhere"], "has no rows of the suite mnar yet"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_sentence(words, says):
    result = call(*words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["run", "main", "--backend", "moon"], ["table", "main", "--format", "doc"]]
)
def test_a_wrong_choice_names_its_option(words):
    result = call(*words)
    assert result.exit_code == 2
    assert words[-2] in result.stderr


@pytest.mark.parametrize("verb", ["run", "table", "figure", "list"])
def test_help_fits_a_screen_and_has_an_example(verb):
    text = call(verb, "--help").stdout
    assert len(text.splitlines()) <= 36
    assert f"Example: misscnf bench {verb}" in text


@pytest.mark.slow
def test_a_sweep_that_was_killed_goes_on(tmp_path):
    # Twelve trials of some tenths of a second; killed after two, in the middle of whatever it did.
    words = ["run", "main", "--scm", "chain_lin", "--mechanism", "mar", "--method", "misscnf"]
    words += ["--seed", "0", "--seed", "1", "--seed", "2", "--seed", "3", *QUICK, "--quiet"]
    words += ["--store", str(tmp_path)]
    code = "from misscnf.cli.app import app; app()"
    homes = [str(Path(package.__file__).parents[1]) for package in (misscnf, misscnf_study)]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(homes)}
    process = subprocess.Popen([sys.executable, "-c", code, "bench", *words], env=here)
    deadline = time.monotonic() + 120.0
    while lines_of(tmp_path) < 2 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = Store(tmp_path).rows("main")
    assert 2 <= len(kept) < 12
    assert call(*words).exit_code == 0
    rows = Store(tmp_path).rows("main")
    assert len(rows) == lines_of(tmp_path) == 12  # nothing lost, nothing run twice
    assert rows.loc[kept.index].equals(kept)
