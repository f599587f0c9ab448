r"""Nodes that nobody measures: they have no cells, and their numbers are the model's own.

A hidden number is what the model says it is, with location 0 and noise of variance one; a hidden
class is one of the codes 0, 1, …, shown as the classes 1, 2, and so on. No kind of column can be
asked to be either: a node is hidden because it is declared as `latent`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from misscnf.data import domains
from misscnf.data.codecs.base import Column
from misscnf.data.codecs.levels import Levels
from misscnf.data.domains import Domain
from misscnf.data.dtypes import Dtype
from misscnf.errors import InputError

__all__ = ["LatentClass", "LatentNumber", "latent_column"]


def latent_column(name: str, classes: int | None) -> Column:
    """Returns the codec of a hidden cause: of so many classes, or a number."""
    if classes is None:
        return LatentNumber(name)
    levels = tuple(range(1, classes + 1))
    return LatentClass(name, "class", levels, dtype=np.dtype("int64"))


def _refuse(name: str) -> InputError:
    return InputError(
        f"kinds cannot make a hidden cause of the column {name!r}; a node without a column is "
        f"declared by latent=[…]."
    )


@dataclass(frozen=True)
class LatentNumber(Column, kinds=("latent",)):
    """The codec of a hidden number, which leaves it as it is."""

    name: str

    latent = True
    domain = domains.Latent()
    shown_kind = request = "latent"
    expected = "a number in its own unit, of which its noise has a standard deviation of one"

    @classmethod
    def learn_numbers(cls, name: str, cells: np.ndarray, dtype: Dtype) -> Column:
        raise _refuse(name)

    def possible(self, raw: np.ndarray) -> np.ndarray:
        return np.ones(raw.shape, dtype=bool)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "latent", "name": self.name}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Self:
        return cls(entry["name"])


@dataclass(frozen=True)
class LatentClass(Levels, kinds=("class",)):
    """The codec of a hidden class."""

    latent = True

    @property
    def request(self) -> Any:  # noqa: ANN401 - as everywhere
        return "class"

    @classmethod
    def learn_numbers(cls, name: str, cells: np.ndarray, dtype: Dtype) -> Column:
        raise _refuse(name)

    @property
    def domain(self) -> Domain:
        return domains.Categorical(len(self.levels))
