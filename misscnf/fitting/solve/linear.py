r"""Linear-Gaussian models, fitted to convergence: full-information maximum likelihood.

With x = b + B x + D^½ u, the rows have mean μ = (I − B)⁻¹ b and covariance
Σ = (I − B)⁻¹ D (I − B)⁻ᵀ, and a row that shows O follows N(μ_O, Σ_OO). A pattern enters through
its count n, mean m and scatter S alone:

    log L = −½ Σ_patterns [ n |O| log 2π + n log|Σ_OO| + tr Σ_OO⁻¹ (S + n (m − μ_O)(m − μ_O)ᵀ) ].

L-BFGS starts from pairwise regressions (never from zero slopes, which are a saddle where parent
and child are not seen together) and moves in coordinates where the parents of each node are
uncorrelated, so that almost collinear parents do not slow it down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan

__all__ = ["LinearFit", "fit_linear"]

LOG_TWO_PI = math.log(2.0 * math.pi)
SMALLEST_LOG_SCALE = math.log(1e-4)
"""A column that its parents determine exactly has no density; its scale ends here, of its own."""
UNSEEN_SLOPE = 0.3
"""Where a parent and a child are never seen together, the data give no slope to start from."""
ENTRIES_AT_ONCE = 2**22
OUT_OF_REACH = 1e10
FLAT = 1e-5
"""Nats a row and unit of a coordinate: no slope left to follow."""


@dataclass(frozen=True)
class LinearFit:
    """The coefficients x_i = intercept + weights · parents + scale · u, node by node."""

    intercepts: list[float]
    weights: list[list[float]]
    scales: list[float]
    log_prob: float
    """Mean log-density of what the rows show, at the fit."""
    iterations: int
    converged: bool


@dataclass(frozen=True)
class _Moments:
    """Counts, means and scatters of the patterns; zeros where unobserved. P patterns."""

    observed: Tensor
    count: Tensor
    mean: Tensor
    scatter: Tensor


def fit_linear(graph: CausalGraph, values: Tensor, observed: Tensor) -> LinearFit:
    """Fits a linear-Gaussian model to all rows.

    Arguments:
        graph: The causal graph.
        values: (N, d), with finite numbers in the holes.
        observed: (N, d).
    """
    values = torch.where(observed, values, 0.0).double()
    moments = _moments(values, Plan.make(graph, observed))
    coordinates = _Coordinates(graph, _pairwise_covariance(values, observed))
    rows = len(values)

    def objective(vector: np.ndarray) -> tuple[float, np.ndarray]:
        point = torch.from_numpy(vector).requires_grad_()
        mean, covariance = coordinates.moments(point)
        try:
            log_prob, by_mean, by_covariance = _log_likelihood(moments, mean, covariance)
        except torch.linalg.LinAlgError:  # a step too far: the line search comes back
            return OUT_OF_REACH, np.zeros_like(vector)
        torch.autograd.backward([mean, covariance], [-by_mean / rows, -by_covariance / rows])
        gradient = point.grad if point.grad is not None else torch.zeros_like(point)
        return -log_prob / rows, gradient.numpy()

    result = minimize(
        objective,
        coordinates.start(),
        jac=True,
        method="L-BFGS-B",
        bounds=coordinates.bounds(),
        options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-14, "gtol": 1e-7, "maxcor": 30},
    )
    intercepts, weights, scales = coordinates.coefficients(torch.from_numpy(result.x))
    # At the limit of precision a line search may fail; what counts is that nothing pulls any more.
    converged = bool(result.success) or float(np.abs(result.jac).max()) < FLAT
    return LinearFit(intercepts, weights, scales, -float(result.fun), int(result.nit), converged)


def _moments(values: Tensor, plan: Plan) -> _Moments:
    patterns, d = plan.observed.shape
    count = torch.bincount(plan.pattern, minlength=patterns).to(values)
    mean = values.new_zeros(patterns, d).index_add_(0, plan.pattern, values) / count[:, None]
    centred = values - mean[plan.pattern]
    scatter = values.new_zeros(patterns, d, d)
    for rows in torch.arange(len(values)).split(max(1, ENTRIES_AT_ONCE // d**2)):
        part = centred[rows]
        scatter.index_add_(0, plan.pattern[rows], part[:, :, None] * part[:, None, :])
    return _Moments(plan.observed, count, mean, scatter)


def _log_likelihood(
    moments: _Moments, mean: Tensor, covariance: Tensor
) -> tuple[float, Tensor, Tensor]:
    """Returns log L with its derivatives by the mean (d,) and the covariance (d, d)."""
    mean, covariance = mean.detach(), covariance.detach()
    d = len(mean)
    total, by_mean, by_covariance = 0.0, torch.zeros_like(mean), torch.zeros_like(covariance)
    eye = torch.eye(d, dtype=mean.dtype)
    for part in torch.arange(len(moments.count)).split(max(1, ENTRIES_AT_ONCE // d**2)):
        seen, n = moments.observed[part], moments.count[part]
        both = seen[:, :, None] & seen[:, None, :]
        root = torch.linalg.cholesky(torch.where(both, covariance, eye))
        away = torch.where(seen, moments.mean[part] - mean, 0.0)
        scatter = moments.scatter[part] + n[:, None, None] * away[:, :, None] * away[:, None, :]
        inverse = torch.where(both, torch.cholesky_inverse(root), 0.0)
        log_det = 2.0 * root.diagonal(dim1=1, dim2=2).log().sum(1)
        fit = (inverse * scatter).sum((1, 2))
        total += float(-0.5 * (n * (seen.sum(1) * LOG_TWO_PI + log_det) + fit).sum())
        by_mean += (n[:, None] * (inverse @ away[..., None])[..., 0]).sum(0)
        by_covariance -= 0.5 * (n[:, None, None] * inverse - inverse @ scatter @ inverse).sum(0)
    return total, by_mean, by_covariance


def _pairwise_covariance(values: Tensor, observed: Tensor) -> Tensor:
    """Returns covariances from the rows that show both columns; nan where none does."""
    seen = observed.to(values)
    together = seen.T @ seen
    mean_first = (values.T @ seen) / together  # of column i in rows that show j too
    covariance = (values.T @ values) / together - mean_first * mean_first.T
    return torch.where(together > 2, covariance, math.nan)


class _Coordinates:
    """The vector that L-BFGS moves: (intercept, whitened slopes, log-scale) of each node."""

    def __init__(self, graph: CausalGraph, covariance: Tensor) -> None:
        self.graph = graph
        self.sizes = [len(parents) + 2 for parents in graph.parents]
        self.whitening: list[Tensor] = []
        """W with w = W v: the parents of a node, times W, are uncorrelated"""
        self.slopes: list[Tensor] = []
        """the pairwise regressions, in whitened coordinates"""
        self.scales: list[float] = []
        for i, parents in enumerate(graph.parents):
            self._start_node(covariance, i, list(parents))

    def _start_node(self, covariance: Tensor, i: int, parents: list[int]) -> None:
        among = torch.nan_to_num(covariance[parents][:, parents], nan=0.0)
        root = torch.linalg.cholesky(_positive(among))
        whitening = torch.linalg.inv(root).T if parents else root
        along = covariance[parents, i]
        unseen = along.isnan()
        weights = whitening @ (whitening.T @ torch.nan_to_num(along, nan=0.0))
        weights = torch.where(unseen | (weights == 0), UNSEEN_SLOPE, weights)
        variance = covariance[i, i] - weights @ (2 * torch.nan_to_num(along) - among @ weights)
        self.whitening.append(whitening)
        self.slopes.append(torch.linalg.solve(whitening, weights) if parents else weights)
        self.scales.append(math.sqrt(max(float(variance), 1e-3)))

    def start(self) -> np.ndarray:
        parts = [
            torch.cat([torch.zeros(1), slopes, torch.tensor([math.log(scale)])])
            for slopes, scale in zip(self.slopes, self.scales, strict=True)
        ]
        return torch.cat(parts).double().numpy()

    def bounds(self) -> list[tuple[float | None, float | None]]:
        free = (None, None)
        return [
            bound
            for size in self.sizes
            for bound in (*[free] * (size - 1), (SMALLEST_LOG_SCALE, None))
        ]

    def _unpack(self, vector: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        return [
            (part[0], whitening @ part[1:-1], part[-1])
            for part, whitening in zip(vector.split(self.sizes), self.whitening, strict=True)
        ]

    def moments(self, vector: Tensor) -> tuple[Tensor, Tensor]:
        """Returns μ and Σ of the model at a vector."""
        d = len(self.graph)
        nodes = self._unpack(vector)
        rows = []
        for i, (_, weights, _) in enumerate(nodes):
            row = vector.new_zeros(d)
            rows.append(
                row.index_put((torch.tensor(self.graph.parents[i], dtype=torch.int64),), weights)
            )
        identity = torch.eye(d, dtype=vector.dtype)
        total = torch.linalg.solve_triangular(
            identity - torch.stack(rows), identity, upper=False, unitriangular=True
        )
        scaled = total * torch.exp(torch.stack([node[2] for node in nodes]))
        mean = total @ torch.stack([node[0] for node in nodes])
        return mean, scaled @ scaled.T

    def coefficients(self, vector: Tensor) -> tuple[list[float], list[list[float]], list[float]]:
        """Returns intercepts, weights and scales at a vector."""
        nodes = self._unpack(vector)
        return (
            [float(node[0]) for node in nodes],
            [node[1].tolist() for node in nodes],
            [math.exp(float(node[2])) for node in nodes],
        )


def _positive(matrix: Tensor) -> Tensor:
    """Returns the nearest matrix whose eigenvalues are at least a small share of the largest."""
    if not len(matrix):
        return matrix
    eigenvalues, vectors = torch.linalg.eigh(matrix)
    floor = 1e-4 * eigenvalues.amax().clamp(min=1e-4)
    return vectors @ torch.diag(eigenvalues.clamp(min=floor)) @ vectors.T
