r"""What a node is: a conditional law and the map from its noise to its value.

A mechanism is p(x_i | x_pa(i)) together with a strictly monotone x_i = f_i(u_i; x_pa(i)),
u_i ~ N(0, 1) (paper, Section 2, "Causal normalizing flows"). It has three verbs,

    log_prob(x, parents)    log p(x_i | x_pa(i))
    generate(u, parents)    x_i from its noise
    abduct(x, parents)      u_i from its value

and little else: sampling, interventions, counterfactuals and the observed-data likelihood are
sweeps through the graph that use these three. The true SCMs of the study and the learned flow
are made of the same kind of object.

Where the value is discrete, many noises make it: f_i is a step function, `abduct` draws one of
them from p(u_i | x_i, x_pa(i)), and a node without an order needs several numbers of noise, one a
category. Integrals only need the law: `draw` makes a value of it from one number, whatever the
size of the noise.

Shapes: x and u are (...), parents is (..., p); leading axes broadcast, so that parameters that
depend on a row only are computed once and shared by its draws. Noise of size k > 1 is (..., k).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from misscnf.data.domains import CONTINUOUS, Domain

__all__ = ["Mechanism", "LinearForm", "standard_normal_log_prob"]

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def standard_normal_log_prob(u: Tensor) -> Tensor:
    """Log-density of N(0, 1)."""
    return -0.5 * u * u - HALF_LOG_TWO_PI


class LinearForm(NamedTuple):
    """A linear-Gaussian mechanism, x = intercept + weights · parents + offset + scale · u."""

    intercept: Tensor
    """()"""
    weights: Tensor
    """(p,), zero for discrete parents"""
    scale: Tensor
    """()"""
    offset: Callable[[Tensor], Tensor] | None = None
    """What discrete parents add, as a function of all parents (..., p); None where there are none.
    The values of continuous parents do not matter to it."""


class Mechanism(nn.Module, ABC):
    """A conditional law with its noise map.

    To add a mechanism, implement the three verbs and `spec`, register the class in
    `mechanisms/__init__.py`, and add one line to the table in `tests/laws/mechanisms.py`.
    """

    @property
    def domain(self) -> Domain:
        """What the values can be."""
        return CONTINUOUS

    @property
    def noise_size(self) -> int:
        """How many standard normal numbers make a value."""
        return 1

    @abstractmethod
    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log p(x | parents), shape (...)."""

    @abstractmethod
    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns the value that the noise u makes, shape (...)."""

    @abstractmethod
    def abduct(
        self, x: Tensor, parents: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Returns the noise that makes the value x, shape (...).

        Where several noises do, one of them is drawn from p(u | x, parents) by the generator.
        """

    def draw(self, score: Tensor, parents: Tensor) -> Tensor:
        """Returns a value of the mechanism's law from one standard normal number, shape (...)."""
        return self.generate(score, parents)

    def support(self, parents: Tensor, tail: float) -> Tensor:
        """Returns how many values 0, 1, … hold all the mass of a discrete law, (...).

        Unbounded laws are cut where the mass beyond falls below `tail`.
        """
        raise NotImplementedError(f"{type(self).__name__} is continuous: its values are not few")

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

    def start_from(self, line: Mechanism) -> None:
        """Takes over the parameters of a simpler mechanism that this one extends."""
        simpler = line.state_dict()
        with torch.no_grad():
            for name, tensor in self.state_dict().items():  # parameters, and what a curve rests on
                if name in simpler and simpler[name].shape == tensor.shape:
                    tensor.copy_(simpler[name])
