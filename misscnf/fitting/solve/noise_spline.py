r"""Splines of the noise at the maximum of the likelihood of completions, before any training.

A spline has some twenty parameters, the same for every row, whose slopes differ in size by orders
of magnitude: steps that follow the gradient of a batch crawl, where a quasi-Newton method on all
rows arrives in thirty. With the mean and the scale of a node as they are, and r = (x − m) / exp(s)
its residual,

    θ = argmax  Σ_i w_i log p(x_O; θ) − ½ |θ|²,     p(r; θ) = N(S_θ(r + c); 0, 1) · S_θ′(r + c),

the likelihood being that of `completions`. The last term is a standard normal prior of what makes
the spline: nothing in a long table, and a bridle in one of a few hundred rows.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from misscnf.fitting.completions import Cells, Completions
from misscnf.fitting.solve.quasi_newton import maximise
from misscnf.mechanisms import NoiseSpline
from misscnf.model import StructuralModel

__all__ = ["fit_noise_splines"]


def fit_noise_splines(
    model: StructuralModel, completions: Completions, weights: Tensor | None = None
) -> None:
    """Fits every spline that is the same for all rows to the noise that it finds, in place.

    Arguments:
        model: The model, in double precision; as it is, it is the law of the completions.
        completions: Completions of the rows.
        weights: (N,) with mean one; None counts all rows alike.
    """
    found = {block: model.block(block).noise_spline() for block in range(len(model.blocks))}
    splines = {block: spline for block, spline in found.items() if spline is not None}
    if not splines:
        return
    families = completions.families(torch.arange(len(completions)))
    cells = [
        _residuals(splines[block], cells) if block in splines else cells
        for block, cells in zip(model.block_of, families.nodes, strict=True)
    ]
    families = replace(families, nodes=cells)
    shapes = [part for spline in splines.values() for part in spline.parameters]

    def log_factor(node: int, own: Tensor, parents: Tensor) -> Tensor | None:
        spline = splines.get(model.block_of[node])
        return None if spline is None else spline.law.log_prob(own, parents)[None]

    def log_likelihood() -> float:
        log_prob = families.log_prob(log_factor)[0]
        total = (log_prob if weights is None else weights * log_prob).sum()
        prior = torch.stack([shape.square().sum() for shape in shapes]).sum()
        value = (total - 0.5 * prior) / len(completions)
        value.backward()
        return float(value.detach())

    maximise(shapes, log_likelihood, steps=30, memory=20, value_tolerance=1e-10)


@torch.no_grad()
def _residuals(spline: NoiseSpline, cells: Cells) -> Cells:
    """Returns the cells of a node in units of its noise, without parents."""
    residual, log_scale = spline.residual(cells.own, cells.parents)
    log_factor = cells.log_factor + log_scale[cells.place]
    return replace(cells, own=residual, parents=cells.parents[:, :0], log_factor=log_factor)
