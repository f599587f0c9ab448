r"""For those who add verbs to the command `misscnf` from a distribution of their own.

A distribution that names a `typer.Typer` in the entry-point group `misscnf.commands`,

    [project.entry-points."misscnf.commands"]
    bench = "misscnf_study.cli:bench"

brings its verbs as `misscnf bench …`. The module that holds it is imported for every
`misscnf --help`: let it import torch and pandas inside the verbs.

    in_a_sentence       a verb so wrapped ends an `InputError` with one sentence and exit code 2
    write_atomically    writes a file whole or not at all
"""

from __future__ import annotations

from pathlib import Path

from misscnf.cli.endings import in_a_sentence

__all__ = ["in_a_sentence", "write_atomically"]


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that a reader, or a crash, sees the old one or the new one, never half.

    Arguments:
        path: Where the file goes.
        data: What it holds.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_atomically(Path(folder) / "answer.txt", b"3.45 kg")
        ...     print((Path(folder) / "answer.txt").read_text())
        3.45 kg
    """
    from misscnf.data.files import write_atomically

    write_atomically(path, data)
