r"""Consequences: which questions lean on a family that is not covered, and which do not.

A question needs the mechanisms that its answer is computed with:

    the marginal of y         y and its ancestors
    the effect of t on y      y and its ancestors in the graph without edges into t, but for t
    a counterfactual of y,    the nodes on directed paths from t to y, but for t, in rows without
        had t been other      holes; all mechanisms in rows with holes, whose noise is inferred

The effect of t on a node that is not its descendant is zero by the graph and needs none.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pandas as pd

from misscnf.graph import CausalGraph

__all__ = ["needed_for_marginal", "needed_for_effect", "needed_for_counterfactual", "leaning"]


def needed_for_marginal(graph: CausalGraph, outcome: int) -> frozenset[int]:
    """Returns the nodes whose families the marginal of a node needs."""
    return graph.ancestral_closure([outcome])


def needed_for_effect(graph: CausalGraph, treatment: int, outcome: int) -> frozenset[int]:
    """Returns the nodes whose families the effect of one node on another needs."""
    if outcome not in graph.descendants([treatment]):
        return frozenset()
    needed = {outcome}
    for i in reversed(range(outcome + 1)):
        if i in needed and i != treatment:
            needed.update(graph.parents[i])
    return frozenset(needed - {treatment})


def needed_for_counterfactual(graph: CausalGraph, treatment: int, outcome: int) -> frozenset[int]:
    """Returns the nodes whose families a counterfactual of a row without holes needs."""
    between = graph.descendants([treatment]) & graph.ancestral_closure([outcome])
    return frozenset(between - {treatment}) if outcome in between else frozenset()


def leaning(graph: CausalGraph, uncovered: Collection[int]) -> pd.DataFrame:
    """Returns each question with the families it needs, and those of them that are not covered."""
    names = graph.nodes

    def line(question: str, t: int | None, y: int, need: frozenset[int]) -> tuple[Any, ...]:
        told = (tuple(names[i] for i in sorted(part)) for part in (need, need & set(uncovered)))
        return question, None if t is None else names[t], names[y], *told

    lines = [line("marginal", None, y, needed_for_marginal(graph, y)) for y in range(len(graph))]
    causes = (t for t, name in enumerate(names) if graph.block_of(name) is None)
    for t in causes:
        for y in sorted(graph.descendants([t]) - {t}):
            lines.append(line("effect", t, y, needed_for_effect(graph, t, y)))
            lines.append(line("counterfactual", t, y, needed_for_counterfactual(graph, t, y)))
    columns = ["question", "treatment", "outcome", "needs", "leans on"]
    return pd.DataFrame(lines, columns=columns)
