r"""Progress of what takes long: a bar in a terminal or a notebook, lines in a log, or a function.

A line has the stage, the share that is done, the time since the start and what is left of it,

    left = elapsed · (1 − share) / share,

and goes through the package's log, so that `--quiet` leaves it out. A notebook shows it beside its
bar. A pass over rows says how many of them it does a second too.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Self, TypeAlias

from misscnf.display.notebook import Rewritten, in_notebook

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["ProgressBar", "Shown"]

Shown: TypeAlias = bool | Callable[[int, int, str, str], None] | None
"""Whether progress is shown; or who is told: the steps done, of how many, a note, the stage."""

logger = logging.getLogger("misscnf")


class ProgressBar:
    """A bar that is there while its `with` block runs; a watcher of `replicate_fit`.

    `show=None` shows it in a terminal and in a notebook, and lines elsewhere: so few that a log
    stays short, so many that nobody thinks that the work has stopped. A function is told of every
    step instead.
    """

    def __init__(
        self,
        what: str,
        *,
        show: Shown,
        seconds_a_line: float = 15.0,
        seconds_a_picture: float = 0.5,
    ) -> None:
        terminal, wanted = sys.stderr.isatty(), show is None or show is True
        self._told = show if callable(show) else None
        self._output = Rewritten() if wanted and in_notebook() else None
        drawn = self._output is None and wanted and (terminal or show is True)
        self._bar = _rich_bar() if drawn else None
        self._task = None if self._bar is None else self._bar.add_task(what, total=None, note="")
        self._what, self._lines = what, show is None and not drawn and self._output is None
        self._pause = seconds_a_picture if self._output is not None else seconds_a_line
        self._stage, self._since, self._said = "", 0.0, 0.0
        self._pass, self._began, self._before = "", 0.0, 0

    def __enter__(self) -> Self:
        self._since = self._said = time.monotonic()
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._output is not None:
            self._output.clear()

    def __call__(self, done: int, total: int, note: str = "", what: str | None = None) -> None:
        """Shows how many steps are done, of how many, with a note, and what is under way."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=total, completed=done, note=note, description=what)
        if self._told is not None:
            self._told(done, total, note, what or self._what)
        if self._lines or self._output is not None:
            self._say(done, total, note, what or self._what)

    def say(self, sentence: str) -> None:
        """Says what is under way: in the log and, where nobody reads that, beside the bar."""
        logger.info("%s", sentence)
        if self._output is not None:
            self._output.heading = sentence
            self._output.write(self._what, None)
        elif self._bar is not None and not logger.isEnabledFor(logging.INFO):
            self._bar.console.print(sentence, markup=False, highlight=False, soft_wrap=True)

    def rows(self, done: int, total: int, what: str) -> None:
        """Shows how many rows of a pass are done, and how many a second since it began."""
        now = time.monotonic()
        if what != self._pass:
            self._pass, self._began, self._before = what, now, done
        elapsed = now - self._began
        fast = elapsed >= 1.0  # a pass that has just begun tells nothing yet
        note = f"{(done - self._before) / elapsed:,.0f} rows a second" if fast else ""
        self(done, total, note, what)

    def _say(self, done: int, total: int, note: str, stage: str) -> None:
        """Writes a line, unless the last one has just been written."""
        now = time.monotonic()
        if stage != self._stage:
            self._stage, self._since = stage, now
        if now - self._said < self._pause:
            return
        self._said = now
        told = [f"{stage}: {done} of {total}"]
        elapsed = now - self._since
        if 0 < done <= total and elapsed >= 1.0:  # a stage that has just begun tells nothing yet
            left = elapsed * (total - done) / done
            told[0] += f" ({100 * done // total} %)"
            told.append(f"{elapsed:.0f} s so far, about {left:.0f} s left")
        line = "; ".join([*told, note] if note else told)
        if self._output is None:
            logger.info("%s", line)
        else:
            self._output.write(line, done / total if total else None)


def _rich_bar() -> Progress:
    """Returns the bar of a terminal; a log needs none, and is not made to wait for rich."""
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[note]}"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
