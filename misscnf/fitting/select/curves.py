r"""Line, curve or network? The rows that show a family whole decide about its mean.

A curve whose prior precision the evidence chose (`evidence`) stands between the line and the
network. It is solved for, not trained, so every fold's curve costs a matrix product. Each row is
judged by models of the other folds (`crossfit`): a node gets the curve if it beats the line and,
where the line was left behind by a network too, unless that beats the curve. Two that try have
twice the luck: where only one of them beats the line, it has to do so more clearly, if the rows
are so many that the other could have seen what it sees. The network of the comparison is half as
wide as one that is kept and is trained for as many epochs as the likelihood has in a fit: stopped
early, it would itself be a smoother, and say nothing of what it could do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from misscnf.data.domains import Domain
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import CrossFit, Folds, cross_fit
from misscnf.fitting.select.forms import ERRORS_ALONE, ERRORS_TO_BEAT
from misscnf.fitting.settings import Settings, Shape
from misscnf.fitting.smooth.basis import Basis, find_basis, fit_curve
from misscnf.fitting.train.ensemble import EpochWatcher
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian, Mechanism
from misscnf.model import StructuralModel

__all__ = ["choose_curves", "reselect_curve"]

FEWEST_SHOWN = 30
"""Fewer rows that show a family say too little of how it bends."""
MANY_SHOWN = 1000
"""With fewer a curve or a network may well miss what the other finds."""
LEAST_SHARE = 0.25
"""Of the rows that show a node, those that show its family: where they are fewer, most of what the
table knows of the node lies in the others, and they would choose for them."""
RIVAL_HIDDEN = (32, 32, 32)


@dataclass(frozen=True)
class _Family:
    """A node with its parents, and the n rows that show all of them."""

    graph: CausalGraph
    """parents first, the node last"""
    domains: Sequence[Domain]
    rows: Tensor
    """(n, p + 1)"""

    @staticmethod
    def of(
        graph: CausalGraph, domains: Sequence[Domain], rows: tuple[Tensor, Tensor], node: int
    ) -> _Family:
        """Cuts a family out of a table."""
        family = [*graph.parents[node], node]
        shown = rows[1][:, family].all(1)
        names = tuple(graph.nodes[i] for i in family)
        parents = (*((),) * (len(family) - 1), tuple(range(len(family) - 1)))
        return _Family(
            CausalGraph(names, parents), [domains[i] for i in family], rows[0][shown][:, family]
        )

    @property
    def node(self) -> int:
        return len(self.domains) - 1

    @property
    def pair(self) -> tuple[Tensor, Tensor]:
        """Parents (n, p) and the node (n,)."""
        return self.rows[:, :-1], self.rows[:, -1]

    def completions(self) -> Completions:
        """Returns the rows as completions of themselves."""
        everything = torch.ones_like(self.rows, dtype=torch.bool)
        model = self.model(Gaussian(self.domains[:-1]).double())
        return Completions.draw(model, self.rows, everything, 1, torch.Generator())

    def model(self, mechanism: Mechanism) -> StructuralModel:
        """Returns a model of the family; nobody asks its roots."""
        return StructuralModel(self.graph, [*(Gaussian(0) for _ in self.domains[:-1]), mechanism])

    def fits(self, basis: Basis | None, folds: Folds) -> list[StructuralModel]:
        """Returns the line or the curve of each fold."""
        x, y = self.pair
        return [
            self.model(fit_curve(basis, self.domains[:-1], x, y, weights))
            for weights in folds.weights()
        ]


def choose_curves(
    graph: CausalGraph,
    domains: Sequence[Domain],
    rows: tuple[Tensor, Tensor],
    networks: Mapping[int, ElpdDifference] | None,
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
) -> tuple[dict[int, Gaussian], frozenset[int]]:
    """Returns curves, fitted to rows that show their family, and the nodes that keep a network.

    Arguments:
        graph: The causal graph.
        domains: The domain of each node.
        rows: All rows.
        networks: The nodes for which a network beats the line, and by how much; None if no network
            was tried.
        settings: How networks are trained.
        seed: Where randomness starts.
        watch: Called after each epoch.
    """
    chosen, left = {}, set(networks or ())
    for node, parents in enumerate(graph.parents):
        if not parents or domains[node].discrete:
            continue
        family = _Family.of(graph, domains, rows, node)
        seen = int(rows[1][:, node].sum())
        if len(family.rows) < max(FEWEST_SHOWN, LEAST_SHARE * seen):
            continue
        x, y = family.pair
        features = Gaussian(family.domains[:-1]).mean.encoding(x)
        generator = derive_generator(seed, "centres", node)
        basis = find_basis(features, y, len(rows[0]), seen, generator)
        if basis is None:
            continue
        of_network = (networks or {}).get(node)
        alone = ERRORS_ALONE if len(y) >= MANY_SHOWN else ERRORS_TO_BEAT
        agreed = networks is None or of_network is not None
        if _curve_elpd(family, basis, seed).ratio < (ERRORS_TO_BEAT if agreed else alone):
            if of_network is not None and of_network.ratio < alone:
                left.remove(node)  # a network that won by luck, since a curve does not see it
            continue
        if of_network is not None:
            if _network_elpd(family, basis, settings, seed, watch).ratio > ERRORS_TO_BEAT:
                continue
            left.remove(node)
        chosen[node] = fit_curve(basis, family.domains[:-1], x, y)
    return chosen, frozenset(left)


def reselect_curve(
    graph: CausalGraph,
    mechanism: Gaussian,
    domains: Sequence[Domain],
    rows: tuple[Tensor, Tensor],
    node: int,
    seed: int,
) -> Gaussian:
    """Returns a mechanism with the same network of the scale, its curve chosen anew for that.

    A prior precision that was chosen for noise of one size is too high where there is less of it.

    Arguments:
        graph: The causal graph.
        mechanism: A curve with a network of the scale.
        domains: The domain of each node.
        rows: All rows.
        node: Whose mechanism it is.
        seed: Where randomness starts.
    """
    family = _Family.of(graph, domains, rows, node)
    x, y = family.pair
    with torch.no_grad():
        log_scale = mechanism.location_and_log_scale(x)[1]
    scale = torch.exp(log_scale - log_scale.mean())
    features, seen = mechanism.mean.encoding(x), int(rows[1][:, node].sum())
    generator = derive_generator(seed, "centres", node)
    basis = find_basis(features, y, len(rows[0]), seen, generator, scale)
    if basis is None:
        return mechanism
    curve = fit_curve(basis, family.domains[:-1], x, y, scale**-2.0)
    found = Gaussian(**(mechanism.spec() | {"mean_curve": basis.size})).double()
    found.mean.load_state_dict(curve.mean.state_dict())
    found.log_scale.load_state_dict(mechanism.log_scale.state_dict())
    return found


def _curve_elpd(family: _Family, basis: Basis, seed: int) -> ElpdDifference:
    """Returns what a curve gains over the line."""
    folds = Folds.of(len(family.rows), seed)
    curves, lines = (family.fits(of, folds) for of in (basis, None))
    node = frozenset({family.node})
    return CrossFit(family.completions(), folds, curves, lines, node, only=True).elpd_difference(
        node, frozenset()
    )


def _network_elpd(
    family: _Family, basis: Basis, settings: Settings, seed: int, watch: EpochWatcher | None
) -> ElpdDifference:
    """Returns what a network gains over the curve."""
    folds = Folds.of(len(family.rows), seed)
    starts = []
    for fold, line in enumerate(family.fits(None, folds)):
        mechanism = Shape(hidden=RIVAL_HIDDEN).build(family.domains[:-1])
        mechanism.initialise(derive_generator(seed + fold, "rival"))
        mechanism.start_from(line.mechanism(family.node))
        starts.append(family.model(mechanism))
    node = frozenset({family.node})
    crossed = cross_fit(
        family.completions(),
        folds,
        starts,
        family.fits(basis, folds),
        node,
        settings,
        seed,
        watch,
        only=True,
        steps=None,
    )
    return crossed.elpd_difference(node, frozenset())
