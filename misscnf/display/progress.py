"""A progress bar for long fits: held-out likelihood and time left, on standard error."""

from __future__ import annotations

import sys
from typing import Any, Protocol, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["FitProgress", "ShownBar", "StepProgress"]


class ShownBar:
    """A bar while its `with` block runs; None shows it where standard error is a terminal.

    Columns stand between the count and the time, and show their fields.
    """

    def __init__(
        self,
        what: str,
        columns: tuple[TextColumn, ...] = (),
        *,
        show: bool | None,
        **fields: Any,  # noqa: ANN401 - rich's
    ) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            *columns,
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not (sys.stderr.isatty() if show is None else show),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=None, **fields)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()


class StepProgress(ShownBar):
    """Shows how many steps of something long are done; a watcher of `replicate_fit`."""

    def __call__(self, done: int, total: int) -> None:
        """Takes how many are done, and of how many."""
        self._bar.update(self._task, total=total, completed=done)


class _Epoch(Protocol):
    """What a bar shows of an epoch of a fit: log-densities of rows, where they are known.

    Its stage is what is done where that is no training.
    """

    @property
    def epoch(self) -> int: ...

    @property
    def train(self) -> float | None: ...

    @property
    def validation(self) -> float | None: ...

    @property
    def stage(self) -> str | None: ...


class FitProgress(ShownBar):
    """Shows the epochs of a fit; a watcher of `fit_model`.

    The shift is the nats a row that turn log-densities of standardised rows into the user's units,
    for training rows and for held-out rows.
    """

    def __init__(self, *, show: bool | None, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        columns = (TextColumn("{task.fields[likelihood]}"),)
        super().__init__("fitting", columns, show=show, likelihood="")
        self.shift = shift

    def __call__(self, record: _Epoch, epochs: int, /) -> None:
        """Takes the record of an epoch."""
        names = (("train", record.train), ("held out", record.validation))
        found = [
            f"{words} {log_density + nats:.4f}"
            for (words, log_density), nats in zip(names, self.shift, strict=True)
            if log_density is not None
        ]
        self._bar.update(
            self._task,
            total=epochs,
            completed=record.epoch,
            likelihood=f"log-density a row: {', '.join(found)}" if found else "",
            description=record.stage or "fitting",
        )
