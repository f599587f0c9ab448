r"""Graph sanity: independences that the graph implies and the rows contradict strongly.

Given its parents, a node is independent of every node that is not its descendant (the local Markov
property). For each pair without an edge, j before i in the graph's order,

    r = corr( residual of x_i , residual of x_j )   given 1, x, x², x³ of the parents of i

on the rows that show them all, with Fisher's z and Holm's correction. Loss that depends on values
can make such correlations, and so can nonlinear mechanisms that are not cubic: this is
information. Only contradictions that are both certain and sizeable are told. Inside a block
nothing is claimed, and nothing is tested.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from misscnf.graph import CausalGraph
from misscnf.identification.columns import Column
from misscnf.identification.loss import holm
from misscnf.identification.settings import IndependenceRules

__all__ = ["Contradiction", "find_contradictions"]


@dataclass(frozen=True)
class Contradiction:
    """Two nodes that depend on one another where the graph says they do not."""

    node: str
    other: str
    given: tuple[str, ...]
    correlation: float
    p_value: float
    """Corrected for all tests."""
    rows: int


def find_contradictions(
    graph: CausalGraph, columns: Sequence[Column], rules: IndependenceRules, seed: int = 0
) -> tuple[list[Contradiction], int]:
    """Returns the contradictions, strongest first, and how many independences were tested.

    The columns are those of the nodes. The seed picks rows where there are more than needed.
    """
    order = np.random.default_rng(seed).permutation(len(columns[0].values))
    features = [column.features() for column in columns]
    tests: list[tuple[int, int, float, int]] = []
    blocks = ([graph.index(name) for name in members] for members in graph.blocks.values())
    unclaimed = {pair for members in blocks for pair in itertools.permutations(members, 2)}
    for i, parents in enumerate(graph.parents):
        if features[i].shape[1] != 1:
            continue  # levels without an order have no correlation
        shown = np.all([columns[p].observed for p in graph.families[i]], axis=0)
        for j in range(i):
            if j in parents or features[j].shape[1] != 1 or (i, j) in unclaimed:
                continue
            rows = order[(shown & columns[j].observed)[order]][: rules.most_rows]
            if len(rows) >= rules.fewest_rows:
                given = _design([features[p][rows] for p in parents], len(rows))
                r = _partial_correlation(features[i][rows, 0], features[j][rows, 0], given)
                tests.append((i, j, r, len(rows) - given.shape[1]))
    p_values = holm([_p_value(r, freedom) for _, _, r, freedom in tests])
    names = graph.nodes
    found = [
        Contradiction(names[i], names[j], graph.parents_of(names[i]), r, float(p), freedom)
        for (i, j, r, freedom), p in zip(tests, p_values, strict=True)
        if p < rules.level and abs(r) >= rules.least_correlation
    ]
    return sorted(found, key=lambda line: -abs(line.correlation)), len(tests)


def _design(parents: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Returns an intercept and the powers of each parent's features (n, k)."""
    parts = [np.ones((rows, 1))]
    for z in parents:
        parts += [z, z**2, z**3] if z.shape[1] == 1 else [z]
    return np.column_stack(parts)


def _partial_correlation(x: np.ndarray, y: np.ndarray, given: np.ndarray) -> float:
    both = np.column_stack([x, y])
    left = both - given @ np.linalg.lstsq(given, both, rcond=1e-8)[0]
    scale = np.sqrt((left**2).sum(axis=0))
    # A node that its parents determine has nothing left to correlate.
    if (scale <= 1e-6 * np.sqrt(len(x))).any():
        return 0.0
    return float((left[:, 0] * left[:, 1]).sum() / scale.prod())


def _p_value(correlation: float, freedom: int) -> float:
    z = np.arctanh(np.clip(correlation, -1.0 + 1e-12, 1.0 - 1e-12))
    return float(2.0 * ndtr(-abs(z) * np.sqrt(max(1.0, freedom - 2.0))))
