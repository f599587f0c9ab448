r"""Splines at the maximum of the likelihood of completions, before anything is trained.

A spline has some twenty parameters, the same for every row, whose slopes differ in size by orders
of magnitude: steps that follow the gradient of a batch crawl, where a quasi-Newton method on all
rows arrives in thirty. With the mean and the scale of a node as they are, and r = (x − m) / exp(s)
its noise,

    θ = argmax  Σ_i w_i log p(x_O; θ) − ½ |θ|²,     p(r; θ) = N(S_θ(r + c); 0, 1) · S_θ′(r + c),

the likelihood being that of `completions`. The last term is a standard normal prior of what makes
the spline: nothing in a long table, and a bridle in one of a few hundred rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from misscnf.fitting.completions import Cells, Completions
from misscnf.mechanisms import Spline
from misscnf.model import StructuralModel

__all__ = ["fit_noise_splines"]

MOST_STEPS = 30
MEMORY = 20
"""Steps that the quasi-Newton method remembers."""


def fit_noise_splines(
    model: StructuralModel, completions: Completions, weights: Tensor | None = None
) -> None:
    """Bends every spline that is the same for all rows to the noise that it finds, in place.

    Arguments:
        model: The model, in double precision; as it is, it is the law of the completions.
        completions: Completions of the rows.
        weights: (N,) with mean one; None counts all rows alike.
    """
    mechanisms = {node: model.mechanism(node) for node in range(len(model.graph))}
    splines = {
        node: mechanism
        for node, mechanism in mechanisms.items()
        if isinstance(mechanism, Spline) and mechanism.constant_shape
    }
    if not splines:
        return
    families = completions.families(torch.arange(len(completions)))
    cells = [
        _noise(splines[node], cells) if node in splines else cells
        for node, cells in enumerate(families.nodes)
    ]
    families = replace(families, nodes=cells)
    laws = {node: _law(spline) for node, spline in splines.items()}
    shapes = [shape for law in laws.values() for shape in law.shape.parameters()]
    optimiser = torch.optim.LBFGS(
        shapes, max_iter=MOST_STEPS, history_size=MEMORY, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        optimiser.zero_grad()
        log_prob = families.log_prob(lambda *cells: _log_factor(laws, *cells))[0]
        total = (log_prob if weights is None else weights * log_prob).sum()
        prior = sum((shape.square().sum() for shape in shapes), total.new_zeros(()))
        loss: Tensor = (0.5 * prior - total) / len(completions)
        loss.backward()
        return loss

    optimiser.step(closure)


def _law(spline: Spline) -> Spline:
    """Returns the law of a spline's noise before it is bent back; it has the same parameters."""
    law = Spline(0, bins=spline.bins, bound=spline.bound).to(spline.shape.bias)
    law.shape = spline.shape
    return law


@torch.no_grad()
def _noise(spline: Spline, cells: Cells) -> Cells:
    """Returns the cells of a node in units of its noise, without parents."""
    _, log_scale = spline.base.location_and_log_scale(cells.parents)
    log_scale = log_scale.expand(cells.own.shape)
    return replace(
        cells,
        own=spline.base.abduct(cells.own, cells.parents),
        parents=cells.parents[:, :0],
        log_factor=cells.log_factor + log_scale[cells.place],
    )


def _log_factor(
    laws: Mapping[int, Spline], node: int, own: Tensor, parents: Tensor
) -> Tensor | None:
    return laws[node].log_prob(own, parents)[None] if node in laws else None
