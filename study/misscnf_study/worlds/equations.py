r"""A structural equation as it is printed, with its exact law.

Every equation of the study (paper, Appendix "Datasets") moves and scales one monotone image of
its noise,

    x = location(x_pa) + scale(x_pa) · h(u),    u ~ N(0, 1),   scale ≠ 0 of either sign,

so its density is that of z = h(u) at z = (x − location) / scale, over |scale|. Here h is the
identity unless said otherwise; the other images (`NoiseShape`) make the noise of SCMs from
elsewhere, uniform or Laplace say, out of a standard normal number. An equation is thus the same
kind of object as a learned mechanism. Where it is declared linear, by `linear`, and its noise
is normal, what is hidden around it is integrated in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import torch
import torch.nn.functional as F
from torch import Tensor

from misscnf import InputError
from misscnf.draws import normal_scores
from misscnf.mechanisms import LinearForm, Mechanism, standard_normal_log_prob

__all__ = [
    "Equation",
    "KnownLaw",
    "Term",
    "evaluate",
    "linear",
    "NoiseShape",
    "NORMAL",
    "TANH",
    "UNIFORM",
    "LAPLACE",
    "softplus_of_uniform",
    "two_peaks",
]

HALVINGS = 60
"""Of an interval, until it is shorter than a double can say."""

Term: TypeAlias = Callable[..., Tensor | float]
"""A function of the parents, one argument each in graph order."""


@dataclass(frozen=True)
class NoiseShape:
    """A strictly increasing image z = h(u) of standard normal noise, with its density.

    Off the support of z the density is zero, and `abduct` gives the noise of the nearest edge:
    a value that was moved past the edge by rounding still has a finite noise.
    """

    generate: Callable[[Tensor], Tensor]
    """z from u."""
    abduct: Callable[[Tensor], Tensor]
    """u from z."""
    log_prob: Callable[[Tensor], Tensor]
    """The log-density of z."""


@dataclass(frozen=True)
class _Line:
    """intercept + weights · parents."""

    intercept: float
    weights: tuple[float, ...]

    def __call__(self, *parents: Tensor) -> Tensor | float:
        total: Tensor | float = self.intercept
        for weight, parent in zip(self.weights, parents, strict=True):
            total = total + weight * parent
        return total


class KnownLaw(Mechanism):
    """A law that is written as code. Abstract: it has the verbs of a mechanism, but no file."""

    def spec(self) -> dict[str, Any]:
        """Refuses: an equation is code, and a saved model holds numbers only."""
        raise InputError(
            "the equations of a known SCM are not saved with a model; "
            "misscnf_study.worlds.load_scm(name) builds them anew."
        )


def evaluate(term: Term | float, parents: Tensor) -> Tensor:
    """Returns what a term says given parents (..., p): (...), or a number that broadcasts."""
    value = term(*parents.unbind(-1)) if callable(term) else term
    return torch.as_tensor(value, dtype=parents.dtype, device=parents.device)


@final
class Equation(KnownLaw):
    """x = location(parents) + scale(parents) · h(u).

    Arguments:
        location: A function of the parents, one argument each in graph order; a number where
            the location is constant.
        scale: A number, or a function like `location`; not zero, but either sign.
        noise: The image h of the noise.
    """

    def __init__(
        self,
        location: Term | float = 0.0,
        scale: Term | float = 1.0,
        noise: NoiseShape | None = None,
    ) -> None:
        super().__init__()
        if scale == 0.0:
            raise InputError("an equation of scale 0 has no noise, so no density; give it some.")
        self.location = location
        self.scale = scale
        self.noise = NORMAL if noise is None else noise

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the log-density of z = (x − location) / scale, less log |scale|."""
        location, scale = self._terms(parents)
        return self.noise.log_prob((x - location) / scale) - torch.log(torch.abs(scale))

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns location + scale · h(u)."""
        location, scale = self._terms(parents)
        return location + scale * self.noise.generate(u)

    def abduct(
        self, x: Tensor, parents: Tensor, generator: torch.Generator | None = None
    ) -> Tensor:
        """Returns the u with h(u) = (x − location) / scale."""
        location, scale = self._terms(parents)
        return self.noise.abduct((x - location) / scale)

    def linear_form(self) -> LinearForm | None:
        """Returns the line's coefficients where it is one and the noise is normal.

        The scale is |scale|: u and −u have one law, and the form describes the law.
        """
        line = self.location
        if not isinstance(line, _Line) or callable(self.scale) or self.noise is not NORMAL:
            return None
        intercept, weights, scale = (
            torch.tensor(number, dtype=torch.float64)
            for number in (line.intercept, line.weights, abs(self.scale))
        )
        return LinearForm(intercept, weights, scale)

    def _terms(self, parents: Tensor) -> tuple[Tensor, Tensor]:
        return evaluate(self.location, parents), evaluate(self.scale, parents)


def linear(*weights: float, intercept: float = 0.0, scale: float = 1.0) -> Equation:
    """Returns x = intercept + weights · parents + scale · u, declared linear.

    Example:
        >>> linear(10.0, scale=-1.0).linear_form().weights.tolist()  # x2 = 10 x1 − u2
        [10.0]
    """
    return Equation(_Line(intercept, weights), scale)


def _within(z: Tensor, low: float, high: float, log_density: Tensor) -> Tensor:
    """Returns the log-density where low ≤ z ≤ high, and −inf elsewhere."""
    return torch.where((z >= low) & (z <= high), log_density, -torch.inf)


def _tanh_abduct(z: Tensor) -> Tensor:
    edge = 1.0 - torch.finfo(z.dtype).eps
    return torch.atanh(z.clamp(-edge, edge))


def _tanh_log_prob(z: Tensor) -> Tensor:
    u = _tanh_abduct(z)
    # 1 − tanh² u = 4 / (e^u + e^−u)², without cancellation where tanh u is near ±1.
    log_slope = 2.0 * (math.log(2.0) - u.abs() - F.softplus(-2.0 * u.abs()))
    return _within(z, -1.0, 1.0, standard_normal_log_prob(u) - log_slope)


def _laplace_generate(u: Tensor) -> Tensor:
    # The cdf inverted on the lower side only, where it keeps its digits.
    depth = math.log(2.0) + torch.special.log_ndtr(-u.abs())
    return torch.where(u < 0.0, depth, -depth)


def _laplace_abduct(z: Tensor) -> Tensor:
    depth = torch.special.ndtri(0.5 * torch.exp(-z.abs()))
    return torch.where(z < 0.0, depth, -depth)


def _uniform_log_prob(z: Tensor) -> Tensor:
    return _within(z, 0.0, 1.0, torch.zeros_like(z))


NORMAL = NoiseShape(lambda u: u, lambda z: z, standard_normal_log_prob)
"""u itself."""

TANH = NoiseShape(torch.tanh, _tanh_abduct, _tanh_log_prob)
"""tanh u, on (−1, 1)."""

UNIFORM = NoiseShape(torch.special.ndtr, normal_scores, _uniform_log_prob)
"""Uniform on (0, 1): the normal cdf of u."""

LAPLACE = NoiseShape(_laplace_generate, _laplace_abduct, lambda z: -z.abs() - math.log(2.0))
"""Laplace of location 0 and scale 1."""


def softplus_of_uniform(shift: float, slope: float) -> NoiseShape:
    """Returns log(1 + exp(shift + slope · v)), v uniform on (0, 1) and slope > 0."""
    low, high = (math.log1p(math.exp(end)) for end in (shift, shift + slope))

    def generate(u: Tensor) -> Tensor:
        return F.softplus(shift + slope * torch.special.ndtr(u))

    def abduct(z: Tensor) -> Tensor:
        inside = z.clamp(low, high)
        before = inside + torch.log(-torch.expm1(-inside))
        return normal_scores((before - shift) / slope)

    def log_prob(z: Tensor) -> Tensor:
        # dv/dz = 1 / (slope (1 − e^−z)).
        log_density = -math.log(slope) - torch.log(-torch.expm1(-z.clamp(low, high)))
        return _within(z, low, high, log_density)

    return NoiseShape(generate, abduct, log_prob)


def two_peaks(distance: float, width: float) -> NoiseShape:
    """Returns width · u + distance · tanh(3 u): peaks near ±distance, and a valley between."""

    def generate(u: Tensor) -> Tensor:
        return width * u + distance * torch.tanh(3.0 * u)

    def slope(u: Tensor) -> Tensor:
        return width + 3.0 * distance * (1.0 - torch.tanh(3.0 * u) ** 2)

    @torch.no_grad()
    def invert(z: Tensor) -> Tensor:
        low, high = (z - distance) / width, (z + distance) / width
        for _ in range(HALVINGS):
            middle = 0.5 * (low + high)
            beyond = generate(middle) > z
            low, high = torch.where(beyond, low, middle), torch.where(beyond, middle, high)
        return 0.5 * (low + high)

    def abduct(z: Tensor) -> Tensor:
        u = invert(z)
        return u - (generate(u) - z) / slope(u)  # a last step of Newton's, for the gradient

    def log_prob(z: Tensor) -> Tensor:
        u = abduct(z)
        return standard_normal_log_prob(u) - torch.log(slope(u))

    return NoiseShape(generate, abduct, log_prob)
