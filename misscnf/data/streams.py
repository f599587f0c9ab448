r"""Tables that are larger than memory: read a batch at a time, and a column at a time.

    a Parquet file or a folder of them  →  batches of rows in order, one column whole
    a large CSV                         →  Parquet in a temporary folder first, then the same

A CSV is read in pieces by the rules of `files`, and its columns get the types that they would have
in memory: whole numbers with a hole are fractions, and numbers beside words are words.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from misscnf.data.files import Reading, apply_reading, read_text_in_parts, text_cells
from misscnf.data.parquet import Shards
from misscnf.data.patterns import PatternCounts
from misscnf.data.rows import ROWS_AT_ONCE
from misscnf.data.table import measured_nodes
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.paths import expanded

__all__ = ["TableStream", "open_stream", "read_size", "RowsFolder", "saying_full"]


@dataclass(frozen=True, eq=False)
class TableStream:
    """A table that is not held in memory."""

    name: str
    """what sentences call it"""
    shards: Shards
    reading: Reading = field(default_factory=Reading)
    folder: RowsFolder | None = None
    """where its rows are, if they were brought there; it goes with this object"""

    def __len__(self) -> int:
        return len(self.shards)

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [str(name) for name in self.head().columns]

    def head(self) -> pd.DataFrame:
        """Returns a frame with its columns and without rows."""
        return _to_frame(self.shards.schema.empty_table())

    @cached_property
    def unsteady(self) -> frozenset[str]:
        """Columns of whole numbers, or of True and False, with holes: pandas turns these by them.

        A batch that happens to have none is read as the others are.
        """
        kinds = pa.types.is_integer, pa.types.is_boolean
        names = [at.name for at in self.shards.schema if any(kind(at.type) for kind in kinds)]
        found = set[str]()
        for table in self.shards.tables(names, ROWS_AT_ONCE) if names else ():
            found |= {name for name in names if table[name].null_count}
        return frozenset(found)

    def frames(
        self, columns: Sequence[str] | None = None, size: int = ROWS_AT_ONCE
    ) -> Iterator[pd.DataFrame]:
        """Yields all rows in order; labels count on where the file has none of its own."""
        start = 0
        for table in self.shards.tables(columns, size):
            frame = apply_reading(_to_frame(table, self.unsteady), self.reading, self.name)
            if isinstance(frame.index, pd.RangeIndex):
                frame.index = pd.RangeIndex(start, start + len(frame))
            start += len(frame)
            yield frame

    def column(self, name: str) -> pd.Series:
        """Returns all cells of one column."""
        frame = _to_frame(self.shards.read([name]))
        return apply_reading(frame, self.reading.of([name]), self.name)[name]

    def sample(self, most: int, seed: int = 0) -> pd.DataFrame:
        """Returns rows by chance, in their order; all rows where they are no more than that."""
        order = torch.randperm(len(self), generator=derive_generator(seed, "sample of rows"))
        chosen, start, found = order[:most].sort().values.numpy(), 0, list[pd.DataFrame]()
        for frame in self.frames():
            mine = chosen[np.searchsorted(chosen, start) :] - start
            found.append(frame.iloc[mine[mine < len(frame)]])
            start += len(frame)
        return pd.concat(found)

    def count_patterns(self, nodes: Sequence[str], latent: Collection[str] = ()) -> PatternCounts:
        """Counts which cells of some nodes all rows show together.

        A hidden cause is shown in no row, an indicator of loss in all of them.
        """
        found = PatternCounts(len(nodes))
        named = measured_nodes(nodes, self.head(), latent)
        for frame in self.frames(named):
            seen = {name: frame[name].notna().to_numpy() for name in named}
            always = np.ones(len(frame), dtype=bool)
            parts = [~always if n in latent else seen.get(n, always) for n in nodes]
            found.add(np.column_stack(parts))
        return found

    def holed_columns(self) -> list[str]:
        """Returns the names of the columns that have holes."""
        found = {name for frame in self.frames() for name in frame.columns[frame.isna().any()]}
        return [name for name in self.columns if name in found]


def open_stream(
    source: object,
    memory: str | float,
    bytes_a_cell: int,
    reading: Reading | None = None,
) -> TableStream | None:
    """Opens a table that takes more memory than it may; None where it can be read as it is.

    Arguments:
        source: What a table is given by; only paths of Parquet, CSV and TSV can be streamed.
        memory: Bytes, or a text such as "4GB".
        bytes_a_cell: What a cell takes in a fit in memory.
        reading: How a file is read.
    """
    most = read_size(memory)
    if isinstance(source, TableStream):
        return source
    if not isinstance(source, str | os.PathLike):
        return None
    path, reading = expanded(source), reading or Reading()
    name, endings = repr(str(path)), [end.lower() for end in path.suffixes[-2:]]
    if path.is_dir() or endings[-1:] == [".parquet"]:
        if not path.exists():
            return None  # whoever reads it says so
        shards = Shards.open(path)
        if len(shards) * len(shards.schema) * bytes_a_cell <= most:
            return None
        return TableStream(name, shards, reading)
    if not path.is_file() or not {".csv", ".tsv"} & set(endings):
        return None
    if text_cells(path, reading) * bytes_a_cell <= most:
        return None
    folder = RowsFolder()
    target = Path(folder.name) / "table.parquet"
    with saying_full(folder.name):
        _write_parquet(path, name, reading, target)
    return TableStream(name, Shards.open(target), Reading(dates=reading.dates), folder)


def read_size(size: str | float) -> float:
    """Returns bytes, from a number of them or a text such as "4GB", "500 MB" or "1.5 GiB"."""
    if isinstance(size, int | float) and not isinstance(size, bool) and size > 0:
        return float(size)
    found = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]?)(i?)B?\s*", str(size), re.IGNORECASE)
    number = _number(found.group(1)) if found else 0.0
    if found is None or number <= 0.0:
        raise InputError(f"memory is a size such as '4GB' or '500MB'; got {size!r}.")
    step = 1024.0 if found.group(3) else 1000.0
    return number * step ** " KMGT".index(found.group(2).upper() or " ")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


class RowsFolder:
    """A temporary folder for rows; it goes when nobody has this object any more."""

    def __init__(self) -> None:
        self.name = tempfile.mkdtemp(prefix="misscnf-rows-")
        weakref.finalize(self, shutil.rmtree, self.name, ignore_errors=True)


class saying_full:
    """Says by name that a folder of rows cannot be written to.

    Arguments:
        folder: Its path.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise InputError(
                f"rows cannot be kept in the temporary folder {self.folder!r} "
                f"({error.strerror or error}); free space there, or name another by the "
                f"environment variable TMPDIR.",
                about=self.folder,
            ) from error


def _to_frame(table: pa.Table, unsteady: Collection[str] = ()) -> pd.DataFrame:
    frame = table.to_pandas()
    for name in unsteady:
        if name in frame and isinstance(frame.dtypes[name], np.dtype):
            as_whole = np.float64 if frame.dtypes[name].kind in "iuf" else object
            frame[name] = frame[name].astype(as_whole)
    return frame.reset_index() if frame.index.name is not None else frame


def _write_parquet(path: Path, name: str, reading: Reading, target: Path) -> None:
    """Brings the rows of a text to Parquet, after a pass that finds the types of its columns."""
    seen: dict[Any, set[str]] = {}
    for part in read_text_in_parts(path, name, reading, ROWS_AT_ONCE, {}):
        if part.columns.has_duplicates:
            twice = part.columns[part.columns.duplicated()][0]
            raise InputError(f"{name} has several columns named {twice!r}; rename all but one.")
        for column, cells in part.items():
            seen.setdefault(column, set()).add(_type(cells))
    types = {column: _joint(found) for column, found in seen.items()}
    words = {column: str for column, found in types.items() if found == "words"}
    numbers = {"truths": pa.bool_(), "whole": pa.int64(), "fractions": pa.float64()}
    schema = pa.schema(
        [(str(column), numbers.get(found, pa.string())) for column, found in types.items()]
    )
    if not types:
        raise InputError(f"{name} has no rows; at least one is needed.")
    with pq.ParquetWriter(target, schema) as writer:
        for part in read_text_in_parts(path, name, reading, ROWS_AT_ONCE, words):
            arrays = [
                pa.Array.from_pandas(cells, type=of.type)
                for (_, cells), of in zip(part.items(), schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))


def _type(cells: pd.Series) -> str:
    """Returns what a piece of a column holds."""
    shown = cells.dropna()
    if not len(shown):
        return "nothing"
    objects = shown.dtype == object and all(isinstance(cell, bool) for cell in shown)
    if shown.dtype == bool or objects:
        return "truths"
    if cells.dtype.kind in "iuf":
        return "fractions" if cells.dtype.kind != "i" or len(shown) < len(cells) else "whole"
    return "words"


def _joint(found: set[str]) -> str:
    """Returns the type of a column of such pieces, as it would be read at once."""
    holes, rest = "nothing" in found, found - {"nothing"}
    if not rest:
        return "fractions"
    if rest == {"truths"}:
        return "truths"
    if rest & {"words", "truths"}:
        return "words"
    return "whole" if rest == {"whole"} and not holes else "fractions"
