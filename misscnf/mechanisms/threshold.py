r"""Binary and ordinal mechanisms: thresholds on a latent scale.

A logistic noise crosses cut points c_0 < c_1 < … that move with the parents,

    x = #{k : logit Φ(u) > c_k(x_pa)},     P(x ≤ k | x_pa) = σ(c_k(x_pa)),

a step function, monotone in u. With two levels and c_0 = −m(x_pa) this is the logistic regression
P(x = 1) = σ(m); with constant spacings it is the proportional-odds model. Which counterfactuals
follow is an assumption of this form: of all couplings of x under two values of the parents, it is
the monotone one (no one who would recover untreated fails to recover when the odds only rise).

    log P(x = k) = log σ(c_k) + log σ(−c_{k−1}) + log(1 − exp(−(c_k − c_{k−1})))
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import torch
from torch import Generator, Tensor
from torch.nn import functional

from misscnf.data import domains
from misscnf.data.domains import Domain
from misscnf.mechanisms.base import Growth, Mechanism, Shape
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Parents, read_parents
from misscnf.mechanisms.steps import (
    LevelMechanism,
    interior_uniform,
    log_odds_of,
    noise_between,
)

__all__ = ["Threshold", "Ordinal"]


class Threshold(LevelMechanism):
    """x counts the cut points below a logistic noise. Abstract: `cuts` says where they are.

    Arguments:
        levels: The number of levels; two make it binary.

    Example:
        >>> class Steps(Threshold):  # three levels, whose cut points move with one parent
        ...     def cuts(self, parents):
        ...         return torch.tensor([-1.0, 1.0]) - parents
        >>> Steps(levels=3).generate(torch.tensor([-2.0, 0.0, 2.0]), torch.zeros(3, 1)).tolist()
        [0.0, 1.0, 2.0]
    """

    @property
    def domain(self) -> Domain:
        return domains.Binary() if self.levels == 2 else domains.Ordinal(levels=self.levels)

    @abstractmethod
    def cuts(self, parents: Tensor) -> Tensor:
        """Returns the cut points, increasing along the last axis, (..., levels − 1)."""

    def gaps(self, parents: Tensor) -> Tensor:
        """Returns the distances between neighbouring cut points, (..., levels − 2)."""
        return self.cuts(parents).diff(dim=-1)

    def _ends(self, x: Tensor, parents: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the cut points below and above a value, ±∞ at the ends."""
        cuts = self.cuts(parents)
        end = torch.full_like(cuts[..., :1], math.inf)
        padded = torch.cat([-end, cuts, end], dim=-1)
        return self._at(x, padded[..., :-1]), self._at(x, padded[..., 1:])

    def _width(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns how far the cut points around a value are apart, ∞ at the ends."""
        gaps = self.gaps(parents)
        end = gaps.new_full((*gaps.shape[:-1], 1), math.inf)
        return self._at(x, torch.cat([end, gaps, end], dim=-1))

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the log-probability of a level; −∞ for what is none."""
        if self.levels == 2:
            cut = self.cuts(parents)[..., 0]
            log_prob = functional.logsigmoid(torch.where(x == 1, -cut, cut))
            return torch.where((x == 0) | (x == 1), log_prob, -math.inf)
        below, above = self._ends(x, parents)
        log_prob = (
            functional.logsigmoid(above)
            + functional.logsigmoid(-below)
            + torch.log(-torch.expm1(-self._width(x, parents)))
        )
        return torch.where(self._legal(x), log_prob, -math.inf)

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns how many cut points lie below logit Φ(u)."""
        latent, cuts = log_odds_of(u), self.cuts(parents)
        if self.levels == 2:
            return (latent > cuts[..., 0]).to(u)
        return (latent[..., None] > cuts).sum(-1).to(u)

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Draws the noise from its normal law between the two cut points around x."""
        below, above = self._ends(x, parents)
        masses = [functional.logsigmoid(end) for end in (below, above, -below, -above)]
        return noise_between(masses, interior_uniform(below.shape, generator, below))


class Ordinal(Threshold, name="ordinal", serves=("binary", "ordinal")):
    """Cut points from a line or a network: c_0 = −m(x_pa), c_k = c_{k−1} + exp(s_k(x_pa)).

    Arguments:
        parents: The domains of the parents, or their number.
        levels: The number of levels; two make it binary.
        hidden: Hidden widths of the network of m; none makes it linear.
        spacing_hidden: Hidden widths of the network of the spacings; None makes them constant.
        activation: Activation of the networks.
        curve: Terms and basis functions of interactions beside the line of m; None for none.

    Example:
        >>> import torch
        >>> law = Ordinal(1, levels=2)
        >>> x, parent = torch.tensor([1.0]), torch.zeros(1, 1)
        >>> round(law.log_prob(x, parent).exp().item(), 4)  # even odds
        0.5
    """

    growths: ClassVar[frozenset[Growth]] = frozenset(["network", "products"])

    def __init__(
        self,
        parents: Parents,
        levels: int = 2,
        hidden: Sequence[int] = (),
        spacing_hidden: Sequence[int] | None = None,
        activation: str = "silu",
        curve: Sequence[int] | None = None,
    ) -> None:
        super().__init__(levels)
        self.parents, self.activation = read_parents(parents), activation
        self.location = Conditioner(self.parents, 1, hidden, activation=activation, curve=curve)
        widths = None if levels == 2 else spacing_hidden
        self.spacing = Conditioner(self.parents, levels - 2, widths, activation=activation)
        self.hidden, self.curve = self.location.hidden, self.curve_size
        self.spacing_hidden = None if self.spacing.constant else self.spacing.hidden

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        levels = domain.states or 2
        widths = shape.hidden, shape.scale_hidden
        return cls(parents, levels, *widths, shape.activation, shape.curve)

    def cuts(self, parents: Tensor) -> Tensor:
        """Returns −m and the sums of the spacings above it."""
        first = -self.location(parents)
        if self.levels == 2:
            return first
        above = first + self.gaps(parents).cumsum(-1)
        return torch.cat([first.expand(*above.shape[:-1], 1), above], dim=-1)

    def linear_predictor(self, parents: Tensor) -> Tensor | None:
        """Returns m, the log-odds of a level above the first."""
        return self.location(parents)[..., 0] if self.location.is_line else None

    def stepped(self, steps: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the parameters after a small step, taken at the middle cut point.

        The first cut point bounds the lowest level. If that is rare, it steps far and the log of
        the next spacing makes up for it, to first order only: all cut points above would move.
        """
        found = super().stepped(steps)
        if self.levels == 2 or not self.spacing.constant:
            return found
        gaps, moved = self.spacing.bias.detach().exp(), found["spacing.bias"].exp()
        cuts = torch.cat([gaps.new_zeros(1), gaps.cumsum(0)]) - self.location.bias.detach()
        middle = int(cuts.abs().argmin())
        # c_middle = −b + Σ gaps moves by its own differential; the first lies below it by spacings
        along = (gaps * steps["spacing.bias"])[:middle].sum()
        beyond = (moved - gaps)[:middle].sum() - along
        return found | {"location.bias": found["location.bias"] + beyond}

    def gaps(self, parents: Tensor) -> Tensor:
        """Returns the spacings themselves: differences of cut points lose digits of small ones."""
        return torch.exp(self.spacing.bounded(parents))
