r"""The latent projection: what a graph with hidden causes says of the columns that are there.

Hidden nodes are left out, and leave two kinds of traces (Verma and Pearl 1990): a → b where a
directed path leads from a to b through hidden nodes alone, and a ↔ b where a hidden node leads to
both in that way. Nodes tied by ↔ form districts (c-components). With the nodes in order, each
depends on those before it through its *pillow* alone,

    p(x) = Π_i p(x_i | x_pillow(i)),   pillow(i) = district of i among 1 … i and its parents, but i

(Tian and Pearl 2002), so that the graph with these arrows claims no independence that hidden
causes break. Its arrows are a way of writing a law, no causes.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import networkx as nx

from misscnf.graph import CausalGraph

__all__ = ["MixedGraph", "project", "shown_graph"]

Names = frozenset[str]


@dataclass(frozen=True)
class MixedGraph:
    """Columns with arrows, and with ties where they have a hidden cause in common."""

    nodes: tuple[str, ...]
    """In topological order."""
    arrows: frozenset[tuple[str, str]]
    ties: frozenset[Names]

    def ordered(self, names: Iterable[str]) -> list[str]:
        """Returns names in the order of the nodes."""
        return sorted(names, key=self.nodes.index)

    def parents(self, names: Collection[str]) -> Names:
        """Returns the direct causes of any of the names."""
        return frozenset(cause for cause, effect in self.arrows if effect in names)

    def ancestors(self, names: Iterable[str], within: Collection[str]) -> Names:
        """Returns names with all their causes in the graph of some nodes."""
        found, new = set(names), set(names)
        while new:
            new = set(self.parents(new) & set(within)) - found
            found |= new
        return frozenset(found)

    def district(self, name: str, within: Collection[str]) -> Names:
        """Returns what ties connect a node with, in the graph of some nodes."""
        found, new = {name}, {name}
        while new:
            near = {other for tie in self.ties if tie & new for other in tie}
            new = (near & set(within)) - found
            found |= new
        return frozenset(found)

    def districts(self, within: Collection[str]) -> list[Names]:
        """Returns the districts of the graph of some nodes, in order."""
        found = dict.fromkeys(self.district(name, within) for name in self.ordered(within))
        return list(found)

    def pillow(self, name: str) -> Names:
        """Returns what the law of a node given all before it depends on."""
        before = self.nodes[: self.nodes.index(name) + 1]
        district = self.district(name, before)
        return (district | self.parents(district)) - {name}

    def blanket(self, name: str) -> Names:
        """Returns what the law of a node given all others depends on: its Markov blanket.

        A path on which all between is a collider leads to each of these, through children or ties.
        """
        children = {effect for cause, effect in self.arrows if cause == name}
        met = frozenset[str]().union(
            *(self.district(one, self.nodes) for one in {name, *children})
        )
        return (met | self.parents(met)) - {name}

    def separated(self, one: str, others: Names, given: Names, *, cut_into: Names) -> bool:
        """Says whether nodes are d-separated where arrows into some, and out of `one`, are cut."""
        dag = nx.DiGraph()
        dag.add_nodes_from(self.nodes)
        dag.add_edges_from(a for a in self.arrows if a[1] not in cut_into and a[0] != one)
        for number, tie in enumerate(sorted(map(sorted, self.ties))):
            if cut_into.isdisjoint(tie):
                dag.add_edges_from((number, name) for name in tie)
        return bool(nx.is_d_separator(dag, {one}, set(others), set(given)))


def project(graph: CausalGraph, *, losses: bool = False) -> MixedGraph:
    """Returns the latent projection of a graph, with indicators of loss only if asked for.

    Members of a block are as if each caused all later ones, which any law of them allows.
    """
    dag = (graph if losses else graph.without_indicators()).to_networkx()
    order = [name for name in graph.nodes if name in dag]
    for members in graph.blocks.values():
        inside = [name for name in order if name in members]
        dag.add_edges_from(itertools.combinations(inside, 2))
    shown = tuple(name for name in order if name not in graph.latent)
    reached = {name: _reached(dag, name, graph.latent) for name in order}
    arrows = {(name, other) for name in shown for other in reached[name]}
    hidden = [name for name in order if name in graph.latent]
    ties = {
        frozenset(pair) for name in hidden for pair in itertools.combinations(reached[name], 2)
    }
    return MixedGraph(shown, frozenset(arrows), frozenset(ties))


def _reached(dag: nx.DiGraph, name: str, latent: Collection[str]) -> list[str]:
    """Returns the columns that directed paths through hidden nodes alone lead to."""
    found: dict[str, None] = {}
    waiting = [name]
    while waiting:
        for child in dag.successors(waiting.pop()):
            if child in latent:
                waiting.append(child)
            else:
                found[child] = None
    return list(found)


def shown_graph(graph: CausalGraph) -> CausalGraph:
    """Returns the graph of the columns in which each has its pillow as parents; see above."""
    if not graph.latent:
        return graph
    mixed = project(graph)
    edges = [(cause, name) for name in mixed.nodes for cause in mixed.ordered(mixed.pillow(name))]
    blocks = [set(members) for members in graph.blocks.values()]
    outside = [edge for edge in edges if not any(members >= set(edge) for members in blocks)]
    return CausalGraph.from_edges(outside, mixed.nodes, graph.blocks, graph.auxiliary)
