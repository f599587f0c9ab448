r"""A number that is known beforehand and the same in every row: the time of a visit.

    z = (x − location) / scale,

with location and scale those of all visits, so that mechanisms which serve several of them read
time in one unit. It has no density, and frames leave it out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from misscnf.data import domains
from misscnf.data.codecs.base import Column
from misscnf.data.domains import Domain
from misscnf.data.dtypes import Dtype
from misscnf.data.scales import Unit
from misscnf.errors import InputError

__all__ = ["Fixed"]


@dataclass(frozen=True)
class Fixed(Column, kinds=("fixed",)):
    """The codec of a number that is known beforehand."""

    name: str
    value: float
    """The number, in the user's units."""
    unit: Unit = Unit()  # noqa: RUF009 - it is frozen

    fixed = True
    shown_kind = request = "fixed"

    @classmethod
    def learn_numbers(cls, name: str, cells: np.ndarray, dtype: Dtype) -> Column:
        raise InputError(
            f"kinds cannot fix the column {name!r}; only the time of a visit is known beforehand."
        )

    @property
    def domain(self) -> Domain:
        return domains.Fixed(float(self.encode(np.array(self.value))))

    @property
    def expected(self) -> str:
        return f"{self.value:g}"

    def possible(self, raw: np.ndarray) -> np.ndarray:
        return np.isnan(raw) | (raw == self.value)

    def to_dict(self) -> dict[str, Any]:
        unit = asdict(self.unit)
        return {"kind": "fixed", "name": self.name, "unit": unit, "value": self.value}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Self:
        return cls(entry["name"], entry["value"], Unit(**entry["unit"]))
