"""Which way of integrating serves which component."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from misscnf.inference.elimination import Components
from misscnf.inference.integrals.closed_form import closed_form
from misscnf.inference.integrals.enumeration import enumerate_discrete, hides_discrete
from misscnf.inference.integrals.importance import guided_draws
from misscnf.inference.integrals.integral import Accept, Effort, Integral, WeightedDraws, parts
from misscnf.inference.integrals.prior import prior_draws
from misscnf.inference.integrals.quadrature import quadrature
from misscnf.model import StructuralModel

__all__ = ["integrate"]


EVENLY_SPACED = 3.0
"""Three effective points at equal spacing h mean a bulk of width 0.85 h: errors below 1e-6."""


def integrate(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    generator: torch.Generator,
    last: Tensor | None = None,
) -> Iterator[Integral]:
    """Yields blocks that together hold each component once.

    Arguments:
        model: The structural model.
        values: (N, d) with finite numbers in the holes.
        components: What is hidden, and its evidence.
        effort: How hard to work.
        generator: Where randomness comes from.
        last: (N, d) where rows were last completed, nan where never: points that `draw` may
            return to, so that few draws do for many steps.
    """
    rest = components
    if effort.adapt and any(model.discrete) and len(rest):
        hides = hides_discrete(model, rest)
        if hides.any():
            chosen = rest.select(hides)
            yield from enumerate_discrete(
                model, values, chosen, effort, generator, _integrate_the_rest
            )
            rest = rest.select(~hides)
    yield from _integrate_the_rest(model, values, rest, effort, generator, last)


def _integrate_the_rest(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    generator: torch.Generator,
    last: Tensor | None = None,
) -> Iterator[Integral]:
    """Yields blocks of components without sums: discrete cells, if there are any, are drawn."""
    rest = components
    if effort.closed_form and len(rest):
        curved = [form is None for form in model.linear_forms()]
        drawn = rest.touching(torch.tensor(curved, device=values.device))
        if not drawn.all():
            yield from closed_form(model, values, rest.select(~drawn))
            rest = rest.select(drawn)
    for part in rest.split(parts(rest, effort)):
        if not effort.adapt:
            yield prior_draws(model, values, part, effort, generator)
            continue
        single = part.size == 1
        if single.any():
            accept, chosen = _enough(effort, of_one=True), part.select(single)
            yield from quadrature(model, values, chosen, effort, generator, accept)
        if not single.all():
            accept, chosen = _enough(effort, of_one=False), part.select(~single)
            yield from guided_draws(model, values, chosen, effort, generator, accept, last)


def _enough(effort: Effort, *, of_one: bool) -> Accept:
    """Returns the rule by which a component has been integrated well enough."""
    # Equally spaced points resolve a smooth bulk with far fewer draws than random ones need.
    need = effort.randomisations * (EVENLY_SPACED if of_one else effort.least_effective)

    def accept(integral: WeightedDraws) -> Tensor:
        good = integral.effective_size() >= min(need, 0.75 * integral.fresh.shape[1])
        if effort.tolerance is not None:
            good &= integral.standard_error() <= effort.tolerance
        return good

    return accept
