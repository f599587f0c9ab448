r"""Student's law, for noise whose tails are so heavy that squares say nothing of a line.

    x = m(x_pa) + s t,   t = F_ν⁻¹(Φ(u)),   with ν degrees of freedom, learned as m and s are.

The likelihood follows the bulk and lets far values be far: at ν = 1 (Cauchy) a least-squares line
is no better than a single row, this one is as good as a median. Below ν = 1 the law has no mean,
below 2 no variance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import torch
from scipy import special
from torch import Generator, Tensor, nn

from misscnf.data import domains
from misscnf.data.domains import Domain
from misscnf.mechanisms.base import Growth, Mechanism, Shape
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Parents, read_parents
from misscnf.mechanisms.gaussian import SMALLEST_LOG_SCALE

__all__ = ["Student"]


class Student(Mechanism, name="student", serves=("heavy-tailed",)):
    """x = m(x_pa) + s t with t of Student's law.

    Arguments:
        parents: The domains of the parents, or their number.
        hidden: Hidden widths of the network of m; none makes it linear.
        activation: Its activation.

    Example:
        >>> import torch
        >>> law = Student(1)
        >>> x, parent = torch.tensor([0.0]), torch.zeros(1, 1)
        >>> round(law.log_prob(x, parent).exp().item(), 4)  # two degrees of freedom
        0.3536
    """

    growths: ClassVar[frozenset[Growth]] = frozenset(["network"])

    def __init__(
        self, parents: Parents, hidden: Sequence[int] = (), activation: str = "silu"
    ) -> None:
        super().__init__()
        self.parents, self.activation = read_parents(parents), activation
        self.mean = Conditioner(self.parents, 1, hidden, activation=activation)
        self.hidden = self.mean.hidden
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.log_freedom = nn.Parameter(torch.full((), math.log(2.0)))

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        return cls(parents, shape.hidden, shape.activation)

    @property
    def domain(self) -> Domain:
        return domains.HeavyTailed()

    @property
    def tail_index(self) -> float:
        """The degrees of freedom."""
        return float(self.log_freedom.detach().exp())

    def lower_bounds(self) -> dict[str, float]:
        return {"log_scale": SMALLEST_LOG_SCALE, "log_freedom": math.log(0.2)}

    def boundary_parameters(self) -> tuple[str, ...]:
        """Returns the degrees of freedom: where noise is normal they grow without an end."""
        return ("log_freedom",)

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the log-density of t, less log s."""
        half, log_scale = 0.5 * self.log_freedom.exp(), self.log_scale
        t = (x - self.mean(parents)[..., 0]) * torch.exp(-log_scale)
        constant = torch.lgamma(half + 0.5) - torch.lgamma(half)
        constant = constant - 0.5 * (2.0 * math.pi * half).log() - log_scale
        return constant - (half + 0.5) * torch.log1p(t * t / (2.0 * half))

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns m + s F⁻¹(Φ(u))."""
        return self.noise_map(parents)(u)

    def noise_map(self, parents: Tensor) -> Callable[[Tensor], Tensor]:
        """Computes m once."""
        mean, scale = self.mean(parents)[..., 0], self.log_scale.exp()
        return lambda u: mean + scale * self._quantile(u)

    def _quantile(self, u: Tensor) -> Tensor:
        """Returns F⁻¹(Φ(u)), each half from its own side, where tails keep their digits."""
        tail = special.ndtr(-u.detach().double().abs().cpu().numpy())
        found = special.stdtrit(self.tail_index, tail)
        return -torch.sign(u) * torch.as_tensor(found).to(u)

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns Φ⁻¹(F((x − m) / s))."""
        t = (x - self.mean(parents)[..., 0]) * torch.exp(-self.log_scale)
        tail = special.stdtr(self.tail_index, -t.detach().double().abs().cpu().numpy())
        return -torch.sign(t.detach()) * torch.as_tensor(special.ndtri(tail)).to(x)
