r"""Lines and curves at the maximum of the observed-data likelihood: nothing is trained.

A mean that is linear in its coefficients has a likelihood close to a parabola, also where rows
hide what it depends on. Rounds of two steps find its maximum: complete every row K times by the
model as it is (`completions`), and climb

    θ = argmax  Σ_i log p(x_O; θ) − ½ Σ_j τ_j w_j²

on the likelihood of these completions by a quasi-Newton method, the basis functions of every
completion being evaluated once (`design`). It is EM with a likelihood instead of its lower bound,
which needs few rounds where much is hidden. Steps are measured in posterior errors of what the
completions would say, were they data. A constant scale settles with its mean; a network of the
scale stays, and weighs the rows of its mean.

A round moves the model by the noise of its completions too, which is worth about 1 / 2K of a nat
for every coefficient, and more where most of what is known of it is hidden. The model has settled
once a round gains less than half of that, or no longer clearly less than the round before. Three
rounds follow that share the noise, going all, half and a third of their way. They work harder on
posteriors without a closed form: the bias of few draws is alike in many rows, and adds up.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable

import torch
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.fitting.completions import EFFORT, Cells, Completions, Families
from misscnf.fitting.solve.design import (
    ROWS_AT_ONCE,
    coefficients_of,
    columns_of,
    prior_precision_of,
    set_coefficients,
)
from misscnf.fitting.solve.generalised_linear import SMALLEST_LOG_SCALE
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.mechanisms import Conditioner, Gaussian, Mechanism, standard_normal_log_prob
from misscnf.model import StructuralModel

__all__ = ["maximise_monte_carlo"]

logger = logging.getLogger("misscnf")

COMPLETIONS, MOST_COMPLETED = 32, 2_000_000
"""Completions of a row, and of all rows; two of a row at least, if it hides anything."""
MOST_ROUNDS, MOST_STEPS, MEMORY = 10, 30, 20
SHARED = 3
"""Rounds that share the noise of their completions."""
FINE = Effort(draws=256, least_effective=128.0, limit=16384, pilot_draws=4096)
MOST_NOISE = 8.0
"""Gains of so many times the expected noise may still be noise."""
RIDGE = 1e-9
"""Of what all rows say of a coefficient."""

RoundWatcher = Callable[[int, int], None]
"""Takes the round and how many there may be."""


class _Law:
    """A Gaussian node at its cells, as a function of how far its coefficients and scale moved.

    The scale is one number that moves, or what its network says at every cell.
    """

    def __init__(self, mechanism: Gaussian, cells: Cells) -> None:
        self.mechanism, self.own = mechanism, cells.own
        self.columns = columns_of(mechanism.mean, cells.parents)
        self.prior_precision = prior_precision_of(mechanism.mean)
        self.start = coefficients_of(mechanism.mean)
        self.log_scale = self._log_scale(cells.parents).requires_grad_(mechanism.constant_scale)
        self.moved = torch.zeros_like(self.start).requires_grad_()
        self.root = self._root(_shares(cells))

    @torch.no_grad()
    def _log_scale(self, parents: Tensor) -> Tensor:
        if self.mechanism.constant_scale:
            return self.mechanism.log_scale.bias.clone()
        pieces = parents.split(ROWS_AT_ONCE)
        return torch.cat([self.mechanism.location_and_log_scale(piece)[1] for piece in pieces])

    def _root(self, shares: Tensor) -> Tensor:
        """Returns R with R Rᵀ the information of a completed row."""
        rows = shares.sum().clamp(min=1.0)
        weights = shares * torch.exp(-2.0 * self.log_scale.detach())
        said = (self.columns.T * weights) @ self.columns
        ridge = RIDGE * rows * torch.eye(len(said)).to(said)
        return torch.linalg.cholesky((said + self.prior_precision.diag() + ridge) / rows)

    @property
    def parameters(self) -> list[Tensor]:
        return [part for part in (self.moved, self.log_scale) if part.requires_grad]

    def coefficients(self) -> Tensor:
        step = torch.linalg.solve_triangular(self.root.T, self.moved[:, None], upper=True)
        return self.start + step[:, 0]

    def log_prob(self, own: Tensor, parents: Tensor) -> Tensor:
        left = self.own - self.columns @ self.coefficients()
        log_scale = self.log_scale.clamp(min=SMALLEST_LOG_SCALE)
        return standard_normal_log_prob(left * torch.exp(-log_scale)) - log_scale

    def log_prior(self) -> Tensor:
        return -0.5 * (self.prior_precision * self.coefficients().square()).sum()

    @torch.no_grad()
    def write(self, share: float) -> None:
        """Gives the mechanism what was found, or goes a share of the way."""
        mechanism = self.mechanism
        set_coefficients(mechanism.mean, torch.lerp(self.start, self.coefficients(), share))
        if mechanism.constant_scale:
            mechanism.log_scale.bias.lerp_(self.log_scale.clamp(min=SMALLEST_LOG_SCALE), share)

    def leave(self) -> None:
        """The mechanism has not been moved yet."""


class _Other:
    """A discrete node with linear logits, whose parameters are moved in their place."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.start = [parameter.detach().clone() for parameter in mechanism.parameters()]

    @property
    def parameters(self) -> list[Tensor]:
        return list(self.mechanism.parameters())

    def log_prob(self, own: Tensor, parents: Tensor) -> Tensor:
        return self.mechanism.log_prob(own, parents)

    def log_prior(self) -> Tensor:
        return torch.zeros(())

    @torch.no_grad()
    def write(self, share: float) -> None:
        """Takes the mechanism back, but for a share of the way."""
        for parameter, start in zip(self.parameters, self.start, strict=True):
            parameter.copy_(torch.lerp(start, parameter, share))

    @torch.no_grad()
    def leave(self) -> None:
        """Takes the mechanism back."""
        for parameter, start in zip(self.parameters, self.start, strict=True):
            parameter.copy_(start)


def maximise_monte_carlo(
    model: StructuralModel,
    rows: tuple[Tensor, Tensor],
    seed: int,
    watch: RoundWatcher | None = None,
) -> int:
    """Moves lines and curves to the maximum of the likelihood, in place; networks stay.

    Arguments:
        model: The model, in double precision, where the search starts.
        rows: Values (N, d) and observed (N, d).
        seed: Where randomness starts.
        watch: Called after each round.

    Returns:
        The number of rounds.
    """
    count = max(2, min(COMPLETIONS, MOST_COMPLETED // len(rows[0])))
    if not bool(Plan.make(model.graph, rows[1]).hidden.any()):
        count = 1
    before, near_maximum, shared = math.inf, False, 0
    for number in range(MOST_ROUNDS + SHARED):
        generator = derive_generator(seed, "settle", number)
        effort = FINE if near_maximum else EFFORT
        completions = Completions.draw(model, *rows, count, generator, effort)
        families = completions.families(torch.arange(len(completions)))
        laws = _laws(model, families)
        if not laws:
            return 0
        elpd_difference = _maximise_completions(families, laws)
        if not math.isfinite(
            elpd_difference
        ):  # a table so odd that a step left the numbers behind
            for law in laws.values():
                law.leave()
            logger.warning("lines and curves stay where round %d of settling left them.", number)
            break
        shared += near_maximum
        for law in laws.values():
            law.write(share=1.0 / max(shared, 1))
        if watch is not None:
            watch(number + 1, MOST_ROUNDS + SHARED)
        noise = sum(part.numel() for law in laws.values() for part in law.parameters) / (2 * count)
        small = (
            elpd_difference < 0.5 * noise or 0.5 * before < elpd_difference < MOST_NOISE * noise
        )
        near_maximum = near_maximum or small or number + 1 == MOST_ROUNDS
        if shared == SHARED or (near_maximum and count == 1):
            break
        before = elpd_difference
    return number + 1


def _laws(model: StructuralModel, families: Families) -> dict[int, _Law | _Other]:
    """Returns the nodes whose mean, or logits, no network bends, and whose noise is normal."""
    laws: dict[int, _Law | _Other] = {}
    for node, cells in enumerate(families.nodes):
        mechanism = model.mechanism(node)
        if isinstance(mechanism, Gaussian) and not mechanism.mean.hidden:
            laws[node] = _Law(mechanism, cells)
        elif mechanism.domain.discrete and not _has_network(mechanism):
            laws[node] = _Other(mechanism)
    return laws


def _has_network(mechanism: Mechanism) -> bool:
    return any(isinstance(part, Conditioner) and part.hidden for part in mechanism.modules())


def _shares(cells: Cells) -> Tensor:
    """Returns how many rows each cell stands for, a completion being the K-th part of one."""
    shares = torch.zeros_like(cells.own)
    shares[: len(cells.free)] = 1.0
    place = cells.place.flatten()
    return shares.index_add(0, place, torch.full_like(cells.own[place], 1.0 / len(cells.place)))


def _maximise_completions(families: Families, laws: dict[int, _Law | _Other]) -> float:
    """Moves the laws to the maximum of the likelihood of completions; returns its gain in nats."""
    parameters = [part for law in laws.values() for part in law.parameters]
    optimiser = torch.optim.LBFGS(
        parameters, max_iter=MOST_STEPS, history_size=MEMORY, line_search_fn="strong_wolfe"
    )

    def log_factor(node: int, own: Tensor, parents: Tensor) -> Tensor | None:
        return laws[node].log_prob(own, parents)[None] if node in laws else None

    def closure() -> Tensor:
        optimiser.zero_grad()
        log_prob = families.log_prob(log_factor)[0].sum()
        prior = sum((law.log_prior() for law in laws.values()), torch.zeros(()))
        loss: Tensor = -(log_prob + prior) / families.rows
        loss.backward()
        return loss

    before = float(optimiser.step(closure).detach())
    return (before - float(closure().detach())) * families.rows
