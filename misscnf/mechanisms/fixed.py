r"""The law of a number that is known beforehand: x = c, in every row and in every world.

The time of a visit is such a number. It has no noise and no parameters, and its factor is one: it
is there so that mechanisms which serve several visits can read at which of them they are.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from misscnf.data.domains import Domain
from misscnf.data.domains import Fixed as FixedDomain
from misscnf.mechanisms.base import LinearForm, Mechanism, Shape

__all__ = ["Fixed"]


class Fixed(Mechanism, name="fixed", serves=("fixed",)):
    """x = c.

    Arguments:
        value: c.

    Example:
        >>> week = Fixed(2.0)
        >>> week.generate(torch.randn(3, generator=torch.Generator()), torch.zeros(3, 0)).tolist()
        [2.0, 2.0, 2.0]
    """

    at: Tensor

    def __init__(self, value: float) -> None:
        super().__init__()
        self.value = value
        # It has no parameter that would say its dtype and device.
        self.register_buffer("at", torch.tensor(float(value)), persistent=False)

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        assert isinstance(domain, FixedDomain)
        return cls(domain.value)

    @property
    def domain(self) -> Domain:
        return FixedDomain(self.value)

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns zero."""
        return torch.zeros_like(x)

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns c."""
        return torch.full_like(u, self.value)

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns zero: nothing is left to noise."""
        return torch.zeros_like(x)

    def linear_form(self) -> LinearForm | None:
        """Returns the constant; its scale stands for none, since no row hides the number."""
        return LinearForm(self.at, self.at.new_zeros(0), torch.ones_like(self.at))
