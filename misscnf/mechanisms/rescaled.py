r"""A mechanism in other units: the same law, with its value and its parents as the user has them.

With z = unit(x) for the node and each of its parents, a mechanism of z is one of x:

    log p(x | parents) = log p(z | z_parents) + log|dz/dx|,   x = unit⁻¹(f(u; z_parents)).

So a model of standardised columns can be asked in the user's units, like the true SCM. Discrete
nodes have the identity for a unit: their values are codes and counts on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from misscnf.data.domains import Domain
from misscnf.data.scales import Unit
from misscnf.mechanisms.base import LinearForm, Mechanism

__all__ = ["Rescaled"]


class Rescaled(Mechanism):
    """A mechanism of the model's numbers, in original units and double precision.

    Arguments:
        base: The mechanism of z.
        unit: The unit of x.
        parent_units: The units of its parents.

    Example:
        >>> from misscnf.mechanisms import Gaussian
        >>> kilograms = Rescaled(Gaussian(0), Unit(location=70.0, scale=10.0), [])
        >>> kilograms.generate(torch.tensor([-1.0, 0.0]), torch.zeros(2, 0)).tolist()
        [60.0, 70.0]
    """

    def __init__(self, base: Mechanism, unit: Unit, parent_units: Sequence[Unit]) -> None:
        super().__init__()
        self.base, self.unit, self.parent_units = base, unit, tuple(parent_units)

    @property
    def domain(self) -> Domain:
        return self.base.domain

    @property
    def noise_size(self) -> int:
        return self.base.noise_size

    def _encode(self, parents: Tensor) -> Tensor:
        if not self.parent_units:
            return parents
        columns = zip(self.parent_units, parents.unbind(-1), strict=True)
        return torch.stack([unit.encode(x) for unit, x in columns], dim=-1)

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log p(z | z_parents) + log|dz/dx|; −∞ where the unit has no room for x."""
        unit, inside, room = self.unit, x, None
        if not unit.affine:
            room = unit.holds(x)
            inside = torch.where(room, x, unit.decode(torch.zeros_like(x)))
        density = self.base.log_prob(unit.encode(inside), self._encode(parents))
        density = density + unit.log_slope(inside)
        return density if room is None else torch.where(room, density, -torch.inf)

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        return self.unit.decode(self.base.generate(u, self._encode(parents)))

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns the noise of z, drawn where several noises make it."""
        return self.base.abduct(self.unit.encode(x), self._encode(parents), generator)

    def draw(self, score: Tensor, parents: Tensor) -> Tensor:
        return self.unit.decode(self.base.draw(score, self._encode(parents)))

    def support(self, parents: Tensor, tail: float) -> Tensor:
        return self.base.support(self._encode(parents), tail)

    def linear_predictor(self, parents: Tensor) -> Tensor | None:
        return self.base.linear_predictor(self._encode(parents))

    def linear_form(self) -> LinearForm | None:
        """Returns the line in original units, where the base is one and no unit has a link."""
        form = self.base.linear_form()
        if form is None or form.slopes is not None:
            return None
        if not all(unit.affine for unit in (self.unit, *self.parent_units)):
            return None
        locations = form.weights.new_tensor([unit.location for unit in self.parent_units])
        scales = form.weights.new_tensor([unit.scale for unit in self.parent_units])
        weights = self.unit.scale * form.weights / scales
        intercept = self.unit.location + self.unit.scale * form.intercept - weights @ locations
        scale, base = self.unit.scale * form.scale, form.offset
        offset = None if base is None else lambda z: self.unit.scale * base(self._encode(z))
        return LinearForm(intercept, weights, scale, offset)
