r"""What identifies a loss: which laws the holes still let us know, by the graph alone.

R_i = missing(x_i) is a node of the graph with what drives the loss as parents (`graph.indicators`).
For each of them one of four is said, the first that holds:

| | if | then |
|---|---|---|
| ignorable | all that drives it is always shown, or is lost only where x_i is lost too | its factor has no hidden value in it, and may be dropped |
| full law | no x_i in the Markov blanket of its own R_i, anywhere in the graph: no x_i → R_i, no colluder x_j → R_i ← R_j, and beside hidden causes no other path of colliders, such as x_i ↔ R_i | values and losses are identified (Nabi, Bhattacharya and Shpitser 2020) |
| shadow | a column z is always shown, z ⟂ R_i given x_i and what else drives R_i and is always shown, and z is not ⟂ x_i given that | identified if z tells enough of x_i: E[(1 − R_i) / π(x_i) \| z] = 1 has one solution π (completeness; Miao and Tchetgen Tchetgen 2016) |
| shape | otherwise | only the shape of the laws (a logistic line, normal noise) tells loss from value |

Identified is what rows without end would tell. How much these rows tell stands in `loss_` of a
fitted model, and what a stronger loss would change in `sensitivity`.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

import networkx as nx
import numpy as np

from misscnf.graph import CausalGraph
from misscnf.identification.projection import MixedGraph, project

__all__ = ["Recovery", "losses_identified"]


@dataclass(frozen=True)
class Recovery:
    """What identifies one loss."""

    column: str
    by: Literal["ignorable", "full law", "shadow", "shape"]
    """What identifies it."""
    drivers: tuple[str, ...]
    """What drives it."""
    shadow: str | None = None
    """The shadow variable, where it is identified by one."""
    colluder: str | None = None
    """A column that drives the loss and whose own loss does too, which spoils the full law."""
    tied: bool = False
    """Whether the value and its loss have a hidden cause in common, which spoils it too."""

    @property
    def identified(self) -> bool:
        """Whether more than the shape of the laws tells loss from value."""
        return self.by != "shape"

    @property
    def sentence(self) -> str:
        """Says it in words."""
        loss, drivers = f"The loss of {self.column}", ", ".join(self.drivers) or "chance alone"
        if self.by == "ignorable":
            by = f"driven by {drivers}, always shown or lost only where {self.column} is lost too"
            if not self.drivers:
                by = "by chance alone"
            return f"{loss} is {by}: it is ignorable, and may be left out of the graph."
        if self.by == "full law":
            return (
                f"{loss} is driven by {drivers}: values and losses are identified, since no value "
                f"drives its own loss and none drives a loss beside its own indicator."
            )
        if self.by == "shadow":
            on = f"depends on {self.column} itself"
            if self.tied:
                on = f"has a hidden cause in common with {self.column}"
            return (
                f"{loss} {on}; {self.shadow} is a shadow variable, "
                f"always shown and without a say in the loss but through {self.column}: "
                f"identified, if {self.shadow} tells enough of {self.column} (completeness). That "
                f"{self.shadow} has no say is an assumption: where {self.column} is a line in it, "
                f"rows can hardly contradict it."
            )
        spoilt = ""
        if self.colluder:
            spoilt = f" {self.colluder} and its own loss both drive it (a colluder)."
        if self.tied:
            spoilt += f" {self.column} and its loss have a hidden cause in common."
        return (
            f"{loss} is driven by {drivers}, and no column that is always shown tells it from the "
            f"values: the shape of the laws alone identifies it.{spoilt} Look at the sensitivity "
            f"of the answer to it."
        )


def losses_identified(graph: CausalGraph, observed: np.ndarray) -> list[Recovery]:
    """Says for each indicator of a graph what identifies its loss.

    Arguments:
        graph: A graph with indicators.
        observed: (N, d), True where a value is there.
    """
    shown = frozenset(np.flatnonzero(observed.all(axis=0)).tolist())
    mixed = project(graph, losses=True)
    blankets = {r: mixed.blanket(graph.nodes[r]) for r in graph.indicators}
    full_law = not any(graph.nodes[c] in blankets[r] for r, c in graph.indicators.items())
    return [_recovery(graph, mixed, r, observed, shown, full_law) for r in graph.indicators]


def _recovery(
    graph: CausalGraph,
    mixed: MixedGraph,
    r: int,
    observed: np.ndarray,
    shown: Collection[int],
    full_law: bool,  # noqa: FBT001 - known of the whole graph
) -> Recovery:
    column, parents = graph.indicators[r], graph.parents[r]
    name, drivers = graph.nodes[column], tuple(graph.nodes[p] for p in parents)
    lost = ~observed[:, column]
    if all(p in shown or (p != column and lost[~observed[:, p]].all()) for p in parents):
        return Recovery(name, "ignorable", drivers)
    if full_law:
        return Recovery(name, "full law", drivers)
    tied = frozenset({name, graph.nodes[r]}) in mixed.ties
    shadow = _shadow(graph, r, shown) if tied or column in parents else None
    by: Literal["shadow", "shape"] = "shape" if shadow is None else "shadow"
    return Recovery(name, by, drivers, shadow, _colluder(graph, r), tied)


def _colluder(graph: CausalGraph, r: int) -> str | None:
    """Returns a column x_j with x_j → R_i ← R_j, if there is one."""
    parents = set(graph.parents[r])
    found = [j for s, j in graph.indicators.items() if s in parents and j in parents]
    return graph.nodes[found[0]] if found else None


def _shadow(graph: CausalGraph, r: int, shown: Collection[int]) -> str | None:
    """Returns a column that is always shown and speaks of the value, not of its loss."""
    dag, column = graph.to_networkx(), graph.indicators[r]
    beside = {p for p in graph.parents[r] if p in shown and p not in graph.indicators}
    given = {graph.nodes[i] for i in beside}
    name, indicator = graph.nodes[column], graph.nodes[r]
    for z in sorted(set(shown) - beside - {column} - set(graph.indicators)):
        silent = nx.is_d_separator(dag, {graph.nodes[z]}, {indicator}, given | {name})
        if silent and not nx.is_d_separator(dag, {graph.nodes[z]}, {name}, given):
            return graph.nodes[z]
    return None
