"""A causal graph is read the same from every format, and refused by a sentence otherwise."""

import dataclasses
import pickle
import random

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from misscnf.errors import InputError
from misscnf.graph import CausalGraph

EDGES = [("age", "dose"), ("age", "recovery"), ("dose", "recovery")]
NAMES = ["age", "dose", "recovery"]
ADJACENCY = pd.DataFrame([[0, 1, 2], [0, 0, -0.5], [0, 0, 0]], index=NAMES, columns=NAMES)

DOT = """
/* who causes
   whom */
strict digraph "a trial" {
    rankdir=LR; node [shape=box, color="#ff0000"]  // looks
    graph [label="x -> y"];
    age -> {dose recovery} [label="both; of -> them"];
    "age" [label=<<b>[old]</b>>];
    # and the effect of interest
    subgraph cluster_0 { label = "treated"; dose -> recovery }
}
"""
DAGITTY = """dag trial {
bb="-2,-2,2,2"
dose [exposure,pos="-1.0,0.3"]
recovery [outcome,pos="1.0,0.3"]
age -> dose -> recovery <- age
}
"""
GML = """Creator "a test"
graph [
  directed 1
  node [ id 0 label "age" ]
  node [ id 1 label "dose" ]
  node [ id 2 label "recovery" ]
  edge [ source 0 target 1 ]
  edge [ source 0 target 2 ]
  edge [ source 1 target 2 ]
]
"""
LAVAAN = """
# regressions
dose ~ a1*age + 1      ! with an intercept
recovery ~ start(0.5)*dose +
    age
dose ~~ dose; recovery ~ 1
"""
JSON = '{"dose": ["age"], "recovery": ["dose", "age"]}'
CSV = "cause,effect\nage,dose\nage,recovery\ndose,recovery\n"

FORMATS = {
    "CausalGraph": lambda: CausalGraph.from_edges(EDGES),
    "pairs": lambda: list(EDGES),
    "pairs from a generator": lambda: (list(edge) for edge in EDGES),
    "set of pairs": lambda: set(EDGES),
    "array of pairs": lambda: np.array(EDGES),
    "table of pairs": lambda: pd.DataFrame(EDGES).itertuples(index=False),
    "repeated pairs": lambda: EDGES + EDGES[:1],
    "dictionary": lambda: {"recovery": {"dose", "age"}, "dose": ("age",)},
    "DiGraph": lambda: nx.DiGraph(EDGES),
    "MultiDiGraph": lambda: nx.MultiDiGraph(EDGES + EDGES),
    "adjacency": lambda: ADJACENCY,
    "adjacency of booleans": lambda: ADJACENCY != 0,
    "adjacency read by label": lambda: ADJACENCY.loc[NAMES[::-1]],
    "DOT": lambda: DOT,
    "dagitty": lambda: DAGITTY,
    "dagitty with groups": lambda: "dag{ {age dose} -> recovery age -> dose }",
    "GML": lambda: GML,
    "lavaan": lambda: LAVAAN,
    "JSON": lambda: JSON,
    "CSV": lambda: CSV,
    "plain": lambda: "age -> dose; age -> recovery; dose -> recovery",
    "plain, one per line": lambda: "age -> dose\r\nrecovery <- age # c\r\ndose -> recovery",
    "plain, by commas": lambda: "age -> dose, age -> recovery,\ndose -> recovery,",
    "plain, chained": lambda: 'age → dose → recovery ← "age"',
    "plain, listed": lambda: "age, dose -> recovery\nage -> dose",
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_graph(name):
    assert CausalGraph.read(FORMATS[name]()) == CausalGraph(tuple(NAMES), ((), (0,), (0, 1)))


@pytest.mark.parametrize("as_path", [lambda path: path, str], ids=["Path", "str"])
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("g.dot", DOT),
        ("g.gv", DOT),
        ("g.gml", GML),
        ("g.lav", LAVAAN),
        ("g.json", JSON),
        ("g.csv", CSV),
        ("g.csv", 'weight,effect,cause\n1,dose,age\n2,recovery,age\n3,"recovery", "dose"\n'),
        ("g.txt", DAGITTY),
        ("g.txt", "age -> dose\nage -> recovery\ndose -> recovery"),
        ("no suffix", "\ufeff" + LAVAAN),
        ("misnamed.csv", DOT),
    ],
)
def test_files_are_read_by_content_with_the_suffix_as_a_hint(tmp_path, file, text, as_path):
    path = tmp_path / file
    path.write_text(text, encoding="utf-8")
    assert CausalGraph.read(as_path(path)) == CausalGraph.from_edges(EDGES)


@pytest.mark.parametrize(
    ("source", "nodes", "edges"),
    [
        ("a; b -> c", ("a", "b", "c"), [("b", "c")]),
        ("a, b", ("a", "b"), []),
        ("x-ray -> y.1; Größe_2", ("x-ray", "y.1", "Größe_2"), [("x-ray", "y.1")]),
        ("`blood pressure` -> `a;~b`", ("blood pressure", "a;~b"), [("blood pressure", "a;~b")]),
        ('"blood pressure" -> "a;~b"', ("blood pressure", "a;~b"), [("blood pressure", "a;~b")]),
        (r'digraph { "say \"a\"" -> b; lone }', ('say "a"', "b", "lone"), [('say "a"', "b")]),
        ('digraph { "node" [shape=box] }', ("node",), []),
        ("digraph { a -> {b -> c} }", ("a", "b", "c"), [("a", "b"), ("a", "c"), ("b", "c")]),
        ("dag -> {b c}", ("dag", "b", "c"), [("dag", "b"), ("dag", "c")]),
        ("y1 + y2 ~ x; z ~~ z", ("x", "y1", "y2", "z"), [("x", "y1"), ("x", "y2")]),
        ({"a": [], "b": ["a"], "c": []}, ("a", "b", "c"), [("a", "b")]),
        ('cause,effect\n"my a", b\n', ("my a", "b"), [("my a", "b")]),
    ],
)
def test_lone_nodes_and_unusual_names_are_read(source, nodes, edges):
    graph = CausalGraph.read(source)
    assert graph.nodes == nodes
    assert graph.edges == edges


def _undirected_gml():
    return GML.replace("directed 1", "directed 0")


REFUSED = {
    # the graph itself
    "cycle": ("a -> b; b -> c; c -> a; x -> a; c -> y", "cycle a → b → c → a,"),
    "two-cycle": ([("x", "a"), ("a", "b"), ("b", "a")], "cycle a → b → a,"),
    "self loop": ([("a", "b"), ("b", "b")], "'b' is given as a cause of itself (b → b)"),
    "no node": ([], "the graph is empty"),
    "no node in a text": ("digraph { }", "the graph is empty"),
    "blank text": (" \n", "the graph is empty"),
    "empty name": ('"" -> a', "empty name ''"),
    "blank name": ([("a", " ")], "empty name ' '"),
    "empty name in CSV": ("cause,effect\na,\n", "empty name ''"),
    "integer names": (nx.DiGraph([(1, 2)]), "1 is of type int"),
    "integer names, advice": ([(0, 1)], "rename it, for example as '0'"),
    "missing name": ({"b": [None]}, "None is of type NoneType"),
    # Python objects
    "unknown object": (7, "of type int"),
    "bytes": (b"a -> b", "of type bytes"),
    "undirected networkx": (nx.Graph([("a", "b")]), "networkx Graph is undirected"),
    "triple": ([("a", "b", "c")], "('a', 'b', 'c') is not a pair"),
    "string for a pair": (["ab"], "'ab' is not a pair"),
    "set for a pair": ([{"a", "b"}], "is not a pair"),
    "string for parents": ({"b": "a"}, "parents of 'b' must be a list"),
    "number for parents": ({"b": 1}, "parents of 'b' must be a list"),
    "adjacency, other names": (ADJACENCY.rename(columns={"dose": "d"}), "'dose' is in one only"),
    "table of data": (pd.DataFrame({"a": [1.0], "b": [2.0]}), "0 is in one only"),
    "adjacency, twice a column": (ADJACENCY[["age", "dose", "dose"]], "'dose' appears twice"),
    "adjacency, twice a row": (ADJACENCY.loc[["age", "age", "dose"]], "in the index"),
    "adjacency, a hole": (ADJACENCY.replace(2, np.nan), "nan at ['age', 'recovery']"),
    "adjacency, a word": (ADJACENCY.astype(object).replace(2, "yes"), "'yes' at ['age', "),
    # arrows
    "no direction": ("a -> b\r\nb -- c", "'b -- c' on line 2"),
    "latent without children": ("dag { a -> b; b [latent] }", "'b' has no children"),
    "headless": ("a -- b", "'a -- b' on line 1"),
    "circle": ("dag { a @-> b }", "'a @-> b' on line 1"),
    "two words": ("a -> b\nblood pressure -> b", "line 2 of the graph cannot be read: 'blood pre"),
    "dangling arrow": ("a ->\nb -> c", "line 1 of the graph cannot be read: 'a ->'"),
    "ambiguous comma": ("a, b -> c, d -> e", "write a line for each"),
    "ambiguous comma, over lines": ("x -> a\na,\nb -> c, c -> d", "line 2"),
    "hash in a name": ("a#1 -> b", "unexpected '#'"),
    "open quote": ('"a -> b', "unexpected '\"'"),
    "long line": ("a -> b " * 40, "…' (unexpected 'a')"),
    # DOT and dagitty
    "undirected DOT": ("graph { a -- b }", "begins with 'graph'"),
    "undirected edge in DOT": ("digraph { a -- b }", "does not say which is the cause"),
    "DOT edge with two heads": ("digraph { a -> b [dir=both] }", "'a b' has 'dir=both'"),
    "DOT default for edges": ('digraph { edge [dir="none"]; a -> b }', "has 'dir=none'"),
    "DOT unobserved": ('digraph { U -> x [observed="no"] }', "the edge of 'U x' is marked"),
    "DOT port": ("digraph {\na:n -> b }", "line 2 of the graph cannot be read: 'a:n -> b }'"),
    "DOT comma": ("digraph { a, b -> c }", "unexpected ','"),
    "DOT unclosed": ("digraph { a -> b", "it ends too early"),
    "DOT attribute unclosed": ("digraph { a [label=x }", "it ends too early"),
    "DOT text after the end": ("digraph { a -> b }\nb -> c", "line 2"),
    "line number after a comment": ("digraph { /* \n\n */ a -> ; }", "line 3"),
    "pdag": ("pdag { a -- b }", "begins with 'pdag'"),
    "mag": ("mag { a -> b }", "begins with 'mag'"),
    "pag": ("pag { a @-> b }", "begins with 'pag'"),
    "dagitty latent": ('dag { a -> b; u [latent,pos="0,1"] }', "'u' has no children"),
    "one class": ("dag { u [latent=1]; u -> b }", "'u' has 1 classes"),
    # lavaan
    "lavaan composite": ("y ~ x\nf <~ x1 + x2", "line 2 of the graph cannot be read: 'f <~ x1"),
    "lavaan parameter": ("y ~ a*x\nab := a*b", "'ab := a*b' (it defines a parameter"),
    "lavaan constraint": ("y ~ a*x; a == 1", "'a == 1' (it constrains"),
    "lavaan fixed": ("y ~ 2*x + z", "'2' fixes what is estimated"),
    "lavaan fixed loadings": ("f =~ 1*x + 1*y + z", "'1' fixes what is estimated"),
    "lavaan equal": ("f =~ a*x + a*y + z", "'a' again holds two terms equal"),
    "lavaan equal later": ("f =~ x + a*y\ng =~ z + a*w", "line 2 of the graph cannot be read"),
    "lavaan zero": ("y ~ 0*x", "fixed at zero is no edge"),
    "lavaan interaction": ("y ~ x:z", "'x:z' is not a variable"),
    "lavaan no causes": ("y ~", "'' is not a variable"),
    "lavaan no effect": ("1 ~ x", "no variable on its left side"),
    "lavaan nonsense": ("y ~ x\n\nand more", "line 3 of the graph cannot be read: 'and more'"),
    # the others
    "GML undirected": (_undirected_gml(), "write 'directed 1'"),
    "GML broken": (GML[:-3], "the GML text cannot be read: expected ']'"),
    "GML twice a name": (GML.replace('"dose"', '"age"'), "'age' is duplicated"),
    "JSON broken": ('{"a": [],\n "b": ["a"', 'line 2 of the graph cannot be read: \'"b":'),
    "JSON string for parents": ('{"b": "a"}', "parents of 'b' must be a list"),
    "JSON twice a name": ('{"b": ["a"], "b": ["c"]}', "'b' appears twice"),
    "JSON number": ('{"b": [1]}', "1 is of type int"),
    "CSV short line": ("cause,effect\na,b\nc\n", "line 3 of the graph cannot be read: 'c'"),
    "no such file": ("graphs/model.dot", "file not found: 'graphs/model.dot'"),
}


def test_a_name_with_a_space_is_told_to_stand_in_quotes():
    with pytest.raises(InputError, match='stands in quotes, such as "blood pressure"'):
        CausalGraph.read("smoke now -> visits")
    assert CausalGraph.read('"smoke now" -> visits').nodes == ("smoke now", "visits")


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_by_one_sentence_that_names_the_culprit(name):
    source, fragment = REFUSED[name]
    with pytest.raises(InputError) as caught:
        CausalGraph.read(source)
    message = str(caught.value)
    assert fragment in message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("file", "content", "fragment"),
    [
        ("absent.txt", None, "file not found"),
        ("edges.csv", b"source,target\na,b\n", "columns cause and effect"),
        ("arrows.dot", b"a -> b", "as a -> b, go into a .txt file"),
        ("list.json", b'[["a", "b"]]', "an object"),
        ("latin.txt", "Größe -> b".encode("latin-1"), "cannot be read"),
        ("lines.txt", b"a -> b\nb -- c", "lines.txt: 'b -- c' on line 2"),
    ],
)
def test_a_bad_file_is_refused_by_its_name(tmp_path, file, content, fragment):
    path = tmp_path / file
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=file) as caught:
        CausalGraph.read(path)
    assert fragment in str(caught.value)


def test_a_folder_is_not_a_graph_file(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        CausalGraph.read(tmp_path)


def test_nodes_listed_twice_or_as_a_string_are_refused():
    with pytest.raises(InputError, match="'b' appears twice among the nodes"):
        CausalGraph.from_edges([("a", "b")], nodes=["b", "a", "b"])
    with pytest.raises(InputError, match="not the string 'ab'"):
        CausalGraph.from_edges([], nodes="ab")


def test_the_users_object_is_not_changed():
    digraph = nx.DiGraph(EDGES, title="trial")
    digraph.nodes["age"]["unit"] = "years"
    before = digraph.copy()
    parents, parents_before = {"b": ["a"]}, {"b": ["a"]}
    table = ADJACENCY.copy()
    CausalGraph.read(parents)
    CausalGraph.read(table)
    CausalGraph.read(digraph).to_networkx().add_edge("recovery", "new")
    assert nx.utils.graphs_equal(digraph, before)
    assert parents == parents_before
    pd.testing.assert_frame_equal(table, ADJACENCY)


def test_a_graph_cannot_be_changed():
    graph = CausalGraph.from_edges(EDGES)
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.nodes = ()
    graph.edges.clear()
    graph.to_dict().clear()
    assert graph == CausalGraph.from_edges(EDGES)


def test_order_is_topological_and_keeps_the_given_order_where_it_can():
    edges = [("z", "a"), ("m", "a"), ("a", "c")]
    assert CausalGraph.from_edges(edges).nodes == ("z", "m", "a", "c")
    assert CausalGraph.from_edges(edges, nodes=["m", "q", "z"]).nodes == ("m", "q", "z", "a", "c")
    # "c" must wait for "a"; "b" comes as soon as it may.
    assert CausalGraph.from_edges(edges, nodes=["c", "b", "a"]).nodes == ("b", "z", "m", "a", "c")


def test_order_does_not_depend_on_the_order_of_the_edges():
    names = [f"n{i}" for i in range(30)]
    edges = [(a, b) for i, a in enumerate(names) for b in names[i + 2 : i + 4]]
    shuffled = random.Random(0).sample(edges, len(edges))
    assert CausalGraph.from_edges(shuffled, names) == CausalGraph.from_edges(edges, names)
    assert CausalGraph.from_edges(shuffled, names).nodes == tuple(names)


def test_a_set_gives_the_same_order_in_every_run():
    names = sorted(f"n{i}" for i in range(30))
    assert CausalGraph.from_edges([], set(names)).nodes == tuple(names)
    assert CausalGraph.read({"child": set(names)}).nodes == (*names, "child")
    assert CausalGraph.read({(name, "child") for name in names}).nodes == (*names, "child")


def test_equality_and_hash_go_by_nodes_and_edges():
    graph = CausalGraph.from_edges(EDGES)
    graph.children  # noqa: B018 - what is computed on demand must not enter the comparison
    same = pickle.loads(pickle.dumps(CausalGraph.from_edges(EDGES[::-1])))
    assert {graph: "found"}[same] == "found"
    assert graph != CausalGraph.from_edges(EDGES[:2])
    assert graph != CausalGraph.from_edges(EDGES, nodes=[*NAMES, "alone"])


@pytest.fixture
def house():
    """Two roots, a collider, a fork and a lone node."""
    return CausalGraph.read("a -> c; b -> c; c -> d; c -> e; lone")


def test_neighbours(house):
    assert house.nodes == ("a", "b", "c", "d", "e", "lone")
    assert house.parents == ((), (), (0, 1), (2,), (2,), ())
    assert house.children == ((2,), (2,), (3, 4), (), (), ())
    assert house.roots == (0, 1, 5)
    assert house.families == ((0,), (1,), (2, 0, 1), (3, 2), (4, 2), (5,))
    assert house.parents_of("c") == ("a", "b")
    assert house.edges == [("a", "c"), ("b", "c"), ("c", "d"), ("c", "e")]
    assert len(house) == 6


def test_closures_agree_with_networkx():
    rng = random.Random(1)
    names = [f"n{i}" for i in range(25)]
    edges = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :] if rng.random() < 0.08]
    graph = CausalGraph.from_edges(rng.sample(edges, len(edges)), rng.sample(names, len(names)))
    drawn = graph.to_networkx()
    for i, name in enumerate(graph.nodes):
        above = {graph.index(other) for other in nx.ancestors(drawn, name)}
        below = {graph.index(other) for other in nx.descendants(drawn, name)}
        assert graph.ancestral_closure([i]) == above | {i}
        assert graph.descendants([i]) == below | {i}
        assert all(parent < i for parent in graph.parents[i])


def test_closures_of_sets(house):
    assert house.ancestral_closure([3, 5]) == {0, 1, 2, 3, 5}
    assert house.descendants(np.array([1, 3])) == {1, 2, 3, 4}
    assert house.ancestral_closure([]) == house.descendants([]) == frozenset()


@pytest.mark.parametrize("index", [-1, 6, "a"])
def test_closures_refuse_what_is_not_a_position(house, index):
    for closure in (house.ancestral_closure, house.descendants):
        with pytest.raises(InputError, match="not a position"):
            closure([0, index])


def test_an_unknown_node_is_named_with_its_likeness():
    graph = CausalGraph.from_edges(EDGES)
    assert [graph.index(name) for name in NAMES] == [0, 1, 2]
    with pytest.raises(InputError, match="no node 'recovry'; did you mean 'recovery'"):
        graph.parents_of("recovry")
    with pytest.raises(InputError, match="no node 'xyz'; its nodes are age, dose, recovery"):
        graph.index("xyz")
    with pytest.raises(InputError, match="no node 3"):
        graph.index(3)


def test_other_forms_lead_back_to_the_same_graph(house):
    assert house.to_dict() == {
        "a": [],
        "b": [],
        "c": ["a", "b"],
        "d": ["c"],
        "e": ["c"],
        "lone": [],
    }
    assert CausalGraph.read(house.to_dict()) == house
    assert CausalGraph.read(house.to_networkx()) == house
    assert CausalGraph.read(nx.to_pandas_adjacency(house.to_networkx())) == house
    assert CausalGraph.read("\n".join(nx.generate_gml(house.to_networkx()))) == house


def test_a_graph_shows_its_edges_and_lone_nodes(house):
    shown = "CausalGraph(6 nodes: a → c; b → c; c → d; c → e; lone)"
    assert repr(house) == str(house) == shown
    assert repr(CausalGraph.read("a")) == "CausalGraph(1 node: a)"
    long = CausalGraph.from_edges([(f"n{i}", f"n{i + 1}") for i in range(99)])
    assert repr(long).startswith("CausalGraph(100 nodes: n0 → n1; ")
    assert repr(long).endswith("n11 → n12; …)")
