"""Hidden causes in graphs: declared, drawn, and carried along."""

import networkx as nx
import pytest

from misscnf import InputError
from misscnf.graph import CausalGraph

CONFOUNDED = [("u", "x"), ("u", "y"), ("x", "y")]
U = CausalGraph.from_edges(CONFOUNDED, latent=["u"])


def marked(**about):
    graph = nx.DiGraph(CONFOUNDED)
    graph.nodes["u"].update(about)
    return graph


WAYS = {
    "declared": CausalGraph.read("u -> x; u -> y; x -> y", latent=["u"]),
    "dagitty": CausalGraph.read('dag { u [latent, pos="0,1"]; u -> {x y}; x -> y }'),
    "DOT": CausalGraph.read('digraph { u [observed="no"]; u -> x; u -> y; x -> y }'),
    "DOT, true": CausalGraph.read("digraph { u [latent=true]; u -> x; u -> y; x -> y }"),
    "GML": CausalGraph.read("\n".join(nx.generate_gml(marked(latent=1)))),
    "networkx": CausalGraph.read(marked(observed="no")),
    "added": CausalGraph.read(CausalGraph.read(CONFOUNDED), latent={"u": None}),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_of_declaring_a_hidden_cause(way):
    assert WAYS[way] == U
    assert WAYS[way].latent == {"u": None}


@pytest.mark.parametrize(
    "text",
    [
        "x -> y; x <-> y",
        "x -> y; y ↔ x",
        "x -> y\ny ~~ x",
        "dag { x -> y; x <-> y }",
        "y ~ x; x ~~ y",
    ],
)
def test_a_two_headed_arrow_is_a_hidden_root_named_after_its_ends(text):
    graph = CausalGraph.read(text)
    assert graph.latent == {"hidden(x, y)": None}
    assert set(graph.edges) == {("hidden(x, y)", "x"), ("hidden(x, y)", "y"), ("x", "y")}
    assert CausalGraph.read(graph.to_dict(), latent=graph.latent) == graph


def test_a_measurement_model_of_lavaan():
    graph = CausalGraph.read(
        """
        f =~ x1 + 1*x2 + x3     # a factor
        g =~ y1 + y2
        g ~ f + age
        x1 ~~ y1                # and a residual covariance
        f ~~ f
        """
    )
    assert graph.latent == {"f": None, "g": None, "hidden(x1, y1)": None}
    assert graph.parents_of("x1") == ("f", "hidden(x1, y1)")
    assert graph.parents_of("g") == ("f", "age")


def test_classes():
    assert CausalGraph.read("c -> x; c -> y", latent={"c": 3}).latent == {"c": 3}
    assert CausalGraph.read("dag { c [latent=3]; c -> x }").latent == {"c": 3}


def test_what_changes_a_graph_keeps_its_hidden_causes():
    graph = CausalGraph.read("{a, b} -> y; u -> y; u -> a", latent=["u"])
    assert graph.with_loss({"y": ["y", "u"]}).latent == {"u": None}
    assert graph.with_loss({"y": ["y"]}).without_indicators() == graph
    assert graph.with_auxiliary(["c"], ["c"]).without_auxiliary() == graph
    assert graph.arranged([("a", "b")]).latent == {"u": None}


def test_a_hidden_cause_of_losses_alone_goes_with_them():
    graph = CausalGraph.read("x -> y; u -> missing(y); u -> missing(x)", latent=["u"])
    assert graph.without_indicators() == CausalGraph.read("x -> y")


@pytest.mark.parametrize(
    ("text", "latent", "said"),
    [
        ("x -> y", ["u"], "latent names 'u', which is no node of the graph"),
        ("x -> y", ["y"], "the latent node 'y' has no children"),
        ("x -> y", "x", "latent is a list of names"),
        ("x -> y", {"x": 1}, "'x' has 1 classes"),
        ("x -> y", {"x": True}, "'x' has True classes"),
        ("{x, z} -> y", ["x"], "'x' is given as latent, and is a member of a block"),
    ],
)
def test_bad_hidden_causes_are_refused(text, latent, said):
    with pytest.raises(InputError, match=said):
        CausalGraph.read(text, latent=latent)
