r"""Graphs over time: a template, written for one visit and unrolled over all of them.

    L[t-1] -> A[t];  L[t] -> A[t];  A[t] -> L[t+1];  sex -> A[t];  time -> L[t]

A name with an index is measured at every visit, `t` being the visit and `t-1` the one before. A
name without one is measured once a person, before the first visit, unless it is `time`, the clock,
which every visit knows. An arrow from `[t+a]` to `[t+b]` goes b − a visits on, and never back.
The loss of a value is a node over time too: `L[t] -> missing(L)[t]` (`graph.indicators`).

Unrolled over the visits v_0, v_1, …, the node L at visit v_k is called `L[v_k]`, and

    x_{L,k} = f_L(u_{L,k}; x_{L,k-1}, x_{A,k-1}, …),

with one mechanism f_L for all visits at which L has the same causes. A first visit lacks the lags
of the others, and so has a mechanism of its own. What is not over time is not here: `graph.dag`
has the graph that comes out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, cast, get_args

import networkx as nx

from misscnf.errors import InputError
from misscnf.graph.histories import Function, History
from misscnf.graph.indicators import Loss, column_of, indicator_of

__all__ = ["Cause", "Template", "Unrolled", "Read", "at_visit", "is_over_time", "split_index"]


def is_over_time(name: object) -> bool:
    """Says whether a name of a graph has an index of time, such as `L[t-1]`."""
    found = _indexed(name) if isinstance(name, str) else None
    return found is not None and _shift(found["index"]) is not None


def _indexed(name: str) -> re.Match[str] | None:
    return re.fullmatch(r"(?P<name>.+)\[\s*(?P<index>[^\[\]]*?)\s*\]", name, re.DOTALL)


def _shift(index: str) -> re.Match[str] | None:
    return re.fullmatch(r"t(?:\s*(?P<sign>[+-])\s*(?P<steps>\d+))?", index)


def at_visit(name: str, visit: object) -> str:
    """Returns what a column is called at a visit, such as `L[2]`, or its loss, `missing(L[2])`."""
    column = column_of(name)
    if column is not None:
        return indicator_of(at_visit(column, visit))
    return f"{name}[{visit:g}]" if isinstance(visit, float) else f"{name}[{visit}]"


class End(NamedTuple):
    """An end of an arrow."""

    name: str
    shift: int | None
    """By how many visits its index is shifted; None where it has no index."""
    history: History | Literal[""] = ""
    """The function of its history that is meant; empty for the column itself."""


def split_index(name: str) -> End:
    """Returns a name, by how many visits its index is shifted, and which history it is."""
    found, lost = _indexed(name), column_of(name)
    if found is None and lost is not None:
        end = split_index(lost)
        if end.shift is None or end.history:
            raise InputError(
                f"{name!r} is the loss of a value in a graph over time, and leaves open of which "
                f"visit; write {indicator_of(end.name)}[t], of a column of the visits."
            )
        return End(indicator_of(end.name), end.shift)
    if found is None:
        history, column = _split_history(name)
        if not history:
            return End(name, None)
        found = _indexed(column)
        if found is None:
            raise InputError(
                f"{name!r} is a function of a history, and leaves open up to which visit; write "
                f"{history}({column})[t-1], or {history}({column})[t] with this visit."
            )
        return split_index(f"{history}({found['name']})[{found['index']}]")
    shift = _shift(found["index"])
    if shift is None:
        raise InputError(
            f"the graph over time has the index [{found['index']}] in {name!r}, which is not "
            f"known; an index is t, t-1, t-2 and so on."
        )
    history, column = _split_history(found["name"].strip())
    steps = int(shift["steps"] or 0)
    return End(column, -steps if shift["sign"] == "-" else steps, history)


def _split_history(name: str) -> tuple[History | Literal[""], str]:
    """Returns the function of a history and its column; an empty one for a column as it is."""
    found = re.fullmatch(rf"({'|'.join(get_args(History))})\((.*)\)", name, re.DOTALL)
    if found is None:
        return "", name
    return cast("History", found[1]), found[2].strip()


@dataclass(frozen=True)
class Cause:
    """One direct cause of a column."""

    name: str
    lag: int | None
    """How many visits before; None for what is measured once a person, and for the clock."""
    history: History | Literal[""] = ""
    """The function of its visits up to then that is the cause; empty for that visit itself."""

    @staticmethod
    def now() -> Cause:
        """Returns the time of the visit itself."""
        return Cause(Template.clock, None)

    def __str__(self) -> str:
        if self.lag is None:
            return self.name
        own = f"{self.history}({self.name})" if self.history else self.name
        return f"{own}[t-{self.lag}]" if self.lag else f"{own}[t]"


class Read(NamedTuple):
    """A number that a mechanism reads: the value of a node, or a history of several."""

    name: str
    function: Function
    nodes: tuple[str, ...]
    """The earliest first."""


@dataclass(frozen=True)
class Unrolled:
    """A template over the visits of a table."""

    nodes: tuple[str, ...]
    """In an order in which tied nodes have their parents in the same order."""
    edges: tuple[tuple[str, str], ...]
    keys: dict[str, str]
    """For each node the key of its mechanism; tied nodes have one."""
    causes: dict[str, dict[Cause, Read]] = field(default_factory=dict)
    """For each node over time its causes, with what its mechanism reads of each."""

    @property
    def reads(self) -> dict[str, tuple[Read, ...]]:
        """For nodes with histories as causes, what their mechanism reads."""
        return {
            node: tuple(there.values())
            for node, there in self.causes.items()
            if any(cause.history for cause in there)
        }


@dataclass(frozen=True)
class Template:
    """What causes what within a visit, and from one visit to later ones."""

    baseline: tuple[str, ...]
    """Columns that are measured once a person, causes first."""
    varying: tuple[str, ...]
    """Columns that are measured at every visit, causes within a visit first."""
    causes: Mapping[str, tuple[Cause, ...]]
    """The direct causes of each."""
    untied: tuple[str, ...] = ()
    """Columns with a mechanism of its own at each visit."""
    latent: Mapping[str, int | None] = field(default_factory=dict)
    """Hidden causes of a person, at all visits the same, with their number of classes."""
    losses: tuple[str, ...] = ()
    """Indicators of loss at every visit, such as `missing(L)`, causes within a visit first."""

    clock: ClassVar[str] = "time"
    """What a template calls the time of a visit, whatever the table calls it."""

    @staticmethod
    def read(
        nodes: Iterable[str],
        edges: Iterable[tuple[Any, Any]],
        clock: str = "time",
        latent: Mapping[str, int | None] | None = None,
    ) -> Template:
        """Reads names and arrows as the readers of `graph.dag` give them.

        Arguments:
            nodes: Names, with and without index.
            edges: Pairs of names, cause first.
            clock: The column that says the time; `time` means it too.
            latent: Hidden causes, each the same at all visits of a person.
        """
        pairs = [(split_index(str(one)), split_index(str(two))) for one, two in edges]
        named = dict.fromkeys([split_index(str(name)) for name in nodes])
        named |= dict.fromkeys(end for pair in pairs for end in pair)
        clocks = {Template.clock, clock}
        varying = dict.fromkeys(e.name for e in named if e.shift is not None)
        baseline = dict.fromkeys(e.name for e in named if e.shift is None)
        varying, baseline = (
            {name: None for name in names if name not in clocks} for names in (varying, baseline)
        )
        losses = dict.fromkeys(name for name in varying if column_of(name) is not None)
        varying = {name: None for name in varying if name not in losses}
        _check_losses(losses, varying, pairs)
        both = [name for name in baseline if name in varying]
        if both:
            raise InputError(
                f"the graph over time has {both[0]!r} with an index and without; write "
                f"{both[0]}[t] where it is measured at every visit, or {both[0]} everywhere if it "
                f"is measured once a person."
            )
        for name in latent or {}:
            if split_index(name).name in varying:
                raise InputError(
                    f"the latent node {name!r} has an index of time, and a hidden cause over time "
                    f"is one of a person, the same at all visits; write it without an index."
                )
        if not varying:
            raise InputError(
                "the graph has no column that is measured at every visit; write its index, such "
                "as L[t-1] -> A[t]."
            )
        causes: dict[str, dict[Cause, None]] = {
            name: {} for name in (*baseline, *varying, *losses)
        }
        for cause, effect in pairs:
            if effect.name in clocks:
                raise InputError(
                    f"the arrow {cause.name} → {effect.name} makes {effect.name!r} an effect, and "
                    f"it is the time of a visit, which nothing changes; leave the arrow out."
                )
            causes[effect.name][_lagged(cause, effect, clocks)] = None
        early = _ordered(baseline, {n: [c.name for c in causes[n]] for n in baseline})
        within = {n: [c.name for c in causes[n] if c.lag == 0] for n in (*varying, *losses)}
        late, last = _ordered(varying, within), _ordered(losses, within)
        found = {n: tuple(causes[n]) for n in (*early, *late, *last)}
        return Template(early, late, found, latent=dict(latent or {}), losses=last)

    @property
    def at_visits(self) -> tuple[str, ...]:
        """What has a node at every visit: columns, and indicators of their loss."""
        return (*self.varying, *self.losses)

    def with_loss(self, loss: Loss, holes: Collection[str], clock: str = "time") -> Template:
        """Returns the template with arrows into indicators of loss.

        Arguments:
            loss: What drives the loss of which column, such as `{"L": ["L[t]", "A[t-1]"]}`, or
                "self": each column with holes by itself at that visit, and by its causes.
            holes: The columns that have holes, for "self".
            clock: The column that says the time.
        """
        if loss == "self":
            of = {name: self.of(name) for name in self.varying if name in holes}
            loss = {name: [f"{name}[t]", *map(str, causes)] for name, causes in of.items()}
        if not isinstance(loss, Mapping):
            raise InputError(
                f"loss is 'self', or {{column: [what drives its loss]}}, such as "
                f"{{'{self.varying[0]}': ['{self.varying[0]}[t]']}}; got {loss!r}."
            )
        edges = [
            (str(cause), self._named(name)) for name in self.causes for cause in self.of(name)
        ]
        known = {*self.causes, self.clock, clock, *map(indicator_of, loss)}
        for column, drivers in loss.items():
            given = [drivers] if isinstance(drivers, str) else list(drivers)
            edges += [(str(driver), f"{indicator_of(column)}[t]") for driver in given]
            for end in (split_index(str(driver)) for driver in given):
                if end.name not in known or column not in self.varying:
                    wrong = column if column not in self.varying else end.name
                    raise InputError(
                        f"the loss of {column!r} names {wrong!r}, which is no column of the "
                        f"visits; name these, such as {{'{self.varying[0]}': "
                        f"['{self.varying[0]}[t]']}}."
                    )
        found = Template.read(map(self._named, self.causes), edges, clock, self.latent)
        return replace(found, untied=self.untied)

    def _named(self, name: str) -> str:
        """Returns what an effect is called in a graph over time."""
        return f"{name}[t]" if name in self.at_visits else name

    @property
    def once(self) -> tuple[str, ...]:
        """Columns that are measured once a person: all of the baseline but hidden causes."""
        return tuple(name for name in self.baseline if name not in self.latent)

    def without_ties(self, untied: Sequence[str] | Literal[True]) -> Template:
        """Returns the template in which some columns, or all, have a mechanism a visit."""
        if untied is True:
            return replace(self, untied=self.at_visits)
        for name in [untied] if isinstance(untied, str) else untied:
            if isinstance(untied, str) or name not in self.at_visits:
                raise InputError(
                    f"untied names {name!r}; give a list of columns that the graph has at every "
                    f"visit, such as ['{self.varying[0]}'], or True for all."
                )
        return replace(self, untied=tuple(untied))

    def measured_once(self, names: Collection[str]) -> Template:
        """Returns the template in which some columns over time are measured once a person.

        A history of such a column is refused: it would be the column itself, or count visits.
        """
        if not names:
            return self
        for name in self.at_visits:
            for cause in self.of(name):
                if cause.history and cause.name in names:
                    raise InputError(
                        f"the graph over time has {cause}, and {cause.name} does not vary within "
                        f"a person; write {cause.name} in its place, or give "
                        f"varying=['{cause.name}'] to have it at every visit."
                    )
        baseline = (*self.baseline, *(name for name in self.varying if name in names))
        causes = {
            name: tuple(
                dict.fromkeys(Cause(c.name, None) if c.name in names else c for c in self.of(name))
            )
            for name in (*baseline, *(n for n in self.at_visits if n not in names))
        }
        early = _ordered(baseline, {n: [c.name for c in causes[n]] for n in baseline})
        varying = tuple(name for name in self.varying if name not in names)
        return replace(self, baseline=early, varying=varying, causes=causes)

    def may_be_once(self, name: str, constant: Collection[str]) -> bool:
        """Says whether a column could be measured once: its causes do not change, or are so too.

        Arguments:
            name: The column, which does not vary within a person.
            constant: All columns that do not.
        """
        fine = {*self.once, *constant}
        told = indicator_of(name) in self.losses  # at which visit it is lost
        return (
            not told
            and name in constant
            and all(c.name in fine and c.name != name and not c.history for c in self.of(name))
        )

    @property
    def timed(self) -> bool:
        """Whether anything depends on the time of a visit."""
        return any(Cause.now() in self.of(name) for name in self.at_visits)

    @property
    def longest(self) -> Cause:
        """The cause that reaches furthest back."""
        lagged = [cause for name in self.at_visits for cause in self.of(name)]
        return max(lagged, key=lambda cause: cause.lag or 0, default=Cause(self.varying[0], 0))

    def of(self, name: str) -> tuple[Cause, ...]:
        """Returns the direct causes of a column."""
        return tuple(self.causes[name])

    def unroll(
        self,
        visits: Sequence[object],
        left_out: Collection[str] = (),
        unshown: Collection[str] = (),
    ) -> Unrolled:
        """Writes the template out over the visits.

        Arguments:
            visits: What each is called, in their order.
            left_out: Nodes that no row shows, such as `Y[0]` of an outcome that is measured later.
            unshown: Nodes that no row shows either, and that something depends on; the last seen
                value of a column is that of no such visit.
        """
        far = self.longest
        if (far.lag or 0) >= len(visits):
            raise InputError(
                f"the graph over time has the cause {far}, and the table has {len(visits)} "
                f"visit{'s' * (len(visits) != 1)}; give a table with more of them, or leave that "
                f"arrow out."
            )
        nodes, edges = list(self.baseline), list[tuple[str, str]]()
        keys = {name: name for name in self.baseline}
        causes = dict[str, dict[Cause, Read]]()
        edges += [(cause.name, name) for name in self.baseline for cause in self.of(name)]
        alone = self._seen_once(visits, left_out, unshown)
        for k, visit in enumerate(visits):
            if self.timed:
                nodes.append(at_visit(self.clock, visit))
                keys[nodes[-1]] = nodes[-1]
            for name in self.at_visits:
                node = at_visit(name, visit)
                if node in left_out:
                    continue
                there = self._there(name, k, visits, left_out, unshown)
                keys[node] = node if name in self.untied else self._key(name, there)
                if keys[node] in alone or name in self.untied:
                    there = _told_apart(there)
                nodes.append(node)
                edges += [(cause, node) for of in there.values() for cause in of.nodes]
                causes[node] = there
        return Unrolled(tuple(nodes), tuple(dict.fromkeys(edges)), keys, causes)

    def _seen_once(
        self, visits: Sequence[object], left_out: Collection[str], unshown: Collection[str]
    ) -> set[str]:
        """Returns the keys of mechanisms that serve one visit alone, which tells no time."""
        keys = Counter(
            self._key(name, self._there(name, k, visits, left_out, unshown))
            for k, visit in enumerate(visits)
            for name in self.at_visits
            if at_visit(name, visit) not in left_out
        )
        return {key for key, count in keys.items() if count == 1}

    def _there(
        self,
        name: str,
        k: int,
        visits: Sequence[object],
        left_out: Collection[str],
        unshown: Collection[str],
    ) -> dict[Cause, Read]:
        """Returns the causes that a column has at the k-th visit, with their nodes."""
        found = dict[Cause, Read]()
        for cause in self.of(name):
            nodes = [node for node in self._nodes(cause, k, visits) if node not in left_out]
            if cause.history == "last":
                nodes = [node for node in nodes if node not in unshown][-1:]
            if nodes:
                found[cause] = _read(cause, tuple(nodes), visits[k - (cause.lag or 0)])
        return found

    def _key(self, name: str, there: Mapping[Cause, object]) -> str:
        """Returns the key of a mechanism: the column, and its causes where some are not there."""
        if len(there) == len(self.of(name)):
            return f"{name}[t]"
        return f"{name}[t] of {', '.join(sorted(map(str, there))) or 'nothing'}"

    def _nodes(self, cause: Cause, k: int, visits: Sequence[object]) -> list[str]:
        """Returns the nodes of a cause at the k-th visit, none before the first."""
        if cause == Cause.now():
            return [at_visit(self.clock, visits[k])]
        if cause.lag is None:
            return [cause.name]
        last = k - cause.lag
        first = 0 if cause.history else last
        return (
            [at_visit(cause.name, visit) for visit in visits[first : last + 1]]
            if last >= 0
            else []
        )

    def __str__(self) -> str:
        parts = [f"{cause} → {name}" for name in self.baseline for cause in self.of(name)]
        parts += [f"{cause} → {name}[t]" for name in self.at_visits for cause in self.of(name)]
        return "; ".join(parts or [f"{name}[t]" for name in self.varying])

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        causes = {
            name: [[c.name, c.lag, *([c.history] if c.history else [])] for c in of]
            for name, of in self.causes.items()
        }
        about = {"baseline": list(self.baseline), "varying": list(self.varying), "causes": causes}
        about |= {"untied": list(self.untied), "losses": list(self.losses)}
        return {**about, "latent": dict(self.latent)}

    @staticmethod
    def from_dict(entry: Mapping[str, Any]) -> Template:
        """Reads what `to_dict` wrote."""
        causes = {
            name: tuple(Cause(str(cause), *rest) for cause, *rest in of)
            for name, of in entry["causes"].items()
        }
        named = tuple(entry["baseline"]), tuple(entry["varying"])
        beside = tuple(entry.get("untied", ())), dict(entry.get("latent", {}))
        return Template(*named, causes, *beside, tuple(entry.get("losses", ())))


def _check_losses(
    losses: Collection[str], varying: Collection[str], pairs: Iterable[tuple[End, End]]
) -> None:
    """Refuses the loss of what is no column of the visits, and one that changes a value."""
    for name in losses:
        if column_of(name) not in varying:
            raise InputError(
                f"{name}[t] says whether {column_of(name)!r} is lost, which the graph does not "
                f"have at every visit; draw {column_of(name)}[t] too, or leave it out."
            )
    for cause, effect in pairs:
        if cause.name in losses and effect.name not in losses:
            raise InputError(
                f"the arrow {cause.name}[t] → {effect.name}[t] makes a loss the cause of a value; "
                f"an indicator can only be a cause of other indicators."
            )


def _read(cause: Cause, nodes: tuple[str, ...], visit: object) -> Read:
    """Returns what is read of a cause with these nodes, up to a visit."""
    if cause.history == "" or cause.history == "last":
        return Read(nodes[0], "value", nodes)
    return Read(at_visit(f"{cause.history}({cause.name})", visit), cause.history, nodes)


def _told_apart(there: Mapping[Cause, Read]) -> dict[Cause, Read]:
    """Leaves out what one visit alone does not tell from its other causes.

    That is the time, and the history of a single earlier visit whose value is a cause too.
    """
    found: dict[Cause, Read] = {}
    values = {read.nodes for read in there.values() if read.function == "value"}
    for cause, read in there.items():
        alike = read.function != "value" and read.nodes in values
        if cause != Cause.now() and not alike and read not in found.values():
            found[cause] = read
    return found


def _lagged(cause: End, effect: End, clocks: Collection[str]) -> Cause:
    """Returns the cause of an arrow, by how many visits it comes before the effect."""
    if effect.history:
        raise InputError(
            f"an arrow goes into {effect.history}({effect.name}), which is a function of "
            f"{effect.name!r} and has no other cause; let it go into {effect.name}[t]."
        )
    if cause.name in clocks:
        if effect.shift is None or cause.history:
            raise InputError(
                f"the arrow {cause.name} → {effect.name} lets the time of a visit change what is "
                f"measured once a person, or asks for its history; leave it out, or write "
                f"time -> {effect.name}[t]."
            )
        return Cause.now()
    if cause.shift is None:
        return Cause(cause.name, None)
    if effect.shift is None:
        raise InputError(
            f"the arrow {cause.name}[t] → {effect.name} leaves open at which visit "
            f"{effect.name!r} is measured; write {effect.name}[t], and ask for its last visit."
        )
    lag = effect.shift - cause.shift
    if lag < 0:
        raise InputError(
            f"an arrow goes from {cause.name!r} back to {effect.name!r} {-lag} "
            f"visit{'s' * (lag != -1)} earlier, and causes come first; turn it round, or change "
            f"an index."
        )
    if lag == 0 and cause.name == effect.name:
        own = f"{cause.history}({cause.name})" if cause.history else cause.name
        raise InputError(
            f"{own}[t] is given as a cause of {cause.name}[t] itself; write "
            f"{own}[t-1] -> {cause.name}[t]."
        )
    return Cause(cause.name, lag, cause.history)


def _ordered(names: Collection[str], parents: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Returns names with causes first, in the order given where that leaves a choice."""
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    graph.add_edges_from((p, n) for n in names for p in parents[n] if p in names)
    place = {name: i for i, name in enumerate(names)}
    try:
        return tuple(nx.lexicographical_topological_sort(graph, key=place.__getitem__))
    except nx.NetworkXUnfeasible:
        circle = [edge[0] for edge in nx.find_cycle(graph)]
        shown = " → ".join([*circle, circle[0]])
        raise InputError(
            f"within one visit the graph over time has the cycle {shown}, and a causal graph has "
            f"none; give one of these arrows a lag, such as {circle[-1]}[t-1] -> {circle[0]}[t]."
        ) from None
