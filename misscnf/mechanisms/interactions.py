r"""Interactions: what a line in many features leaves over, as a sum of products of few of them.

    c(x) = Σ_j w_j f_j(x),  f(x) = t(x) P − (1, x) T,  t_k(x) = Π_d [s_kd (x_kd − κ_kd)] within
                                                                 φ_kd and ψ_kd

A factor is a feature itself (s = 1), one side of a knot κ of it (s = ±1, φ = 0), or one (s = 0,
φ = ψ = 1). Its floor φ and its ceiling ψ are where the rows come to an end: beyond, no term
changes, and the line goes on alone. Products of two parents of which one is discrete have neither:
with that parent held they are lines, and what is hidden is still integrated in closed form.
Terms, P, T and the precision of the weights are chosen before training (`fitting.smooth`) and
stay; only w is trained, under its prior.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn

__all__ = ["FACTORS", "Factors", "Interactions"]

FACTORS = 3
"""Of a term at the most: a treatment, and what modifies its effect by way of another."""


class Factors(NamedTuple):
    """The factors of T terms, each (T, d)."""

    column: Tensor
    """the feature"""
    knot: Tensor
    """κ"""
    side: Tensor
    """s"""
    floor: Tensor
    """φ"""
    ceiling: Tensor
    """ψ"""

    @staticmethod
    def ones(terms: int, like: Tensor) -> Factors:
        """Returns terms that are one everywhere."""
        zero = like.new_zeros(terms, FACTORS)
        column = torch.zeros(terms, FACTORS, dtype=torch.int64, device=like.device)
        one = like.new_ones(terms, FACTORS)  # ones_like asks for sympy where nothing is in memory
        return Factors(column, zero, zero.clone(), one, one.clone())

    def terms(self, features: Tensor) -> Tensor:
        """Returns t(x) at features (..., f), (..., T)."""
        found = None
        for column, knot, side, floor, ceiling in zip(
            *(part.unbind(1) for part in self), strict=True
        ):
            if found is not None and not side.any():  # factors of no feature are numbers, or one
                number = torch.zeros_like(floor).clamp(floor, ceiling)
                found = found if bool((number == 1.0).all()) else found * number
                continue
            factor = features[..., column]
            if knot.any():  # most factors are a feature as it is
                factor = factor - knot
            if not (side == 1.0).all():
                factor = side * factor
            if not (floor.isneginf() & ceiling.isposinf()).all():
                factor = factor.clamp(floor, ceiling)
            found = factor if found is None else found * factor
        assert found is not None
        return found

    def each(self, features: Tensor) -> Tensor:
        """Returns the same, term by term: where these are few, it takes a third of the time."""
        columns, found = features.unbind(-1), []
        for term in zip(*(part.tolist() for part in self), strict=True):
            product: Tensor | None = None
            number = 1.0
            for column, knot, side, floor, ceiling in zip(*term, strict=True):
                if side == 0.0:  # the factor of no feature
                    number *= min(max(0.0, floor), ceiling)
                    continue
                factor = columns[column] if knot == 0.0 else columns[column] - knot
                factor = factor if side == 1.0 else side * factor
                if not (floor == -math.inf and ceiling == math.inf):
                    factor = factor.clamp(floor, ceiling)
                product = factor if product is None else product * factor
            if product is None:
                product = torch.ones_like(columns[0])
            found.append(product if number == 1.0 else number * product)
        return torch.stack(found).movedim(0, -1)

    def at_once(self, features: Tensor) -> Tensor:
        """Returns the same without a look at the numbers: each look waits for a graphics card."""
        found = torch.ones_like(features[..., :1])
        for column, knot, side, floor, ceiling in zip(
            *(part.unbind(1) for part in self), strict=True
        ):
            factor = side * (features[..., column] - knot)
            found = found * torch.minimum(torch.maximum(factor, floor), ceiling)
        return found


class Interactions(nn.Module):
    """Maps features (..., f) to what interactions add to a line, (..., outputs).

    Arguments:
        features: The number of features, f.
        outputs: The number of sums.
        terms: The number of terms, T.
        basis functions: The number of basis functions.
    """

    few_terms: ClassVar[int] = 12
    """Up to so many are worked out one by one; of more, all at once."""

    column: Tensor
    knot: Tensor
    side: Tensor
    floor: Tensor
    ceiling: Tensor
    projection: Tensor
    tilt: Tensor
    prior_precision: Tensor

    def __init__(self, features: int, outputs: int, terms: int, basis_functions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outputs, basis_functions))
        for name, value in Factors.ones(terms, torch.zeros(()))._asdict().items():
            self.register_buffer(name, value)
        self.register_buffer("projection", torch.zeros(terms, basis_functions))  # P
        self.register_buffer("tilt", torch.zeros(1 + features, basis_functions))  # T
        self.register_buffer("prior_precision", torch.ones(basis_functions))

    def _reads(self, columns: Collection[int]) -> Tensor:
        """Returns which factors are of some features, (T, d)."""
        wanted = torch.tensor(list(columns), dtype=torch.int64, device=self.column.device)
        return torch.isin(self.column, wanted) & (self.side != 0.0)

    def interact(self, first: Collection[int], second: Collection[int]) -> bool:
        """Says whether a term holds features of both kinds."""
        return bool((self._reads(first).any(1) & self._reads(second).any(1)).any())

    def affine_in(self, columns: Collection[int]) -> bool:
        """Says whether there is a line in some features, the others held."""
        moving = self._reads(columns)
        endless = self.floor.isneginf() & self.ceiling.isposinf()
        return bool((moving.sum(1) <= 1).all() and endless[moving].all())

    @property
    def size(self) -> tuple[int, int]:
        """Terms and basis functions."""
        return len(self.projection), self.projection.shape[1]

    def raw_basis(self, features: Tensor) -> Tensor:
        """Returns t(x), (..., T)."""
        factors = Factors(self.column, self.knot, self.side, self.floor, self.ceiling)
        if features.device.type != "cpu":
            return factors.at_once(features)
        return (
            factors.terms(features)
            if len(self.column) > self.few_terms
            else factors.each(features)
        )

    def basis_functions(self, features: Tensor) -> Tensor:
        """Returns f(x), (..., basis functions)."""
        return self.raw_basis(features) @ self.projection - self.tilt[0] - features @ self.tilt[1:]

    def forward(self, features: Tensor) -> Tensor:
        """Returns Σ_j w_j f_j(x), (..., outputs)."""
        of_terms, of_line = self.weights()
        return self.weighed(features, of_terms) - of_line[0] - features @ of_line[1:]

    def weights(self) -> tuple[Tensor, Tensor]:
        """Returns what weighs terms and (1, x): P w and T w, a column an output."""
        return self.projection @ self.weight.T, self.tilt @ self.weight.T

    def weighed(self, features: Tensor, weights: Tensor) -> Tensor:
        """Returns sums of the terms at features (..., f) by weights (T, k), (..., k)."""
        return self.raw_basis(features) @ weights
