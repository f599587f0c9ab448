r"""Curves of means: the rows that show a family whole say whether one is worth it.

A curve whose prior precision the evidence chose (`evidence`) stands between the line and the
network. It is solved for, not trained, so every fold's curve costs a matrix product. Each row is
judged by models of the other folds (`crossfit`). The network that a curve has to stand up to is
half as wide as one that is kept and is trained for as many epochs as the likelihood has in a fit:
stopped early, it would itself be a smoother, and say nothing of what it could do. It is trained
only where what the curve leaves of the rows is still bent (`nonlinearity`).

A wide family is hardly ever shown whole. Its rows are completed by the line, given all that they
show, which favours the line; its curve is a sum of interactions (`smooth.interactions`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from misscnf.data.rows import MemoryRows, RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import CrossFit, Folds, cross_fit
from misscnf.fitting.select.given import Given
from misscnf.fitting.select.nonlinearity import left_p_value
from misscnf.fitting.settings import Selection
from misscnf.fitting.smooth.basis import CurveBasis, find_basis, fit_curve
from misscnf.fitting.smooth.interactions import Terms, find_terms
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian, Mechanism, Shape
from misscnf.mechanisms.history import read_parents_by
from misscnf.model import StructuralModel, Structure

__all__ = ["CurveTrial", "Family", "reselect_curve"]


@dataclass(frozen=True)
class Family:
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
    def of(structure: Structure, rows: RowSource, block: int) -> Family:
        """Cuts a family out of a table; nodes that share a mechanism stand below one another."""
        graph, nodes = structure.graph, structure.blocks[block]
        found, shown = [], 0
        for batch in rows.batches():
            for node in nodes:
                family = [*graph.parents[node], node]
                whole = batch.values[batch.observed[:, family].all(1)][:, family]
                read = read_parents_by(graph.readings.get(node), whole[:, :-1])
                found.append(torch.cat([read, whole[:, -1:]], 1))
                shown += int(batch.observed[:, node].sum())
        names = (*graph.read_by(nodes[0]), graph.nodes[nodes[0]])
        last = len(names) - 1
        parents = (*((),) * last, tuple(range(last)))
        domains = [*structure.parents_of(block), structure.domain_of(block)]
        own = Structure.of(CausalGraph(names, parents), domains)
        return Family(own, torch.cat(found), shown, len(rows) * len(nodes))

    @staticmethod
    def completed(given: Given, completions: Completions, block: int) -> Family:
        """Cuts a family out of a table whose rows show all that they hide, but for the node."""
        node = torch.isin(
            torch.arange(given.rows.columns), torch.tensor(given.structure.blocks[block])
        )
        observed = torch.cat([batch.observed for batch in given.rows.batches()]) | ~node
        return Family.of(given.structure, MemoryRows(completions.completed[0], observed), block)

    @property
    def node(self) -> int:
        """The place of the node in its own small graph: the last."""
        return len(self.structure.graph) - 1

    @property
    def whole(self) -> bool:
        """Whether every row that shows the node shows its parents too."""
        return len(self.rows) >= self.shown

    def speaks(self, settings: Selection) -> bool:
        """Whether these rows know the node: they are enough, and not few of those that show it."""
        fewest = max(settings.fewest_complete, settings.least_share * self.shown)
        return len(self.rows) >= fewest

    def few(self, settings: Selection) -> bool:
        """Whether these rows are too few to take a curve by, and enough to know of one."""
        return settings.fewest_of_rival <= len(self.rows) < settings.many_complete

    @property
    def pair(self) -> tuple[Tensor, Tensor]:
        """Parents (n, p) and the node (n,)."""
        return self.rows[:, :-1], self.rows[:, -1]

    def basis(
        self, x: Tensor, given: Given, block: int, scale: Tensor | None = None
    ) -> CurveBasis | None:
        """Returns what a curve of the node in features x should rest on, if it should be one."""
        if given.wide(block):
            return find_terms(x, self.rows[:, -1], self.table, given.settings.curves)
        generator = given.generator("centres", given.structure.blocks[block][0])
        about = (self.table, self.shown, generator, given.settings.curves)
        return find_basis(x, self.rows[:, -1], *about, scale)

    def completions(self) -> Completions:
        """Returns the rows as completions of themselves."""
        everything = torch.ones_like(self.rows, dtype=torch.bool)
        model = self.model(Gaussian(self.structure.domains[:-1]).double())
        return Completions.draw(model, MemoryRows(self.rows, everything), 1, Generator())

    def model(self, mechanism: Mechanism) -> StructuralModel:
        """Returns a model of the family; nobody asks its roots."""
        return self.structure.model([*(Gaussian(0) for _ in range(self.node)), mechanism])

    def fits(self, basis: CurveBasis | None, folds: Folds) -> list[StructuralModel]:
        """Returns the line or the curve of each fold."""
        given = (basis, self.structure.domains[:-1], *self.pair)
        return [self.model(fit_curve(*given, weights)) for weights in folds.weights()]


@dataclass(frozen=True)
class CurveTrial:
    """A curve of one block, and what it gains over the line on rows that show the family."""

    family: Family
    basis: CurveBasis
    over_line: ElpdDifference
    given: Given
    plain: Terms | None = None
    """the products that the line keeps"""

    @staticmethod
    def of(line: Mechanism, family: Family, given: Given, block: int) -> CurveTrial | None:
        """Tries a curve; None where it should be none, or is too narrow.

        Arguments:
            line: The mechanism of the block in the linear fit.
            family: The rows that show it with its parents.
            given: Structure, rows, settings and seed.
            block: The block.
        """
        basis = family.basis(line.features(family.pair[0]), given, block)
        if basis is None:
            return None
        plain = None if given.wide(block) else Terms.of(line)
        return CurveTrial(family, basis, _curve_elpd(family, basis, plain, given), given, plain)

    @property
    def share(self) -> float:
        """Of the rows, those that show the family."""
        return len(self.family.rows) / self.family.table

    @property
    def alone(self) -> float:
        """Standard errors by which it has to beat the line if nothing else does."""
        selection = self.given.selection
        many = len(self.family.rows) >= selection.many_complete
        return selection.z_alone if many else selection.z

    def mechanism(self) -> Mechanism:
        """Returns the curve, fitted to all rows that show the family."""
        return fit_curve(self.basis, self.family.structure.domains[:-1], *self.family.pair)

    @torch.no_grad()
    def departure(self) -> float:
        """Returns Σ (curve − line)² / σ² over the rows that show the family.

        By Cauchy and Schwarz no answer that is linear in the mean moves by more than √ of it
        times its standard error, whichever of the two forms is taken.
        """
        domains, (x, y) = self.family.structure.domains[:-1], self.family.pair
        laws = fit_curve(self.basis, domains, x, y), fit_curve(self.plain, domains, x, y)
        apart = laws[0].generate(torch.zeros_like(y), x) - laws[1].generate(torch.zeros_like(y), x)
        return float((apart / self.basis.noise).square().sum())

    def loses_to_network(self) -> bool:
        """Whether a network beats the curve, where the rows say that one might."""
        selection, seed = self.given.selection, self.given.seed
        p_value = left_p_value(self.mechanism(), *self.family.pair, selection, seed)
        if p_value >= selection.network_p_value:
            return False
        return _network_elpd(self.family, self.basis, self.given).ratio > selection.z


def reselect_curve(mechanism: Mechanism, given: Given, block: int) -> Mechanism:
    """Returns a mechanism with the same network of the scale, its curve chosen anew for that.

    A prior precision that was chosen for noise of one size is too high where there is less of it.

    Arguments:
        mechanism: A curve with a network of the scale.
        given: Structure, rows, settings and seed.
        block: Whose mechanism it is.
    """
    mean, structure = mechanism.linear_mean(), given.structure
    assert mean is not None
    if given.wide(block):
        return mechanism  # hardly a row shows it whole
    family = Family.of(structure, given.rows, block)
    x, y = family.pair
    log_scale = mean.log_scale(x)
    scale = torch.exp(log_scale - log_scale.mean())
    basis = family.basis(mechanism.features(x), given, block, scale)
    if basis is None:
        return mechanism
    return mechanism.with_mean_of(fit_curve(basis, structure.parents_of(block), x, y, scale**-2.0))


def _curve_elpd(
    family: Family, basis: CurveBasis, plain: Terms | None, given: Given
) -> ElpdDifference:
    """Returns what a curve gains over the line, with the products that it keeps."""
    folds = Folds.of(len(family.rows), given.selection, given.seed)
    curves, lines = (family.fits(of, folds) for of in (basis, plain))
    node = frozenset({family.node})
    crossed = CrossFit(family.completions(), folds, curves, lines, node)
    return crossed.elpd_difference(node, frozenset())


def _network_elpd(family: Family, basis: CurveBasis, given: Given) -> ElpdDifference:
    """Returns what a network gains over the curve."""
    folds = Folds.of(len(family.rows), given.selection, given.seed)
    starts = []
    shape = Shape(hidden=given.selection.hidden)
    for fold, line in enumerate(family.fits(None, folds)):
        mechanism = shape.build(family.structure.domains[:-1])
        mechanism.initialise(derive_generator(given.seed + fold, "rival"))
        mechanism.start_from(line.mechanism(family.node))
        starts.append(family.model(mechanism))
    node, curves = frozenset({family.node}), family.fits(basis, folds)
    crossed = cross_fit(family.completions(), folds, starts, curves, node, given)
    return crossed.elpd_difference(node, frozenset())
