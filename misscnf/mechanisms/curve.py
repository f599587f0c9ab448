r"""Curves of few degrees of freedom: what a line leaves over, as a sum of basis functions.

A Gaussian process prior on a curve, seen through M centres z (Quiñonero-Candela and Rasmussen
2005), is a linear model: with k(x, z) = exp(−½ Σ_j (x_j − z_j)² / ℓ_j²) and products x_i x_j,

    c(x) = Σ_j w_j f_j(x),  f(x) = (k(x, z), xxᵀ, hinges) P − (1, x) T,  w_j ~ N(0, 1 / τ_j).

P turns radial basis functions and products into basis functions, from those that the data know
best to those that they hardly know, and T takes out of each basis function what a line says.
Length scales ℓ, P, T and τ are chosen before training (`fitting.smooth`) and stay; only w is
trained, under its prior. So a curve has as many degrees of freedom as the data ask for.

A radial basis function ends, and a curve made of radial basis functions would fall back to the
line beyond the data. It goes on straight instead, as it left its edges, a little outside the data:
with x̂ the value nearest to x within the edges,

    k(x, z)  becomes  k(x̂, z) + ∇k(x̂, z) · (x − x̂),

and a product likewise, unless rows beyond the edges say that a parabola goes on as one: then the
products of the curve are endless, x_i x_j everywhere (`fitting.smooth.basis` asks the rows). There
it may take another slope than it came with: hinges max(x − x̂, 0) and min(x − x̂, 0) stand among the
functions, so that the few rows out there do not move it elsewhere.

A feature whose length scale is endless stays outside the curve: the mean is a line in it.
"""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn

__all__ = ["Curve", "hinges", "radial_basis", "extended_products"]


class Curve(nn.Module):
    """Maps features (..., f) to what a curve adds to a line, (..., outputs).

    Arguments:
        features: The number of features, f.
        outputs: The number of curves.
        centres: The number of centres, M.
        products: The number of products, f (f + 1) / 2 or none.
        basis functions: The number of basis functions.
        endless: Whether products go on as products beyond the edges (1), or straight (0).
    """

    centres: Tensor
    length_scale: Tensor
    projection: Tensor
    tilt: Tensor
    prior_precision: Tensor
    edges: Tensor

    def __init__(
        self,
        features: int,
        outputs: int,
        centres: int,
        products: int,
        basis_functions: int,
        endless: int = 0,
    ) -> None:
        super().__init__()
        self.products, self.endless = products, bool(endless)
        self.weight = nn.Parameter(torch.zeros(outputs, basis_functions))
        self.register_buffer("centres", torch.zeros(centres, features))
        self.register_buffer("length_scale", torch.ones(features))  # ℓ
        raw_basis = centres + products + 2 * features
        self.register_buffer("projection", torch.zeros(raw_basis, basis_functions))  # P
        self.register_buffer("tilt", torch.zeros(1 + features, basis_functions))  # T
        self.register_buffer("prior_precision", torch.ones(basis_functions))  # τ
        edges = torch.full((2, features), torch.inf)
        edges[0] = -torch.inf  # a clone would import sympy where nothing is in memory: 0.9 s
        self.register_buffer("edges", edges)

    @property
    def size(self) -> tuple[int, ...]:
        """Centres, products and basis functions; 1 as a fourth where products are endless."""
        found = len(self.centres), self.products, self.projection.shape[1]
        return (*found, 1) if self.endless else found

    def interact(self, first: Collection[int], second: Collection[int]) -> bool:
        """Says whether what some features add may depend on others: all that it bends in may."""
        return self._bends(first) and self._bends(second)

    def affine_in(self, columns: Collection[int]) -> bool:
        """Says whether there is a line in some features, the others held."""
        return not self._bends(columns)

    def _bends(self, columns: Collection[int]) -> bool:
        """Says whether it reads any of some features; those of endless length it does not read."""
        return bool(self.length_scale[list(columns)].isfinite().any())

    def raw_basis(self, features: Tensor) -> Tensor:
        """Returns k(x, z), xxᵀ and hinges, (..., M + products + 2 f)."""
        inside = features.clamp(self.edges[0], self.edges[1])
        radial = radial_basis(*(x / self.length_scale for x in (features, inside, self.centres)))
        upto = features if self.endless else inside
        products = [extended_products(features, upto)] if self.products else []
        return torch.cat([radial, *products, hinges(features, inside)], -1)

    def basis_functions(self, features: Tensor) -> Tensor:
        """Returns f(x), (..., basis functions)."""
        found = self.weighed(features, self.projection)
        return found - self.tilt[0] - features @ self.tilt[1:]

    def forward(self, features: Tensor) -> Tensor:
        """Returns Σ_j w_j f_j(x), (..., outputs)."""
        of_raw_basis, of_line = self.weights()
        return self.weighed(features, of_raw_basis) - of_line[0] - features @ of_line[1:]

    def weights(self) -> tuple[Tensor, Tensor]:
        """Returns what weighs the raw basis and (1, x): P w and T w, a column an output."""
        return self.projection @ self.weight.T, self.tilt @ self.weight.T

    def weighed(self, features: Tensor, weights: Tensor) -> Tensor:
        """Returns sums of the raw basis at features (..., f) by weights (raw basis, k), (..., k).

        Nearly all of a curve's cost is here. Without gradients it takes as few passes over
        (..., M) as may be: between the edges, where nearly all rows are, hinges are zero and
        nothing goes on straight.
        """
        if torch.is_grad_enabled() or features.dtype != torch.float64:
            return self.raw_basis(features) @ weights
        rows = features.reshape(-1, features.shape[-1])
        inside = rows.clamp(self.edges[0], self.edges[1])
        found = self._inside(inside) @ weights[: len(self.centres)]
        if self.products:
            of_products = weights[len(self.centres) :][: self.products]
            found.addmm_(_products(inside), of_products)
        beyond = (rows != inside).nonzero()[:, 0]
        if len(beyond):
            beyond = beyond.unique()
            found[beyond] = self.raw_basis(rows[beyond]) @ weights
        return found.reshape(*features.shape[:-1], weights.shape[1])

    def _inside(self, x: Tensor) -> Tensor:
        """Returns k(x, z) at x (n, f) between the edges: x·z − ½ |x|² − ½ |z|² is one product."""
        x, z = x / self.length_scale, self.centres / self.length_scale
        squares = [part.square().sum(-1, keepdim=True).mul_(-0.5) for part in (x, z)]
        left = torch.cat([x, squares[0], torch.ones_like(squares[0])], 1)
        right = torch.cat([z, torch.ones_like(squares[1]), squares[1]], 1)
        return (left @ right.T).exp_()


def radial_basis(x: Tensor, inside: Tensor, centres: Tensor) -> Tensor:
    """Returns exp(−½ |x − z|²) for centres z (M, f), linear beyond `inside`, (..., M)."""
    beyond = x - inside
    if x.dtype == torch.float64:
        return _radial_basis_by_products(inside, beyond, centres)
    # Differences before squares, which in single precision would drown a far value's nearness;
    # feature by feature, since sums along a short last axis are slow.
    squares, slope = torch.zeros_like(x[..., :1]), torch.ones_like(x[..., :1])
    for j in range(x.shape[-1]):
        away = inside[..., j, None] - centres[:, j]
        squares = squares + away.square()
        slope = slope - beyond[..., j, None] * away
    return torch.exp(-0.5 * squares) * slope


def _radial_basis_by_products(inside: Tensor, beyond: Tensor, centres: Tensor) -> Tensor:
    """Returns the same by few passes over (..., M), which is what a curve costs.

    Without gradients every pass is in place; the bits are the same.
    """
    squares = inside.square().sum(-1, keepdim=True) + centres.square().sum(-1)
    at_edge = 1.0 - (beyond * inside).sum(-1, keepdim=True)
    if torch.is_grad_enabled():
        squares = squares - 2.0 * (inside @ centres.T)
        return torch.exp(-0.5 * squares.clamp(min=0.0)) * (at_edge + beyond @ centres.T)
    squares.sub_(inside @ centres.T, alpha=2.0)
    found = squares.clamp_(min=0.0).mul_(-0.5).exp_()
    if beyond.any():
        found.mul_((beyond @ centres.T).add_(at_edge))
    return found


def _products(x: Tensor) -> Tensor:
    """Returns x_i x_j for i ≤ j at x (n, f), (n, f (f + 1) / 2)."""
    columns = x.unbind(1)
    pairs = [one * other for i, one in enumerate(columns) for other in columns[i:]]
    return torch.stack(pairs).T


def extended_products(x: Tensor, inside: Tensor) -> Tensor:
    """Returns x_i x_j for i ≤ j at `inside`, gone on straight to x, (..., f (f + 1) / 2)."""
    i, j = torch.triu_indices(x.shape[-1], x.shape[-1], device=x.device)
    a, b, c, d = (of.index_select(-1, at) for of in (inside, x) for at in (i, j))
    return a * d + b * c - a * b


def hinges(x: Tensor, inside: Tensor) -> Tensor:
    """Returns how far each feature is above its upper edge and below its lower, (..., 2 f)."""
    beyond = x - inside
    return torch.cat([beyond.clamp(min=0.0), beyond.clamp(max=0.0)], -1)
