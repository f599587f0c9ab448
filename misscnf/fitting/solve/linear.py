r"""Linear-Gaussian models, fitted to convergence: full-information maximum likelihood.

With x = b + B x + D^½ u, the rows have mean μ = (I − B)⁻¹ b and covariance
Σ = (I − B)⁻¹ D (I − B)⁻ᵀ, and a row that shows O follows N(μ_O, Σ_OO). A pattern enters through
its count n, mean m and scatter S alone:

    log L = −½ Σ_patterns [ n |O| log 2π + n log|Σ_OO| + tr Σ_OO⁻¹ (S + n (m − μ_O)(m − μ_O)ᵀ) ].

The search starts from pairwise regressions (never from zero slopes, which are a saddle where
parent and child are not seen together) and moves in coordinates where the parents of each node are
uncorrelated, so that almost collinear parents do not slow it down. Nodes that share a mechanism
share its coordinates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from misscnf.data.rows import RowSource
from misscnf.fitting.settings import Solving
from misscnf.fitting.solve.quasi_newton import maximise
from misscnf.inference.elimination import Plan
from misscnf.mechanisms import Gaussian
from misscnf.mechanisms.gaussian import SMALLEST_LOG_SCALE
from misscnf.model import StructuralModel, Structure

__all__ = ["LinearFit", "fit_linear_gaussian"]

ENTRIES_AT_ONCE = 2**22
"""Of covariances of patterns: bounds the memory of an evaluation."""


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear model."""

    model: StructuralModel
    """in double precision"""
    log_prob: float
    """mean log-density of what the rows show, at the fit"""
    iterations: int
    converged: bool


@dataclass(frozen=True)
class _Moments:
    """Counts, means and scatters of the patterns; zeros where unobserved. P patterns."""

    observed: Tensor
    count: Tensor
    mean: Tensor
    scatter: Tensor

    @staticmethod
    def of(rows: RowSource, plan: Plan) -> _Moments:
        """Adds up two passes over the rows: first their means, then what is around these."""
        patterns, d = plan.observed.shape
        mean = torch.zeros(patterns, d, dtype=torch.float64)
        scatter = torch.zeros(patterns, d, d, dtype=torch.float64)
        count = torch.bincount(plan.pattern, minlength=patterns).to(mean)
        size = max(1, ENTRIES_AT_ONCE // d**2)
        for pattern, batch in zip(plan.pattern.split(size), rows.batches(size), strict=True):
            mean.index_add_(0, pattern, batch.values)
        mean /= count[:, None]
        for pattern, batch in zip(plan.pattern.split(size), rows.batches(size), strict=True):
            around = torch.where(batch.observed, batch.values - mean[pattern], 0.0)
            scatter.index_add_(0, pattern, around[:, :, None] * around[:, None, :])
        return _Moments(plan.observed, count, mean, scatter)


def fit_linear_gaussian(
    structure: Structure, rows: RowSource, settings: Solving | None = None
) -> LinearFit:
    """Fits a linear-Gaussian model to all rows.

    Arguments:
        structure: The graph, all of whose nodes are continuous, and its ties.
        rows: The rows.
        settings: Numbers of the search.
    """
    settings = settings or Solving()
    moments = _Moments.of(rows, Plan.of(structure.graph, rows))
    coordinates = _Coordinates(structure, _pairwise_covariance(rows), settings.unseen_slope)
    point, count = coordinates.start().requires_grad_(), len(rows)

    def objective() -> float:
        mean, covariance = coordinates.moments(point)
        try:
            log_prob, by_mean, by_covariance = _log_likelihood(moments, mean, covariance)
        except torch.linalg.LinAlgError:
            return math.nan
        torch.autograd.backward([mean, covariance], [by_mean / count, by_covariance / count])
        return log_prob / count

    found = maximise(
        [point],
        objective,
        lowest=coordinates.lowest(),
        steps=5000,
        value_tolerance=1e-14,
        slope_tolerance=1e-7,
        flat=1e-5,
    )
    model = coordinates.model(point.detach())
    return LinearFit(model, found.value, found.iterations, found.converged)


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
        total += float(-0.5 * (n * (seen.sum(1) * math.log(2.0 * math.pi) + log_det) + fit).sum())
        by_mean += (n[:, None] * (inverse @ away[..., None])[..., 0]).sum(0)
        by_covariance -= 0.5 * (n[:, None, None] * inverse - inverse @ scatter @ inverse).sum(0)
    return total, by_mean, by_covariance


def _pairwise_covariance(rows: RowSource) -> Tensor:
    """Returns covariances from the rows that show both columns; nan where none does."""
    d = rows.columns
    together, sums, products = (torch.zeros(d, d, dtype=torch.float64) for _ in range(3))
    for batch in rows.batches(2**16):
        seen = batch.observed.to(batch.values)
        together += seen.T @ seen
        sums += batch.values.T @ seen  # of column i in rows that show j too
        products += batch.values.T @ batch.values
    mean = sums / together
    return torch.where(together > 2, products / together - mean * mean.T, math.nan)


class _Coordinates:
    """The vector that is moved: (intercept, whitened slopes, log-scale) of each block."""

    def __init__(self, structure: Structure, covariance: Tensor, unseen_slope: float) -> None:
        self.structure, self.unseen_slope = structure, unseen_slope
        parents = structure.graph.parents
        self.sizes = [len(parents[nodes[0]]) + 2 for nodes in structure.blocks]
        self.whitening: list[Tensor] = []
        """W with w = W v: the parents of a block, times W, are uncorrelated"""
        self.slopes: list[Tensor] = []
        """the pairwise regressions, in whitened coordinates"""
        self.scales: list[float] = []
        for nodes in structure.blocks:
            families = [[i, *parents[i]] for i in nodes]
            self._start_block(torch.stack([covariance[i][:, i] for i in families]).nanmean(0))

    def _start_block(self, family: Tensor) -> None:
        """Starts from the covariance of the node and its parents (1 + p, 1 + p)."""
        variance, along, among = family[0, 0], family[1:, 0], family[1:, 1:]
        among = torch.nan_to_num(among, nan=0.0)
        root = torch.linalg.cholesky(_positive(among))
        whitening = torch.linalg.inv(root).T if len(along) else root
        weights = whitening @ (whitening.T @ torch.nan_to_num(along, nan=0.0))
        weights = torch.where(along.isnan() | (weights == 0), self.unseen_slope, weights)
        left = variance - weights @ (2 * torch.nan_to_num(along) - among @ weights)
        self.whitening.append(whitening)
        self.slopes.append(torch.linalg.solve(whitening, weights) if len(along) else weights)
        self.scales.append(math.sqrt(max(float(left), 1e-3)))

    def start(self) -> Tensor:
        """Returns the vector at the pairwise regressions."""
        parts = [
            torch.cat([torch.zeros(1), slopes, torch.tensor([math.log(scale)])])
            for slopes, scale in zip(self.slopes, self.scales, strict=True)
        ]
        return torch.cat(parts).double()

    def lowest(self) -> list[float]:
        """Returns the least value of each number."""
        ends = [[-math.inf] * (size - 1) + [SMALLEST_LOG_SCALE] for size in self.sizes]
        return [bound for block in ends for bound in block]

    def _unpack(self, vector: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        return [
            (part[0], whitening @ part[1:-1], part[-1])
            for part, whitening in zip(vector.split(self.sizes), self.whitening, strict=True)
        ]

    def moments(self, vector: Tensor) -> tuple[Tensor, Tensor]:
        """Returns μ and Σ of the model at a vector."""
        graph = self.structure.graph
        by_node = dict[int, tuple[Tensor, Tensor, Tensor]]()
        for nodes, block in zip(self.structure.blocks, self._unpack(vector), strict=True):
            by_node |= dict.fromkeys(nodes, block)
        rows = [
            vector.new_zeros(len(graph)).index_put(
                (torch.tensor(graph.parents[i], dtype=torch.int64),), by_node[i][1]
            )
            for i in range(len(graph))
        ]
        identity = torch.eye(len(graph), dtype=vector.dtype)
        total = torch.linalg.solve_triangular(
            identity - torch.stack(rows), identity, upper=False, unitriangular=True
        )
        scaled = total * torch.exp(torch.stack([by_node[i][2] for i in range(len(graph))]))
        mean = total @ torch.stack([by_node[i][0] for i in range(len(graph))])
        return mean, scaled @ scaled.T

    def model(self, vector: Tensor) -> StructuralModel:
        """Returns the linear model at a vector."""
        mechanisms = []
        for block, (intercept, weights, log_scale) in enumerate(self._unpack(vector)):
            mechanism = Gaussian(self.structure.parents_of(block)).double()
            scale = math.exp(float(log_scale))
            mechanism.set_line(float(intercept), weights.tolist(), scale)
            mechanisms.append(mechanism)
        return self.structure.model(mechanisms)


def _positive(matrix: Tensor) -> Tensor:
    """Returns the nearest matrix whose eigenvalues are at least a small share of the largest."""
    if not len(matrix):
        return matrix
    eigenvalues, vectors = torch.linalg.eigh(matrix)
    floor = 1e-4 * eigenvalues.amax().clamp(min=1e-4)
    return vectors @ torch.diag(eigenvalues.clamp(min=floor)) @ vectors.T
