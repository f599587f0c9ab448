r"""Models on disk: safetensors for the parameters, JSON for all the rest. Never pickle.

A saved model is a folder with `model.json` and `parameters.safetensors`. The JSON holds the digest
of the parameters and its own, so that an altered, truncated or foreign file is refused before
anything is built from it. A digest can be worked out anew, so what is built must also be written
again as it was read, from parameters of the shapes that it asks for. Files are written aside and
moved into place, JSON last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from misscnf.data.files import digest, write_atomically
from misscnf.data.model_file import (
    ABOUT,
    FORMAT,
    VERSION,
    own_digest,
    read_about,
    read_bytes,
    read_graph,
    refusal,
)
from misscnf.errors import InputError, ModelFileError
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Mechanism
from misscnf.model.structural import StructuralModel
from misscnf.paths import expanded

__all__ = ["save_model", "load_model", "fingerprint", "refusing"]
__all__ += ["describe_block", "build_mechanism"]

PARAMETERS = "parameters.safetensors"


def save_model(
    folder: str | os.PathLike[str], model: StructuralModel, about: Mapping[str, Any]
) -> None:
    """Writes a model and what is known about it (JSON-friendly)."""
    target = expanded(folder)
    data = save({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
    content = {
        "format": FORMAT,
        "version": VERSION,
        **_content(model),
        "parameters": digest(data),
        "about": dict(about),
    }
    content["digest"] = own_digest(content)
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
    source = expanded(folder)
    content = read_about(source)
    data = read_bytes(source / PARAMETERS)
    if digest(data) != content.get("parameters"):
        raise refusal(source / PARAMETERS, "is not the file that the model was saved with")
    with refusing(folder):
        about = content["about"]
        if not isinstance(about, dict):
            raise TypeError("it says nothing about the table")
        return _build(content, load(data)), about


def fingerprint(model: StructuralModel, about: Mapping[str, Any]) -> str:
    """Returns a digest that two models share only if they and what is said of them are equal."""
    data = save({name: tensor.contiguous() for name, tensor in model.state_dict().items()})
    content = [_content(model), digest(data), dict(about)]
    return digest(json.dumps(content, sort_keys=True).encode())


@contextmanager
def refusing(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Refuses a saved model that makes no sense, whatever building it trips over."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise refusal(Path(folder) / ABOUT, f"describes no model ({reason})") from error


def describe_block(model: StructuralModel, block: int) -> dict[str, Any]:
    """Returns what a block's mechanism is built from, for JSON."""
    mechanism, first = model.block(block), model.graph.nodes[model.blocks[block][0]]
    if mechanism.name is None:
        raise InputError(
            f"the mechanism {type(mechanism).__name__} of node {first!r} cannot be saved; only "
            f"{', '.join(Mechanism.registry)} can."
        )
    return {"kind": mechanism.name, **mechanism.spec()}


def _build(content: Mapping[str, Any], tensors: dict[str, Tensor]) -> StructuralModel:
    graph = read_graph(content)
    with torch.device("meta"):  # no memory is asked for before the shapes are known to fit
        sketch = _assemble(content, graph)
    shapes = {name: tensor.shape for name, tensor in sketch.state_dict().items()}
    if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
        raise ValueError("its parameters have other names or shapes")
    for tensor in tensors.values():  # an end of a range may be infinite, and nothing else so large
        if (tensor.isnan() | (tensor.isfinite() & (tensor.abs() > 1e100))).any():
            raise ValueError("some parameters are no numbers")
    model = _assemble(content, graph).double()
    model.load_state_dict(tensors)
    built = _content(model)
    if any(built[part] != content.get(part) for part in built):
        raise ValueError("it is not written as misscnf writes it")
    return model


def build_mechanism(described: Mapping[str, Any]) -> Mechanism:
    """Returns what `describe_block` described, without its parameters."""
    spec = dict(described)
    return Mechanism.registry[spec.pop("kind")](**spec)


def _assemble(content: Mapping[str, Any], graph: CausalGraph) -> StructuralModel:
    mechanisms = [build_mechanism(spec) for spec in content["mechanisms"]]
    keys = tuple(content["keys"])
    by_key = dict(zip(dict.fromkeys(keys), mechanisms, strict=True))
    return StructuralModel(graph, by_key, keys)


def _content(model: StructuralModel) -> dict[str, Any]:
    """Returns what JSON holds of a model, as it comes back from there."""
    content = {
        "graph": model.graph.to_dict(),
        "blocks": model.graph.blocks,
        "mechanisms": [describe_block(model, block) for block in range(len(model.blocks))],
        "keys": list(model.keys),
    }
    if model.graph.auxiliary:
        content["auxiliary"] = model.graph.auxiliary
    if model.graph.latent:
        content["latent"] = model.graph.latent
    if model.graph.readings:
        nodes, readings = model.graph.nodes, model.graph.readings
        content["readings"] = {nodes[i]: reading.to_list() for i, reading in readings.items()}
    return dict(json.loads(json.dumps(content)))
