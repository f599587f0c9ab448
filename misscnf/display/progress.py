r"""Progress of what takes long: a bar in a terminal, now and then a line in a log.

A line has the stage, the share that is done, the time since the start and what is left of it,

    left = elapsed · (1 − share) / share,

and goes through the package's log, so that `--quiet` leaves it out.
"""

from __future__ import annotations

import logging
import sys
import time
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

logger = logging.getLogger("misscnf")


class ProgressBar:
    """A bar that is there while its `with` block runs; a watcher of `replicate_fit`.

    `show=None` shows it where standard error is a terminal, and lines elsewhere: so few that a log
    stays short, so many that nobody thinks that the work has stopped.
    """

    def __init__(self, what: str, *, show: bool | None, seconds_a_line: float = 15.0) -> None:
        terminal = sys.stderr.isatty()
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not (terminal if show is None else show),
            transient=True,
        )
        self._task = self._bar.add_task(what, total=None, note="")
        self._what, self._lines = what, show is None and not terminal
        self._seconds_a_line = seconds_a_line
        self._stage, self._since, self._said = "", 0.0, 0.0

    def __enter__(self) -> Self:
        self._since = self._said = time.monotonic()
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int, note: str = "", what: str | None = None) -> None:
        """Shows how many steps are done, of how many, with a note, and what is under way."""
        self._bar.update(self._task, total=total, completed=done, note=note, description=what)
        if self._lines:
            self._say(done, total, note, what or self._what)

    def _say(self, done: int, total: int, note: str, stage: str) -> None:
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._since = stage, now
        if now - self._said < self._seconds_a_line:
            return
        self._said = now
        told = [f"{stage}: {done} of {total}"]
        if 0 < done <= total:
            elapsed = now - self._since
            left = elapsed * (total - done) / done
            told[0] += f" ({100 * done // total} %)"
            told.append(f"{elapsed:.0f} s so far, about {left:.0f} s left")
        logger.info("%s", "; ".join([*told, note] if note else told))
