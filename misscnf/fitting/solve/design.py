r"""Means that are linear in their coefficients: lines and curves.

    m(x) = columns(x) · coefficients,      columns = (1, features, basis functions),

so that whatever maximises a likelihood over lines and curves evaluates the basis functions of a
row once. Basis functions have a prior (`basis`), N(0, 1 / prior precision); the line has none.
"""

from __future__ import annotations

import torch
from torch import Tensor

from misscnf.mechanisms import Conditioner

__all__ = [
    "ROWS_AT_ONCE",
    "columns_of",
    "prior_precision_of",
    "coefficients_of",
    "set_coefficients",
]

ROWS_AT_ONCE = 4096
"""Radial basis functions are many times as many as basis functions: they come and go in pieces
that stay in the cache."""


@torch.no_grad()
def columns_of(mean: Conditioner, parents: Tensor) -> Tensor:
    """Returns what the mean is made of at parents (n, p), (n, c)."""
    return torch.cat([_columns(mean, piece) for piece in parents.split(ROWS_AT_ONCE)])


def _columns(mean: Conditioner, parents: Tensor) -> Tensor:
    columns = [parents.new_ones(len(parents), 1)]
    if mean.features:
        features = mean.encoding(parents)
        columns.append(features)
        if mean.curve is not None:
            columns.append(mean.curve.basis_functions(features))
    return torch.cat(columns, 1)


def prior_precision_of(mean: Conditioner) -> Tensor:
    """Returns the precision of each coefficient in the prior, (c,)."""
    line = mean.bias.detach().new_zeros(1 + mean.features)
    return line if mean.curve is None else torch.cat([line, mean.curve.prior_precision])


def coefficients_of(mean: Conditioner) -> Tensor:
    """Returns a copy of the coefficients, (c,)."""
    return torch.cat([part.detach().flatten() for part in _parts(mean)])


@torch.no_grad()
def set_coefficients(mean: Conditioner, coefficients: Tensor) -> None:
    """Writes the coefficients (c,) into a mean."""
    parts = _parts(mean)
    pieces = coefficients.split([part.numel() for part in parts])
    for part, piece in zip(parts, pieces, strict=True):
        part.copy_(piece.reshape(part.shape))


def _parts(mean: Conditioner) -> list[Tensor]:
    basis_functions = None if mean.curve is None else mean.curve.weight
    return [part for part in (mean.bias, mean.weight, basis_functions) if part is not None]
