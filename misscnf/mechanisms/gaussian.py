r"""Gaussian mechanisms: x = m(x_pa) + exp(s(x_pa)) u.

The mean is a line, a curve or a network, the scale a constant or a network. With a line and a
constant, the mechanism is linear-Gaussian and everything hidden around it is integrated in closed
form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from misscnf.mechanisms.base import LinearForm, Mechanism, standard_normal_log_prob
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Parents, read_parents, write_parents

__all__ = ["Gaussian", "soft_bound"]

LOG_SCALE_BOUND = 7.0
"""A network's log-scale stays within ±7, so that far from the data a scale is neither 0 nor ∞."""


def soft_bound(s: Tensor, bound: float) -> Tensor:
    """Squashes s into (−bound, bound) with slope one at zero."""
    return s / (1.0 + s.abs() / bound)


class Gaussian(Mechanism):
    """x = m(x_pa) + exp(s(x_pa)) u with u ~ N(0, 1).

    Arguments:
        parents: The domains of the parents, or their number.
        mean_hidden: Hidden widths of the mean's network; none makes it linear.
        scale_hidden: Hidden widths of the scale's network; None makes the scale constant.
        activation: Activation of the networks.
        mean_curve: Centres, products and basis functions of the mean's curve; None for none.
    """

    def __init__(
        self,
        parents: Parents,
        mean_hidden: Sequence[int] = (),
        scale_hidden: Sequence[int] | None = None,
        activation: str = "silu",
        mean_curve: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.parents = read_parents(parents)
        self.activation = activation
        self.mean = Conditioner(
            self.parents, 1, mean_hidden, activation=activation, curve=mean_curve
        )
        self.constant_scale = scale_hidden is None or not self.parents
        self.log_scale = Conditioner(
            () if self.constant_scale else self.parents,
            1,
            scale_hidden or (),
            activation=activation,
        )

    def location_and_log_scale(self, parents: Tensor) -> tuple[Tensor, Tensor]:
        """Returns m(x_pa) and s(x_pa), each broadcastable to (...)."""
        log_scale = self.log_scale(parents)[..., 0]
        if not self.constant_scale:
            log_scale = soft_bound(log_scale, LOG_SCALE_BOUND)
        return self.mean(parents)[..., 0], log_scale

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log N(u; 0, 1) − s."""
        location, log_scale = self.location_and_log_scale(parents)
        return standard_normal_log_prob((x - location) * torch.exp(-log_scale)) - log_scale

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns m + exp(s) u."""
        location, log_scale = self.location_and_log_scale(parents)
        return location + torch.exp(log_scale) * u

    def abduct(
        self, x: Tensor, parents: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Returns (x − m) / exp(s)."""
        location, log_scale = self.location_and_log_scale(parents)
        return (x - location) * torch.exp(-log_scale)

    def initialise(self, generator: torch.Generator) -> None:
        """Draws the hidden layers of both networks."""
        self.mean.initialise(generator)
        self.log_scale.initialise(generator)

    def linear_form(self) -> LinearForm | None:
        """Returns the line, where the mean is one and the scale is constant."""
        if not (self.mean.is_line and self.constant_scale):
            return None
        intercept, scale = self.mean.bias[0], torch.exp(self.log_scale.bias[0])
        weight, encoding = self.mean.weight, self.mean.encoding
        if weight is None:
            return LinearForm(intercept, intercept.new_zeros(0), scale)
        if encoding.plain:
            return LinearForm(intercept, weight[0], scale)
        weights, of_discrete = encoding.split(weight[0])
        return LinearForm(
            intercept, weights, scale, lambda parents: encoding(parents) @ of_discrete.to(parents)
        )

    def set_line(self, intercept: float, weights: Sequence[float], scale: float) -> None:
        """Sets the linear part of the mean, a weight a feature, and the constant of the scale."""
        with torch.no_grad():
            self.mean.bias.fill_(intercept)
            if self.mean.weight is not None:
                line = torch.as_tensor(weights, dtype=torch.float64)
                self.mean.weight.copy_(line.reshape(1, -1))
            self.log_scale.bias.fill_(math.log(scale))

    def spec(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "parents": write_parents(self.parents),
            "mean_hidden": list(self.mean.hidden),
            "scale_hidden": None if self.constant_scale else list(self.log_scale.hidden),
            "activation": self.activation,
            "mean_curve": None if self.mean.curve is None else list(self.mean.curve.size),
        }
