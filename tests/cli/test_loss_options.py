"""Losses on the command line: --loss and the text of a graph say the same."""

import json

import numpy as np
import pandas as pd
import pytest

from misscnf import MissCNF


@pytest.fixture
def table(here):
    rng = np.random.default_rng(0)
    dose = rng.normal(size=300)
    y = dose + rng.normal(size=300)
    frame = pd.DataFrame({"dose": dose, "y": y})
    frame["y"] = frame["y"].mask(rng.random(300) < 1 / (1 + np.exp(-2 * y)))
    frame.to_csv("lost.csv", index=False)


def test_a_loss_is_checked_fitted_and_asked(call, table):
    ways = {
        "text": ["--graph", "dose -> y -> missing(y)"],
        "option": ["--graph", "dose -> y", "--loss", "y: y"],
    }
    answers = []
    for name, graph in ways.items():
        told = call(["check", "lost.csv", *graph]).stdout
        assert "dose is a shadow variable" in told
        assert (
            call(["fit", "lost.csv", *graph, "--preset", "linear", "--out", name]).exit_code == 0
        )
        asked = ["--on", "y", "--do", "dose=1", "--versus", "dose=0", "--json"]
        answers.append(json.loads(call(["effect", name, *asked]).stdout)["estimate"])
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("loss", "said"),
    [
        ("y", "--loss 'y': expected"),
        ("y: z", "names 'z'"),
        ("w: y", "names 'w'"),
        ("dose: y", "no cell of that column"),
        ("y: missing(y)", "a cause of itself"),
        ("y: missing(dose)", "no cell of that column"),
    ],
)
def test_bad_losses_are_refused_in_a_sentence(call, table, loss, said):
    ended = call(["fit", "lost.csv", "--graph", "dose -> y", "--loss", loss, "--out", "m"])
    assert ended.exit_code == 2
    assert said in ended.stderr


def test_a_hidden_cause_is_not_lost(call, table):
    graph = ["--graph", "dose -> y; u -> y", "--latent", "u", "--loss", "u: y"]
    for verb in (["check", "lost.csv"], ["fit", "lost.csv", "--out", "m"]):
        ended = call([*verb, *graph])
        assert ended.exit_code == 2
        assert "'u', which is a hidden cause" in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_every_column_by_itself_and_its_parents(call, table):
    fit = ["fit", "lost.csv", "--graph", "dose -> y", "--loss", "self", "--preset", "linear"]
    fitted = call([*fit, "--out", "m", "--json"])
    assert {line["driver"] for line in json.loads(fitted.stdout)["loss"]} == {"dose", "y"}
    assert "the odds that y is lost are" in fitted.stderr
    model = MissCNF.load("m")
    assert model.graph_.parents_of("missing(y)") == ("dose", "y")
    assert set(model.loss_["driver"]) == {"dose", "y"}
    told = call(["check", "lost.csv", "--graph", "dose -> y", "--loss", "self"]).stdout
    assert "the shape of the laws alone identifies it" in " ".join(told.split())


def test_auxiliary_columns_are_checked_fitted_and_told(call, table):
    rows = pd.read_csv("lost.csv")
    rows.assign(a=rows["dose"] + 1.0, b=np.arange(300.0)).to_csv("more.csv", index=False)
    common = ["more.csv", "--graph", "dose -> y", "--json"]
    told = json.loads(call(["check", *common, "--auxiliary", "a, b"]).stdout)
    assert told["auxiliary"] == ["a", "b"]
    fit = ["fit", *common, "--preset", "linear", "--out", "m", "--auxiliary"]
    assert json.loads(call([*fit, "b"]).stdout)["auxiliary"] == ["b"]
    asked = ["effect", "m", "--on", "b", "--do", "dose=1", "--versus", "dose=0"]
    for words, said in (
        ([*fit, "dose"], "--auxiliary: 'dose' is given as auxiliary, and is in the graph already"),
        ([*fit, "c"], "the table has no auxiliary column 'c'"),
        (asked, "'b' is an auxiliary column"),
    ):
        ended = call(words)
        assert ended.exit_code == 2
        assert said in ended.stderr


def test_rows_are_drawn_and_scored_with_their_holes_or_without(call, table):
    fit = ["fit", "lost.csv", "--graph", "dose -> y -> missing(y)", "--preset", "linear"]
    assert call([*fit, "--out", "m"]).exit_code == 0
    found = {}
    for words in (["sample", "m", "--rows", "50"], ["log-prob", "m", "lost.csv"]):
        for more in ([], ["--holes" if words[0] == "sample" else "--values-only"]):
            assert call([*words, *more, "--out", "out.csv"]).exit_code == 0
            found[words[0], bool(more)] = pd.read_csv("out.csv")
    assert not found["sample", False].isna().any().any()
    assert found["sample", True]["y"].isna().any()
    whole, alone = (found["log-prob", asked]["log_prob"] for asked in (False, True))
    assert (whole < alone).all()  # what was lost has a probability below one
