r"""Counts: the inverse distribution function of a negative binomial law.

    x = F⁻¹(Φ(u); μ, α),    E x = μ = exp(m(x_pa)),    Var x = μ + α μ²,

monotone in u; α → 0 is the Poisson law. With r = 1/α,

    log p(x) = log Γ(x + r) − log Γ(r) − log x! + r log(r / (r + μ)) + x log(μ / (r + μ)).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy import special
from torch import Generator, Tensor, nn
from torch.nn import functional

from misscnf.data import domains
from misscnf.data.domains import Domain
from misscnf.mechanisms.base import Growth, Mechanism, Shape
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Parents, read_parents
from misscnf.mechanisms.steps import interior_uniform, noise_between

__all__ = ["InverseCount", "Count"]


class InverseCount(Mechanism):
    """The quantile of a count. Abstract: `log_mean` and `log_dispersion` give its law.

    Example:
        >>> class Calls(InverseCount):  # a Poisson law of mean 2
        ...     def log_mean(self, parents):
        ...         return torch.full((len(parents),), 2.0).log()
        ...
        ...     def log_dispersion(self, parents):
        ...         return None
        >>> none = Calls().log_prob(torch.tensor([0.0]), torch.zeros(1, 0))
        >>> round(none.item(), 4)  # the log-probability of no call
        -2.0
    """

    @property
    def domain(self) -> Domain:
        return domains.Count()

    @abstractmethod
    def log_mean(self, parents: Tensor) -> Tensor:
        """Returns log μ, (...)."""

    @abstractmethod
    def log_dispersion(self, parents: Tensor) -> Tensor | None:
        """Returns log α, (...); None makes the law Poisson."""

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the log-probability of a count; −∞ for what is none."""
        log_mean, log_dispersion = self.log_mean(parents), self.log_dispersion(parents)
        legal = (x >= 0) & (x == x.round()) & x.isfinite()
        # In double precision: log Γ of large numbers cancels.
        k, log_mean = torch.where(legal, x, 0.0).double(), log_mean.double()
        if log_dispersion is None:
            log_prob = k * log_mean - torch.exp(log_mean) - torch.lgamma(k + 1.0)
        else:
            log_r = -log_dispersion.double()
            r = torch.exp(log_r)
            ways = torch.lgamma(k + r) - torch.lgamma(r) - torch.lgamma(k + 1.0)
            failures = functional.softplus(log_mean - log_r)
            successes = functional.softplus(log_r - log_mean)
            log_prob = ways - r * failures - k * successes
        return torch.where(legal, log_prob, -math.inf).to(x)

    @torch.no_grad()
    def _law(self, parents: Tensor) -> _Law:
        """Returns the law at some parents, as numbers."""
        mean, log_dispersion = self.log_mean(parents).double().exp(), self.log_dispersion(parents)
        r = None if log_dispersion is None else (-log_dispersion.double()).exp().cpu().numpy()
        return _Law(mean.cpu().numpy(), r)

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns the smallest count whose distribution function reaches Φ(u)."""
        score = u.detach().double()
        # Each half from its own side, where tails keep their digits.
        tail = torch.special.log_ndtr(-score.abs()).exp().cpu().numpy()
        count = self._law(parents).quantile(tail, score.cpu().numpy() > 0.0)
        return torch.from_numpy(count).to(u)

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Draws the noise from its normal law among those that make x."""
        law, k = self._law(parents), x.detach().double().cpu().numpy()
        (below, above_lower), (upto, above_upper) = law.tails(k - 1.0), law.tails(k)
        with np.errstate(divide="ignore"):
            logs = [np.array(np.log(x)) for x in (below, upto, above_lower, above_upper)]
        ends = [torch.from_numpy(log).to(x.device, torch.float64) for log in logs]
        share = interior_uniform(ends[0].shape, generator, ends[0])
        return noise_between(ends, share).to(x)

    def support(self, parents: Tensor, tail: float) -> Tensor:
        """Returns how many counts hold all but the tail of the mass."""
        law = self._law(parents)
        last = torch.from_numpy(law.quantile(np.full_like(law.mean, tail), law.mean >= 0.0))
        count = last.clamp(max=torch.iinfo(torch.int32).max - 1.0).long() + 1
        return count.to(parents.device).expand(parents.shape[:-1])


@dataclass(frozen=True)
class _Law:
    """Negative binomial laws, or Poisson ones, by their two tails: each keeps its own digits."""

    mean: np.ndarray
    r: np.ndarray | None
    """1/α; None makes the laws Poisson"""
    most_walked: ClassVar[float] = 64.0
    """Means up to which adding probabilities up is quicker than a search."""

    def tails(self, k: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns P(x ≤ k) and P(x > k), (...) each."""
        above = np.maximum(k, 0.0) + 1.0
        if self.r is None:
            upto, beyond = special.gammaincc(above, self.mean), special.gammainc(above, self.mean)
        else:
            total = self.r + self.mean
            upto = special.betainc(self.r, above, self.r / total)
            beyond = special.betainc(above, self.r, self.mean / total)
        return np.where(k < 0, 0.0, upto), np.where(k < 0, 1.0, beyond)

    def quantile(self, mass: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Returns the smallest k with P(x ≤ k) ≥ mass or, where `upper`, P(x > k) ≤ mass."""
        mass = np.maximum(mass, np.finfo(np.float64).tiny)
        found = self._walk(mass, upper)
        rest = np.isnan(found)
        if rest.any():
            law = self._of_some(rest)
            found[rest] = law._invert(
                *(np.broadcast_to(part, rest.shape)[rest] for part in (mass, upper))
            )
        return found

    def _of_some(self, keep: np.ndarray) -> _Law:
        mean = np.broadcast_to(self.mean, keep.shape)[keep]
        return _Law(mean, None if self.r is None else np.broadcast_to(self.r, keep.shape)[keep])

    def _walk(self, mass: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Adds probabilities up from zero on, all laws at once: most counts are small.

        nan where the count is larger, or where rounding might decide.
        """
        parts = np.broadcast_arrays(self.mean, 0.0 if self.r is None else self.r, mass, upper)
        found = np.full(parts[0].shape, np.nan)
        mean, r, mass, upper = (part.ravel() for part in parts)
        at = np.flatnonzero(mean <= self.most_walked)
        mean, r, mass, upper = mean[at], r[at], mass[at], upper[at]
        poisson = self.r is None
        term = np.exp(-mean if poisson else -r * np.log1p(mean / r))  # of zero
        step = mean if poisson else mean / (r + mean)
        upto, sure = np.zeros_like(term), np.ones(len(at), dtype=bool)
        for k in range(2 * int(self.most_walked)):
            upto = upto + term
            over = np.where(upper, mass - (1.0 - upto), upto - mass)
            sure &= np.abs(over) > 1e-10 * mass + np.where(upper, 1e-13, 0.0)
            there = over >= 0.0
            found.flat[at[there & sure]] = k
            left = ~there & sure
            if not left.any():
                break
            at, mean, r, mass, upper, step, upto, sure, term = (
                part[left] for part in (at, mean, r, mass, upper, step, upto, sure, term)
            )
            term = term * step * ((1.0 if poisson else k + r) / (k + 1.0))
        return found

    def _invert(self, mass: np.ndarray, upper: np.ndarray) -> np.ndarray:
        """Returns the same by scipy's quantile, with the digits of either tail."""
        from scipy import stats  # here, since it takes a second to import and is rarely asked

        level = np.where(upper, 1.0 - mass, mass)
        if self.r is None:
            guess = stats.poisson.ppf(level, self.mean)
        else:
            guess = stats.nbinom.ppf(level, self.r, self.r / (self.r + self.mean))
        guess = np.array(np.where(np.isfinite(guess), np.maximum(guess, 0.0), 0.0))
        wrong = ~self._reaches(guess, mass, upper) | self._reaches(guess - 1.0, mass, upper)
        if wrong.any():  # far in a tail, or where rounding decides
            guess[wrong] = self._of_some(wrong)._bisect(mass[wrong], upper[wrong])
        return guess

    def _reaches(self, k: np.ndarray, mass: np.ndarray, upper: np.ndarray) -> np.ndarray:
        upto, beyond = self.tails(k)
        return np.where(upper, beyond <= mass, upto >= mass)

    def _bisect(self, mass: np.ndarray, upper: np.ndarray) -> np.ndarray:
        low, high = np.full_like(self.mean, -1.0), np.ones_like(self.mean)
        for _ in range(48):  # beyond 2^48 counts are not exact
            short = ~self._reaches(high, mass, upper)
            if not short.any():
                break
            low, high = np.where(short, high, low), np.where(short, 2.0 * high, high)
        while (high - low > 1.0).any():
            middle = np.floor(0.5 * (low + high))
            there = self._reaches(middle, mass, upper)
            low, high = np.where(there, low, middle), np.where(there, middle, high)
        return high


class Count(InverseCount, name="count", serves=("count",)):
    """A log-mean from a line or a network, and a constant dispersion.

    Arguments:
        parents: The domains of the parents, or their number.
        hidden: Hidden widths of the network of the log-mean; none makes it linear.
        dispersed: Whether the variance may exceed the mean; otherwise the law is Poisson.
        activation: Activation of the network.
        curve: Terms and basis functions of interactions beside the line; None for none.

    Example:
        >>> import torch
        >>> law = Count(1, dispersed=False)
        >>> x, parent = torch.tensor([0.0]), torch.zeros(1, 1)
        >>> round(law.log_prob(x, parent).exp().item(), 4)  # Poisson: exp(−1)
        0.3679
    """

    growths: ClassVar[frozenset[Growth]] = frozenset(["network", "products"])
    least_dispersion: ClassVar[float] = 1e-6
    """Below, a negative binomial law is a Poisson law to six digits, and log Γ loses digits."""
    log_mean_ends: ClassVar[tuple[float, float]] = (10.0, 14.0)
    """Where a network's log-mean begins to flatten, and its end: far out, no count is infinite."""
    line_end: ClassVar[float] = 21.0
    """Where a line's log-mean ends, at 1.3e9: beyond, neighbouring counts look alike."""

    def __init__(
        self,
        parents: Parents,
        hidden: Sequence[int] = (),
        *,
        dispersed: bool = True,
        activation: str = "silu",
        curve: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        self.parents, self.activation = read_parents(parents), activation
        self.location = Conditioner(self.parents, 1, hidden, activation=activation, curve=curve)
        self.hidden, self.curve, self.dispersed = self.location.hidden, self.curve_size, dispersed
        self.dispersion = nn.Parameter(torch.zeros(())) if dispersed else None
        """log of the dispersion above its least value"""

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        return cls(parents, shape.hidden, activation=shape.activation, curve=shape.curve)

    def log_mean(self, parents: Tensor) -> Tensor:
        log_mean = self.location(parents)[..., 0]
        if not self.location.hidden:
            return log_mean.clamp(max=self.line_end)
        flat, end = self.log_mean_ends
        over, room = (log_mean - flat).clamp(min=0.0), end - flat
        return log_mean.clamp(max=flat) + room * torch.tanh(over / room)

    def linear_predictor(self, parents: Tensor) -> Tensor | None:
        """Returns the log of the mean."""
        return self.location(parents)[..., 0] if self.location.is_line else None

    def log_dispersion(self, parents: Tensor) -> Tensor | None:
        """Returns the constant, never quite zero."""
        if self.dispersion is None:
            return None
        least = self.dispersion.new_tensor(math.log(self.least_dispersion))
        return torch.logaddexp(self.dispersion, least)

    def start(self, domain: Domain) -> None:
        assert isinstance(domain, domains.Count)
        with torch.no_grad():
            self.location.bias.fill_(math.log(max(domain.location, 0.1)))

    def boundary_parameters(self) -> tuple[str, ...]:
        """Returns the dispersion: where rows show none, it goes to zero without an end."""
        return ("dispersion",) if self.dispersion is not None else ()
