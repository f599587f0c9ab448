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

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from misscnf.data.rows import MemoryRows, RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import CrossFit, Folds, cross_fit
from misscnf.fitting.settings import Settings
from misscnf.fitting.smooth.basis import Basis, find_basis, fit_curve
from misscnf.fitting.train.ensemble import EpochWatcher
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian, Mechanism, Shape
from misscnf.model import StructuralModel, Structure

__all__ = ["choose_curves", "reselect_curve"]


@dataclass(frozen=True)
class _Family:
    """A block with its parents, and the n times that rows show all of them."""

    structure: Structure
    """parents first, the node last"""
    rows: Tensor
    """(n, p + 1)"""
    shown: int
    """how often the node itself is shown, with all parents or not"""
    table: int
    """how often it could have been"""

    @staticmethod
    def of(structure: Structure, rows: RowSource, block: int) -> _Family:
        """Cuts a family out of a table; nodes that share a mechanism stand below one another."""
        graph, nodes = structure.graph, structure.blocks[block]
        found, shown = [], 0
        for batch in rows.batches():
            for node in nodes:
                family = [*graph.parents[node], node]
                found.append(batch.values[batch.observed[:, family].all(1)][:, family])
                shown += int(batch.observed[:, node].sum())
        family = [*graph.parents[nodes[0]], nodes[0]]
        last = len(family) - 1
        names, parents = tuple(graph.nodes[i] for i in family), (*((),) * last, tuple(range(last)))
        domains = [structure.domains[i] for i in family]
        own = Structure.of(CausalGraph(names, parents), domains)
        return _Family(own, torch.cat(found), shown, len(rows) * len(nodes))

    @property
    def node(self) -> int:
        return len(self.structure.graph) - 1

    @property
    def pair(self) -> tuple[Tensor, Tensor]:
        """Parents (n, p) and the node (n,)."""
        return self.rows[:, :-1], self.rows[:, -1]

    def basis(
        self, x: Tensor, settings: Settings, seed: int, node: int, scale: Tensor | None = None
    ) -> Basis | None:
        """Returns what a curve of the node in features x should rest on, if it should be one."""
        generator, y = derive_generator(seed, "centres", node), self.rows[:, -1]
        return find_basis(x, y, self.table, self.shown, generator, settings.curves, scale)

    def completions(self) -> Completions:
        """Returns the rows as completions of themselves."""
        everything = torch.ones_like(self.rows, dtype=torch.bool)
        model = self.model(Gaussian(self.structure.domains[:-1]).double())
        return Completions.draw(model, MemoryRows(self.rows, everything), 1, Generator())

    def model(self, mechanism: Mechanism) -> StructuralModel:
        """Returns a model of the family; nobody asks its roots."""
        return self.structure.model([*(Gaussian(0) for _ in range(self.node)), mechanism])

    def fits(self, basis: Basis | None, folds: Folds) -> list[StructuralModel]:
        """Returns the line or the curve of each fold."""
        given = (basis, self.structure.domains[:-1], *self.pair)
        return [self.model(fit_curve(*given, weights)) for weights in folds.weights()]


def choose_curves(
    line: StructuralModel,
    structure: Structure,
    rows: RowSource,
    networks: Mapping[int, ElpdDifference] | None,
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
) -> tuple[dict[int, Mechanism], frozenset[int]]:
    """Returns curves, fitted to rows that show their family, and the blocks that keep a network.

    Arguments:
        line: The linear fit.
        structure: The graph, its domains and ties.
        rows: All rows.
        networks: The blocks for which a network beats the line, and by how much; None if no
            network was tried.
        settings: How networks are trained and curves chosen.
        seed: Where randomness starts.
        watch: Called after each epoch.
    """
    selection = settings.selection
    chosen: dict[int, Mechanism] = {}
    left = set(networks or ())
    for block, nodes in enumerate(structure.blocks):
        if not structure.parents_of(block) or "curve" not in line.block(block).growths:
            continue
        family = _Family.of(structure, rows, block)
        count = len(family.rows)
        if count < max(selection.fewest_complete, selection.least_share * family.shown):
            continue
        x, y = family.pair
        basis = family.basis(line.block(block).features(x), settings, seed, nodes[0])
        if basis is None:
            continue
        of_network = (networks or {}).get(block)
        alone = selection.z_alone if count >= selection.many_complete else selection.z
        agreed = networks is None or of_network is not None
        if _curve_elpd(family, basis, settings, seed).ratio < (selection.z if agreed else alone):
            if of_network is not None and of_network.ratio < alone:
                left.remove(block)  # a network that won by luck, since a curve does not see it
            continue
        if of_network is not None:
            if _network_elpd(family, basis, settings, seed, watch).ratio > selection.z:
                continue
            left.remove(block)
        chosen[block] = fit_curve(basis, structure.parents_of(block), x, y)
    return chosen, frozenset(left)


def reselect_curve(
    mechanism: Mechanism,
    structure: Structure,
    rows: RowSource,
    block: int,
    settings: Settings,
    seed: int,
) -> Mechanism:
    """Returns a mechanism with the same network of the scale, its curve chosen anew for that.

    A prior precision that was chosen for noise of one size is too high where there is less of it.

    Arguments are those of `choose_curves`, and:
        mechanism: A curve with a network of the scale.
        block: Whose mechanism it is.
    """
    mean = mechanism.linear_mean()
    assert mean is not None
    family = _Family.of(structure, rows, block)
    x, y = family.pair
    log_scale, first = mean.log_scale(x), structure.blocks[block][0]
    scale = torch.exp(log_scale - log_scale.mean())
    basis = family.basis(mechanism.features(x), settings, seed, first, scale)
    if basis is None:
        return mechanism
    return mechanism.with_mean_of(fit_curve(basis, structure.parents_of(block), x, y, scale**-2.0))


def _curve_elpd(family: _Family, basis: Basis, settings: Settings, seed: int) -> ElpdDifference:
    """Returns what a curve gains over the line."""
    folds = Folds.of(len(family.rows), settings.selection, seed)
    curves, lines = (family.fits(of, folds) for of in (basis, None))
    node = frozenset({family.node})
    crossed = CrossFit(family.completions(), folds, curves, lines, node, only=True)
    return crossed.elpd_difference(node, frozenset())


def _network_elpd(
    family: _Family, basis: Basis, settings: Settings, seed: int, watch: EpochWatcher | None
) -> ElpdDifference:
    """Returns what a network gains over the curve."""
    folds = Folds.of(len(family.rows), settings.selection, seed)
    starts = []
    shape = Shape(hidden=settings.selection.hidden)
    for fold, line in enumerate(family.fits(None, folds)):
        mechanism = shape.build(family.structure.domains[:-1])
        mechanism.initialise(derive_generator(seed + fold, "rival"))
        mechanism.start_from(line.mechanism(family.node))
        starts.append(family.model(mechanism))
    node, curves = frozenset({family.node}), family.fits(basis, folds)
    given = (family.completions(), folds, starts, curves, node, settings, seed, watch)
    crossed = cross_fit(*given, only=True)
    return crossed.elpd_difference(node, frozenset())
