r"""Panels: a long table, one row a person and visit, as wide rows, one a person.

    id  week  L    A            id   L[0]  A[0]  L[4]  A[4]
    1   0     1.2  0     →      1    1.2   0     0.7   1
    1   4     0.7  1            2    0.4   1
    2   0     0.4  1

A visit is a value of the time column, and a lag is one visit. What a person's table does not have,
because they came late, left early or missed a visit, is a hole: barren where nothing later was
seen, hidden where something was. So unequal follow-up needs nothing of the likelihood.

All visits of a column share one codec, learned from all of its cells: a mechanism that serves
several visits would else mean another thing at each of them.

After an event a person has no cells, and a cell that is there is refused. Who is seen later has
not had it before: such holes of an event are filled with its absence. Of several events at one
visit, the one that the graph names first comes first, and who has had it is not at risk of others.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from misscnf.data.cells import Label, listed, plain, row_label
from misscnf.data.codecs import Column, Fixed, Levels, latent_column
from misscnf.data.domains import Binary, Categorical, Count, Domain, Ordinal, Semicontinuous
from misscnf.data.kinds import KindRules, Kinds, Note, choose_columns, read_requests
from misscnf.data.scales import Unit
from misscnf.data.table import Schema
from misscnf.errors import InputError
from misscnf.graph import CausalGraph, GraphLike
from misscnf.graph.dag import read_parts
from misscnf.graph.histories import Feature, Reading
from misscnf.graph.indicators import column_of
from misscnf.graph.latents import Latent, read_latent
from misscnf.graph.template import Read, Template, Unrolled, at_visit

__all__ = ["Panel", "read_template"]

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class Panel:
    """How long tables and wide rows go together."""

    template: Template
    id: str
    """The column that says who."""
    time: str
    """The column that says when."""
    visits: tuple[float, ...]
    """Its values, in their order."""
    events: Mapping[str, tuple[Label, Label]] = field(default_factory=dict)
    """Columns after which nothing is measured, with what they say before and at the event."""
    left_out: tuple[str, ...] = ()
    """Nodes that no row shows, such as the first visits of an outcome that is measured later."""
    unshown: tuple[str, ...] = ()
    """Nodes that no row shows, and that something shown depends on."""
    once: tuple[str, ...] = ()
    """Columns that the graph has at every visit, and that were found not to vary in a person."""

    @staticmethod
    def learn(
        frame: pd.DataFrame,
        template: Template,
        id: str,
        time: str,
        kinds: Kinds = None,
        rules: KindRules | None = None,
        varying: Sequence[str] = (),
    ) -> tuple[Panel, Schema, pd.DataFrame]:
        """Learns visits, codecs and events from a long table, and returns its wide rows too.

        A column that the graph has at every visit, and that does not vary within a person, is
        taken as measured once, unless it is among those that are said to be varying.
        """
        _check_columns(frame, template, id, time)
        template, once = _recognised(frame, template, id, kinds, varying)
        visits = tuple(map(_number, np.unique(_times(frame, time))))
        bare = Panel(template, id, time, visits, once=once)
        wide = bare._pivoted(frame)
        names = (*template.once, *template.varying)
        asked = read_requests(kinds, names, list(frame.columns))
        cells = [wide[name] for name in template.once]
        cells += [frame[name] for name in template.varying]
        columns, notes = choose_columns(cells, names, kinds, list(frame.columns), rules)
        known = {c.name: (c, note) for c, note in zip(columns, notes, strict=True)}
        events: dict[str, tuple[Label, Label]] = {}
        for name in (name for name in names if name in asked and asked[name].kind == "event"):
            codec = known[name][0]
            assert isinstance(codec, Levels)
            bare._check_event(name)
            events[name] = (codec.levels[0], codec.levels[1])
        if events and template.losses:
            raise InputError(
                f"the graph has {template.losses[0]}[t] and the event {next(iter(events))!r}, and "
                f"who left is not known to be without it, so that nothing says which of their "
                f"later visits were lost; leave out the arrows into {template.losses[0]}[t]."
            )
        wide = replace(bare, events=events)._with_events(wide, frame)
        left_out, unshown = bare._never_seen(wide)
        left_out += bare._never_lost(wide, left_out, unshown)
        panel = replace(bare, events=events, left_out=left_out, unshown=unshown)
        wide = wide.drop(columns=list(panel.left_out), errors="ignore")
        return panel, panel._schema(known, wide), wide

    def unrolled(self) -> Unrolled:
        """Returns the template over the visits."""
        return self.template.unroll(self.visits, self.left_out, self.unshown)

    def graph(self, domains: Mapping[str, Domain]) -> CausalGraph:
        """Returns the unrolled graph, with what mechanisms read of histories.

        Arguments:
            domains: What the values of each node can be.
        """
        unrolled = self.unrolled()
        hidden = self.template.latent
        graph = CausalGraph.from_edges(unrolled.edges, unrolled.nodes, latent=hidden)
        readings = {}
        for name, reads in unrolled.reads.items():
            node, place = graph.index(name), {p: k for k, p in enumerate(graph.parents_of(name))}
            readings[node] = Reading(
                tuple(
                    Feature(
                        read.name,
                        read.function,
                        tuple(place[p] for p in read.nodes),
                        *self._numbers(read, domains[read.nodes[0]]),
                    )
                    for read in reads
                )
            )
        return graph.with_readings(readings)

    def _numbers(self, read: Read, domain: Domain) -> tuple[float, float]:
        """Returns location and scale of a history; refuses one that its column does not have."""
        if read.function == "value":
            return 0.0, 1.0
        fits, wanted = isinstance(domain, Binary | Count), "columns of two levels, or of counts"
        if read.function == "mean":
            fits = not isinstance(domain, Ordinal | Categorical)
            wanted = "numbers, or for columns of two levels"
        if not fits:
            raise InputError(
                f"the graph over time has {read.name}, and {read.nodes[0]} is {domain.kind}; "
                f"{read.function} is for {wanted}."
            )
        if read.function == "mean":
            if isinstance(domain, Binary | Count | Semicontinuous):
                return domain.location, domain.scale
            return 0.0, 1.0
        middle = len(self.visits) / 2.0  # of numbers of visits, spread evenly
        return (0.0, 1.0) if read.function == "ever" else (middle, middle / 3.0**0.5)

    @property
    def summary(self) -> str:
        """Says what was recognised, in a sentence."""
        varying, baseline = listed(self.template.varying), listed(self.template.once)
        once = f"; once a person: {baseline}" if baseline else ""
        after = f"; events: {listed(self.events)}" if self.events else ""
        if self.template.latent:
            after += f"; hidden, one a person: {listed(self.template.latent)}"
        if self.template.losses:
            after += f"; modelled losses: {listed([column_of(n) for n in self.template.losses])}"
        ends = f"{self.time} {self.visits[0]:g} to {self.visits[-1]:g}"
        said = f"{len(self.visits)} visits ({ends}); at every visit: {varying}{once}{after}."
        if self.once:
            do, them = ("do", "them") if len(self.once) > 1 else ("does", "it")
            said += (
                f" {listed(self.once)} {do} not vary within a person: measured once "
                f"(varying={list(self.once)} has {them} at every visit)."
            )
        return said

    def described(self, kinds: pd.DataFrame) -> pd.DataFrame:
        """Returns the table of kinds of the nodes with a line a column, holes of all visits."""
        lines = []
        for name in (*self.template.baseline, *self.template.at_visits):
            nodes = self.at(name) if name in self.template.at_visits else [name]
            own = kinds[kinds["column"].isin(nodes)]
            lines.append(own.iloc[:1].assign(column=name, holes=own["holes"].sum()))
        return pd.concat(lines, ignore_index=True)

    def there(self, wide: pd.DataFrame) -> dict[str, np.ndarray]:
        """Says of whom a cell could be there, (N,) for each node of the visits.

        They are people who show something at this visit or at a later one. Who has left is not
        among them, nor is who has had an event; of several events at one visit, none is asked of
        who has had another before it.
        """
        seen = np.stack([self._shown(wide, visit) for visit in self.visits], axis=1)
        until = np.cumsum(seen[:, ::-1], axis=1)[:, ::-1] > 0
        found = {}
        for k, visit in enumerate(self.visits):
            alive = until[:, k]
            for name in self.template.varying:
                node = at_visit(name, visit)
                if node not in wide.columns:
                    continue
                found[node] = until[:, k]
                if name in self.events:
                    found[node] = alive
                    happened = wide[node] == self.events[name][1]
                    alive = alive & ~happened.to_numpy(dtype=bool, na_value=False)
        return found

    def refuse_unknown(self, name: str) -> None:
        """Refuses what is neither a column of the graph over time nor one at some visit."""
        known = (*self.template.baseline, *self.template.varying)
        nodes = {node for column in self.template.at_visits for node in self.at(column)}
        if name not in known and name not in nodes:
            first, last = self.visits[0], self.visits[-1]
            raise InputError(
                f"the graph over time has no column {name!r}; it has {listed(known, most=12)} (a "
                f"single visit is such as {at_visit(self.template.varying[0], last)!r}; they are "
                f"those from {self.time} {first:g} to {last:g})."
            )

    def is_long(self, frame: pd.DataFrame) -> bool:
        """Says whether a table has a row a visit."""
        return self.id in frame.columns and self.time in frame.columns

    def at(self, column: str) -> list[str]:
        """Returns the nodes of a column that is measured at every visit."""
        nodes = (at_visit(column, visit) for visit in self.visits)
        return [node for node in nodes if node not in self.left_out]

    def wide(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Returns the wide rows of a long table, by the visits of the fit."""
        _check_columns(frame, self.template, self.id, self.time, require_all=False)
        times = _times(frame, self.time)
        unknown = ~np.isin(times, self.visits)
        if unknown.any():
            row = int(unknown.argmax())
            raise InputError(
                f"the row labelled {row_label(frame.index, row)} has {self.time} = "
                f"{times[row]:g}, which is no visit of the fit; its visits are "
                f"{listed([f'{visit:g}' for visit in self.visits], most=20)}."
            )
        return self._with_events(self._pivoted(frame), frame).drop(
            columns=list(self.left_out), errors="ignore"
        )

    def _pivoted(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Returns a row a person, in the order in which they come."""
        _refuse_twice(frame, self.id, self.time)
        who, people = pd.factorize(frame[self.id])
        when = np.searchsorted(self.visits, _times(frame, self.time))
        index, found = pd.Index(people, name=self.id), {}
        for name in self.template.once:
            if name in frame.columns:
                found[name] = _once(frame, name, self.id).reindex(people)
        place = who * len(self.visits) + when
        for name in self.template.varying:
            if name not in frame.columns:
                continue
            cells = frame[name].set_axis(place)
            cells = cells.reindex(np.arange(len(people) * len(self.visits)))
            for k, visit in enumerate(self.visits):
                part = cells.iloc[k :: len(self.visits)]
                found[at_visit(name, visit)] = part.set_axis(index)
        if self.template.timed:
            found |= {
                at_visit(Template.clock, v): pd.Series(float(v), index=index) for v in self.visits
            }
        return pd.DataFrame(found, index=index)

    def _check_event(self, name: str) -> None:
        if name in self.template.baseline:
            raise InputError(
                f"{name!r} is asked to be an event, and the graph has it once a person; write "
                f"{name}[t]."
            )
        for child in self.template.varying:
            if any(cause.name == name for cause in self.template.of(child)):
                raise InputError(
                    f"the graph has an arrow from the event {name!r} to {child!r}, and nothing "
                    f"exists after an event, so that it changes no value; leave the arrow out."
                )

    def _with_events(self, wide: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
        """Refuses what is measured after an event; who is seen later has not had it before."""
        if not self.events:
            return wide
        seen = np.stack([self._shown(wide, visit) for visit in self.visits], axis=1)
        later = np.cumsum(seen[:, ::-1], axis=1)[:, ::-1] - seen > 0  # at some later visit
        filled = {}
        for k, visit in enumerate(self.visits):
            gone, by = np.zeros(len(wide), dtype=bool), ""  # by another event of this visit
            for name in [name for name in self.template.varying if name in self.events]:
                node, (before, happened) = at_visit(name, visit), self.events[name]
                if node not in wide.columns:
                    continue
                cells = wide[node]
                over = (cells == happened).to_numpy(dtype=bool, na_value=False)
                if (over & later[:, k]).any():
                    person = wide.index[int((over & later[:, k]).argmax())]
                    self._refuse_after(name, happened, frame, person, k)
                if (over & gone).any():
                    person = wide.index[int((over & gone).argmax())]
                    raise InputError(
                        f"{self.id} {person} has the events {by} and {name} at {self.time} "
                        f"{visit:g}, and nothing exists after the first; leave one of them out."
                    )
                gap = cells.isna().to_numpy() & later[:, k]
                cells = cells.where(~gap, before) if gap.any() else cells
                filled[node] = cells.where(~gone) if gone.any() else cells
                gone, by = gone | over, name
        return wide.assign(**filled)

    def _shown(self, wide: pd.DataFrame, visit: float) -> np.ndarray:
        """Says who has a cell at a visit, (N,)."""
        nodes = [at_visit(name, visit) for name in self.template.varying]
        found = wide[[n for n in nodes if n in wide.columns]].notna().any(axis=1)
        return found.to_numpy(dtype=bool)

    def _refuse_after(
        self, name: str, happened: Label, frame: pd.DataFrame, person: object, k: int
    ) -> None:
        """Names the first cell of a person that is measured after an event."""
        own = (frame[self.id] == person).to_numpy()
        rows = np.flatnonzero(own & (_times(frame, self.time) > self.visits[k]))
        columns = [c for c in (name, *self.template.varying) if c in frame.columns]
        for row in rows:
            for column in columns:
                cell = frame[column].iloc[row]
                if not pd.isna(cell):
                    again = column == name and cell == happened
                    what = "comes back" if again else f"is followed by {column} = {cell}"
                    raise InputError(
                        f"{self.id} {person} has the event {name} at {self.time} "
                        f"{self.visits[k]:g}, and it {what} in the row labelled "
                        f"{row_label(frame.index, int(row))}; nothing exists after an event: make "
                        f"later cells holes, or leave these rows out."
                    )

    def _never_seen(self, wide: pd.DataFrame) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Returns the nodes that no row shows: those on which nothing depends, and the others.

        The former say nothing.
        """
        blank = [node for node in wide.columns if not wide[node].notna().any()]
        whole = replace(self.template, losses=()).unroll(self.visits, unshown=blank)
        children: dict[str, set[str]] = {node: set() for node in whole.nodes}
        for cause, effect in whole.edges:
            children[cause].add(effect)
        found: set[str] = set()
        for node in reversed(whole.nodes):
            if children[node] <= found and node in blank:
                found.add(node)
        once = [name for name in self.template.once if name in found]
        if once:
            raise InputError(f"column {once[0]!r} has no value at all; leave it out of the graph.")
        left_out = tuple(node for node in whole.nodes if node in found)
        return left_out, tuple(node for node in blank if node not in found)

    def _never_lost(
        self, wide: pd.DataFrame, left_out: tuple[str, ...], unshown: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Returns the indicators that say nothing.

        They are those of visits at which nobody shows the column, which was not measured then, and
        those whose mechanism never loses a value. Without the latter, later visits may lack a
        cause, and so have another mechanism, which is asked again.
        """
        blank = {*left_out, *unshown}
        nodes = {
            (name, v): at_visit(name, v) for name in self.template.losses for v in self.visits
        }
        found = {node for node in nodes.values() if column_of(node) in blank}
        while True:
            keys = self.template.unroll(self.visits, {*left_out, *found}, unshown).keys
            there = [node for node in nodes.values() if node not in found]
            lost = {keys[node] for node in there if wide[column_of(node)].isna().any()}
            silent = {node for node in there if keys[node] not in lost}
            if not silent:
                break
            found |= silent
        for name in self.template.losses:
            if all(nodes[name, visit] in found for visit in self.visits):
                raise InputError(
                    f"the graph has the loss of {column_of(name)!r}, and no cell of that column "
                    f"is lost at a visit that shows it; leave {name}[t] out."
                )
        return tuple(node for node in nodes.values() if node in found)

    def _schema(self, known: Mapping[str, tuple[Column, Note]], wide: pd.DataFrame) -> Schema:
        """Returns the codecs of the wide rows: at all visits of a column, one."""
        pairs = dict(known)
        for name, classes in self.template.latent.items():
            pairs[name] = latent_column(name, classes), Note("nobody measures it", holes=len(wide))
        unit = Unit(float(np.mean(self.visits)), float(np.std(self.visits)) or 1.0)
        there = self.there(wide)
        for visit in self.visits:
            for name in self.template.varying:
                codec, note = known[name]
                node = at_visit(name, visit)
                if node in wide:
                    blank = wide[node].isna().to_numpy()
                    holes, after = (int((blank & at).sum()) for at in (there[node], ~there[node]))
                    counted = replace(note, holes=holes, after=after)
                    pairs[node] = replace(codec, name=node), counted  # type: ignore[type-var]
            lost = [n for loss in self.template.losses for n in [at_visit(loss, visit)]]
            lost = [n for n in lost if n not in self.left_out]
            cells = [wide[column_of(node)].isna() for node in lost]
            for codec, loss in zip(choose_columns(cells, lost, None)[0], lost, strict=True):
                of, _, _ = str(column_of(loss)).rpartition("[")
                pairs[loss] = codec, Note(f"whether {of} is lost")
            if self.template.timed:
                node = at_visit(Template.clock, visit)
                pairs[node] = Fixed(node, float(visit), unit), Note("the time of the visit")
        nodes = self.unrolled().nodes
        return Schema(tuple(pairs[n][0] for n in nodes), tuple(pairs[n][1] for n in nodes))

    def long(self, wide: pd.DataFrame, frame: pd.DataFrame | None = None) -> pd.DataFrame:
        """Returns wide rows as a long table.

        Arguments:
            wide: The rows, with the columns of all nodes.
            frame: A long table whose rows are wanted, with all its columns; every visit of every
                person up to their event where there is none.
        """
        if frame is not None:
            return self._filled(wide, frame)
        alive, parts = self._alive(wide), []
        for k, visit in enumerate(self.visits):
            names = [n for n in self.template.varying if at_visit(n, visit) in wide]
            part = wide[[*self._once_in(wide), *(at_visit(n, visit) for n in names)]]
            part = part.set_axis([*self._once_in(wide), *names], axis=1)
            part.insert(0, self.id, np.arange(len(wide)))
            part.insert(1, self.time, visit)
            parts.append(part[alive[:, k]].assign(**{"": k}))
        found = pd.concat(parts, ignore_index=True).sort_values([self.id, ""], kind="stable")
        return found.drop(columns="").reset_index(drop=True)

    def _once_in(self, wide: pd.DataFrame) -> list[str]:
        return [name for name in self.template.baseline if name in wide]

    def _filled(self, wide: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
        """Returns a long table with its holes filled from wide rows, up to the event of each."""
        who, _ = pd.factorize(frame[self.id])
        when = np.searchsorted(self.visits, _times(frame, self.time))
        alive = self._alive(wide)[who, when]
        found = {}
        for name in frame.columns:
            cells = frame[name]
            for k, visit in enumerate(self.visits):
                node, there = at_visit(name, visit), (when == k) & alive
                if name in self.template.baseline:
                    node, there = name, np.full(len(frame), k == 0)
                rows = np.flatnonzero(there & cells.isna().to_numpy())
                if node in wide and len(rows):
                    cells = cells.astype(object)
                    cells.iloc[rows] = wide[node].to_numpy(dtype=object)[who[rows]]
            found[name] = cells if cells is frame[name] else cells.infer_objects()
        return pd.DataFrame(found, index=frame.index)

    def _alive(self, wide: pd.DataFrame) -> np.ndarray:
        """Says who has had no event before each visit, (N, visits)."""
        found = np.ones((len(wide), len(self.visits)), dtype=bool)
        for name, (_, happened) in self.events.items():
            for k, visit in enumerate(self.visits[:-1]):
                node = at_visit(name, visit)
                if node in wide:
                    found[:, k + 1 :] &= (wide[node] != happened).to_numpy()[:, None]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        events = {name: list(levels) for name, levels in self.events.items()}
        about = {"id": self.id, "time": self.time, "visits": list(self.visits)}
        blank = {"left out": list(self.left_out), "unshown": list(self.unshown)}
        blank["once"] = list(self.once)
        return {**about, "template": self.template.to_dict(), "events": events, **blank}

    @staticmethod
    def from_dict(entry: Mapping[str, Any]) -> Panel:
        """Reads what `to_dict` wrote."""
        return Panel(
            Template.from_dict(entry["template"]),
            entry["id"],
            entry["time"],
            tuple(entry["visits"]),
            {name: (levels[0], levels[1]) for name, levels in entry["events"].items()},
            tuple(entry["left out"]),
            tuple(entry.get("unshown", ())),
            tuple(entry.get("once", ())),
        )


def read_template(graph: GraphLike | None, time: str, latent: Latent | None = None) -> Template:
    """Reads a graph over time, in any form that `CausalGraph.read` takes.

    Arguments:
        graph: The graph.
        time: The column that says when; `time` means it too.
        latent: Hidden causes beside those that the graph declares, one a person.
    """
    parts = read_parts(graph) if graph is not None else None
    if parts is None or parts.blocks:
        raise InputError(
            "a table over time needs a graph over time, such as 'L[t-1] -> A[t]', without blocks; "
            "columns measured once need no arrows among them where effects are averaged over "
            "population='rows'."
        )
    hidden = {**parts.latent, **read_latent(latent)}
    return Template.read(parts.nodes, parts.edges, time, hidden)


def _number(value: float) -> float:
    """Returns a whole number as an int, so that visits are called as people write them."""
    return int(value) if float(value).is_integer() else float(value)


def _check_columns(
    frame: pd.DataFrame,
    template: Template,
    id: str,
    time: str,
    *,
    require_all: bool = True,
) -> None:
    """Refuses a table without the columns that say who and when, or that the graph names."""
    there = list(frame.columns)
    for column, what in ((id, "id"), (time, "time")):
        if column not in there:
            raise InputError(
                f"{what} is {column!r}, and the table has no such column; its columns are "
                f"{listed(there)}."
            )
        holes = frame[column].isna().to_numpy()
        if holes.any():
            row = row_label(frame.index, int(holes.argmax()))
            raise InputError(
                f"column {column!r} says {'who' if what == 'id' else 'when'}, and has a hole in "
                f"the row labelled {row}; fill it, or leave the row out."
            )
    for name in template.latent:
        if name in there:
            raise InputError(
                f"the table has a column {name!r}, which is given as a node that nobody measures "
                f"(latent); leave it out of latent, or rename or drop that column."
            )
    for name in (*template.once, *template.varying):
        if name in (id, time):
            raise InputError(
                f"{name!r} says {'who' if name == id else 'when'}, and is a node of the graph "
                f"too; leave it out (the time of a visit is called {Template.clock!r} there)."
            )
        if require_all and name not in there:
            raise InputError(
                f"the graph has {name!r}, and the table has no such column; its columns are "
                f"{listed(there)}."
            )


def _times(frame: pd.DataFrame, time: str) -> np.ndarray:
    """Returns the time of each row as a number."""
    numbers = pd.to_numeric(frame[time], errors="coerce").to_numpy(dtype=np.float64)
    odd = ~np.isfinite(numbers)
    if odd.any() or pd.api.types.is_datetime64_any_dtype(frame[time]):
        row = int(odd.argmax())
        raise InputError(
            f"column {time!r} says when, and has {frame[time].iloc[row]!r} in the row labelled "
            f"{row_label(frame.index, row)}; visits are numbers, such as 0, 1, 2 or weeks."
        )
    return numbers


def _refuse_twice(frame: pd.DataFrame, id: str, time: str) -> None:
    twice = frame.duplicated([id, time]).to_numpy()
    if twice.any():
        row = int(twice.argmax())
        person, when = frame[id].iloc[row], frame[time].iloc[row]
        raise InputError(
            f"{id} {person} has two rows at {time} {when}, the second labelled "
            f"{row_label(frame.index, row)}; leave one of them out."
        )


def _recognised(
    frame: pd.DataFrame, template: Template, id: str, kinds: Kinds, varying: Sequence[str]
) -> tuple[Template, tuple[str, ...]]:
    """Returns the template with columns that do not vary in a person measured once, and these."""
    if isinstance(varying, str) or not set(varying) <= set(template.varying):
        raise InputError(
            f"varying is a list of columns that the graph has at every visit, "
            f"such as ['{template.varying[0]}']; got {varying!r}."
        )
    names = (*template.baseline, *template.varying)
    asked = read_requests(kinds, names, list(frame.columns))
    free = [
        name
        for name in template.varying
        if name not in varying and not (name in asked and asked[name].kind == "event")
    ]
    people = frame.groupby(id, sort=False, observed=True)[free]
    most, shown = people.nunique(dropna=True).max(), people.count().max()
    constant = {name for name in free if most[name] <= 1 and shown[name] > 1}
    kept = set[str]()
    while kept != constant:  # until nothing that varies is a cause of what does not
        kept, constant = constant, {n for n in constant if template.may_be_once(n, constant)}
    if len(constant) == len(template.varying):
        return template, ()
    return template.measured_once(constant), tuple(n for n in template.varying if n in constant)


def _once(frame: pd.DataFrame, name: str, id: str) -> pd.Series:
    """Returns what each person's rows say of a column that does not change."""
    people = frame[name].groupby(frame[id], sort=False, observed=True)
    many = people.nunique(dropna=True) > 1
    if many.any():
        person = many.index[int(many.to_numpy().argmax())]
        values = [plain(v) for v in pd.unique(frame.loc[frame[id] == person, name].dropna())]
        raise InputError(
            f"the graph has {name!r} once a person, and {id} {person} has {listed(values)}; write "
            f"{name}[t] in the graph if it changes from visit to visit."
        )
    return people.first()
