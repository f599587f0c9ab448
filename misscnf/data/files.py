"""Files: tables are read whole or refused, and what is written is written whole or not at all.

What a file shows is what the DataFrame holds, or a sentence says why not.

A reader never guesses. Header names come back as written, where pandas would rename a repeated
``x`` to ``x.1``, and a file whose rows are longer than its header is refused, where pandas would
shift it by a column. A header without commas says by itself what separates its names, and a note
says what was found. Stata, SPSS and SAS files bring the labels of their values along.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import logging
import math
import os
import re
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from misscnf.data.cells import listed
from misscnf.data.parquet import Shards
from misscnf.errors import InputError
from misscnf.paths import expanded

__all__ = ["Reading", "read_table", "write_atomically", "digest", "jsonable"]
__all__ += ["apply_reading", "read_text_in_parts", "text_cells"]

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class Reading:
    """How a file is read, where it does not say so itself."""

    na: tuple[str, ...] = ()
    """Further words and numbers that stand for a hole, such as -99."""
    separator: str | None = None
    """Between the fields of a line; None for what the header says."""
    decimal: str | None = None
    """Before the fraction of a number; None for a point, or what a file with semicolons shows."""
    dates: tuple[str, ...] = ()
    """Columns of dates that become numbers: the days since 1970-01-01."""

    def of(self, columns: Sequence[object]) -> Reading:
        """Returns how some of the columns are read."""
        return replace(self, dates=tuple(name for name in self.dates if name in columns))


def read_table(
    source: pd.DataFrame | str | os.PathLike[str],
    name: str | None = None,
    reading: Reading | None = None,
) -> pd.DataFrame:
    """Reads a table of at least one row.

    Empty fields and the usual words of pandas (``NA``, ``NaN``, ``null``, ...) are holes, and
    further ones if they are named.

    Arguments:
        source: A DataFrame, returned as it is, or the path of a file: .csv or .tsv (or these with
            .gz), .parquet, .dta, .sav, .sas7bdat, .xpt.
        name: What sentences call it; by default the path.
        reading: How a file is read.
    """
    reading = reading or Reading()
    if isinstance(source, pd.DataFrame):
        name, frame = name or "the table", source
    elif isinstance(source, str | os.PathLike):
        path = expanded(source)
        name = name or repr(str(path))
        frame = apply_reading(_read_file(path, name, reading), reading, name)
    else:
        raise InputError(
            f"a table is a pandas DataFrame or the path of a file, not {type(source).__name__}; "
            f"make it one with pandas.DataFrame(..., columns=[...])."
        )
    if len(frame) == 0:
        raise InputError(f"{name} has no rows; at least one is needed.")
    return frame


def apply_reading(frame: pd.DataFrame, reading: Reading, name: str) -> pd.DataFrame:
    """Makes holes of the marks for one, and numbers of dates."""
    return _dated(_without_codes(frame, reading), reading, name)


def _read_file(path: Path, name: str, reading: Reading) -> pd.DataFrame:
    _check_file(path, name)
    if path.is_dir():
        return Shards.open(path).read().to_pandas()
    plain = path.with_suffix("") if path.suffix.lower() == ".gz" else path
    reader = _READERS.get(plain.suffix.lower())
    if reader is None or (plain is not path and reader not in (_read_csv, _read_tsv)):
        raise InputError(
            f"{name} has the extension {path.suffix!r}, and tables are read from "
            f"{', '.join(_READERS)}; convert it, or read it with pandas and pass the DataFrame."
        )
    with _explaining(path, name):
        return reader(path, reading)


@contextmanager
def _explaining(path: Path, name: str) -> Iterator[None]:
    """Says in a sentence what readers trip over."""
    try:
        yield
    except InputError:
        raise
    except ImportError as problem:
        raise InputError(
            f"{name} needs a package that is not installed ({problem.name}); install it with "
            f"`pip install 'misscnf[files]'`."
        ) from problem
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
        if not any(path.rglob("*.parquet")):
            raise InputError(
                f"{name} is a directory without .parquet files; give the path of one file."
            )
        return
    if size == 0:
        raise InputError(f"{name} is empty; a header and rows are expected.")


def _read_csv(path: Path, reading: Reading) -> pd.DataFrame:
    return _read_text(path, *_signs(path, reading), reading.na)


def _read_tsv(path: Path, reading: Reading) -> pd.DataFrame:
    return _read_text(path, *_signs(path, reading), reading.na)


def _signs(path: Path, reading: Reading) -> tuple[str, str]:
    """Returns what separates the fields of a text, and its decimal sign."""
    separator, decimal = reading.separator, reading.decimal
    if separator is None and ".tsv" in [end.lower() for end in path.suffixes[-2:]]:
        separator = "\t"
    if separator is None:
        separator, found = _sniff(path)
        decimal = decimal or found
    return separator, decimal or "."


def read_text_in_parts(
    path: Path, name: str, reading: Reading, rows: int, types: Mapping[Any, type]
) -> Iterator[pd.DataFrame]:
    """Yields the rows of a CSV or TSV, so many at a time; some columns as types that are given."""
    _check_file(path, name)
    with _explaining(path, name), warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        separator, decimal = _signs(path, reading)
        names = _header(path, separator)
        about = {**_as_text(separator, decimal, reading.na), "chunksize": rows}
        first = pd.read_csv(path, sep=separator, nrows=0, index_col=False).columns
        renamed = dict(zip(names, first, strict=True))
        for part in pd.read_csv(
            path, dtype={renamed[at]: of for at, of in types.items()}, **about
        ):
            yield part.set_axis(names, axis=1)


def text_cells(path: Path, reading: Reading) -> int:
    """Returns how many fields a CSV or TSV has, by its lines."""
    with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
        lines = sum(block.count(b"\n") for block in iter(lambda: file.read(2**22), b""))
    if not lines:
        return 0
    with _explaining(path, repr(str(path))):
        return lines * len(_header(path, _signs(path, reading)[0]))


def _sniff(path: Path) -> tuple[str, str]:
    """Returns what separates the names of a header, and the decimal sign of a semicolon file."""
    with gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb") as file:
        start = file.read(2**16).decode("utf-8", "replace")
    header = re.sub(r'"[^"]*"', "", start.partition("\n")[0])
    separator = max(";\t|", key=header.count)
    if "," in header or separator not in header:
        return ",", "."
    decimal = "," if re.search(r"(^|;)\s*[-+]?\d+,\d+\s*(;|$)", start, re.MULTILINE) else "."
    commas = ", with decimal commas" if decimal == "," else ""
    logger.info("%s is taken as separated by %r%s.", path.name, separator, commas)
    return separator, decimal


def _read_text(path: Path, separator: str, decimal: str, na: Sequence[str]) -> pd.DataFrame:
    names = _header(path, separator)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        # Left to itself, pandas takes the first field of rows longer than the header for an
        # index. Here an empty last field is dropped, and a filled one raises the warning.
        frame = pd.read_csv(path, **_as_text(separator, decimal, na))
    return frame.set_axis([name or of for name, of in zip(names, frame, strict=True)], axis=1)


def _as_text(separator: str, decimal: str, na: Sequence[str]) -> dict[str, Any]:
    """Returns how pandas is to read a text."""
    return {
        "sep": separator,
        "decimal": decimal,
        "na_values": list(na) or None,
        "index_col": False,
        "low_memory": False,
    }


def _header(path: Path, separator: str) -> list[str]:
    """Returns the names of columns as written, where pandas would rename a repeated one."""
    about: dict[str, Any] = {"sep": separator, "header": None, "nrows": 1, "dtype": str}
    return list(pd.read_csv(path, keep_default_na=False, **about).iloc[0])


def _without_codes(frame: pd.DataFrame, reading: Reading) -> pd.DataFrame:
    """Makes holes of the words and numbers that stand for one, whatever the file."""
    if not reading.na:
        return frame
    numbers = pd.to_numeric(pd.Series(reading.na, dtype=object), errors="coerce").dropna()
    return frame.where(~frame.isin([*reading.na, *numbers]))


def _dated(frame: pd.DataFrame, reading: Reading, name: str) -> pd.DataFrame:
    """Makes numbers of columns of dates: days since 1970-01-01."""
    found = {}
    for column in reading.dates:
        if column not in frame.columns:
            raise InputError(f"{name} has no column {column!r} of dates; check its name.")
        try:
            dates = pd.to_datetime(frame[column], format="ISO8601")  # 03/04 is March or April
        except (ValueError, TypeError) as problem:
            raise InputError(
                f"the column {column!r} of {name} cannot be read as dates ({problem}); write them "
                f"as 2024-03-31."
            ) from problem
        found[column] = (dates - pd.Timestamp("1970-01-01", tz=dates.dt.tz)) / pd.Timedelta(days=1)
    return frame.assign(**found)


def _read_parquet(path: Path, reading: Reading) -> pd.DataFrame:
    frame = pd.read_parquet(path)
    for name, cells in frame.items():
        texts = cells.cat.categories if isinstance(cells.dtype, pd.CategoricalDtype) else cells
        try:
            if isinstance(texts.dtype, pd.StringDtype):
                texts.tolist()  # Arrow decodes its bytes when they are asked for, and not before
        except UnicodeDecodeError as error:
            raise ValueError(f"the column {name!r} has bytes that are not UTF-8 text.") from error
    return frame


def _read_stata(path: Path, reading: Reading) -> pd.DataFrame:
    # Labels of values have an order in the file that nobody meant.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.CategoricalConversionWarning)  # said below
        frame = pd.read_stata(path, order_categoricals=False)
    return _fully_labelled(frame, lambda: pd.read_stata(path, convert_categoricals=False))


def _read_spss(path: Path, reading: Reading) -> pd.DataFrame:
    return _fully_labelled(
        pd.read_spss(path), lambda: pd.read_spss(path, convert_categoricals=False)
    )


def _fully_labelled(frame: pd.DataFrame, plainly: Callable[[], pd.DataFrame]) -> pd.DataFrame:
    """Returns a table where labels stand for values only if all values of a column have one.

    A scale of which only the ends are named, or a number with a name for its code of missing
    values, stays the number that it is.
    """
    partly = [
        name
        for name, cells in frame.items()
        if isinstance(cells.dtype, pd.CategoricalDtype)
        and any(isinstance(level, str) for level in cells.cat.categories)
        and not all(isinstance(level, str) for level in cells.cat.categories)
    ]
    if not partly:
        return frame
    logger.info(
        "Not every value of %s has a label in the file: the numbers stand, and the labels are "
        "left out.",
        listed(partly),
    )
    return frame.assign(**{str(name): plainly()[name] for name in partly})


def _read_sas(path: Path, reading: Reading) -> pd.DataFrame:
    return pd.read_sas(path, encoding="infer")  # as the file says: seldom UTF-8


def _read_transport(path: Path, reading: Reading) -> pd.DataFrame:
    with path.open("rb") as file:
        newer = b"LIBV8" in file.read(80)  # SAS writes two formats of this name
    if not newer:  # nor does it say how its text is written
        try:
            return pd.read_sas(path, encoding="utf-8")
        except UnicodeDecodeError:
            logger.info("%s is not UTF-8 text; it is read as Windows-1252.", path.name)
            return pd.read_sas(path, encoding="cp1252")
    import pyreadstat  # what `pandas.read_spss` uses

    return pyreadstat.read_xport(path)[0]


_READERS: dict[str, Callable[[Path, Reading], pd.DataFrame]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": _read_parquet,
    ".dta": _read_stata,
    ".sav": _read_spss,
    ".zsav": _read_spss,
    ".sas7bdat": _read_sas,
    ".xpt": _read_transport,
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
