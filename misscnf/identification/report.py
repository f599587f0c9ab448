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
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from misscnf.data.files import jsonable
from misscnf.display.notebook import card
from misscnf.graph import CausalGraph
from misscnf.identification.families import Patterns, whole_families
from misscnf.identification.hidden import Estimand
from misscnf.identification.independences import Contradiction, leaned_on
from misscnf.identification.little import LittleTest
from misscnf.identification.loss import Explained
from misscnf.identification.pictures import Curve
from misscnf.identification.recovery import Recovery
from misscnf.identification.regions import Region
from misscnf.identification.scan import Stretch
from misscnf.identification.settings import CheckSettings
from misscnf.identification.unlikely import Unlikely
from misscnf.identification.words import (
    covered_sentence,
    denied_sentence,
    edges,
    region_sentence,
    uncovered_sentence,
    where,
    write_summary,
)

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
    """What the holes of a table leave identified. Made by `misscnf.check`.

    Example:
        >>> import numpy as np
        >>> from misscnf import check
        >>> dose = np.random.default_rng(0).normal(size=200)
        >>> df = pd.DataFrame({"dose": dose, "days": 9 - 2 * dose})
        >>> df["days"] = df["days"].where(df["dose"] < 1)  # nobody with a high dose answered
        >>> report = check(df, "dose -> days")
        >>> report.nodes.set_index("node")["rows whole"].to_dict()
        {'dose': 200, 'days': 165}
    """

    graph: CausalGraph
    """The graph of the columns; beside hidden causes, how their law can be written."""
    effect: tuple[str, str] | None
    """(treatment, outcome), if one effect was asked about."""
    needed: tuple[str, ...]
    """The nodes whose families are reported: all, or those that the effect needs."""
    rows: int
    """All of them: what they show together is counted."""
    searched: int
    """In which regions, losses and independences were looked for: all, or some by chance."""
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
    """The same in words."""
    consequences: pd.DataFrame
    """A line a question: the families it needs, and those of them that are not covered."""
    loss: tuple[Explained, ...]
    """What goes with the holes of each column."""
    loss_p_value: float
    """Smallest corrected p-value of all tests of holes against columns."""
    little: LittleTest | None
    """Little's test that values are lost completely at random, if it could be made."""
    structural_holes: tuple[StructuralHole, ...]
    """Columns that are missing exactly where another has certain values."""
    contradictions: tuple[Contradiction, ...]
    """Independences of the graph that the rows contradict strongly."""
    independences_tested: int
    """How many were tested."""
    unlikely: tuple[Unlikely, ...]
    """Values that no law of their column makes likely."""
    ignored: tuple[str, ...]
    """Columns outside the graph that could not be used to explain holes."""
    curves: tuple[Curve, ...]
    """How often families are whole along the columns of their regions, to draw."""
    settings: CheckSettings
    """What it was made with."""
    recovery: tuple[Recovery, ...] = ()
    """What identifies each loss that is part of the graph."""
    reached: tuple[str, ...] = ()
    """Families that no row shows whole somewhere, and that an identified loss reaches there."""
    causes: CausalGraph | None = None
    """The graph with its hidden causes."""
    estimand: Estimand | None = None
    """What identifies the effect, where one was asked about and there are hidden causes."""

    @property
    def ok(self) -> bool:
        """Whether every family asked about is covered, and rows deny nothing the effect needs.

        Nor does the effect rest on the shape of the model alone, beside hidden causes.
        """
        known = self.estimand is None or self.estimand.by != "shape"
        return self.family_positivity and known and not self.denied

    @property
    def latent(self) -> dict[str, int | None]:
        """The hidden causes, with their numbers of classes; None for a number."""
        return {} if self.causes is None else self.causes.latent

    @property
    def family_positivity(self) -> bool:
        """Whether every family asked about is covered, as far as these rows tell."""
        return bool((self.nodes["status"] == "covered").all())

    @property
    def denied(self) -> tuple[Contradiction, ...]:
        """The contradictions that the asked effect leans on; none where no effect was asked."""
        return self.denied_over(rows=False)

    def denied_over(self, *, rows: bool) -> tuple[Contradiction, ...]:
        """Returns the same for an average over the rows of the table, or over the model's."""
        if self.effect is None or not set(self.effect) <= set(self.graph.nodes):
            return ()
        holed, found = {line.column for line in self.loss}, self.contradictions
        return tuple(leaned_on(self.graph, self.effect, found, holed=holed, rows=rows))

    @property
    def share_missing(self) -> float:
        """The share of the cells that are holes."""
        return 1.0 - int(self.usage["cells"].iloc[1]) / (self.rows * len(self.graph))

    @property
    def covered(self) -> tuple[str, ...]:
        """The nodes whose families are covered."""
        return tuple(self.nodes.loc[self.nodes["status"] == "covered", "node"])

    @property
    def uncovered(self) -> tuple[str, ...]:
        """The nodes whose families are not covered."""
        return tuple(self.nodes.loc[self.nodes["status"] != "covered", "node"])

    @property
    def thin(self) -> tuple[str, ...]:
        """A sentence for each place where a family that is needed is seen by few rows only."""
        return tuple(self.regions.loc[self.regions["thin"].astype(bool), "sentence"])

    @property
    def completely_at_random(self) -> bool | None:
        """False where these rows contradict loss completely at random; None if none can say."""
        p_value = None if self.little is None else self.little.p_value
        if p_value is None and not any(line.tested for line in self.loss):
            return None
        told = p_value is not None and p_value < self.settings.little.level
        return not (told or any(line.by for line in self.loss))

    @property
    def loss_outside(self) -> list[str]:
        """The columns outside the graph that losses go with, which a fit does not see."""
        names = [by.column for line in self.loss for by in line.by if by.kept]
        return [name for name in dict.fromkeys(names) if name not in self.graph.nodes]

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
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["full_pattern"] = found.pop("full_pattern_sentence")
        found["graph"] = (found.pop("causes") or self.graph).to_dict()
        found["latent"] = self.latent
        if self.estimand is not None:
            said = {"identified": self.estimand.identified, "sentence": self.estimand.sentence}
            found["estimand"] = {**asdict(self.estimand), **said}
        found["blocks"] = {name: list(members) for name, members in self.graph.blocks.items()}
        found["auxiliary"] = list(self.graph.auxiliary)
        found["patterns"] = [
            {
                "observed": [node for node in self.graph.nodes if line[node]],
                "rows": line["row count"],
            }
            for line in self.patterns.to_dict(orient="records")
        ]
        del found["curves"]
        found["denied"] = self.denied
        found["completely_at_random"] = self.completely_at_random
        found["thin"] = self.thin
        told = {"ok": self.ok, "family_positivity": self.family_positivity}
        return jsonable({**told, **found})

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        state = "ok" if self.ok else f"not guaranteed: {', '.join(self.uncovered)}".rstrip(": ")
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
            "hidden causes": "" if self.estimand is None else self.estimand.sentence,
            "rows against the graph": denied_sentence(self.denied),
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


def node_table(
    graph: CausalGraph,
    patterns: Patterns,
    needed: Sequence[int],
    flagged: Sequence[Sequence[Region]],
    named: int,
) -> pd.DataFrame:
    """Returns a line for each family that is needed, with some of its patterns by name."""
    whole, total = whole_families(graph, patterns.observed), int(patterns.rows.sum())
    names = np.array(graph.nodes, dtype=object)
    lines = []
    for i, regions in zip(needed, flagged, strict=True):
        node, showing = graph.nodes[i], np.flatnonzero(whole[:, i])
        shown, rows = (int(patterns.rows[p].sum()) for p in (patterns.observed[:, i], showing))
        shows = tuple(f"{{{', '.join(names[patterns.observed[p]])}}}" for p in showing[:named])
        state, status = "nothing against it", "covered"
        told = covered_sentence(graph, node, rows, total)
        if regions:
            state, status = "not guaranteed", _status(regions[0])
            told = uncovered_sentence(graph, regions)
        family = node, graph.parents_of(node), shown, rows, rows / total
        lines.append((*family, state, shows, len(showing), status, told))
    columns = ["node", "parents", "rows shown", "rows whole", "share whole", "family positivity"]
    columns += ["patterns", "pattern count", "status", "sentence"]
    return pd.DataFrame(lines, columns=columns)


def _status(region: Region) -> str:
    if region.conditions:
        return "uncovered in part"
    return "never whole" if region.whole == 0 else "almost never whole"


def region_table(graph: CausalGraph, regions: Sequence[Region]) -> pd.DataFrame:
    """Returns a line for each region, with its counts and bounds."""
    lines = [
        {
            **vars(region),
            "family": (region.node, *graph.parents_of(region.node)),
            "where": where(region.conditions) or "everywhere",
            "conditions": tuple(map(_condition, region.conditions)),
            "chance": region.whole / region.rows if region.rows else 0.0,
            "sentence": region_sentence(graph, region),
        }
        for region in regions
    ]
    columns = ["node", "family", "where", "conditions", "rows", "whole", "share", "chance"]
    columns += ["lower", "upper", "elsewhere", "hidden", "luck", "flagged", "thin", "sentence"]
    return pd.DataFrame(lines, columns=columns)


def _condition(stretch: Stretch) -> dict[str, Any]:
    """Returns a stretch as a dictionary: a column with its edges, or with its levels."""
    column, levels = stretch.column, stretch.levels
    if levels is not None:
        labels = column.labels or tuple(map(str, levels))
        return {"column": column.name, "levels": tuple(labels[k] for k in levels)}
    low, high = edges(stretch)
    return {"column": column.name, "low": low, "high": high}
