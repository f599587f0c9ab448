r"""Hidden causes: is an effect still identified, and by what?

For a graph with latent nodes, one of these is said of the effect of t on y, the first that holds:

| | if | then |
|---|---|---|
| no effect | no directed path leads from t to y | it is zero |
| back-door | columns that t has no effect on block every path into t (Pearl 1993) | Σ_z P(y \| t, z) P(z) |
| front-door | columns take the whole effect of t, without hidden causes in common with it, and t blocks theirs with y | two back doors, one after the other |
| formula | ID finds one (`identify`) | that formula |
| proxies | columns see the hidden causes (`proxies`) | if these see them completely: an assumption |
| shape | otherwise | only the shape of the model (lines, normal noise) tells the effect from the hidden cause |

The first four are theorems on the graph alone. The fit is the same in all cases: a likelihood of
all columns, in which hidden causes are integrated out. What differs is whether more rows would
bring any well-fitting model to the same effect.
"""  # noqa: E501 - a table

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import networkx as nx

from misscnf.graph import CausalGraph
from misscnf.identification.identify import identify
from misscnf.identification.projection import project
from misscnf.identification.proxies import Proxies, find_proxies

__all__ = ["Estimand", "effect_identified", "hidden_note"]

By = Literal["no effect", "back-door", "front-door", "formula", "proxies", "shape"]


@dataclass(frozen=True)
class Estimand:
    """What identifies one effect in a graph with hidden causes."""

    treatment: str
    outcome: str
    by: By
    through: tuple[str, ...] = ()
    """The columns of the back door or the front door."""
    formula: str | None = None
    """What ID found, where it is neither of these."""
    proxies: Proxies | None = None
    hidden: tuple[str, ...] = ()
    """The hidden causes in the way: were they shown, the effect would be identified."""
    instruments: tuple[str, ...] = ()
    """Columns that move the treatment and touch the outcome in no other way."""

    @property
    def identified(self) -> bool:
        """Whether the graph alone tells that the columns tell the effect."""
        return self.by not in ("proxies", "shape")

    @property
    def sentence(self) -> str:
        """Says it in words."""
        effect = f"The effect of {self.treatment} on {self.outcome}"
        through = f" through {', '.join(self.through)}" if self.through else ""
        if self.by == "no effect":
            return f"By the graph {self.treatment} has no effect on {self.outcome}."
        if self.by == "back-door" and not self.through:
            return f"{effect} is identified: no hidden cause lies behind both."
        if self.by in ("back-door", "front-door"):
            return f"{effect} is identified: {self.by}{through}."
        if self.by == "formula":
            return f"{effect} is identified, by a formula that ID found: {self.formula}."
        if self.proxies is not None:
            return f"{effect} is not identified by the graph alone; {_seen(self.proxies)}"
        return (
            f"{effect} is not identified without assumptions on {', '.join(self.hidden)}: it is "
            f"told by the shape of the model alone, which no number of rows can check."
            f"{_instruments(self.instruments)}"
        )


def _seen(found: Proxies) -> str:
    hidden, z, w = (", ".join(p) for p in (found.hidden, found.of_treatment, found.of_outcome))
    given = f", given {', '.join(found.given)}" if found.given else ""
    many = "are" if len(found.hidden) > 1 else "is"
    return (
        f"it is if {hidden} {many} seen well enough by {w} and {z}{given} (completeness), which "
        f"rows cannot show."
    )


def _instruments(names: tuple[str, ...]) -> str:
    if not names:
        return ""
    noun = "is an instrument" if len(names) == 1 else "are instruments"
    return (
        f" {', '.join(names)} {noun}: bounds follow, or an answer by the shape of the model, such "
        f"as a straight line."
    )


def hidden_note(
    graph: CausalGraph,
    treatments: Collection[str],
    outcome: str,
    given: Collection[str] | None = (),
    states: Mapping[str, int | None] | None = None,
) -> str | None:
    """Returns what to say beside an effect that hidden causes make doubtful; None of others.

    Arguments:
        graph: The graph.
        treatments: What is set, all at once.
        outcome: What is asked about.
        given: What decides who is asked about, before anything is set; None if that is not known.
        states: How many values columns have, None for no end; for proxies.
    """
    graph = graph.without_indicators()
    causes = nx.ancestors(graph.to_networkx(), outcome)
    acting = [name for name in treatments if name in causes]
    if not graph.latent or not acting:
        return None
    if len(acting) == 1:
        found = effect_identified(graph, acting[0], outcome, states)
        if not given and given is not None:
            proxies = found.proxies
            if proxies is not None:
                return f"the effect is not identified by the graph alone; {_seen(proxies)}"
            return None if found.by != "shape" else _shape_note(acting, outcome, found.hidden)
        if found.by == "back-door" and set(given or ["?"]) <= {*acting, *found.through}:
            return None  # among the treated too
    below = graph.descendants(map(graph.index, acting))
    before = given is not None and below.isdisjoint(graph.index(name) for name in given)
    if before and {*acting, outcome, *(given or ())}.isdisjoint(graph.latent):
        mixed = project(_with_whole_blocks(graph))
        if identify(mixed, [outcome], acting, given or ()) is not None:
            return None
    return _shape_note(acting, outcome, tuple(graph.latent))


def _shape_note(treatments: Collection[str], outcome: str, hidden: Collection[str]) -> str:
    return (
        f"hidden causes ({', '.join(hidden)}) leave this effect of {', '.join(treatments)} on "
        f"{outcome} unidentified: it rests on the shape of the model alone, which no number of "
        f"rows can check, and its interval does not know."
    )


def effect_identified(
    graph: CausalGraph,
    treatment: str,
    outcome: str,
    states: Mapping[str, int | None] | None = None,
) -> Estimand:
    """Says what identifies the effect of one node on another.

    Arguments:
        graph: The graph, with its latent nodes.
        treatment: The node that is set.
        outcome: The node that is asked about.
        states: How many values columns have, None for no end; for proxies.
    """
    graph = _with_whole_blocks(graph.without_indicators())
    said = Estimand(treatment, outcome, "shape")
    if outcome not in nx.descendants(graph.to_networkx(), treatment):
        return replace(said, by="no effect")
    latent = [name for name in (treatment, outcome) if name in graph.latent]
    if latent:
        return replace(said, hidden=tuple(latent))
    through = _back_door(graph, treatment, outcome)
    if through is not None:
        return replace(said, by="back-door", through=through)
    through = _front_door(graph, treatment, outcome)
    if through is not None:
        return replace(said, by="front-door", through=through)
    formula = identify(project(graph), [outcome], [treatment])
    if formula is not None:
        told = f"P({outcome} | do({treatment})) = {formula}"
        return replace(said, by="formula", formula=told)
    hidden = _in_the_way(graph, treatment, outcome)
    proxies = find_proxies(graph, treatment, outcome, states=states)
    if proxies is not None:
        return replace(said, by="proxies", proxies=proxies, hidden=hidden)
    instruments = _instruments_of(graph, treatment, outcome)
    return replace(said, hidden=hidden, instruments=instruments)


def _with_whole_blocks(graph: CausalGraph) -> CausalGraph:
    """Returns the graph with every arrow inside blocks, so that nothing is claimed there."""
    inside = [
        pair
        for members in graph.blocks.values()
        for pair in itertools.combinations([n for n in graph.nodes if n in members], 2)
    ]
    return graph.arranged(inside) if inside else graph


def _columns(graph: CausalGraph, *besides: str) -> list[str]:
    out = {*graph.latent, *graph.auxiliary, *besides}
    return [name for name in graph.nodes if name not in out]


def _back_door(graph: CausalGraph, t: str, y: str) -> tuple[str, ...] | None:
    """Returns a smallest set of columns that blocks every back door, if one does."""
    dag = graph.to_networkx()
    below = nx.descendants(dag, t)
    dag.remove_edges_from(list(dag.out_edges(t)))
    allowed = {name for name in _columns(graph, t, y) if name not in below}
    found = nx.find_minimal_d_separator(dag, {t}, {y}, restricted=allowed)
    return None if found is None else tuple(sorted(found, key=graph.index))


def _front_door(graph: CausalGraph, t: str, y: str, most: int = 3) -> tuple[str, ...] | None:
    """Returns columns by which the whole effect goes, without back doors that t leaves open."""
    dag = graph.to_networkx()
    between = nx.descendants(dag, t) & nx.ancestors(dag, y)
    candidates = [name for name in _columns(graph, t, y) if name in between]
    from_t = dag.copy()
    from_t.remove_edges_from(list(dag.out_edges(t)))
    for size in range(1, most + 1):
        for m in itertools.combinations(candidates, size):
            without = dag.copy()
            without.remove_nodes_from(m)
            back = dag.copy()
            back.remove_edges_from([edge for name in m for edge in dag.out_edges(name)])
            if (
                not nx.has_path(without, t, y)
                and nx.is_d_separator(from_t, {t}, set(m), set())
                and nx.is_d_separator(back, set(m), {y}, {t})
            ):
                return m
    return None


def _in_the_way(graph: CausalGraph, t: str, y: str) -> tuple[str, ...]:
    """Returns the fewest hidden causes which, were they shown, would leave the effect identified.

    All of them, where three are not enough.
    """
    for size in range(1, min(3, len(graph.latent)) + 1):
        for shown in itertools.combinations(graph.latent, size):
            rest = {name: of for name, of in graph.latent.items() if name not in shown}
            if identify(project(replace(graph, latent=rest)), [y], [t]) is not None:
                return shown
    return tuple(graph.latent)


def _instruments_of(graph: CausalGraph, t: str, y: str) -> tuple[str, ...]:
    """Returns columns that go with the treatment, and with the outcome through it alone."""
    dag = graph.to_networkx()
    below = nx.descendants(dag, t)
    cut = dag.copy()
    cut.remove_edges_from(list(dag.out_edges(t)))
    columns = [name for name in _columns(graph, t, y) if name not in below]
    found = []
    for z in columns:
        others = set(columns) - {z}
        given = nx.find_minimal_d_separator(cut, {z}, {y}, restricted=others)
        if given is not None and not nx.is_d_separator(dag, {z}, {t}, given):
            found.append(z)
    return tuple(found)
