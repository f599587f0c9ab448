r"""A table with holes: named columns, standardised values, and which of them are there.

Each column has a codec between the user's units x and the model's z,

    z = (x - location) / scale,        log p(x) = log p(z) + log|dz/dx| = log p(z) - log scale,

learned from the observed cells alone. A hole is False in `observed` and a finite 0.0 in `values`:
`torch.where` lets NaN gradients through from the branch not taken, so no NaN ever enters. The
original cells are kept, because decoding an encoded number may change its last bit.
"""

__all__ = ["IncompleteTable", "Schema", "ColumnScale", "read_table"]

import difflib
import logging
import math
import numbers
import os
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.errors import InputError
from misscnf.table_files import read_table

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class ColumnScale:
    """The codec of a continuous column: an affine map to zero mean and unit deviation."""

    name: str
    location: float
    scale: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.location) and 0 < self.scale < math.inf):
            raise InputError(
                f"column {self.name!r} has location {self.location} and scale {self.scale}; "
                f"both must be finite and the scale positive (values too large to average in "
                f"float64 need larger units)."
            )

    @classmethod
    def learn(cls, name: str, cells: np.ndarray) -> "ColumnScale":
        """Standardises from the observed cells of a column, a vector of finite numbers."""
        if cells.size == 0:
            raise InputError(
                f"column {name!r} has no observed value, so nothing can be learned about it; "
                f"fill in some of its cells or take the node out of the graph."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            location = cells.mean()
            location += (cells - location).mean()  # the second pass recovers a large offset
            deviations = cells - location
            widest = np.abs(deviations).max()
            # A spread within the rounding of the values themselves is no variation.
            if widest <= 4 * np.finfo(np.float64).eps * abs(location):
                extent = "a single observed value" if cells.size == 1 else "one and the same value"
                raise InputError(
                    f"column {name!r} counts as constant, with {extent} ({cells[0]}); give it "
                    f"cells that differ or take the node out of the graph."
                )
            # Relative to the widest deviation, since the square of a tiny or huge one is 0 or ∞.
            scale = widest * np.sqrt(np.mean((deviations / widest) ** 2))
        return cls(name, float(location), float(scale))

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """From the user's units to standardised ones."""
        return (raw - self.location) / self.scale

    def decode(self, encoded: np.ndarray) -> np.ndarray:
        """From standardised units to the user's."""
        return encoded * self.scale + self.location

    @property
    def log_jacobian(self) -> float:
        """log|dz/dx|, to be added to a standardised log-density."""
        return -math.log(self.scale)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"kind": "continuous", **asdict(self)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> "ColumnScale":
        """The inverse of `to_dict`."""
        return cls(str(entry["name"]), float(entry["location"]), float(entry["scale"]))


CODECS = {"continuous": ColumnScale}


@dataclass(frozen=True)
class Schema:
    """The codecs of all columns, in node order; arrays have the nodes on their last axis."""

    columns: tuple[ColumnScale, ...]

    @classmethod
    def learn(cls, raw: np.ndarray, observed: np.ndarray, nodes: Sequence[str]) -> "Schema":
        """Learns one codec per column from its observed cells.

        Arguments:
            raw: The values in the user's units (N, d).
            observed: True where a value is there (N, d).
            nodes: The name of each column.
        """
        columns = zip(nodes, raw.T, observed.T, strict=True)
        return cls(tuple(ColumnScale.learn(node, x[there]) for node, x, there in columns))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The name of each column."""
        return tuple(column.name for column in self.columns)

    @property
    def log_jacobian(self) -> np.ndarray:
        """log|dz/dx| of each column (d,)."""
        return np.array([column.log_jacobian for column in self.columns])

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """From the user's units to standardised ones (..., d)."""
        encoded = [column.encode(raw[..., j]) for j, column in enumerate(self.columns)]
        return np.stack(encoded, axis=-1)

    def decode(self, encoded: np.ndarray) -> np.ndarray:
        """From standardised units to the user's (..., d)."""
        decoded = [column.decode(encoded[..., j]) for j, column in enumerate(self.columns)]
        return np.stack(decoded, axis=-1)

    def decode_frame(self, values: Tensor, index: pd.Index | None = None) -> pd.DataFrame:
        """A DataFrame in the user's units, with a column per node, of values (N, d)."""
        return pd.DataFrame(self.decode(_to_numpy(values)), index=index, columns=list(self.nodes))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"columns": [column.to_dict() for column in self.columns]}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> "Schema":
        """The inverse of `to_dict`."""
        try:
            columns = [CODECS[column["kind"]].from_dict(column) for column in entry["columns"]]
        except (KeyError, TypeError, ValueError) as problem:
            raise InputError(
                f"{reprlib.repr(entry)} is not the schema of a table ({problem!r}); "
                f"expected what Schema.to_dict gives, with kinds {', '.join(CODECS)}."
            ) from problem
        return cls(tuple(columns))


@dataclass(frozen=True, eq=False)
class IncompleteTable:
    """Rows with holes, in node order. Made by `IncompleteTable.read`."""

    values: Tensor
    """Standardised float64 values (N, d), with 0.0 in the holes."""
    observed: Tensor
    """True where a value is there (N, d)."""
    schema: Schema
    """The codecs between the user's units and the standardised ones."""
    index: pd.Index
    """The user's row labels."""
    raw: np.ndarray
    """The original float64 values (N, d), with NaN in the holes."""
    ignored: tuple[str, ...] = ()
    """Columns of the table that are not in the graph."""

    @classmethod
    def read(
        cls,
        source: pd.DataFrame | str | os.PathLike[str],
        nodes: Sequence[str],
        schema: Schema | None = None,
        *,
        require_all: bool = True,
    ) -> "IncompleteTable":
        """Reads a table and picks the columns of the nodes, by name and in any order.

        Arguments:
            source: A DataFrame, never changed, or the path of a .csv, .tsv or .parquet file.
            nodes: The nodes of the graph.
            schema: The codecs of the table a model was fitted to, for new rows. Without it they
                are learned here, which needs two different values in every column.
            require_all: Whether every node needs a column. If not, and a schema is given, a node
                without a column is missing in every row.

        Returns:
            The table, standardised.
        """
        nodes = tuple(nodes)
        if schema is not None and schema.nodes != nodes:
            raise InputError(f"the schema is of the nodes {schema.nodes}, not of {nodes}.")
        frame = read_table(source)
        positions = _locate(frame, nodes, require_all=require_all or schema is None)
        raw = np.column_stack([_read_column(frame, node, positions.get(node)) for node in nodes])
        _refuse_infinite(raw, raw, frame.index, nodes)
        observed = ~np.isnan(raw)
        schema = schema or Schema.learn(raw, observed, nodes)
        with np.errstate(over="ignore"):
            values = np.where(observed, schema.encode(raw), 0.0)
        _refuse_infinite(values, raw, frame.index, nodes)
        used = set(positions.values())
        ignored = tuple(str(name) for j, name in enumerate(frame.columns) if j not in used)
        if ignored:
            logger.info("Columns not in the graph are ignored: %s.", _listed(ignored))
        # A shallow copy, so that renaming the index of one object does not rename the other's.
        return cls(
            values=torch.from_numpy(values),
            observed=torch.from_numpy(observed),
            schema=schema,
            index=frame.index.copy(),
            raw=raw,
            ignored=ignored,
        )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The name of each column."""
        return self.schema.nodes

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and nodes (N, d)."""
        return len(self.values), len(self.schema.columns)

    def select(self, rows: Tensor) -> "IncompleteTable":
        """The rows of these positions, or those where a boolean vector (N,) is True."""
        positions = rows.cpu()
        return IncompleteTable(
            values=self.values[positions],
            observed=self.observed[positions],
            schema=self.schema,
            index=self.index[positions.numpy()],
            raw=self.raw[positions.numpy()],
            ignored=self.ignored,
        )

    def decode_frame(self, values: Tensor, index: pd.Index | None = None) -> pd.DataFrame:
        """A DataFrame in the user's units of standardised values.

        Arguments:
            values: Standardised values (N, d).
            index: The row labels, those of this table by default.
        """
        return self.schema.decode_frame(values, self.index if index is None else index)

    def restore(self, values: Tensor) -> np.ndarray:
        """Completed values in the user's units, the observed cells bit for bit as they came.

        Arguments:
            values: Standardised values without holes (..., N, d).
        """
        if tuple(values.shape[-2:]) != self.shape:
            raise InputError(
                f"values of shape {tuple(values.shape)} do not complete a table of {self.shape}; "
                f"the last two axes are its rows and nodes."
            )
        return np.where(self.observed.numpy(), self.raw, self.schema.decode(_to_numpy(values)))


def _to_numpy(values: Tensor) -> np.ndarray:
    return values.detach().to("cpu", torch.float64).numpy()


def _listed(names: Sequence[object]) -> str:
    shown = ", ".join(map(repr, names[:8]))
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"


def _locate(frame: pd.DataFrame, nodes: Sequence[str], *, require_all: bool) -> dict[str, int]:
    """The position of each node's column, for a name that is repeated has no one column."""
    places: dict[str, list[int]] = {node: [] for node in nodes}
    lookalikes = {str(name): name for name in frame.columns if not isinstance(name, str)}
    for j, name in enumerate(frame.columns):
        if isinstance(name, str) and name in places:
            places[name].append(j)
    for node, found in places.items():
        if len(found) > 1:
            raise InputError(
                f"the table has {len(found)} columns named {node!r}; drop or rename all but one."
            )
        if not found and node in lookalikes:
            raise InputError(
                f"node {node!r} is text, and the table's column {lookalikes[node]!r} is named by "
                f"a {type(lookalikes[node]).__name__}; rename the columns with "
                f"frame.columns = frame.columns.astype(str)."
            )
    absent = [node for node in nodes if not places[node]]
    if absent and require_all:
        raise InputError("; ".join(_absence(node, frame.columns) for node in absent) + ".")
    if absent:
        logger.info("Nodes without a column are missing in every row: %s.", _listed(absent))
    return {node: found[0] for node, found in places.items() if found}


def _absence(node: str, columns: pd.Index) -> str:
    folded = {str(name).casefold(): name for name in columns}
    close = [folded[name] for name in difflib.get_close_matches(node.casefold(), folded)]
    if close:
        return f"node {node!r} has no column in the table (did you mean {_listed(close)}?)"
    return f"node {node!r} has no column in the table, which has {_listed(list(columns))}"


def _read_column(frame: pd.DataFrame, node: str, position: int | None) -> np.ndarray:
    """A column as float64 with NaN in its holes (N,); a node without a position is all holes."""
    if position is None:
        return np.full(len(frame), np.nan)
    column = frame.iloc[:, position]
    if column.dtype.kind in "mM":
        raise InputError(
            f"column {node!r} holds dates or durations ({column.dtype}), and only numbers can be "
            f"used; make it one, such as the days since a reference date."
        )
    if pd.api.types.is_any_real_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return _read_objects(column, node)


def _read_objects(column: pd.Series, node: str) -> np.ndarray:
    """Cell by cell, since an object column may hold anything."""
    cells = column.to_numpy(dtype=object)
    numeric = np.full(len(cells), np.nan)
    there = np.flatnonzero(~pd.isna(cells)).tolist()
    refused = [j for j in there if not isinstance(cells[j], numbers.Real | Decimal | np.bool_)]
    if refused:
        _refuse_cells(cells, refused, column.index, node)
    for j in there:
        try:
            numeric[j] = float(cells[j])
        except OverflowError:  # an integer beyond float64, refused as infinite by the caller
            numeric[j] = math.inf
    return numeric


def _refuse_cells(cells: np.ndarray, refused: list[int], index: pd.Index, node: str) -> None:
    # One word in a file makes its whole column text: that word is the cell to name.
    words = [j for j in refused if not _is_number_as_text(cells[j])]
    row = (words or refused)[0]
    if not words:
        advice = "convert the column with pandas.to_numeric"
    elif isinstance(cells[row], str):
        advice = "make it a number, or a hole with pandas.read_csv(path, na_values=...)"
    else:
        advice = "make it a number, or NaN if it is missing"
    raise InputError(
        f"column {node!r} has {reprlib.repr(cells[row])}, which is not a number, in the row "
        f"labelled {_label(index, row)}; {advice}."
    )


def _is_number_as_text(cell: object) -> bool:
    try:
        return isinstance(cell, str) and not math.isnan(float(cell))
    except ValueError:
        return False


def _label(index: pd.Index, row: int) -> str:
    return repr(index[[row]].tolist()[0])  # a list holds Python's own 3, not np.int64(3)


def _refuse_infinite(
    values: np.ndarray, raw: np.ndarray, index: pd.Index, nodes: Sequence[str]
) -> None:
    infinite = np.isinf(values)
    if not infinite.any():
        return
    j = int(infinite.any(axis=0).argmax())
    row = int(infinite[:, j].argmax())
    cell = raw[row, j]
    what = "an infinite value" if math.isinf(cell) else "a value too far from the fitted ones"
    raise InputError(
        f"column {nodes[j]!r} has {what} ({cell}) in the row labelled {_label(index, row)}; "
        f"make it a finite number, or NaN if it is missing."
    )
