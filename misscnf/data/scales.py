r"""Between the user's units x and the model's z: a link and a standardisation, exactly invertible.

    z = (g(x) − location) / scale,      g(x) = x, log(x − low) or logit((x − low) / (high − low)),
    log p(x) = log p(z) + log|dz/dx|,   log|dz/dx| = log g′(x) − log scale.

A plain column has no link. One with a link has room only between its ends: no value at or beyond
them can be drawn, and one that is seen there has density zero.

A saved model can be looked at without torch, which takes seconds to import: in this folder it is
imported where tensors are worked on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

from misscnf.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Unit", "Link"]

Link = Literal["none", "log", "logit"]
"""The shapes of g."""


@dataclass(frozen=True)
class Unit:
    """The map of one column between the user's units and the model's."""

    location: float = 0.0
    """What g(x) is measured from."""
    scale: float = 1.0
    """The unit of g(x), positive."""
    link: Link = "none"
    low: float = 0.0
    """Values lie above this, where there is a link."""
    high: float = 1.0
    """Values lie below this, where the link is a logit."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.location) and 0 < self.scale < math.inf):
            raise InputError(
                f"a unit has location {self.location} and scale {self.scale}; both must be finite "
                f"and the scale positive."
            )
        if self.link not in (known := get_args(Link)):
            raise InputError(f"a unit has the link {self.link!r}; expected {', '.join(known)}.")
        top = self.high if self.link == "logit" else math.inf
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < top):
            raise InputError(
                f"a unit has room from {self.low} to {self.high}; expected two finite numbers, "
                f"the first below the second."
            )

    @property
    def affine(self) -> bool:
        """Whether the map is a straight line."""
        return self.link == "none"

    @property
    def ends(self) -> tuple[float, float]:
        """What values lie between, both left out."""
        low = -math.inf if self.affine else self.low
        return low, self.high if self.link == "logit" else math.inf

    def holds(self, x: Tensor) -> Tensor:
        """Whether there is room for each value (...)."""
        low, high = self.ends
        return (x > low) & (x < high)

    def apply_link(self, x: Tensor) -> Tensor:
        """Returns g(x), for values that there is room for."""
        if self.affine:
            return x
        import torch

        above = torch.log(x - self.low)
        return above if self.link == "log" else above - torch.log(self.high - x)

    def encode(self, x: Tensor) -> Tensor:
        """From the user's units to the model's (...)."""
        return (self.apply_link(x) - self.location) / self.scale

    def decode(self, z: Tensor) -> Tensor:
        """From the model's units to the user's (...), inside the ends of a unit with a link."""
        g = z * self.scale + self.location
        if self.affine:
            return g
        import torch

        if self.link == "log":
            x = self.low + torch.exp(g)
        else:  # from the nearer end, since 1 − p loses the digits of a small p
            share = (self.high - self.low) * torch.sigmoid(-g.abs())
            x = torch.where(g > 0, self.high - share, self.low + share)
        ends = torch.tensor(self.ends).to(g)
        inner = torch.nextafter(ends, ends.flip(0))
        return torch.clamp(x, inner[0], inner[1])

    def log_link_slope(self, x: Tensor) -> Tensor:
        """Returns log g′(x), (...)."""
        import torch

        if self.affine:
            return torch.zeros_like(x)
        of_log = -torch.log(x - self.low)
        if self.link == "log":
            return of_log
        return of_log + math.log(self.high - self.low) - torch.log(self.high - x)

    def log_slope(self, x: Tensor) -> Tensor:
        """Returns log|dz/dx|, (...)."""
        return self.log_link_slope(x) - math.log(self.scale)
