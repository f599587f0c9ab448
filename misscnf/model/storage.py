r"""Models on disk: safetensors for the parameters, JSON for all the rest. Never pickle.

A saved model is a folder with `model.json` and `parameters.safetensors`. The JSON holds the digest
of the parameters and its own, so that an altered, truncated or foreign file is refused before
anything is built from it. Files are written aside and moved into place, JSON last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from misscnf.data.files import digest, write_atomically
from misscnf.errors import InputError, ModelFileError
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Mechanism
from misscnf.model.structural import StructuralModel

__all__ = ["save_model", "load_model"]

FORMAT = "misscnf model"
VERSION = 2
ABOUT, PARAMETERS = "model.json", "parameters.safetensors"


def save_model(
    folder: str | os.PathLike[str], model: StructuralModel, about: Mapping[str, Any]
) -> None:
    """Writes a model and what is known about it (JSON-friendly)."""
    target = Path(folder)
    data = save({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
    content = {
        "format": FORMAT,
        "version": VERSION,
        "graph": model.graph.to_dict(),
        "blocks": model.graph.blocks,
        "mechanisms": [_describe(model, block) for block in range(len(model.blocks))],
        "keys": list(model.keys),
        "parameters": digest(data),
        "about": dict(about),
    }
    content["digest"] = _own_digest(content)
    try:
        target.mkdir(parents=True, exist_ok=True)
        write_atomically(target / PARAMETERS, data)
        write_atomically(target / ABOUT, json.dumps(content, indent=1).encode())
    except OSError as error:
        reason = f"the model cannot be written to {str(target)!r}: {error.strerror}."
        raise InputError(reason) from error


def load_model(folder: str | os.PathLike[str]) -> tuple[StructuralModel, dict[str, Any]]:
    """Reads what `save_model` wrote.

    Raises:
        ModelFileError: Where a file is missing, altered, or not one of ours.
    """
    source = Path(folder)
    content = _read_json(source)
    if _own_digest(content) != content.get("digest"):
        raise _refuse(source / ABOUT, "has been altered since it was saved")
    data = _read_bytes(source / PARAMETERS)
    if digest(data) != content["parameters"]:
        raise _refuse(source / PARAMETERS, "is not the file that the model was saved with")
    try:
        model = _build(content, load(data))
    except (SafetensorError, RuntimeError, KeyError, TypeError) as error:
        raise _refuse(source / PARAMETERS, "does not fit the model") from error
    return model, content["about"]


def _describe(model: StructuralModel, block: int) -> dict[str, Any]:
    mechanism, first = model.block(block), model.graph.nodes[model.blocks[block][0]]
    if mechanism.name is None:
        raise InputError(
            f"the mechanism {type(mechanism).__name__} of node {first!r} cannot be saved; only "
            f"{', '.join(Mechanism.registry)} can."
        )
    return {"kind": mechanism.name, **mechanism.spec()}


def _build(content: Mapping[str, Any], tensors: dict[str, Tensor]) -> StructuralModel:
    plain = CausalGraph.read(content["graph"])
    graph = CausalGraph.from_edges(plain.edges, plain.nodes, content.get("blocks"))
    specs = [dict(spec) for spec in content["mechanisms"]]
    mechanisms = [Mechanism.registry[spec.pop("kind")](**spec) for spec in specs]
    keys = tuple(content["keys"])
    by_key = dict(zip(dict.fromkeys(keys), mechanisms, strict=True))
    model = StructuralModel(graph, by_key, keys).double()
    model.load_state_dict(tensors)
    return model


def _own_digest(content: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in content.items() if key != "digest"}
    return digest(json.dumps(rest, sort_keys=True).encode())


def _read_json(source: Path) -> dict[str, Any]:
    path = source / ABOUT
    data = _read_bytes(path)
    try:
        content = json.loads(data)
    except ValueError as error:
        raise _refuse(path, "is not readable as JSON") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise _refuse(path, "is not a misscnf model")
    if content.get("version") != VERSION:
        raise ModelFileError(
            f"{str(path)!r} was saved by another version of misscnf (format "
            f"{content.get('version')!r}; this one reads {VERSION}); fit the model again and save "
            f"it, or use the misscnf that saved it."
        )
    return content


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise _refuse(path, f"cannot be read ({error.strerror})") from error


def _refuse(path: Path, why: str) -> ModelFileError:
    return ModelFileError(f"{str(path)!r} {why}; save the model again, or name another folder.")
