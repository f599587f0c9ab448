"""Indicators of loss in a graph: how they are written, and what a graph with them knows."""

import networkx as nx
import pytest

from misscnf import CausalGraph, InputError

WRITTEN = {
    "text": "dose -> y; y -> missing(y); dose -> missing(y)",
    "dot": 'digraph { dose -> y; y -> "missing(y)"; dose -> "missing(y)" }',
    "dot without quotes": "digraph { dose -> y; {y dose} -> missing(y) }",
    "dagitty": 'dag { dose -> y ; y -> "missing(y)" <- dose }',
    "lavaan": "y ~ dose\nmissing(y) ~ y + dose",
    "json": '{"y": ["dose"], "missing(y)": ["y", "dose"]}',
    "csv": "cause,effect\ndose,y\ny,missing(y)\ndose,missing(y)\n",
    "dictionary": {"y": ["dose"], "missing(y)": ["y", "dose"]},
    "pairs": [("dose", "y"), ("y", "missing(y)"), ("dose", "missing(y)")],
    "networkx": nx.DiGraph([("dose", "y"), ("y", "missing(y)"), ("dose", "missing(y)")]),
    "gml": "\n".join(
        nx.generate_gml(nx.DiGraph([("dose", "y"), ("y", "missing(y)"), ("dose", "missing(y)")]))
    ),
}


@pytest.mark.parametrize("source", WRITTEN.values(), ids=WRITTEN)
def test_every_format_has_indicators(source):
    graph = CausalGraph.read(source)
    assert graph.nodes == ("dose", "y", "missing(y)")
    assert graph.parents_of("missing(y)") == ("dose", "y")
    assert graph.indicators == {2: 1}
    assert graph.without_indicators() == CausalGraph.read("dose -> y")


def test_the_keyword_says_the_same():
    graph = CausalGraph.read("dose -> y")
    assert graph.with_loss({"y": ["y", "dose"]}) == CausalGraph.read(WRITTEN["text"])
    assert graph.with_loss("self", holes=["y"]) == CausalGraph.read(WRITTEN["text"])
    assert graph.with_loss(None) is graph


# Which laws are another among the rows that show their family, by hand from d-separation.
SELECTED = {
    "lost by itself": ("x -> y -> missing(y)", {"y"}),
    "lost by its parent": ("x -> y; x -> missing(y)", set()),
    "lost by its child": ("x -> y -> missing(x)", {"x", "y"}),
    "a lost parent": ("x -> missing(x); x -> y", {"x"}),
    "by an indicator": ("x -> y; x -> missing(x) -> missing(y)", {"x"}),
    "nothing said": ("x -> y", set()),
}


@pytest.mark.parametrize(("text", "selected"), SELECTED.values(), ids=SELECTED)
def test_selected_families(text, selected):
    graph = CausalGraph.read(text)
    assert {graph.nodes[i] for i in graph.selected} == selected


@pytest.mark.parametrize(
    ("source", "loss", "said"),
    [
        ("x -> y; y -> missing(z)", None, "no column of the graph"),
        ("x -> y -> missing(y) -> x", None, "only be a cause of other indicators"),
        ("x -> y", {"z": ["y"]}, "names 'z'"),
        ("x -> y", {"y": ["w"]}, "names 'w'"),
        ("x -> y", ["y"], "loss is 'self'"),
        ("x -> y", {"y": 3}, "loss has 3 for 'y'"),
        ("x -> y; x <-> y", {"hidden(x, y)": ["x"]}, "is a hidden cause"),
        ("x -> y", {"y": ["missing(x)"], "x": ["missing(y)"]}, "cycle"),
    ],
)
def test_bad_indicators_are_refused(source, loss, said):
    with pytest.raises(InputError, match=said):
        CausalGraph.read(source).with_loss(loss)
