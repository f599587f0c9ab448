"""Files: tables are read whole or refused, and what is written is written whole or not at all.

What a file shows is what the DataFrame holds, or a sentence says why not.

A reader never guesses. Header names come back as written, where pandas would rename a repeated
``x`` to ``x.1``, and a file whose rows are longer than its header is refused, where pandas would
shift it by a column.
"""

__all__ = ["read_table", "write_atomically", "digest", "jsonable"]

import dataclasses
import hashlib
import math
import os
import uuid
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from misscnf.errors import InputError
from misscnf.paths import expanded


def read_table(
    source: pd.DataFrame | str | os.PathLike[str], name: str | None = None
) -> pd.DataFrame:
    """Reads a table of at least one row.

    Empty fields and the usual words of pandas (``NA``, ``NaN``, ``null``, ...) are holes. For any
    other word, read the file with ``pandas.read_csv(path, na_values=...)`` and pass the DataFrame.

    Arguments:
        source: A DataFrame, returned as it is, or the path of a .csv, .tsv or .parquet file.
        name: What sentences call it; by default the path.
    """
    if isinstance(source, pd.DataFrame):
        name, frame = name or "the table", source
    elif isinstance(source, str | os.PathLike):
        path = expanded(source)
        name = name or repr(str(path))
        frame = _read_file(path, name)
    else:
        raise InputError(
            f"a table is a pandas DataFrame or the path of a file, not {type(source).__name__}; "
            f"make it one with pandas.DataFrame(..., columns=[...])."
        )
    if len(frame) == 0:
        raise InputError(f"{name} has no rows; at least one is needed.")
    return frame


def _read_file(path: Path, name: str) -> pd.DataFrame:
    _check_file(path, name)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"{name} has the extension {path.suffix!r}, and tables are read from "
            f"{', '.join(_READERS)}; convert it, or read it with pandas and pass the DataFrame."
        )
    try:
        return reader(path)
    except pd.errors.EmptyDataError:
        raise InputError(f"{name} is empty; a header and rows are expected.") from None
    except UnicodeDecodeError as problem:
        raise InputError(
            f"{name} is not UTF-8 text ({problem.reason} at byte {problem.start}); save it "
            f"as such, or read it with pandas.read_csv(path, encoding=...) and pass the DataFrame."
        ) from problem
    except pd.errors.ParserWarning:
        raise InputError(
            f"{name} has rows with more fields than its header has names; name every "
            f"column, or read it with pandas.read_csv(path, index_col=0) and pass the DataFrame."
        ) from None
    except Exception as problem:  # readers trip over bad bytes in many ways
        reason = " ".join(str(problem).split())
        raise InputError(f"{name} cannot be read as {path.suffix}: {reason}") from problem


def _check_file(path: Path, name: str) -> None:
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        raise InputError(f"there is no file {name}; check the path.") from None
    except (OSError, ValueError) as problem:
        raise InputError(f"the path {str(path)[:80]!r} cannot be opened: {problem}") from problem
    if path.is_dir():
        raise InputError(f"{name} is a directory; give the path of one file.")
    if size == 0:
        raise InputError(f"{name} is empty; a header and rows are expected.")


def _read_text(path: Path, separator: str) -> pd.DataFrame:
    header = pd.read_csv(
        path, sep=separator, header=None, nrows=1, dtype=str, keep_default_na=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        # Left to itself, pandas takes the first field of rows longer than the header for an
        # index. Here an empty last field is dropped, and a filled one raises the warning.
        frame = pd.read_csv(path, sep=separator, index_col=False, low_memory=False)
    pairs = zip(header.iloc[0], frame.columns, strict=True)
    return frame.set_axis([name or renamed for name, renamed in pairs], axis=1)


def _read_parquet(path: Path) -> pd.DataFrame:
    frame = pd.read_parquet(path)
    for name, cells in frame.items():
        texts = cells.cat.categories if isinstance(cells.dtype, pd.CategoricalDtype) else cells
        try:
            if isinstance(texts.dtype, pd.StringDtype):
                texts.tolist()  # Arrow decodes its bytes when they are asked for, and not before
        except UnicodeDecodeError as error:
            raise ValueError(f"the column {name!r} has bytes that are not UTF-8 text.") from error
    return frame


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": partial(_read_text, separator=","),
    ".tsv": partial(_read_text, separator="\t"),
    ".parquet": _read_parquet,
}


def digest(data: bytes) -> str:
    """Returns the SHA-256 of some bytes."""
    return hashlib.sha256(data).hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that a reader, or a crash, sees the old one or the new one, never half."""
    # Made by `open`, so that others may read it as they may any new file of this person.
    temporary = path.parent / f".{path.name}.{uuid.uuid4().hex}"
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def jsonable(value: Any) -> Any:  # noqa: ANN401 - whatever a result holds
    """Returns what JSON can write: no dataclasses, no tables, no numpy, no NaN, no infinity."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, pd.DataFrame):
        value = value.to_dict(orient="records")
    if isinstance(value, Mapping):
        return {str(key): jsonable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray | pd.Series):
        return [jsonable(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
