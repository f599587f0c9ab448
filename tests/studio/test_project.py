"""The folder of a project: whole at any moment, and one studio's at a time."""

import json
import os

import pytest
from studio_here import drawing

from misscnf import InputError
from misscnf.studio.drawing import Drawing
from misscnf.studio.project import Conflict, Project


def test_what_is_drawn_is_there_when_it_is_opened_again(project):
    project.draw(Drawing.read(drawing("a", "b", edges=[("a", "b")])), 0)
    kept = project.to_dict()
    project.close()
    again = Project.open(project.folder)
    assert again.to_dict() == kept
    again.close()


def test_an_older_drawing_is_refused_and_changes_nothing(project):
    project.draw(Drawing.read(drawing("a")), 0)
    with pytest.raises(Conflict, match="another tab"):
        project.draw(Drawing.read(drawing("b")), 0)
    assert [node.name for node in project.drawing.nodes] == ["a"]


def test_a_second_studio_is_refused(project):
    with pytest.raises(InputError, match="another studio"):
        Project.open(project.folder)


def test_a_full_disk_leaves_the_old_project(project, monkeypatch):
    project.draw(Drawing.read(drawing("a")), 0)
    before = (project.folder / "project.json").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="space"):
        project.draw(Drawing.read(drawing("a", "b")), 1)
    assert (project.folder / "project.json").read_bytes() == before
    assert {path.name for path in project.folder.iterdir()} == {"project.json", ".lock"}


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"drawing": 3}'])
def test_a_file_that_is_no_project_is_refused(tmp_path, text):
    (tmp_path / "project.json").write_text(text)
    with pytest.raises(InputError, match="no project"):
        Project.open(tmp_path)
    assert (tmp_path / "project.json").read_text() == text


def test_another_project_is_begun_and_opened_beside_this_one(project):
    other = project.beside("other", new=True)
    other.close()
    assert project.others == ["other"]
    assert (project.folder.parent / "other" / "project.json").exists()
    again = project.beside("other", new=False)
    with pytest.raises(InputError, match="another studio"):
        project.beside("other", new=False)
    again.close()
    with pytest.raises(InputError, match="already"):
        project.beside("other", new=True)


NOWHERE = ["", "..", ".", "../x", "/etc", "a/b", "a\\b", ".git", " a", "a\n", "C:x", "x" * 300]


@pytest.mark.parametrize("name", NOWHERE)
@pytest.mark.parametrize("new", [True, False])
def test_a_project_is_opened_nowhere_else(project, name, new):
    around = sorted(project.folder.parent.parent.rglob("*"))
    with pytest.raises(InputError, match="project"):
        project.beside(name, new=new)
    assert sorted(project.folder.parent.parent.rglob("*")) == around


def test_a_folder_of_other_things_is_no_project(project, tmp_path):
    (project.folder.parent / "papers").mkdir()
    (project.folder.parent / "away").symlink_to(tmp_path)
    for name in ("papers", "away"):
        with pytest.raises(InputError):
            project.beside(name, new=False)
        with pytest.raises(InputError):
            project.beside(name, new=True)
    assert [*(project.folder.parent / "papers").iterdir()] == []


def test_another_table_forgets_the_answers_about_the_last(project, tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("a,b\n1,2\n")
    project.answers = [{"number": 1}]
    project.take_table(table)
    kept = json.loads((project.folder / "project.json").read_text())
    assert (kept["answers"], kept["table"]["inside"]) == ([], False)
