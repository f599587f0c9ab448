r"""Cells lost one by one, each with a chance of its own.

    P(x_i lost | x) = σ( Σ_j W_ij z_j + b_i ),    cells independent given x

where z are the values, standardised or raw, and b_i makes the mean chance of node i the wanted
rate. MAR, self-masking and MCAR differ in W alone: it holds zeros wherever a value has no say
(paper, Appendix "Missingness mechanisms"). The paper does not say what scale the logits act on;
only standardised values reproduce its figures for self-masking.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, final

import numpy as np
from scipy.special import expit, logit

from misscnf import CausalGraph, InputError
from misscnf_study.losses.intercept import find_intercept
from misscnf_study.losses.loss import Flags, Floats, Loss, Missingness

__all__ = [
    "CellLoss",
    "LogisticMissingness",
    "Scale",
    "check_rate",
    "constant_loss",
    "logistic_loss",
    "never_lost",
]

Scale: TypeAlias = Literal["standardised", "raw"]
"""What logits act on: values less their mean over their standard deviation, or as they are."""

WEIGHTS = (0.1, 1.1)
"""The range that weights are drawn from, uniformly."""


@final
@dataclass(frozen=True, eq=False)
class CellLoss(Loss):
    """Each cell is lost on its own, with chance σ(Σ_j weights_ij z_j + intercept_i)."""

    weights: Floats
    """(d, d); row i weighs what the loss of x_i depends on."""
    intercepts: Floats
    """(d,); −inf where a node is never lost."""
    centre: Floats
    """(d,) what z is measured from."""
    spread: Floats
    """(d,) the unit of z."""

    def scores(self, values: Floats) -> Floats:
        """Returns W z, (N, d). Only columns with a say are read: the others may have holes."""
        read = self.weights.any(axis=0)
        z = (values[:, read] - self.centre[read]) / self.spread[read]
        return z @ self.weights[:, read].T

    def probability(self, values: Floats) -> Floats:
        """Returns σ(W z + b), (N, d)."""
        return expit(self.scores(values) + self.intercepts)

    def observed(self, values: Floats, generator: np.random.Generator) -> Flags:
        """Draws one uniform number a cell; a cell stays where it is not below its chance."""
        return generator.random(values.shape) >= self.probability(values)


def logistic_loss(
    values: Floats, conditions: Flags, rate: float, scale: Scale, generator: np.random.Generator
) -> CellLoss:
    """Draws weights and finds intercepts such that each node's mean chance is the rate.

    Arguments:
        values: (N, d), complete in all columns that are conditions.
        conditions: (d, d), True at [i, j] where the loss of x_i depends on x_j. A node that
            depends on nothing is never lost.
        rate: The mean chance wanted.
        scale: What logits act on.
        generator: Weights come from it, one for each pair of nodes whether used or not.
    """
    weights = generator.uniform(*WEIGHTS, conditions.shape) * conditions
    lost, read = np.asarray(conditions.any(axis=1)), np.asarray(conditions.any(axis=0))
    centre, spread = _measure(values, read, scale)
    law = CellLoss(weights, np.full(len(lost), -np.inf), centre, spread)
    scores = law.scores(values)
    intercepts = law.intercepts.copy()
    for i in np.flatnonzero(lost):
        intercepts[i] = find_intercept(scores[:, i], rate)
    return replace(law, intercepts=intercepts)


def constant_loss(lost: Flags, rate: float) -> CellLoss:
    """Returns the law that loses each cell of the nodes in `lost` (d,) with one chance."""
    d = len(lost)
    return CellLoss(
        weights=np.zeros((d, d)),
        intercepts=np.where(lost, logit(rate), -np.inf),
        centre=np.zeros(d),
        spread=np.ones(d),
    )


def never_lost(graph: CausalGraph) -> Flags:
    """Returns which nodes are roots, (d,): these are always seen, so MAR can condition on them."""
    return np.array([not parents for parents in graph.parents])


def check_rate(rate: float) -> None:
    """Refuses what is not a share."""
    if not 0.0 <= rate <= 1.0:
        raise InputError(f"a rate of loss is a share from 0 to 1; got {rate}.")


@dataclass(frozen=True)
class LogisticMissingness(Missingness):
    """Loses cells by logits that are linear in values. Abstract: `conditions` says in which."""

    rate: float
    """The mean chance of each node with parents."""
    scale: Scale = "standardised"
    """What the logits act on."""

    def __post_init__(self) -> None:
        check_rate(self.rate)
        if self.scale not in ("standardised", "raw"):
            raise InputError(f"the scale is 'standardised' or 'raw'; got {self.scale!r}.")

    @abstractmethod
    def conditions(self, graph: CausalGraph) -> Flags:
        """Returns what the loss of each node depends on, (d, d), True at [i, j] where on x_j."""

    def reads(self, graph: CausalGraph) -> tuple[int, ...]:
        """Returns the nodes that some node's loss depends on."""
        return tuple(np.flatnonzero(self.conditions(graph).any(axis=0)).tolist())

    def calibrate(
        self, values: Floats, graph: CausalGraph, generator: np.random.Generator
    ) -> CellLoss:
        """Draws the weights and finds the intercepts."""
        return logistic_loss(values, self.conditions(graph), self.rate, self.scale, generator)


def _measure(values: Floats, read: Flags, scale: Scale) -> tuple[Floats, Floats]:
    centre, spread = np.zeros(len(read)), np.ones(len(read))
    if scale == "standardised":
        centre[read] = values[:, read].mean(axis=0)
        deviation = values[:, read].std(axis=0)
        spread[read] = np.where(deviation > 0.0, deviation, 1.0)
    return centre, spread
