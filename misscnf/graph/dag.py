"""The causal graph: who is a direct cause of whom.

A structural causal model writes each variable as a function of its direct causes and a noise of
its own, and the graph says which causes:

    x_i = f_i(x_pa(i), u_i),    nodes in an order where pa(i) comes before i

So a graph here is a directed graph without cycles whose nodes are named like the columns of the
table. It keeps its nodes in topological order, which turns every walk over ancestors or
descendants into one pass. Whatever the user holds (a networkx graph, pairs, a dictionary, an
adjacency table, a text, a file) is read by `CausalGraph.read` and checked in one place,
`CausalGraph.from_edges`. Nodes without a column are declared as `latent` (`graph.latents`).

Some nodes may form a block: together they have causes and effects, and among themselves no arrow
is claimed. Their joint law can be factorised in any order,

    p(x_block | x_pa) = Π_k p(x_k | x_pa, x_1, …, x_{k−1}),

so a fit completes the graph by arrows inside a block (`fitting.select.parents`). These are a way
of writing a law, not causes: interventions on members are refused.

Auxiliary columns stand below everything and have no place among causes: their law given all other
columns, p(a | x), tells what a row hides, and its arrows are completed by a fit in the same way.
"""

from __future__ import annotations

import difflib
import itertools
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Number
from typing import Any, TypeAlias

import networkx as nx
import numpy as np
import pandas as pd

from misscnf.errors import InputError, naming
from misscnf.graph import readers
from misscnf.graph.histories import Reading
from misscnf.graph.indicators import Loss, check_indicators, column_of, loss_edges
from misscnf.graph.latents import Latent, check_latent, read_latent
from misscnf.graph.separation import d_separated
from misscnf.graph.template import is_over_time
from misscnf.paths import expanded, read_small_text

__all__ = ["CausalGraph", "GraphLike", "read_parts"]

Edge: TypeAlias = tuple[str, str]


@dataclass(frozen=True, repr=False)
class CausalGraph:
    """A directed acyclic graph over named variables; it cannot be changed once made.

    Make one with `CausalGraph.read` or `CausalGraph.from_edges`, which check what they are given.
    Two graphs are equal when they have the same nodes, in the same order, and the same edges.

    Example:
        >>> CausalGraph.read("age -> dose; age -> recovery; dose -> recovery")
        CausalGraph(3 nodes: age → dose; age → recovery; dose → recovery)
    """

    nodes: tuple[str, ...]
    """Names in topological order; among the free choices, the order in which they were given."""
    parents: tuple[tuple[int, ...], ...]
    """For each node the positions of its direct causes, ascending, all smaller than its own."""
    blocks: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """Names of blocks with their members, two or more, among whom no arrow is claimed."""
    auxiliary: tuple[str, ...] = ()
    """Nodes that help to tell what is lost; arrows into them are no causes."""
    latent: dict[str, int | None] = field(default_factory=dict, hash=False)
    """Nodes that nobody measures, with their number of classes; None for a number."""
    readings: dict[int, Reading] = field(default_factory=dict, hash=False)
    """What mechanisms read of the parents of some nodes (`graph.histories`); others read them one
    by one."""

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Edge],
        nodes: Iterable[str] = (),
        blocks: Mapping[str, Iterable[str]] | None = None,
        auxiliary: Iterable[str] = (),
        latent: Latent | None = None,
    ) -> CausalGraph:
        """Makes a graph from (cause, effect) pairs; every other way of making one ends here.

        Args:
            edges: Pairs of names, cause first. A pair given twice counts once.
            nodes: Names in the order wanted where the edges leave a choice; also the way to
                name nodes without edges. Names that only the edges mention come after.
            blocks: Members of each block. Its name may stand in edges, for all of them. What
                points to a member points to all, and edges inside a block are how its law is
                written.
            auxiliary: Nodes without a place among causes, such as `with_auxiliary` adds.
            latent: Nodes that nobody measures; see `misscnf.graph.latents`.

        Raises:
            InputError: If a name is not a non-empty string, a node is listed twice, an edge is
                not a pair, the edges form a cycle, there is no node at all, a node is in two
                blocks, an auxiliary column is given as a cause, or a latent node has no effect.
        """
        members = _checked_blocks(blocks or {})
        listed = _checked_nodes(nodes)
        pairs = [_checked_edge(edge) for edge in _in_fixed_order(edges)]
        listed, pairs = _spell_out(listed, pairs, members)
        extra = tuple(_checked_nodes(auxiliary))
        names = list(dict.fromkeys([*listed, *itertools.chain.from_iterable(pairs), *extra]))
        if not names:
            raise InputError("the graph is empty; give at least one node.")
        check_indicators(dict.fromkeys(names), pairs)
        hidden = read_latent(latent)
        within = itertools.chain.from_iterable(members.values())
        check_latent(hidden, names, pairs, {*extra, *within})
        for cause, effect in pairs:
            if cause in extra and effect not in extra and column_of(effect) is None:
                raise InputError(
                    f"the arrow {cause} → {effect} makes a cause of the auxiliary column "
                    f"{cause!r}; leave it out of the auxiliary columns, or leave out the arrow."
                )
        number = {name: i for i, name in enumerate(names)}
        causes: list[set[int]] = [set() for _ in names]
        for cause, effect in pairs:
            causes[number[effect]].add(number[cause])
        try:
            order = topological_order(causes)
        except nx.NetworkXUnfeasible:
            cycle = " → ".join(names[i] for i in _find_cycle(causes))
            block = "what points to a member of a block points to all; " if members else ""
            raise InputError(
                f"the graph has the cycle {cycle}, and a causal graph has none; {block}remove or "
                "turn round one of these edges."
            ) from None
        position = {i: place for place, i in enumerate(order)}
        parents = tuple(tuple(sorted(position[p] for p in causes[i])) for i in order)
        nodes = tuple(names[i] for i in order)
        hidden = {name: hidden[name] for name in nodes if name in hidden}
        return cls(nodes, parents, _many(members), extra, hidden)

    @classmethod
    def from_tiers(cls, tiers: Iterable[str | Iterable[str]]) -> CausalGraph:
        """Makes a graph in which every node of a tier is a cause of all nodes of later tiers.

        Arguments:
            tiers: Names, the earliest first. Several names in a tier are a block.

        Example:
            >>> CausalGraph.from_tiers([["age", "sex"], "treat", "y"])
            CausalGraph(4 nodes: {age, sex} → treat; {age, sex} → y; treat → y)
        """
        levels = [[tier] if isinstance(tier, str) else list(tier) for tier in tiers]
        pairs = itertools.combinations(levels, 2)
        edges = [edge for early, late in pairs for edge in itertools.product(early, late)]
        blocks = {readers.brace(level): level for level in levels if len(level) > 1}
        return cls.from_edges(edges, itertools.chain.from_iterable(levels), blocks)

    @classmethod
    def read(
        cls,
        source: GraphLike,
        blocks: Mapping[str, Iterable[str]] | None = None,
        latent: Latent | None = None,
    ) -> CausalGraph:
        """Reads a graph from whatever holds one; the source is never changed.

        Args:
            source: One of

                - a `CausalGraph`, returned as it is;
                - a `networkx.DiGraph` or `MultiDiGraph` (parallel edges count once);
                - pairs ``(cause, effect)``;
                - a dictionary ``{child: [parents]}``;
                - a pandas adjacency table whose index and columns hold the same names, where a
                  nonzero entry at [row, column] means row → column, as in networkx;
                - a path to a file, or a string with the text itself: DOT, GML, dagitty, lavaan
                  regressions, JSON ``{child: [parents]}``, CSV with the columns cause and
                  effect, or plain arrows such as ``"a -> b; b -> c"``. See
                  `misscnf.graph.readers` for what is read of each.
            blocks: Names of blocks with their members; a name may stand for them in the source.
            latent: Names of nodes that nobody measures, beside those that the source has.

        Raises:
            InputError: If the source cannot be read as a directed acyclic graph, or has an arrow
                inside a block.
        """
        if isinstance(source, CausalGraph) and not blocks and not latent:
            return source
        nodes, edges, within, hidden = read_parts(source)
        pairs = [
            edge for edge in edges if isinstance(edge, tuple | list)
        ]  # others are refused later
        _refuse_over_time(itertools.chain(nodes, *pairs))
        auxiliary = source.auxiliary if isinstance(source, CausalGraph) else ()
        groups = {**within, **_checked_blocks(blocks or {})}
        hidden = {**hidden, **read_latent(latent)}
        graph = cls.from_edges(edges, nodes, groups, auxiliary, hidden)
        if not isinstance(source, CausalGraph):
            graph._refuse_arrows_inside()
        return graph

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        parts = [f"{cause} → {effect}" for cause, effect in self._edges_of_blocks()]
        in_edges = {name for part in parts for name in part.split(" → ")}
        in_edges.update(self.auxiliary)
        parts += [n for n in dict.fromkeys(map(self._shown, self.nodes)) if n not in in_edges]
        if len(parts) > 12:
            parts = [*parts[:12], "…"]
        parts += [f"auxiliary {', '.join(self.auxiliary)}"] if self.auxiliary else []
        parts += [f"latent {', '.join(self.latent)}"] if self.latent else []
        return f"CausalGraph({len(self)} node{'s' * (len(self) > 1)}: {'; '.join(parts)})"

    def index(self, name: str) -> int:
        """Returns the position of a node in `nodes`."""
        if name in self._positions:
            return self._positions[name]
        if name in self.blocks:
            raise InputError(
                f"{name!r} is a block and not a column; its members are "
                f"{', '.join(self.blocks[name])}."
            )
        close = difflib.get_close_matches(str(name), self.nodes)
        hint = f"did you mean {' or '.join(map(repr, close))}?"
        if not close:
            named = _by_stem(self.nodes)
            hint = f"its nodes are {', '.join(named[:12])}{', …' * (len(named) > 12)}."
        raise InputError(f"the graph has no node {name!r}; {hint}")

    def parents_of(self, name: str) -> tuple[str, ...]:
        """Returns the names of the direct causes of a node, in the order of `nodes`."""
        return tuple(self.nodes[p] for p in self.parents[self.index(name)])

    def block_of(self, name: str) -> str | None:
        """Returns the name of the block that a node is a member of, None if it is in none."""
        self.index(name)
        return self._block_of.get(name)

    def refuse_intervention(self, name: str) -> None:
        """Refuses an intervention on a member of a block, or on an auxiliary column."""
        self._refuse_auxiliary(name, "nothing says what setting it would do")
        block = self.block_of(name)
        if block is not None:
            raise InputError(
                f"{name!r} is a member of the block {block!r}, inside which no arrow is claimed, "
                f"so nothing says what setting it would do to the others; take it out of the "
                f"block, and draw its arrows."
            )

    def refuse_outcome(self, name: str) -> None:
        """Refuses the effect of an intervention on an auxiliary column."""
        self._refuse_auxiliary(name, "nothing says what an intervention does to it")

    def _refuse_auxiliary(self, name: str, unsaid: str) -> None:
        if name in self.auxiliary:
            raise InputError(
                f"{name!r} is an auxiliary column, without a place in the graph, so {unsaid}; "
                f"draw its arrows in the graph instead."
            )

    def in_blocks(self, names: Iterable[str]) -> list[str]:
        """Returns names with the name of a block for its members, where all of them are there."""
        given = list(names)
        whole = {name for name, members in self.blocks.items() if set(members) <= set(given)}
        shown = {name: self._shown(name) for name in given}
        return list(dict.fromkeys(s if s in whole else name for name, s in shown.items()))

    def arranged(self, inside: Iterable[Edge], order: Sequence[str] = ()) -> CausalGraph:
        """Returns the same graph with these arrows inside its blocks, and no others there.

        Arguments:
            inside: The arrows.
            order: The members of blocks in the order wanted; as they are by default.
        """
        kept = [edge for edge in self.edges if not self._is_inside(edge)]
        wanted = {block: iter([n for n in order if n in of]) for block, of in self.blocks.items()}
        nodes = [next(wanted.get(self._shown(name), iter(())), name) for name in self.nodes]
        beside = (self.blocks, self.auxiliary, self.latent)
        return CausalGraph.from_edges([*kept, *inside], nodes, *beside)

    def with_auxiliary(self, names: Iterable[str] | None, columns: Iterable[Any]) -> CausalGraph:
        """Returns the graph with auxiliary columns, which have no arrows before a fit.

        Arguments:
            names: The columns. The graph may have them as what drives a loss, `a -> missing(y)`,
                and in no other place.
            columns: Those of the table.
        """
        if names is not None and (isinstance(names, str) or not isinstance(names, Iterable)):
            raise InputError(f"auxiliary is a list of columns, such as ['a', 'b']; got {names!r}.")
        if not names:
            return self
        wanted, there = _checked_nodes(names), list(columns)
        for name in wanted:
            if name not in there:
                close = difflib.get_close_matches(name, [c for c in there if isinstance(c, str)])
                hint = f"did you mean {close[0]!r}?" if close else "name one that is there."
                raise InputError(f"the table has no auxiliary column {name!r}; {hint}")
            if name in self.nodes and name not in self.auxiliary and not self._only_drives(name):
                raise InputError(
                    f"{name!r} is given as auxiliary, and is in the graph already; leave it out "
                    f"of one of the two."
                )
        extra = list(dict.fromkeys([*self.auxiliary, *wanted]))
        return CausalGraph.from_edges(self.edges, self.nodes, self.blocks, extra, self.latent)

    def _only_drives(self, name: str) -> bool:
        """Says whether a node is there as what drives losses, and in no other place."""
        place = self.index(name)
        below = self.children[place]
        return bool(below) and not self.parents[place] and self.indicators.keys() >= set(below)

    def without_auxiliary(self) -> CausalGraph:
        """Returns the graph of the columns that have a place in it."""
        if not self.auxiliary:
            return self
        nodes = [name for name in self.nodes if name not in self.auxiliary]
        edges = [edge for edge in self.edges if set(edge).isdisjoint(self.auxiliary)]
        return CausalGraph.from_edges(edges, nodes, self.blocks, (), self.latent)

    def with_loss(self, loss: Loss | None, holes: Collection[str] = ()) -> CausalGraph:
        """Returns the graph with indicators of loss; see `misscnf.graph.indicators`.

        Arguments:
            loss: What drives the loss of which column, or "self".
            holes: The columns that have holes, for "self".
        """
        if loss is None:
            return self
        parents = {name: self.parents_of(name) for name in self.nodes}
        for name in self.latent if isinstance(loss, Mapping) else ():
            if name in loss:
                raise InputError(
                    f"loss names {name!r}, which is a hidden cause: it is lost in every row, and "
                    f"nothing drives that; leave it out."
                )
        edges = loss_edges(loss, self.nodes, parents, set(holes).difference(self.auxiliary))
        beside = (self.blocks, self.auxiliary, self.latent)
        return CausalGraph.from_edges([*self.edges, *edges], self.nodes, *beside)

    def with_readings(self, readings: Mapping[int, Reading]) -> CausalGraph:
        """Returns the same graph with what mechanisms read of parents."""
        return replace(self, readings=dict(readings))

    def without_parents(self, alone: Collection[int]) -> CausalGraph:
        """Returns the graph in which some nodes have no parents."""
        parents = tuple(() if i in alone else of for i, of in enumerate(self.parents))
        readings = {i: reading for i, reading in self.readings.items() if i not in alone}
        return replace(self, parents=parents, readings=readings)

    def read_by(self, node: int) -> tuple[str, ...]:
        """Returns what the mechanism of a node reads: its parents, or histories over them."""
        if node in self.readings:
            return tuple(feature.name for feature in self.readings[node].features)
        return tuple(self.nodes[p] for p in self.parents[node])

    def without_indicators(self) -> CausalGraph:
        """Returns the graph of the values alone."""
        if not self.indicators:
            return self
        edges = [edge for edge in self.edges if column_of(edge[1]) is None]
        causes = {cause for cause, _ in edges}
        latent = {name: of for name, of in self.latent.items() if name in causes}
        idle = self.latent.keys() - latent.keys()  # hidden causes of losses alone
        nodes = [name for name in self.nodes if column_of(name) is None and name not in idle]
        edges = [edge for edge in edges if edge[1] not in idle]
        return CausalGraph.from_edges(edges, nodes, self.blocks, self.auxiliary, latent)

    @cached_property
    def indicators(self) -> dict[int, int]:
        """For each indicator of loss the position of the column that it speaks of."""
        columns = {i: column_of(name) for i, name in enumerate(self.nodes)}
        return {i: self.index(column) for i, column in columns.items() if column is not None}

    @cached_property
    def latent_nodes(self) -> frozenset[int]:
        """Positions of the nodes that nobody measures."""
        return frozenset(map(self.index, self.latent))

    @cached_property
    def own_losses(self) -> dict[int, int]:
        """Indicators that their own column drives, each with that column's place among parents."""
        return {
            r: self.parents[r].index(column)
            for r, column in self.indicators.items()
            if column in self.parents[r]
        }

    @cached_property
    def selected(self) -> frozenset[int]:
        """Nodes whose law is another among the rows that show their family.

        These are the nodes on which, given their parents, the indicators of their family depend.
        Without indicators nothing is said of losses, and there are none.
        """
        found = set()
        for i, parents in enumerate(self.parents):
            of = {r for r, column in self.indicators.items() if column in (i, *parents)} - {i}
            if of and not d_separated(self.parents, [i], of - {*parents}, parents):
                found.add(i)
        return frozenset(found)

    @property
    def edges_inside(self) -> list[Edge]:
        """Arrows that are no causes: between members of a block, or into auxiliary columns."""
        return [edge for edge in self.edges if self._is_inside(edge)]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each node the positions of its direct effects, ascending."""
        effects: list[list[int]] = [[] for _ in self.nodes]
        for child, parent in ((i, p) for i, parents in enumerate(self.parents) for p in parents):
            effects[parent].append(child)
        return tuple(map(tuple, effects))

    @property
    def roots(self) -> tuple[int, ...]:
        """Positions of the nodes without parents."""
        return tuple(i for i, parents in enumerate(self.parents) if not parents)

    @property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """For each node its own position followed by those of its parents."""
        return tuple((i, *parents) for i, parents in enumerate(self.parents))

    @property
    def edges(self) -> list[Edge]:
        """All (cause, effect) pairs, by effect and then by cause in the order of `nodes`."""
        names = self.nodes
        return [(names[p], names[i]) for i, parents in enumerate(self.parents) for p in parents]

    def ancestral_closure(self, indices: Iterable[int]) -> frozenset[int]:
        """Returns the given nodes together with all their ancestors."""
        closure = self._checked_indices(indices)
        for i in reversed(range(len(self))):
            if i in closure:
                closure.update(self.parents[i])
        return frozenset(closure)

    def descendants(self, indices: Iterable[int]) -> frozenset[int]:
        """Returns the given nodes, themselves included, together with all their descendants."""
        reached = self._checked_indices(indices)
        for i, parents in enumerate(self.parents):
            if not reached.isdisjoint(parents):
                reached.add(i)
        return frozenset(reached)

    def to_networkx(self) -> nx.DiGraph:
        """Returns a new networkx graph with the same nodes, in order, and edges; no blocks."""
        graph = nx.DiGraph()
        graph.add_nodes_from(self.nodes)
        graph.add_edges_from(self.edges)
        return graph

    def to_dict(self) -> dict[str, list[str]]:
        """Returns ``{child: [parents]}`` for all nodes in order.

        `read` gives the graph back; its `blocks`, `auxiliary` and `latent` are said beside it.
        """
        return {name: list(self.parents_of(name)) for name in self.nodes}

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.nodes)}

    @cached_property
    def _block_of(self) -> dict[str, str]:
        return {name: block for block, members in self.blocks.items() for name in members}

    def _is_inside(self, edge: Edge) -> bool:
        block = self._block_of.get(edge[0])
        within = block is not None and block == self._block_of.get(edge[1])
        return within or edge[1] in self.auxiliary

    def _refuse_arrows_inside(self) -> None:
        for cause, effect in self.edges_inside:
            raise InputError(
                f"the arrow {cause} → {effect} is inside the block {self._block_of[cause]!r}, "
                f"where none is claimed; leave it out, or take {cause!r} out of the block."
            )

    def _shown(self, name: str) -> str:
        """Returns a node as sentences show it: its block, where it is in one."""
        return self._block_of.get(name, name)

    def _edges_of_blocks(self) -> list[Edge]:
        """Returns edges where a block is one node; a member's own edges where not all have it."""
        shown: dict[Edge, None] = {}
        for cause, effect in self.edges:
            if self._is_inside((cause, effect)):
                continue
            siblings = self.blocks.get(self._block_of.get(cause, ""), (cause,))
            whole = set(siblings) <= set(self.parents_of(effect))
            shown[self._shown(cause) if whole else cause, self._shown(effect)] = None
        return list(shown)

    def _checked_indices(self, indices: Iterable[int]) -> set[int]:
        given = list(indices)
        outside = [i for i in given if i not in range(len(self))]
        if outside:
            raise InputError(
                f"{outside[0]!r} is not a position in a graph of {len(self)} nodes; "
                "graph.index(name) gives the position of a node."
            )
        return {int(i) for i in given}


GraphLike: TypeAlias = (
    CausalGraph
    | nx.DiGraph
    | pd.DataFrame
    | Mapping[str, Iterable[str]]
    | Iterable[Edge]
    | os.PathLike[str]
    | str
)
"""Everything that `CausalGraph.read` accepts."""


def read_parts(source: GraphLike) -> readers.Parsed:
    """Returns nodes, edges, blocks and latent nodes of whatever holds a graph, as they come."""
    if isinstance(source, CausalGraph):
        blocks = {name: list(members) for name, members in source.blocks.items()}
        return readers.Parsed(list(source.nodes), source.edges, blocks, source.latent)
    if isinstance(source, str | os.PathLike):
        return _read_path_or_text(source)
    if isinstance(source, nx.Graph):
        hidden = dict.fromkeys(readers.marked_latent(source))
        return readers.Parsed(*_read_networkx(source), {}, hidden)
    if isinstance(source, pd.DataFrame):
        return readers.Parsed(*_read_adjacency(source))
    if isinstance(source, Mapping):
        return readers.Parsed(*_read_parent_lists(source))
    if isinstance(source, Iterable) and not isinstance(source, bytes):
        return readers.Parsed([], _in_fixed_order(source))
    raise InputError(
        f"a graph cannot be read from an object of type {type(source).__name__}; give "
        "pairs (cause, effect), a dictionary {child: [parents]}, a networkx DiGraph, an "
        "adjacency DataFrame, a text or a file."
    )


def _refuse_over_time(names: Iterable[object]) -> None:
    """Refuses a template where a graph is wanted."""
    for name in names:
        if is_over_time(name):
            raise InputError(
                f"{name!r} makes this a graph over time, which is unrolled over the visits of a "
                f"long table; say which columns hold the person and the visit, such as id='id' "
                f"and time='week'."
            )


def topological_order(parents: Sequence[Collection[int]]) -> list[int]:
    """Returns positions so that each comes after its parents, the earliest first where it may.

    Raises:
        networkx.NetworkXUnfeasible: If there is a cycle.
    """
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(parents)))
    graph.add_edges_from((j, i) for i, causes in enumerate(parents) for j in causes)
    return list(nx.lexicographical_topological_sort(graph))


def _find_cycle(parents: Sequence[Collection[int]]) -> list[int]:
    """Walks from effect to cause among nodes that wait for one another, until a node recurs."""
    waiting = set(range(len(parents)))
    while free := {i for i in waiting if waiting.isdisjoint(parents[i])}:
        waiting -= free
    walk = [min(waiting)]
    while walk[-1] not in walk[:-1]:
        walk.append(min(waiting.intersection(parents[walk[-1]])))
    return walk[walk.index(walk[-1]) :][::-1]


def _by_stem(nodes: Sequence[str]) -> list[str]:
    """Returns names for a sentence: where several are L[0], L[1], …, first and last for all."""
    stems: dict[str, list[str]] = {}
    for node in nodes:
        stem, bracket, _ = node.rpartition("[")
        stems.setdefault(stem if bracket and stem and node.endswith("]") else node, []).append(
            node
        )
    return [one[0] if len(one) == 1 else f"{one[0]} to {one[-1]}" for one in stems.values()]


def _in_fixed_order(items: Iterable[Any]) -> list[Any]:
    """Lists the items; a set has no order of its own, and hashing would vary it between runs."""
    return sorted(items, key=repr) if isinstance(items, set | frozenset) else list(items)


def _checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise InputError(
            f"the node name {name!r} is of type {type(name).__name__}, and names must be "
            f"strings like the table's columns; rename it, for example as {str(name)!r}."
        )
    if not name.strip():
        raise InputError(f"a node has the empty name {str(name)!r}; give it a name.")
    return str(name)


def _checked_nodes(nodes: Iterable[str]) -> list[str]:
    if isinstance(nodes, str | Mapping) or not isinstance(nodes, Iterable):
        shown = f"the string {nodes!r}" if isinstance(nodes, str) else type(nodes).__name__
        raise InputError(f"nodes must be a list of names, not {shown}.")
    names = [_checked_name(name) for name in _in_fixed_order(nodes)]
    _refuse_duplicates(names, "among the nodes")
    return names


def _checked_edge(edge: Any) -> Edge:  # noqa: ANN401 - anything may come in, that is the check
    odd = isinstance(edge, str | Mapping | set | frozenset) or not isinstance(edge, Iterable)
    pair = () if odd else tuple(edge)
    if len(pair) != 2:
        raise InputError(f"the edge {edge!r} is not a pair (cause, effect) of two names.")
    cause, effect = _checked_name(pair[0]), _checked_name(pair[1])
    if cause == effect:
        raise InputError(
            f"node {cause!r} is given as a cause of itself ({cause} → {cause}); remove this edge."
        )
    return cause, effect


def _checked_blocks(blocks: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Returns blocks whose members are names, each in one block only."""
    if not isinstance(blocks, Mapping):
        raise InputError(
            f"blocks are {{name: [members]}}, such as {{'confounders': ['age', 'sex']}}; got "
            f"{type(blocks).__name__}."
        )
    found: dict[str, tuple[str, ...]] = {}
    home: dict[str, str] = {}
    for name, given in blocks.items():
        members = tuple(_checked_nodes([given] if isinstance(given, str) else given))
        if not members:
            raise InputError(f"the block {name!r} has no members; name its columns.")
        for member in members:
            if member in home:
                raise InputError(
                    f"{member!r} is in the blocks {home[member]!r} and {name!r}; a column is in "
                    f"one block at most."
                )
            home[member] = name
        found[_checked_name(name)] = members
    clash = [name for name in found if name in home]
    if clash:
        raise InputError(
            f"{clash[0]!r} is the name of a block and of a member; call the block something else."
        )
    return found


def _many(blocks: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Leaves blocks of one member out: there is nothing inside to make no claim about."""
    return {name: members for name, members in blocks.items() if len(members) > 1}


def _spell_out(
    nodes: list[str], edges: list[Edge], blocks: Mapping[str, tuple[str, ...]]
) -> tuple[list[str], list[Edge]]:
    """Returns nodes and edges with members for blocks; what points to one points to all."""
    home = {member: members for members in blocks.values() for member in members}
    named = [member for name in nodes for member in blocks.get(name, (name,))]
    names = dict.fromkeys([*named, *(name for members in blocks.values() for name in members)])
    spelt: list[Edge] = []
    for cause, effect in edges:
        causes, effects = blocks.get(cause, (cause,)), blocks.get(effect, (effect,))
        if home.get(causes[0]) is None or home.get(causes[0]) is not home.get(effects[0]):
            effects = home.get(effects[0], effects)
        spelt += itertools.product(causes, effects)
    return list(names), spelt


def _refuse_duplicates(names: Sequence[object], where: str) -> None:
    again = [name for name, count in Counter(names).items() if count > 1]
    if again:
        raise InputError(f"the name {again[0]!r} appears twice {where}; names must be unique.")


def _read_path_or_text(source: str | os.PathLike[str]) -> readers.Parsed:
    if isinstance(source, str) and not readers.names_a_file(source):
        return readers.read_text(source)
    path = expanded(source)
    text = read_small_text(path, "the graph file", encoding="utf-8-sig")
    with naming(str(path)):
        return readers.read_text(text, path.suffix.lower())


def _read_networkx(graph: nx.Graph) -> tuple[list[Any], list[Edge]]:
    if not graph.is_directed():
        raise InputError(
            f"the networkx {type(graph).__name__} is undirected, so its edges do not say which "
            "end is the cause; give a DiGraph."
        )
    return list(graph.nodes), [(cause, effect) for cause, effect, *_ in graph.edges]


def _read_parent_lists(parents: Mapping[Any, Any]) -> tuple[list[Any], list[Edge]]:
    for child, causes in parents.items():
        if isinstance(causes, str | Mapping) or not isinstance(causes, Iterable):
            raise InputError(
                f"the parents of {child!r} must be a list of names, and {causes!r} is of type "
                f"{type(causes).__name__}; write {{child: [parents]}}."
            )
    edges = [(cause, child) for child in parents for cause in _in_fixed_order(parents[child])]
    return list(parents), edges


def _read_adjacency(table: pd.DataFrame) -> tuple[list[Any], list[Edge]]:
    """Reads by label, so rows and columns need not come in the same order."""
    rows, columns = list(table.index), list(table.columns)
    _refuse_duplicates(rows, "in the index of the adjacency table")
    _refuse_duplicates(columns, "in the columns of the adjacency table")
    if set(rows) != set(columns):
        only = next(name for name in [*rows, *columns] if (name in rows) != (name in columns))
        raise InputError(
            f"an adjacency table has the same names in its index and its columns, and {only!r} is "
            "in one only; for a table of pairs, give table.itertuples(index=False)."
        )
    cells = zip(
        itertools.product(rows, columns), table.to_numpy(dtype=object).ravel(), strict=True
    )
    return columns, [edge for edge, entry in cells if _is_edge(entry, *edge)]


def _is_edge(entry: Any, row: object, column: object) -> bool:  # noqa: ANN401 - a table's cell
    if not isinstance(entry, Number | np.bool_) or entry != entry:  # NaN differs from itself
        raise InputError(
            f"the adjacency table holds {entry!r} at [{row!r}, {column!r}]; write 1 for an edge "
            f"from {row!r} to {column!r} and 0 for none."
        )
    return bool(entry != 0)
