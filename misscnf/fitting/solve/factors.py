r"""Hidden causes in a linear fit: where it starts, and which way they point.

Slopes of zero are a saddle for a hidden cause, and others may lead to a lesser maximum. The first
start is factor-analytic. A hidden cause is at first the leading principal component of its
children, f = Σ_c v_c x_c / σ_c with eigenvalue λ among k of them, less what that says of each
child's own noise,

    cov(u, x_c) = ρ √λ v_c σ_c,   cov(u, x_j) = cov(f, x_j) / ρ √λ,   ρ² = (λ − 1) k / λ (k − 1),

which with equal loadings is the factor itself. Other starts are random changes of this one.

Rows do not tell the sign of a hidden number, nor the order of classes, so these are matters of
convention: its first child grows with it.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from misscnf.graph import CausalGraph
from misscnf.model import StructuralModel

__all__ = ["factor_moments", "anchor"]


def factor_moments(graph: CausalGraph, covariance: Tensor, fewest: int = 2) -> Tensor:
    """Returns covariances of columns with those of hidden causes, in units of their own noise.

    Arguments:
        graph: The graph.
        covariance: (d, d) of pairs of columns, nan where unknown.
        fewest: With fewer children that are known, a hidden cause stays unknown, but for its
            variance.
    """
    found, waiting = covariance.clone(), set(graph.latent_nodes)
    while waiting:
        known = {u: [c for c in graph.children[u] if c not in waiting] for u in waiting}
        u = max(sorted(waiting), key=lambda node: len(known[node]))
        waiting.remove(u)
        if len(known[u]) >= fewest:
            _fill(found, u, known[u])
        found[u, u] = 1.0
    for u in sorted(graph.latent_nodes):
        parents = list(graph.parents[u])
        among, along = (torch.nan_to_num(found[parents][:, of]) for of in (parents, [u]))
        explained = float(along.T @ torch.linalg.pinv(among) @ along) if parents else 0.0
        scale = math.sqrt(1.0 - min(max(explained, 0.0), 0.8))
        found[u] /= scale
        found[:, u] /= scale
    return found


def _fill(covariance: Tensor, u: int, children: list[int]) -> None:
    """Writes the covariances of a hidden cause with all that is known."""
    spread = covariance.diagonal()[children].sqrt()
    among = torch.nan_to_num(covariance[children][:, children]) / spread / spread[:, None]
    size, vectors = torch.linalg.eigh(among)
    k, largest, v = len(children), float(size[-1]), vectors[:, -1]
    v = v if v[0] >= 0 else -v
    common = math.sqrt(min(max((largest - 1.0) * k / (largest * (k - 1)), 0.1), 1.0))
    others = torch.nan_to_num(covariance[children]).T @ (v / spread)
    others = others / (common * math.sqrt(largest))
    spreads = torch.nan_to_num(covariance.diagonal(), nan=1.0).sqrt()
    others = others.clamp(-0.9 * spreads, 0.9 * spreads)
    covariance[u] = torch.where(covariance.diagonal().isnan(), math.nan, others)
    covariance[u, children] = common * math.sqrt(largest) * v * spread
    covariance[:, u] = covariance[u]


@torch.no_grad()
def anchor(model: StructuralModel) -> None:
    """Turns hidden numbers so that the first child grows with each, and puts classes in order."""
    graph = model.graph
    for u in sorted(graph.latent_nodes):
        places = {c: graph.parents[c].index(u) for c in graph.children[u]}
        if not places:  # all its children are fitted apart
            continue
        laws = {model.block_of[c]: (model.mechanism(c), place) for c, place in places.items()}
        first = min(places)
        slopes = model.mechanism(first).slopes_on(places[first])
        classes = graph.latent[graph.nodes[u]]
        if slopes is None:
            continue
        if classes is None and float(slopes[0]) < 0.0:
            model.mechanism(u).reflect()
            for law, place in laws.values():
                law.reflect(place)
        if classes is not None and graph.latent_nodes.isdisjoint(places):
            order = torch.argsort(torch.cat([slopes.new_zeros(1), slopes]), stable=True)
            model.mechanism(u).relabel(order)
            for law, place in laws.values():
                law.relabel(order, place)
