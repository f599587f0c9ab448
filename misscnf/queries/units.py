r"""Who an effect is averaged over: units that the model draws, or the rows of the table.

A unit is its noise u and its natural values x = f(u).

    population="model"    u ~ N(0, I): whoever the model says there is
    population="rows"     the rows of the table, holes completed by K draws x^k ~ p(x_H | x_O), the
                          noise abducted from each: nothing is assumed of the law of the covariates

The sampling error of an average over rows has two parts, the fit and who the rows are. A replicate
θ_b of the fit has weights w_b of the rows (`fitting.replicates`), and answers by the same weights.
It sees the completions of the fit, each as likely as it says itself,

    Σ_n w_bn Σ_k ω_nk τ_b(x^nk),     ω_nk ∝ Π_i φ_i^b(x^nk) / φ_i(x^nk),

with i over the factors that hold something hidden (`inference.elimination`), so that no integral
is solved again. Barren cells keep their noise, and are what θ_b makes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.inference.posterior import draw_completions
from misscnf.model import StructuralModel

__all__ = ["Units", "RowPopulation"]


@dataclass(frozen=True)
class Units:
    """Units that are averaged over, n of them."""

    noise: Tensor
    """(n, noise_width); of row units only where it is needed"""
    natural: Tensor
    """(n, d) what they are without intervention"""
    weights: np.ndarray | None = None
    """(n,) None where all weigh the same"""
    draw: np.ndarray | None = None
    """(n,) the draw that each belongs to, where rows are completed several times"""
    draws: int = 1

    @staticmethod
    def alike(count: int) -> Units:
        """Returns so many independent draws of which nothing else is known."""
        return Units(torch.empty(count, 0), torch.empty(count, 0))

    def __len__(self) -> int:
        return len(self.natural)

    def select(self, keep: Tensor) -> Units:
        """Returns some of them."""
        some = keep.numpy()
        weights = None if self.weights is None else self.weights[some]
        draw = None if self.draw is None else self.draw[some]
        return Units(self.noise[keep], self.natural[keep], weights, draw, self.draws)

    def mean(self, values: np.ndarray) -> float:
        """Returns the average of a number of each unit, (n,)."""
        return float(np.average(values, weights=self.weights))

    @np.errstate(over="ignore", invalid="ignore")  # under a dose beyond all reason
    def covariance(self, arms: Sequence[np.ndarray]) -> np.ndarray:
        """Returns the Monte-Carlo covariance of the averages of several numbers of each unit.

        Units of a model are independent draws; rows are what they are, and completed by draws.
        """
        if self.draw is None:
            return np.atleast_2d(np.cov(np.stack(arms))) / len(self)
        weights = np.ones(len(self)) if self.weights is None else self.weights
        there = np.bincount(self.draw, weights, self.draws)
        sums = [np.bincount(self.draw, weights * arm, self.draws) for arm in arms]
        means = np.stack(sums)[:, there > 0] / there[there > 0]
        if means.shape[1] < 2:
            return np.zeros((len(arms), len(arms)))
        return np.atleast_2d(np.cov(means)) / means.shape[1]


@dataclass(frozen=True)
class RowPopulation:
    """The rows of a table, completed by a fit. K completions, N rows, d nodes."""

    completed: Tensor
    """(K, N, d)"""
    fit: StructuralModel
    plan: Plan
    seed: int

    @staticmethod
    def of(
        fit: StructuralModel,
        values: Tensor,
        observed: Tensor,
        draws: int,
        effort: Effort,
        seed: int,
    ) -> RowPopulation:
        """Completes the rows of a table (N, d) so many times."""
        plan, generator = Plan.make(fit.graph, observed), derive_generator(seed, "rows")
        completed = draw_completions(fit, values, plan, draws, generator, effort)
        return RowPopulation(completed, fit, plan, seed)

    def first(self, draws: int) -> RowPopulation:
        """Returns the same with fewer completions."""
        return RowPopulation(self.completed[:draws], self.fit, self.plan, self.seed)

    @torch.no_grad()
    def units(
        self, model: StructuralModel, nodes: Collection[int], weights: Tensor | None = None
    ) -> Units:
        """Returns the units as the fit or a replicate of it sees them.

        Arguments:
            model: The fit, or a replicate.
            nodes: Whose noise will be needed.
            weights: (N,) the weights of the rows in the replicate.
        """
        natural = self.completed if model is self.fit else self._barren_by(model)
        shares = None
        if weights is not None:
            shares = (weights * self._shares(model)).flatten().numpy()
        noise = model.abduct(natural, derive_generator(self.seed, "abduction"), nodes)
        draws, rows = natural.shape[:2]
        draw = np.repeat(np.arange(draws), rows)
        return Units(noise.flatten(0, 1), natural.flatten(0, 1), shares, draw, draws)

    def _barren_by(self, model: StructuralModel) -> Tensor:
        """Returns the completions with barren cells as a replicate makes them, (K, N, d)."""
        rows, nodes, barren, noise = self._barren
        if not nodes:
            return self.completed
        found, some = self.completed.clone(), self.completed[:, rows]
        found[:, rows] = model.complete(some, nodes, noise, where=barren.expand_as(some))
        return found

    @cached_property
    def _barren(self) -> tuple[Tensor, list[int], Tensor, Tensor]:
        """The rows and nodes with barren cells, which these are, and their noise by the fit."""
        barren = self.plan.barren()
        rows, nodes = barren.any(1).nonzero()[:, 0], barren.any(0).nonzero()[:, 0].tolist()
        generator = derive_generator(self.seed, "barren")
        noise = self.fit.abduct(self.completed[:, rows], generator, nodes)
        return rows, nodes, barren[rows], noise

    def _shares(self, model: StructuralModel) -> Tensor:
        """Returns how likely each completion of a row is by a replicate, ω of shape (K, N)."""
        return torch.softmax(self._log_factors(model) - self._of_fit, 0)

    @cached_property
    def _of_fit(self) -> Tensor:
        """What the fit says of each completion, for all replicates, (K, N)."""
        return self._log_factors(self.fit)

    def _log_factors(self, model: StructuralModel) -> Tensor:
        """Returns the sum of the factors that a completion has a part in, (K, N)."""
        found = self.completed.new_zeros(self.completed.shape[:2])
        moved = (self.plan.label >= 0)[self.plan.pattern]
        for node in moved.any(0).nonzero()[:, 0].tolist():
            which = moved[:, node].nonzero()[:, 0]
            own, parents = model.family_of(self.completed, node, which)
            found[:, which] += model.mechanism(node).log_prob(own, parents)
        return found
