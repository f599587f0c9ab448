r"""`check` of a table over time: the template is told, not the graph that is unrolled from it.

Visits that share a mechanism teach it together, so a family is asked about once for all of them:
its rows are the people who were there at these visits, one below the other, and it is seen whole
where a person shows the column and what its mechanism reads, at that visit and at earlier ones,

    P( L[t] and all that it reads are shown | x, t ) > 0    for almost every x and some t.

Who has left, or has had an event, is not there: their later visits are barren, and no rows. What
is unrevealed is searched for as in any other table (`regions`), the time of the visit among the
columns that may say where.

A regime sets a column at every visit. By the graph its effect is that of the g-formula (Robins
1986), which needs the families that lead to the outcome, all but those of the treatment. Hidden
causes of a person do not spoil it unless one leads to the treatment itself: a treatment without
one is alone in its district, and its factor can be left out of the law of what is shown (Tian and
Pearl 2002).

A loss that the graph models is asked about as in any other graph (`recovery`). Visits that share
its mechanism have one slope, and any of them tells it for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from misscnf.data.files import jsonable
from misscnf.data.kinds import KindRules, Kinds
from misscnf.data.panel import Panel
from misscnf.data.table import IncompleteTable, Schema
from misscnf.display.notebook import card
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.graph.indicators import indicator_of
from misscnf.graph.template import Cause, Read, Template, Unrolled, at_visit
from misscnf.identification.columns import Column, column_of
from misscnf.identification.families import family_names
from misscnf.identification.recovery import Recovery, losses_identified
from misscnf.identification.regions import (
    Region,
    Search,
    thinnest_regions,
    unrevealed_regions,
)
from misscnf.identification.report import region_table
from misscnf.identification.scan import Axis
from misscnf.identification.settings import CheckSettings
from misscnf.identification.words import listed, percent, region_sentence, uncovered_sentence
from misscnf.options import change

__all__ = ["PanelReport", "check_over_time", "check_panel"]


@dataclass(frozen=True, eq=False)
class PanelReport:
    """What the holes of a table over time leave identified.

    Attributes:
        panel: How the table was read: visits, columns, events.
        effect: The treatment and the outcome asked about, None for all families.
        people: How many there are.
        visits: A line a visit: how many are there, the share of their cells that are holes, and
            how many are seen for the last time.
        families: A line a family of the template: which visits share it, how many rows show the
            column and how many show the family whole, at which visits these are few.
        regions: Where families are not seen whole, or are seen least, as in `Report`.
        settings: The `CheckSettings`.
        recovery: What identifies each loss that the graph models, a line a mechanism.
        confounded: Hidden causes that lead to the treatment by themselves.

    Example:
        >>> from misscnf import check
        >>> rng = np.random.default_rng(0)
        >>> rows = [(who, week, rng.normal()) for who in range(200) for week in range(3)]
        >>> df = pd.DataFrame(rows, columns=["who", "week", "dose"])
        >>> df["pain"] = 5 - df["dose"] + rng.normal(size=len(df))
        >>> df.loc[df["week"] == 2, "dose"] = np.nan  # not measured at the last visit
        >>> report = check(df, "dose[t] -> pain[t]", id="who", time="week")
        >>> report.people, report.visits["there"].tolist()
        (200, [200, 200, 200])
    """

    panel: Panel
    effect: tuple[str, str] | None
    people: int
    visits: pd.DataFrame
    families: pd.DataFrame
    regions: pd.DataFrame
    settings: CheckSettings
    recovery: tuple[Recovery, ...] = ()
    confounded: tuple[str, ...] = ()

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The families that are not seen whole everywhere."""
        flagged = self.families["status"] != "covered"
        return tuple(self.families.loc[flagged, "family"])

    @property
    def ok(self) -> bool:
        """Whether nothing in these rows speaks against any family that is asked about.

        Nor does the effect rest on the shape of the model alone, beside hidden causes.
        """
        return not self.uncovered and not self.confounded

    def summary(self) -> str:
        """Returns the report as text."""
        return "\n\n".join([self._head(), self._told()]) + "\n"

    def _head(self) -> str:
        there, holes = self.visits["there"], self.visits["share of holes"]
        cells = float(np.average(holes, weights=there)) if there.sum() else 0.0
        whole = self.people * len(self.visits)
        return (
            f"{self.people:,} people, {self.panel.summary}\n"
            f"{int(there.sum()):,} of {whole:,} visits are before somebody leaves or has an "
            f"event, and {percent(cells)} of the cells of these are holes.\n"
            "What comes later is no hole: nothing is asked of it."
        )

    def _told(self) -> str:
        lines, count = [], len(self.families)
        if self.effect is not None:
            lines.append(self._estimand())
        if count == 0:
            return "\n".join(lines)
        names = f"{count} famil{'ies' if count != 1 else 'y'} of the graph over time"
        if not self.uncovered:
            said = f"Family positivity: nothing in these rows speaks against it ({names})."
        else:
            some = len(self.uncovered)
            said = f"Family positivity: not guaranteed for {some} of {names}."
        lines.append(said)
        for line in self.families.to_dict("records"):
            mark = "✓" if line["status"] == "covered" else "✗"
            lines.append(f"  {mark} {line['sentence']}")
        if self.uncovered:
            lines.append(
                "  Not guaranteed means: these rows do not show what the mechanism is there. A "
                "parametric fit may\n  still extrapolate rightly; nothing in the table can tell."
            )
        if hidden := list(self.panel.template.latent):
            lines.append(
                f"Beside the hidden cause{'s' * (len(hidden) > 1)} {listed(hidden)}, families are "
                f"those of the columns: what a mechanism reads of it no row shows, and what holes "
                f"leave open, they leave open there too."
            )
        lines += ["Losses that the graph models:"] * bool(self.recovery)
        lines += [f"  {'✓' if one.identified else '!'} {self._loss(one)}" for one in self.recovery]
        lines.append(
            "Whether those who leave are like those who stay, given what was seen, no table tells."
        )
        return "\n".join(lines)

    def _loss(self, one: Recovery) -> str:
        """Says what identifies a loss, and how many visits lean on that."""
        keys = self.panel.unrolled().keys
        visits = sum(key == keys[indicator_of(one.column)] for key in keys.values())
        shared = f" Its mechanism is that of {visits} visits, of which this one tells most."
        return one.sentence + shared * (visits > 1)

    def _estimand(self) -> str:
        assert self.effect is not None
        treatment, outcome = self.effect
        if not len(self.families):
            return f"By the graph {treatment} has no effect on {outcome} at any visit."
        needs = f"It needs {listed(list(self.families['family']))}."
        if self.confounded:
            return (
                f"The hidden cause {listed(list(self.confounded))} leads to {treatment} itself, "
                f"so that the graph does not identify its effect on {outcome} by the g-formula: "
                f"what the hidden cause does is told by the shape of the model. {needs}"
            )
        why = "every cause in it is a column"
        if self.panel.template.latent:
            why = f"no hidden cause leads to {treatment} itself"
        return (
            f"The effect of {treatment} at all visits on {outcome} is identified by the g-formula "
            f"if the graph is right: {why}. {needs}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        tables = ("visits", "families", "regions")
        return dict(
            jsonable(
                {
                    "ok": self.ok,
                    "people": self.people,
                    "panel": self.panel.to_dict(),
                    "effect": self.effect,
                    "uncovered": self.uncovered,
                    "losses": [
                        vars(one) | {"identified": one.identified} for one in self.recovery
                    ],
                    "confounded": self.confounded,
                    **{name: getattr(self, name).to_dict("records") for name in tables},
                    "settings": self.settings,
                }
            )
        )

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        state = "ok" if self.ok else f"not guaranteed: {', '.join(self.uncovered)}"
        return f"PanelReport({self.people} people, {len(self.families)} families, {state})"

    def _repr_html_(self) -> str:
        facts = {"table": self.panel.summary, "people": f"{self.people:,}"}
        shown = self.families[["family", "visits", "whole", "status", "sentence"]]
        title = "What the holes leave identified, over time"
        return card(title, facts, {"": shown}, state="good" if self.ok else "bad")


def check_over_time(
    frame: pd.DataFrame,
    template: Template,
    effect: tuple[str, str] | None,
    id: str,
    time: str,
    kinds: Kinds,
    settings: CheckSettings | Mapping[str, object] | None = None,
    varying: Sequence[str] = (),
) -> PanelReport:
    """Reports what the holes of a long table leave identified, before any fit."""
    panel, schema, wide = Panel.learn(frame, template, id, time, kinds, KindRules(), varying)
    return check_panel(panel, schema, wide, effect, settings)


def check_panel(
    panel: Panel,
    schema: Schema,
    wide: pd.DataFrame,
    effect: tuple[str, str] | None = None,
    settings: CheckSettings | Mapping[str, object] | None = None,
) -> PanelReport:
    """Reports what the holes of wide rows leave identified.

    Arguments:
        panel: How they were read.
        schema: Their codecs.
        wide: A row a person.
        effect: (treatment, outcome): two columns over time, or one measured once and an outcome.
        settings: `CheckSettings`, or changes by name.
    """
    if isinstance(settings, CheckSettings):
        chosen = settings
    else:
        chosen = change(CheckSettings(), settings or {})
    graph = panel.graph(dict(zip(schema.nodes, schema.domains, strict=True)))
    table = IncompleteTable.read(wide, graph.nodes, schema)
    stacks = _Stacks(panel, table, graph, wide)
    needed = None if effect is None else _needed(panel, graph, effect)
    lines, found = [], list[pd.DataFrame]()
    for key, nodes in stacks.families.items():
        if needed is None or needed.intersection(nodes):
            line, regions = stacks.look(key, nodes, chosen)
            lines.append(line)
            found.append(regions)
    columns = ["family", "column", "visits", "rows", "shown", "whole", "share whole"]
    columns += ["few at", "status", "sentence"]
    regions = pd.concat(found, ignore_index=True) if found else pd.DataFrame()
    families = pd.DataFrame(lines, columns=columns)
    said = None if effect is None else (effect[0], effect[1])
    recovery = _losses(stacks)
    confounded = () if effect is None else _led_to(panel, graph, effect[0])
    beside = stacks.visits(), families, regions, chosen, recovery, confounded
    return PanelReport(panel, said, len(wide), *beside)


def _losses(stacks: _Stacks) -> tuple[Recovery, ...]:
    """Returns what identifies the law of each loss, a line a mechanism.

    Visits that share a mechanism have one slope, so that any of them tells it for all; a loss that
    is ignorable at some visits only is what the others say.
    """
    order, found = ("full law", "shadow", "shape", "ignorable"), dict[str, Recovery]()
    for one in losses_identified(stacks.graph, stacks.observed):
        key = stacks.unrolled.keys[indicator_of(one.column)]
        if key not in found or order.index(one.by) < order.index(found[key].by):
            found[key] = one
    return tuple(found.values())


def _led_to(panel: Panel, graph: CausalGraph, treatment: str) -> tuple[str, ...]:
    """Returns the hidden causes that lead to a treatment at some visit by themselves."""
    nodes = panel.at(treatment) if treatment in panel.template.varying else [treatment]
    hidden = {name for node in nodes for name in graph.parents_of(node)}
    return tuple(name for name in panel.template.latent if name in hidden)


def _needed(panel: Panel, graph: CausalGraph, effect: tuple[str, str]) -> set[str]:
    """Returns the nodes whose families a regime's effect on an outcome needs."""
    if isinstance(effect, str) or len(effect) != 2 or effect[0] == effect[1]:
        raise InputError(
            f"an effect is a pair (treatment, outcome) of two columns; got {effect!r}.",
            about="effect",
        )
    ends = []
    for name in effect:
        panel.refuse_unknown(name)
        nodes = panel.at(name) if name in panel.template.varying else [name]
        ends.append({graph.index(node) for node in nodes})
    treated, outcomes = ends
    if effect[1] not in panel.events and effect[1] in panel.template.varying:
        outcomes = {max(outcomes)}
    alone = graph.without_parents(treated)
    if not alone.descendants(treated) & outcomes:
        return set()
    return {graph.nodes[i] for i in alone.ancestral_closure(outcomes) - treated}


class _Stacks:
    """The families of a template, with the rows of all visits that share one below one another."""

    def __init__(
        self, panel: Panel, table: IncompleteTable, graph: CausalGraph, wide: pd.DataFrame
    ) -> None:
        self.panel, self.table, self.graph = panel, table, graph
        self.unrolled: Unrolled = panel.unrolled()
        self.place = {name: j for j, name in enumerate(table.nodes)}
        self.observed = table.observed.numpy()
        self.values = np.where(self.observed, table.raw, np.nan)
        self.counted = panel.there(wide)
        """Of whom a cell could be there, for each node of the visits."""
        self.visit_of = {
            at_visit(name, visit): k
            for k, visit in enumerate(panel.visits)
            for name in panel.template.varying
        }
        self.families: dict[str, list[str]] = {}
        for name in (*panel.template.once, *panel.template.varying):
            for node in panel.at(name) if name in panel.template.varying else [name]:
                self.families.setdefault(self.unrolled.keys[node], []).append(node)
        shown = np.zeros((len(self.values), len(panel.visits)), dtype=bool)
        for node, k in self.visit_of.items():
            if node in self.place:
                shown[:, k] |= self.observed[:, self.place[node]]
        self.there = np.cumsum(shown[:, ::-1], axis=1)[:, ::-1] > 0
        """(N, visits) who is seen at a visit or later"""

    def visits(self) -> pd.DataFrame:
        """Returns a line a visit."""
        lines = []
        for k, visit in enumerate(self.panel.visits):
            nodes = [n for n, at in self.visit_of.items() if at == k and n in self.place]
            there, later = self.there[:, k], self.there[:, k + 1 : k + 2].any(1)
            cells = [self.observed[self.counted[n], self.place[n]] for n in nodes]
            share = float(np.concatenate(cells).mean()) if there.any() and nodes else 1.0
            holes = 1.0 - share
            lines.append((visit, int(there.sum()), holes, int((there & ~later).sum())))
        return pd.DataFrame(lines, columns=["visit", "there", "share of holes", "seen last"])

    def look(
        self, key: str, nodes: Sequence[str], settings: CheckSettings
    ) -> tuple[tuple[object, ...], pd.DataFrame]:
        """Returns the line of a family, and where it is not seen, or seen least."""
        people = [self._people(node) for node in nodes]
        causes = self.unrolled.causes.get(nodes[0])
        own = self._title(key, nodes)
        stacked = self._stacked(own, nodes, people)
        names = tuple(column.name for column in stacked)
        graph = CausalGraph(names, (*((),) * (len(names) - 1), tuple(range(len(names) - 1))))
        shown = np.concatenate(
            [self.observed[who, self.place[n]] for n, who in zip(nodes, people, strict=True)]
        )
        whole = [self._whole(node)[who] for node, who in zip(nodes, people, strict=True)]
        every = np.concatenate(whole)
        extra = self._beside(names, nodes, people) if causes is not None else []
        columns = [
            column
            for column in (*stacked, *extra)
            if len(np.unique(column.values[column.observed])) > 1
        ]
        axes = [axis for axis in (Axis(c, settings.regions) for c in columns) if len(axis)]
        members = [frozenset(range(len(names)))]
        search = Search(every[:, None], [own], members, axes, settings.regions)
        flagged = unrevealed_regions(search)[0]
        regions: list[Region] = flagged
        if not flagged and not every.all():
            regions = thinnest_regions(search, 0, settings.telling.thin_places)
        few = [
            n for n, rows in zip(nodes, whole, strict=True) if rows.sum() < settings.regions.few
        ]
        sentence = self._sentence(graph, own, nodes, every, few, whole)
        if flagged:
            sentence = uncovered_sentence(graph, flagged)
        elif any(region.thin for region in regions):
            sentence += " But " + region_sentence(graph, next(r for r in regions if r.thin))
        visits = [self.panel.visits[self.visit_of[n]] for n in nodes if n in self.visit_of]
        column = nodes[0] if nodes[0] not in self.visit_of else nodes[0].rpartition("[")[0]
        counts = len(every), int(shown.sum()), int(every.sum()), float(every.mean())
        at = [self.panel.visits[self.visit_of[n]] for n in few if n in self.visit_of]
        status = "uncovered" if flagged else "covered"
        line = (own, column, tuple(visits), *counts, tuple(at), status, sentence)
        return line, region_table(graph, regions)

    def _people(self, node: str) -> np.ndarray:
        """Returns the numbers of those who are there at the visit of a node."""
        if node not in self.visit_of:
            return np.arange(len(self.values))
        return np.flatnonzero(self.there[:, self.visit_of[node]])

    def _title(self, key: str, nodes: Sequence[str]) -> str:
        """Returns what a family is called: L[t], or L[0] where one visit has it alone."""
        column = nodes[0].rpartition("[")[0]
        if nodes[0] not in self.visit_of or len(nodes) == 1:
            return nodes[0]
        return f"{column}[t]" if key == f"{column}[t]" else f"{column}[t] early on"

    def _whole(self, node: str) -> np.ndarray:
        """Says who shows a node with all that it depends on, (N,)."""
        names = (node, *self._shown_parents(node))
        return np.asarray(self.observed[:, [self.place[name] for name in names]].all(1))

    def _shown_parents(self, node: str) -> list[str]:
        """Returns the causes of a node that are columns."""
        hidden = self.panel.template.latent
        return [name for name in self.graph.parents_of(node) if name not in hidden]

    def _stacked(
        self, own: str, nodes: Sequence[str], people: Sequence[np.ndarray]
    ) -> list[Column]:
        """Returns what the mechanism reads at all visits of a family, and the column itself."""
        reads: list[tuple[str, list[Read]]] = []
        causes = self.unrolled.causes.get(nodes[0])
        if causes is None:
            parents = self._shown_parents(nodes[0])
            reads = [(name, [Read(name, "value", (name,))]) for name in parents]
        else:
            for cause in (c for c in causes if c.name not in self.panel.template.latent):
                each = [self.unrolled.causes[node][cause] for node in nodes]
                alone = len(nodes) == 1 and not cause.history
                reads.append((each[0].nodes[0] if alone else _written(cause, self.panel), each))
        reads.append((own, [Read(node, "value", (node,)) for node in nodes]))
        found = []
        for place, (name, each) in enumerate(reads):
            parts = [self._values(read)[who] for read, who in zip(each, people, strict=True)]
            value = each[0].function == "value"
            codec = self.table.schema.columns[self.place[each[0].nodes[0]]] if value else None
            found.append(column_of(name, np.concatenate(parts), codec, place))
        return found

    def _values(self, read: Read) -> np.ndarray:
        """Returns what is read of each person, NaN where a part of it is hidden."""
        values = self.values[:, [self.place[node] for node in read.nodes]]
        if read.function == "value":
            return np.asarray(values[:, -1])
        hidden = np.isnan(values).any(1)
        if read.function == "mean":
            return np.asarray(values.mean(1))
        on = values > 0
        if read.function == "since":
            found = np.cumprod(~on[:, ::-1], axis=1).sum(1)
        else:
            found = on.any(1) if read.function == "ever" else on.sum(1)
        return np.where(hidden, np.nan, found)

    def _beside(
        self, names: Sequence[str], nodes: Sequence[str], people: Sequence[np.ndarray]
    ) -> list[Column]:
        """Returns columns that may say where a family is not seen: the visit, and baseline."""
        visits = [
            np.full(len(who), float(self.panel.visits[self.visit_of[node]]))
            for node, who in zip(nodes, people, strict=True)
        ]
        found = []
        if self.panel.time not in names:
            found.append(column_of(self.panel.time, np.concatenate(visits), None, None))
        for name in self.panel.template.once:
            if name in self.place and name not in names:
                parts = [self.values[who, self.place[name]] for who in people]
                codec = self.table.schema.columns[self.place[name]]
                found.append(column_of(name, np.concatenate(parts), codec, None))
        return found

    def _sentence(
        self,
        graph: CausalGraph,
        own: str,
        nodes: Sequence[str],
        every: np.ndarray,
        few: Sequence[str],
        whole: Sequence[np.ndarray],
    ) -> str:
        """Returns what to say of a family in which nothing was found."""
        at = f" at {len(nodes)} visits" if len(nodes) > 1 else ""
        said = (
            f"{family_names(graph, own)}{at}: seen whole in {int(every.sum()):,} of "
            f"{len(every):,} rows ({percent(float(every.mean()))})."
        )
        if not few or len(nodes) == 1:
            return said
        counts = dict(zip(nodes, (int(rows.sum()) for rows in whole), strict=True))
        shown = listed([f"{self.panel.visits[self.visit_of[n]]:g} ({counts[n]})" for n in few])
        return f"{said} Few at {self.panel.time} {shown}: there the other visits speak for it."


def _written(cause: Cause, panel: Panel) -> str:
    """Returns a cause as the template has it; the clock by the name of its column."""
    return panel.time if cause == Cause.now() else str(cause)
