r"""Families: a node with its parents, and the rows that show all of them.

The law of a node given its parents is read off rows that show both, so what counts is

    whole[n, i] = ∏_{j ∈ {i} ∪ pa(i)} observed[n, j].

Full-pattern positivity asks for rows that show everything; causal-family positivity only that
each family is seen whole, by one pattern or another (paper, Definition "Positivity conditions").
Both ask for it at (almost) every value; counts alone settle only the case of never.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from misscnf.graph import CausalGraph

__all__ = ["uncovered_families", "warning_sentence", "whole_families", "family_names"]


def whole_families(graph: CausalGraph, observed: np.ndarray) -> np.ndarray:
    """Returns (N, d), True where a row shows a node with all its parents.

    Arguments:
        graph: The causal graph.
        observed: (N, d), True where a value is there.
    """
    whole = np.empty(observed.shape, dtype=bool)
    for i, family in enumerate(graph.families):
        whole[:, i] = observed[:, family].all(axis=1)
    return whole


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
    parents = graph.parents_of(node)
    if not parents:
        return node
    return f"{node} with its parent{'s' * (len(parents) > 1)} {', '.join(parents)}"
