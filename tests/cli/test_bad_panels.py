"""Bad tables and graphs over time: exit code 2, one sentence, nothing written; Python too."""

import pandas as pd
import pytest
from typer.testing import CliRunner

from misscnf import check
from misscnf.cli.app import app
from misscnf.errors import InputError

GRAPH = "L[t-1] -> L[t]; L[t] -> A[t]; A[t] -> Y[t]"


def good():
    rows = [
        (person, week, 0.1 * person - week, (person + week) % 2, int(person % 3 == week))
        for person in range(12)
        for week in range(person % 3 + 1)
    ]
    return pd.DataFrame(rows, columns=["id", "week", "L", "A", "Y"])


def after(**cells):
    """One more row of person 0, whose event was at week 0."""
    row = {"id": 0, "week": 1, "L": None, "A": None, "Y": None, **cells}
    return pd.concat([good(), pd.DataFrame([row])], ignore_index=True)


BAD = {
    "two rows of one visit": (
        GRAPH,
        pd.concat([good(), good().iloc[[4]]]),
        "has two rows at week",
    ),
    "a value after an event": (GRAPH, after(L=0.5), "it is followed by L = 0.5"),
    "an event that comes back": (GRAPH, after(Y=1), "it comes back"),
    "a cycle": (f"{GRAPH}; A[t] -> L[t]", good(), "the cycle L → A → L"),
    "a cycle through a history": (f"{GRAPH}; mean(A)[t] -> L[t]", good(), "the cycle L → A → L"),
    "a lag beyond the follow-up": (f"{GRAPH}; L[t-3] -> A[t]", good(), "has 3 visits"),
    "an unknown index": (f"{GRAPH}; L[s] -> A[t]", good(), r"has the index [s]"),
    "an arrow back in time": (f"{GRAPH}; L[t+1] -> A[t]", good(), "causes come first"),
    "an arrow out of an event": (f"{GRAPH}; Y[t-1] -> L[t]", good(), "from the event 'Y'"),
    "the history of a level": (
        f"{GRAPH}; mean(S)[t-1] -> A[t]",
        good().assign(S=list("abc" * 8)),
        "mean is for numbers",
    ),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kinds.json").write_text('{"Y": "event", "A": "binary"}')
    return tmp_path


@pytest.mark.parametrize("case", BAD)
def test_it_is_refused_in_one_sentence(case, here):
    graph, table, words = BAD[case]
    table.to_csv("long.csv", index=False)
    about = ["--graph", graph, "--id", "id", "--time", "week", "--kinds", "kinds.json"]
    for verb in (["check", "long.csv", *about], ["fit", "long.csv", *about, "--out", "model"]):
        result = CliRunner().invoke(app, verb)
        assert result.exit_code == 2, result.output
        said = result.stderr.strip()
        assert words in said
        assert said.endswith(".")
        assert "\n" not in said
        assert not (here / "model").exists()
    with pytest.raises(InputError) as refusal:
        check(table, graph, id="id", time="week", kinds={"Y": "event", "A": "binary"})
    assert words in str(refusal.value)


def test_the_table_without_these_is_taken(here):
    good().to_csv("long.csv", index=False)
    about = ["--graph", GRAPH, "--id", "id", "--time", "week", "--kinds", "kinds.json"]
    result = CliRunner().invoke(app, ["check", "long.csv", *about])
    assert result.exit_code in (0, 1), result.output
    assert "12 people, 3 visits" in result.output
