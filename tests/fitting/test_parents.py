"""Arrows inside a block: the most complete column first, and only what is needed."""

import numpy as np
import pandas as pd
import pytest

from misscnf.data.table import IncompleteTable
from misscnf.fitting.select.parents import arrange_blocks
from misscnf.fitting.settings import Selection
from misscnf.graph import CausalGraph


def arranged(df, graph, **settings):
    table = IncompleteTable.read(df, graph.nodes)
    rows = (table.values, table.observed, table.schema.domains)
    return arrange_blocks(graph, *rows, Selection(**settings))


@pytest.fixture
def chain():
    """a → b → c and a number of its own, with most holes in a and some in d."""
    rng, n = np.random.default_rng(0), 3000
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    df = pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=n), "d": rng.normal(size=n)})
    df["y"] = df.sum(axis=1) + rng.normal(size=n)
    df.loc[rng.random(n) < 0.3, "a"] = np.nan
    df.loc[rng.random(n) < 0.1, "d"] = np.nan
    return df


def test_the_most_complete_column_comes_first_and_only_neighbours_stay(chain):
    # Schwarz's criterion keeps a needless arrow with a chance of about P(χ²₁ > log 3000) = 0.5 %
    # each; five could be kept.
    graph = arranged(chain, CausalGraph.read("{a, b, c, d} -> y"))
    assert graph.nodes == ("b", "c", "d", "a", "y")
    assert graph.edges_inside == [("b", "c"), ("b", "a")]
    assert graph.parents_of("y") == ("b", "c", "d", "a")


def test_no_penalty_keeps_every_arrow(chain):
    graph = arranged(chain, CausalGraph.read("{a, b, c, d} -> y"), arrow_penalty=0.0)
    assert len(graph.edges_inside) == 6


def test_a_dependence_of_even_shape_is_seen():
    rng = np.random.default_rng(1)
    a = rng.normal(size=1000)
    df = pd.DataFrame({"a": a, "b": a**2 + 0.3 * rng.normal(size=1000)})
    assert arranged(df, CausalGraph.read("g = {a, b}")).edges_inside == [("a", "b")]


def test_kinds_are_mixed():
    rng, n = np.random.default_rng(2), 2000
    level = rng.choice(["red", "green", "blue"], n)
    count = rng.poisson(np.where(level == "red", 9.0, 2.0))
    flag = rng.random(n) < 1 / (1 + np.exp(2.0 - 0.5 * count))
    df = pd.DataFrame({"level": level, "count": count, "flag": flag, "noise": rng.normal(size=n)})
    graph = arranged(df, CausalGraph.read("g = {level, count, flag, noise}"))
    assert graph.parents_of("count") == ("level",)
    assert "count" in graph.parents_of("flag")
    assert graph.parents_of("noise") == ()


def test_causes_outside_stay_and_are_given():
    rng, n = np.random.default_rng(3), 2000
    u = rng.normal(size=n)
    df = pd.DataFrame({"u": u, "a": u + rng.normal(size=n), "b": u + rng.normal(size=n)})
    graph = arranged(df, CausalGraph.read("u -> {a, b}"))
    assert graph.edges == [("u", "a"), ("u", "b")]  # a and b depend on one another by u alone


def test_a_graph_without_blocks_is_handed_back():
    graph = CausalGraph.read("a -> b")
    df = pd.DataFrame({"a": [0.1, 0.7, 0.3], "b": [1.5, 0.2, 0.9]})
    assert arranged(df, graph) is graph
