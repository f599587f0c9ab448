r"""Is the noise of a node normal, and its scale constant? A score test: nothing is fitted.

At a fitted Gaussian mechanism, u = (x − m(x_pa)) / s is standard normal and independent of the
parents. Four directions away from the normal law, and 2 p away from a constant scale,

    sin u − …,  cos u − …,  sin 2u − …,  cos 2u − …,      (u² − 1) b(x_pa),

are tested (`scores`). What the fit could have moved by itself is u and u² − 1 and u b(x_pa), the
basis functions of curves among the b.

The test is a sieve: it says which nodes are worth a richer noise. Rows that were left out say
whether it pays (`crossfit`), those that show the node itself: where it is inferred from a child,
odd noise and a wrong curve of the child look alike.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping
from functools import partial

import torch
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.fitting.completions import Cells, Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import Folds, RichSet, cross_fit
from misscnf.fitting.select.forms import Form
from misscnf.fitting.select.given import Given
from misscnf.fitting.select.scores import ScoreTests, p_value
from misscnf.fitting.solve.noise_spline import fit_noise_splines
from misscnf.mechanisms import Mechanism, Shape
from misscnf.model import StructuralModel

__all__ = ["choose_noise", "noise_p_values"]


@torch.no_grad()
def noise_p_values(
    model: StructuralModel, completions: Completions, farthest: float = 3.0
) -> dict[int, float]:
    """Returns how likely so odd a noise is if the mechanism of its block is right.

    Arguments:
        model: The fit.
        completions: Completions of the rows by it.
        farthest: Standard deviations of a parent: farther out, it moves the scale no more.

    Returns:
        A p-value for every block with normal noise of constant scale.
    """
    normal = [b for b in range(len(model.blocks)) if model.block(b).normal_noise]
    tests = ScoreTests(model, completions, normal, partial(_nuisance, farthest=farthest))
    odd = partial(_odd, farthest=farthest)
    return {block: p_value(tests.left(block, odd)) for block in normal}


def _nuisance(mechanism: Mechanism, cells: Cells, farthest: float) -> Tensor:
    """Returns what the fit could have moved, at each cell."""
    u = mechanism.abduct(cells.own, cells.parents)
    features = mechanism.features(cells.parents).clamp(-farthest, farthest)
    moved = torch.cat([features, _basis_functions(mechanism, cells.parents)], 1)
    return torch.cat([torch.stack([u, u * u - 1.0], 1), u[:, None] * moved], 1)


def _basis_functions(mechanism: Mechanism, parents: Tensor) -> Tensor:
    """Returns the basis functions of a curve, (n, r); none of a line or a network."""
    mean = mechanism.linear_mean()
    if mean is None:
        return parents.new_zeros(len(parents), 0)
    return mean.columns(parents)[:, 1 + mechanism.features(parents).shape[1] :]


def _odd(mechanism: Mechanism, cells: Cells, farthest: float) -> Tensor:
    """Returns what the fit could not have moved, at each cell."""
    u = mechanism.abduct(cells.own, cells.parents)
    features = mechanism.features(cells.parents).clamp(-farthest, farthest)
    square = u * u - 1.0
    one, two = math.exp(-0.5), math.exp(-2.0)
    shape = [
        torch.sin(u) - one * u,
        torch.cos(u) - one * (1.0 - 0.5 * square),
        torch.sin(2.0 * u) - 2.0 * two * u,
        torch.cos(2.0 * u) - two * (1.0 - 2.0 * square),
    ]
    squares = features.square()
    around = torch.cat([features - features.mean(0), squares - squares.mean(0)], 1)
    return torch.cat([torch.stack(shape, 1), around * square[:, None]], 1)


def choose_noise(model: StructuralModel, given: Given) -> dict[int, Form]:
    """Returns the blocks that earn a richer noise, and which.

    Arguments:
        model: The fit with normal noise of constant scale in continuous nodes.
        given: Structure, rows, settings and seed.
    """
    blocks = range(len(model.blocks))
    if not any(model.block(b).normal_noise and given.may_train(b) for b in blocks):
        return {}
    selection, completions = given.selection, given.complete(model, "noise rows")
    p_values = noise_p_values(model, completions, selection.farthest)
    odd = [
        block
        for block, p in p_values.items()
        if p < selection.noise_p_value and given.may_train(block)
    ]
    if not odd:
        return {}
    nodes = [i for block in odd for i in model.blocks[block]]
    noise = completions.of_noise(model, nodes)
    folds = Folds.of(len(completions), selection, given.seed)
    shown = completions.plan.observed[completions.plan.pattern]
    differences: dict[Form, dict[int, Tensor]] = {}
    for form in (Form(scale=True), Form(noise=True), Form(scale=True, noise=True)):
        parents_of = given.structure.parents_of
        asking = frozenset(b for b in odd if parents_of(b) or not form.scale)
        if not asking:
            continue
        starts = [_noise_model(model, given, asking, form, fold) for fold in range(folds.count)]
        for start, weights in zip(starts, folds.weights(), strict=True):
            fit_noise_splines(start.double(), noise, weights)
        plain = [_noise_model(model, given, asking, Form()).double()] * folds.count
        crossed = cross_fit(noise, folds, starts, plain, asking, given, selection.noise_steps)
        normal = RichSet(crossed, ())
        differences[form] = {
            b: normal.gain(b)[shown[:, list(model.blocks[b])].any(1)] for b in asking
        }
    chosen = {block: _best_form(differences, block, selection.z_noise) for block in odd}
    return {block: form for block, form in chosen.items() if form != Form()}


def _noise_model(
    model: StructuralModel,
    given: Given,
    blocks: Collection[int],
    form: Form,
    fold: int | None = None,
) -> StructuralModel:
    """Returns laws of the noise of some blocks given their parents, at first standard normal."""
    # Copies, because what is trained goes to single precision: the fit must not go with it.
    mechanisms = [copy.deepcopy(model.block(block)) for block in range(len(model.blocks))]
    shape = form.shape(Shape(hidden=()), given.selection.scale_hidden)
    for block in blocks:
        mechanisms[block] = shape.build(given.structure.parents_of(block))
        if fold is not None:
            generator = derive_generator(given.seed + fold, "noise", model.blocks[block][0])
            mechanisms[block].initialise(generator)
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
