r"""What is said on the way, on standard error: the package's log as plain lines.

Warnings always, notes unless `--quiet`. Standard output is for answers only.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import typer

__all__ = ["notices", "say"]

logger = logging.getLogger("misscnf")


class _Lines(logging.Handler):
    """Writes to what is standard error at the moment; a warning is said once."""

    def __init__(self) -> None:
        super().__init__()
        self.warned: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        if record.msg.startswith("The kinds of the columns"):
            return  # `fit` shows that table itself
        line = record.getMessage()
        if record.levelno < logging.WARNING:
            typer.echo(line, err=True)
        elif line not in self.warned:  # each point of a curve may lead to the same
            self.warned.add(line)
            typer.echo(f"warning: {line}", err=True)


@contextmanager
def notices(*, quiet: bool) -> Iterator[None]:
    """Shows the log of the package while a command runs."""
    handler, level = _Lines(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)


def say(text: str) -> None:
    """Says something that `--quiet` leaves out."""
    logger.info("%s", text)
