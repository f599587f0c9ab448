r"""Diffusion as DiffPuter has it: learn to take noise away, then draw what is hidden.

A network F learns to see rows y through noise of any size σ, in the form of Karras et al. with
σ_d = ½ the spread of the data:

    D(x; σ) = c_skip x + c_out F(c_in x, c_noise)
    c_skip = σ_d² / (σ² + σ_d²)    c_out = σ σ_d / √(σ² + σ_d²)
    c_in = 1 / √(σ² + σ_d²)        c_noise = ln(σ) / 4
    minimise E w(σ) |D(y + σ ε; σ) − y|²,   w = (σ² + σ_d²) / (σ σ_d)²,   ln σ ~ N(−1.2, 1.2²)

so that what F has to learn has variance one, and weight one, at every σ (w c_out² = 1). The
sampler walks from noise to data along t_0 > t_1 > … > t_N = 0,

    t_i = (80^⅐ + i / (N − 1) · (0.002^⅐ − 80^⅐))⁷,

by Heun's steps of dx/dt = (x − D(x; t)) / t, with a little noise added before each ("churn").
After each step the coordinates that are known are put back, with noise of the size that is left,
and most steps are repeated from re-noised points so that both kinds settle on one another
(RePaint). One walk is one draw of what is hidden given what is seen.

References:
    Karras et al., Elucidating the design space of diffusion-based generative models, 2022.
    Lugmayr et al., RePaint: inpainting using denoising diffusion probabilistic models, 2022.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional

from misscnf.draws import normal_numbers

__all__ = [
    "Denoise",
    "Denoiser",
    "Preconditioning",
    "denoising_loss",
    "loss_weight",
    "noise_levels",
    "preconditioning",
    "sample_hidden",
    "SPREAD",
]

SPREAD = 0.5
"""σ_d, the standard deviation that data must have."""
NOISE = (-1.2, 1.2)
"""Mean and deviation of ln σ in training."""
LEVELS = (80.0, 0.002)
"""The first noise of a walk and the last above zero."""
ROOT = 7.0
"""The root in which levels of noise are equally spaced."""
ROWS_AT_ONCE = 2048
"""Rows that walk together: so many stay in the cache."""

Denoise: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""D(x; σ): rows (N, d) and noise, (N, 1) or a number, to rows without noise."""


class Preconditioning(NamedTuple):
    """The four coefficients at a noise σ."""

    skip: Tensor
    out: Tensor
    scale: Tensor
    """c_in"""
    noise: Tensor


def preconditioning(sigma: Tensor) -> Preconditioning:
    """Returns c_skip, c_out, c_in and c_noise."""
    total = sigma**2 + SPREAD**2
    return Preconditioning(
        skip=SPREAD**2 / total,
        out=sigma * SPREAD / total.sqrt(),
        scale=1.0 / total.sqrt(),
        noise=sigma.log() / 4.0,
    )


def loss_weight(sigma: Tensor) -> Tensor:
    """Returns w(σ) = 1 / c_out²."""
    return (sigma**2 + SPREAD**2) / (sigma * SPREAD) ** 2


def noise_levels(steps: int, ends: tuple[float, float] = LEVELS) -> Tensor:
    """Returns t_0, …, t_N, (N + 1,), for N steps, at least 2, from one end to the other and 0."""
    high, low = (end ** (1.0 / ROOT) for end in ends)
    part = torch.arange(steps, dtype=torch.float64) / (steps - 1)
    levels = (high + part * (low - high)) ** ROOT
    return torch.cat([levels, torch.zeros(1, dtype=torch.float64)])


class Denoiser(nn.Module):
    """D(x; σ) with a network F(x, c) = MLP(Linear(x) + TimeMLP(sines and cosines of c)).

    In float32, as the authors have it.

    Arguments:
        columns: d.
        width: The channels of the network, an even number.
        generator: Where its weights come from, U(±1/√fan-in); on the CPU.
    """

    def __init__(self, columns: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.width = width
        self.entry = _linear(columns, width, generator)
        self.time = nn.ModuleList([_linear(width, width, generator) for _ in range(2)])
        widths = (width, 2 * width, 2 * width, width)
        self.hidden = nn.ModuleList(
            _linear(narrow, wide, generator) for narrow, wide in itertools.pairwise(widths)
        )
        self.exit = _linear(width, columns, generator)

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """Returns D(x; σ), (N, d)."""
        c = preconditioning(sigma)
        return c.skip * x + c.out * self._network(c.scale * x, c.noise)

    def _network(self, x: Tensor, noise: Tensor) -> Tensor:
        first, second = self.time
        h = self.entry(x) + second(functional.silu(first(self._embedding(noise))))
        for layer in self.hidden:
            h = functional.silu(layer(h))
        return self.exit(h)

    def _embedding(self, noise: Tensor) -> Tensor:
        """Returns sines and cosines of c at frequencies from 1 down to 1/10000, (…, width)."""
        half = self.width // 2
        exponent = torch.arange(half, device=noise.device, dtype=noise.dtype) / half
        angle = noise.reshape(-1, 1) * torch.exp(-math.log(10_000.0) * exponent)
        return torch.cat([angle.sin(), angle.cos()], dim=-1)


def _linear(narrow: int, wide: int, generator: torch.Generator) -> nn.Linear:
    layer = nn.utils.skip_init(nn.Linear, narrow, wide, dtype=torch.float32)
    bound = 1.0 / math.sqrt(narrow)
    with torch.no_grad():
        for parameter in (layer.weight, layer.bias):
            parameter.uniform_(-bound, bound, generator=generator)
    return layer


def denoising_loss(denoise: Denoise, rows: Tensor, generator: torch.Generator) -> Tensor:
    """Returns the weighted squared error of rows (N, d) seen through noise, one size a row."""
    mean, deviation = NOISE
    sigma = torch.exp(mean + deviation * normal_numbers((len(rows), 1), generator, rows))
    noisy = rows + sigma * normal_numbers(rows.shape, generator, rows)
    return (loss_weight(sigma) * (denoise(noisy, sigma) - rows) ** 2).mean()


@torch.no_grad()
def sample_hidden(
    denoise: Denoise,
    values: Tensor,
    observed: Tensor,
    generator: torch.Generator,
    *,
    steps: int = 50,
    repeats: int = 20,
    churn: float = 1.0,
    levels: tuple[float, float] = LEVELS,
) -> Tensor:
    """Draws what is hidden given what is seen.

    Arguments:
        denoise: D(x; σ).
        values: (N, d); what stands where a cell is hidden has no say.
        observed: (N, d).
        generator: On the device of the values.
        steps: N, the levels of noise.
        repeats: How often each step but the last is taken.
        churn: S_churn; a step first adds noise until t_i has grown by the share churn / N.
        levels: t_0 and t_{N−1}.

    Returns:
        (N, d), the observed cells as they are.
    """
    path = noise_levels(steps, levels).to(values)
    growth = min(churn / steps, math.sqrt(2.0) - 1.0)
    pieces = [
        _walk(denoise, some, seen, generator, path, repeats, growth)
        for some, seen in zip(
            values.split(ROWS_AT_ONCE), observed.split(ROWS_AT_ONCE), strict=True
        )
    ]
    return torch.where(observed, values, torch.cat(pieces))


def _walk(
    denoise: Denoise,
    values: Tensor,
    observed: Tensor,
    generator: torch.Generator,
    path: Tensor,
    repeats: int,
    growth: float,
) -> Tensor:
    def noise() -> Tensor:
        return normal_numbers(values.shape, generator, values)

    x = path[0] * noise()
    last = len(path) - 2
    for i, (now, then) in enumerate(itertools.pairwise(path)):
        for repeat in range(repeats if i < last else 1):
            if repeat:
                x = x + (now**2 - then**2).sqrt() * noise()
            higher = (1.0 + growth) * now
            x = x + (higher**2 - now**2).sqrt() * noise()
            x = _heun(denoise, x, higher, then)
            x = torch.where(observed, values + then * noise(), x)
    return x


def _heun(denoise: Denoise, x: Tensor, now: Tensor, then: Tensor) -> Tensor:
    """Steps along dx/dt from one level to another; straight ahead where that is zero."""
    slope = (x - denoise(x, now)) / now
    ahead = x + (then - now) * slope
    if then == 0.0:
        return ahead
    return x + (then - now) * (slope + (ahead - denoise(ahead, then)) / then) / 2.0
