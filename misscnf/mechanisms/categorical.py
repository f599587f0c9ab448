r"""Categorical mechanisms: Gumbel-max.

Each category has a noise of its own, turned into a standard Gumbel number g_k = −log(−log Φ(u_k)),
and the largest wins:

    x = argmax_k ( φ_k(x_pa) + g_k ),      P(x = k | x_pa) = exp φ_k / Σ_j exp φ_j.

Given x, the noises are drawn from their posterior: the maximum is a Gumbel number at log Σ exp φ,
and every other category's is a Gumbel number below it. Counterfactuals then have the stability of
Gumbel-max (if the odds of the category that won rise against all others, it wins again); other
couplings with the same law exist, and no data can tell them apart.

References:
    Oberst and Sontag, Counterfactual Off-Policy Evaluation with Gumbel-Max SCMs, 2019.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from torch import Generator, Tensor

from misscnf.data import domains
from misscnf.data.domains import Domain
from misscnf.mechanisms.base import Growth, Mechanism, Shape
from misscnf.mechanisms.conditioner import Conditioner
from misscnf.mechanisms.encoding import Parents, read_parents
from misscnf.mechanisms.steps import LevelMechanism, interior_uniform, log_masses_of

__all__ = ["GumbelMax", "Categorical"]


class GumbelMax(LevelMechanism):
    """The category with the largest logit plus Gumbel noise. Abstract: `logits` gives them.

    Arguments:
        levels: The number of categories.

    Example:
        >>> class Vote(GumbelMax):  # three parties, the last twice as likely as each other
        ...     def logits(self, parents):
        ...         return torch.tensor([1.0, 1.0, 2.0]).log().expand(len(parents), 3)
        >>> Vote(levels=3).log_prob(torch.tensor([2.0]), torch.zeros(1, 0)).exp().tolist()
        [0.5]
    """

    @property
    def domain(self) -> Domain:
        return domains.Categorical(self.levels)

    @property
    def noise_size(self) -> int:
        return self.levels

    @abstractmethod
    def logits(self, parents: Tensor) -> Tensor:
        """Returns unnormalised log-probabilities, (..., levels)."""

    def log_prob(self, x: Tensor, parents: Tensor) -> Tensor:
        """Returns the log-probability of a category; −∞ for what is none."""
        log_probs = torch.log_softmax(self.logits(parents), -1)
        return torch.where(self._legal(x), self._at(x, log_probs), -math.inf)

    def generate(self, u: Tensor, parents: Tensor) -> Tensor:
        """Returns the category that wins, (...) from noise (..., levels)."""
        gumbels = -torch.log(-log_masses_of(u)[0])
        return (self.logits(parents) + gumbels).argmax(-1).to(u)

    def abduct(self, x: Tensor, parents: Tensor, generator: Generator | None = None) -> Tensor:
        """Draws the noises given that x won, (..., levels)."""
        log_probs = torch.log_softmax(self.logits(parents), -1)
        shape = np.broadcast_shapes(x.shape, log_probs.shape[:-1])
        log_probs = log_probs.expand(*shape, -1)
        uniform = interior_uniform(log_probs.shape, generator, log_probs)
        won = x.expand(shape)[..., None] == torch.arange(self.levels, device=x.device)
        exponential = -torch.log(uniform)  # e^−g of a standard Gumbel number g
        # The maximum is standard Gumbel, since the probabilities sum to one.
        top = torch.where(won, exponential, 0.0).sum(-1, keepdim=True)
        # e^−g of the winner is e^φ top; the others' are what keeps φ + g below the maximum.
        scaled = torch.exp(log_probs) * top
        return _scores(torch.where(won, scaled, scaled + exponential))

    def draw(self, score: Tensor, parents: Tensor) -> Tensor:
        """Returns the category in whose share of (0, 1) the score's quantile falls."""
        upto = torch.softmax(self.logits(parents), -1).cumsum(-1)[..., :-1]
        return (torch.special.ndtr(score)[..., None] > upto).sum(-1).to(score)


def _scores(exponential: Tensor) -> Tensor:
    """Returns the normal noise u of a Gumbel number g, from e^−g: Φ(u) = exp(−e^−g)."""
    tiny = torch.finfo(exponential.dtype).tiny
    exponential = exponential.clamp(min=tiny)
    lower = torch.special.ndtri(torch.exp(-exponential).clamp(min=tiny))
    upper = -torch.special.ndtri(-torch.expm1(-exponential))
    return torch.where(exponential > math.log(2.0), lower, upper)


class Categorical(GumbelMax, name="categorical", serves=("categorical",)):
    """Logits from a line or a network; that of the first category is zero.

    Arguments:
        parents: The domains of the parents, or their number.
        levels: The number of categories.
        hidden: Hidden widths of the network; none makes the logits linear.
        activation: Its activation.
        curve: Terms and basis functions of interactions beside the line; None for none.

    Example:
        >>> import torch
        >>> law = Categorical(1, levels=3)
        >>> x, parent = torch.tensor([1.0]), torch.zeros(1, 1)
        >>> round(law.log_prob(x, parent).exp().item(), 4)  # one in three
        0.3333
    """

    growths: ClassVar[frozenset[Growth]] = frozenset(["network", "products"])

    def __init__(
        self,
        parents: Parents,
        levels: int,
        hidden: Sequence[int] = (),
        activation: str = "silu",
        curve: Sequence[int] | None = None,
    ) -> None:
        super().__init__(levels)
        self.parents, self.activation = read_parents(parents), activation
        self.others = Conditioner(
            self.parents, levels - 1, hidden, activation=activation, curve=curve
        )
        self.hidden, self.curve = self.others.hidden, self.curve_size

    @classmethod
    def of_shape(cls, parents: tuple[Domain, ...], domain: Domain, shape: Shape) -> Mechanism:
        return cls(parents, domain.states or 2, shape.hidden, shape.activation, shape.curve)

    @torch.no_grad()
    def relabel(self, order: Tensor, parent: int | None = None) -> None:
        if parent is not None:
            return super().relabel(order, parent)
        for part in (self.others.bias, self.others.weight):
            if part is not None:
                whole = torch.cat([torch.zeros_like(part[:1]), part])[order]
                part.copy_(whole[1:] - whole[:1])
        return None

    def logits(self, parents: Tensor) -> Tensor:
        """Returns zero and the logits of the other categories against the first."""
        others = self.others(parents)
        return torch.cat([torch.zeros_like(others[..., :1]), others], dim=-1)
