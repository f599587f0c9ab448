r"""Kinds as people ask for them: a name, an order of levels, a description, or a file of these.

    kinds="continuous"                                              all columns
    kinds={"stage": "ordinal"}                                      a name
    kinds={"stage": ["I", "II", "III"]}                             ordinal, in this order
    kinds={"weight": "positive", "share": "proportion"}             a log scale, a logit on (0, 1)
    kinds={"score": {"kind": "bounded", "low": 0, "high": 10}}      a logit on (0, 10)
    kinds="kinds.yaml"                                              a .json, .yaml or .yml file

Columns that are not named are inferred.
"""

from __future__ import annotations

import difflib
import json
import logging
import math
import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from misscnf.data.cells import Label, listed, plain
from misscnf.data.codecs import CODECS
from misscnf.errors import InputError

__all__ = ["Kinds", "Request", "REQUESTS", "read_requests"]

Kinds = str | os.PathLike[str] | Mapping[str, Any] | None
"""A kind for all columns, the path of a file, or {column: kind}; None infers all of them."""

REQUESTS = (
    "continuous",
    "binary",
    "ordinal",
    "categorical",
    "count",
    "positive",
    "proportion",
    "bounded",
)
"""The names of kinds that can be asked for."""

_OPTIONS = {
    "binary": {"levels"},
    "ordinal": {"levels"},
    "categorical": {"levels"},
    "positive": {"low"},
    "bounded": {"low", "high"},
}

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class Request:
    """What was asked of one column."""

    kind: str
    """One of `REQUESTS`."""
    levels: tuple[Label, ...] | None = None
    """The levels, in their order."""
    low: float = 0.0
    """What a positive or bounded column lies above."""
    high: float = 1.0
    """What a bounded column lies below."""


def read_requests(
    kinds: Kinds, nodes: Sequence[str], columns: Iterable[object] = ()
) -> dict[str, Request]:
    """Returns what is asked of each node, of those that something is asked of.

    Arguments:
        kinds: The kinds, as people write them.
        nodes: The nodes of the graph.
        columns: All columns of the table; a kind of one outside the graph does no harm.
    """
    if kinds is None:
        return {}
    if isinstance(kinds, str) and kinds in REQUESTS and kinds != "bounded":
        return {node: Request(kinds) for node in nodes}
    is_path = isinstance(kinds, str | os.PathLike)
    asked = _read_file(Path(kinds).expanduser()) if is_path else kinds  # type: ignore[arg-type]
    if not isinstance(asked, Mapping):
        raise InputError(
            f"kinds are {{column: kind}}, one kind for all columns, or the path of a .json or "
            f".yaml file; got {type(asked).__name__}."
        )
    outside = [name for name in asked if name not in nodes]
    for name in outside:
        if name not in list(columns):
            raise InputError(_unknown_column(name, nodes))
    if outside:
        logger.info("Kinds of columns not in the graph are ignored: %s.", listed(outside))
    return {name: _read_one(name, asked[name]) for name in asked if name in nodes}


def _unknown_column(name: object, nodes: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(name), nodes, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the columns are {listed(nodes)}"
    return f"kinds has an entry for {name!r}, which is not a column of the table ({hint})."


def _read_one(name: str, wanted: object) -> Request:
    if isinstance(wanted, str):
        return _check(name, {"kind": wanted})
    if isinstance(wanted, Mapping):
        return _check(name, wanted)
    if isinstance(wanted, Sequence | np.ndarray):
        return _check(name, {"kind": "ordinal", "levels": wanted})
    raise InputError(
        f"the kind of {name!r} is {reprlib.repr(wanted)}; expected a name "
        f"({', '.join(REQUESTS)}), a list of levels in their order, or "
        f"{{'kind': ..., 'levels': [...]}}."
    )


def _check(name: str, wanted: Mapping[str, Any]) -> Request:
    kind = wanted.get("kind")
    if kind not in REQUESTS and kind not in CODECS:
        close = difflib.get_close_matches(str(kind), REQUESTS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(REQUESTS)}"
        raise InputError(f"the kind of {name!r} is {kind!r}, which is not a kind ({hint}).")
    allowed = _OPTIONS.get(kind, set())
    surplus = [option for option in wanted if option != "kind" and option not in allowed]
    if surplus:
        takes = f"takes {listed(sorted(allowed))} only" if allowed else "takes no options"
        raise InputError(f"the kind of {name!r} has the option {surplus[0]!r}; {kind!r} {takes}.")
    if kind == "bounded" and not {"low", "high"} <= wanted.keys():
        raise InputError(
            f"the kind of {name!r} is 'bounded' without its ends; give both, such as "
            f"{{'kind': 'bounded', 'low': 0, 'high': 10}}."
        )
    low = _number(name, "low", wanted.get("low", 0.0))
    high = _number(name, "high", wanted.get("high", 1.0))
    if kind == "bounded" and low >= high:
        raise InputError(
            f"the kind of {name!r} has its low end {low:g} at or above its high end {high:g}; "
            f"swap or change them."
        )
    return Request(kind, _levels(name, wanted.get("levels")), low, high)


def _number(name: str, end: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    raise InputError(f"the kind of {name!r} has {end} = {value!r}; expected a finite number.")


def _levels(name: str, wanted: object) -> tuple[Label, ...] | None:
    if wanted is None:
        return None
    if isinstance(wanted, str) or not isinstance(wanted, Sequence | np.ndarray):
        raise InputError(
            f"the levels of {name!r} are {reprlib.repr(wanted)}; expected a list, in their order."
        )
    levels = [plain(level) for level in wanted]
    if None in levels:
        odd = wanted[levels.index(None)]
        raise InputError(
            f"the levels of {name!r} hold {reprlib.repr(odd)}; a level is text, a number, True or "
            f"False."
        )
    twice = [level for level in levels if levels.count(level) > 1]
    if twice:
        raise InputError(f"the levels of {name!r} hold {twice[0]!r} twice; name each level once.")
    if len(levels) < 2:
        raise InputError(f"the levels of {name!r} are {levels}; a column needs two at least.")
    return tuple(levels)  # type: ignore[arg-type]


def _read_file(path: Path) -> object:
    suffix = path.suffix.lower()
    if suffix not in (".json", ".yaml", ".yml"):
        raise InputError(
            f"kinds is {str(path)!r}; expected a kind ({', '.join(REQUESTS)}), {{column: kind}}, "
            f"or the path of a .json, .yaml or .yml file."
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise InputError(f"the kinds in {str(path)!r} cannot be read: {reason}.") from error
    try:
        found = json.loads(text) if suffix == ".json" else _parse_yaml(text)
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{str(path)!r} cannot be read as {suffix}: {reason}") from error
    if not isinstance(found, dict):
        raise InputError(
            f"{str(path)!r} holds no kinds; expected lines such as `stage: ordinal`."
            if suffix != ".json"
            else f'{str(path)!r} holds no kinds; expected {{"stage": "ordinal"}} or the like.'
        )
    return found


def _parse_yaml(text: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
