r"""Linear-Gaussian models, fitted to convergence: full-information maximum likelihood.

With x_i = b_i + w_i · x_pa(i) + s_i u_i, what the rows show has a closed form, whose value and
gradient come from `local_patterns` at a cost that follows edges and holes.

The search starts from pairwise regressions (never from zero slopes, which are a saddle where
parent and child are not seen together). It moves in coordinates where the parents of each node are
centred and uncorrelated and its noise is one, so that complete rows would say as much of every
coordinate, and almost collinear parents do not slow it down. Nodes that share a mechanism share
its coordinates.

Hidden causes have no intercept and noise of variance one, since rows tell neither. With them the
likelihood may have several maxima: the search starts from their factors (`factors`) and from
random changes of these, and the best end is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from misscnf.data.rows import Batch, RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.settings import Solving
from misscnf.fitting.solve.factors import anchor, factor_moments
from misscnf.fitting.solve.local_patterns import Families, LinearRows
from misscnf.fitting.solve.quasi_newton import Maximum, maximise
from misscnf.mechanisms import Mechanism, Shape
from misscnf.mechanisms.gaussian import SMALLEST_LOG_SCALE
from misscnf.mechanisms.history import reading_matrix
from misscnf.model import StructuralModel, Structure
from misscnf.threads import in_order

if TYPE_CHECKING:
    from misscnf.fitting.solve.loss_starts import LossStart

__all__ = ["LinearFit", "fit_linear_gaussian"]


@dataclass(frozen=True)
class LinearFit:
    """A fitted linear model."""

    model: StructuralModel
    """in double precision"""
    log_prob: float
    """mean log-density of what the rows show, at the fit"""
    iterations: int
    converged: bool
    starts: tuple[LossStart, ...] = ()
    """what came of several starts, where a loss depends on the value it hides"""
    near: bool = False
    """whether it is only near its maximum, as was asked for"""
    ties: int = 0
    """other starts that reached the same likelihood by another model"""


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
    centre, covariance = _pairwise_moments(rows)
    covariance = factor_moments(structure.graph, covariance)
    table = LinearRows(structure.graph, rows, centre)
    coordinates = _Coordinates(structure, centre, covariance, settings.unseen_slope)

    def search(point: Tensor, tolerance: float = 1e-14) -> Maximum:
        def objective() -> float:
            value, surrogate = table.log_prob(*coordinates.factors(point))
            (surrogate / len(rows)).backward()
            return float(value) / len(rows)

        return maximise(
            [point.requires_grad_()],
            objective,
            lowest=coordinates.lowest(),
            highest=coordinates.highest(),
            steps=5000,
            value_tolerance=tolerance,
            slope_tolerance=1e-7,
            flat=1e-5,
        )

    if not structure.graph.latent:
        point = coordinates.start()
        found = search(point)
        model = coordinates.model(point.detach())
        value = found.value + coordinates.beforehand
        return LinearFit(model, value, found.iterations, found.converged)
    points = coordinates.starts(settings)
    tried = [search(point, 1e-10).value for point in points]
    best = max(range(len(points)), key=tried.__getitem__)
    found = search(points[best])
    models = [coordinates.model(point.detach()) for point in points]
    for one in models:
        anchor(one)
    same = settings.same_likelihood / len(rows)
    ties = sum(
        value > found.value - same and _differ(models[best], other)
        for value, other in zip(tried, models, strict=True)
    )
    return LinearFit(models[best], found.value, found.iterations, found.converged, ties=ties)


@torch.no_grad()
def _differ(one: StructuralModel, other: StructuralModel, least: float = 0.1) -> bool:
    """Says whether the slopes of columns on columns, or of hidden causes on one another, differ.

    A hidden cause of two columns and nothing else has loadings of which the product counts alone.
    """
    graph = one.graph
    for i, parents in enumerate(graph.parents):
        ours, theirs = one.mechanism(i).linear_form(), other.mechanism(i).linear_form()
        assert ours is not None
        assert theirs is not None
        for place, j in enumerate(parents):
            counts = j not in graph.latent_nodes or i in graph.latent_nodes
            if counts and abs(float(ours.weights[place] - theirs.weights[place])) > least:
                return True
    return False


def _pairwise_moments(rows: RowSource) -> tuple[Tensor, Tensor]:
    """Returns means (d,), and covariances from the rows that show both; nan where none does."""

    def totals(batch: Batch) -> Tensor:
        return torch.stack([batch.observed.sum(0).double(), batch.values.sum(0)])

    count, total = sum(in_order(totals, rows.batches()), torch.zeros(()))
    centre = total / count.clamp(min=1.0)

    def squares(batch: Batch) -> Tensor:
        seen = batch.observed.to(batch.values)
        values = (batch.values - centre) * seen
        # in the middle, sums of column i in rows that show j too
        return torch.stack([seen.T @ seen, values.T @ seen, values.T @ values])

    together, sums, products = sum(in_order(squares, rows.batches()), torch.zeros(()))
    mean = sums / together
    return centre, torch.where(together > 2, products / together - mean * mean.T, math.nan)


@dataclass(frozen=True)
class _Block:
    """The coordinates of one block, with p parents, around its pairwise regression.

    x − m = σ γ + σ (W v) · (x_pa − m_pa) + e^λ u, where W x_pa are uncorrelated.
    """

    mean: Tensor
    """(1 + p,) m and m_pa, over the nodes that share the block"""
    scale: float
    """σ"""
    slopes: Tensor
    """σ W (p, p)"""
    start: Tensor
    """(γ, v, λ) of the regression, (p + 2,)"""
    pinned: bool = False
    """whether γ and λ stay zero: of a hidden cause rows tell neither, and a number that is known
    beforehand has none"""

    @staticmethod
    def around(
        mean: Tensor, covariance: Tensor, unseen_slope: float, *, hidden: bool = False
    ) -> _Block:
        """Starts from moments of the node and its parents, nan where they are unknown."""
        mean = torch.zeros_like(mean) if hidden else mean
        variance, along, among = covariance[0, 0], covariance[1:, 0], covariance[1:, 1:]
        among = torch.nan_to_num(among, nan=0.0)
        root = torch.linalg.cholesky(_positive(among))
        whitening = torch.linalg.inv(root).T if len(along) else root
        weights = whitening @ (whitening.T @ torch.nan_to_num(along, nan=0.0))
        weights = torch.where(along.isnan() | (weights == 0), unseen_slope, weights)
        left = variance - weights @ (2 * torch.nan_to_num(along) - among @ weights)
        scale = 1.0 if hidden else math.sqrt(max(float(left), 1e-3))
        slopes = scale * whitening
        v = torch.linalg.solve(slopes, weights) if len(along) else weights
        start = torch.cat([v.new_zeros(1), v, v.new_tensor([math.log(scale)])])
        return _Block(mean, scale, slopes, start, hidden)

    @staticmethod
    def at(mean: Tensor) -> _Block:
        """Stays at a number that is known beforehand."""
        blank = mean.new_zeros(0, 0)
        return _Block(mean, 1.0, blank, mean.new_zeros(2), pinned=True)

    def factor(self, away: Tensor, read: Tensor) -> tuple[float, Tensor]:
        """Returns what a of `local_patterns` is at zero, and by what (γ, v, λ) turn it.

        Arguments:
            away: By how much means of a node and of what it reads differ from those of the block.
            read: (f, p) what it reads of its parents.
        """
        turn = self.start.new_zeros(2 + read.shape[1], len(self.start))
        turn[0, 0], turn[0, 1:-1], turn[2:, 1:-1] = (
            -self.scale,
            -away[1:] @ self.slopes,
            -read.T @ self.slopes,
        )
        return float(away[0]), turn

    def line(self, part: Tensor) -> tuple[float, list[float], float]:
        """Returns intercept, slopes and scale at (γ, v, λ)."""
        weights = self.slopes @ part[1:-1]
        intercept = self.mean[0] + self.scale * part[0] - weights @ self.mean[1:]
        return float(intercept), weights.tolist(), math.exp(float(part[-1]))


class _Coordinates:
    """The vector that is moved: (γ, v, λ) of all blocks, in which every a_i is affine."""

    def __init__(
        self, structure: Structure, centre: Tensor, covariance: Tensor, unseen_slope: float
    ) -> None:
        self.structure, parents = structure, structure.graph.parents
        families = Families(structure.graph)
        self.blocks, entries = list[_Block](), list[Tensor]()
        self.offset = torch.zeros(families.length, dtype=torch.float64)
        self.beforehand = 0.0
        """what normal laws take from the log-density of a row for numbers known beforehand"""
        self.scale_of = torch.zeros(len(parents), dtype=torch.int64)
        """where the λ of each node is"""
        begin = 0
        for nodes in structure.blocks:
            members = [torch.tensor([i, *parents[i]]) for i in nodes]
            reads = [
                reading_matrix(structure.graph.readings.get(i), len(parents[i])) for i in nodes
            ]
            pairs = list(zip(members, reads, strict=True))
            among = torch.stack([_covariance_of(covariance[i][:, i], m) for i, m in pairs])
            among = among.nanmean(0)
            hidden = nodes[0] in structure.graph.latent_nodes
            each = [torch.cat([centre[i[:1]], m @ centre[i[1:]]]) for i, m in pairs]
            means = torch.stack(each).mean(0)
            if structure.domains[nodes[0]].kind == "fixed":
                block = _Block.at(means)
                self.beforehand += 0.5 * math.log(2.0 * math.pi) * len(nodes)
            else:
                block = _Block.around(means, among, unseen_slope, hidden=hidden)
            self.blocks.append(block)
            for i, own, read in zip(nodes, each, reads, strict=True):
                first = families.first[i]
                self.offset[first], turn = block.factor(own - block.mean, read)
                self.offset[first + 1] = 1.0
                self.scale_of[i] = begin + len(block.start) - 1
                row, column = turn.nonzero(as_tuple=True)
                entries.append(torch.stack([row + first, column + begin, turn[row, column]]))
            begin += len(block.start)
        row, column, value = torch.cat(entries, 1)
        self.turn = torch.sparse_coo_tensor(
            torch.stack([row, column]).long(),
            value,
            (families.length, begin),
            check_invariants=True,
        ).coalesce()

    def start(self) -> Tensor:
        """Returns the vector at the pairwise regressions."""
        return torch.cat([block.start for block in self.blocks])

    def starts(self, settings: Solving) -> list[Tensor]:
        """Returns that vector, and others that differ from it around hidden causes."""
        found, generator = [self.start()], derive_generator(0, "starts")
        for _ in range(settings.starts - 1):
            parts = []
            for number, block in enumerate(self.blocks):
                part, size = block.start.clone(), len(block.start) - 2
                if self.structure.beside_hidden(number) and size:
                    noise = torch.randn(size, generator=generator, dtype=torch.float64)
                    moved = settings.start_spread * noise
                    part[1:-1] += torch.linalg.solve(block.slopes, moved)
                parts.append(part)
            found.append(torch.cat(parts))
        return found

    def lowest(self) -> list[float]:
        """Returns the least value of each number."""
        lowest = torch.full_like(self.start(), -math.inf)
        lowest[self.scale_of] = SMALLEST_LOG_SCALE
        return self._pinned(lowest)

    def highest(self) -> list[float]:
        """Returns the largest value of each number."""
        return self._pinned(torch.full_like(self.start(), math.inf))

    def _pinned(self, ends: Tensor) -> list[float]:
        begin = 0
        for block in self.blocks:
            last = begin + len(block.start) - 1
            if block.pinned:
                ends[begin] = ends[last] = 0.0
            begin = last + 1
        return ends.tolist()

    def factors(self, vector: Tensor) -> tuple[Tensor, Tensor]:
        """Returns all a_i and log-scales at a vector."""
        moved = torch.sparse.mm(self.turn, vector[:, None])[:, 0]
        return self.offset + moved, vector[self.scale_of]

    def model(self, vector: Tensor) -> StructuralModel:
        """Returns the linear model at a vector."""
        parts = vector.split([len(block.start) for block in self.blocks])
        mechanisms, line = list[Mechanism](), Shape(hidden=())
        for number, (block, part) in enumerate(zip(self.blocks, parts, strict=True)):
            of = (self.structure.parents_of(number), self.structure.domain_of(number))
            mechanisms.append(line.build(*of).double())
            mechanisms[-1].set_line(*block.line(part))
        return self.structure.model(mechanisms)


def _covariance_of(covariance: Tensor, read: Tensor) -> Tensor:
    """Returns that of a node and what it reads, from that of the node and its parents.

    It is nan where a part of it is.
    """
    if read.shape[0] == read.shape[1] and bool((read == torch.eye(len(read)).to(read)).all()):
        return covariance
    own = torch.block_diag(torch.ones(1, 1).to(read), read)
    part = (own != 0.0).to(own)
    unknown = part @ covariance.isnan().to(own) @ part.T > 0.0
    return torch.where(unknown, torch.nan, own @ covariance.nan_to_num(nan=0.0) @ own.T)


def _positive(matrix: Tensor) -> Tensor:
    """Returns the nearest matrix whose eigenvalues are at least a small share of the largest."""
    if not len(matrix):
        return matrix
    eigenvalues, vectors = torch.linalg.eigh(matrix)
    floor = 1e-4 * eigenvalues.amax().clamp(min=1e-4)
    return vectors @ torch.diag(eigenvalues.clamp(min=floor)) @ vectors.T
