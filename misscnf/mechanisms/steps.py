r"""Values in steps: levels 0, 1, …, K − 1, and draws of the noise that made one.

A value that came from a step function tells its noise only up to an interval, P < Φ(u) < Q. With
v uniform on (0, 1), u = Φ⁻¹(P + v (Q − P)) has the right law. Far in the upper tail P and Q are
both one in floating point, so the interval is mirrored there: everything is computed on the side
where numbers keep their digits, from logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Generator, Tensor

from misscnf.draws import uniform_numbers
from misscnf.mechanisms.base import Mechanism

__all__ = ["LevelMechanism", "interior_uniform", "log_masses_of", "log_odds_of", "noise_between"]


class LevelMechanism(Mechanism):
    """A law of levels, numbered from 0. Abstract, and at least two of them."""

    def __init__(self, levels: int) -> None:
        super().__init__()
        if levels < 2:
            raise ValueError(f"a mechanism of levels needs at least two; got {levels}")
        self.levels = levels

    def _legal(self, x: Tensor) -> Tensor:
        return (x >= 0) & (x < self.levels) & (x == x.round())

    def _at(self, x: Tensor, of_levels: Tensor) -> Tensor:
        """Takes what belongs to the level x from (..., levels); to the first, where x is none."""
        # of numpy: the function of torch imports sympy at its first call, half a second
        shape = np.broadcast_shapes(x.shape, of_levels.shape[:-1])
        k = torch.where(self._legal(x), x, 0.0).long().expand(shape)[..., None]
        return of_levels.expand(*shape, -1).gather(-1, k)[..., 0]

    def support(self, parents: Tensor, tail: float) -> Tensor:
        """Returns the number of levels, whatever the tail."""
        return torch.full(parents.shape[:-1], self.levels, device=parents.device)


def interior_uniform(shape: Sequence[int], generator: Generator | None, like: Tensor) -> Tensor:
    """Returns uniform numbers off the ends, where rounding would make the neighbouring value."""
    if generator is None:
        raise ValueError("the noise of a discrete value is drawn: abduct needs a generator")
    margin = 1e-9  # share of the mass at each end that no draw comes from
    return margin + (1.0 - 2.0 * margin) * uniform_numbers(shape, generator, like)


def log_masses_of(u: Tensor) -> tuple[Tensor, Tensor]:
    """Returns log Φ(u) and log Φ(−u): the smaller tail keeps its digits, and tells the other.

    That takes half the time of `torch.special.log_ndtr`, which goes on where tails are zero.
    """
    tail = torch.special.ndtr(-u.abs())
    # a look at numbers on a graphics card would wait for it
    if u.device.type != "cpu" or bool((tail < torch.finfo(tail.dtype).tiny).any()):
        return torch.special.log_ndtr(u), torch.special.log_ndtr(-u)
    small, large = tail.log(), torch.log1p(-tail)
    above = u > 0.0
    return torch.where(above, large, small), torch.where(above, small, large)


def log_odds_of(u: Tensor) -> Tensor:
    """Returns logit Φ(u), in a fifth of the time that both masses of `log_masses_of` take."""
    tail = torch.special.ndtr(-u.abs())
    if u.device.type != "cpu" or bool((tail < torch.finfo(tail.dtype).tiny).any()):
        return torch.special.log_ndtr(u) - torch.special.log_ndtr(-u)
    return torch.copysign(torch.log((1.0 - tail) / tail), u)


def noise_between(log_masses: Sequence[Tensor], share: Tensor) -> Tensor:
    """Returns the noise at a share of the mass between two points.

    Arguments:
        log_masses: log P, log Q, log(1 − P), log(1 − Q).
        share: Where in the interval, in (0, 1).
    """
    log_below, log_upto, log_above_lower, log_above_upper = log_masses
    mirrored = log_above_lower < log_below  # more than half of the mass lies below
    low = torch.where(mirrored, log_above_upper, log_below)
    high = torch.where(mirrored, log_above_lower, log_upto)
    share = torch.where(mirrored, 1.0 - share, share)
    mass = torch.exp(low) + share * (torch.exp(high) - torch.exp(low))
    u = torch.special.ndtri(mass.clamp(min=torch.finfo(mass.dtype).tiny))
    return torch.where(mirrored, -u, u)
