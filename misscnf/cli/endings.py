r"""What a command says on standard error, and how it ends.

The package's log is shown as plain lines: warnings always, notes unless `--quiet`. Standard output
is for answers only.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | done, and problems were found |
| 2 | what was given cannot be used: one sentence, nothing written |
| 130 | stopped by Ctrl-C |

A traceback is left for what is nobody's input: a mistake of ours.
"""

from __future__ import annotations

import errno
import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from misscnf.errors import InputError

__all__ = ["notices", "say", "in_a_sentence", "Stopped", "Verbs"]

logger = logging.getLogger("misscnf")


class _Lines(logging.Handler):
    """Writes to what is standard error at the moment; the same line is said once."""

    def __init__(self) -> None:
        super().__init__()
        self.said: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        line = record.getMessage()
        if record.levelno >= logging.WARNING:
            line = f"warning: {line}"
        if not line or line not in self.said:  # each point of a curve may lead to the same
            self.said.add(line)
            typer.echo(line, err=True)


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


UsageError: Any = typer.BadParameter.__base__
"""What is raised for words that no option takes; typer does not export it."""


class Stopped(Exception):
    """Ctrl-C, with a sentence on how to go on."""


def in_a_sentence(command: Callable[..., None]) -> Callable[..., None]:
    r"""Ends a command with a sentence where it cannot go on; its notes are on standard error.

    Arguments:
        command: The function behind a verb.

    Returns:
        The function to register instead, with the same parameters.

    Example:
        >>> import typer
        >>> app = typer.Typer()
        >>> @app.command()
        ... @in_a_sentence
        ... def count(path: str) -> None:
        ...     raise InputError(f"{path!r} has no rows; give a table with some.")
        >>> from typer.testing import CliRunner
        >>> done = CliRunner().invoke(app, ["patients.csv"])
        >>> done.exit_code, done.stderr
        (2, "misscnf: 'patients.csv' has no rows; give a table with some.\n")
    """

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - the command's own
        with _sentences(), notices(quiet=kwargs.get("quiet", False)):
            command(*args, **kwargs)

    return wrapped


@contextmanager
def _sentences() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        _end(str(error), 2, error)
    except Stopped as stop:
        _end(str(stop), 130, stop)
    except KeyboardInterrupt as stop:
        _end("stopped; nothing was written.", 130, stop)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate" not in str(error):  # what torch says
            raise
        _end("there is not enough memory; ask for fewer rows or draws.", 2, error)
    except OSError as error:
        if error.errno == errno.EPIPE:  # the reader of a pipe has had enough
            raise
        place = "standard output" if error.filename is None else repr(str(error.filename))
        _end(f"{place}: {error.strerror or error}.", 2, error)


def _end(sentence: str, code: int, cause: BaseException) -> NoReturn:
    line = " ".join(sentence.split())
    typer.echo(f"misscnf: {line}" + "." * (not line.endswith((".", "?"))), err=True)
    raise typer.Exit(code) from cause


class Verbs(TyperGroup):
    """A group of commands whose usage errors are one sentence too."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as inherited
        """Reads the words before the verb."""
        with _usage():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 - as inherited
        """Reads the words after the verb, and runs it."""
        with _usage():
            return super().invoke(ctx)


@contextmanager
def _usage() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # which shows the help
            raise
        text = error.format_message().rstrip(".")
        where = error.ctx.command_path if error.ctx else "misscnf"
        _end(f"{text[:1].lower()}{text[1:]}; see {where} --help.", 2, error)
