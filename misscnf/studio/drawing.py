r"""What is drawn on the page: nodes with their places, arrows, blocks, kinds and the asked effect.

    drawing = Drawing.read(given)      of JSON, refused in a sentence where it is none
    drawing.graph()                    the `CausalGraph` that it means
    write_graph(drawing, "dot")        as text: dot, dagitty, text or json

Over time (`panel`) the nodes are columns of a visit, such as `L[t]` and `L[t-1]`, and the graph is
unrolled by whoever has the table.

The page may be wrong, old or not ours at all, so each part is looked at before it is used. What is
written reads back as the same graph; a form that cannot say something is refused by its name.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from misscnf.errors import InputError

if TYPE_CHECKING:
    from misscnf import CausalGraph, GraphLike

__all__ = ["Drawing", "Node", "write_graph", "read_graph", "parts_of", "column_of"]


@dataclass(frozen=True)
class Node:
    """A node of the drawing, and where it stands."""

    name: str
    x: float
    y: float
    latent: bool = False
    classes: int | None = None
    """Of a latent class; None for a number."""


@dataclass(frozen=True)
class Drawing:
    """All that a person sets on the page before something is fitted."""

    nodes: tuple[Node, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    """Cause and effect; the name of a block stands for all of its members."""
    blocks: dict[str, tuple[str, ...]] = field(default_factory=dict)
    auxiliary: tuple[str, ...] = ()
    kinds: dict[str, Any] = field(default_factory=dict)
    effect: tuple[str, str] | None = None
    """(treatment, outcome), which the check is about."""
    panel: tuple[str, str] | None = None
    """The columns that say who and when, of a table with a row a person and visit."""
    preset: str = "auto"
    seed: int = 0
    guide: int | None = None
    """At which step of the guided example the page is."""

    @classmethod
    def read(cls, given: object) -> Drawing:
        """Reads what a page has sent.

        Raises:
            InputError: If it is no drawing.
        """
        parts = _mapping(given, "the drawing")
        unknown = parts.keys() - cls.__dataclass_fields__.keys()
        if unknown:
            raise InputError(f"a drawing has no part {sorted(unknown)[0]!r}; reload the page.")
        nodes = tuple(_node(one) for one in _list(parts.get("nodes", []), "nodes"))
        names = [node.name for node in nodes]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"the node {twice!r} is drawn twice; delete one of the two.")
        blocks = {
            _name(name): tuple(map(_name, _list(members, "the members of a block")))
            for name, members in _mapping(parts.get("blocks", {}), "blocks").items()
        }
        edges = tuple(_pair(one) for one in _list(parts.get("edges", []), "edges"))
        known = {*names, *blocks}
        for name in itertools.chain(*edges, *blocks.values()):
            if name not in known:
                raise InputError(f"an arrow or a block names {name!r}, which is not drawn.")
        effect, guide, panel = (parts.get(name) for name in ("effect", "guide", "panel"))
        return cls(
            nodes,
            edges,
            blocks,
            tuple(map(_name, _list(parts.get("auxiliary", []), "auxiliary"))),
            {_name(name): of for name, of in _mapping(parts.get("kinds", {}), "kinds").items()},
            None if effect is None else _pair(effect),
            None if panel is None else _pair(panel),
            _name(parts.get("preset", "auto")),
            _whole(parts.get("seed", 0), "seed"),
            None if guide is None else _whole(guide, "guide"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # lists, as JSON has them
        return found

    @property
    def latent(self) -> dict[str, int | None]:
        """The nodes that nobody measures, with their numbers of classes."""
        return {node.name: node.classes for node in self.nodes if node.latent}

    @property
    def arrows(self) -> list[tuple[str, str]]:
        """All arrows between nodes, those of blocks spelled out."""
        of = {node.name: (node.name,) for node in self.nodes} | self.blocks
        pairs = (itertools.product(of[cause], of[effect]) for cause, effect in self.edges)
        return list(dict.fromkeys(itertools.chain.from_iterable(pairs)))

    @property
    def asked(self) -> tuple[str, str] | None:
        """The asked effect, where both of its ends are drawn; over time of columns."""
        names = {node.name for node in self.nodes}
        if self.effect is None or not {*self.effect} <= names:
            return None
        if self.panel is None:
            return self.effect
        return column_of(self.effect[0]), column_of(self.effect[1])

    @property
    def used_kinds(self) -> dict[str, Any]:
        """The kinds of columns that are drawn; a kind of another column says nothing here."""
        names = {node.name for node in self.nodes}
        if self.panel is not None:
            names = {*map(column_of, names)}
        return {name: kind for name, kind in self.kinds.items() if name in names}

    def given(self) -> dict[str, Any]:
        """Returns what `check` and `MissCNF` are given, but for the table and the graph."""
        who, when = self.panel or (None, None)
        about = {"kinds": self.used_kinds or None, "auxiliary": list(self.auxiliary) or None}
        return {**about, "id": who, "time": when}

    def source(self) -> GraphLike:
        """Returns the graph as `check` and `MissCNF` take it."""
        if self.panel is None:
            return self.graph()
        if not self.nodes:
            raise InputError("the drawing is empty; add a node.")
        return write_graph(self, "dot")

    def graph(self) -> CausalGraph:
        """Returns the graph that is drawn.

        Raises:
            InputError: If it is none, as where arrows run in a circle.
        """
        import networkx as nx

        from misscnf import CausalGraph

        if not self.nodes:
            raise InputError("the drawing is empty; add a node.")
        drawn = nx.DiGraph()
        drawn.add_nodes_from(node.name for node in self.nodes)
        drawn.add_edges_from(self.arrows)
        return CausalGraph.read(drawn, self.blocks, self.latent)


def read_graph(text: str) -> dict[str, Any]:
    """Reads the text of a graph, in any form that `CausalGraph.read` takes, as a drawing has it.

    A text is never taken for the name of a file: the page sends what stands in it. An index such
    as [t-1] is a part of its name here: whether there are visits, the table says.
    """
    from misscnf import CausalGraph

    text = _with_marks(text)
    words = text.strip()
    if "\n" not in words and not any(mark in words for mark in ("->", "<-", "~", "{", ";")):
        text = f"{words}\n;\n"  # one node, and the name of no file
    parts = parts_of(CausalGraph.read(text if text.endswith("\n") else f"{text}\n"))
    if "⟦" not in text:
        return parts
    found: dict[str, Any] = json.loads(
        json.dumps(parts, ensure_ascii=False).replace("⟦", "[").replace("⟧", "]")
    )
    return found


def _with_marks(text: str) -> str:
    """Puts names with an index into quotes, and other brackets around it."""
    text = re.sub(rf'"([^"\[\]]+?){_index()}"', r'"\1⟦\2⟧"', text)
    return re.sub(rf"((?:\w+\(\s*)?[\w.]+(?:\s*\))?){_index()}", r'"\1⟦\2⟧"', text)


def _index() -> str:
    """The index of a node over time, such as [t-1]."""
    return r"\s*\[\s*(t(?:\s*[+-]\s*\d+)?)\s*\]"


def column_of(name: str) -> str:
    """Returns the column of a node over time, such as L of `L[t-1]` and of `mean(L)[t]`."""
    found = re.fullmatch(rf"(.+?){_index()}", name)
    if found is None:
        return name
    inner = re.fullmatch(r"\w+\((.+)\)", found[1])
    return found[1] if inner is None else inner[1]


def parts_of(graph: CausalGraph) -> dict[str, Any]:
    """Returns a graph as parts of a drawing, without places; a block has its arrows once."""
    edges: dict[tuple[str, str], None] = {}
    inside = {*graph.edges_inside}
    own = {name: block for block, members in graph.blocks.items() for name in members}
    for cause, effect in graph.edges:
        if (cause, effect) in inside:
            continue
        siblings = graph.blocks.get(own.get(cause, ""), (cause,))
        whole = {*siblings} <= {*graph.parents_of(effect)}
        edges[own.get(cause, cause) if whole else cause, own.get(effect, effect)] = None
    return {
        "nodes": [
            {"name": name, "latent": name in graph.latent, "classes": graph.latent.get(name)}
            for name in graph.nodes
        ],
        "edges": [list(edge) for edge in edges],
        "blocks": {name: list(members) for name, members in graph.blocks.items()},
    }


def write_graph(drawing: Drawing, form: str) -> str:
    """Returns a drawing as text.

    Arguments:
        drawing: What is drawn.
        form: dot, dagitty, text or json.
    """
    writers: dict[str, Callable[[Drawing], str]] = {
        "dot": _as_dot,
        "dagitty": _as_dagitty,
        "text": _as_text,
        "json": _as_json,
    }
    if form not in writers:
        raise InputError(f"graphs are written as {', '.join(writers)}, not as {form!r}.")
    return writers[form](drawing)


def _as_dot(drawing: Drawing) -> str:
    lines = [f"  {_quoted(node.name)}{_mark(node)};" for node in drawing.nodes]
    for name, members in drawing.blocks.items():
        inside = " ".join(f"{_quoted(member)};" for member in members)
        lines.append(f"  subgraph {_quoted('cluster_' + name)} {{ {inside} }}")
    lines += [f"  {_quoted(cause)} -> {_quoted(effect)};" for cause, effect in drawing.arrows]
    return "\n".join(["digraph {", *lines, "}", ""])


def _mark(node: Node) -> str:
    if not node.latent:
        return ""
    return " [latent]" if node.classes is None else f" [latent={node.classes}]"


def _as_dagitty(drawing: Drawing) -> str:
    if drawing.blocks:
        raise InputError("dagitty has no blocks; export as DOT or as text.")
    asked = dict(zip(drawing.effect or (), ("exposure", "outcome"), strict=False))
    lines = []
    for node in drawing.nodes:
        latent = "latent" if node.classes is None else f"latent={node.classes}"
        said = [
            *([latent] if node.latent else []),
            *([asked[node.name]] if node.name in asked else []),
        ]
        place = f'pos="{node.x / 100:.3f},{node.y / 100:.3f}"'
        lines.append(f"  {_quoted(node.name)} [{', '.join([*said, place])}]")
    lines += [f"  {_quoted(cause)} -> {_quoted(effect)}" for cause, effect in drawing.arrows]
    return "\n".join(["dag {", *lines, "}", ""])


def _as_text(drawing: Drawing) -> str:
    lines = [f"{_quoted(node.name)}{_mark(node)}" for node in drawing.nodes if node.latent]
    lines += [
        f"{_quoted(name)} = {{{', '.join(map(_quoted, members))}}}"
        for name, members in drawing.blocks.items()
    ]
    in_edges = {*itertools.chain(*drawing.arrows), *itertools.chain(*drawing.blocks.values())}
    alone = [node.name for node in drawing.nodes if node.name not in in_edges and not node.latent]
    lines += map(_quoted, alone)
    lines += [f"{_quoted(cause)} -> {_quoted(effect)}" for cause, effect in drawing.edges]
    return "\n".join([*lines, ""])


def _as_json(drawing: Drawing) -> str:
    if drawing.blocks or drawing.latent:
        raise InputError("JSON has parents alone, no blocks and no hidden nodes; export as DOT.")
    causes: dict[str, list[str]] = {node.name: [] for node in drawing.nodes}
    for cause, effect in drawing.arrows:
        causes[effect].append(cause)
    return json.dumps(causes, indent=1, ensure_ascii=False) + "\n"


def _quoted(name: str) -> str:
    words = ("node", "edge", "graph", "digraph", "subgraph", "strict", "dag")
    if name.isascii() and name.isidentifier() and name.lower() not in words:
        return name
    if '"' in name or "\\" in name:
        raise InputError(f"the name {name!r} has a sign that no text of a graph can hold.")
    return f'"{name}"'


def _node(given: object) -> Node:
    parts = _mapping(given, "a node")
    unknown = parts.keys() - Node.__dataclass_fields__.keys()
    if unknown:
        raise InputError(f"a node has no part {sorted(unknown)[0]!r}; reload the page.")
    classes = parts.get("classes")
    return Node(
        _name(parts.get("name")),
        _number(parts.get("x", 0.0)),
        _number(parts.get("y", 0.0)),
        parts.get("latent") is True,
        None if classes is None else _whole(classes, "classes"),
    )


def _mapping(given: object, what: str) -> Mapping[str, Any]:
    if not isinstance(given, dict):
        raise InputError(f"{what}: expected an object of JSON.")
    return given


def _list(given: object, what: str) -> list[Any]:
    if not isinstance(given, list):
        raise InputError(f"{what}: expected a list of JSON.")
    return given


def _name(given: object) -> str:
    if not isinstance(given, str) or not given.strip() or len(given) > 500:
        raise InputError(f"{str(given)[:40]!r} is no name; give a text of at most 500 letters.")
    return given


def _pair(given: object) -> tuple[str, str]:
    ends = _list(given, "an arrow")
    if len(ends) != 2:
        raise InputError("an arrow has two ends, cause and effect.")
    return _name(ends[0]), _name(ends[1])


def _number(given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise InputError("the place of a node is two numbers.")
    return float(given)


def _whole(given: object, what: str) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**31:
        raise InputError(f"{what} is a whole number from 0; got {str(given)[:20]!r}.")
    return given
