"""Blocks of nodes without arrows among them: however they are written, and what they refuse."""

import pickle

import pytest

from misscnf.errors import InputError
from misscnf.graph import CausalGraph

EDGES = [("a", "t"), ("b", "t"), ("a", "y"), ("b", "y"), ("t", "y")]

WAYS = {
    "braces": lambda: CausalGraph.read("{a, b} -> t; {a, b}, t -> y"),
    "braces, by spaces": lambda: CausalGraph.read("{a b} -> t\n{b a}, t -> y"),
    "a part of the braces is a group": lambda: CausalGraph.read("{a, b} -> t; {a} , b, t -> y"),
    "a name": lambda: CausalGraph.read("w = {a, b}; w -> t; w, t -> y"),
    "a name, said last": lambda: CausalGraph.read("w -> t; w, t -> y; w = {a, b}"),
    "tiers": lambda: CausalGraph.read("a, b < t < y"),
    "tiers of lists": lambda: CausalGraph.from_tiers([["a", "b"], ["t"], "y"]),
    "argument": lambda: CausalGraph.read("w -> t; w, t -> y", {"w": ["a", "b"]}),
    "argument, of a dictionary": lambda: CausalGraph.read(
        {"t": ["w"], "y": ["w", "t"]}, {"w": ["a", "b"]}
    ),
    "argument, of drawn members": lambda: CausalGraph.read(EDGES, {"w": ["a", "b"]}),
    "DOT": lambda: CausalGraph.read("digraph { subgraph cluster_w {a b} -> t; {a b t} -> y }"),
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_writing_a_block_gives_the_same_graph(way):
    graph = WAYS[way]()
    assert (graph.nodes, graph.edges) == (("a", "b", "t", "y"), EDGES)
    assert list(graph.blocks.values()) == [("a", "b")]
    assert next(iter(graph.blocks)) in ("w", "{a, b}")
    assert [graph.block_of(name) is None for name in graph.nodes] == [False, False, True, True]


def test_what_is_no_block_stays_what_it_was():
    for text in ("a, b -> t", "digraph { {a b} -> t }", "dag { {a b} -> t }", "{a} -> t; b -> t"):
        graph = CausalGraph.read(text)
        assert (graph.edges, graph.blocks) == (EDGES[:2], {})
    boxed = CausalGraph.read("digraph { subgraph cluster_w { a -> b } }")  # a box around a claim
    assert (boxed.edges, boxed.blocks) == ([("a", "b")], {})


def test_what_points_to_a_member_points_to_all():
    graph = CausalGraph.read("u -> a; {a, b} -> y")
    assert graph.parents_of("b") == ("u",)
    tiers = CausalGraph.read("age, sex < bmi, bp < treat")
    assert tiers.parents_of("bp") == ("age", "sex")
    assert list(tiers.blocks.values()) == [("age", "sex"), ("bmi", "bp")]


def test_arrows_inside_are_a_way_of_writing_the_law():
    graph = CausalGraph.read("{a, b, c} -> y")
    first = graph.arranged([("c", "a"), ("a", "b")])
    assert first.nodes == ("c", "a", "b", "y")
    assert first.blocks == graph.blocks
    assert first.edges_inside == [("c", "a"), ("a", "b")]
    assert first.arranged([("b", "c")]).edges_inside == [("b", "c")]  # those and no others
    assert repr(first) == repr(graph) == "CausalGraph(4 nodes: {a, b, c} → y)"
    assert CausalGraph.read(first) is first  # and may be fitted anew
    assert CausalGraph.from_edges(first.edges, first.nodes, first.blocks) == first
    assert pickle.loads(pickle.dumps(first)) == first
    assert hash(pickle.loads(pickle.dumps(first))) == hash(first)


@pytest.mark.parametrize(
    ("text", "blocks", "says"),
    [
        ("{a, b} -> t; a -> b", None, "the arrow a → b is inside the block '{a, b}'"),
        ("{a, b} -> t -> b", None, "points to a member of a block points to all"),
        ("{a, b} -> t; {b, c} -> y", None, "'b' is in the blocks '{a, b}' and '{b, c}'"),
        ("w -> t", {"w": []}, "the block 'w' has no members"),
        ("w -> t", {"w": ["w", "a"]}, "the name of a block and of a member"),
        ("w -> t", {"w": ["a"], "v": ["a"]}, "'a' is in the blocks 'w' and 'v'"),
        ("w -> t", ["a", "b"], "blocks are {name: [members]}"),
        ("w = a, b; w -> t", None, "unexpected"),
        ("a < b -> c", None, "unexpected '->'"),
    ],
)
def test_what_a_block_refuses(text, blocks, says):
    with pytest.raises(InputError) as error:
        CausalGraph.read(text, blocks)
    assert says in str(error.value)


def test_a_block_where_a_column_is_asked_for_is_called_one():
    graph = CausalGraph.read("w -> t; w, t -> y", {"w": ["a", "b"]})
    with pytest.raises(InputError, match="'w' is a block and not a column; its members are a, b"):
        graph.refuse_intervention("w")
