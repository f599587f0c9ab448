"""Verbs of other distributions: there where they are installed, and a sentence where not."""

from importlib.metadata import EntryPoint

import pytest
import typer
from typer.testing import CliRunner

import misscnf.cli.app
from misscnf.cli.app import INSTALL_THE_STUDY, add_plug_ins


@pytest.fixture
def call_with(monkeypatch):
    """Calls a command whose plug-ins are the given ones."""

    def call(entries, *words):
        found = [EntryPoint(name, value, "misscnf.commands") for name, value in entries.items()]
        monkeypatch.setattr(misscnf.cli.app, "entry_points", lambda group: found)
        command = typer.Typer(rich_markup_mode=None)
        command.callback()(lambda: None)
        add_plug_ins(command)
        return CliRunner().invoke(command, words, catch_exceptions=False)

    return call


STUDY = {"bench": "misscnf_study.cli:bench"}


@pytest.mark.parametrize(
    "words", [["bench"], ["bench", "list"], ["bench", "run", "main", "--rate", "0.6"]]
)
def test_without_the_study_bench_says_how_to_install_it(call_with, words):
    ended = call_with({}, *words)
    assert ended.exit_code == 2
    assert ended.stdout == ""
    assert ended.stderr == f"misscnf: {INSTALL_THE_STUDY}\n"


def test_without_the_study_the_help_says_so_too(call_with):
    assert "pip install misscnf-study" in " ".join(call_with({}, "bench", "--help").stdout.split())
    assert "Not installed; misscnf bench says how to get it." in call_with({}, "--help").stdout


def test_with_the_study_bench_has_its_verbs(call_with):
    pytest.importorskip("misscnf_study")
    text = call_with(STUDY, "bench", "--help").stdout
    assert all(f"\n  {verb} " in text for verb in ("run", "table", "figure", "list"))
    assert "The study of the paper" in call_with(STUDY, "--help").stdout


def test_a_plug_in_that_cannot_be_imported_leaves_the_others_alone(call_with):
    entries = {"moon": "there_is_no_such_module:verbs", "nothing": "typer:no_such_name"}
    ended = call_with(entries, "moon", "land")
    assert ended.exit_code == 2
    assert "moon comes from there_is_no_such_module:verbs, which cannot be imp" in ended.stderr
    assert call_with(entries, "nothing").exit_code == 2
    assert call_with({**entries, **STUDY}, "bench", "--help").exit_code == 0
