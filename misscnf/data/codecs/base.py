r"""What a codec is: three ways to write a column, and the steps between them.

    cells   --read-->   raw   --encode-->   values        (a hole is NaN in `raw`)
    series  <--------------------series--   values
                        raw   <--decode--   values

`cells` are the user's, in their dtype. `raw` are numbers in the user's units: the number itself,
or the code 0, 1, … of a level. `values` are the model's: standardised where continuous, the same
as `raw` where discrete.

    log p(cells) = log p(values) + log_slope,   log_slope = 0 where discrete.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from misscnf.data.cells import Dtype, dtype_from_dict, dtype_to_dict
from misscnf.data.domains import Domain
from misscnf.data.scales import Unit

__all__ = ["Column"]


class Column(ABC):
    """The codec of one column. Subclasses are frozen dataclasses.

    A subclass names the kinds that it serves in the class line. One for a kind of its own also
    brings `learn_numbers`.
    """

    by_kind: ClassVar[dict[str, type[Column]]] = {}
    """Every codec, by the kinds that it serves."""

    def __init_subclass__(cls, kinds: tuple[str, ...] = ()) -> None:
        super().__init_subclass__()
        Column.by_kind.update(dict.fromkeys(kinds, cls))

    name: str
    """The node."""
    dtype: Dtype
    """The dtype in which drawn cells come back."""

    @classmethod
    def learn_numbers(cls, name: str, cells: np.ndarray, dtype: Dtype) -> Column:
        """Learns from the observed numbers of a column, and the dtype that they had."""
        raise TypeError(f"{cls.__name__} is not learned from numbers alone")

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """What the model's values can be."""

    @property
    @abstractmethod
    def shown_kind(self) -> str:
        """The kind, by the name that `kinds=` has for it."""

    @property
    @abstractmethod
    def request(self) -> Any:  # noqa: ANN401 - a name, or a name with options
        """What `kinds=` would have to ask for to get this column."""

    @property
    @abstractmethod
    def shown_levels(self) -> str:
        """The levels or the ends, as the table of kinds shows them; empty where there are none."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What a cell must be, in words."""

    @property
    def unit(self) -> Unit:
        """The unit of a continuous column, and the identity of any other."""
        return Unit()

    @abstractmethod
    def read(self, cells: pd.Series, *, unseen: str = "error") -> np.ndarray:
        """Reads cells as raw numbers (N,), NaN in the holes.

        Arguments:
            cells: The cells.
            unseen: "error" refuses a level that was not seen at fit, "missing" makes it a hole.
        """

    @abstractmethod
    def parse(self, cells: pd.Series) -> np.ndarray:
        """Reads what people write in a question as raw numbers (N,), NaN where it is no value."""

    @abstractmethod
    def possible(self, raw: np.ndarray) -> np.ndarray:
        """Whether each raw number can have a probability above zero, True in holes (N,)."""

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """From raw numbers to the model's values (...)."""
        return np.asarray(raw)

    def decode(self, values: np.ndarray) -> np.ndarray:
        """From the model's values to raw numbers (...)."""
        return np.asarray(values)

    def log_slope(self, raw: np.ndarray) -> np.ndarray:
        """log|dz/dx| at raw numbers (...), to be added to the model's log-density."""
        return np.zeros_like(raw)

    @abstractmethod
    def series(
        self, values: np.ndarray, dtype: Dtype | None = None, *, exact: bool = False
    ) -> pd.Series:
        """The model's values (N,) as the user's cells.

        Arguments:
            values: The values.
            dtype: A dtype that `output_dtype` gave; the column's own by default.
            exact: Whether a number is given as it is where a whole-number dtype would round it.
        """

    def natural(self, values: np.ndarray) -> pd.Series:
        """The model's values (N,) as a function that intervenes on the column sees them."""
        return self.series(values)

    @abstractmethod
    def output_dtype(self, cells: pd.Series) -> Dtype:
        """The dtype in which these cells come back: theirs, if it can hold all values."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.shown_kind, **vars(self), "dtype": dtype_to_dict(self.dtype)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        values = {name: entry[name] for name in names}
        return cls(**{**values, "dtype": dtype_from_dict(entry["dtype"])})
