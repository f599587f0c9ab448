r"""Inside a block: which earlier members each member depends on.

A block makes no causal claim among its members (`graph.dag`), so any order of them writes its law,

    p(x_block | x_pa) = Π_k p(x_k | x_pa, x_1, …, x_{k−1}),

and the most complete columns come first: a hole then has few factors that lean on it. Earlier
members of which x_k needs no news are left out. With T the features of x_k, S what it is given and
R_T·S the covariance that is left of T, a further group C of features is worth

    n/2 · log det R_T·S / det R_T·S∪C  −  |T| |C| · log(n)/2                (Schwarz 1978)

and groups come in, the best first, and go out again as long as that is gained. Features of a
parent are those by which a line reads it, and the square of a number beside them: a dependence of
even shape has no correlation. Moments are those of the rows that show both columns, n of them. So
a step costs a sweep of a matrix, whatever the number of rows, and holes cost nothing. The choice
is of arrows only; their laws are then fitted by the likelihood of what rows show.

Auxiliary columns are arranged alike, below everything: each is given what it needs of all columns
of values above it and of the auxiliary ones before it. They are there since loss may go with them,
and such a loss changes the moments of a column with holes and its parents: it can hide that the
auxiliary column needs both. So a column with holes brings its parents along.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from misscnf.data.domains import Domain
from misscnf.errors import solvable
from misscnf.fitting.settings import Selection
from misscnf.graph import CausalGraph

__all__ = ["Moments", "arrange_blocks", "whole_members"]

LEAST_EIGENVALUE = 1e-4
"""Of a correlation matrix whose entries come from different rows, which may have negative ones."""


@solvable()
def arrange_blocks(
    graph: CausalGraph,
    values: Tensor,
    observed: Tensor,
    domains: Sequence[Domain],
    settings: Selection | None = None,
) -> CausalGraph:
    """Returns the graph with arrows inside blocks and into auxiliary columns, as rows ask.

    Arguments:
        graph: The causal graph, d nodes.
        values: (N, d) the model's numbers.
        observed: (N, d) which of them are there.
        domains: What the values of each node can be.
        settings: What an arrow has to gain.
    """
    if not graph.blocks and not graph.auxiliary:
        return graph
    moments = Moments.of(values, observed, domains, settings)
    holes = (~observed).sum(0).tolist()
    inside, sequence = list[tuple[int, int]](), list[int]()
    for members in graph.blocks.values():
        order = sorted((graph.index(name) for name in members), key=lambda node: holes[node])
        sequence += order
        for k, node in enumerate(order):
            outside = set(graph.parents[node]).difference(order)
            inside += [(parent, node) for parent in moments.parents(node, outside, order[:k])]
    names, unclaimed = graph.nodes, set(graph.edges_inside)
    last = sorted(map(graph.index, graph.auxiliary), key=lambda node: holes[node])
    above = [node for node in range(len(graph)) if node not in {*last, *graph.indicators}]
    claimed = {
        node: [p for p in graph.parents[node] if (names[p], names[node]) not in unclaimed]
        for node in above
    }
    for k, node in enumerate(last):
        chosen = moments.parents(node, set(), above + last[:k])
        brought = {p for parent in chosen if holes[parent] for p in claimed[parent]}
        claimed[node] = sorted(brought.union(chosen))
        inside += [(parent, node) for parent in claimed[node]]
    edges = [(names[parent], names[node]) for parent, node in inside]
    return graph.arranged(edges, [names[node] for node in sequence])


def whole_members(graph: CausalGraph, observed: Tensor) -> list[int]:
    """Returns the members of blocks that every row shows with all that they depend on."""
    shown = observed.all(0).tolist()
    return [
        node
        for node, family in enumerate(graph.families)
        if graph.block_of(graph.nodes[node]) and all(shown[i] for i in family)
    ]


@dataclass(frozen=True)
class Moments:
    """Correlations of features, and how many rows show each pair of nodes."""

    correlation: np.ndarray
    """(F, F)"""
    pairs: np.ndarray
    """(d, d) rows that show both nodes"""
    own: list[list[int]]
    """the features by which a line reads each node"""
    square: list[list[int]]
    """the square of a number, none for levels"""
    penalty: float

    @staticmethod
    def of(
        values: Tensor,
        observed: Tensor,
        domains: Sequence[Domain],
        settings: Selection | None = None,
    ) -> Moments:
        """Takes them from a table."""
        settings = settings or Selection()
        parts: list[Tensor] = []
        own, square, owner = list[list[int]](), list[list[int]](), list[int]()
        for node, domain in enumerate(domains):
            features = domain.encode(values[:, node])
            own.append(list(range(len(owner), len(owner) + features.shape[1])))
            number = [] if domain.states is not None else [len(owner) + features.shape[1]]
            square.append(number)
            far = features[:, :1].clamp(-settings.farthest, settings.farthest).square()
            parts += [features, far] if number else [features]
            owner += [node] * (features.shape[1] + len(number))
        there = observed.double()
        shown = there[:, owner]
        x = torch.cat(parts, 1).double() * shown
        counts = (shown.T @ shown).clamp_min(1.0)
        centred = (x - x.sum(0) / counts.diagonal()) * shown
        covariance = centred.T @ centred / counts
        scale = covariance.diagonal().sqrt().clamp_min(1e-9)
        correlation = _definite((covariance / scale / scale[:, None]).numpy())
        return Moments(correlation, (there.T @ there).numpy(), own, square, settings.arrow_penalty)

    def parents(self, node: int, outside: set[int], earlier: Sequence[int]) -> list[int]:
        """Returns the earlier members that a node depends on, given its parents outside."""
        given = [f for other in sorted(outside) for f in self.own[other] + self.square[other]]
        groups = [
            (other, features)
            for other in earlier
            for features in (self.own[other], self.square[other])
            if features and self.pairs[node, other] > len(features) + 1
        ]
        chosen: list[tuple[int, list[int]]] = []
        while groups:
            left = self.left(given + [f for _, features in chosen for f in features])
            gains = [self._gain(left, node, *group) for group in groups]
            best = int(np.argmax(gains))
            if gains[best] <= 0.0:
                break
            chosen.append(groups.pop(best))
            for group in list(chosen[:-1]):  # what it says, the new one may have said
                others = [f for one in chosen if one is not group for f in one[1]]
                if self._gain(self.left(given + others), node, *group) <= 0.0:
                    chosen.remove(group)
        return sorted({other for other, _ in chosen})

    def left(self, given: list[int]) -> np.ndarray:
        """Returns the covariance that is left of all features, given some."""
        if not given:
            return self.correlation
        known = self.correlation[given]
        left: np.ndarray = self.correlation - known.T @ np.linalg.solve(known[:, given], known)
        return left

    def _gain(self, left: np.ndarray, node: int, other: int, features: list[int]) -> float:
        """Returns what further features of another node are worth, in nats less the penalty."""
        own, n = self.own[node], float(self.pairs[node, other])
        both = own + features
        floor = LEAST_EIGENVALUE * np.eye(len(both))
        joint = left[np.ix_(both, both)] + floor
        k = len(own)
        parts = [np.linalg.slogdet(part)[1] for part in (joint[:k, :k], joint[k:, k:], joint)]
        gained = 0.5 * n * (parts[0] + parts[1] - parts[2])
        return float(gained - self.penalty * k * len(features) * 0.5 * math.log(n))


def _definite(correlation: np.ndarray) -> np.ndarray:
    """Returns the matrix without eigenvalues that no covariance has, its diagonal one."""
    roots, vectors = np.linalg.eigh(correlation)
    repaired = (vectors * np.maximum(roots, LEAST_EIGENVALUE)) @ vectors.T
    scale = np.sqrt(np.diag(repaired))
    result: np.ndarray = repaired / scale / scale[:, None]
    return result
