r"""A continuous column: standardised, on a plain, logarithmic or logit scale.

    z = (g(x) − location) / scale,    log p(x) = log p(z) + log g′(x) − log scale,

location and scale being the mean and the deviation of g over the observed cells.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch

from misscnf.data.cells import (
    FLOAT,
    Dtype,
    can_hold_numbers,
    dtype_from_dict,
    dtype_to_dict,
    is_whole,
    number_series,
    read_numbers,
)
from misscnf.data.codecs.base import Column
from misscnf.data.domains import CONTINUOUS
from misscnf.data.scales import Unit
from misscnf.errors import InputError

__all__ = ["Continuous", "refuse_constant"]


@dataclass(frozen=True)
class Continuous(Column, kinds=("continuous",)):
    """The codec of a continuous column."""

    name: str
    scaling: Unit
    dtype: Dtype = FLOAT

    domain = CONTINUOUS

    @classmethod
    def learn(
        cls, name: str, cells: np.ndarray, link: Unit | None = None, dtype: Dtype = FLOAT
    ) -> Continuous:
        """Standardises from the observed cells of a column, a vector of finite numbers.

        Arguments:
            name: The node.
            cells: The observed numbers.
            link: A unit with the link and the ends, if there is one.
            dtype: The dtype to give back; float64 if it cannot hold numbers.
        """
        refuse_constant(name, cells)
        link = link or Unit()
        location, scale = _moments(link.apply_link(_tensor(cells)).numpy())
        if not (math.isfinite(location) and 0 < scale < math.inf):
            raise InputError(
                f"column {name!r} has location {location} and scale {scale}; both must be finite "
                f"and the scale positive (values too large to average in float64 need larger "
                f"units)."
            )
        unit = replace(link, location=location, scale=scale)
        return cls(name, unit, dtype if can_hold_numbers(dtype) else FLOAT)

    @property
    def unit(self) -> Unit:
        """The unit."""
        return self.scaling

    @property
    def shown_kind(self) -> str:
        """The kind, by the name that `kinds=` has for it."""
        if self.unit.link != "logit":
            return "continuous" if self.unit.affine else "positive"
        return "proportion" if (self.unit.low, self.unit.high) == (0.0, 1.0) else "bounded"

    @property
    def request(self) -> str | dict[str, Any]:
        """The kind, with its ends."""
        ends = {"positive": ("low",), "bounded": ("low", "high")}.get(self.shown_kind, ())
        options = {end: getattr(self.unit, end) for end in ends}
        return {"kind": self.shown_kind, **options} if options else self.shown_kind

    @property
    def shown_levels(self) -> str:
        """The ends of a column with a link."""
        if self.unit.affine:
            return ""
        if self.unit.link == "log":
            return f"above {self.unit.low:g}"
        return f"between {self.unit.low:g} and {self.unit.high:g}"

    @property
    def expected(self) -> str:
        """What a cell must be."""
        return f"a number {self.shown_levels}".rstrip()

    def read(self, cells: pd.Series, *, unseen: str = "error") -> np.ndarray:
        """Reads cells as numbers (N,), NaN in the holes."""
        return read_numbers(cells, self.name)

    def parse(self, cells: pd.Series) -> np.ndarray:
        """Reads what people write in a question, NaN where the column has no room for it."""
        raw = read_numbers(cells, self.name)
        return np.where(self.possible(raw), raw, np.nan)

    def possible(self, raw: np.ndarray) -> np.ndarray:
        """Whether there is room for each number."""
        return self.unit.holds(_tensor(raw)).numpy() | np.isnan(raw)

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """From the user's units to standardised ones."""
        return self.unit.encode(_tensor(raw)).numpy()

    def decode(self, values: np.ndarray) -> np.ndarray:
        """From standardised units to the user's."""
        return self.unit.decode(_tensor(values)).numpy()

    def log_slope(self, raw: np.ndarray) -> np.ndarray:
        """log|dz/dx|, to be added to a standardised log-density."""
        return self.unit.log_slope(_tensor(raw)).numpy()

    def series(
        self, values: np.ndarray, dtype: Dtype | None = None, *, exact: bool = False
    ) -> pd.Series:
        """Standardised values as the user's numbers."""
        numbers, dtype = self.decode(values), self.dtype if dtype is None else dtype
        if exact and is_whole(dtype) and not np.allclose(numbers, np.rint(numbers), 1e-9, 1e-9):
            dtype = FLOAT
        low = -math.inf if self.unit.affine else self.unit.low
        high = self.unit.high if self.unit.link == "logit" else math.inf
        return number_series(numbers, dtype, self.name, low=low, high=high)

    def natural(self, values: np.ndarray) -> pd.Series:
        """The numbers, not rounded whatever the dtype."""
        return pd.Series(self.decode(values), name=self.name)

    def output_dtype(self, cells: pd.Series) -> Dtype:
        """The dtype of the cells, unless it would round what the fitted table did not."""
        given = cells.dtype
        if not can_hold_numbers(given) or not cells.notna().any():
            return self.dtype
        return self.dtype if is_whole(given) and not is_whole(self.dtype) else given

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        named = {"kind": "continuous", "name": self.name, "dtype": dtype_to_dict(self.dtype)}
        return {**named, **self.unit.to_dict()}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Continuous:
        """The inverse of `to_dict`; a model saved before there were dtypes has float64."""
        unit = Unit.from_dict({**entry, "location": entry["location"], "scale": entry["scale"]})
        dtype = dtype_from_dict(entry["dtype"]) if "dtype" in entry else FLOAT
        return cls(str(entry["name"]), unit, dtype)


def _tensor(numbers: np.ndarray) -> torch.Tensor:
    return torch.tensor(np.asarray(numbers, dtype=np.float64))


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
