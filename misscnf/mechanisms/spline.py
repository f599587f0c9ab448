r"""Spline mechanisms: a Gaussian one whose noise goes through a monotone spline.

    z = (x − m(x_pa)) / exp(s(x_pa)) + c,   u = S(z),   c = E[S⁻¹(u)]

S is zuko's monotone rational-quadratic spline on [−bound, bound] and the identity outside, with
slope one at the ends: the tails extrapolate linearly, and the map stays invertible and stable
however far a value lies from the data. With all its parameters zero, S is the identity, so that a
spline starts as the Gaussian it refines. The shift c makes m the mean of x given its parents.

The mean is learned by least squares, whatever the noise: a parameter of m sees the slope of
−½ (x − m)² / v, v the mean of exp(2 s), instead of the slope of the log-density. Least squares
finds the mean where the noise is not what the spline can say, as where its shape changes with the
parents; the likelihood does not. And where a line cannot follow the mean, it counts everybody
alike, as average effects do. (Where a network sets the spline by the parents there is neither
shift nor least squares: all follows the likelihood.)

References:
    Durkan et al., Neural Spline Flows, 2019.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from numpy.polynomial.hermite_e import hermegauss
from torch import Generator, Tensor
from torch.distributions import Distribution

from misscnf.data.domains import Domain
from misscnf.mechanisms.base import Mechanism, NoiseSpline, Shape, standard_normal_log_prob
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Parents
from misscnf.mechanisms.gaussian import Gaussian

# Importing zuko switches torch's argument validation off for the whole process: put it back.
_validation = (Distribution._validate_args, Distribution.arg_constraints)
from zuko.transforms import MonotonicRQSTransform  # noqa: E402

Distribution._validate_args, Distribution.arg_constraints = _validation  # type: ignore[method-assign]

__all__ = ["Spline"]

NORMAL_RULE = tuple(side / side.sum() if i else side for i, side in enumerate(hermegauss(32)))
"""Nodes and weights of Gauss and Hermite, for means over N(0, 1)."""


class _Knots(MonotonicRQSTransform):
    """The spline; its knots are looked up where all rows share them and nothing is differentiated.

    These are the same numbers. Broadcasting them takes longer, and the half second in which torch
    imports sympy to compare two shapes.
    """

    def bin(self, k: Tensor) -> tuple[Tensor, ...]:
        """Returns whether k is a bin, its ends on both sides, the slopes there and between."""
        sides = self.horizontal, self.vertical, self.derivatives
        if any(side.dim() > 1 or side.requires_grad for side in sides):
            found: tuple[Tensor, ...] = super().bin(k)
            return found
        inside = (k >= 0) & (k < self.bins)
        k = k % self.bins
        (x0, x1), (y0, y1), (d0, d1) = ((side[k], side[k + 1]) for side in sides)
        return inside, x0, x1, y0, y1, d0, d1, (y1 - y0) / (x1 - x0)


class Spline(Mechanism, name="spline"):
    """u = S((x − m(x_pa)) / exp(s(x_pa)) + c) with u ~ N(0, 1).

    Arguments:
        parents: The domains of the parents, or their number.
        mean_hidden, scale_hidden, activation, mean_curve: As in `Gaussian`.
        shape_hidden: Hidden widths of the network that sets the spline by the parents; None
            gives every row the same shape of noise.
        bins: The number of bins of the spline.
        bound: Where the spline ends and the linear tails begin.

    Example:
        >>> import torch
        >>> law = Spline(1)
        >>> x, parent = torch.tensor([0.0]), torch.zeros(1, 1)
        >>> round(law.log_prob(x, parent).exp().item(), 4)  # normal before it is fitted
        0.3989
    """

    def __init__(
        self,
        parents: Parents,
        mean_hidden: Sequence[int] = (),
        scale_hidden: Sequence[int] | None = None,
        shape_hidden: Sequence[int] | None = None,
        bins: int = 8,
        bound: float = 5.0,
        activation: str = "silu",
        mean_curve: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.bins, self.bound = bins, bound
        self.base = Gaussian(parents, mean_hidden, scale_hidden, activation, mean_curve)
        outputs = 3 * bins - 1
        self.shape = Conditioner(self.base.parents, outputs, shape_hidden, activation=activation)
        self.constant_shape = self.shape.constant

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        widths = shape.hidden, shape.scale_hidden
        return cls(parents, *widths, activation=shape.activation, mean_curve=shape.curve)

    @property
    def solvable(self) -> bool:
        """Never: a spline and its mean are trained together."""
        return False

    def noise_spline(self) -> NoiseSpline | None:
        """Returns the spline, where no network changes it with the parents."""
        if not self.constant_shape:
            return None
        law = Spline(0, bins=self.bins, bound=self.bound).to(self.shape.bias)
        law.shape = self.shape  # the same parameters, not a copy
        return NoiseSpline(law, list(self.shape.parameters()), self._residual)

    def _residual(self, x: Tensor, parents: Tensor) -> tuple[Tensor, Tensor]:
        _, log_scale = self.base.location_and_log_scale(parents)
        return self.base.abduct(x, parents), log_scale.expand(x.shape)

    def interact(self, first: int, second: int) -> bool:
        return self.base.interact(first, second) or self.shape.interact(first, second)

    def lower_bounds(self) -> dict[str, float]:
        return {f"base.{name}": bound for name, bound in self.base.lower_bounds().items()}

    def _spline(self, parents: Tensor) -> tuple[_Knots, Tensor | float]:
        """Returns S and c."""
        parts = self.shape(parents).split([self.bins, self.bins, self.bins - 1], dim=-1)
        spline = _Knots(*parts, bound=self.bound)
        if not self.constant_shape:
            return spline, 0.0
        nodes, weights = (torch.as_tensor(side).to(parts[0]) for side in NORMAL_RULE)
        return spline, (weights * spline.inv(nodes)).sum()

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log N(u; 0, 1) + log S′(z) − s."""
        location, log_scale = self.base.location_and_log_scale(parents)
        spline, shift = self._spline(parents)
        # Draws that carry a gradient want the slope of the density itself.
        squares = self.constant_shape and not (x.requires_grad or parents.requires_grad)
        mean = location.detach() if squares else location
        u, log_slope = spline.call_and_ladj((x - mean) * torch.exp(-log_scale) + shift)
        log_prob = standard_normal_log_prob(u) + log_slope - log_scale
        if not squares:
            return log_prob
        variance = torch.exp(2.0 * log_scale.detach()).mean()
        pull = -0.5 * (x - location).square() / variance
        return log_prob + (pull - pull.detach())

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns m + exp(s) (S⁻¹(u) − c)."""
        return self.noise_map(parents)(u)

    def noise_map(self, parents: Tensor) -> Callable[[Tensor], Tensor]:
        """Computes m, s and S once."""
        line, (spline, shift) = self.base.noise_map(parents), self._spline(parents)
        return lambda u: line(spline.inv(u) - shift)

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns S((x − m) / exp(s) + c)."""
        spline, shift = self._spline(parents)
        u: Tensor = spline(self.base.abduct(x, parents) + shift)
        return u

    def start_from(self, line: Mechanism) -> None:
        """Takes over the parameters of a Gaussian mechanism, or of a spline's."""
        self.base.start_from(line.base if isinstance(line, Spline) else line)

    def spec(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **self.base.spec(),
            "shape_hidden": None if self.constant_shape else list(self.shape.hidden),
            "bins": self.bins,
            "bound": self.bound,
        }
