r"""What a curve rests on: few basis functions that the rows can tell apart.

A prior that the evidence chose (`evidence`) makes a curve out of radial basis functions, products
and hinges, more of them than rows can tell apart, and alike. They are turned into basis functions
that the n rows know one by one: with F the forms less what a line says of them, times their
deviations in the prior,

    Fᵀ F / σ² = U D Uᵀ,       basis functions F U.

Basis functions of which even all rows that show y could tell nothing (D_j below 0.05 for them,
against 1 of the prior) are left out. Each is measured in units of its own posterior error, 1/√N:
so the likelihood of all N rows, which training follows from here, is as steep in every weight. On
rows that show the family whole, weights and line are a ridge regression (`fit_curve`).

Beyond its edges a curve goes on straight. A parabola of a variable with heavy tails does not, and
there the few rows far out are those that a straight line misses by a hundred deviations. So the
curve is tried with products that go on as products too, and takes them where the rows, each
predicted by the others, have it so. A row i of leverage h_i that a ridge regression misses by r_i
would be missed by r_i / (1 − h_i) without it; what counts is the log-density of that in a law of
Cauchy, of scale σ / √(1 − h_i), in which no single row can say much more than that it fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Generator, Tensor
from torch.nn import functional

from misscnf.data.domains import Domain
from misscnf.fitting.settings import Curves
from misscnf.fitting.smooth.evidence import (
    JITTER,
    Prior,
    choose_prior,
    line_of,
    products_of,
    radial_basis_of,
    spread_centres,
)
from misscnf.mechanisms import Gaussian
from misscnf.mechanisms.curve import hinges, radial_basis

__all__ = ["Basis", "CurveBasis", "find_basis", "fit_curve"]


class CurveBasis(Protocol):
    """All of a curve but its weights, whatever it is made of."""

    @property
    def noise(self) -> float:
        """The noise, σ."""

    def mechanism(self, parents: Sequence[Domain]) -> Gaussian:
        """Returns a mechanism with this curve, all weights zero."""


@dataclass(frozen=True)
class Basis:
    """All of a curve but its weights. M centres, r basis functions; see `mechanisms.curve`."""

    centres: Tensor
    """(M, f)"""
    length_scale: Tensor
    """(f,) length scales"""
    projection: Tensor
    """(M + products + 2 f, r)"""
    tilt: Tensor
    """(1 + f, r)"""
    edges: Tensor
    """(2, f) beyond which the curve goes on straight"""
    prior_precision: Tensor
    """(r,) precision of the prior of each weight"""
    noise: float
    """σ"""
    endless: bool = False
    """whether products go on as products beyond the edges"""

    @property
    def size(self) -> tuple[int, ...]:
        """Centres, products and basis functions; 1 as a fourth where products are endless."""
        centres, features = self.centres.shape
        products = len(self.projection) - centres - 2 * features
        found = centres, products, self.projection.shape[1]
        return (*found, 1) if self.endless else found

    def among(self, columns: Sequence[int], features: int) -> Basis:
        """Returns the same curve in some of more features, in their order; a line in the others.

        Length scales of the others are endless, and nothing is made of them.
        """
        centres, products, functions = self.size[:3]
        at, pairs = torch.tensor(columns), torch.triu_indices(features, features)
        both = torch.isin(pairs, at).all(0) & bool(products)
        of_hinges = centres + (both.numel() if products else 0) + at
        parts = [torch.arange(centres), centres + both.nonzero()[:, 0]]
        rows = torch.cat([*parts, of_hinges, of_hinges + features])
        new, most = self.centres.new_zeros, int(of_hinges[0] - at[0]) + 2 * features
        return replace(
            self,
            centres=new(centres, features).index_copy(1, at, self.centres),
            length_scale=new(features).fill_(torch.inf).index_copy(0, at, self.length_scale),
            projection=new(most, functions).index_copy(0, rows, self.projection),
            tilt=new(1 + features, functions).index_copy(
                0, functional.pad(1 + at, (1, 0)), self.tilt
            ),
            edges=torch.stack([new(features) - torch.inf, new(features) + torch.inf]).index_copy(
                1, at, self.edges
            ),
        )

    def mechanism(self, parents: Sequence[Domain]) -> Gaussian:
        """Returns a mechanism with this curve, all weights zero."""
        found = Gaussian(parents, mean_curve=self.size).double()
        curve = found.mean.curve
        assert curve is not None
        for name in ("centres", "length_scale", "projection", "tilt", "edges", "prior_precision"):
            getattr(curve, name).copy_(getattr(self, name))
        return found


@torch.no_grad()
def find_basis(
    x: Tensor,
    y: Tensor,
    rows: int,
    seen: int,
    generator: Generator,
    settings: Curves,
    scale: Tensor | None = None,
) -> Basis | None:
    """Returns what a curve of y should rest on; None where a line says it all or it is too narrow.

    Arguments:
        x: Features (n, f) of the rows that show the family.
        y: (n,)
        rows: The rows of the whole table, N.
        seen: The rows that show y, with all features or not.
        generator: Where the centres come from.
        settings: How the prior is chosen, and what is too narrow for a curve.
        scale: What the noise of each row is times as large as the basis says, (n,); None for one.
    """
    scale = torch.ones_like(y) if scale is None else scale
    order = torch.randperm(len(x), generator=generator)
    few = order[: settings.evidence_rows]
    some = x[few]
    prior = choose_prior(some, y[few], scale[few], settings)
    if bool((prior.length_scale < settings.narrowest)[_many_valued(some)].any()):
        return None
    enough = (
        settings.least_information * float(prior.noise) ** 2 / (seen * float(prior.amplitude) ** 2)
    )
    most = settings.most_centres
    spread = spread_centres(some / prior.length_scale, enough * scale[few].square(), most)
    if len(spread) > most:
        return None
    z, edges = some[spread], _edges(x, prior.length_scale, settings)
    about = (x, y, scale, z, edges, prior)
    fit = _Ridge.of(*about, endless=False)
    if len(prior.curvature) and bool(((x < edges[0]) | (x > edges[1])).any()):
        other = _Ridge.of(*about, endless=True)
        if other.left_out() > fit.left_out() + settings.worth:
            fit = other
    information = fit.strength.clamp(min=0.0) / fit.noise**2
    of_all = information * seen / len(y)
    known = of_all > settings.least_information
    if not known.any():
        return None
    unit = ((1.0 + information[known]) / rows).sqrt()
    turn = fit.turn[:, known] / unit
    found = fit.projection @ turn, fit.tilt @ turn, edges, unit**-2.0, fit.noise, fit.endless
    return Basis(z, prior.length_scale, *found)


@dataclass(frozen=True)
class _Ridge:
    """The ridge regression of some rows on a line and on what a curve is made of."""

    projection: Tensor
    """(M + products + 2 f, r) what a curve is made of, in units of its deviations"""
    tilt: Tensor
    """(1 + f, r) what a line says of it"""
    strength: Tensor
    """(r,) D"""
    turn: Tensor
    """(r, r) U"""
    noise: float
    """σ"""
    endless: bool
    misses: Tensor
    """(n,) what a line leaves, over s"""
    raw_basis: Tensor
    """(n, r) F, over s"""
    of_line: Tensor
    """(n,) leverages of the line"""

    @staticmethod
    def of(
        x: Tensor,
        y: Tensor,
        scale: Tensor,
        z: Tensor,
        edges: Tensor,
        prior: Prior,
        *,
        endless: bool,
    ) -> _Ridge:
        """Fits rows; arguments as in `find_basis`, centres, edges, prior."""
        projection = _deviations(prior, z)
        raw_basis = _raw_basis(x, edges, z, prior, endless=endless) @ projection
        raw_basis, line, y = raw_basis / scale[:, None], line_of(x) / scale[:, None], y / scale
        root = torch.linalg.cholesky(line.T @ line + JITTER * torch.eye(line.shape[1]).to(line))
        tilt = torch.cholesky_solve(line.T @ raw_basis, root)
        raw_basis = raw_basis - line @ tilt
        straight = y - line @ torch.cholesky_solve(line.T @ y[:, None], root)[:, 0]
        strength, turn = torch.linalg.eigh(raw_basis.T @ raw_basis)
        pull = (turn.T @ (raw_basis.T @ straight)).square()
        noise = _noise(float(prior.noise), strength, pull, straight, line.shape[1])
        of_line = torch.linalg.solve_triangular(root, line.T, upper=False).square().sum(0)
        found = (projection, tilt, strength, turn, noise, endless)
        return _Ridge(*found, straight, raw_basis, of_line)

    def left_out(self) -> float:
        """Returns how likely all rows are, each given the others, in laws of Cauchy."""
        functions = self.raw_basis @ self.turn
        ridge = self.strength.clamp(min=0.0) + self.noise**2
        missed = self.misses - functions @ ((functions.T @ self.misses) / ridge)
        leverage = self.of_line + (functions.square() / ridge).sum(1)
        free = (1.0 - leverage).clamp(min=1e-9)
        spread = self.noise / free.sqrt()
        return -float((spread.log() + torch.log1p((missed / free / spread).square())).sum())


def _many_valued(x: Tensor) -> Tensor:
    """Returns which features have more than two values, (f,): between two, nothing is narrow."""
    return x.sort(0).values.diff(dim=0).ne(0).sum(0) > 1


def _edges(x: Tensor, length_scale: Tensor, settings: Curves) -> Tensor:
    """Returns where each feature has left the rows behind, (2, f)."""
    ordered = x.sort(0).values
    few, lead = min(settings.beyond, len(x) // 200), settings.lead * length_scale
    return torch.stack([ordered[few] - lead, ordered[-1 - few] + lead])


def _deviations(prior: Prior, z: Tensor) -> Tensor:
    """Returns a root of the prior's covariance of the raw basis, (M + products + 2 f, same).

    A hinge is as steep as radial basis functions are.
    """
    size, turn = torch.linalg.eigh(radial_basis_of(z, z, prior.length_scale))
    of_radial_basis = prior.amplitude * turn / size.clamp(min=1e-14).sqrt()
    of_hinges = (prior.amplitude / prior.length_scale).repeat(2)
    return torch.block_diag(of_radial_basis, prior.spreads().diag(), of_hinges.diag())


def _raw_basis(x: Tensor, edges: Tensor, z: Tensor, prior: Prior, *, endless: bool) -> Tensor:
    """Returns what a curve is made of (`Curve.raw_basis`), (n, M + products + 2 f)."""
    length, inside = prior.length_scale, x.clamp(edges[0], edges[1])
    radial = radial_basis(x / length, inside / length, z / length)
    products = products_of(x, x if endless else inside, len(prior.curvature))
    return torch.cat([radial, products, hinges(x, inside)], 1)


def _noise(noise: float, strength: Tensor, pull: Tensor, straight: Tensor, line: int) -> float:
    """Returns the noise that a ridge of strength σ² leaves, its degrees of freedom counted."""
    for _ in range(3):
        ridge = strength + noise**2
        left = straight @ straight - (pull * (2.0 / ridge - strength / ridge.square())).sum()
        spent = line + (strength / ridge).sum()
        noise = float((left / (len(straight) - spent).clamp(min=1.0)).clamp(min=1e-6).sqrt())
    return noise


@torch.no_grad()
def fit_curve(
    basis: CurveBasis | None,
    parents: Sequence[Domain],
    x: Tensor,
    y: Tensor,
    weights: Tensor | None = None,
) -> Gaussian:
    """Returns the mechanism that fits some rows best, its curve under the prior.

    Arguments:
        basis: What the curve rests on; None for a line.
        parents: The domains of the parents.
        x: Parents (n, p).
        y: (n,)
        weights: (n,) of the rows; None counts all alike.
    """
    found = Gaussian(parents).double() if basis is None else basis.mechanism(parents)
    weights = torch.ones_like(y) if weights is None else weights
    mean = found.linear_mean()
    assert mean is not None  # no network is in it
    columns = mean.columns(x)
    gram = columns.T @ (weights[:, None] * columns)
    penalty = mean.prior_precision * (1.0 if basis is None else basis.noise**2)
    ridge = gram + penalty.diag() + 1e-9 * len(y) * torch.eye(len(gram), dtype=y.dtype)
    coefficients = torch.linalg.solve(ridge, columns.T @ (weights * y))
    spent = torch.linalg.solve(ridge, gram).diagonal().sum()
    left = (weights * (y - columns @ coefficients).square()).sum()
    variance = (left / (weights.sum() - spent).clamp(min=1.0)).clamp(min=1e-12)
    mean.write(coefficients, None)
    found.log_scale.bias.copy_(0.5 * variance.log())
    return found
