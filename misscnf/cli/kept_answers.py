r"""Answers with an interval, kept beside their model: the same question is worked out once.

    answers.json    {question: {"told": …, "warnings": […]}, …}, and the digest of all this

Sweeps over 100,000 units, and the seconds of start-up before them, are what a further interval
costs. A question that was asked before needs neither. It is known by a digest of all that its
answer depends on: the version, each file of the model (so that one that was fitted again, altered,
or has other replicates is asked anew), the options, and the bytes of the table where one was
given. What is printed is what was printed the first time, to the bit. A damaged file is left
aside: its answers can always be found again.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misscnf import __version__
from misscnf.cli.endings import logger, say
from misscnf.data.files import digest, write_atomically
from misscnf.data.model_file import ANSWERS, own_digest
from misscnf.paths import expanded

__all__ = ["Answered", "find", "keep", "noting", "question"]


@dataclass
class Answered:
    """What was printed, and what was warned of on the way."""

    told: str
    warnings: list[str] = field(default_factory=list)


def question(model: str, options: Mapping[str, Any], data: str | None = None) -> str | None:
    """Returns by what a question is known; None where what it depends on is no file.

    Arguments:
        model: The folder of the model.
        options: All that the answer depends on beside the model and the table.
        data: The file of the table, if one was given.
    """
    try:
        rows = None if data is None else digest(expanded(data).read_bytes())
        own = {path.name: digest(path.read_bytes()) for path in _files(expanded(model))}
    except OSError:
        return None
    about = {"version": __version__, "model": own, "options": dict(options), "table": rows}
    return digest(json.dumps(about, sort_keys=True).encode())


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != ANSWERS and path.is_file())


def find(model: str, asked: str | None) -> str | None:
    """Returns what was printed when this was asked before, and warns of what was warned of."""
    entry = None if asked is None else _read(model).get(asked)
    if entry is None:
        return None
    for line in entry["warnings"]:
        logger.warning("%s", line)
    say(f"asked before: the answer is that of {os.path.join(model, ANSWERS)}")
    told: str = entry["told"]
    return told


def keep(model: str, asked: str | None, answered: Answered, most: int = 100) -> None:
    """Writes an answer beside the model, and leaves out the oldest where there are too many."""
    if asked is None:
        return
    known = {**_read(model), asked: vars(answered)}
    content: dict[str, Any] = {"answers": dict(list(known.items())[-most:])}
    content["digest"] = own_digest(content)
    data = json.dumps(content, ensure_ascii=False, indent=1).encode()
    try:
        write_atomically(expanded(model) / ANSWERS, data)
    except OSError as error:
        say(f"the answer was not kept in {model}: {error.strerror}")


def _read(model: str) -> dict[str, Any]:
    try:
        content = json.loads((expanded(model) / ANSWERS).read_bytes())
        sound = content["digest"] == own_digest(content)
        return dict(content["answers"]) if sound else {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return {}


class _Collecting(logging.Handler):
    def __init__(self, found: list[str]) -> None:
        super().__init__(logging.WARNING)
        self.found = found

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(record.getMessage())


@contextmanager
def noting() -> Iterator[list[str]]:
    """Collects what is warned of meanwhile."""
    found: list[str] = []
    handler = _Collecting(found)
    logger.addHandler(handler)
    try:
        yield found
    finally:
        logger.removeHandler(handler)
