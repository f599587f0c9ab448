"""A progress bar for long fits: held-out likelihood and time left, on standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Protocol, Self

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
    """A bar that is there while its `with` block runs."""

    _bar: Progress

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()


class StepProgress(ShownBar):
    """Shows how many steps of something long are done; a watcher of `replicate_fit`.

    Arguments:
        what: What is counted.
        show: Whether to show anything; None shows it where standard error is a terminal.
    """

    def __init__(self, what: str, *, show: bool | None) -> None:
        self._bar = Progress(
            TextColumn(what),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not (sys.stderr.isatty() if show is None else show),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=None)

    def __call__(self, done: int, total: int) -> None:
        """Takes how many are done, and of how many."""
        self._bar.update(self._task, total=total, completed=done)


class Epoch(Protocol):
    """What a bar shows of an epoch of a fit."""

    @property
    def epoch(self) -> int:
        """Its number."""

    @property
    def train(self) -> float | None:
        """The log-density of training rows, where it is known."""

    @property
    def validation(self) -> float | None:
        """The log-density of held-out rows, where it is known."""

    @property
    def stage(self) -> str | None:
        """What is done, where it is no training."""


class FitProgress(ShownBar):
    """Shows the epochs of a fit; a watcher of `fit_model`.

    Arguments:
        show: Whether to show anything; None shows it where standard error is a terminal.
        shift: Nats a row that turn log-densities of standardised rows into the user's units,
            for training rows and for held-out rows.
    """

    def __init__(self, *, show: bool | None, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        self.shift = shift
        self._bar = Progress(
            TextColumn("{task.fields[stage]}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[likelihood]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not (sys.stderr.isatty() if show is None else show),
            transient=True,
        )
        self._task = self._bar.add_task("fitting", total=None, likelihood="", stage="fitting")

    def __call__(self, record: Epoch, epochs: int, /) -> None:
        """Takes the record of an epoch."""
        found = [
            f"{words} {log_density + nats:.4f}"
            for words, log_density, nats in zip(
                ("train", "held out"), (record.train, record.validation), self.shift, strict=True
            )
            if log_density is not None
        ]
        text = f"log-density a row: {', '.join(found)}" if found else ""
        self._bar.update(
            self._task,
            total=epochs,
            completed=record.epoch,
            likelihood=text,
            stage=record.stage or "fitting",
        )
