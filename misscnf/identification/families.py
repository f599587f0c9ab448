r"""What rows show together: patterns of holes, families seen whole, and which questions need them.

A pattern is the set O of columns that a row shows. Patterns are monotone if they are nested,
O_1 ⊇ O_2 ⊇ …, as where people drop out of a study one by one. Rows with the same pattern are one
line of the table, as in md.pattern of the R package mice.

A family is a node with its parents. The law of a node given its parents is read off rows that
show both, so what counts is

    whole[n, i] = ∏_{j ∈ {i} ∪ pa(i)} observed[n, j].

Full-pattern positivity asks for rows that show everything; causal-family positivity only that
each family is seen whole, by one pattern or another (paper, Definition "Positivity conditions").
Both ask for it at (almost) every value; counts alone settle only the case of never.

A question needs the families of the mechanisms that its answer is computed with:

    the marginal of y         y and its ancestors
    the effect of t on y      y and its ancestors in the graph without edges into t, but for t
    a counterfactual of y,    the nodes on directed paths from t to y, but for t, in rows without
        had t been other      holes; all mechanisms in rows with holes, whose noise is inferred

The effect of t on a node that is not its descendant is zero by the graph and needs none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from torch import Tensor

from misscnf.data.patterns import as_keys
from misscnf.data.table import IncompleteTable
from misscnf.graph import CausalGraph

__all__ = ["Patterns", "find_patterns", "patterns_of", "counted", "usage_table"]
__all__ += [
    "whole_families",
    "family_names",
    "uncovered_families",
    "warning_sentence",
    "needed_for_effect",
    "leaning",
]


@dataclass(frozen=True, eq=False)
class Patterns:
    """The distinct rows of `observed`, most frequent first. P patterns, N rows, d nodes."""

    observed: np.ndarray
    """(P, d) True where a pattern shows a node."""
    rows: np.ndarray
    """(P,) how many rows have it."""
    of_row: np.ndarray
    """(N,) the pattern of each row; empty where rows were counted from disk."""

    @property
    def monotone(self) -> bool:
        """Whether the patterns are nested."""
        by_holes = np.argsort(-(self.observed * self.rows[:, None]).sum(axis=0), kind="stable")
        ordered = self.observed[:, by_holes]
        return bool((ordered[:, :-1] >= ordered[:, 1:]).all())

    def to_frame(self, graph: CausalGraph, whole: np.ndarray) -> pd.DataFrame:
        """Returns a line a pattern: what it shows, its rows, and the families it shows whole."""
        frame = pd.DataFrame(self.observed, columns=list(graph.nodes))
        # A node may be called "rows": what is counted stands under a name of two words.
        frame["row count"] = self.rows
        frame["row share"] = self.rows / self.rows.sum()
        frame["hole count"] = (~self.observed).sum(axis=1)
        names = np.array(graph.nodes, dtype=object)
        frame["whole families"] = [tuple(names[line]) for line in whole]
        return frame


def find_patterns(observed: np.ndarray) -> Patterns:
    """Finds the patterns of a table, (N, d) True where a value is there."""
    _, first, of_row, rows = np.unique(
        as_keys(observed), return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -rows))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Patterns(observed[first[order]], rows[order], place[of_row])


def patterns_of(table: IncompleteTable) -> Patterns:
    """Returns the patterns of a table; those of all rows, where it has only some of them."""
    if table.all_rows is None:
        return find_patterns(table.observed.numpy())
    observed, rows = table.all_rows.observed, table.all_rows.rows
    order = np.argsort(-rows, kind="stable")
    return Patterns(observed[order], rows[order], np.empty(0, dtype=int))


def counted(patterns: Patterns, family: Collection[int]) -> tuple[int, int]:
    """Returns how many rows show all of some nodes, and of how many."""
    whole = patterns.observed[:, sorted(family)].all(axis=1)
    return int(patterns.rows[whole].sum()), int(patterns.rows.sum())


def usage_table(patterns: Patterns) -> pd.DataFrame:
    """Returns rows and cells that the analysis of complete rows would use, and those of ours."""
    observed, counts = patterns.observed, patterns.rows
    complete, seen = int(counts[observed.all(axis=1)].sum()), int(counts @ observed.sum(axis=1))
    rows = np.array([complete, int(counts[observed.any(axis=1)].sum())])
    cells = np.array([complete * observed.shape[1], seen])
    return pd.DataFrame(
        {
            "analysis": ["complete rows only", "misscnf"],
            "rows": rows,
            "row share": rows / counts.sum(),
            "cells": cells,
            "cell share": cells / max(1, seen),
        }
    )


def whole_families(graph: CausalGraph, observed: np.ndarray) -> np.ndarray:
    """Returns (N, d), True where a row shows a node with all its parents."""
    return np.stack([observed[:, family].all(axis=1) for family in graph.families], axis=1)


def uncovered_families(graph: CausalGraph, observed: np.ndarray | Tensor) -> list[str]:
    """Returns the nodes that no row (or pattern) shows together with all their parents."""
    whole = whole_families(graph, np.asarray(observed, dtype=bool))
    return [node for node, rows in zip(graph.nodes, whole.T, strict=True) if not rows.any()]


def warning_sentence(graph: CausalGraph, uncovered: Sequence[str]) -> str:
    """Returns one sentence on the nodes that `uncovered_families` gave."""
    first = family_names(graph, uncovered[0])
    others = f" (and {len(uncovered) - 1} more like it)" if len(uncovered) > 1 else ""
    return (
        f"no row shows {first}{others}, so these rows alone do not guarantee that its mechanism "
        f"is learned right (causal-family positivity); a parametric fit may still extrapolate, "
        f"and misscnf.check(df, graph) says what leans on it."
    )


def family_names(graph: CausalGraph, node: str) -> str:
    """Returns a family in words, such as "y with its parents a, b"."""
    parents = graph.in_blocks(graph.parents_of(node))
    if not parents:
        return node
    return f"{node} with its parent{'s' * (len(parents) > 1)} {', '.join(parents)}"


def needed_for_effect(graph: CausalGraph, treatment: int, outcome: int) -> frozenset[int]:
    """Returns the nodes whose families the effect of one node on another needs."""
    if outcome not in graph.descendants([treatment]):
        return frozenset()
    needed = {outcome}
    for i in reversed(range(outcome + 1)):
        if i in needed and i != treatment:
            needed.update(graph.parents[i])
    return frozenset(needed - {treatment})


def leaning(
    graph: CausalGraph, uncovered: Collection[int], effect: tuple[str, str] | None
) -> pd.DataFrame:
    """Returns questions with the families they need, and those of them that are not covered.

    These are all questions, or one effect.
    """
    names = graph.nodes

    def line(question: str, t: int | None, y: int, need: frozenset[int]) -> tuple[Any, ...]:
        told = (tuple(names[i] for i in sorted(part)) for part in (need, need & set(uncovered)))
        return question, None if t is None else names[t], names[y], *told

    above = [graph.ancestral_closure([y]) for y in range(len(graph))]
    extra = set(map(graph.index, graph.auxiliary))
    asked = [i for i in range(len(graph)) if i not in extra]
    lines = [line("marginal", None, y, above[y]) for y in asked]
    for t in (t for t in asked if graph.block_of(names[t]) is None):
        below = graph.descendants([t]) - {t} - extra
        for y in sorted(below):
            lines.append(line("effect", t, y, needed_for_effect(graph, t, y)))
            lines.append(line("counterfactual", t, y, below & above[y]))
    if effect is not None:
        lines = [told for told in lines if told[:3] == ("effect", *effect)]
    return pd.DataFrame(lines, columns=["question", "treatment", "outcome", "needs", "leans on"])
