r"""Monte-Carlo maximum likelihood: lines and curves at the maximum, with nothing trained.

A mean that is linear in its coefficients has a likelihood close to a parabola, also where rows
hide what it depends on. Rounds of two steps find its maximum (Geyer and Thompson 1992): complete
every row K times by the model as it is (`completions`), and climb

    θ = argmax  Σ_i log p(x_O; θ) − ½ Σ_j τ_j w_j²

on the likelihood of these completions by the quasi-Newton method, the columns of every completion
being evaluated once. It is EM with a likelihood instead of its lower bound, which needs few rounds
where much is hidden. Steps are measured in posterior errors of what the completions would say,
were they data. Where levels or counts are among what moves, a round ends once steps gain less
than a ten-thousandth of a nat in the table, one before the last once they gain less than a
hundredth. A constant scale moves with its mean; a network of the scale stays, and weighs the rows
of its mean.

A round moves the model by the noise of its completions too, which is worth about 1 / 2K of a nat
for every coefficient, and more where most of what is known of it is hidden. The model is near its
maximum once a round gains less than that, or no longer clearly less than the round before. Up to
there, completions need not be better than those of a step of training. A last round follows, with
more completions: the bias of few draws is alike in many rows, and adds up. Where memory does not
hold these, up to three rounds share the noise, going all, half and a third of their way.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Generator, Tensor

from misscnf.data.rows import ROWS_AT_ONCE, RowSource
from misscnf.draws import derive_generator
from misscnf.errors import FitError
from misscnf.fitting.completions import Completions, Families
from misscnf.fitting.settings import Settings, Solving
from misscnf.fitting.solve.quasi_newton import maximise
from misscnf.fitting.solve.sandwich import VectorLaw
from misscnf.inference.chains import Chains
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.mechanisms import LinearMean, Mechanism, standard_normal_log_prob
from misscnf.mechanisms.gaussian import SMALLEST_LOG_SCALE
from misscnf.model import StructuralModel

__all__ = ["RIDGE", "RoundWatcher", "maximise_completions", "maximise_monte_carlo"]

logger = logging.getLogger("misscnf")

RIDGE = 1e-9
"""Of what all rows say of a coefficient, against rounding."""

RoundWatcher = Callable[[int, int], None]
"""Takes the round and how many there may be."""

Batches = list[Families]


class _Line:
    """A linear mean at its cells, as a function of how far its coefficients and scale moved.

    The scale is one number that moves, or what its network says at every cell.
    """

    def __init__(self, mean: LinearMean, nodes: tuple[int, ...], batches: Batches) -> None:
        self.mean = mean
        cells = {(b, i): batch.nodes[i] for b, batch in enumerate(batches) for i in nodes}
        self.columns = {at: mean.columns(cell.parents) for at, cell in cells.items()}
        self.prior_precision, self.start = mean.prior_precision, mean.coefficients
        log_scales = {at: mean.log_scale(cell.parents) for at, cell in cells.items()}
        self.log_scales = None if mean.constant_scale else log_scales
        self.log_scale = next(iter(log_scales.values())) if mean.constant_scale else None
        self.root = self._root({at: cell.shares() for at, cell in cells.items()})
        self.moved = torch.zeros_like(self.start).requires_grad_()
        if self.log_scale is not None:
            self.start_log_scale = self.log_scale.clone()
            self.log_scale.requires_grad_()

    def _scale_at(self, at: tuple[int, int]) -> Tensor:
        if self.log_scale is not None:
            return self.log_scale.clamp(min=SMALLEST_LOG_SCALE)
        assert self.log_scales is not None
        return self.log_scales[at].clamp(min=SMALLEST_LOG_SCALE)

    @torch.no_grad()
    def _root(self, shares: dict[tuple[int, int], Tensor]) -> Tensor:
        """Returns R with R Rᵀ the information of a completed row."""
        rows = torch.stack([share.sum() for share in shares.values()]).sum().clamp(min=1.0)
        said = torch.zeros(len(self.start), len(self.start), dtype=torch.float64)
        for at, columns in self.columns.items():
            weights = shares[at] * torch.exp(-2.0 * self._scale_at(at))
            said += (columns.T * weights) @ columns
        ridge = RIDGE * rows * torch.eye(len(said)).to(said)
        return torch.linalg.cholesky((said + self.prior_precision.diag() + ridge) / rows)

    @property
    def parameters(self) -> list[Tensor]:
        return [self.moved] if self.log_scale is None else [self.moved, self.log_scale]

    def coefficients(self) -> Tensor:
        step = torch.linalg.solve_triangular(self.root.T, self.moved[:, None], upper=True)
        return self.start + step[:, 0]

    def log_prob(self, at: tuple[int, int], own: Tensor, parents: Tensor) -> Tensor:
        left, log_scale = own - self.columns[at] @ self.coefficients(), self._scale_at(at)
        return standard_normal_log_prob(left * torch.exp(-log_scale)) - log_scale

    def log_prior(self) -> Tensor:
        return -0.5 * (self.prior_precision * self.coefficients().square()).sum()

    @torch.no_grad()
    def write(self, share: float) -> None:
        """Gives the mechanism what was found, or goes a share of the way."""
        log_scale = None
        if self.log_scale is not None:
            found = self.log_scale.detach().clamp(min=SMALLEST_LOG_SCALE)
            log_scale = torch.lerp(self.start_log_scale, found, share)
        self.mean.write(torch.lerp(self.start, self.coefficients(), share), log_scale)


class _Other:
    """A mechanism without networks, whose parameters are moved in their place."""

    def __init__(self, mechanism: Mechanism, nodes: tuple[int, ...], batches: Batches) -> None:
        self.mechanism = mechanism
        self.parameters = list(mechanism.parameters())
        self.start = [parameter.detach().clone() for parameter in self.parameters]
        self.cells = [batch.nodes[i] for batch in batches for i in nodes]

    def whitening(self, least: float) -> Tensor:
        """Returns W with W Wᵀ the inverse of the information of a completed row, bounded."""
        law = VectorLaw(self.mechanism)
        said = law.prior_precision.diag()
        for cell in self.cells:
            said = said + law.curvature(cell.own, cell.parents, cell.shares())
        rows = sum(float(cell.shares().sum()) for cell in self.cells)
        size, direction = torch.linalg.eigh((said + said.T) / (2.0 * max(rows, 1.0)))
        if not bool(size.isfinite().all()):
            return torch.eye(len(said)).to(said)
        floor = least * max(float(size.max()), RIDGE)
        return direction / size.clamp(min=floor).sqrt()

    def log_prob(self, at: tuple[int, int], own: Tensor, parents: Tensor) -> Tensor:
        return self.mechanism.log_prob(own, parents)

    def log_prior(self) -> Tensor:
        found = self.mechanism.log_prior()
        return torch.zeros((), dtype=torch.float64) if found is None else found

    @torch.no_grad()
    def write(self, share: float) -> None:
        """Takes the mechanism back, but for a share of the way."""
        for parameter, start in zip(self.parameters, self.start, strict=True):
            parameter.copy_(torch.lerp(start, parameter, share))


Laws = dict[int, _Line | _Other]
"""By block."""


def maximise_monte_carlo(
    model: StructuralModel,
    rows: RowSource,
    settings: Settings,
    seed: int,
    watch: RoundWatcher | None = None,
    modes: Tensor | None = None,
    chains: Chains | None = None,
    *,
    rough: bool = False,
    near: bool = False,
) -> int:
    """Moves lines and curves to the maximum of the likelihood, in place; networks stay.

    Arguments:
        model: The model, in double precision, where the search starts.
        rows: The rows.
        settings: Rounds, completions and efforts.
        seed: Where randomness starts.
        watch: Called after each round.
        modes: Where those of the rows are remembered, (N, S, d); see `integrate`.
        chains: Chains of the rows; see `complete`.
        rough: Whether to stop near the maximum, without the last rounds.
        near: Whether it is near the maximum already, so that the last rounds are enough.

    Returns:
        The number of rounds.
    """
    if not any(_moves(model.block(block)) for block in range(len(model.blocks))):
        return 0
    solving, efforts = settings.solving, settings.integration
    most_completions = solving.most_completions(rows)
    if not bool(Plan.of(model.graph, rows).hidden.any()):
        most_completions = 1
    first, finest = solving.completions, solving.fine_completions
    if model.graph.own_losses:  # every hole is integrated over
        first, finest = solving.loss_completions, solving.loss_fine_completions
    last = min(solving.shared_rounds, math.ceil(finest / most_completions))
    fine = _for_rows(efforts.fine_completions, len(rows), solving)
    most = solving.most_rounds + last
    before, near_maximum, shared = math.inf, near, 0
    for number in range(most):
        generator = derive_generator(seed, "settle", number)
        effort, count = efforts.training, first
        if near_maximum:
            effort, count = fine, math.ceil(finest / last)
        count = min(count, most_completions)
        batches = _complete(model, rows, count, generator, effort, modes, chains)
        laws = _laws(model, batches)
        try:
            about = (model, batches, laws, solving)
            gain = _maximise_completions(*about, rough=not near_maximum)
        except FitError:  # a table so odd that not even its start has a likelihood
            logger.warning("lines and curves stay where round %d of their fit left them.", number)
            break
        shared += near_maximum
        for law in laws.values():
            law.write(share=1.0 / max(shared, 1))
        if watch is not None:
            watch(number + 1, most)
        noise = sum(part.numel() for law in laws.values() for part in law.parameters) / (2 * count)
        slow = 0.5 * before < gain or bool(model.graph.own_losses)  # few completions, much noise
        small = gain < noise or (slow and gain < solving.most_noise * noise)
        near_maximum = near_maximum or small or number + 1 == solving.most_rounds
        if shared == last or (near_maximum and (rough or count == 1)):
            break
        before = gain
    return number + 1


def maximise_completions(
    model: StructuralModel, completions: Completions, solving: Solving
) -> None:
    """Moves lines and curves to the maximum of the likelihood of completions by another fit.

    That is one round, and enough where the other fit is near: the ratio of what the two say of a
    completion is its weight.

    Arguments:
        model: What is moved, in place.
        completions: Of all rows, by a fit of the same graph.
        solving: When a search ends.
    """
    batches = _batches(completions)
    laws = _laws(model, batches)
    _maximise_completions(model, batches, laws, solving, rough=True)
    for law in laws.values():
        law.write(share=1.0)


def _for_rows(effort: Effort, rows: int, solving: Solving) -> Effort:
    """Returns as much of an effort as the number of rows is worth, in powers of two."""
    share = min(1.0, math.sqrt(rows / solving.fine_rows))
    return effort.times(max(0.25, 2.0 ** round(math.log2(share))))


def _complete(
    model: StructuralModel,
    rows: RowSource,
    count: int,
    generator: Generator,
    effort: Effort,
    modes: Tensor | None,
    chains: Chains | None,
) -> Batches:
    """Returns the cells of completed rows; what they were gathered from is not kept."""
    return _batches(Completions.draw(model, rows, count, generator, effort, modes, chains))


def _batches(completions: Completions) -> Batches:
    parts = torch.arange(len(completions)).split(ROWS_AT_ONCE)
    return [completions.families(part) for part in parts]


def _moves(mechanism: Mechanism) -> bool:
    """Says whether no network sets the mean or the logits, and the noise is normal.

    A hidden root has no parameters, and nothing to move.
    """
    some = any(True for _ in mechanism.parameters())
    return some and (mechanism.solvable or mechanism.linear_mean() is not None)


def _laws(model: StructuralModel, batches: Batches) -> Laws:
    """Returns the blocks that are moved."""
    laws: Laws = {}
    for block, nodes in enumerate(model.blocks):
        mechanism = model.block(block)
        mean = mechanism.linear_mean()
        if mean is not None:
            laws[block] = _Line(mean, nodes, batches)
        elif _moves(mechanism):
            laws[block] = _Other(mechanism, nodes, batches)
    return laws


def _maximise_completions(
    model: StructuralModel, batches: Batches, laws: Laws, solving: Solving, *, rough: bool
) -> float:
    """Moves the laws to the maximum of the likelihood of completions; returns its gain in nats."""
    rows = sum(batch.rows for batch in batches)

    def log_factor(batch: int, node: int, own: Tensor, parents: Tensor) -> Tensor | None:
        law = laws.get(model.block_of[node])
        return None if law is None else law.log_prob((batch, node), own, parents)[None]

    def log_likelihood() -> float:
        prior = torch.stack([law.log_prior() for law in laws.values()]).sum() / rows
        if prior.requires_grad:
            prior.backward()
        total = float(prior.detach())
        for number, batch in enumerate(batches):
            log_prob = batch.log_prob(partial(log_factor, number))[0].sum() / rows
            log_prob.backward()
            total += float(log_prob.detach())
        return total

    parameters = [part for law in laws.values() for part in law.parameters]
    whitening, tolerance = None, 1e-10
    if any(isinstance(law, _Other) for law in laws.values()):
        whitening = _whitening(laws, solving)
        tolerance = solving.newton_tolerance * (1.0 if rough else 0.01) / rows
    found = maximise(
        parameters,
        log_likelihood,
        steps=30,
        memory=20,
        value_tolerance=tolerance,
        whitening=whitening,
    )
    return (found.value - found.start) * rows


def _whitening(laws: Laws, solving: Solving) -> np.ndarray:
    """Returns the coordinates in which a completed row says one of every parameter."""
    parts = []
    for law in laws.values():
        if isinstance(law, _Other):
            parts.append(law.whitening(solving.least_information))
        else:  # a line has them already
            size = sum(part.numel() for part in law.parameters)
            parts.append(torch.eye(size, dtype=torch.float64))
    found: np.ndarray = torch.block_diag(*parts).numpy()
    return found
