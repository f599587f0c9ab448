"""What the page asks of the server, from the table to the code."""

import json
import shlex
import time

import pandas as pd
import pytest
from studio_here import drawing, here, post

from misscnf import MissCNF, check
from misscnf.studio.project import Project

GRAPH = drawing("age", "dose", "days", edges=[("age", "dose"), ("age", "days"), ("dose", "days")])
XSS = "<img src=x onerror=alert(1)>"


def draw(page, given, revision=None):
    number = page.get("/api/project").json()["revision"] if revision is None else revision
    return page.put("/api/drawing", json={"drawing": given, "revision": number})


def wait(page, task):
    """Waits for the job, and returns how it ended."""
    for _ in range(600):
        job = page.get("/api/project").json()["job"]
        if job["state"] != "running":
            assert job["task"] == task
            return job
        time.sleep(0.05)
    raise AssertionError("the job did not end")


def test_a_table_is_shown_with_its_holes(opened, table):
    shown = opened.get("/api/table").json()
    assert (shown["name"], shown["rows"], shown["complete"]) == ("patients.csv", 80, 60)
    age, dose, _ = shown["columns"]
    assert (age["holes"], age["levels"]) == (20, [["50", 20], ["60", 20], ["70", 20]])
    assert dose["levels"] == [["0", 40], ["1", 40]]
    assert [pattern["rows"] for pattern in shown["patterns"]["shown"]] == [60, 20]
    assert shown["first"][3][0] is None


def test_a_file_that_is_no_table_leaves_the_old_one(opened):
    answer = opened.put("/api/table?name=patients.parquet", content=b"no parquet")
    assert answer.status_code == 422
    assert "'patients.parquet'" in answer.json()["refused"]
    assert opened.get("/api/project").json()["table"]["name"] == "patients.csv"


def test_kinds_have_reasons_and_can_be_changed(opened):
    kinds = post(opened, "/api/kinds", kinds={}).json()
    assert {one["column"]: one["kind"] for one in kinds}["dose"] == "binary"
    assert all(one["why"] for one in kinds)
    changed = post(opened, "/api/kinds", kinds={"dose": "continuous"}).json()
    assert {one["column"]: one["kind"] for one in changed}["dose"] == "continuous"
    assert post(opened, "/api/kinds", kinds={"dose": "colour"}).status_code == 422


def test_the_check_is_that_of_the_library(opened, table):
    given = {**GRAPH, "effect": ["dose", "days"]}
    found = post(opened, "/api/check", drawing=given, rows=None, quick=False).json()
    report = check(table, GRAPH["edges"], effect=("dose", "days"))
    assert found["summary"] == report.summary()
    assert found["ok"] == report.ok
    assert (found["checked"], found["among"]) == (80, 80)
    quick = post(opened, "/api/check", drawing=given, rows=None, quick=True).json()
    assert (quick["quick"], found["quick"]) == (True, False)
    assert [one["status"] for one in quick["nodes"]] == [one["status"] for one in found["nodes"]]
    fewer = post(opened, "/api/check", drawing=given, rows=50, quick=False).json()
    assert (fewer["checked"], fewer["among"]) == (50, 80)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (drawing("age", "dose", edges=[("age", "dose"), ("dose", "age")]), "cycle"),
        (drawing("age", "u", edges=[("u", "age")]), "'u'"),
        (drawing(), "empty"),
        (drawing("age", "age"), "twice"),
        (drawing("age", edges=[("age", "nothing")]), "'nothing'"),
        ({"nodes": 3}, "list"),
        ({"colour": "red"}, "'colour'"),
    ],
)
def test_what_cannot_be_checked_is_said(opened, given, words):
    answer = post(opened, "/api/check", drawing=given, rows=None, quick=False)
    assert answer.status_code == 422
    assert words in answer.json()["refused"]


def test_two_tabs_do_not_draw_over_each_other(opened):
    assert draw(opened, GRAPH).status_code == 200
    old = opened.get("/api/project").json()["revision"] - 1
    answer = draw(opened, drawing("age"), revision=old)
    assert answer.status_code == 409
    assert "another tab" in answer.json()["refused"]
    assert len(opened.get("/api/project").json()["drawing"]["nodes"]) == 3


def test_names_are_data_wherever_they_come_back(page, project):
    frame = pd.DataFrame({XSS: [1.0, 2.0, 4.0] * 9, "y": range(27)})
    page.put("/api/table?name=a.csv", content=frame.to_csv(index=False))
    given = drawing(XSS, "y", edges=[(XSS, "y")])
    assert draw(page, given).status_code == 200
    for path in ("/api/project", "/api/table", "/api/code"):
        assert page.get(path).headers["content-type"] == "application/json"
    code = page.get("/api/code").json()
    compile(code["python"], "analysis.py", "exec")
    text = post(page, "/api/write", drawing=given, form="dot").json()["text"]
    assert post(page, "/api/read", text=text).json()["edges"] == [[XSS, "y"]]


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A page on which a small linear model was fitted and asked."""
    from starlette.testclient import TestClient
    from studio_here import HOME, TOKEN

    folder = tmp_path_factory.mktemp("asked")
    project = Project.open(folder / "project")
    app, _ = here(project)
    rows = {"t": [0, 1] * 60, "x": [0.3, 1.2, 2.5, -1.0, 0.7] * 24}
    frame = pd.DataFrame(rows)
    frame["y"] = 2.0 * frame["t"] + frame["x"] + [0.1 * (i % 7) for i in range(120)]
    frame.loc[::9, "y"] = None
    with TestClient(app, base_url=HOME, follow_redirects=False) as page:
        page.headers["origin"] = HOME
        page.get(f"/?token={TOKEN}")
        page.put("/api/table?name=a.csv", content=frame.to_csv(index=False))
        edges = [("x", "t"), ("x", "y"), ("t", "y")]
        given = drawing("x", "t", "y", edges=edges, effect=["t", "y"], preset="linear")
        assert draw(page, given).status_code == 200
        assert post(page, "/api/fit").status_code == 200
        assert wait(page, "fit")["state"] == "done"
        for question in QUESTIONS:
            assert post(page, "/api/ask", question=question).status_code == 200
            job = wait(page, "ask")
            assert job["state"] == "done", job
        yield page, project, project.folder / "tables" / "a.csv"
    project.close()


EFFECT = {"on": "y", "do": {"t": "1"}, "versus": {"t": "0"}, "interval": None}
QUESTIONS = [
    EFFECT,
    {**EFFECT, "where": "x > 1", "statistic": "median", "seed": 3},
    {"kind": "curve", "on": "y", "along": "x", "low": 0.0, "high": 0.3, "step": 0.1}
    | {"interval": None, "by": "t", "treated": True},  # left over from another kind of question
    {"kind": "sensitivity", **EFFECT, "low": 0.0, "high": 40.0, "step": 20.0, "arm": "do"},
    {"kind": "row", "row": 1, "draws": 5},
    {"kind": "row", "row": 2, "do": {"t": "1"}, "draws": 5},
]


def test_an_answer_is_that_of_the_command_line(asked, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from misscnf.cli.app import app

    page, project, table = asked
    words = ["effect", str(project.folder / project.model["folder"]), "--on", "y", "--do", "t=1"]
    words += ["--versus", "t=0", "--data", str(table), "--json", "--quiet"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    answers = page.get("/api/project").json()["answers"]
    assert answers[0]["answer"]["estimate"] == json.loads(done.stdout)["estimate"]
    assert answers[0]["answer"]["told"].startswith("effect on y of do(t = 1)")


def test_an_answer_is_that_of_the_library(asked):
    page, project, table = asked
    model = MissCNF.load(project.folder / project.model["folder"])
    answers = [one["answer"] for one in page.get("/api/project").json()["answers"]]
    given = {"do": {"t": 1}, "versus": {"t": 0}, "data": table}
    median = model.effect("y", where="x > 1", statistic="median", seed=3, **given)
    assert answers[1]["estimate"] == median.estimate
    curve = model.curve("y", "x", [0.0, 0.1, 0.2, 0.3], data=table)
    assert [row["mean"] for row in answers[2]["curve"]] == list(curve["mean"])
    worse = model.sensitivity("y", **given, shift={"do": [0.0, 20.0, 40.0]}, interval=None)
    assert [at["estimate"] for at in answers[3]["points"]] == list(worse.to_frame()["estimate"])
    assert answers[3]["told"] == worse.told
    hole = next(cell for cell in answers[4]["cells"] if cell["name"] == "y")
    assert hole["shown"] is None
    assert len(hole["shares"]) == 5  # so few draws are told one by one
    assert answers[5]["cells"][1]["shares"] == [["1", 1.0]]


def test_the_exported_python_gives_the_same_numbers(asked, capsys):
    page, _, _ = asked
    exec(page.get("/api/code").json()["python"], {})
    printed = capsys.readouterr().out
    answers = page.get("/api/project").json()["answers"]
    for one in (*answers[:2], answers[3]):
        assert one["answer"]["told"] in printed


def test_the_exported_commands_are_commands(asked):
    page, _, _ = asked
    lines = page.get("/api/code").json()["shell"].splitlines()
    verbs = ["check", "fit", "effect", "effect", "effect", "sensitivity"]
    verbs += ["impute", "counterfactual"]
    assert [line.split()[1] for line in lines] == verbs
    assert "--do x=0.0:0.3:0.1" in lines[4]
    assert "--by" not in lines[4]
    assert "--treated" not in lines[4]
    assert "--shift=0.0:40.0:20.0 --arm do" in lines[5]


def test_what_was_asked_is_there_when_the_project_is_opened_again(asked):
    page, project, _ = asked
    kept = json.loads((project.folder / "project.json").read_text())
    shown = page.get("/api/project").json()
    assert {name: shown[name] for name in kept} == kept
    project.close()
    again = Project.open(project.folder)
    assert again.to_dict() == kept
    again.close()


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ({**EFFECT, "on": "z"}, "'z'"),
        ({**EFFECT, "do": {"t": ""}}, "'t'"),
        ({**EFFECT, "do": {"t": "__import__('os')"}}, "__import__"),
        ({"kind": "row", "row": 1000}, "1 to 120"),
        ({"kind": "risk", "on": "y"}, "over time"),
        ({"kind": "sensitivity", **EFFECT, "loss": "x"}, "x"),
        ({"kind": "curve", "on": "y", "along": "x", "step": -1.0}, "steps"),
    ],
)
def test_what_cannot_be_asked_is_said_and_nothing_is_kept(asked, question, words):
    page, _, _ = asked
    before = page.get("/api/project").json()["answers"]
    assert post(page, "/api/ask", question=question).status_code == 200
    job = wait(page, "ask")
    assert job["state"] == "refused"
    assert words in job["sentence"]
    assert page.get("/api/project").json()["answers"] == before


@pytest.mark.parametrize("question", [3, {"colour": 1}, {"on": 4}, {"interval": 95}, {"do": [1]}])
def test_what_is_no_question_is_refused(asked, question):
    page, _, _ = asked
    assert post(page, "/api/ask", question=question).status_code == 422


@pytest.fixture(scope="module")
def over_time(tmp_path_factory):
    """A page on which a table over time was fitted and asked."""
    import numpy as np
    from starlette.testclient import TestClient
    from studio_here import HOME, TOKEN

    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("over_time")
    frame = pd.DataFrame({"id": np.repeat(range(150), 3), "week": [0, 1, 2] * 150})
    frame["L"] = rng.normal(size=450)
    frame["A"] = (rng.normal(size=450) + frame["L"] > 0).astype(int)
    frame["Y"] = frame["A"] + frame["L"] + rng.normal(size=450)
    frame["ill"] = (rng.random(450) < 0.2).astype(int)
    frame = frame[frame.groupby("id")["ill"].cumsum() - frame["ill"] == 0]
    frame.loc[::7, "Y"] = None
    project = Project.open(folder / "project")
    app, _ = here(project)
    with TestClient(app, base_url=HOME, follow_redirects=False) as page:
        page.headers["origin"] = HOME
        page.get(f"/?token={TOKEN}")
        page.put("/api/table?name=long.csv", content=frame.to_csv(index=False))
        edges = [("L[t-1]", "A[t]"), ("L[t]", "A[t]"), ("A[t]", "ill[t]"), ("A[t]", "Y[t]")]
        names = ["L[t-1]", "L[t]", "A[t]", "ill[t]", "Y[t]"]
        more = {"panel": ["id", "week"], "kinds": {"ill": "event"}, "effect": ["A[t]", "Y[t]"]}
        assert draw(page, drawing(*names, edges=edges, preset="linear", **more)).status_code == 200
        yield page, project, project.folder / "tables" / "long.csv"
    project.close()


REGIMES = {"do": {"A": "1"}, "versus": {"A": "L[t] < 0"}, "interval": None}


def test_a_table_over_time_is_checked_fitted_and_asked(over_time, capsys, tmp_path, monkeypatch):
    page, project, table = over_time
    given = page.get("/api/project").json()["drawing"]
    shown = post(page, "/api/check", drawing=given, rows=None, quick=False).json()
    report = check(
        table,
        [tuple(edge) for edge in given["edges"]],
        effect=("A", "Y"),
        kinds={"ill": "event"},
        id="id",
        time="week",
    )
    assert shown["summary"] == report.summary()
    assert [one["status"] for one in shown["nodes"]] == ["covered"]
    some = post(page, "/api/check", drawing=given, rows=100, quick=False).json()
    assert 60 < some["checked"] < 140  # of whole people

    assert post(page, "/api/fit").status_code == 200
    assert wait(page, "fit")["state"] == "done"
    effect = {"on": "Y", **REGIMES}
    risk = {"kind": "risk", "on": "ill", "do": {"A": "1"}, "interval": None}
    for question in (effect, risk, {**risk, **REGIMES, "competing": "removed"}):
        assert post(page, "/api/ask", question=question).status_code == 200
        job = wait(page, "ask")
        assert job["state"] == "done", job
    answers = [one["answer"] for one in page.get("/api/project").json()["answers"]]
    model = MissCNF.load(project.folder / project.model["folder"])
    arms = {"do": {"A": 1.0}, "versus": {"A": "L[t] < 0"}}
    assert answers[0]["estimate"] == model.effect("Y", **arms, data=table).estimate
    natural = model.risk("ill", {"A": 1.0}, {}, data=table).table
    assert [row["difference"] for row in answers[1]["table"]] == list(natural["difference"])

    code = page.get("/api/code").json()
    exec(code["python"], {})
    printed = capsys.readouterr().out
    assert all(one["told"] in printed for one in answers)
    lines = code["shell"].splitlines()
    assert all("--id id --time week" in line for line in lines[:2])
    assert "--versus natural" in lines[3]
    from typer.testing import CliRunner

    from misscnf.cli.app import app

    monkeypatch.chdir(tmp_path)
    model.save("model")
    words = shlex.split(lines[4])[1:]
    assert answers[2]["told"] in CliRunner().invoke(app, [*words, "--quiet"]).stdout


def test_another_project_is_opened_in_the_page(opened, project):
    stale = opened.get("/api/project").json()["revision"]
    assert post(opened, "/api/open", name="second", new=True).status_code == 200
    shown = opened.get("/api/project").json()
    assert (shown["folder"], shown["table"]) == (str(project.folder.parent / "second"), None)
    assert draw(opened, drawing("age"), revision=stale).status_code == 409
    assert opened.get("/api/projects").json() == ["project"]
    assert post(opened, "/api/open", name="project", new=False).status_code == 200
    assert opened.get("/api/project").json()["table"]["name"] == "patients.csv"
    assert opened.get("/api/table").json()["rows"] == 80


@pytest.mark.parametrize("name", ["..", "/tmp", "nothing", 3])
def test_no_other_folder_is_opened(opened, name):
    assert post(opened, "/api/open", name=name, new=False).status_code == 422
    assert opened.get("/api/project").json()["table"]["name"] == "patients.csv"
