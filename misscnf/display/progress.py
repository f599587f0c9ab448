"""A progress bar for long fits: held-out likelihood and time left, on standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

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

    def __call__(self, epoch: dict[str, Any], epochs: int) -> None:
        """Takes the record of an epoch."""
        found = [
            f"{words} {epoch[name] + nats:.4f}"
            for name, words, nats in zip(
                ("train", "validation"), ("train", "held out"), self.shift, strict=True
            )
            if name in epoch
        ]
        text = f"log-density a row: {', '.join(found)}" if found else ""
        self._bar.update(
            self._task,
            total=epochs,
            completed=epoch["epoch"],
            likelihood=text,
            stage=epoch.get("stage", "fitting"),
        )
