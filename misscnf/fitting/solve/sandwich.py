r"""Replicates of lines and curves: one Newton step from the maximum, for each set of weights.

With s_i the score of row i at the maximum θ̂ and A the information of the table, the maximum under
weights w of the rows is, to first order,

    θ_b = θ̂ + A⁻¹ Σ_i (w_i − 1) s_i,

so that replicates cost a matrix product, and their covariance under Exp(1) weights is the sandwich
A⁻¹ (Σ s sᵀ) A⁻¹, right also where the line is not the truth. Both come from completions of the
rows (`completions`): the score by Fisher's identity and the information by Louis',

    s_i = E[s | x_O],      A = Σ_i E[−∇² log p(x) | x_O] − Cov[s | x_O],

a sum over components of the same posterior averages.

The weights of a curve have a prior of precision T (`mechanisms.curve`), whose mode the fit is. Its
replicates are drawn to weights c_b ~ N(0, T⁻¹) of their own instead of to zero, so that what rows
say little of spreads as the prior leaves it:

    θ_b = θ̂ + (A + T)⁻¹ ( Σ_i (w_i − 1) s_i + T c_b ).
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev, vmap

from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions, LogProb
from misscnf.mechanisms import Curve
from misscnf.model import StructuralModel

__all__ = ["one_step_replicates", "Information", "measure_information", "moved"]

ROWS_AT_ONCE = 1024
PRIOR_SPREAD = 10.0
"""A normal prior around the fit, so wide that it only bounds what the table says nothing of."""
FLAT = 1e-3
"""Information on a count's dispersion below which it sits at its bound, and stays there."""


@dataclass(frozen=True)
class Information:
    """Scores of the rows and the information of the table at a maximum. p parameters."""

    scores: Tensor
    """(N, p)"""
    matrix: Tensor
    """(p, p)"""
    names: list[str]
    """Of each of the p numbers: node/parameter."""
    prior_precision: Tensor
    """(p,) T, the precision of the prior of a curve's weights; zero for others"""

    def newton_moves(self, gradients: Tensor) -> Tensor:
        """Returns how far a Newton step goes, for each of B gradients of the table, (B, p)."""
        prior = self.prior_precision + PRIOR_SPREAD**-2
        moves: Tensor = torch.linalg.solve(self.matrix + prior.diag(), gradients.T).T
        for place, name in enumerate(self.names):
            if name.endswith("dispersion") and self.matrix[place, place] < FLAT * len(self.scores):
                moves[:, place] = 0.0
        return moves

    def draw_pulls(self, count: int, seed: int) -> Tensor:
        """Draws T c of so many replicates, (count, p)."""
        generator = derive_generator(seed, "priors")
        drawn = torch.randn(count, len(self.names), generator=generator, dtype=torch.float64)
        return drawn * self.prior_precision.sqrt()

    def covariance(self) -> Tensor:
        """Returns the sandwich covariance of the estimates, (p, p)."""
        bread = torch.linalg.inv(self.matrix)
        return bread @ (self.scores.T @ self.scores) @ bread


class _Node:
    """One mechanism as a function of the vector of its parameters."""

    def __init__(self, model: StructuralModel, node: int, start: int) -> None:
        self.shell = LogProb(model.mechanism(node))
        parameters = dict(self.shell.named_parameters())
        self.shapes = {name: tensor.shape for name, tensor in parameters.items()}
        self.vector = torch.cat([tensor.detach().flatten() for tensor in parameters.values()])
        self.names = [
            f"{node}/{name}" for name, tensor in parameters.items() for _ in range(tensor.numel())
        ]
        self.prior_precision = torch.cat(
            [_prior_precision(self.shell, *of) for of in parameters.items()]
        )
        self.place = slice(start, start + len(self.vector))

    def log_prob(self, vector: Tensor, own: Tensor, parents: Tensor) -> Tensor:
        """Returns log φ, shaped like own."""
        parts = vector.split([shape.numel() for shape in self.shapes.values()])
        parameters = {
            name: part.reshape(shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }
        found: Tensor = functional_call(self.shell, parameters, (own, parents))
        return found

    def scores(self, own: Tensor, parents: Tensor) -> Tensor:
        """Returns the gradient of each log φ, (n, parameters)."""
        return vmap(grad(self.log_prob), (None, 0, 0))(self.vector, own, parents)

    def curvature(self, own: Tensor, parents: Tensor, weight: Tensor) -> Tensor:
        """Returns −∇² of the weighted sum of log φ, (parameters, parameters)."""

        def total(vector: Tensor) -> Tensor:
            return (weight * self.log_prob(vector, own, parents)).sum()

        return -jacrev(grad(total))(self.vector)


def _prior_precision(shell: nn.Module, name: str, parameter: Tensor) -> Tensor:
    """Returns the precision of a parameter's prior, a number each."""
    home = shell.get_submodule(name.rpartition(".")[0])
    if isinstance(home, Curve):
        return home.prior_precision.expand(parameter.shape).flatten().double()
    return torch.zeros(parameter.numel(), dtype=torch.float64)


def _nodes(model: StructuralModel) -> list[_Node]:
    nodes: list[_Node] = []
    for node in range(len(model.graph)):
        nodes.append(_Node(model, node, nodes[-1].place.stop if nodes else 0))
    return nodes


def measure_information(model: StructuralModel, completions: Completions) -> Information:
    """Returns scores and information of a fitted model whose parameters are few.

    Arguments:
        model: The fit, in double precision.
        completions: Completions of the rows by it; two at least.
    """
    nodes = _nodes(model)
    size = nodes[-1].place.stop
    matrix = torch.zeros(size, size, dtype=torch.float64)
    scores = []
    for rows in torch.arange(len(completions)).split(ROWS_AT_ONCE):
        score, part = _information_of(nodes, completions, rows, size)
        scores.append(score)
        matrix += part
    names = [name for node in nodes for name in node.names]
    prior_precision = torch.cat([node.prior_precision for node in nodes])
    return Information(torch.cat(scores), (matrix + matrix.T) / 2, names, prior_precision)


def _information_of(
    nodes: list[_Node], completions: Completions, rows: Tensor, size: int
) -> tuple[Tensor, Tensor]:
    """Returns scores (n, p) and the information (p, p) of some rows."""
    families = completions.families(rows)
    count = completions.count
    score = torch.zeros(len(rows), size, dtype=torch.float64)
    drawn = torch.zeros(len(families.component_row), count, size, dtype=torch.float64)
    matrix = torch.zeros(size, size, dtype=torch.float64)
    for node, family in zip(nodes, families.nodes, strict=True):
        if not len(family.own):
            continue
        found = node.scores(family.own, family.parents)
        score[:, node.place].index_add_(0, family.free, found[: len(family.free)])
        of_draws = found[family.place].transpose(0, 1)
        drawn[:, :, node.place].index_add_(0, family.component, of_draws)
        times = torch.bincount(family.place.flatten(), minlength=len(found))
        weight = times.to(found) / count
        weight[: len(family.free)] = 1.0
        matrix[node.place, node.place] += node.curvature(family.own, family.parents, weight)
    mean = drawn.mean(1)
    score.index_add_(0, families.component_row, mean)
    around = (drawn - mean[:, None]).flatten(0, 1)
    return score, matrix - around.T @ around / (count - 1)


def one_step_replicates(
    model: StructuralModel, completions: Completions, weights: Tensor, seed: int = 0
) -> list[StructuralModel]:
    """Returns a model for each set of weights of the rows.

    Arguments:
        model: The fit of lines and curves, in double precision.
        completions: Completions of the rows by it.
        weights: (B, N) with mean one.
        seed: Where the draws from the priors of curves start.
    """
    found = measure_information(model, completions)
    gradients = (weights - 1.0) @ found.scores + found.draw_pulls(len(weights), seed)
    return [moved(model, move) for move in found.newton_moves(gradients)]


def moved(model: StructuralModel, move: Tensor) -> StructuralModel:
    """Returns a copy whose parameters are moved, in the order of `Information.names`."""
    copied = copy.deepcopy(model)
    start = 0
    with torch.no_grad():
        for node in range(len(copied.graph)):
            for parameter in copied.mechanism(node).parameters():
                step = move[start : start + parameter.numel()]
                parameter.add_(step.reshape(parameter.shape))
                start += parameter.numel()
    return copied
