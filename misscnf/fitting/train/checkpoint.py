r"""Checkpoints: a fit that was interrupted goes on, and ends in the same bits.

A stage of a fit keeps one folder: its tensors as safetensors and the rest as JSON, each written to
a temporary file and moved into place, JSON last, with the digest of its tensors. A checkpoint
belongs to one table, graph and settings: their fingerprint is checked before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.torch import load, save
from torch import Tensor

from misscnf.data.files import digest, write_atomically
from misscnf.data.rows import RowSource
from misscnf.errors import InputError

__all__ = ["Checkpoint", "fingerprint"]


def fingerprint(description: Mapping[str, Any], *sources: RowSource | None) -> str:
    """Returns a digest of what a fit depends on: a description, and all rows."""
    hasher = hashlib.sha256(json.dumps(description, sort_keys=True).encode())
    for source in sources:
        hasher.update(b"none" if source is None else f"{len(source)} {source.columns}".encode())
        for batch in () if source is None else source.batches():
            for tensor in batch:
                hasher.update(tensor.cpu().numpy().tobytes())
    return hasher.hexdigest()


class Checkpoint:
    """One stage's folder inside a checkpoint directory.

    Arguments:
        folder: The checkpoint directory; made if it is not there.
        stage: The stage's name.
        fingerprint: What the stage depends on; another one is refused.
    """

    def __init__(self, folder: str | os.PathLike[str], stage: str, fingerprint: str) -> None:
        self.folder = Path(folder) / stage
        self.fingerprint = fingerprint

    def write(self, tensors: Mapping[str, Tensor], state: Mapping[str, Any]) -> None:
        """Keeps a state; earlier tensors stay until the new JSON names the new ones."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            data = save({name: tensor.detach().contiguous() for name, tensor in tensors.items()})
            name = f"{digest(data)[:16]}.safetensors"
            write_atomically(self.folder / name, data)
            about = {"fingerprint": self.fingerprint, "tensors": name, "state": state}
            write_atomically(self.folder / "state.json", json.dumps(about).encode())
        except OSError as error:
            raise InputError(
                f"the checkpoint {str(self.folder)!r} cannot be written: {error.strerror}."
            ) from error
        for old in self.folder.glob("*.safetensors"):
            if old.name != name:
                old.unlink(missing_ok=True)

    def read(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Returns the last state, or None where there is none yet."""
        path = self.folder / "state.json"
        if not path.exists():
            return None
        try:
            about = json.loads(path.read_bytes())
            found = about["fingerprint"]
            data = (self.folder / about["tensors"]).read_bytes()
            intact = digest(data)[:16] == Path(about["tensors"]).stem
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._unusable("is damaged") from error
        if found != self.fingerprint:
            raise self._unusable("belongs to another table, graph or settings")
        if not intact:
            raise self._unusable("is damaged")
        return load(data), about["state"]

    def _unusable(self, why: str) -> InputError:
        return InputError(
            f"the checkpoint {str(self.folder)!r} {why}; remove it, or name another directory."
        )
