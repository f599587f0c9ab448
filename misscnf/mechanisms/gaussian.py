r"""Gaussian mechanisms: x = m(x_pa) + exp(s(x_pa)) u.

The mean is a line, a curve or a network, the scale a constant or a network. With a line and a
constant, the mechanism is linear-Gaussian and everything hidden around it is integrated in closed
form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import torch
from torch import Generator, Tensor

from misscnf.data.domains import Domain
from misscnf.mechanisms.base import Growth, LinearForm, Mechanism, Shape, standard_normal_log_prob
from misscnf.mechanisms.conditioner import ROWS_AT_ONCE, Conditioner
from misscnf.mechanisms.encoding import Parents, read_parents

__all__ = ["Gaussian", "LinearMean", "SMALLEST_LOG_SCALE"]

SMALLEST_LOG_SCALE = math.log(1e-4)
"""A column that its parents determine exactly has no density; its scale ends here, of its own."""


class Gaussian(Mechanism, name="gaussian"):
    """x = m(x_pa) + exp(s(x_pa)) u with u ~ N(0, 1).

    Arguments:
        parents: The domains of the parents, or their number.
        mean_hidden: Hidden widths of the mean's network; none makes it linear.
        scale_hidden: Hidden widths of the scale's network; None makes the scale constant.
        activation: Activation of the networks.
        mean_curve: Centres, products and basis functions of the mean's curve; None for none.

    Example:
        >>> import torch
        >>> law = Gaussian(1)
        >>> x, parent = torch.tensor([0.0]), torch.zeros(1, 1)
        >>> round(law.log_prob(x, parent).exp().item(), 4)  # N(0; 0, 1)
        0.3989
    """

    growths: ClassVar[frozenset[Growth]] = frozenset(
        ["network", "curve", "products", "scale", "spline"]
    )

    def __init__(
        self,
        parents: Parents,
        mean_hidden: Sequence[int] = (),
        scale_hidden: Sequence[int] | None = None,
        activation: str = "silu",
        mean_curve: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.parents, self.activation = read_parents(parents), activation
        self.mean = Conditioner(
            self.parents, 1, mean_hidden, activation=activation, curve=mean_curve
        )
        self.log_scale = Conditioner(self.parents, 1, scale_hidden, activation=activation)
        self.constant_scale = self.log_scale.constant
        self.scale_hidden = None if self.constant_scale else self.log_scale.hidden
        self.mean_hidden, self.mean_curve = self.mean.hidden, self.curve_size

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        return cls(parents, shape.hidden, shape.scale_hidden, shape.activation, shape.curve)

    def location_and_log_scale(self, parents: Tensor) -> tuple[Tensor, Tensor]:
        """Returns m(x_pa) and s(x_pa), each broadcastable to (...)."""
        return self.mean(parents)[..., 0], self.log_scale.bounded(parents)[..., 0]

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns log N(u; 0, 1) − s."""
        location, log_scale = self.location_and_log_scale(parents)
        return standard_normal_log_prob((x - location) * torch.exp(-log_scale)) - log_scale

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns m + exp(s) u."""
        return self.noise_map(parents)(u)

    def noise_map(self, parents: Tensor) -> Callable[[Tensor], Tensor]:
        """Computes m and s once."""
        location, log_scale = self.location_and_log_scale(parents)
        return lambda u: location + torch.exp(log_scale) * u

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns (x − m) / exp(s)."""
        location, log_scale = self.location_and_log_scale(parents)
        return (x - location) * torch.exp(-log_scale)

    def linear_form(self) -> LinearForm | None:
        """Returns the line, where the mean is one in continuous parents and the scale constant.

        A curve that is a line in some of them is one wherever the others are shown.
        """
        encoding = self.mean.encoding
        continuous = [at for at, domain in enumerate(encoding.domains) if not domain.discrete]
        moving = [at for at in continuous if self.mean.affine_in([at])]
        held = tuple(at for at in continuous if at not in moving)
        if not (self.constant_scale and encoding.linear and self.mean.affine_in(moving)):
            return None
        if held and not moving:
            return None
        intercept, scale = self.mean.bias[0], torch.exp(self.log_scale.bias[0])
        weight = self.mean.weight
        if weight is None:
            return LinearForm(intercept, intercept.new_zeros(0), scale)
        if not self.mean.is_line:
            none = weight.new_zeros(len(self.parents))
            parts = partial(self._at_origin, moving), partial(self._slopes, moving)
            return LinearForm(intercept, none, scale, *parts, held)
        if encoding.plain:
            return LinearForm(intercept, weight[0], scale)
        weights, of_discrete = encoding.split(weight[0])
        return LinearForm(
            intercept, weights, scale, lambda parents: encoding(parents) @ of_discrete.to(parents)
        )

    def _at_origin(self, moving: list[int], parents: Tensor) -> Tensor:
        """Returns what is added to the intercept where some parents are zero, (...)."""
        found = self.mean(self._held(moving, parents)) - self.mean.bias
        return found[..., 0].to(parents)

    def _slopes(self, moving: list[int], parents: Tensor) -> Tensor:
        """Returns the slope of the mean in parents that move, zero in others, (..., p)."""
        held = self._held(moving, parents)
        unit = torch.eye(len(self.parents)).to(held)[moving]
        moved = self.mean(held[..., None, :] + unit) - self.mean(held)[..., None, :]
        return (moved * unit).sum(-2).to(parents)

    def _held(self, moving: list[int], parents: Tensor) -> Tensor:
        """Returns parents with some of them at zero."""
        places = torch.tensor(moving, dtype=torch.int64, device=parents.device)
        return parents.to(self.mean.bias).index_fill(-1, places, 0.0)

    def interact(self, first: int, second: int) -> bool:
        return self.mean.interact(first, second)  # whatever the scale does

    def linear_mean(self) -> LinearMean | None:
        """Returns the mean, where it is a line or a curve."""
        return None if self.mean.hidden else LinearMean(self)

    def with_mean_of(self, other: Mechanism) -> Mechanism:
        assert isinstance(other, Gaussian)
        widths = other.mean_hidden, self.scale_hidden
        found = Gaussian(self.parents, *widths, self.activation, other.mean_curve)
        found = found.to(self.mean.bias)
        found.mean.load_state_dict(other.mean.state_dict())
        found.log_scale.load_state_dict(self.log_scale.state_dict())
        return found

    @property
    def normal_noise(self) -> bool:
        return self.constant_scale

    def lower_bounds(self) -> dict[str, float]:
        """Returns the least log-scale, where it is constant."""
        return {"log_scale.bias": SMALLEST_LOG_SCALE} if self.constant_scale else {}

    def set_line(self, intercept: float, weights: Sequence[float], scale: float) -> None:
        """Sets the linear part of the mean, a weight a feature, and the constant of the scale."""
        with torch.no_grad():
            self.mean.bias.fill_(intercept)
            if self.mean.weight is not None:
                line = torch.as_tensor(weights, dtype=torch.float64)
                self.mean.weight.copy_(line.reshape(1, -1))
            self.log_scale.bias.fill_(math.log(scale))


class LinearMean:
    """A mean that is linear in few coefficients, beside a scale: a line or a curve.

        m(x_pa) = columns(x_pa) · coefficients,   columns = (1, features, basis functions)

    Whatever maximises a likelihood over such means evaluates the columns of a row once.

    Arguments:
        mechanism: Whose mean it is.

    Example:
        >>> mean = Gaussian(1).linear_mean()
        >>> mean.columns(torch.tensor([[3.0]])).tolist()  # one, and the parent
        [[1.0, 3.0]]
        >>> mean.coefficients.tolist()  # before any fit
        [0.0, 0.0]
    """

    def __init__(self, mechanism: Gaussian) -> None:
        mean = self._mean = mechanism.mean
        self._log_scale = mechanism.log_scale
        self.constant_scale = mechanism.constant_scale
        """Whether the scale is one number, that may be moved, or what a network says of a row."""
        curve = None if mean.curve is None else mean.curve.weight
        self._parts = [part for part in (mean.bias, mean.weight, curve) if part is not None]
        line = mean.bias.detach().new_zeros(1 + mean.features)
        priors = [line] if mean.curve is None else [line, mean.curve.prior_precision]
        self.prior_precision = torch.cat(priors)
        """The precision of each coefficient in its prior, (c,); zero where it has none."""

    @torch.no_grad()
    def columns(self, parents: Tensor) -> Tensor:
        """Returns what the mean is made of at parents (n, p), (n, c)."""
        return torch.cat([self._columns(piece) for piece in parents.split(ROWS_AT_ONCE)])

    def _columns(self, parents: Tensor) -> Tensor:
        columns = [parents.new_ones(len(parents), 1)]
        if not self._mean.constant:
            columns.append(self._mean.encoding(parents))
        if self._mean.curve is not None:
            columns.append(self._mean.curve.basis_functions(columns[-1]))
        return torch.cat(columns, 1)

    @property
    def coefficients(self) -> Tensor:
        """A copy of the coefficients, (c,)."""
        return torch.cat([part.detach().flatten() for part in self._parts])

    @torch.no_grad()
    def log_scale(self, parents: Tensor) -> Tensor:
        """Returns the log-scale, (1,) where it is constant and (n,) otherwise."""
        log_scale = self._log_scale.bounded(parents)
        return log_scale.clone() if self.constant_scale else log_scale[..., 0]

    @torch.no_grad()
    def write(self, coefficients: Tensor, log_scale: Tensor | None) -> None:
        """Gives the mechanism other coefficients (c,), and another constant log-scale (1,)."""
        pieces = coefficients.split([part.numel() for part in self._parts])
        for part, piece in zip(self._parts, pieces, strict=True):
            part.copy_(piece.reshape(part.shape))
        if self.constant_scale and log_scale is not None:
            self._log_scale.bias.copy_(log_scale.clamp(min=SMALLEST_LOG_SCALE))
