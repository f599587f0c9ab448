"""A drawing means a graph, and what is written of it reads back as the same."""

import pytest

from misscnf import CausalGraph, InputError
from misscnf.studio.drawing import Drawing, column_of, read_graph, write_graph

NAMES = ["age", "body mass", "t", "y", "u", "alone"]
EDGES = [["w", "t"], ["w", "y"], ["t", "y"], ["u", "t"], ["u", "y"]]


def drawn(*, blocks=True, latent=True):
    names = NAMES if latent else [name for name in NAMES if name != "u"]
    edges = EDGES if latent else EDGES[:3]
    if not blocks:
        pairs = [["age" if end == "w" else end for end in edge] for edge in edges]
        edges = pairs
    return Drawing.read(
        {
            "nodes": [{"name": name, "latent": name == "u", "x": 1, "y": 2.5} for name in names],
            "edges": edges,
            "blocks": {"w": ["age", "body mass"]} if blocks else {},
        }
    )


@pytest.mark.parametrize(
    ("form", "given"),
    [
        ("dot", drawn()),
        ("text", drawn()),
        ("dagitty", drawn(blocks=False)),
        ("json", drawn(blocks=False, latent=False)),
    ],
)
def test_what_is_written_reads_back(form, given):
    graph, again = given.graph(), CausalGraph.read(write_graph(given, form))
    assert sorted(again.edges) == sorted(graph.edges)
    assert sorted(again.nodes) == sorted(graph.nodes)
    assert (again.blocks, again.latent) == (graph.blocks, graph.latent)


@pytest.mark.parametrize(("form", "word"), [("dagitty", "blocks"), ("json", "hidden")])
def test_what_a_form_cannot_say_is_refused(form, word):
    with pytest.raises(InputError, match=word):
        write_graph(drawn(), form)


def test_a_text_is_drawn_with_an_arrow_a_block():
    parts = read_graph("{age, sex} -> t; {age, sex} -> y; t -> y; u [latent]; u -> y")
    assert parts["edges"] == [["{age, sex}", "t"], ["{age, sex}", "y"], ["t", "y"], ["u", "y"]]
    given = Drawing.read({**parts, "nodes": [{**node, "x": 0, "y": 0} for node in parts["nodes"]]})
    assert given.latent == {"u": None}
    assert len(given.arrows) == 6


@pytest.mark.parametrize(
    "text", ['{"b": ["a"]}', "cause,effect\na,b", "b ~ a", "dag { a -> b }", "a < b"]
)
def test_a_text_of_any_form_is_drawn(text):
    assert read_graph(text)["edges"] == [["a", "b"]]


@pytest.mark.parametrize(
    "text",
    [
        "L[t-1] -> A[t]; L[t] -> A[t]; mean(L)[t-1] -> A[t]; sex -> A[t]",
        'dag { "L[t-1]" -> "A[t]"; "L[t]" -> "A[t]"; "mean(L)[t-1]" -> "A[t]"; sex -> "A[t]" }',
    ],
)
def test_a_graph_over_time_keeps_its_indices(text):
    parts = read_graph(text)
    assert [cause for cause, _ in parts["edges"]] == ["L[t-1]", "L[t]", "mean(L)[t-1]", "sex"]
    nodes = [{**node, "x": 0, "y": 0} for node in parts["nodes"]]
    effect = ["L[t]", "A[t]"]
    given = Drawing.read(parts | {"nodes": nodes, "panel": ["id", "week"], "effect": effect})
    assert given.asked == ("L", "A")
    assert read_graph(write_graph(given, "text"))["edges"] == parts["edges"]
    assert CausalGraph.read("a[0] -> b").nodes == ("a[0]", "b")  # an index of one visit is a name


@pytest.mark.parametrize(
    ("name", "column"),
    [("L[t-1]", "L"), ("mean(L)[t]", "L"), ("missing(L)[ t - 1 ]", "L"), ("L[2]", "L[2]")],
)
def test_a_node_over_time_has_a_column(name, column):
    assert column_of(name) == column


def test_a_drawing_is_what_json_has_of_it():
    given = drawn()
    assert Drawing.read(given.to_dict()) == given


@pytest.mark.parametrize(
    "node",
    [
        {"name": ""},
        {"name": 3},
        {"name": "a", "x": float("nan")},
        {"name": "a", "y": True},
        {"name": "a", "classes": -1},
        {"name": "a", "colour": 1},
        "a",
    ],
)
def test_a_node_that_is_none_is_refused(node):
    with pytest.raises(InputError):
        Drawing.read({"nodes": [node]})
