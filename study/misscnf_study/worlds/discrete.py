r"""Discrete structural equations with their exact law.

They are the truth behind binary, ordinal, categorical and count columns.

The same step functions of noise as the learned mechanisms have (`misscnf.mechanisms`), with their
parameters given as functions of the parents, one argument each in graph order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import final

import torch
from torch import Tensor

from misscnf.mechanisms import GumbelMax, InverseCount, Threshold
from misscnf_study.worlds.equations import KnownLaw, Term, evaluate

__all__ = ["Levels", "Choice", "Tally"]


def _at(term: Term | float, parents: Tensor) -> Tensor:
    return evaluate(term, parents).expand(parents.shape[:-1])


@final
class Levels(KnownLaw, Threshold):
    """P(x ≤ k) = σ(cuts_k − location(parents)).

    Arguments:
        location: A function of the parents, or a number.
        cuts: Where the levels part, increasing; one less than there are levels.
    """

    def __init__(self, location: Term | float, cuts: Sequence[float] = (0.0,)) -> None:
        super().__init__(len(cuts) + 1)
        self.location = location
        self.base = tuple(cuts)

    def cuts(self, parents: Tensor) -> Tensor:
        """Returns cuts − location."""
        return parents.new_tensor(self.base) - _at(self.location, parents)[..., None]


@final
class Choice(KnownLaw, GumbelMax):
    """P(x = k) ∝ exp(terms_k(parents)).

    Arguments:
        terms: The logit of each category, a function of the parents or a number.
    """

    def __init__(self, *terms: Term | float) -> None:
        super().__init__(len(terms))
        self.terms = terms

    def logits(self, parents: Tensor) -> Tensor:
        """Returns the terms side by side."""
        return torch.stack([_at(term, parents) for term in self.terms], dim=-1)


@final
class Tally(KnownLaw, InverseCount):
    """A count of mean exp(log_mean(parents)) and variance μ + dispersion μ².

    Arguments:
        term: The log of the mean, a function of the parents or a number.
        dispersion: How much the variance exceeds the Poisson one; 0 makes it Poisson.
    """

    def __init__(self, term: Term | float, dispersion: float = 0.0) -> None:
        super().__init__()
        self.term = term
        self.dispersion = dispersion

    def log_mean(self, parents: Tensor) -> Tensor:
        """Returns the term."""
        return _at(self.term, parents)

    def log_dispersion(self, parents: Tensor) -> Tensor | None:
        """Returns its logarithm, or None where the law is Poisson."""
        return parents.new_tensor(math.log(self.dispersion)) if self.dispersion else None
