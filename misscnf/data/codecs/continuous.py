r"""A continuous column: standardised, on a plain, logarithmic or logit scale.

    z = (g(x) − location) / scale,    log p(x) = log p(z) + log g′(x) − log scale,

location and scale being the mean and the deviation of g over the observed cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_integer_dtype

from misscnf.data import dtypes
from misscnf.data.codecs.base import Column
from misscnf.data.domains import CONTINUOUS
from misscnf.data.dtypes import FLOAT, Dtype
from misscnf.data.scales import Unit
from misscnf.errors import InputError

__all__ = ["Continuous", "refuse_constant"]


@dataclass(frozen=True)
class Continuous(Column, kinds=("continuous",)):
    """The codec of a continuous column."""

    name: str
    unit: Unit
    dtype: Dtype = FLOAT

    domain = CONTINUOUS

    @classmethod
    def learn(
        cls, name: str, cells: np.ndarray, link: Unit | None = None, dtype: Dtype = FLOAT
    ) -> Continuous:
        """Standardises from the observed cells of a column, a vector of finite numbers.

        `link` is a unit with the link and the ends, if there is one. A dtype that cannot hold
        drawn numbers gives way to float64.
        """
        import torch

        refuse_constant(name, cells)
        link = link or Unit()
        location, scale = _moments(link.apply_link(torch.tensor(cells)).numpy())
        if not (math.isfinite(location) and 0 < scale < math.inf):
            raise InputError(
                f"column {name!r} has location {location} and scale {scale}; both must be finite "
                f"and the scale positive (values too large to average in float64 need larger "
                f"units)."
            )
        unit = replace(link, location=location, scale=scale)
        return cls(name, unit, dtype if dtypes.can_hold_numbers(dtype) else FLOAT)

    @property
    def shown_kind(self) -> str:
        if self.unit.link != "logit":
            return "continuous" if self.unit.affine else "positive"
        return "proportion" if self.unit.ends == (0.0, 1.0) else "bounded"

    @property
    def request(self) -> str | dict[str, Any]:
        ends = {"positive": ("low",), "bounded": ("low", "high")}.get(self.shown_kind, ())
        options = {end: getattr(self.unit, end) for end in ends}
        return {"kind": self.shown_kind, **options} if options else self.shown_kind

    @property
    def shown_levels(self) -> str:
        """The ends of a column with a link."""
        shapes = {"none": "", "log": "above {:g}", "logit": "between {:g} and {:g}"}
        return shapes[self.unit.link].format(*self.unit.ends)

    @property
    def expected(self) -> str:
        return f"a number {self.shown_levels}".rstrip()

    @property
    def ends(self) -> tuple[float, float]:
        return self.unit.ends

    def possible(self, raw: np.ndarray) -> np.ndarray:
        low, high = self.ends
        return ((raw > low) & (raw < high)) | np.isnan(raw)

    def natural(self, values: np.ndarray) -> pd.Series:
        """The numbers, not rounded whatever the dtype."""
        return pd.Series(self.decode(values), name=self.name)

    def output_dtype(self, cells: pd.Series) -> Dtype:
        """The dtype of the cells, unless it would round what the fitted table did not."""
        given = super().output_dtype(cells)
        rounds = is_integer_dtype(given) and not is_integer_dtype(self.dtype)
        return self.dtype if rounds else given

    def to_dict(self) -> dict[str, Any]:
        named = {"kind": "continuous", "name": self.name, "dtype": dtypes.to_dict(self.dtype)}
        return {**named, **asdict(self.unit)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Continuous:
        unit = Unit(**{field.name: entry[field.name] for field in fields(Unit)})
        return cls(entry["name"], unit, dtypes.from_dict(entry["dtype"]))


def refuse_constant(name: str, cells: np.ndarray) -> None:
    """Refuses the observed cells of a column where there are none, or all are the same."""
    if cells.size == 0:
        raise InputError(
            f"column {name!r} has no observed value, so nothing can be learned about it; "
            f"fill in some of its cells or take the node out of the graph."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        location = _mean(cells)
        # A spread within the rounding of the values themselves is no variation.
        if np.abs(cells - location).max() <= 4 * np.finfo(np.float64).eps * abs(location):
            extent = "a single observed value" if cells.size == 1 else "one and the same value"
            raise InputError(
                f"column {name!r} counts as constant, with {extent} ({cells[0]}); give it "
                f"cells that differ or take the node out of the graph."
            )


def _mean(cells: np.ndarray) -> float:
    location = cells.mean()
    return location + (cells - location).mean()  # the second pass recovers a large offset


def _moments(cells: np.ndarray) -> tuple[float, float]:
    with np.errstate(over="ignore", invalid="ignore"):
        location = _mean(cells)
        deviations = cells - location
        widest = np.abs(deviations).max()
        # Relative to the widest deviation, since the square of a tiny or huge one is 0 or ∞.
        scale = widest * np.sqrt(np.mean((deviations / widest) ** 2))
    return float(location), float(scale)
