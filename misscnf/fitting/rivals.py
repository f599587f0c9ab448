r"""Rivals of a fit: the form that a block might have had, solved for, so that answers can differ.

Rows that were left out choose between the line and the curve of a block (`select.means`), and
often hardly tell them apart. What the choice leaves open is part of the error of an answer: with a
the answer of the fit and a_k that of the same fit with the other form of block k, whose weight
among the two is π_k (`elpd`), the expected square of the error is

    s² + Σ_k π_k (a_k − a)²,

s being the spread of replicates. Where a choice is clear, π_k is next to nothing; where both forms
answer alike, a_k − a is. All else is as the fit has it, and moves to the new maximum, as far as
completions of the rows by the fit tell: all rivals share them (`solve.monte_carlo`).

A value that no law of its column makes likely (`identification.unlikely`) is asked about in the
same way: the fit is solved again with a hole in its place. To first order that would be −ψ
(`queries.influence`), but a line goes through such a row, whose ψ then says nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.select.curves import Family
from misscnf.fitting.select.forms import with_mechanisms
from misscnf.fitting.select.given import Given, some_rows
from misscnf.fitting.select.means import Rival
from misscnf.fitting.select.products import with_products
from misscnf.fitting.settings import Settings
from misscnf.fitting.smooth.basis import fit_curve
from misscnf.fitting.solve.generalised_linear import fit_block, fit_linear
from misscnf.fitting.solve.monte_carlo import maximise_completions, maximise_monte_carlo
from misscnf.mechanisms import Mechanism, Shape
from misscnf.model import StructuralModel, Structure
from misscnf.model.storage import build_mechanism, describe_block

__all__ = ["SolvedRival", "Without", "solve_rivals", "solve_without"]


@dataclass(frozen=True, eq=False)
class SolvedRival:
    """A fit with another form of one block."""

    block: int
    rival: Rival
    model: StructuralModel

    @property
    def node(self) -> str:
        """The first node of the block."""
        return self.model.graph.nodes[self.model.blocks[self.block][0]]

    def to_dict(self) -> dict[str, Any]:
        """Returns all but its parameters, for JSON."""
        law = describe_block(self.model, self.block)
        return {"block": self.block, "rival": asdict(self.rival), "law": law}

    @staticmethod
    def from_dict(entry: Mapping[str, Any], fit: StructuralModel) -> SolvedRival:
        """Reads what `to_dict` wrote; its parameters are still to be filled in."""
        law = build_mechanism(entry["law"]).double().requires_grad_(requires_grad=False)
        model = with_mechanisms(fit, {entry["block"]: law})
        return SolvedRival(entry["block"], Rival(**entry["rival"]), model)


@dataclass(frozen=True, eq=False)
class Without:
    """A fit of the same forms with holes where some cells are."""

    cells: str
    """which, in words"""
    column: str
    model: StructuralModel


def solve_without(
    model: StructuralModel,
    rows: RowSource,
    settings: Settings,
    seed: int,
    cells: str,
    column: str,
) -> Without:
    """Returns the fit with its lines and curves at the maximum of other rows.

    Arguments:
        model: The fit.
        rows: The rows of the fit with holes where some cells are.
        settings: How it was fitted.
        seed: Where randomness starts.
        cells: Which cells, in words.
        column: Theirs.
    """
    return Without(cells, column, _solved_again(model, rows, settings, seed))


def _solved_again(
    model: StructuralModel, rows: RowSource, settings: Settings, seed: int
) -> StructuralModel:
    found = copy.deepcopy(model).requires_grad_(requires_grad=True)
    maximise_monte_carlo(found, rows, settings, seed, rough=True)
    return found.eval().requires_grad_(requires_grad=False)


def solve_rivals(
    model: StructuralModel,
    structure: Structure,
    rows: RowSource,
    settings: Settings,
    seed: int,
    rivals: Mapping[int, Rival],
) -> tuple[SolvedRival, ...]:
    """Returns a fit with each rival in the place of what its block has.

    Arguments:
        model: The fit.
        structure: Its graph, domains and ties.
        rows: The rows of the fit.
        settings: How it was fitted.
        seed: Where randomness starts.
        rivals: Forms that blocks might have had, by block.
    """
    if not rivals:
        return ()
    given = Given(structure, some_rows(rows, settings.selection, seed), settings, seed)
    solving, generator = settings.solving, derive_generator(seed, "rivals")
    count = min(solving.completions, solving.most_completions(rows))
    by_fit = Completions.draw(model, rows, count, generator, settings.integration.training)
    laws = _curves(model, given, [b for b, its in rivals.items() if its.form == "curve"])
    straight = [b for b, its in rivals.items() if its.form == "line"]
    laws |= _lines(model, given, rows, straight, by_fit)
    found = []
    for block, law in laws.items():
        other = copy.deepcopy(with_mechanisms(model, {block: law}))
        maximise_completions(other.requires_grad_(requires_grad=True), by_fit, solving)
        other.eval().requires_grad_(requires_grad=False)
        found.append(SolvedRival(block, rivals[block], other))
    return tuple(found)


def _lines(
    model: StructuralModel, given: Given, rows: RowSource, blocks: list[int], by_fit: Completions
) -> dict[int, Mechanism]:
    """Returns the lines of some blocks, with the products that they keep.

    Where all else is solved for, completions by the fit place them beside what others have, as
    they place every rival in the end. No score test stands beside networks: there it is the linear
    model of all blocks.
    """
    if not blocks:
        return {}
    structure, settings = given.structure, given.settings
    if all(model.block(block).solvable for block in range(len(model.blocks))):
        plain = structure.build(Shape(hidden=())).double()
        for block in blocks:
            fit_block(plain, structure, block, rows, settings.solving)
        line = copy.deepcopy(with_mechanisms(model, {b: plain.block(b) for b in blocks}))
        maximise_completions(line.requires_grad_(requires_grad=True), by_fit, settings.solving)
    else:
        line = fit_linear(structure, rows, settings).model
    kept = with_products(line, given, blocks)
    return {b: kept.get(b, line.block(b)) for b in blocks}


def _curves(model: StructuralModel, given: Given, blocks: list[int]) -> dict[int, Mechanism]:
    """Returns the curves of some blocks, fitted to the rows that show their families whole."""
    found = dict[int, Mechanism]()
    for block in blocks:
        family = Family.of(given.structure, given.rows, block)
        x, y = family.pair
        basis = family.basis(model.block(block).features(x), given, block)
        if basis is not None:
            found[block] = fit_curve(basis, given.structure.parents_of(block), x, y)
    return found
