r"""A table with holes: named columns, the model's numbers, and which of them are there.

Each column has a codec (`data.codecs`) between the user's cells x and the model's values z,
learned from the observed cells alone, with

    log p(x) = log p(z) + log|dz/dx|,

the last term for continuous columns only. A hole is False in `observed` and a finite 0.0 in
`values`: `torch.where` lets NaN gradients through from the branch not taken, so no NaN ever
enters. The original cells are kept, because decoding an encoded number may change its last bit.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import reprlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from misscnf import options
from misscnf.data.cells import listed, row_label
from misscnf.data.codecs import CODECS, Column
from misscnf.data.column_names import locate_columns
from misscnf.data.domains import Domain
from misscnf.data.dtypes import OBJECT
from misscnf.data.files import read_table
from misscnf.data.kinds import (
    KindRules,
    Kinds,
    Note,
    choose_columns,
    choose_usable,
    read_requests,
    refuse_events,
)
from misscnf.data.patterns import PatternCounts
from misscnf.errors import InputError
from misscnf.graph.indicators import column_of

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["IncompleteTable", "Schema", "Table", "read_table", "describe", "holed_columns"]
__all__ += ["learn_schema", "measured_nodes"]

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class Schema:
    """The codecs of all columns, in node order; arrays have the nodes on their last axis."""

    columns: tuple[Column, ...]
    notes: tuple[Note, ...] = ()
    """Why each column is what it is; empty where that is not known."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """The name of each column."""
        return tuple(column.name for column in self.columns)

    @property
    def domains(self) -> tuple[Domain, ...]:
        """What the model's values of each column can be."""
        return tuple(column.domain for column in self.columns)

    @property
    def kinds(self) -> dict[str, Any]:
        """What to ask for to get the same kinds again."""
        return {column.name: column.request for column in self.columns if not column.latent}

    @cached_property
    def latent(self) -> tuple[int, ...]:
        """The places of nodes that nobody measures; frames leave them out unless asked."""
        return tuple(j for j, column in enumerate(self.columns) if column.latent)

    @cached_property
    def fixed(self) -> tuple[int, ...]:
        """The places of numbers that are known beforehand; frames leave them out."""
        return tuple(j for j, column in enumerate(self.columns) if column.fixed)

    @cached_property
    def indicators(self) -> dict[int, int]:
        """For each indicator of loss the place of its column; frames leave indicators out."""
        return _indicators(self.nodes)

    def describe(self) -> pd.DataFrame:
        """The table of kinds: one row a column, with its kind, its levels, its holes and why."""
        rows = [
            (column.name, column.shown_kind, column.shown_levels, note.holes, note.why, note.offer)
            for column, note in zip(self.columns, self.notes or repeat(Note()), strict=False)
        ]
        return pd.DataFrame(rows, columns=["column", "kind", "levels", "holes", "why", "offer"])

    def encode(self, raw: np.ndarray) -> np.ndarray:
        """From numbers in the user's units (codes, for levels) to the model's values (..., d)."""
        encoded = [column.encode(raw[..., j]) for j, column in enumerate(self.columns)]
        return np.stack(encoded, axis=-1)

    def decode(self, values: np.ndarray) -> np.ndarray:
        """From the model's values to numbers in the user's units (..., d)."""
        decoded = [column.decode(values[..., j]) for j, column in enumerate(self.columns)]
        return np.stack(decoded, axis=-1)

    def log_slope(self, raw: np.ndarray, counted: Tensor) -> Tensor:
        """log|dz/dx| of each row (N,) of raw numbers (N, d), over the cells that count (N, d)."""
        import torch

        slopes = [0.0 if c.fixed else -math.log(c.unit.scale) for c in self.columns]
        total = counted.double() @ torch.tensor(slopes, dtype=torch.float64)
        for j, column in enumerate(self.columns):
            if not column.unit.affine:
                numbers = torch.tensor(raw[:, j])
                total += torch.where(counted[:, j], column.unit.log_link_slope(numbers), 0.0)
        return total

    def decode_frame(
        self,
        values: Tensor,
        index: pd.Index | None = None,
        exact: Collection[int] = (),
        *,
        holes: bool = False,
        latents: bool = False,
        only: Collection[str] = (),
    ) -> pd.DataFrame:
        """A DataFrame of the user's cells, with a column per node, of the model's values (N, d).

        Numbers of the `exact` nodes are shown as they are where their dtype would round them. With
        `holes`, cells are missing where the indicator of their column says so. With `latents`,
        hidden causes have columns too. `only` names the columns that are wanted; none for all.
        """
        numbers = _to_numpy(values)
        left_out = {*self.indicators, *self.fixed, *(() if latents else self.latent)}
        cells = {
            column.name: column.series(numbers[:, j], exact=j in exact)
            for j, column in enumerate(self.columns)
            if j not in left_out and (not only or column.name in only)
        }
        for i, j in self.indicators.items() if holes else ():
            name = self.columns[j].name
            cells[name] = cells[name].where(numbers[:, i] <= 0.5)
        return _frame(cells, pd.RangeIndex(len(numbers)) if index is None else index)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "columns": [column.to_dict() for column in self.columns],
            "notes": [_written(note) for note in self.notes],
        }

    @staticmethod
    def columns_from(entry: Mapping[str, Any]) -> tuple[Column, ...]:
        """The codecs of what `to_dict` gave."""
        return tuple(CODECS[column["kind"]].from_dict(column) for column in entry["columns"])

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Schema:
        """The inverse of `to_dict`."""
        try:
            columns = cls.columns_from(entry)
            notes = [options.from_dict(Note, note) for note in entry.get("notes", ())]
            schema = cls(columns, tuple(notes))
            for column in columns:  # its kind can be asked for, and its domain is one
                read_requests({column.name: column.request}, schema.nodes)
                column.series(np.zeros(1) if column.domain.discrete else np.array([0.5]))
            if json.loads(json.dumps(schema.to_dict())) != {"notes": [], **entry}:
                raise ValueError("it would not be written like this")
        except Exception as problem:  # whatever nonsense leads to
            raise InputError(
                f"{reprlib.repr(entry)} is not the schema of a table ({problem!r}); "
                f"expected what Schema.to_dict gives, with kinds {', '.join(CODECS)}."
            ) from problem
        return schema


def _written(note: Note) -> dict[str, Any]:
    """A note for JSON; what is said of tables over time only there, as files had it before."""
    found = asdict(note)
    return found if note.after else {name: found[name] for name in found if name != "after"}


@dataclass(frozen=True, eq=False)
class IncompleteTable:
    """Rows with holes, in node order. Made by `IncompleteTable.read`.

    Example:
        >>> df = pd.DataFrame({"dose": [0.5, None, 2.0], "smoker": ["yes", "no", None]})
        >>> table = IncompleteTable.read(df, ["dose", "smoker"])
        >>> table.observed.tolist()
        [[True, True], [False, True], [True, False]]
        >>> [column.shown_kind for column in table.schema.columns]
        ['continuous', 'binary']
    """

    values: Tensor
    """The model's float64 values (N, d), with 0.0 in the holes."""
    observed: Tensor
    """True where a value is there (N, d)."""
    impossible: Tensor
    """True where what is there has probability zero (N, d); such a cell counts as a hole."""
    schema: Schema
    """The codecs between the user's cells and the model's values."""
    index: pd.Index
    """The user's row labels."""
    raw: np.ndarray
    """Float64 numbers in the user's units, codes for levels (N, d), with NaN in the holes."""
    cells: tuple[pd.Series, ...]
    """The original cells of each column."""
    columns: tuple[object, ...] = ()
    """The names of all columns of the table that was read, in its order."""
    outside: tuple[pd.Series, ...] = ()
    """The columns that are not in the graph, which may still explain holes."""
    all_rows: PatternCounts | None = None
    """What all rows show together, where these are some of them by chance."""

    @classmethod
    def read(
        cls,
        source: Table,
        nodes: Sequence[str],
        schema: Schema | None = None,
        *,
        kinds: Kinds = None,
        rules: KindRules | None = None,
        unseen: str = "error",
        keep_impossible: bool = False,
        require_all: bool = True,
        latent: Mapping[str, int | None] | None = None,
    ) -> IncompleteTable:
        """Reads a table and picks the columns of the nodes, by name and in any order.

        Arguments:
            source: A DataFrame, never changed, the path of a .csv, .tsv or .parquet file, or a
                table that was read before, which is handed on with the kinds that it has.
            nodes: The nodes of the graph.
            schema: The codecs of the table a model was fitted to, for new rows. Without it they
                are learned here, which needs two different values in every column.
            kinds: Kinds that are asked for where codecs are learned; the others are inferred.
            rules: How they are inferred.
            unseen: "error" refuses a level that was not seen at fit, "missing" makes it a hole.
            keep_impossible: Whether a value of probability zero is noted in `impossible`; it is
                refused otherwise.
            require_all: Whether every node needs a column. If not, and a schema is given, a node
                without a column is missing in every row.
            latent: Nodes that nobody measures, with their numbers of classes; a schema knows them.
        """
        nodes = tuple(nodes)
        if schema is not None and schema.nodes != nodes:
            raise InputError(f"the schema is of the nodes {schema.nodes}, not of {nodes}.")
        if isinstance(source, IncompleteTable):
            table = source
            if table.nodes != nodes and sorted(table.nodes) == sorted(nodes):
                table = table.in_order(nodes)
            if table.nodes != nodes or (schema and schema.columns != table.schema.columns):
                raise InputError(
                    "this table was read for other columns, or as other kinds, than are asked for "
                    "here; give the DataFrame that it was read from."
                )
        else:
            require_all = require_all or schema is None
            frame = read_table(source)
            hidden = latent or {}
            if schema is not None:
                hidden = dict.fromkeys(schema.nodes[j] for j in schema.latent)
            named = measured_nodes(nodes, frame, hidden)
            positions = locate_columns(frame, named, require_all=require_all)
            cells = tuple(_cells(frame, positions.get(node)) for node in nodes)
            cells = _with_lost(cells, nodes, positions)
            if schema is not None:
                pairs = zip(schema.columns, cells, strict=True)
                cells = tuple(column.as_written(part) for column, part in pairs)
            else:
                about = (kinds, list(frame.columns), rules, hidden)
                schema = learn_schema(cells, nodes, *about)
            table = cls._encoded(frame, positions, cells, schema, unseen)
        if not keep_impossible and table.impossible.any():
            j, row = _first(table.impossible.numpy())
            raise InputError(
                f"{table.explain(row, [j])}, in the row labelled {row_label(table.index, row)}; "
                f"correct it, or make it NaN if it is missing."
            )
        return table

    @classmethod
    def _encoded(
        cls,
        frame: pd.DataFrame,
        positions: Mapping[str, int],
        cells: tuple[pd.Series, ...],
        schema: Schema,
        unseen: str,
    ) -> IncompleteTable:
        """Turns the cells of the nodes into the model's numbers."""
        import torch

        pairs = zip(schema.columns, cells, strict=True)
        raw = np.column_stack([column.read(part, unseen=unseen) for column, part in pairs])
        possible = [column.possible(raw[:, j]) for j, column in enumerate(schema.columns)]
        impossible = ~np.column_stack(possible)
        observed = ~np.isnan(raw) & ~impossible
        for i, j in schema.indicators.items():  # what cannot be read is lost too
            raw[:, i] = np.where(observed[:, i], ~observed[:, j], np.nan)
        values = _encode(schema, raw, observed, frame.index)
        rest = sorted(set(range(frame.shape[1])) - set(positions.values()))
        # A shallow copy, so that renaming the index of one object does not rename the other's.
        table = cls(
            values=torch.from_numpy(values),
            observed=torch.from_numpy(observed),
            impossible=torch.from_numpy(impossible),
            schema=schema,
            index=frame.index.copy(),
            raw=raw,
            cells=cells,
            columns=tuple(frame.columns),
            outside=tuple(frame.iloc[:, j] for j in rest),
        )
        if table.ignored:
            logger.info("Columns not in the graph are ignored: %s.", listed(table.ignored))
        return table

    def in_order(self, nodes: Sequence[str]) -> IncompleteTable:
        """Returns the same rows with their columns in another order."""
        places = [self.nodes.index(node) for node in nodes]
        columns, notes = self.schema.columns, self.schema.notes
        schema = Schema(
            tuple(columns[j] for j in places), tuple(notes[j] for j in places) if notes else notes
        )
        return replace(
            self,
            values=self.values[:, places],
            observed=self.observed[:, places],
            impossible=self.impossible[:, places],
            schema=schema,
            raw=self.raw[:, places],
            cells=tuple(self.cells[j] for j in places),
            all_rows=None if self.all_rows is None else self.all_rows.in_order(places),
        )

    def with_indicator(self, node: str) -> IncompleteTable:
        """Returns the same rows with one more column, an indicator of loss, made from them."""
        import torch

        lost = ~self.observed[:, self.nodes.index(column_of(node) or "")]
        cells = pd.Series(lost.numpy(), index=self.index)
        (column,), (note,) = choose_columns([cells], [node], None, [], None)
        notes = (*self.schema.notes, note) if self.schema.notes else ()
        every = torch.ones(len(self), 1, dtype=torch.bool)
        return replace(
            self,
            values=torch.cat([self.values, lost.double()[:, None]], 1),
            observed=torch.cat([self.observed, every], 1),
            impossible=torch.cat([self.impossible, ~every], 1),
            schema=Schema((*self.schema.columns, column), notes),
            raw=np.column_stack([self.raw, lost.numpy()]),
            cells=(*self.cells, cells),
            all_rows=None,
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

    @property
    def ignored(self) -> tuple[str, ...]:
        """The names of the columns that are not in the graph."""
        return tuple(str(column.name) for column in self.outside)

    @cached_property
    def digest(self) -> str:
        """A name that two tables share only if their columns and cells are the same."""
        found = hashlib.sha256(json.dumps(self.nodes).encode())
        found.update(np.ascontiguousarray(np.nan_to_num(self.raw, nan=np.inf)).tobytes())
        return found.hexdigest()

    def select(self, rows: Tensor) -> IncompleteTable:
        """The rows of these positions, or those where a boolean vector (N,) is True."""
        positions = rows.cpu()
        places = positions.numpy()
        return replace(
            self,
            values=self.values[positions],
            observed=self.observed[positions],
            impossible=self.impossible[positions],
            index=self.index[places],
            raw=self.raw[places],
            cells=tuple(column.iloc[places] for column in self.cells),
            outside=tuple(column.iloc[places] for column in self.outside),
            all_rows=None,
        )

    def log_slope(self, counted: Tensor | None = None) -> Tensor:
        """log|dz/dx| of each row, over the cells that count: all observed ones by default (N,)."""
        return self.schema.log_slope(self.raw, self.observed if counted is None else counted)

    def complete(
        self,
        values: Tensor,
        index: pd.Index | None = None,
        *,
        replaced: Collection[int] = (),
        exact: Collection[int] = (),
        latents: bool = False,
    ) -> pd.DataFrame:
        """A DataFrame of completed rows, the observed cells as they came, bit for bit.

        Arguments:
            values: The model's values without holes (..., N, d), one after the other in rows.
            index: The row labels, those of this table by default.
            replaced: Nodes of which observed cells are replaced too.
            exact: Those of them whose numbers are shown as they are, whatever their dtype.
            latents: Whether hidden causes have columns too.
        """
        if tuple(values.shape[-2:]) != self.shape:
            raise InputError(
                f"values of shape {tuple(values.shape)} do not complete a table of {self.shape}; "
                f"the last two axes are its rows and nodes."
            )
        drawn = _to_numpy(values).reshape(-1, self.shape[1])
        repeats = len(drawn) // max(len(self), 1)
        holes = ~self.observed.numpy()
        own = np.tile(_to_numpy(self.values), (repeats, 1))
        cells, schema = {}, self.schema
        left_out = {*schema.indicators, *schema.fixed, *(() if latents else schema.latent)}
        for j, (column, given) in enumerate(zip(schema.columns, self.cells, strict=True)):
            if j in left_out:
                continue
            fill = np.tile(holes[:, j] | (j in replaced), repeats)
            if (
                j in replaced and j not in exact
            ):  # what nothing moved is the cell as it came, without its rounding
                fill &= ~(np.tile(~holes[:, j], repeats) & _equal(drawn[:, j], own[:, j]))
            cells[column.name] = _fill(column, given, drawn[:, j], fill, exact=j in exact)
        return _frame(cells, self.index if index is None else index)

    def carry_along(self, drawn: pd.DataFrame) -> pd.DataFrame:
        """Returns draws of this table, one after the other, with its columns outside the graph."""
        places = np.tile(np.arange(len(self)), len(drawn) // max(len(self), 1))
        found, rest = [], iter(self.outside)
        for name in self.columns:
            given = drawn[name] if name in drawn else next(rest).iloc[places].set_axis(drawn.index)
            found.append(given)
        own = [drawn[name] for name in drawn if name not in self.columns]
        return pd.concat([*found, *own], axis=1)

    def explain(self, row: int, nodes: Collection[int]) -> str:
        """Why what a row shows of some nodes has probability zero; empty where it has not."""
        for j in nodes:
            if self.impossible[row, j]:
                column, number = self.schema.columns[j], self.raw[row, j]
                where = f"column {column.name!r} has {number:g}"
                return f"{where}, and only {column.expected} is possible there"
        return ""


def learn_schema(
    cells: Iterable[pd.Series],
    nodes: Sequence[str],
    kinds: Kinds,
    columns: Sequence[object],
    rules: KindRules | None,
    latent: Mapping[str, int | None],
    at_once: int = 1,
) -> Schema:
    """Learns the codecs of all columns from their cells, one after the other.

    Arguments:
        cells: Of each node; those of an indicator say what is lost.
        nodes: The nodes.
        kinds: Kinds that are asked for.
        columns: The names of all columns of the table.
        rules: How kinds are inferred.
        latent: Nodes that nobody measures, with their numbers of classes.
        at_once: Columns that are looked at side by side.
    """
    refuse_events(kinds, nodes, columns)
    some = _refusing_kept(cells, nodes)
    return Schema(*choose_columns(some, nodes, kinds, columns, rules, latent, at_once))


Table = pd.DataFrame | str | os.PathLike[str] | IncompleteTable
"""A DataFrame, the path of a CSV or Parquet file, or a table that was read before."""


def describe(
    source: pd.DataFrame | str | os.PathLike[str],
    kinds: Kinds = None,
    nodes: Sequence[str] | None = None,
    rules: KindRules | None = None,
) -> pd.DataFrame:
    """Returns the table of kinds of a table, before anything is fitted.

    A column that no node can be, such as an identifier or a date, is listed as unusable.

    Arguments:
        source: A DataFrame, or the path of a .csv, .tsv or .parquet file.
        kinds: Kinds that are asked for.
        nodes: Some of the columns; all by default.
        rules: How kinds are inferred.

    Example:
        >>> import pandas as pd
        >>> from misscnf import describe_kinds
        >>> df = pd.DataFrame({"ward": ["A", "B", None, "A"], "dose": [0.5, 1.7, 2.2, None]})
        >>> describe_kinds(df)[["column", "kind", "holes"]].values.tolist()
        [['ward', 'binary', 1], ['dose', 'continuous', 1]]
    """
    frame = read_table(source)
    names = list(map(str, frame.columns)) if nodes is None else nodes
    positions = locate_columns(frame, names, require_all=True)
    cells = {name: _cells(frame, positions[name]) for name in names}
    columns, notes, unusable = choose_usable(cells, kinds, list(frame.columns), rules)
    table = Schema(columns, notes).describe()
    lines = [
        (name, "unusable", "", int(cells[name].isna().sum()), why, "")
        for name, why in unusable.items()
    ]
    if lines:
        table = pd.concat([table, pd.DataFrame(lines, columns=table.columns)])
    return table.set_index("column").loc[list(names)].reset_index()


def holed_columns(source: pd.DataFrame | IncompleteTable) -> list[str]:
    """Returns the names of the columns that have holes."""
    if isinstance(source, IncompleteTable):
        some = (~source.observed).any(0).tolist()
        columns = zip(source.schema.columns, some, strict=True)
        return [column.name for column, holes in columns if holes and not column.latent]
    return [name for name in source.columns[source.isna().any()] if isinstance(name, str)]


def _equal(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Says where two arrays are the same but for rounding."""
    return np.abs(first - second) <= 1e-12 * np.maximum(np.abs(second), 1.0)


def _to_numpy(values: Tensor) -> np.ndarray:
    return values.detach().cpu().double().numpy()


def _frame(cells: Mapping[str, pd.Series], index: pd.Index) -> pd.DataFrame:
    # Columns that are counted from 0 line up whatever labels the rows get.
    return pd.DataFrame(dict(cells)).set_axis(index, axis=0)


def _fill(
    column: Column, given: pd.Series, drawn: np.ndarray, fill: np.ndarray, *, exact: bool
) -> pd.Series:
    """The cells of a column, repeated, with the model's values where they are to be filled in."""
    dtype = column.output_dtype(given)
    places = np.flatnonzero(fill)
    cells = column.series(drawn[places], dtype, exact=exact)
    if len(places) == len(fill):
        return cells
    repeated = given.take(np.arange(len(fill)) % len(given))
    if given.dtype == dtype:
        array = repeated.array.copy()
        array[places] = cells.array
        return pd.Series(array, dtype=dtype)
    mixed = repeated.to_numpy(dtype=object, copy=True)  # without holes, any dtype takes it
    mixed[places] = cells.to_numpy(dtype=object)
    return pd.Series(mixed.tolist(), dtype=dtype)


def _indicators(nodes: Sequence[str]) -> dict[int, int]:
    """For each indicator of loss among nodes, the place of its column."""
    columns = {i: column_of(node) for i, node in enumerate(nodes)}
    return {i: list(nodes).index(column) for i, column in columns.items() if column is not None}


def measured_nodes(
    nodes: Sequence[str], frame: pd.DataFrame, latent: Collection[str]
) -> list[str]:
    """The nodes that have a column; indicators and hidden causes have none."""
    there = {name for name in frame.columns if isinstance(name, str)}
    measured = [node for node in nodes if node in latent and node in there]
    if measured:
        raise InputError(
            f"the table has a column {measured[0]!r}, and the graph says that nobody measures it "
            f"(latent); leave it out of latent, or rename or drop that column."
        )
    taken = [node for node in nodes if column_of(node) is not None and node in there]
    if taken:
        raise InputError(
            f"the table has a column {taken[0]!r}, which is what the graph calls the indicator of "
            f"{column_of(taken[0])!r}, made from its holes; rename or drop that column."
        )
    return [node for node in nodes if column_of(node) is None and node not in latent]


def _with_lost(
    cells: tuple[pd.Series, ...], nodes: Sequence[str], positions: Mapping[str, int]
) -> tuple[pd.Series, ...]:
    """The cells with those of indicators: whether their column has a hole, if it is there."""
    found = list(cells)
    for i, j in _indicators(nodes).items():
        if nodes[j] in positions:
            found[i] = cells[j].isna()
    return tuple(found)


def _refusing_kept(cells: Iterable[pd.Series], nodes: Sequence[str]) -> Iterator[pd.Series]:
    """Yields cells of nodes; refuses the loss of a column that has no holes."""
    indicators = _indicators(nodes)
    for i, part in enumerate(cells):
        if i in indicators and not part.any():
            raise InputError(
                f"the graph has the loss of {nodes[indicators[i]]!r}, and no cell of that column "
                f"is lost; leave {nodes[i]!r} out."
            )
        yield part


def _cells(frame: pd.DataFrame, position: int | None) -> pd.Series:
    """The cells of a node; one without a column is all holes."""
    if position is None:
        return pd.Series([None] * len(frame), index=frame.index, dtype=OBJECT)
    return frame.iloc[:, position].copy()


def _encode(schema: Schema, raw: np.ndarray, observed: np.ndarray, index: pd.Index) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        values = np.where(observed, schema.encode(raw), 0.0)
    far = np.isinf(values)
    if far.any():
        j, row = _first(far)
        raise InputError(
            f"column {schema.nodes[j]!r} has a value too far from the fitted ones "
            f"({raw[row, j]}) in the row labelled {row_label(index, row)}; make it a finite "
            f"number, or NaN if it is missing."
        )
    return values


def _first(cells: np.ndarray) -> tuple[int, int]:
    """The column and the row of the first cell that is True, column by column."""
    j = int(cells.any(axis=0).argmax())
    return j, int(cells[:, j].argmax())
