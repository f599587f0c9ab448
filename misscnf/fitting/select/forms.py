r"""Forms of a mechanism: how rich each node's is, and how it earns that.

    x = m(x_pa) + s(x_pa) · h(u):    m a line, a curve or a network,
                                     s a constant or a network,
                                     h the identity or a monotone spline.

Everything starts as the linear model. First every block asks for a network of the mean (or of the
logits, where it is discrete); where a curve of few basis functions does as well, it gets that
(`curves`). Once these are fitted, blocks whose noise looks odd (`noise`) ask for a network of the
scale, for a spline, or for both. Rows that were left out decide each time (`crossfit`): a richer
form must beat a plainer one by z standard errors of the elpd difference, a larger z where another
that could see as much does not. Of noise only rows that show the node itself can tell: where it is
inferred from a child, odd noise and a wrong curve of the child look alike.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor

from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import Folds, cross_fit, some_rows
from misscnf.fitting.select.noise import noise_p_values
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.noise_spline import fit_noise_splines
from misscnf.fitting.solve.simplified_newton import maximise_lines
from misscnf.fitting.train.ensemble import EpochWatcher
from misscnf.mechanisms import Shape
from misscnf.model import StructuralModel, Structure
from misscnf.options import from_dict, to_dict

__all__ = ["Comparison", "Form", "build_model", "choose_means", "choose_noise"]


@dataclass(frozen=True)
class Form:
    """How rich the mechanism of a node is."""

    mean: bool = False
    """whether a network sets the mean, or the logits"""
    scale: bool = False
    """whether a network sets the scale"""
    noise: bool = False
    """whether the noise goes through a spline"""
    curve: tuple[int, ...] | None = None
    """centres, products and basis functions, where a curve sets the mean"""

    def shape(self, full: Shape, scale_hidden: tuple[int, ...] = (32, 32)) -> Shape:
        """Returns the shape of the mechanism; `full` is that of a node with a network."""
        shape = full if self.mean else replace(full, hidden=(), scale_hidden=None)
        if self.curve:
            shape = replace(shape, curve=self.curve)
        if self.scale:
            shape = replace(shape, scale_hidden=scale_hidden)
        return replace(shape, kind="spline") if self.noise else shape

    @property
    def name(self) -> str:
        """The form in words, such as "network, spline noise"."""
        words = ["network" if self.mean else "curve" if self.curve else "line"]
        return ", ".join(words + ["network scale"] * self.scale + ["spline noise"] * self.noise)

    def __str__(self) -> str:
        return self.name

    @property
    def richness(self) -> Literal["linear", "curve", "network"]:
        """In one word; networks and splines are both fitted by training."""
        if self.mean or self.scale or self.noise:
            return "network"
        return "curve" if self.curve else "linear"

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return to_dict(self)

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Form:
        """Reads what `to_dict` wrote."""
        return from_dict(cls, entry)


@dataclass(frozen=True)
class Comparison:
    """What networks gain over lines on rows that were left out, in nats a row."""

    overall: ElpdDifference
    """of all blocks that earn one together, or of all that tried where none does"""
    by_block: Mapping[int, ElpdDifference]
    """of each alone, the others as they were chosen"""
    chosen: frozenset[int]
    """the blocks that earn a network"""

    def to_dict(self, structure: Structure) -> dict[str, Any]:
        """Returns plain numbers, by node."""
        nodes = {
            structure.graph.nodes[i]: found.to_dict()
            for block, found in self.by_block.items()
            for i in structure.blocks[block]
        }
        return {**self.overall.to_dict(), "nodes": nodes}


def build_model(
    structure: Structure,
    shapes: Shape | Sequence[Shape],
    start: StructuralModel | None = None,
    seed: int | None = None,
) -> StructuralModel:
    """Makes a model, with the parameters of a simpler one where it has the same.

    Arguments:
        structure: The graph, its domains and ties.
        shapes: The shape of its mechanisms, of all blocks or of each.
        start: The simpler model, or None.
        seed: Where the hidden layers come from; None leaves them zero.
    """
    model = structure.build(shapes)
    if seed is not None:
        model.initialise(derive_generator(seed, "initialise"))
    if start is not None:
        for block in range(len(model.blocks)):
            model.block(block).start_from(start.block(block))
    return model


def choose_means(
    line: StructuralModel,
    structure: Structure,
    rows: RowSource,
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
) -> Comparison:
    """Compares networks with lines, block by block.

    Completions by the line favour the line a little where much is hidden; completions by a
    network would favour that network, and cost a fit.

    Arguments:
        line: The linear fit to all rows.
        structure: The graph, its domains and ties.
        rows: All rows.
        settings: How networks are shaped, trained and compared.
        seed: Where randomness starts.
        watch: Called after each epoch.
    """
    selection = settings.selection
    completions = _complete(line, rows, settings, seed, "fold rows")
    folds = Folds.of(len(completions), selection, seed)
    lines = maximise_lines(line, completions, folds.weights(), settings)
    shape = replace(settings.shape, hidden=selection.hidden)
    starts = [build_model(structure, shape, its, seed + fold) for fold, its in enumerate(lines)]
    every = frozenset(
        block
        for block in range(len(structure.blocks))
        if structure.parents_of(block) and "network" in line.block(block).growths
    )
    given = (completions, folds, starts, lines, every, settings, seed, watch)
    crossed = cross_fit(*given, steps=selection.steps)
    chosen = crossed.choose(selection.z)
    return Comparison(
        crossed.elpd_difference(chosen or every, frozenset()),
        {b: crossed.elpd_difference(chosen | {b}, chosen - {b}) for b in sorted(every)},
        chosen,
    )


def _complete(
    model: StructuralModel, rows: RowSource, settings: Settings, seed: int, purpose: str
) -> Completions:
    """Returns completions of as many rows as are worth their time."""
    selection, effort = settings.selection, settings.integration.completions
    some, generator = some_rows(rows, selection, seed), derive_generator(seed, purpose)
    return Completions.draw(model, some, selection.completions, generator, effort)


def choose_noise(
    model: StructuralModel,
    structure: Structure,
    rows: RowSource,
    settings: Settings,
    seed: int,
    watch: EpochWatcher | None = None,
) -> dict[int, Form]:
    """Returns the blocks that earn a richer noise, and which.

    Arguments are those of `choose_means`, but for:
        model: The fit with normal noise of constant scale in continuous nodes.
    """
    selection = settings.selection
    completions = _complete(model, rows, settings, seed, "noise rows")
    p_values = noise_p_values(model, completions, selection.farthest)
    odd = [block for block, p in p_values.items() if p < selection.noise_p_value]
    if not odd:
        return {}
    nodes = [i for block in odd for i in model.blocks[block]]
    noise = completions.of_noise(model, nodes)
    folds = Folds.of(len(completions), selection, seed)
    shown = completions.plan.observed[completions.plan.pattern]
    differences: dict[Form, dict[int, Tensor]] = {}
    for form in (Form(scale=True), Form(noise=True), Form(scale=True, noise=True)):
        asking = frozenset(b for b in odd if structure.parents_of(b) or not form.scale)
        if not asking:
            continue
        starts = [
            _noise_model(model, structure, asking, form, settings, seed + fold)
            for fold in range(folds.count)
        ]
        for start, weights in zip(starts, folds.weights(), strict=True):
            fit_noise_splines(start.double(), noise, weights)
        plain = [_noise_model(model, structure, asking, Form(), settings).double()] * folds.count
        given = (noise, folds, starts, plain, asking, settings, seed, watch)
        crossed = cross_fit(*given, only=True, steps=selection.noise_steps)
        base = crossed.log_prob(frozenset())
        differences[form] = {
            b: (crossed.log_prob(frozenset({b})) - base)[shown[:, list(model.blocks[b])].any(1)]
            for b in asking
        }
    chosen = {block: _best_form(differences, block, selection.z_noise) for block in odd}
    return {block: form for block, form in chosen.items() if form != Form()}


def _noise_model(
    model: StructuralModel,
    structure: Structure,
    blocks: Collection[int],
    form: Form,
    settings: Settings,
    seed: int | None = None,
) -> StructuralModel:
    """Returns laws of the noise of some blocks given their parents, at first standard normal."""
    # Copies, because what is trained goes to single precision: the fit must not go with it.
    mechanisms = [copy.deepcopy(model.block(block)) for block in range(len(model.blocks))]
    shape = form.shape(Shape(hidden=()), settings.selection.scale_hidden)
    for block in blocks:
        mechanisms[block] = shape.build(structure.parents_of(block))
        if seed is not None:
            mechanisms[block].initialise(derive_generator(seed, "noise", model.blocks[block][0]))
    return model.like(mechanisms)


def _best_form(differences: Mapping[Form, Mapping[int, Tensor]], block: int, z: float) -> Form:
    """Returns the richest form that beats those below it by z standard errors."""
    mine = {form: found[block] for form, found in differences.items() if block in found}
    both = [form for form in mine if form.scale and form.noise]
    either = max((form for form in mine if form not in both), key=lambda f: float(mine[f].mean()))
    best, held = Form(), torch.zeros_like(mine[either])
    for form in [either, *both]:
        if ElpdDifference.of(mine[form] - held).ratio > z:
            best, held = form, mine[form]
    return best
