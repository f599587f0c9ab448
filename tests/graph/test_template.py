"""Graphs over time: reading templates and unrolling them over visits."""

import re

import networkx as nx
import pytest

from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.graph.dag import read_parts
from misscnf.graph.template import Template

TEXT = "L[t-1] -> L[t]; L[t] -> A[t]; A[t] -> L[t+1]; sex -> A[t]; time -> L[t]"


def read(source, clock="time"):
    parts = read_parts(source)
    return Template.read(parts.nodes, parts.edges, clock)


def as_sets(template):
    return {name: set(template.of(name)) for name in (*template.baseline, *template.varying)}


def test_every_way_of_writing_gives_the_same_template():
    edges = [
        ("L[t-1]", "L[t]"),
        ("L[t]", "A[t]"),
        ("A[t]", "L[t+1]"),
        ("sex", "A[t]"),
        ("time", "L[t]"),
    ]
    dot = "digraph {L[t-1] -> L[t] -> A[t] -> L[t+1]; sex -> A[t]; time -> L[t]}"
    quoted = 'digraph {"L[t-1]" -> "L[t]" -> "A[t]" -> "L[t+1]"; sex -> "A[t]"; time -> "L[t]"}'
    parents = {"L[t]": ["L[t-1]", "A[t-1]", "time"], "A[t]": ["L[t]", "sex"]}
    for source in (edges, dot, quoted, parents, nx.DiGraph(edges)):
        assert as_sets(read(source)) == as_sets(read(TEXT)), source


def test_unrolled_over_three_visits():
    unrolled = read(TEXT).unroll([0, 1, 2])
    graph = CausalGraph.from_edges(unrolled.edges, unrolled.nodes)
    assert graph.nodes == unrolled.nodes  # which keeps the parents of tied nodes in one order
    assert graph.parents_of("L[0]") == ()  # the only one of its law, which tells no time
    assert graph.parents_of("L[2]") == ("L[1]", "A[1]", "time[2]")
    assert graph.parents_of("A[0]") == ("sex", "L[0]")
    keys = unrolled.keys
    assert keys["L[1]"] == keys["L[2]"] != keys["L[0]"]
    assert keys["A[0]"] == keys["A[1]"] == keys["A[2]"]


def test_a_visit_is_called_by_its_time_and_a_lag_is_a_visit():
    unrolled = read("L[t-2] -> Y[t]").unroll([0, 0.5, 4])
    assert ("L[0]", "Y[4]") in unrolled.edges
    assert unrolled.nodes[2:4] == ("L[0.5]", "Y[0.5]")
    assert unrolled.keys["Y[0]"] == unrolled.keys["Y[0.5]"] != unrolled.keys["Y[4]"]


def test_what_no_row_shows_is_left_out():
    unrolled = read("L[t] -> Y[t]").unroll([0, 1], left_out=["Y[0]"])
    assert unrolled.nodes == ("L[0]", "L[1]", "Y[1]")


def test_the_clock_may_have_the_name_of_its_column():
    assert as_sets(read("week -> L[t]", "week")) == as_sets(read("time -> L[t]"))


HISTORIES = "mean(L)[t-1] -> A[t]; ever(A)[t-1] -> L[t]; since(A[t-1]) -> L[t]"


def test_histories_are_read_in_every_way_of_writing():
    edges = [("mean(L)[t-1]", "A[t]"), ("ever(A)[t-1]", "L[t]"), ("since(A)[t-1]", "L[t]")]
    dot = "digraph {mean(L)[t-1] -> A[t]; ever(A)[t-1] -> L[t]; since(A)[t-1] -> L[t]}"
    quoted = re.sub(r"(\w+\(\w\)\S+|\w\[t\])", r'"\1"', dot)
    for source in (edges, dot, quoted, nx.DiGraph(edges)):
        assert as_sets(read(source)) == as_sets(read(HISTORIES)), source


def test_a_history_goes_over_all_visits_up_to_then():
    unrolled = read(HISTORIES).unroll([0, 1, 2, 3])
    graph = CausalGraph.from_edges(unrolled.edges, unrolled.nodes)
    assert graph.parents_of("A[3]") == ("L[0]", "L[1]", "L[2]")
    assert [read.function for read in unrolled.reads["L[3]"]] == ["ever", "since"]
    assert unrolled.reads["A[2]"][0].nodes == ("L[0]", "L[1]")
    keys = unrolled.keys
    assert keys["A[1]"] == keys["A[3]"] != keys["A[0]"]


def test_a_history_of_one_visit_beside_its_value_is_left_out():
    unrolled = read("L[t-1], mean(L)[t-1] -> A[t]").unroll([0, 1])
    assert ("L[0]", "A[1]") in unrolled.edges
    assert "A[1]" not in unrolled.reads


@pytest.mark.parametrize("text", [TEXT, HISTORIES])
def test_a_template_survives_json(text):
    template = read(text)
    assert Template.from_dict(template.to_dict()) == template


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("L[t] -> A[t]; A[t] -> L[t]", "the cycle L → A → L"),
        ("a -> b; b -> a; a -> L[t]", "the cycle a → b → a"),
        ("L[s] -> A[t]", r"the index \[s\]"),
        ("L[t*2] -> A[t]", r"the index \[t\*2\]"),
        ("L[0] -> A[t]", r"the index \[0\]"),
        ("L[t-3] -> A[t]", "has 3 visits"),
        ("L[t+1] -> A[t]", "back to 'A' 1 visit earlier"),
        ("median(L)[t-1] -> A[t]", "functions of a history are mean, ever, count, since and last"),
        ("L[t] -> y", "leaves open at which visit"),
        ("L[t] -> L[t]", r"a cause of L\[t\] itself"),
        ("L -> A[t]; L[t] -> A[t]", "with an index and without"),
        ("a -> b", "no column that is measured at every visit"),
        ("mean(L) -> A[t]", "leaves open up to which visit"),
        ("L[t-1] -> ever(A)[t]", "no other cause"),
        ("mean(L)[t] -> L[t]", r"mean\(L\)\[t\] is given as a cause of L\[t\] itself"),
        ("mean(time)[t-1] -> L[t]", "asks for its history"),
        ("L[t] -> missing(L)", "leaves open of which visit"),
        ("L[t] -> missing(A)[t]", "does not have at every visit"),
        ("missing(L)[t-1] -> L[t]", "makes a loss the cause of a value"),
        ("L[t] -> time", "which nothing changes"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(text, words):
    with pytest.raises(InputError, match=words) as refusal:
        read(text).unroll([0, 1, 2])
    assert str(refusal.value).endswith(".")


def test_a_template_is_no_graph_without_visits():
    with pytest.raises(InputError, match="id='id' and time='week'"):
        CausalGraph.read(TEXT)


def test_attributes_of_dot_stay_attributes():
    graph = CausalGraph.read("dag { a [exposure]; u[latent]; u -> a; a -> b; u -> b }")
    assert list(graph.latent) == ["u"]
