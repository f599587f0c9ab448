"""Lines of JSON, one a table with its commit: an interrupted benchmark goes on from them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from joblib import Parallel, delayed

__all__ = ["Lines", "commit"]

Record = dict[str, Any]


def commit() -> str:
    """Returns the commit of the working tree, with a + where files differ from it."""
    here = Path(__file__).parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=here, capture_output=True, text=True).stdout

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../misscnf")
    return git("rev-parse", "--short", "HEAD").strip() + ("+" if changed.strip() else "")


class Lines:
    """The records of a file by their key; the last line of a key counts.

    With a version, only the lines of that version of a run count, so that one file holds several
    and no judgement mixes them.
    """

    def __init__(self, path: Path, key: Sequence[str], version: str | None = None) -> None:
        self.path, self.key, self.version = path, tuple(key), version
        kept = path.read_text().splitlines() if path.exists() else []
        mine = [r for r in map(json.loads, kept) if version in (None, r.get("version"))]
        self.records = {self._key(record): record for record in mine}

    def _key(self, record: Record) -> tuple:
        return tuple(record[name] for name in self.key)

    def run(self, work, wanted: Iterable[tuple], jobs: int, *, redo: bool = False) -> None:
        """Calls `work(*key)` for each key without a line (or for all), and keeps its record."""
        left = [pair for pair in wanted if redo or pair not in self.records]
        at = commit()
        calls = (delayed(work)(*pair) for pair in left)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        for record in Parallel(n_jobs=jobs, return_as="generator_unordered")(calls):
            record["commit"] = at
            if self.version is not None:
                record["version"] = self.version
            self.records[self._key(record)] = record
            with self.path.open("a") as file:
                file.write(json.dumps(record) + "\n")
            print(json.dumps(record), flush=True)

    def of(self, wanted: Iterable[tuple]) -> Iterator[Record]:
        """Yields the records of the keys that have one."""
        return (self.records[pair] for pair in wanted if pair in self.records)
