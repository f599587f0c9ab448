r"""The positivity report: what the holes of a table leave identified, before any fit.

`Report` holds what was found and tells it in several forms: `summary()` for people, DataFrames,
`to_dict()` for programs and `plot()` for the eye. `ok` is True if nothing speaks against

    p(family of i seen whole | x) > 0    for almost every x,

for each node i that is asked about (paper, Definition "Positivity conditions"). That is never
proved: it is a statement on regions that hold enough rows to be seen.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from misscnf.display.notebook import card
from misscnf.graph import CausalGraph
from misscnf.identification.curves import Curve
from misscnf.identification.independences import Contradiction
from misscnf.identification.little import LittleTest
from misscnf.identification.loss import Explained
from misscnf.identification.summary import write_summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Report", "StructuralHole"]


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
            "family_positivity": self.family_positivity,
            "full_pattern_positivity": self.full_pattern_positivity,
            "full_pattern": self.full_pattern_sentence,
            "monotone": self.monotone,
            "nodes": _records(self.nodes),
            "regions": _records(self.regions),
            "patterns": self._patterns_to_dict(),
            "usage": _records(self.usage),
            "consequences": _records(self.consequences),
            "loss": _plain([asdict(line) for line in self.loss]),
            "loss_p_value": self.loss_p_value,
            "little": None if self.little is None else asdict(self.little),
            "structural_holes": _plain([asdict(line) for line in self.structural_holes]),
            "contradictions": _plain([asdict(line) for line in self.contradictions]),
            "independences_tested": self.independences_tested,
            "ignored": list(self.ignored),
        }

    def _patterns_to_dict(self) -> list[dict[str, Any]]:
        names = list(self.graph.nodes)
        shown = self.patterns[names].to_numpy(dtype=bool)
        counts = self.patterns["row count"].tolist()
        return [
            {
                "observed": [name for name, there in zip(names, line, strict=True) if there],
                "rows": n,
            }
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
        state = (
            f"not guaranteed for {', '.join(self.uncovered)}"
            if self.uncovered
            else "nothing in these rows speaks against it"
        )
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
    columns = {str(name): _plain(frame[name].tolist()) for name in frame.columns}
    return [dict(zip(columns, line, strict=True)) for line in zip(*columns.values(), strict=True)]


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a report holds
    """Returns what JSON can write: no tuples, no numpy, no NaN, no infinity."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
