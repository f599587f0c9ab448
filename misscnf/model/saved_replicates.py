r"""Replicates of a fit on disk, beside the model that they belong to.

    replicates.safetensors    every tensor that differs from the fit's, stacked: (B, …); and what
                              else is known of them, as beside.name

The header says which fit they replicate, from which table and how many were asked for, and holds
the digest of all this. They can always be made again, so a file that is damaged or of another
fit is left aside with a warning, and is no error.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from misscnf.data.files import digest, write_atomically
from misscnf.data.model_file import REPLICATES
from misscnf.model.structural import StructuralModel
from misscnf.paths import expanded

__all__ = ["save_replicates", "load_replicates", "drop_replicates"]

logger = logging.getLogger("misscnf")


def save_replicates(
    folder: str | os.PathLike[str],
    fit: StructuralModel,
    models: Sequence[StructuralModel],
    about: Mapping[str, Any],
    beside: Mapping[str, Tensor],
) -> int:
    """Writes replicates into the folder of their model, and returns the bytes that they take."""
    states, own = [model.state_dict() for model in models], fit.state_dict()
    stacked = {name: torch.stack([state[name] for state in states]) for name in own}
    moved = {name: part for name, part in stacked.items() if (part != own[name]).any()}
    moved |= {f"beside.{name}": part.contiguous() for name, part in beside.items()}
    # One entry, since a header with several has them in any order, and not always the same bytes.
    said = {**about, "digest": _digest(moved, about)}
    header = {"misscnf": json.dumps(said, sort_keys=True)}
    data: bytes = save(moved, header)
    write_atomically(_file(folder), data)
    return len(data)


def load_replicates(
    folder: str | os.PathLike[str], fit: StructuralModel, fingerprint: str
) -> tuple[list[StructuralModel], dict[str, Tensor], dict[str, Any]] | None:
    """Reads the replicates of a fit with this fingerprint, what is beside and said of them."""
    path = _file(folder)
    if not path.exists():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["misscnf"])
            if about["fit"] != fingerprint:
                logger.info("%s is of another fit, and is left aside.", str(path))
                return None
            stacked = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if _digest(stacked, about) != about["digest"]:
            raise ValueError("its numbers have been altered")
        names = [name for name in stacked if name.startswith("beside.")]
        beside = {name.removeprefix("beside."): stacked.pop(name) for name in names}
        return _build(fit, stacked), beside, about
    except Exception as error:  # whatever a damaged file leads to
        reason = " ".join(str(error).split())[:100]
        logger.warning("%s is left aside (%s); replicates are made anew.", str(path), reason)
        return None


def drop_replicates(folder: str | os.PathLike[str]) -> None:
    """Removes replicates that belong to a model that was in the folder before."""
    _file(folder).unlink(missing_ok=True)


def _digest(tensors: Mapping[str, Tensor], about: Mapping[str, Any]) -> str:
    said = {name: value for name, value in about.items() if name != "digest"}
    return digest(save(dict(tensors)) + json.dumps(said, sort_keys=True).encode())


def _file(folder: str | os.PathLike[str]) -> Path:
    return expanded(folder) / REPLICATES


def _build(fit: StructuralModel, stacked: Mapping[str, Tensor]) -> list[StructuralModel]:
    own = fit.state_dict()
    count = len(next(iter(stacked.values())))
    for name, part in stacked.items():
        if part.shape != (count, *own[name].shape) or part.isnan().any():
            raise ValueError("its numbers do not fit the model")
    return [
        fit.with_state({name: part[b] for name, part in stacked.items()}) for b in range(count)
    ]
