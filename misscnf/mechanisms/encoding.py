"""How parents enter a line, a curve or a network: the numbers of their domains, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from misscnf.data.domains import Continuous, Domain

__all__ = ["Encoding", "Parents", "read_parents", "write_parents"]

Parents = int | Sequence[Domain | Mapping[str, Any]]
"""The domains of the parents, or how many there are if all are continuous."""


def read_parents(parents: Parents) -> tuple[Domain, ...]:
    """Returns the domain of each parent.

    Arguments:
        parents: Domains, their dictionaries, or a number of continuous ones.

    Example:
        >>> read_parents(2)
        (Continuous(), Continuous())
    """
    if isinstance(parents, int):
        return (Continuous(),) * parents
    return tuple(p if isinstance(p, Domain) else Domain.from_dict(p) for p in parents)


def write_parents(domains: Sequence[Domain]) -> int | list[dict[str, Any]]:
    """Returns a JSON-friendly form that `read_parents` takes.

    Arguments:
        domains: Those of the parents.

    Example:
        >>> write_parents(read_parents(2))
        2
    """
    if all(domain == Continuous() for domain in domains):
        return len(domains)
    return [domain.to_dict() for domain in domains]


class Encoding:
    """Turns parents (..., p) of these domains into features (..., f).

    Arguments:
        domains: Those of the parents.

    Example:
        >>> from misscnf.data.domains import Categorical
        >>> encoding = Encoding([Continuous(), Categorical(3)])
        >>> encoding(torch.tensor([[0.7, 2.0]])).tolist()  # a level is an indicator, but the first
        [[0.7, 0.0, 1.0]]
    """

    def __init__(self, domains: Sequence[Domain]) -> None:
        self.domains = tuple(domains)
        self.plain = all(domain.plain for domain in self.domains)
        """Whether the features are the parents themselves."""
        self.linear = all(domain.plain or domain.discrete for domain in self.domains)
        """Whether continuous parents are features themselves."""
        self.sizes = [domain.features for domain in self.domains]
        self.features = sum(self.sizes)
        ends = list(accumulate(self.sizes))
        self.places = [range(end - size, end) for size, end in zip(self.sizes, ends, strict=True)]
        """The features of each parent."""

    def __call__(self, parents: Tensor) -> Tensor:
        """Returns the features, (..., f)."""
        if self.plain:
            return parents
        parts = [
            domain.encode(x) for domain, x in zip(self.domains, parents.unbind(-1), strict=True)
        ]
        return torch.cat(parts, dim=-1)

    def split(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Splits the weights of features (f,) by what they multiply.

        Returns:
            The weight of each continuous parent, zero for others (p,), and the weights of the
            features of discrete parents, zero for others (f,).
        """
        of_parents, of_discrete = [], []
        for domain, part in zip(self.domains, weights.split(self.sizes), strict=True):
            of_parents.append(torch.zeros_like(part[0]) if domain.discrete else part[0])
            of_discrete.append(part if domain.discrete else torch.zeros_like(part))
        return torch.stack(of_parents), torch.cat(of_discrete)
