r"""Semicontinuous values: point masses, and a continuous law for the rest (Cragg 1971).

    P(x = a_k) = π_k(x_pa),  (log π_k − log π_0) = b_k + W_k x_pa,  with π_0 the share of the rest,
    g(x) = m(x_pa) + s t  for the rest,  t ~ N(0, 1),  cut off at the ends of its support.

Zeros and a log-normal rest, a share with mass at 0 and at 1, an outcome that was clipped: the
parents move how often each point mass is met and how much the rest is, each by a line of its own.
The scale g is the plain one, a logarithm or a logit (`domains.Semicontinuous`). On the plain scale
an end at a point mass cuts the normal law off, so that a clipped line is nearly one of these laws.

The density is with respect to the length and the points a_k together. The map from the noise is
the quantile of the whole law, x = F⁻¹(Φ(u)), monotone, flat at each point mass:

    F(x) = Σ_{a_k ≤ x} π_k + π_0 F_rest(x).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Generator, Tensor
from torch.nn import functional
from torch.special import ndtr, ndtri

from misscnf.data import domains
from misscnf.data.domains import Domain
from misscnf.mechanisms.base import Growth, Mechanism, Mixture, Shape, standard_normal_log_prob
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Parents, read_parents
from misscnf.mechanisms.gaussian import SMALLEST_LOG_SCALE
from misscnf.mechanisms.steps import interior_uniform

__all__ = ["Semicontinuous"]


class Semicontinuous(Mechanism, name="semicontinuous", serves=("semicontinuous",)):
    """Point masses by logits, the rest by a line with normal noise, on its scale.

    Arguments:
        parents: The domains of the parents, or their number.
        domain: Where the point masses are, and what the rest is.
        hidden: Hidden widths of the networks of the logits and of m; none makes them linear.
        activation: Activation of the networks.

    Example:
        >>> domain = domains.Semicontinuous(atoms=(0.0,), floor=0.0)
        >>> law = Semicontinuous(1, domain)  # before any fit, as many zeros as other numbers
        >>> law.log_prob(torch.tensor([0.0]), torch.zeros(1, 1)).exp().tolist()
        [0.5]
    """

    growths: ClassVar[frozenset[Growth]] = frozenset(["network"])
    widest: ClassVar[float] = 8.0
    """A rest that fills its support evenly would want a normal law without end before it is cut
    off; at so many standard deviations of the rest it is even within some percent."""

    def __init__(
        self,
        parents: Parents,
        domain: domains.Semicontinuous | Mapping[str, Any],
        hidden: Sequence[int] = (),
        activation: str = "silu",
    ) -> None:
        super().__init__()
        read = Domain.from_dict(domain) if isinstance(domain, Mapping) else domain
        assert isinstance(read, domains.Semicontinuous)
        self._domain, self.parents, self.activation = read, read_parents(parents), activation
        atoms = len(read.atoms)
        self.logits = Conditioner(self.parents, atoms, hidden, activation=activation)
        self.mean = Conditioner(self.parents, 1, hidden, activation=activation)
        self.log_scale = Conditioner(self.parents, 1, None)
        self.hidden = self.mean.hidden
        self._cut = read.rest.affine and any(map(math.isfinite, read.ends))

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        assert isinstance(domain, domains.Semicontinuous)
        return cls(parents, domain, shape.hidden, shape.activation)

    @property
    def domain(self) -> domains.Semicontinuous:
        return self._domain

    @property
    def invertible(self) -> bool:
        """Never: many noises make a point mass."""
        return False

    def lower_bounds(self) -> dict[str, float]:
        return {"log_scale.bias": SMALLEST_LOG_SCALE}

    def boundary_parameters(self) -> tuple[str, ...]:
        """Returns the scale where the rest is cut off: an even rest takes it to its end."""
        return ("log_scale.bias",) if self._cut else ()

    def _log_mass(self, parents: Tensor) -> Tensor:
        """Returns the log-probabilities of the rest and of the point masses, (..., A + 1)."""
        logits = self.logits(parents)
        return torch.log_softmax(torch.cat([torch.zeros_like(logits[..., :1]), logits], -1), -1)

    def _rest(self, parents: Tensor) -> _Rest:
        log_scale = self.log_scale(parents)[..., 0]
        mean = self.mean(parents)[..., 0]
        if not self._cut:
            return _Rest(mean, log_scale, None, None)
        most = math.log(self.widest)
        log_scale = most - functional.softplus(most - log_scale)
        ends = [
            (self._domain.rest.encode(mean.new_tensor(end)) - mean) * torch.exp(-log_scale)
            if math.isfinite(end)
            else None
            for end in self._domain.ends
        ]
        return _Rest(mean, log_scale, *ends)

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the log-probability of a point mass, the log-density of others; else −∞."""
        unit, log_mass, rest = self._domain.rest, self._log_mass(parents), self._rest(parents)
        low, high = self._domain.ends
        at = self._domain.at_atom(x)
        inside = (x > low) & (x < high) & ~at.any(-1)
        safe = torch.where(inside, x, unit.decode(torch.zeros_like(x)).clamp(low, high))
        t = (unit.encode(safe) - rest.mean) * torch.exp(-rest.log_scale)
        density = standard_normal_log_prob(t) - rest.log_scale - rest.log_kept()
        density = log_mass[..., 0] + density + unit.log_slope(safe)
        of_atom = torch.where(at, log_mass[..., 1:], 0.0).sum(-1)
        none = torch.where(at.any(-1), of_atom, -torch.inf)
        return torch.where(inside, density, none)

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns the quantile of the law at Φ(u)."""
        return self.noise_map(parents)(u)

    def noise_map(self, parents: Tensor) -> Callable[[Tensor], Tensor]:
        """Computes the masses and the rest once."""
        law = self._law(parents)
        return lambda u: law.quantile(u.double()).to(u)

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Returns the normal score of F(x), at a point mass of a draw between its ends."""
        return self._law(parents).score(x.double(), self._domain.at_atom(x), generator).to(x)

    def mixture(self, parents: Tensor) -> Mixture:
        rest, domain = self._rest(parents), self._domain
        atoms = parents.new_tensor(domain.atoms)
        return Mixture(self._log_mass(parents), atoms, lambda t: rest.value(t, domain))

    def _law(self, parents: Tensor) -> _Law:
        rest = self._rest(parents).double()
        return _Law(self._log_mass(parents).double().exp(), rest, self._domain)


class _Rest(NamedTuple):
    """The law of the rest on its scale: a normal one, cut off at its ends."""

    mean: Tensor
    log_scale: Tensor
    low: Tensor | None
    """where it is cut off below, in standard deviations from its mean; None where it is not"""
    high: Tensor | None
    """and above"""

    def double(self) -> _Rest:
        return _Rest(*(None if part is None else part.double() for part in self))  # type: ignore[arg-type]

    def log_kept(self) -> Tensor | float:
        """Returns the log of the normal mass between the ends."""
        if self.low is None or self.high is None:
            if self.low is None:
                return 0.0 if self.high is None else _log_ndtr(self.high)
            return _log_ndtr(-self.low)
        mirrored = self.low + self.high > 0.0
        low = torch.where(mirrored, -self.high, self.low)
        high = torch.where(mirrored, -self.low, self.high)
        return _log_ndtr(high) + torch.log(-torch.expm1(_log_ndtr(low) - _log_ndtr(high)))

    def ends(self) -> tuple[Tensor, Tensor]:
        """Returns where it is cut off, ±∞ where it is not."""
        end = torch.full_like(self.mean, math.inf)
        return -end if self.low is None else self.low, end if self.high is None else self.high

    def value(self, v: Tensor, domain: domains.Semicontinuous) -> Tensor:
        """Returns the value at the normal score v of its share in the rest, (...)."""
        if self.low is None and self.high is None:
            return domain.rest.decode(self.mean + torch.exp(self.log_scale) * v)
        return self.at(ndtr(v), ndtr(-v), domain)

    def at(self, below: Tensor, above: Tensor, domain: domains.Semicontinuous) -> Tensor:
        """Returns the value with these shares of the rest on its two sides, (...)."""
        low, high = self.ends()
        kept, tiny = _between(low, high), torch.finfo(below.dtype).tiny
        left = (ndtr(low) + below * kept).clamp(min=tiny)
        right = (ndtr(-high) + above * kept).clamp(min=tiny)
        t = torch.where(left < right, ndtri(left), -ndtri(right))
        x = domain.rest.decode(self.mean + torch.exp(self.log_scale) * t)
        ends = x.new_tensor(domain.ends)
        inner = torch.nextafter(ends, ends.flip(0))
        return x.clamp(inner[0], inner[1])

    def shares(self, x: Tensor, domain: domains.Semicontinuous) -> tuple[Tensor, Tensor]:
        """Returns the shares of the rest below and above values (...)."""
        low, high = self.ends()
        t = (domain.rest.encode(x) - self.mean) * torch.exp(-self.log_scale)
        t = torch.minimum(torch.maximum(t, low), high)
        kept = _between(low, high).clamp(min=torch.finfo(t.dtype).tiny)
        return _between(low, t) / kept, _between(t, high) / kept


class _Law(NamedTuple):
    """The whole law at some parents, as probabilities in double precision."""

    mass: Tensor
    """(..., A + 1) of the rest and of the point masses"""
    rest: _Rest
    domain: domains.Semicontinuous

    def sides(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the probabilities of less and of more than values (...)."""
        atoms, (below, above) = x.new_tensor(self.domain.atoms), self.rest.shares(x, self.domain)
        less = torch.where(atoms < x[..., None], self.mass[..., 1:], 0.0).sum(-1)
        more = torch.where(atoms > x[..., None], self.mass[..., 1:], 0.0).sum(-1)
        return less + self.mass[..., 0] * below, more + self.mass[..., 0] * above

    def score(self, x: Tensor, at: Tensor, generator: Generator | None) -> Tensor:
        """Returns a normal score of values (...), drawn among those that make a point mass."""
        less, more = self.sides(x)
        own = torch.where(at, self.mass[..., 1:], 0.0).sum(-1)
        share = interior_uniform(less.shape, generator, less)
        tiny = torch.finfo(less.dtype).tiny
        less, more = (less + share * own).clamp(min=tiny), (more + (1.0 - share) * own).clamp(tiny)
        return torch.where(less < more, ndtri(less), -ndtri(more))

    def quantile(self, u: Tensor) -> Tensor:
        """Returns the values at normal scores (...)."""
        below, above, left = ndtr(u), ndtr(-u), u < 0.0
        drawn, passed, to_come = (torch.zeros_like(below) for _ in range(3))
        is_atom = torch.zeros_like(below, dtype=torch.bool)
        for k, atom in enumerate(self.domain.atoms):
            own = self.mass[..., 1 + k]
            less, more = self.sides(torch.full_like(own, atom))
            begun = torch.where(left, below >= less, above <= more + own)
            over = torch.where(left, below > less + own, above < more)
            drawn, is_atom = torch.where(begun & ~over, atom, drawn), is_atom | (begun & ~over)
            passed, to_come = passed + over * own, to_come + ~begun * own
        tiny = torch.finfo(below.dtype).tiny
        share = self.mass[..., 0].clamp(min=tiny)
        shares = [
            ((side - other) / share).clamp(tiny, 1.0)
            for side, other in ((below, passed), (above, to_come))
        ]
        return torch.where(is_atom, drawn, self.rest.at(shares[0], shares[1], self.domain))


def _between(low: Tensor, high: Tensor) -> Tensor:
    """Returns Φ(high) − Φ(low), from the side where numbers keep their digits."""
    return torch.where(low + high > 0.0, ndtr(-low) - ndtr(-high), ndtr(high) - ndtr(low))


def _log_ndtr(x: Tensor) -> Tensor:
    """Returns log Φ(x), by functions that many rows' gradients can be taken of at once."""
    far = x < -1.0
    a = torch.where(far, -x, 1.0) / math.sqrt(2.0)
    near = torch.log1p(-0.5 * torch.erfc(torch.where(far, 0.0, x) / math.sqrt(2.0)))
    return torch.where(far, torch.log(0.5 * torch.special.erfcx(a)) - a * a, near)
