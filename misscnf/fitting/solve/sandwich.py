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

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.func import functional_call, vmap

from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions, Families, LogProb
from misscnf.fitting.settings import Replication
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel

__all__ = [
    "one_step_replicates",
    "Information",
    "VectorLaw",
    "measure_information",
    "spread_along",
    "moved",
    "ENTRIES_AT_ONCE",
]

ENTRIES_AT_ONCE = 2**22
"""Of scores: bounds the memory of their covariances."""


@dataclass(frozen=True)
class Information:
    """Scores of the rows and the information of the table at a maximum. p parameters."""

    scores: Tensor
    """(N, p)"""
    matrix: Tensor
    """(p, p)"""
    complete: Tensor
    """(p, p) what the rows would say, were they complete as the fit completes them"""
    prior_precision: Tensor
    """(p,) T, the precision of the prior of a curve's weights; zero for others"""
    at_end: Tensor
    """(p,) whether a parameter rests at an end of its range, where rows say nothing of it"""
    settings: Replication
    taken_back: Tensor | None = None
    """(N,) the most that a row's completions take back of what complete rows would say"""
    told: bool = True
    """whether rows are known to say something in every direction, for all the noise of draws"""

    def tensors(self) -> dict[str, Tensor]:
        """Returns what a file keeps of it: of many rows, those of the largest scores."""
        most = max(1, self.settings.kept_scores // self.scores.shape[1])
        size = torch.linalg.solve(self.complete + self.prior.diag(), self.scores.T).T
        order = (size * self.scores).sum(1).abs().argsort(descending=True, stable=True)[:most]
        kept = self.scores[order.sort().values]
        names = "matrix", "complete", "prior_precision", "at_end"
        return {"scores": kept, **{name: getattr(self, name) for name in names}}

    @staticmethod
    def restored(tensors: Mapping[str, Tensor], settings: Replication) -> Information:
        """Returns what `tensors` wrote."""
        names = "scores", "matrix", "complete", "prior_precision", "at_end"
        scores, matrix, complete, precision, at_end = (tensors[name].clone() for name in names)
        return Information(scores, matrix, complete, precision, at_end, settings)

    def standing_for(self, rows: int) -> Information:
        """Returns the information of so many rows, of which these are some by chance.

        At the maximum for all rows, the scores of all sum to what the prior pulls by.
        """
        times = rows / len(self.scores)
        return replace(
            self,
            scores=math.sqrt(times) * (self.scores - self.scores.mean(0)),
            matrix=times * self.matrix,
            complete=times * self.complete,
        )

    @property
    def prior(self) -> Tensor:
        """(p,) the precision of all priors: of curves, and of what the table says nothing of."""
        return self.prior_precision + self.settings.prior_spread**-2

    def newton_moves(self, gradients: Tensor) -> Tensor:
        """Returns how far a Newton step goes, for each of B gradients of the table, (B, p)."""
        moves: Tensor = torch.linalg.solve(self.matrix + self.prior.diag(), gradients.T).T
        return torch.where(self.at_end, 0.0, moves)

    @property
    def left(self) -> float:
        """What a Newton step by the rows could still gain, in nats; the pull of priors aside."""
        gradient = torch.where(self.prior_precision > 0, 0.0, self.scores.sum(0))
        return 0.5 * float(gradient @ self.newton_moves(gradient[None])[0])

    def replicate_moves(self, weights: Tensor, seed: int) -> Tensor:
        """Returns how far each replicate is from the fit, for weights (B, N), (B, p)."""
        gradients = (weights - 1.0) @ self.scores + self.draw_pulls(len(weights), seed)
        return self.newton_moves(gradients).contiguous()  # as a file has them: the same bits

    def draw_pulls(self, count: int, seed: int) -> Tensor:
        """Draws T c of so many replicates, (count, p).

        The prior that bounds what rows leave open pulls a little too, so that replicates differ
        there at all: only then do their answers show how these depend on it.
        """
        settings, drawn_by = self.settings, self.prior_precision
        drawn_by = drawn_by + (settings.open_spread * settings.prior_spread**-2) ** 2
        generator = derive_generator(seed, "priors")
        drawn = torch.randn(count, len(self.matrix), generator=generator, dtype=torch.float64)
        return drawn * drawn_by.sqrt()

    def fewest_shares(self) -> float:
        """Returns on how many equal shares the standard error of a parameter rests, at least."""
        squares = self.newton_moves(self.scores)[:, ~self.at_end].square()
        shares = squares.sum(0).square() / squares.square().sum(0).clamp(min=1e-300)
        return float(shares.min()) if shares.numel() else math.inf

    def covariance(self) -> Tensor:
        """Returns the sandwich covariance of the estimates, (p, p)."""
        bread = torch.linalg.inv(self.matrix)
        return bread @ (self.scores.T @ self.scores) @ bread


class VectorLaw:
    """One mechanism as a function of the vector of its parameters.

    Arguments:
        mechanism: The mechanism.
        start: Where its parameters begin among all.
        held: Whether they are left out, since they stay as they are.
    """

    def __init__(self, mechanism: Mechanism, start: int = 0, *, held: bool = False) -> None:
        self.shell = LogProb(mechanism)
        parameters = {} if held else dict(mechanism.named_parameters())
        self.shapes = {f"mechanism.{at}": part.shape for at, part in parameters.items()}
        none = torch.zeros(0, dtype=torch.float64)  # of a hidden root, which has no parameters
        self.vector = torch.cat([none, *(part.detach().flatten() for part in parameters.values())])
        precision, ends = mechanism.prior_precision(), mechanism.boundary_parameters()
        priors = [precision.get(at, torch.zeros(part.shape)) for at, part in parameters.items()]
        self.prior_precision = torch.cat([none, *(prior.flatten().double() for prior in priors)])
        at_ends = [torch.full((part.numel(),), at in ends) for at, part in parameters.items()]
        self.has_end = torch.cat([none.bool(), *at_ends])
        self.place = slice(start, start + len(self.vector))

    def log_prob(self, vector: Tensor, own: Tensor, parents: Tensor) -> Tensor:
        """Returns log φ, shaped like own."""
        parts = vector.split([shape.numel() for shape in self.shapes.values()])
        named = zip(self.shapes.items(), parts, strict=True)
        parameters = {name: part.reshape(shape) for (name, shape), part in named}
        found: Tensor = functional_call(self.shell, parameters, (own, parents))
        return found

    def scores(self, own: Tensor, parents: Tensor) -> Tensor:
        """Returns the gradient of each log φ, (n, parameters).

        Each row has a copy of the parameters, whose gradient is its own: `torch.func.grad` says
        it more briefly, and brings in the compiler of torch, two seconds of imports.
        """
        copies = self.vector.repeat(len(own), 1).requires_grad_()
        if not len(self.vector):
            return copies.detach()
        with torch.enable_grad():
            total = vmap(self.log_prob)(copies, own, parents).sum()
        return torch.autograd.grad(total, copies)[0]

    def curvature(self, own: Tensor, parents: Tensor, weight: Tensor) -> Tensor:
        """Returns −∇² of the weighted sum of log φ, (parameters, parameters)."""
        vector = self.vector.clone().requires_grad_()
        if not len(vector):
            return vector.new_zeros(0, 0)
        with torch.enable_grad():
            total = (weight * self.log_prob(vector, own, parents)).sum()
            slope = torch.autograd.grad(total, vector, create_graph=True)[0]
        if not slope.requires_grad:  # a line in its parameters
            return torch.zeros_like(slope.diag())
        every = torch.eye(len(vector)).to(vector)
        at_once = max(1, 2**21 // max(1, own.numel()))  # each has numbers of all cells: 16 MB
        parts = [
            torch.autograd.grad(slope, vector, part, is_grads_batched=True, retain_graph=True)[0]
            for part in every.split(at_once)
        ]
        return -torch.cat(parts)


def measure_information(
    model: StructuralModel,
    completions: Completions,
    settings: Replication | None = None,
    rows: Tensor | None = None,
    held: Collection[int] = (),
) -> Information:
    """Returns scores and information of a fitted model whose parameters are few.

    A mechanism that serves several nodes has one row of parameters in the matrix: what each of its
    nodes says of them is added up.

    Arguments:
        model: The fit, in double precision.
        completions: Completions of the rows by it; two at least.
        settings: Numbers of the Newton steps.
        rows: Some of the rows; None for all.
        held: Blocks that stay as they are, such as networks; their parameters are left out.
    """
    settings = settings or Replication()
    blocks, by_node, size = _laws(model, held)
    rows = torch.arange(len(completions)) if rows is None else rows
    matrix, complete = torch.zeros(2, size, size, dtype=torch.float64)
    scores, taken_back, seen = list[Tensor](), list[Tensor](), 0
    for some in rows.split(2048):
        seen += len(some)
        score, part, taken = _information_of(
            by_node, completions, some, complete, len(rows) / seen
        )
        scores.append(score)
        taken_back.append(taken)
        matrix += part
    matrix, complete = (matrix + matrix.T) / 2, (complete + complete.T) / 2
    few = matrix.diagonal() < settings.least_information * len(rows)
    return Information(
        torch.cat(scores),
        matrix,
        complete,
        torch.cat([block.prior_precision for block in blocks]),
        torch.cat([block.has_end for block in blocks]) & few,
        settings,
        torch.cat(taken_back),
    )


def spread_along(
    model: StructuralModel, completions: Completions, directions: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns how far each row's scores spread over its completions, and how well that is known.

    Arguments:
        model: The fit, in double precision.
        completions: Completions of the rows by it.
        directions: (p, w) of the parameters.

    Returns:
        The variance of the scores along the directions, (N, w), and the variance of this number
        over other draws, (N, w).
    """
    _, by_node, _ = _laws(model)
    spread, noise = torch.zeros(2, len(completions), directions.shape[1], dtype=torch.float64)
    for rows in torch.arange(len(completions)).split(2048):
        families = completions.families(rows)
        shape = len(families.component_row), directions.shape[1], completions.count
        along = torch.zeros(shape, dtype=torch.float64)
        for block, family in zip(by_node, families.nodes, strict=True):
            if len(family.component):
                found = block.scores(family.own, family.parents) @ directions[block.place]
                along.index_add_(0, family.component, found[family.place].permute(1, 2, 0))
        squares = (along - along.mean(2, keepdim=True)).square()
        row, count = rows[families.component_row], completions.count
        spread.index_add_(0, row, squares.sum(2) / (count - 1))
        noise.index_add_(0, row, squares.var(2) / (count / 2))  # draws may be antithetic pairs
    return spread, noise


def _laws(
    model: StructuralModel, held: Collection[int] = ()
) -> tuple[list[VectorLaw], list[VectorLaw], int]:
    """Returns the law of each block, that of each node, and how many parameters there are."""
    blocks, size = list[VectorLaw](), 0
    for block in range(len(model.blocks)):
        blocks.append(VectorLaw(model.block(block), size, held=block in held))
        size = blocks[-1].place.stop
    return blocks, [blocks[block] for block in model.block_of], size


def _information_of(
    by_node: list[VectorLaw],
    completions: Completions,
    rows: Tensor,
    complete: Tensor,
    times: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns scores (n, p) of some rows, their information (p, p), and what each takes back (n,).

    What they would say, were they complete, is added to what others do (`complete`). Of a table
    that is `times` as large, it is what the rows are held against.
    """
    families = completions.families(rows)
    scores = _ComponentScores(by_node, families, completions.count)
    score = torch.zeros(len(rows), len(complete), dtype=torch.float64)
    before, taken_back = complete.clone(), torch.zeros(len(rows), dtype=torch.float64)
    for node, (block, family) in enumerate(zip(by_node, families.nodes, strict=True)):
        if not len(family.own):
            continue
        found = block.scores(family.own, family.parents)
        score[:, block.place].index_add_(0, family.free, found[: len(family.free)])
        of_draws = found[family.place].permute(1, 2, 0)
        scores.put(node, of_draws)
        mean = of_draws.mean(2)
        row = families.component_row[family.component]
        score[:, block.place].index_add_(0, row, mean)
        weight = torch.bincount(family.place.flatten(), minlength=len(found))
        weight = weight.to(found) / completions.count
        weight[: len(family.free)] = 1.0
        own = complete[block.place, block.place]
        own += block.curvature(family.own, family.parents, weight)
        taken_back.index_add_(0, row, _shares_of(of_draws - mean[..., None], times * own, block))
    return score, scores.take_covariances(complete - before), taken_back


def _shares_of(around: Tensor, complete: Tensor, block: VectorLaw) -> Tensor:
    """Returns tr(C⁻¹ Cov[s]) of deviations from mean scores, (e, p, K), as (e,)."""
    size, turn = torch.linalg.eigh((complete + complete.T) / 2 + block.prior_precision.diag())
    white = turn / size.clamp_min(1.0).sqrt()  # of what all rows say so little, any will do
    return (white.T @ around).square().sum((1, 2)) / (around.shape[2] - 1)


class _ComponentScores:
    """Scores of the factors of components, at every completion: each has few parameters.

    Arguments:
        by_node: The block of each node.
        families: The cells of some rows.
        count: Completions of a row, K.
    """

    def __init__(self, by_node: list[VectorLaw], families: Families, count: int) -> None:
        component = torch.cat([family.component for family in families.nodes])
        lengths = [len(family.component) for family in families.nodes]
        sizes = torch.tensor([len(block.vector) for block in by_node])
        size = sizes.repeat_interleave(torch.tensor(lengths))
        order = torch.argsort(component, stable=True)
        start = torch.empty_like(order)
        start[order] = size[order].cumsum(0) - size[order]
        self.starts = start.split(lengths)
        """Of each node's factors: where their scores begin, a component's one after the other."""
        self.size = torch.zeros_like(families.component_row).index_add_(0, component, size)
        """(C,) parameters of all factors of a component"""
        total = int(self.size.sum())
        self.scores = torch.empty(total, count, dtype=torch.float64)
        self.position = torch.empty(total, dtype=torch.int64)
        """The parameter that each score belongs to."""
        self.by_node = by_node

    def put(self, node: int, scores: Tensor) -> None:
        """Takes the scores of a node's factors, (e, parameters, K)."""
        place = self.starts[node][:, None] + torch.arange(scores.shape[1])
        self.scores[place] = scores
        block = self.by_node[node].place
        self.position[place] = torch.arange(block.start, block.stop)

    def take_covariances(self, matrix: Tensor) -> Tensor:
        """Returns a matrix (p, p) less the covariances of the components' scores."""
        count, p = self.scores.shape[1], len(matrix)
        around = self.scores - self.scores.mean(1, keepdim=True)
        start = self.size.cumsum(0) - self.size
        entries = matrix.flatten()
        for size in self.size.unique().tolist():  # those of one size together
            if not size:  # nothing around it moves
                continue
            at_once = max(1, ENTRIES_AT_ONCE // (size * max(size, count)))
            for some in start[self.size == size].split(at_once):
                place = some[:, None] + torch.arange(size)
                mine, position = around[place], self.position[place]
                covariance = mine @ mine.transpose(1, 2) / (count - 1)
                at = position[:, :, None] * p + position[:, None, :]
                entries.index_add_(0, at.flatten(), -covariance.flatten())
        return entries.reshape(p, p)


def one_step_replicates(
    model: StructuralModel,
    completions: Completions,
    weights: Tensor,
    seed: int = 0,
    settings: Replication | None = None,
) -> list[StructuralModel]:
    """Returns a model for each set of weights of the rows.

    Arguments:
        model: The fit of lines and curves, in double precision.
        completions: Completions of the rows by it.
        weights: (B, N) with mean one.
        seed: Where the draws from the priors of curves start.
        settings: Numbers of the Newton steps.
    """
    found = measure_information(model, completions, settings)
    return [moved(model, move) for move in found.replicate_moves(weights, seed)]


def moved(model: StructuralModel, move: Tensor, held: Collection[int] = ()) -> StructuralModel:
    """Returns a copy whose parameters are moved, block by block, but for those that are held."""
    names, state = iter(dict(model.named_parameters())), dict[str, Tensor]()
    start = 0
    for block in range(len(model.blocks)):
        mechanism, steps = model.block(block), dict[str, Tensor]()
        if block in held:
            state |= {next(names): own.detach() for own in mechanism.parameters()}
            continue
        for name, own in mechanism.named_parameters():
            steps[name] = move[start : start + own.numel()].reshape(own.shape)
            start += own.numel()
        state |= {next(names): part for part in mechanism.stepped(steps).values()}
    return model.with_state(state)
