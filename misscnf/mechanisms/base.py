r"""What a node is: a conditional law and the monotone map between its noise and its value.

A mechanism is p(x_i | x_pa(i)) together with a strictly monotone x_i = f_i(u_i; x_pa(i)),
u_i ~ N(0, 1) (paper, Section 2, "Causal normalizing flows"). It has three verbs,

    log_prob(x, parents)    log p(x_i | x_pa(i))
    generate(u, parents)    x_i from its noise
    abduct(x, parents)      u_i from its value

and nothing else: sampling, interventions, counterfactuals and the observed-data likelihood are
sweeps through the graph that use these three. The true SCMs of the study and the learned flow
are made of the same kind of object.

Shapes: x and u are (...), parents is (..., p); leading axes broadcast, so that parameters that
depend on a row only are computed once and shared by its draws.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

__all__ = ["Mechanism", "LinearForm", "standard_normal_log_prob"]

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def standard_normal_log_prob(u: Tensor) -> Tensor:
    """Log-density of N(0, 1)."""
    return -0.5 * u * u - HALF_LOG_TWO_PI


class LinearForm(NamedTuple):
    """A linear-Gaussian mechanism, x = intercept + weights · parents + scale · u."""

    intercept: Tensor
    """()"""
    weights: Tensor
    """(p,)"""
    scale: Tensor
    """()"""


class Mechanism(nn.Module, ABC):
    """A conditional law with its noise map. Abstract: subclasses are final.

    To add a mechanism, implement the three verbs and `spec`, register the class in
    `mechanisms/__init__.py`, and add one line to the table in `tests/laws/mechanisms.py`.
    """

    @abstractmethod
    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log p(x | parents), shape (...)."""

    @abstractmethod
    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns the value that the noise u makes, shape (...)."""

    @abstractmethod
    def abduct(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the noise that makes the value x, shape (...)."""

    @abstractmethod
    def spec(self) -> dict[str, Any]:
        """Returns the JSON-friendly arguments that build this mechanism anew."""

    def linear_form(self) -> LinearForm | None:
        """Returns the coefficients where the mechanism is linear-Gaussian, else None.

        Components of such mechanisms are integrated in closed form.
        """
        return None

    def initialise(self, generator: torch.Generator) -> None:
        """Draws starting parameters; a mechanism without random ones need not."""
