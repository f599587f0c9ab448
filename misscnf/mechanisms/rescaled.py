r"""A mechanism in other units: the same law, with its value and its parents rescaled.

With z = (x − location) / scale for the node and each of its parents, a mechanism of z is one of x:

    log p(x | parents) = log p(z | z_parents) − log scale,  x = location + scale · f(u; z_parents).

So a model of standardised columns can be asked in the user's units, like the true SCM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from misscnf.errors import InputError
from misscnf.mechanisms.base import LinearForm, Mechanism

__all__ = ["Rescaled"]


class Rescaled(Mechanism):
    """A mechanism of standardised numbers, in original units and double precision.

    Arguments:
        base: The mechanism of z.
        location: The location of x.
        scale: The scale of x, positive.
        parent_locations: The locations of its parents.
        parent_scales: The scales of its parents.
    """

    location: Tensor
    scale: Tensor
    parent_locations: Tensor
    parent_scales: Tensor

    def __init__(
        self,
        base: Mechanism,
        location: float,
        scale: float,
        parent_locations: Sequence[float],
        parent_scales: Sequence[float],
    ) -> None:
        super().__init__()
        self.base = base
        for name, numbers in (
            ("location", location),
            ("scale", scale),
            ("parent_locations", parent_locations),
            ("parent_scales", parent_scales),
        ):
            self.register_buffer(name, torch.tensor(numbers, dtype=torch.float64))

    def _encode(self, parents: Tensor) -> Tensor:
        return (parents - self.parent_locations) / self.parent_scales

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log p(z | z_parents) − log scale."""
        z = (x - self.location) / self.scale
        return self.base.log_prob(z, self._encode(parents)) - torch.log(self.scale)

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns location + scale · f(u; z_parents)."""
        return self.location + self.scale * self.base.generate(u, self._encode(parents))

    def abduct(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the noise of z."""
        return self.base.abduct((x - self.location) / self.scale, self._encode(parents))

    def linear_form(self) -> LinearForm | None:
        """Returns the line in original units, where the base is one."""
        form = self.base.linear_form()
        if form is None:
            return None
        weights = self.scale * form.weights / self.parent_scales
        intercept = self.location + self.scale * form.intercept - weights @ self.parent_locations
        return LinearForm(intercept, weights, self.scale * form.scale)

    def initialise(self, generator: torch.Generator) -> None:
        """Draws the starting parameters of the base."""
        self.base.initialise(generator)

    def spec(self) -> dict[str, Any]:
        """Refuses: the base and its units are saved, not this view of them."""
        raise InputError("a rescaled mechanism is a view; save the model that it shows.")
