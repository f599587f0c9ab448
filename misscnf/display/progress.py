"""A progress bar for what takes long: steps done, a note, and time left, on standard error."""

from __future__ import annotations

import sys
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["ProgressBar"]


class ProgressBar:
    """A bar that is there while its `with` block runs; a watcher of `replicate_fit`.

    `show=None` shows it where standard error is a terminal.
    """

    def __init__(self, what: str, *, show: bool | None) -> None:
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not (sys.stderr.isatty() if show is None else show),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=None, note="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int, note: str = "", what: str | None = None) -> None:
        """Shows how many steps are done, of how many, with a note, and what is under way."""
        self._bar.update(self._task, total=total, completed=done, note=note, description=what)
