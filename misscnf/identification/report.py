r"""The positivity report: what the holes of a table leave identified, before any fit.

`Report` holds what was found and tells it in several forms: `summary()` for people, DataFrames,
`to_dict()` for programs and `plot()` for the eye. `ok` is True if nothing speaks against

    p(family of i seen whole | x) > 0    for almost every x,

for each node i that is asked about (paper, Definition "Positivity conditions"). That is never
proved: it is a statement on regions that hold enough rows to be seen.

Its tables have a line a family and a line a region. A region keeps its counts: k of m rows show
the family whole, the chance k/m with its bounds, and what share of the rows it holds. A bound is
one-sided, at 95 %; where a column that makes the region has holes and is not in the family, it
takes in how these change the chance (`regions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from misscnf.data.files import jsonable
from misscnf.display.notebook import card
from misscnf.graph import CausalGraph
from misscnf.identification.families import Patterns, whole_families
from misscnf.identification.independences import Contradiction
from misscnf.identification.little import LittleTest
from misscnf.identification.loss import Explained
from misscnf.identification.pictures import Curve
from misscnf.identification.regions import Condition, Region
from misscnf.identification.settings import CheckSettings
from misscnf.identification.words import (
    covered_sentence,
    edges,
    region_sentence,
    uncovered_sentence,
    where,
    write_summary,
)
from misscnf.options import to_dict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Report", "StructuralHole", "node_table", "region_table"]


@dataclass(frozen=True)
class StructuralHole:
    """A column that is missing exactly where another has certain values."""

    column: str
    where: str
    rows: int
    """Rows there, all without the column."""
    holes_elsewhere: float
    """Share of holes in the other rows."""
    question: str
    """What to ask whoever knows the table."""


@dataclass(frozen=True, eq=False)
class Report:
    """What the holes of a table leave identified. Made by `misscnf.check`."""

    graph: CausalGraph
    effect: tuple[str, str] | None
    """(treatment, outcome), if one effect was asked about."""
    needed: tuple[str, ...]
    """The nodes whose families are reported: all, or those that the effect needs."""
    rows: int
    nodes: pd.DataFrame
    """A line a family: node, parents, rows that show them, status and a sentence."""
    patterns: pd.DataFrame
    """A line a pattern of holes: what it shows, its rows and the families it shows whole."""
    monotone: bool
    """Whether the patterns are nested."""
    usage: pd.DataFrame
    """Rows and cells that complete-case analysis would use, and those that misscnf does."""
    rows_to_tell: int
    """A region with fewer rows than these cannot be told from chance."""
    regions: pd.DataFrame
    """A line a region, flagged ones first, each with its counts and bounds."""
    full_pattern_positivity: bool
    """Whether complete rows are seen, and no region without them was found."""
    full_pattern_sentence: str
    consequences: pd.DataFrame
    """A line a question: the families it needs, and those of them that are not covered."""
    loss: tuple[Explained, ...]
    """What goes with the holes of each column."""
    loss_p_value: float
    """Smallest corrected p-value of all tests of holes against columns."""
    little: LittleTest | None
    """Little's test that values are lost completely at random, if it could be made."""
    structural_holes: tuple[StructuralHole, ...]
    contradictions: tuple[Contradiction, ...]
    """Independences of the graph that the rows contradict strongly."""
    independences_tested: int
    ignored: tuple[str, ...]
    """Columns outside the graph that could not be used to explain holes."""
    curves: tuple[Curve, ...]
    """How often families are whole along the columns of their regions, to draw."""
    settings: CheckSettings
    """What it was made with."""

    @property
    def ok(self) -> bool:
        """Whether every family asked about is covered, as far as these rows tell."""
        return bool((self.nodes["status"] == "covered").all())

    @property
    def family_positivity(self) -> bool:
        """Another name of `ok`: causal-family positivity is not contradicted by these rows."""
        return self.ok

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The nodes whose families are not covered."""
        return tuple(self.nodes.loc[self.nodes["status"] != "covered", "node"])

    def summary(self) -> str:
        """Returns the report as text."""
        return write_summary(self)

    def plot(self) -> Figure:
        """Returns a figure of the patterns, the families and their regions."""
        # Here, since matplotlib takes long to load and most reports are read.
        from misscnf.identification.pictures import draw_report

        return draw_report(self)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return {
            "ok": self.ok,
            "effect": None if self.effect is None else list(self.effect),
            "needed": list(self.needed),
            "rows": self.rows,
            "rows_to_tell": self.rows_to_tell,
            "graph": self.graph.to_dict(),
            "blocks": {name: list(members) for name, members in self.graph.blocks.items()},
            "family_positivity": self.family_positivity,
            "full_pattern_positivity": self.full_pattern_positivity,
            "full_pattern": self.full_pattern_sentence,
            "monotone": self.monotone,
            "nodes": _records(self.nodes),
            "regions": _records(self.regions),
            "patterns": self._patterns_to_dict(),
            "usage": _records(self.usage),
            "consequences": _records(self.consequences),
            "loss": jsonable([asdict(line) for line in self.loss]),
            "loss_p_value": self.loss_p_value,
            "little": None if self.little is None else asdict(self.little),
            "structural_holes": jsonable([asdict(line) for line in self.structural_holes]),
            "contradictions": jsonable([asdict(line) for line in self.contradictions]),
            "independences_tested": self.independences_tested,
            "ignored": list(self.ignored),
            "settings": to_dict(self.settings),
        }

    def _patterns_to_dict(self) -> list[dict[str, Any]]:
        names = np.array(self.graph.nodes, dtype=object)
        shown = self.patterns[list(names)].to_numpy(dtype=bool)
        counts = self.patterns["row count"].tolist()
        return [
            {"observed": names[line].tolist(), "rows": n}
            for line, n in zip(shown, counts, strict=True)
        ]

    def __repr__(self) -> str:
        state = "ok" if self.ok else f"not guaranteed: {', '.join(self.uncovered)}"
        return f"Report({self.rows} rows, {len(self.nodes)} families, {state})"

    def _repr_html_(self) -> str:
        title, facts = self.glance()
        return card(title, facts, {"": self.families()}, state="good" if self.ok else "bad")

    def glance(self) -> tuple[str, dict[str, str]]:
        """Returns the report in a title and a few facts; `summary` has all of it."""
        asked = "all families" if self.effect is None else f"the effect {' → '.join(self.effect)}"
        state = "nothing in these rows speaks against it"
        if self.uncovered:
            state = f"not guaranteed for {', '.join(self.uncovered)}"
        facts = {
            "rows": f"{self.rows}, {self.usage['rows'].iloc[0]} of them complete",
            "patterns of holes": f"{len(self.patterns)}",
            "family positivity": state,
            "complete rows": self.full_pattern_sentence,
            "please ask": "\n".join(hole.question for hole in self.structural_holes),
        }
        title = f"What the holes leave identified: {asked}"
        return title, {name: told for name, told in facts.items() if told}

    def families(self) -> pd.DataFrame:
        """Returns what a person reads of `nodes`."""
        shown = self.nodes[["node", "parents", "rows whole", "status", "sentence"]]
        return shown.assign(parents=shown["parents"].map(", ".join))


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    columns = {str(name): jsonable(frame[name].tolist()) for name in frame.columns}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def node_table(
    graph: CausalGraph,
    patterns: Patterns,
    needed: Sequence[int],
    flagged: Sequence[Sequence[Region]],
    named: int,
) -> pd.DataFrame:
    """Returns a line for each family that is needed."""
    whole, total = whole_families(graph, patterns.observed), int(patterns.rows.sum())
    names = np.array(graph.nodes, dtype=object)
    nodes = [graph.nodes[i] for i in needed]
    rows = [int(patterns.rows[whole[:, i]].sum()) for i in needed]
    showing = [np.flatnonzero(whole[:, i]) for i in needed]
    return pd.DataFrame(
        {
            "node": nodes,
            "parents": [graph.parents_of(node) for node in nodes],
            "rows shown": [int(patterns.rows[patterns.observed[:, i]].sum()) for i in needed],
            "rows whole": rows,
            "share whole": [count / total for count in rows],
            "family positivity": [
                "not guaranteed" if regions else "nothing against it" for regions in flagged
            ],
            "patterns": [
                tuple(f"{{{', '.join(names[patterns.observed[p]])}}}" for p in found[:named])
                for found in showing
            ],
            "pattern count": [len(found) for found in showing],
            "status": [_status(regions) for regions in flagged],
            "sentence": [
                uncovered_sentence(graph, node, regions)
                if regions
                else covered_sentence(graph, node, count, total)
                for node, regions, count in zip(nodes, flagged, rows, strict=True)
            ],
        }
    )


def _status(regions: Sequence[Region]) -> str:
    if not regions:
        return "covered"
    if regions[0].conditions:
        return "uncovered in part"
    return "never whole" if regions[0].whole == 0 else "almost never whole"


def region_table(graph: CausalGraph, regions: Sequence[tuple[str, Region]]) -> pd.DataFrame:
    """Returns a line for each region, flagged ones first, then by their share."""
    order = sorted(regions, key=lambda pair: (not pair[1].flagged, -pair[1].share))
    nodes, found = [node for node, _ in order], [region for _, region in order]

    def counted(*fields: str) -> dict[str, list[Any]]:
        return {name: [getattr(region, name) for region in found] for name in fields}

    return pd.DataFrame(
        {
            "node": nodes,
            "family": [(node, *graph.parents_of(node)) for node in nodes],
            "where": [where(region.conditions) or "everywhere" for region in found],
            "conditions": [tuple(map(_condition, region.conditions)) for region in found],
            **counted("rows", "whole", "share"),
            "chance": [region.whole / region.rows if region.rows else 0.0 for region in found],
            **counted("lower", "upper", "elsewhere", "hidden", "luck", "flagged"),
            "sentence": [region_sentence(graph, node, region) for node, region in order],
        }
    )


def _condition(condition: Condition) -> dict[str, Any]:
    """Returns a condition as a dictionary: a column with its edges, or with its levels."""
    column, levels = condition.column, condition.stretch.levels
    if levels is not None:
        labels = column.labels or tuple(map(str, levels))
        return {"column": column.name, "levels": tuple(labels[k] for k in levels)}
    low, high = edges(condition)
    if column.labels is not None or column.whole_numbers:  # the ends themselves are inside
        low, high = condition.stretch.low, condition.stretch.high
    return {"column": column.name, "low": low, "high": high}
