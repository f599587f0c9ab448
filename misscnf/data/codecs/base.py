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
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pandas as pd
from pandas.api.types import is_integer_dtype

from misscnf.data import dtypes
from misscnf.data.cells import read_numbers
from misscnf.data.domains import Domain
from misscnf.data.dtypes import FLOAT, Dtype
from misscnf.data.scales import Unit

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Column"]


class Column(ABC):
    """The codec of one column: of numbers, unless a subclass says how its cells are read.

    Subclasses are frozen dataclasses, and name the kinds that they serve in the class line. One
    for a kind of its own also brings `learn_numbers`.
    """

    by_kind: ClassVar[dict[str, type[Column]]] = {}
    """Every codec, by the kinds that it serves."""

    def __init_subclass__(cls, kinds: tuple[str, ...] = ()) -> None:
        super().__init_subclass__()
        Column.by_kind.update(dict.fromkeys(kinds, cls))

    name: str
    """The node."""
    dtype: Dtype = FLOAT
    """The dtype in which drawn cells come back."""
    latent: ClassVar[bool] = False
    """Whether it is of a node that nobody measures, and so has no cells."""
    fixed: ClassVar[bool] = False
    """Whether its one value is known beforehand, so that it has no density."""
    unit: Unit = Unit()
    """The unit of a continuous column, and the identity of any other."""

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
    def shown_levels(self) -> str:
        """The levels or the ends, as the table of kinds shows them."""
        return ""

    @property
    @abstractmethod
    def request(self) -> Any:  # noqa: ANN401 - a name, or a name with options
        """What `kinds=` would have to ask for to get this column."""

    @property
    @abstractmethod
    def expected(self) -> str:
        """What a cell must be, in words."""

    @abstractmethod
    def possible(self, raw: np.ndarray) -> np.ndarray:
        """Whether each raw number can have a probability above zero, True in holes (N,)."""

    @property
    def ends(self) -> tuple[float, float]:
        """What its numbers lie between."""
        return -math.inf, math.inf

    def as_written(self, cells: pd.Series) -> pd.Series:
        """Returns cells of new rows as the fitted table would have had them."""
        return cells

    def read(self, cells: pd.Series, *, unseen: str = "error") -> np.ndarray:
        """Reads cells as raw numbers (N,), NaN in the holes.

        Where `unseen` is "missing", a level that was not seen at fit is a hole, and no error.
        """
        return read_numbers(cells, self.name)

    def parse(self, cells: pd.Series) -> np.ndarray:
        """Reads what people write in a question as raw numbers (N,), NaN where it is no value."""
        raw = self.read(cells)
        return np.where(self.possible(raw), raw, np.nan)

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """From raw numbers to the model's values (...)."""
        return self.unit.encode(_tensor(raw)).numpy()

    def decode(self, values: np.ndarray) -> np.ndarray:
        """From the model's values to raw numbers (...)."""
        return self.unit.decode(_tensor(values)).numpy()

    def log_slope(self, raw: np.ndarray) -> np.ndarray:
        """log|dz/dx| at raw numbers (...), to be added to the model's log-density."""
        return self.unit.log_slope(_tensor(raw)).numpy()

    def series(
        self, values: np.ndarray, dtype: Dtype | None = None, *, exact: bool = False
    ) -> pd.Series:
        """The model's values (N,) as the user's cells.

        Arguments:
            values: The values.
            dtype: A dtype that `output_dtype` gave; the column's own by default.
            exact: Whether a number is given as it is where a whole-number dtype would round it.
        """
        numbers, dtype = self.decode(values), self.dtype if dtype is None else dtype
        if exact and is_integer_dtype(dtype):
            whole = np.allclose(numbers, np.rint(numbers), 1e-9, 1e-9)
            dtype = dtype if whole else FLOAT
        return dtypes.write_numbers(numbers, dtype, self.name, self.unit.ends)

    def natural(self, values: np.ndarray) -> pd.Series:
        """The model's values (N,) as a function that intervenes on the column sees them."""
        return self.series(values)

    def output_dtype(self, cells: pd.Series) -> Dtype:
        """The dtype in which these cells come back: theirs, if it can hold all values."""
        fits = dtypes.can_hold_numbers(cells.dtype) and cells.notna().any()
        return cells.dtype if fits else self.dtype

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": self.shown_kind, **vars(self), "dtype": dtypes.to_dict(self.dtype)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        dtype = dtypes.from_dict(entry["dtype"])
        return cls(**{name: dtype if name == "dtype" else entry[name] for name in names})


def _tensor(numbers: np.ndarray) -> Tensor:
    import torch

    return torch.tensor(np.asarray(numbers, dtype=np.float64))
