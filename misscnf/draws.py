r"""Where points go: independent or quasi-random.

An integral over the noise of hidden nodes is an average over points. Independent points are the
paper's; quasi-random ones fill space evenly (Sobol points, each component with random shifts of
its own, so that errors are unbiased and independent).

Randomness comes only from generators derived from (seed, purpose, …), never from torch's global
state, so that a resumed run draws what an uninterrupted one would have drawn.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from functools import lru_cache

import torch
from torch import Tensor

__all__ = [
    "derive_generator",
    "uniform_numbers",
    "normal_numbers",
    "shifted_points",
    "normal_scores",
]


def derive_generator(
    seed: int, *purpose: Hashable, device: torch.device | str = "cpu"
) -> torch.Generator:
    """Returns a generator that depends on the seed and the purpose alone.

    Arguments:
        seed: Where randomness starts.
        purpose: What the numbers are for, such as a name and the number of an epoch.
        device: Where they are drawn.

    Example:
        >>> first, again = (derive_generator(0, "noise") for _ in range(2))
        >>> torch.equal(torch.rand(3, generator=first), torch.rand(3, generator=again))
        True
    """
    digest = hashlib.blake2b(repr((seed, *purpose)).encode(), digest_size=8).digest()
    generator = torch.Generator(device=device)
    return generator.manual_seed(int.from_bytes(digest, "little") >> 1)


def uniform_numbers(shape: Sequence[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """Returns independent U(0, 1) numbers on the device and in the precision of a tensor.

    Arguments:
        shape: The shape of what is drawn.
        generator: Where they come from, such as one of `derive_generator`.
        like: The tensor.

    Example:
        >>> drawn = uniform_numbers((2, 3), derive_generator(0, "noise"), like=torch.zeros(1))
        >>> drawn.shape
        torch.Size([2, 3])
    """
    return torch.rand(shape, generator=generator, device=like.device, dtype=like.dtype)


def normal_numbers(shape: Sequence[int], generator: torch.Generator, like: Tensor) -> Tensor:
    """Returns independent N(0, 1) numbers on the device and in the precision of a tensor.

    Arguments:
        shape: The shape of what is drawn.
        generator: Where they come from, such as one of `derive_generator`.
        like: The tensor.

    Example:
        >>> drawn = normal_numbers((2, 3), derive_generator(0, "noise"), like=torch.zeros(1))
        >>> drawn.shape
        torch.Size([2, 3])
    """
    return torch.randn(shape, generator=generator, device=like.device, dtype=like.dtype)


@lru_cache(maxsize=64)
def _sobol(count: int, dims: int) -> Tensor:
    if dims == 1:  # in one dimension, equal spacing is best
        return (torch.arange(count, dtype=torch.float64)[:, None] + 0.5) / count
    return torch.quasirandom.SobolEngine(dims, scramble=False).draw(count, dtype=torch.float64)


def shifted_points(count: int, shifts: Tensor) -> Tensor:
    """Returns a quasi-random set under random shifts.

    Arguments:
        count: Points in the set, k.
        shifts: (..., m), uniform on [0, 1): one shift for each number that is drawn.

    Returns:
        (..., k, m) in [0, 1): each point uniform, all k of them evenly spread.

    Example:
        >>> shifted_points(4, torch.zeros(1)).tolist()  # one shift of zero: evenly spaced
        [[0.125], [0.375], [0.625], [0.875]]
    """
    base = _sobol(count, shifts.shape[-1]).to(shifts)
    points = base + shifts[..., None, :]
    return points - points.floor()


def normal_scores(uniform: Tensor) -> Tensor:
    """Turns uniform numbers into standard normal ones, kept finite at the ends.

    Arguments:
        uniform: Numbers from 0 to 1, (...).

    Returns:
        Standard normal numbers, (...).

    Example:
        >>> normal_scores(torch.tensor([0.5, 0.975])).round(decimals=2)
        tensor([0.0000, 1.9600])
    """
    tiny = torch.finfo(uniform.dtype).eps / 4
    return torch.special.ndtri(uniform.clamp(tiny, 1.0 - 2 * tiny))
