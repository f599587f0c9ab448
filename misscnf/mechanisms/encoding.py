r"""How parents enter a network: as numbers that say what their values are.

| parent | numbers |
|---|---|
| continuous | z, as it is |
| binary | the code, standardised |
| categorical, K levels | K − 1 indicators, of all levels but the first |
| ordinal, K levels | the code, standardised, and K − 2 indicators, of all levels but the ends |
| count | the count, standardised, and an indicator of zero where both are seen |

So a linear predictor of any of them can be every function of a finite parent, and an order helps a
network where there is one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from misscnf.data.domains import CONTINUOUS, Domain

__all__ = ["Encoding", "Parents", "read_parents", "write_parents"]

Parents = int | Sequence[Domain | Mapping[str, Any]]
"""The domains of the parents, or how many there are if all are continuous."""


def read_parents(parents: Parents) -> tuple[Domain, ...]:
    """Returns the domain of each parent."""
    if isinstance(parents, int):
        return (CONTINUOUS,) * parents
    return tuple(p if isinstance(p, Domain) else Domain.from_dict(p) for p in parents)


def write_parents(domains: Sequence[Domain]) -> int | list[dict[str, Any]]:
    """Returns a JSON-friendly form that `read_parents` takes."""
    if not any(domain.discrete for domain in domains):
        return len(domains)
    return [domain.to_dict() for domain in domains]


class Encoding:
    """Turns parents (..., p) into features (..., f).

    Arguments:
        domains: The domain of each parent.
    """

    def __init__(self, domains: Sequence[Domain]) -> None:
        self.domains = tuple(domains)
        self.plain = not any(domain.discrete for domain in self.domains)
        """Whether the features are the parents themselves."""
        self.sizes = [_size(domain) for domain in self.domains]
        self.features = sum(self.sizes)

    def __call__(self, parents: Tensor) -> Tensor:
        """Returns the features, (..., f)."""
        if self.plain:
            return parents
        parts = [
            _features(domain, x)
            for domain, x in zip(self.domains, parents.unbind(-1), strict=True)
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


def _levels(domain: Domain) -> int:
    if domain.levels is None:
        raise ValueError(f"a {domain.kind} domain needs its number of levels")
    return domain.levels


def _size(domain: Domain) -> int:
    if domain.kind == "categorical":
        return _levels(domain) - 1
    if domain.kind == "ordinal":
        return _levels(domain) - 1
    return 1 + (domain.kind == "count" and domain.has_zero)


def _features(domain: Domain, x: Tensor) -> Tensor:
    """Returns the features of one parent (...), shape (..., size)."""
    if domain.kind == "continuous":
        return x[..., None]
    if domain.kind == "categorical":
        return _indicators(x, 1, _levels(domain))
    number = ((x - domain.location) / domain.scale)[..., None]
    if domain.kind == "ordinal" and _levels(domain) > 2:
        return torch.cat([number, _indicators(x, 1, _levels(domain) - 1)], dim=-1)
    if domain.kind == "count" and domain.has_zero:
        return torch.cat([number, (x == 0).to(x)[..., None]], dim=-1)
    return number


def _indicators(x: Tensor, first: int, end: int) -> Tensor:
    levels = torch.arange(first, end, device=x.device, dtype=x.dtype)
    return (x[..., None] == levels).to(x)
