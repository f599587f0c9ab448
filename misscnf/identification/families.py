r"""What rows show together: patterns of holes, and families seen whole.

A pattern is the set O of columns that a row shows. Patterns are monotone if they are nested,
O_1 ⊇ O_2 ⊇ …, as where people drop out of a study one by one. Rows with the same pattern are one
line of the table, as in md.pattern of the R package mice.

A family is a node with its parents. The law of a node given its parents is read off rows that
show both, so what counts is

    whole[n, i] = ∏_{j ∈ {i} ∪ pa(i)} observed[n, j].

Full-pattern positivity asks for rows that show everything; causal-family positivity only that
each family is seen whole, by one pattern or another (paper, Definition "Positivity conditions").
Both ask for it at (almost) every value; counts alone settle only the case of never.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from torch import Tensor

from misscnf.graph import CausalGraph

__all__ = [
    "Patterns",
    "find_patterns",
    "usage_table",
    "uncovered_families",
    "warning_sentence",
    "whole_families",
    "family_names",
]


@dataclass(frozen=True, eq=False)
class Patterns:
    """The distinct rows of `observed`, most frequent first. P patterns, N rows, d nodes."""

    observed: np.ndarray
    """(P, d) True where a pattern shows a node."""
    rows: np.ndarray
    """(P,) how many rows have it."""
    of_row: np.ndarray
    """(N,) the pattern of each row."""

    def __len__(self) -> int:
        return len(self.rows)

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
    packed = np.ascontiguousarray(np.packbits(observed, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, first, of_row, rows = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((first, -rows))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Patterns(observed[first[order]], rows[order], place[of_row])


def usage_table(observed: np.ndarray) -> pd.DataFrame:
    """Returns rows and cells that the analysis of complete rows would use, and those of ours."""
    complete, seen = int(observed.all(axis=1).sum()), int(observed.sum())
    rows = np.array([complete, int(observed.any(axis=1).sum())])
    cells = np.array([complete * observed.shape[1], seen])
    return pd.DataFrame(
        {
            "analysis": ["complete rows only", "misscnf"],
            "rows": rows,
            "row share": rows / len(observed),
            "cells": cells,
            "cell share": cells / max(1, seen),
        }
    )


def whole_families(graph: CausalGraph, observed: np.ndarray) -> np.ndarray:
    """Returns (N, d), True where a row shows a node with all its parents."""
    return np.stack([observed[:, family].all(axis=1) for family in graph.families], axis=1)


def uncovered_families(graph: CausalGraph, observed: np.ndarray | Tensor) -> list[str]:
    """Returns the nodes that no row shows together with all their parents.

    Arguments:
        graph: The causal graph.
        observed: (N, d), True where a value is there; a pattern may stand for its rows.
    """
    seen = np.atleast_1d(whole_families(graph, np.asarray(observed, dtype=bool)).any(axis=0))
    return [node for node, there in zip(graph.nodes, seen, strict=True) if not there]


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
