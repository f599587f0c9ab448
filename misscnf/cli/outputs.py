r"""What a command gives back: tables and JSON, whole or not at all.

A target is checked before the work starts: its extension, its folder, whether it may be written.
Files are written aside, all of them, and then moved into place, so that a full disk leaves what
was there before.

Several tables go into one, one below the other; two columns tell where a row belongs, as in mice:

.imp    1, 2, …  the table (0 for the rows as they came)
.id     1, 2, …  the row
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import typer

from misscnf.cli.endings import say
from misscnf.data.files import jsonable
from misscnf.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["carry_along", "number_rows", "check_table_target", "check_target", "write_table"]
__all__ += [
    "check_picture",
    "write_picture",
    "write_tables",
    "write_files",
    "staged",
    "json_text",
    "print_json",
    "in_batches",
    "TableParts",
]


def carry_along(frame: pd.DataFrame, drawn: pd.DataFrame) -> pd.DataFrame:
    """Returns draws of a table, one after the other, with its columns outside the graph."""
    places = np.tile(np.arange(len(frame)), len(drawn) // len(frame))
    given, drawn = frame.iloc[places].reset_index(drop=True), drawn.reset_index(drop=True)
    columns = []
    for j, name in enumerate(frame.columns):
        ends = [end for end in (f"{name}_lower", f"{name}_upper") if end in drawn]
        columns.append(drawn[[name, *ends]] if name in drawn else given.iloc[:, j])
    return pd.concat(columns, axis=1)


def number_rows(
    table: pd.DataFrame, name: str, draws: int, first: int = 1, rows_before: int = 0
) -> pd.DataFrame:
    """Returns draws, one after the other, with the number of the draw and of the row before."""
    for taken in (name, ".id"):
        if taken in table.columns:
            raise InputError(f"the table has a column {taken!r} already; rename or drop it.")
    rows = len(table) // draws
    numbers = {
        name: np.repeat(np.arange(first, first + draws), rows),
        ".id": np.tile(np.arange(1, rows + 1) + rows_before, draws),
    }
    return pd.concat([pd.DataFrame(numbers), table], axis=1)


def number_draws(courses: pd.DataFrame, name: str) -> pd.DataFrame:
    """Returns courses over time with the number of the draw before, where there are several."""
    found = courses.reset_index(drop=True)
    if courses.index.nlevels > 1:
        if name in found:
            raise InputError(f"the table has a column {name!r} already; rename or drop it.")
        found.insert(0, name, courses.index.get_level_values(0).to_numpy() + 1)
    return found


SEPARATORS = {".csv": ",", ".tsv": "\t"}


def check_table_target(out: str, *, json: bool) -> None:
    """Refuses a file that a table cannot be written to."""
    if out == "-":
        if json:
            raise InputError("--json: standard output has the table already; give --out a file.")
        return
    suffix = Path(out).suffix.lower()
    if suffix not in (*SEPARATORS, ".parquet"):
        raise InputError(
            f"--out {out!r} has the extension {suffix!r}; tables are written to "
            f"{', '.join(SEPARATORS)} and .parquet."
        )
    check_target(out)


def check_target(out: str, option: str = "--out", *, folder: bool = False) -> None:
    """Refuses a place that cannot be written to."""
    path = Path(out)
    if not out or "\0" in out or not path.resolve().name:
        raise InputError(f"{option}: {out[:80]!r} is no name that can be written to; give one.")
    if not path.parent.is_dir():
        raise InputError(f"{option}: there is no folder {str(path.parent)!r}; make it first.")
    if path.exists() and path.is_dir() != folder:
        wanted, found = ("folder", "file") if folder else ("file", "folder")
        raise InputError(f"{option}: {out!r} is a {found}; name a {wanted}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option}: {out!r} may not be written by you.")


def write_table(frame: pd.DataFrame, out: str, *, json: bool = False) -> None:
    """Writes a table to a file, or as CSV to standard output."""
    if out == "-":
        _print_bytes(_render(frame, ".csv"))
    else:
        write_tables({out: frame}, json=json)


def _print_bytes(data: bytes) -> None:
    """Writes all of it: an unbuffered stream may take a part and say so only by its length."""
    left, stream = memoryview(data), sys.stdout.buffer
    while left:
        left = left[stream.write(left) :]
    stream.flush()


def write_tables(frames: Mapping[str, pd.DataFrame], *, json: bool = False) -> None:
    """Writes tables to files, all of them or none, and says so."""
    write_files({out: _render(frame, Path(out).suffix) for out, frame in frames.items()})
    for out, frame in frames.items():
        say(f"wrote {len(frame)} rows to {out}")
    if json:
        written = [
            {"file": out, "rows": len(frame), "columns": list(frame.columns)}
            for out, frame in frames.items()
        ]
        print_json({"written": written})


def check_picture(plot: str) -> None:
    """Refuses a file that a picture cannot be written to."""
    if Path(plot).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"--plot {plot!r}: a picture is a .png, .svg or .pdf file.")
    check_target(plot, "--plot")


def write_picture(plot: str, axes: Axes) -> None:
    """Writes a picture to a file, and says so."""
    buffer, figure = io.BytesIO(), axes.get_figure(root=True)
    assert figure is not None
    figure.savefig(buffer, format=Path(plot).suffix.lower()[1:], dpi=150)
    write_files({plot: buffer.getvalue()})
    say(f"wrote {plot}")


def write_files(contents: Mapping[str, bytes]) -> None:
    """Writes files, all of them or none."""
    with ExitStack() as stack:  # all are moved into place when the last is written
        for out, data in contents.items():
            part = stack.enter_context(_aside(out))
            with _saying(out):
                part.write_bytes(data)


@contextmanager
def staged(out: str, *, folder: bool = False) -> Iterator[Path]:
    """Gives a file or a folder to fill, and moves it into place when nothing went wrong."""
    with _saying(out), _aside(out) as part:
        if folder:
            part.mkdir()
        yield part


class TableParts:
    """A table that is written a batch at a time, aside; several of them may become one file.

    Arguments:
        path: Where it is written.
        suffix: What it will be: ".csv", ".tsv" or ".parquet".
        types: The types of columns that a first batch may leave open, as it has no value of them.
    """

    def __init__(self, path: Path, suffix: str, types: Mapping[str, pa.DataType]) -> None:
        self.path, self.suffix, self.types = path, suffix.lower(), types
        self.rows, self.columns = 0, list[str]()
        self._writer: Any = None

    def add(self, frame: pd.DataFrame) -> None:
        """Writes some rows below the others."""
        self.rows += len(frame)
        if self.suffix == ".parquet":
            self.add_arrow(pa.Table.from_pandas(frame, preserve_index=False))
        else:
            text = _render(frame, self.suffix)
            with self.path.open("ab") as file:
                file.write(text if not self.columns else text.partition(b"\n")[2])
        self.columns = list(map(str, frame.columns))

    def add_arrow(self, table: pa.Table) -> None:
        """Writes some rows of a Parquet file."""
        if self._writer is None:
            fields = [
                pa.field(at.name, self.types.get(at.name, at.type))
                if pa.types.is_null(at.type)
                else at
                for at in table.schema
            ]
            self._writer = pq.ParquetWriter(self.path, pa.schema(fields, table.schema.metadata))
        self._writer.write_table(table.cast(self._writer.schema))

    def follow(self, others: Sequence[TableParts]) -> None:
        """Writes the rows of other parts, one after the other."""
        for number, other in enumerate(others):
            other.close()
            self.rows, self.columns = self.rows + other.rows, other.columns
            if self.suffix == ".parquet":
                for batch in pq.ParquetFile(other.path).iter_batches():
                    self.add_arrow(pa.Table.from_batches([batch]))
            else:
                with other.path.open("rb") as source, self.path.open("ab") as file:
                    if number:
                        source.readline()
                    shutil.copyfileobj(source, file)

    def close(self) -> None:
        """Ends the file."""
        if self._writer is not None:
            self._writer.close()


@contextmanager
def in_batches(
    outs: Sequence[str], parts: int, types: Mapping[str, pa.DataType], *, json: bool
) -> Iterator[list[TableParts]]:
    """Gives tables to be written a batch at a time, and moves them into place at the end.

    Arguments:
        outs: The files: one for each part, or one for all of them, one after the other.
        parts: How many tables there are.
        types: As in `TableParts`.
        json: Whether to say so as JSON.
    """
    with ExitStack() as stack:
        for out in outs:
            stack.enter_context(_saying(out))
        asides = [stack.enter_context(_aside(out)) for out in outs]
        suffix, folder = Path(outs[0]).suffix, asides[0].parent
        own = len(outs) == parts
        paths = asides
        if not own:
            kept = tempfile.TemporaryDirectory(prefix=".misscnf-", dir=folder)
            paths = [Path(stack.enter_context(kept)) / str(part) for part in range(parts)]
        tables = [TableParts(path, suffix, types) for path in paths]
        yield tables
        done = tables
        if not own:
            done = [TableParts(asides[0], suffix, types)]
            done[0].follow(tables)
        for table in done:
            table.close()
    for out, table in zip(outs, done, strict=True):
        say(f"wrote {table.rows} rows to {out}")
    if json:
        pairs = zip(outs, done, strict=True)
        written = [{"file": out, "rows": of.rows, "columns": of.columns} for out, of in pairs]
        print_json({"written": written})


@contextmanager
def _aside(out: str) -> Iterator[Path]:
    target = Path(out).resolve()  # through a link, not over it
    part = target.with_name(f".{os.getpid()}-part-{target.name}")
    try:
        yield part
        if part.is_dir() and target.exists():
            for file in sorted(part.iterdir(), key=lambda path: path.suffix == ".json"):
                os.replace(file, target / file.name)  # JSON last: it vouches for the others
        else:
            os.replace(part, target)
    finally:
        if part.is_dir():
            shutil.rmtree(part, ignore_errors=True)
        else:
            part.unlink(missing_ok=True)


@contextmanager
def _saying(out: str) -> Iterator[None]:
    """Says what could not be written by the name that was given, not by that of its part."""
    try:
        yield
    except (InputError, OSError) as error:
        cause = error.__cause__ if isinstance(error, InputError) else error
        if not isinstance(cause, OSError):
            raise
        raise InputError(f"{out!r} cannot be written: {cause.strerror or cause}.") from error


def _render(frame: pd.DataFrame, suffix: str) -> bytes:
    if suffix.lower() == ".parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        return buffer.getvalue()
    separator, written = SEPARATORS[suffix.lower()], frame.apply(_as_written)
    return written.to_csv(index=False, sep=separator, lineterminator="\n").encode()


def _as_written(cells: pd.Series) -> pd.Series:
    """Whole numbers without a fraction: holes made them floats when they were read."""
    if cells.dtype != np.float64 or cells.empty:
        return cells
    whole = (cells == np.rint(cells)).all() and cells.abs().max() < 2**53
    return cells.astype(np.int64) if whole else cells


def json_text(value: object) -> str:
    """Returns anything that an answer holds as one JSON object."""
    return dumps(jsonable(value), indent=2, ensure_ascii=False)


def print_json(value: object) -> None:
    """Prints anything that an answer holds as one JSON object."""
    typer.echo(json_text(value))
