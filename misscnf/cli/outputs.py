r"""What a command gives back: tables and JSON, whole or not at all.

A target is checked before the work starts: its extension, its folder, whether it may be written.
Files are written aside, all of them, and then moved into place, so that a full disk leaves what
was there before.
"""

from __future__ import annotations

import dataclasses
import io
import math
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from json import dumps
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import typer

from misscnf.cli.notices import say
from misscnf.errors import InputError

__all__ = [
    "check_table_target",
    "check_target",
    "write_table",
    "write_tables",
    "write_files",
    "staged",
    "staged_folder",
    "print_json",
]

STDOUT = "-"
SEPARATORS = {".csv": ",", ".tsv": "\t"}


def check_table_target(out: str, *, json: bool) -> None:
    """Refuses a file that a table cannot be written to.

    Arguments:
        out: The file, or - for standard output.
        json: Whether standard output is for JSON.
    """
    if out == STDOUT:
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
    """Refuses a place that cannot be written to.

    Arguments:
        out: The path.
        option: The option that it follows.
        folder: Whether it is to be a folder.
    """
    path = Path(out)
    if not path.parent.is_dir():
        raise InputError(f"{option}: there is no folder {str(path.parent)!r}; make it first.")
    if path.exists() and path.is_dir() != folder:
        wanted, found = ("folder", "file") if folder else ("file", "folder")
        raise InputError(f"{option}: {out!r} is a {found}; name a {wanted}.")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InputError(f"{option}: {out!r} may not be written by you.")


def write_table(frame: pd.DataFrame, out: str, *, json: bool = False) -> None:
    """Writes a table to a file, or as CSV to standard output."""
    if out == STDOUT:
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


def write_files(contents: Mapping[str, bytes]) -> None:
    """Writes files, all of them or none."""
    parts: dict[Path, Path] = {}
    try:
        for out, data in contents.items():
            target = Path(out).resolve()  # through a link, not over it
            parts[_part(target)] = target
            with _saying(out):
                _part(target).write_bytes(data)
        for part, target in parts.items():
            os.replace(part, target)
    finally:
        for part in parts:
            part.unlink(missing_ok=True)


@contextmanager
def staged(out: str) -> Iterator[Path]:
    """Gives a path to write to, and moves it into place when nothing went wrong."""
    target = Path(out).resolve()
    part = _part(target)
    try:
        with _saying(out, part):
            yield part
            os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def staged_folder(out: str) -> Iterator[Path]:
    """Gives a folder to fill, and moves what is in it into place when nothing went wrong."""
    target = Path(out).resolve()
    part = _part(target)
    try:
        with _saying(out, part):
            part.mkdir()
            yield part
            if not target.exists():
                os.rename(part, target)
                return
            for file in sorted(part.iterdir(), key=lambda path: path.suffix == ".json"):
                os.replace(file, target / file.name)  # JSON last: it vouches for the others
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _saying(out: str, part: Path | None = None) -> Iterator[None]:
    """Says what could not be written by the name that was given, not by that of its part."""
    try:
        yield
    except InputError as error:
        raise InputError(str(error).replace(str(part), out)) from error
    except OSError as error:
        raise InputError(f"{out!r} cannot be written: {error.strerror or error}.") from error


def _part(target: Path) -> Path:
    return target.with_name(f".{os.getpid()}-part-{target.name}")


def _render(frame: pd.DataFrame, suffix: str) -> bytes:
    if suffix.lower() == ".parquet":
        buffer = io.BytesIO()
        frame.to_parquet(buffer, index=False)
        return buffer.getvalue()
    separator = SEPARATORS[suffix.lower()]
    return _as_written(frame).to_csv(index=False, sep=separator, lineterminator="\n").encode()


def _as_written(frame: pd.DataFrame) -> pd.DataFrame:
    """Whole numbers without a fraction: holes made them floats when they were read."""
    whole = {}
    for j, dtype in enumerate(frame.dtypes):
        if dtype != np.float64:
            continue
        numbers = frame.iloc[:, j].to_numpy()
        if len(numbers) and (numbers == np.rint(numbers)).all() and np.abs(numbers).max() < 2**53:
            whole[j] = numbers.astype(np.int64)
    columns = [
        pd.Series(whole.get(j, frame.iloc[:, j].array), name=name)
        for j, name in enumerate(frame.columns)
    ]
    return pd.concat(columns, axis=1) if whole else frame


def print_json(value: object) -> None:
    """Prints anything that an answer holds as one JSON object."""
    typer.echo(dumps(_plain(value), indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever an answer holds
    """Returns what JSON can write: no numpy, no NaN, no infinity."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, pd.DataFrame):
        value = value.to_dict(orient="records")
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray | pd.Series):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
