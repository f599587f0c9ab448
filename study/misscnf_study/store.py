r"""A store: a directory with one CSV a suite and one line a trial, for people and programs alike.

    results/main.csv                 the rows
    results/curves/<trial>.csv       the local KL of a trial, where its suite asks for it
    results/unfinished/<trial>/      checkpoints of fits that run, or were killed

A row is one line, appended in one write under a lock and synced before anyone is told. A line
without its end (a process killed in the middle of it, a full disk) is no row: readers leave it
out and the next writer cuts it off. The newest row of a trial wins. So a store survives kill -9
and sweeps that run side by side, and two stores join by appending one file to the other.
"""

from __future__ import annotations

import contextlib
import csv
import fcntl
import io
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pandas as pd

from misscnf import InputError
from misscnf.cli.plugin import write_atomically
from misscnf_study.suites import Cell, Trial

__all__ = ["Store", "COLUMNS"]

KEY = ("suite", "scm", "mechanism", "rate", "method", "preset", "seed", "draws", "rows", "epochs")
NUMBERS = ("kl", "kl_exact", "ate", "ate_exact", "cf", "seconds")
COLUMNS = (*KEY, *NUMBERS, "status", "error", "version")
"""What a row has: the trial, its numbers, its status (ok, failed or impossible), an error as one
line, and the version of misscnf that wrote it."""
ANSWERS = ("answer", "estimate", "lower", "upper", "seconds")
"""The numbers of a suite that asks for an effect, with the answer that is known."""
NUMBERS_OF = {"real": ANSWERS}
"""Suites whose rows have other numbers."""


def columns_of(suite: str) -> tuple[str, ...]:
    """Returns what the rows of a suite have."""
    return (*KEY, *NUMBERS_OF.get(suite, NUMBERS), "status", "error", "version")


class Store:
    """A directory of results.

    Arguments:
        folder: The directory; made when something is added.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise InputError(f"the store {str(folder)!r} is a file; name a directory.")

    @property
    def unfinished(self) -> Path:
        """Where fits keep their checkpoints while they run."""
        return self.folder / "unfinished"

    def add(
        self, trial: Trial, row: Mapping[str, Cell], curve: pd.DataFrame | None = None
    ) -> None:
        """Keeps the row of a trial, and its curve if there is one; drops its checkpoints.

        Arguments:
            trial: The trial.
            row: The columns after the trial's own; what is left out stays empty.
            curve: The local KL, a row a bin.
        """
        unknown = sorted(set(row) - set(columns_of(trial.suite)))
        if unknown:
            raise ValueError(f"a row has no column {unknown[0]!r}")
        if curve is not None:
            folder = self.folder / "curves"
            folder.mkdir(parents=True, exist_ok=True)
            text = curve.to_csv(index=False, lineterminator="\n")
            write_atomically(folder / f"{trial.id}.csv", text.encode())
        self._append(trial.suite, _line({**trial.to_dict(), **row}, columns_of(trial.suite)))
        shutil.rmtree(self.unfinished / trial.id, ignore_errors=True)
        with contextlib.suppress(OSError):  # others may be unfinished
            self.unfinished.rmdir()

    def rows(self, suite: str) -> pd.DataFrame:
        """Returns the newest row of each trial of a suite, by the trial's id."""
        newest: dict[str, dict[str, Cell]] = {}
        for trial, record in self._records(suite):
            newest.pop(trial, None)  # so that the newest also comes last
            newest[trial] = record
        index = pd.Index(list(newest), name="id")
        columns = list(columns_of(suite))
        return _typed(pd.DataFrame(list(newest.values()), index=index, columns=columns))

    def curves(self, suite: str) -> pd.DataFrame:
        """Returns all curves of a suite below one another, with the columns of their trials."""
        parts = []
        for path in sorted((self.folder / "curves").glob(f"{suite}-*.csv")):
            trial = Trial.read(path.name.removesuffix(".csv"))
            parts.append(_typed(pd.read_csv(path).assign(**trial.to_dict())))
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(KEY))
        return _typed(frame)

    def _append(self, suite: str, line: bytes) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{suite}.csv"
        header = _text(columns_of(suite))
        with _locked(path) as file:
            _cut_unended_line(file)
            if os.fstat(file).st_size == 0:
                line = header + line
            elif os.pread(file, len(header), 0) != header:
                raise InputError(
                    f"{str(path)!r} has other columns than this version of misscnf writes; "
                    "name another store."
                )
            written = os.write(file, line)
            os.fsync(file)
        if written != len(line):
            raise OSError(f"the disk took {written} of {len(line)} bytes of a row")

    def _records(self, suite: str) -> Iterator[tuple[str, dict[str, Cell]]]:
        """Yields the rows of a suite as they were written, each with the id of its trial."""
        path = self.folder / f"{suite}.csv"
        if not path.exists():
            return
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
        header, *rest = list(csv.reader(lines[:-1])) or [[]]  # without its end a line is no row
        for number, fields in enumerate(rest, start=2):
            if fields == header:  # two stores were joined
                continue
            try:
                record = dict(zip(header, fields, strict=True))
                row: dict[str, Cell] = {name: record[name] or None for name in columns_of(suite)}
                yield Trial.of(record).id, row
            except (KeyError, ValueError) as error:
                raise InputError(
                    f"line {number} of {str(path)!r} is not a row: {error}."
                ) from error


def _typed(frame: pd.DataFrame) -> pd.DataFrame:
    for name in frame.columns.intersection(["rate", *NUMBERS, *ANSWERS]):
        frame[name] = pd.to_numeric(frame[name]).astype("float64")
    for name in frame.columns.intersection(["seed", "draws", "rows", "epochs"]):
        frame[name] = pd.to_numeric(frame[name]).astype("Int64")
    return frame


def _line(row: Mapping[str, Cell], columns: Iterable[str]) -> bytes:
    return _text(_cell(row.get(name)) for name in columns)


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.8g}"
    return " ".join(str(value).split())  # one line, whatever an error says


def _text(cells: Iterable[str]) -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow(cells)
    return buffer.getvalue().encode()


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # released when the file closes, also by a kill
        yield file
    finally:
        os.close(file)


def _cut_unended_line(file: int) -> None:
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        os.ftruncate(file, os.pread(file, size, 0).rfind(b"\n") + 1)
