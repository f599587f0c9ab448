r"""The project: all that a page shows, in a folder, so that closing it loses nothing.

    project.json     table, drawing, model, answers: written whole after every change
    graph.dot        the graph of the last fit, and kinds.json: for the command line
    tables/          what was dropped on the page
    models/N/        the fitted model; a further fit writes N + 1 and then moves the pointer
    checkpoint/      of a fit that was cancelled: the same fit goes on from there
    report.html

Two pages may draw in the same project. A drawing comes with the number of the drawing that it was
made from, and is refused where that is no longer the newest: nobody's arrows are lost unseen.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from misscnf.data.files import write_atomically
from misscnf.errors import InputError
from misscnf.studio.drawing import Drawing

__all__ = ["Project", "Conflict", "safe_name"]


class Conflict(InputError):
    """A drawing was made from an older one than the newest."""


@dataclass
class Project:
    """A folder and what stands in it. Made by `Project.open`."""

    folder: Path
    revision: int = 0
    """Of the drawing."""
    table: dict[str, Any] | None = None
    """Path and name of the table, and whether it lies in the folder."""
    drawing: Drawing = field(default_factory=Drawing)
    model: dict[str, Any] | None = None
    """The folder of the fitted model, and what it was fitted to."""
    answers: list[dict[str, Any]] = field(default_factory=list)
    report: dict[str, Any] | None = None
    interrupted: bool = False
    """Whether a fit was begun that a checkpoint lets go on."""
    _lock: int | None = None

    @classmethod
    def open(cls, folder: Path) -> Project:
        """Opens a project, or makes a new one; another studio that has it open refuses it."""
        made = folder.resolve()
        if made.exists() and not made.is_dir():
            raise InputError(f"--project: {str(folder)!r} is a file; name a folder.")
        if not made.parent.is_dir():
            raise InputError(
                f"--project: there is no folder {str(folder.parent)!r}; make it first."
            )
        made.mkdir(exist_ok=True)
        self = cls(made)
        self._lock = _locked(made)
        path = made / "project.json"
        try:
            if path.exists():
                self._restore(path)
        except InputError:
            self.close()
            raise
        return self

    def _restore(self, path: Path) -> None:
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            self.drawing = Drawing.read(kept["drawing"])
            self.revision, self.table = kept["revision"], kept["table"]
            self.model, self.answers = kept["model"], kept["answers"]
            self.report, self.interrupted = kept["report"], kept["interrupted"]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{str(path)!r} is no project of this studio ({error}); move it away, or name "
                f"another folder."
            ) from error

    @property
    def others(self) -> list[str]:
        """The names of the projects that stand beside this one."""
        found = (path.parent for path in self.folder.parent.glob("*/project.json"))
        return sorted(folder.name for folder in found if folder != self.folder)

    def beside(self, name: str, *, new: bool) -> Project:
        """Opens the project of this name in the folder that holds this one, or begins it there.

        The page names a folder, never a path: it reaches no further than where it was started.
        """
        if name != name.strip() or not name.isprintable() or len(name.encode()) > 200:
            raise InputError("the project has no name that a folder can have; take another.")
        if name in ("", ".", "..") or name.startswith(".") or {*name} & {*"/\\:\0"}:
            raise InputError("a project is named by its folder alone, without a path.")
        folder = self.folder.parent / name
        if folder.is_symlink():
            raise InputError(f"{name!r} leads elsewhere; open it by `misscnf studio --project`.")
        if new and folder.exists():
            raise InputError(f"there is {name!r} already; take another name, or open it.")
        if not new and not (folder / "project.json").is_file():
            raise InputError(f"there is no project {name!r} beside this one.")
        if folder == self.folder:
            raise InputError(f"{name!r} is the project that is open.")
        opened = Project.open(folder)
        opened.save()
        return opened

    def close(self) -> None:
        """Lets others open the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return {
            "revision": self.revision,
            "table": self.table,
            "drawing": self.drawing.to_dict(),
            "model": self.model,
            "answers": self.answers,
            "report": self.report,
            "interrupted": self.interrupted,
        }

    def save(self) -> None:
        """Writes what there is, whole or not at all."""
        text = json.dumps(self.to_dict(), indent=1, ensure_ascii=False)
        write_atomically(self.folder / "project.json", text.encode())

    def draw(self, drawing: Drawing, revision: int) -> None:
        """Takes a new drawing that was made from the one of this revision.

        Raises:
            Conflict: If that is not the newest.
        """
        if revision != self.revision:
            raise Conflict(
                "the drawing was changed in another tab; take that one, or keep yours over it."
            )
        self.drawing, self.revision = drawing, self.revision + 1
        self.save()

    def take_table(self, path: Path) -> None:
        """Points to another table; what was fitted to the last one is no answer about it."""
        inside = path.resolve().is_relative_to(self.folder)
        self.table = {"path": str(path.resolve()), "name": path.name, "inside": inside}
        self.forget_model()
        self.drawing, self.revision = Drawing(), self.revision + 1
        self.save()

    def forget_model(self) -> None:
        """Drops the model with its answers and its report, as far as they are not saved yet."""
        self.model, self.report, self.answers, self.interrupted = None, None, [], False
        self.drop_checkpoint()

    def drop_checkpoint(self) -> None:
        """Removes what a cancelled fit left."""
        shutil.rmtree(self.folder / "checkpoint", ignore_errors=True)

    def upload_path(self, name: str) -> Path:
        """Returns where a dropped table of this name goes."""
        tables = self.folder / "tables"
        tables.mkdir(exist_ok=True)
        return tables / safe_name(name)

    def next_model(self) -> Path:
        """Returns the folder of the next fitted model, which is not there yet."""
        models = self.folder / "models"
        models.mkdir(exist_ok=True)
        numbers = [int(path.name) for path in models.iterdir() if path.name.isdecimal()]
        return models / str(max(numbers, default=0) + 1)

    def take_model(self, model: dict[str, Any]) -> None:
        """Points to a model that was fitted, and removes those before it."""
        kept = self.folder / model["folder"]
        self.forget_model()
        self.model = model
        self.save()
        for old in (self.folder / "models").iterdir():
            if old != kept:
                shutil.rmtree(old, ignore_errors=True)


def safe_name(name: str) -> str:
    """Returns the name of a table's file without any path.

    Raises:
        InputError: If it has no name that a file can have, or no extension of a table.
    """
    base = re.split(r"[/\\]", name)[-1].strip()
    if base in ("", ".", "..") or base.startswith(".") or len(base.encode()) > 200:
        raise InputError("the table has no name that a file can have; rename it.")
    if not base.isprintable() or "\0" in base:
        raise InputError("the name of the table has signs that no file should have; rename it.")
    known = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet", ".dta", ".sav", ".sas7bdat", ".xpt")
    if not base.lower().endswith(known):
        raise InputError(f"{base[:80]!r}: tables are read from {', '.join(known)}.")
    return base


def _locked(folder: Path) -> int | None:
    """Holds the folder as long as this process lives, however it ends."""
    if sys.platform == "win32":
        return None
    import fcntl

    handle = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise InputError(
            f"another studio has {str(folder)!r} open; use its page, or name another folder."
        ) from None
    return handle
