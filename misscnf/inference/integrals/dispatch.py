"""Which way of integrating serves which component.

hides a discrete node                 enumeration, if its joint states are few enough
all its mechanisms linear-Gaussian    closed form
all but levels among its evidence     Gauss–Hermite, in a fit of lines
one hidden node                       quadrature
several                               importance sampling
no adaptation asked for               draws from the prior (the paper's)
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Generator, Tensor

from misscnf.inference.elimination import Components
from misscnf.inference.integrals.closed_form import closed_form, linear_gaussian
from misscnf.inference.integrals.effort import Effort
from misscnf.inference.integrals.enumeration import enumeration, hides_discrete
from misscnf.inference.integrals.hermite import bends_by_levels, gauss_hermite
from misscnf.inference.integrals.importance import importance_sampling
from misscnf.inference.integrals.integral import Accept, Integral, WeightedDraws, memory_parts
from misscnf.inference.integrals.prior import prior_draws
from misscnf.inference.integrals.problem import Problem
from misscnf.inference.integrals.quadrature import quadrature
from misscnf.model import StructuralModel

__all__ = ["integrate", "without_enumeration"]


def integrate(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    generator: Generator,
    last: Tensor | None = None,
    modes: Tensor | None = None,
) -> Iterator[Integral]:
    """Yields integrals that together hold each component once.

    Arguments:
        model: The structural model.
        values: (N, d) with finite numbers in the holes.
        components: What is hidden, and its evidence.
        effort: How hard to work.
        generator: Where randomness comes from.
        last: (N, d) the last completion of each row, nan where there is none: the state of a
            Markov chain that `draw` may return to, so that few draws do for many steps.
        modes: (N, S, d) hidden values of each row at up to S modes that an earlier call has found,
            nan where there is none: where searches start. Written to.
    """
    problem, rest = Problem(model, values, effort, generator), components
    if effort.adapt and any(model.discrete) and len(rest):
        hides = hides_discrete(model, rest)
        if hides.any():
            yield from enumeration(problem, rest.select(hides), without_enumeration)
            rest = rest.select(~hides)
    yield from without_enumeration(problem, rest, last, modes)


def without_enumeration(
    problem: Problem,
    components: Components,
    last: Tensor | None = None,
    modes: Tensor | None = None,
) -> Iterator[Integral]:
    """Yields integrals of components whose discrete cells, if there are any, are drawn."""
    model, values, effort, rest = problem.model, problem.values, problem.effort, components
    if effort.closed_form and len(rest):
        drawn = ~linear_gaussian(model, rest)
        if not drawn.all():
            yield from closed_form(model, values, rest.select(~drawn))
            rest = rest.select(drawn)
    if effort.hermite.points and len(rest):
        drawn = ~bends_by_levels(model, rest)
        if not drawn.all():
            found, left = gauss_hermite(problem, rest.select(~drawn))
            yield from found
            drawn[(~drawn).nonzero()[:, 0][left]] = True
            rest = rest.select(drawn)
    for part in rest.split(memory_parts(rest, effort)):
        if not effort.adapt:
            yield prior_draws(problem, part)
            continue
        single = part.size == 1
        if single.any():
            # Equally spaced points resolve a smooth bulk with far fewer than random ones need.
            accept = _accept(effort, effort.quadrature.enough)
            yield from quadrature(problem, part.select(single), accept)
        if not single.all():
            accept = _accept(effort, effort.least_effective)
            yield from importance_sampling(problem, part.select(~single), accept, last, modes)


def _accept(effort: Effort, least: float) -> Accept:
    """Returns the rule by which a randomisation has an effective size that is large enough."""

    def accept(integral: WeightedDraws) -> Tensor:
        possible = effort.effective_share * integral.fresh.shape[1]
        good = integral.effective_size() >= min(effort.randomisations * least, possible)
        if effort.tolerance is not None:
            good &= integral.standard_error() <= effort.tolerance
        return good

    return accept
