r"""What the JSON of a saved model says of it, before any of its parameters are read.

`model.json` names the nodes, the arrows and the codec of each column. That is all that a question
has to be held against, and it is there in a moment: building the model needs torch, which takes
seconds to import. What is altered or foreign is refused here, by its format and its digest;
`model.storage` builds the rest and checks that it makes sense.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from misscnf.data.files import digest
from misscnf.data.panel import Panel
from misscnf.data.table import Schema
from misscnf.errors import ModelFileError
from misscnf.graph import CausalGraph
from misscnf.graph.histories import Reading
from misscnf.paths import expanded

__all__ = [
    "ABOUT",
    "ANSWERS",
    "FORMAT",
    "REPLICATES",
    "VERSION",
    "Outline",
    "own_digest",
    "read_about",
    "read_bytes",
]
__all__ += ["read_bytes", "read_graph", "refusal"]

ABOUT, REPLICATES, ANSWERS = "model.json", "replicates.safetensors", "answers.json"
FORMAT = "misscnf model"
VERSION = 2


@dataclass(frozen=True)
class Outline:
    """The graph and the columns of a saved model."""

    graph_: CausalGraph
    schema_: Schema
    replicated: bool = False
    """Whether replicates of the fit lie beside it."""
    panel_: Panel | None = None
    """How a table over time was read; None for any other."""
    drawn_from: int | None = None
    """Rows of the file that was read from disk; None where it was read into memory."""
    marks: tuple[str, ...] = ()
    """What stood for holes in the file of the fit (`--na`)."""

    @staticmethod
    def read(folder: str | os.PathLike[str]) -> Outline | None:
        """Reads them, or returns None where they make no sense: loading the model says why."""
        content = read_about(expanded(folder))
        try:
            columns = Schema.columns_from(content["about"]["schema"])
            replicated = (expanded(folder) / REPLICATES).exists()
            panel = content["about"].get("panel")
            known = None if panel is None else Panel.from_dict(panel)
            drawn_from = content["about"].get("drawn from")
            about = (read_graph(content), Schema(columns), replicated, known)
            marks = tuple(map(str, content["about"].get("marks", ())))
            return Outline(*about, drawn_from, marks)
        except Exception:  # whatever nonsense leads to
            return None


def read_graph(content: Mapping[str, Any]) -> CausalGraph:
    """Returns the graph that the JSON of a model holds."""
    plain = CausalGraph.read(dict(content["graph"]))
    beside = content.get("blocks"), content.get("auxiliary", ()), content.get("latent")
    graph = CausalGraph.from_edges(plain.edges, plain.nodes, *beside)
    read = {name: Reading.from_list(of) for name, of in content.get("readings", {}).items()}
    return graph.with_readings({graph.index(name): reading for name, reading in read.items()})


def read_about(source: Path) -> dict[str, Any]:
    """Reads the JSON of the model in a folder; refuses what is altered, foreign or older."""
    path = source / ABOUT
    data = read_bytes(path)
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise refusal(path, "is not readable as JSON") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise refusal(path, "is not a misscnf model")
    if content.get("version") != VERSION:
        raise ModelFileError(
            f"{str(path)!r} was saved by another version of misscnf (format "
            f"{content.get('version')!r}; this one reads {VERSION}); fit the model again and save "
            f"it, or use the misscnf that saved it."
        )
    if own_digest(content) != content.get("digest"):
        raise refusal(path, "has been altered since it was saved")
    return content


def own_digest(content: Mapping[str, Any]) -> str:
    """Returns the digest of what the JSON of a model says, but for the digest itself."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    return digest(json.dumps(rest, sort_keys=True).encode())


def read_bytes(path: Path) -> bytes:
    """Reads a file of a saved model."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise refusal(path, f"cannot be read ({error.strerror})") from error


def refusal(path: Path, why: str) -> ModelFileError:
    """Returns the sentence for a file that is no part of a model."""
    return ModelFileError(f"{str(path)!r} {why}; save the model again, or name another folder.")
