"""Paths and small files as people name them: opened, or a sentence says why not.

Graphs, kinds and the like are written by hand. A file that is far larger was named by mistake, and
is refused by its size, before a parser spends minutes on it.
"""

import os
from pathlib import Path

from misscnf.errors import InputError

__all__ = ["expanded", "read_small_text", "MOST_BYTES"]

MOST_BYTES = 2_000_000
"""Of a file that a person wrote: a graph of some 100,000 arrows, the kinds of 50,000 columns."""


def expanded(source: str | os.PathLike[str]) -> Path:
    """Returns a path with the home directory in the place of ~."""
    if "\0" in os.fspath(source):
        raise InputError(
            f"the path {os.fspath(source)[:80]!r} has a NUL character, as no file; check it."
        )
    try:
        return Path(source).expanduser()
    except RuntimeError as error:
        user = Path(source).parts[0]
        raise InputError(
            f"the path {str(source)[:80]!r} begins with {user!r}, and nobody of that name has a "
            f"home directory here; write the path in full."
        ) from error


def read_small_text(path: Path, what: str, encoding: str = "utf-8") -> str:
    """Reads a file that a person wrote; a sentence that refuses it begins with `what` it is."""
    name = f"{what} {str(path)!r}"
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise InputError(
                f"{name} has {size / 1e6:.1f} MB, and {MOST_BYTES / 1e6:g} MB are the most; name "
                f"another file.",
                about=str(path),
            )
        return path.read_text(encoding=encoding)
    except FileNotFoundError:
        raise InputError(
            f"file not found: {str(path)!r}; check the path of {what}.", about=str(path)
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"{name} cannot be read: {reason}.", about=str(path)) from error
