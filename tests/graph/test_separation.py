"""Separation by the walk is that of networkx, and takes up each node at most twice."""

import networkx as nx
import numpy as np

from misscnf.graph import CausalGraph
from misscnf.graph.separation import d_separated


def test_it_is_networkx_s_on_random_graphs():
    rng, answers = np.random.default_rng(0), []
    for _ in range(40):
        size = int(rng.integers(4, 12))
        arrows = np.tril(rng.random((size, size)) < rng.uniform(0.1, 0.5), -1)
        parents = [np.flatnonzero(row).tolist() for row in arrows]
        graph = nx.DiGraph([(j, i) for i, of in enumerate(parents) for j in of])
        graph.add_nodes_from(range(size))
        for _ in range(30):
            part = rng.integers(0, 4, size)
            one, other, given = (np.flatnonzero(part == k).tolist() for k in range(3))
            if one and other:
                answers.append(d_separated(parents, one, other, given))
                oracle = nx.is_d_separator(graph, set(one), set(other), set(given))
                assert answers[-1] == oracle
    assert 100 < sum(answers) < len(answers) - 100


def test_a_collider_opens_by_its_descendants_only():
    parents = [[], [], [0, 1], [2]]  # 0 -> 2 <- 1, 2 -> 3
    assert d_separated(parents, [0], [1], [])
    assert not d_separated(parents, [0], [1], [3])
    assert not d_separated(parents, [0], [3], [1])
    assert d_separated(parents, [0], [3], [2])


def test_a_loss_that_follows_another_loss_and_its_column():
    arrows = [("x", "missing(z)"), ("x", "missing(x)"), ("missing(x)", "missing(z)")]
    graph = CausalGraph.from_edges(arrows, ["x", "z"])
    assert {graph.nodes[i] for i in graph.selected} == {"x"}
