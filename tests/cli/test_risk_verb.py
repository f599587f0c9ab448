"""`misscnf fit --id --time` and `misscnf risk`: the answers of Python, and sentences."""

import json

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF

GRAPH = "L[t-1], A[t-1] -> L[t]; L[t] -> A[t]; L[t], A[t] -> Y[t]"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    people, parts = 300, []
    alive, level, dose = np.ones(people, dtype=bool), rng.normal(size=people), 0.0
    for visit in range(3):
        level = 0.5 * level - 0.5 * dose + rng.normal(size=people)
        dose = (rng.random(people) < 1 / (1 + np.exp(-level))).astype(int)
        event = (rng.random(people) < 1 / (1 + np.exp(2 - level + dose))).astype(int)
        row = {"id": np.arange(people), "visit": visit, "L": level, "A": dose, "Y": event}
        parts.append(pd.DataFrame(row)[alive])
        alive = alive & (event == 0)
    found = tmp_path_factory.mktemp("risk")
    table = pd.concat(parts)
    table["L"] = table["L"].mask(rng.random(len(table)) < 0.1)
    table.to_csv(found / "long.csv", index=False)
    (found / "kinds.json").write_text('{"Y": "event"}')
    return found


FIT = ["fit", "long.csv", "--graph", GRAPH, "--id", "id", "--time", "visit", "--preset", "linear"]


def test_a_long_table_is_fitted_and_asked(call, folder, monkeypatch):
    monkeypatch.chdir(folder)
    ended = call([*FIT, "--kinds", "kinds.json", "--out", "m"])
    assert ended.exit_code == 0, ended.stderr
    assert "3 visits (visit 0 to 2); at every visit: 'L', 'A', 'Y'; events: 'Y'" in ended.stderr
    words = ["risk", "m", "--on", "Y", "--do", "A=L[t] > 0", "--versus", "A=0", "--draws", "5000"]
    ended = call([*words, "--interval", "0.9", "--data", "long.csv", "--json"])
    assert ended.exit_code == 0, ended.stderr
    told = json.loads(ended.stdout)
    own = MissCNF.load("m").risk("Y", {"A": "L[t] > 0"}, {"A": 0}, draws=5000)
    assert told["table"]["risk"] == pytest.approx(own.table["risk"].tolist())
    assert told["table"]["difference_lower"][-1] < told["table"]["difference"][-1]
    ended = call([*words[:6], "--versus", "natural", "--draws", "5000", "--plot", "r.svg"])
    assert ended.exit_code == 0, ended.stderr
    assert (folder / "r.svg").read_bytes().startswith(b"<?xml")
    assert "do(A = 'L[t] > 0') versus the natural course" in ended.stdout
    words = ["report", "m", "long.csv", "--effect", "A:Y", "--interval", "0", "--out", "r.html"]
    ended = call([*words, "--do", "A=L[t] > 0", "--versus", "natural"])
    assert ended.exit_code == 0, ended.stderr
    assert "With A by the rule L[t] &gt; 0, the risk of Y" in (folder / "r.html").read_text()
    for more, said in [
        (["--do", "B=1"], "no column 'B'"),
        (["--do", "A"], "expected a column and a value"),
        (["--plot", "r.gif"], "a picture is a .png"),
        (["--competing", "none"], "--competing is total or removed"),
    ]:
        ended = call(["risk", "m", "--on", "Y", *more])
        assert ended.exit_code == 2
        assert said in ended.stderr


def test_effects_and_courses_are_asked_for_all_visits(call, folder, monkeypatch):
    monkeypatch.chdir(folder)
    graph = "L[t-1], A[t-1] -> L[t]; L[t] -> A[t]"
    ended = call([*FIT[:3], graph, *FIT[4:], "--out", "lines"])
    assert ended.exit_code == 0, ended.stderr
    own = MissCNF.load("lines")
    ended = call(
        ["effect", "lines", "--on", "L", "--do", "A=L[t] > 0", "--versus", "A=0", "--json"]
    )
    assert ended.exit_code == 0, ended.stderr
    effect = own.effect("L", {"A": "L[t] > 0"}, {"A": 0})
    assert json.loads(ended.stdout)["estimate"] == pytest.approx(effect.estimate)
    words = [
        "counterfactual",
        "lines",
        "long.csv",
        "--do",
        "A=1",
        "--draws",
        "2",
        "--out",
        "c.csv",
    ]
    assert call(words).exit_code == 0
    found = pd.read_csv("c.csv")
    courses = own.counterfactual(pd.read_csv("long.csv"), {"A": 1}, draws=2)
    assert found[".draw"].tolist() == (courses.index.get_level_values(0) + 1).tolist()
    assert found["L"].to_numpy() == pytest.approx(courses["L"].to_numpy())
    words = ["sensitivity", "lines", "--data", "long.csv", "--on", "L", "--do", "A=1"]
    ended = call([*words, "--versus", "A=0", "--shift", "0,1", "--interval", "0"])
    assert "do(A = 1) versus do(A = 0)" in ended.stdout
    ended = call(["effect", "lines", "--on", "L", "--do", "nope=1"])
    assert ended.exit_code == 2
    assert "no column 'nope'" in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (FIT[:6] + FIT[8:], "needs both id= and time="),
        (FIT[:4] + FIT[8:], "id='id' and time='week'"),
        ([*FIT, "--latent", "u"], "latent names 'u', which is no node"),
        ([*FIT[:5], "A", *FIT[6:]], "and is a node of the graph"),
    ],
)
def test_what_cannot_be_fitted_is_said(call, folder, monkeypatch, words, said):
    monkeypatch.chdir(folder)
    ended = call([*words, "--out", "other"])
    assert ended.exit_code == 2
    assert said in ended.stderr
    assert not (folder / "other").exists()
