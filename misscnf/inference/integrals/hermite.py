r"""Gauss–Hermite quadrature around a closed form, where few linear-Gaussian nodes are hidden.

Numbers are hidden, all their mechanisms are lines, and what bends is the evidence of discrete
nodes alone, as of an indicator of loss: logit P(missing(y) = 1) = a + b y. Without that evidence
the hidden values h have a closed form (`closed_form`), log Z and the law N(m, Λ⁻¹). With it,

    log ∫ = log Z + log E e(m + L⁻ᵀ z),      Λ = L Lᵀ,   z ~ N(0, I),

and e, a probability, is smooth. A rule of n points an axis is exact for polynomials of degree
2n − 1, so that few are enough, and they say whether they are: with h_k the normalised Hermite
polynomials, coefficients of a smooth e fall like a power, and what the rule leaves out is about

    |error| / E e  ≈  ( c_{n−1} / c_0 )²,      c_k = E e(m + L⁻ᵀ z) h_k(z_axis).

Where they fall too slowly, a component gets twice the points, and at last another way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from math import factorial

import numpy as np
import torch
from numpy.polynomial import hermite_e
from torch import Generator, Tensor

from misscnf.inference.elimination import Components
from misscnf.inference.integrals.closed_form import GaussianIntegral, closed_form, linear_gaussian
from misscnf.inference.integrals.integral import WeightedDraws, memory_parts
from misscnf.inference.integrals.problem import Problem
from misscnf.model import StructuralModel

__all__ = ["HermiteIntegral", "bends_by_levels", "gauss_hermite"]


def bends_by_levels(model: StructuralModel, components: Components) -> Tensor:
    """Says which components have a closed form but for the evidence of discrete nodes, (C,)."""
    levels = _levels(model, components)
    straight = linear_gaussian(model, components.with_evidence(~levels))
    bent = torch.zeros_like(straight)
    bent[components.evidence_component[levels]] = True
    return straight & bent


def _levels(model: StructuralModel, components: Components) -> Tensor:
    """Says which evidence is that of discrete nodes, (E,)."""
    node = components.evidence_node
    return torch.tensor(model.discrete, device=node.device)[node]


def _normal(problem: Problem, components: Components) -> GaussianIntegral:
    """Returns the closed form of components of one size without the evidence that bends."""
    straight = components.with_evidence(~_levels(problem.model, components))
    (found,) = closed_form(problem.model, problem.values, straight)
    return found


@dataclass(frozen=True)
class HermiteIntegral(WeightedDraws):
    """The points of a rule with what they weigh."""

    problem: Problem | None = None

    def standard_error(self) -> Tensor:
        """Returns zeros: what a rule leaves out is less than `HermiteRules.error`."""
        return torch.zeros_like(self.log_weight[:, 0])

    def effective_size(self) -> Tensor:
        """Returns infinity: these are no draws."""
        return torch.full_like(self.log_weight[:, 0], math.inf)

    def draw(self, count: int, generator: Generator, *, even: bool = False) -> Tensor:
        """Resamples draws of the normal law by the evidence that bends, (H, count)."""
        assert self.problem is not None
        model, points = self.problem.model, self.problem.effort.for_completions(count).draws
        drawn = _normal(self.problem, self.components).draw(points, generator, even=even)
        values = drawn.to(self.problem.values)
        bent = self.components.with_evidence(_levels(model, self.components))
        log_weight = self.problem.sweep(bent).log_evidence(values)
        return WeightedDraws(self.components, values, log_weight).draw(count, generator, even=even)


def gauss_hermite(
    problem: Problem, components: Components, points: int | None = None
) -> tuple[list[WeightedDraws], Tensor]:
    """Returns integrals, and which of the components (C,) need another way.

    Arguments:
        problem: The model, the table and the effort.
        components: Such as `bends_by_levels` finds.
        points: Of the rule along an axis; as many as the effort says if left out.
    """
    rules = problem.effort.hermite
    found = list[WeightedDraws]()
    left = torch.ones_like(components.row, dtype=torch.bool)
    for size in components.size.unique().tolist():
        count = points or rules.points
        while count <= rules.most_points and count**size <= rules.most_together:
            few = left & (components.size == size)
            for keep in _parts(components, few, count**size, problem):
                integral, good = _integrate(problem, components.select(keep), count, size)
                left[keep.nonzero()[:, 0][good]] = False
                if good.any():
                    found.append(integral.select(good))
            count *= 2
    return found, left


def _parts(
    components: Components, keep: Tensor, points: int, problem: Problem
) -> Iterator[Tensor]:
    """Splits the kept components into parts that fit into memory, (C,) each."""
    part = memory_parts(components, problem.with_draws(points).effort)
    yield from (keep & (part == number) for number in part[keep].unique().tolist())


def _integrate(
    problem: Problem, components: Components, count: int, size: int
) -> tuple[HermiteIntegral, Tensor]:
    """Returns the integrals of components of one size, and which of them are good, (C,)."""
    model, normal = problem.model, _normal(problem, components)
    places, log_share, last = (part.to(normal.mean) for part in _rule(count, size))
    root = normal.root.transpose(1, 2)
    away = torch.linalg.solve_triangular(root, places.T.expand(len(root), -1, -1), upper=True)
    values = (normal.mean[..., None] + away)[components.cell_component, normal.slot]
    values = values.to(problem.values)  # the closed form is double, networks are as the table is
    bent = components.with_evidence(_levels(model, components))
    log_evidence = problem.sweep(bent).log_evidence(values)
    mass = torch.softmax(log_evidence + log_share, -1)
    good = (mass @ last).square().amax(-1) <= problem.effort.hermite.error
    log_weight = normal.integral[:, None] + log_evidence + log_share + math.log(len(places))
    return HermiteIntegral(components, values, log_weight, problem=problem), good


@cache
def _rule(count: int, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Returns points (K, m), their log-shares (K,), and the last two polynomials there (K, 2m)."""
    place, share = hermite_e.hermegauss(count)
    last = torch.stack(
        [
            torch.as_tensor(hermite_e.hermeval(place, [0.0] * k + [1.0]) / math.sqrt(factorial(k)))
            for k in (count - 2, count - 1)
        ],
        1,
    )
    each = torch.cartesian_prod(*[torch.arange(count)] * size).reshape(-1, size)
    log_share = torch.as_tensor(np.log(share / share.sum()))
    return torch.as_tensor(place)[each], log_share[each].sum(1), last[each].flatten(1)
