r"""Interventions as people write them, as clamps of a structural model.

`{"dose": 1.5}` holds a column at a number, `{"dose": array}` at one number a row, and
`{"dose": lambda dose: dose + 1}` replaces its natural value by a function of it. All of them are
in the user's units; the model's are standardised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.structural import Clamp
from misscnf.table import ColumnScale, Schema

__all__ = ["Do", "read_clamps", "held_values"]

Do = Mapping[str, Any]
"""Column name → number, one number a row, or a function of the natural value."""


def read_clamps(do: Do | None, graph: CausalGraph, schema: Schema, rows: int) -> dict[int, Clamp]:
    """Turns interventions in the user's units into clamps by node.

    Arguments:
        do: The interventions.
        graph: The causal graph.
        schema: The units.
        rows: How many rows they apply to.
    """
    if do is not None and not isinstance(do, Mapping):
        raise InputError(f"interventions are {{column: value}}; got {type(do).__name__}.")
    clamps: dict[int, Clamp] = {}
    for name, value in (do or {}).items():
        node = graph.index(name)
        scale = schema.columns[node]
        clamps[node] = _shift(value, scale) if callable(value) else _hold(name, value, scale, rows)
    return clamps


def held_values(
    do: Do | None, graph: CausalGraph, schema: Schema, rows: int, verb: str
) -> dict[int, Tensor]:
    """The same for questions where a function of the natural value has no meaning."""
    held: dict[int, Tensor] = {}
    for node, clamp in read_clamps(do, graph, schema, rows).items():
        if not isinstance(clamp, Tensor):
            raise InputError(
                f"{verb} takes numbers as interventions; {graph.nodes[node]!r} has a function."
            )
        held[node] = clamp
    return held


def _hold(name: str, value: object, scale: ColumnScale, rows: int) -> Tensor:
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the intervention on {name!r} is {value!r}; give a number, one number a row, or a "
            f"function."
        ) from error
    if not np.isfinite(numbers).all():
        raise InputError(f"the intervention on {name!r} holds a missing or infinite number.")
    if numbers.ndim > 1 or (numbers.ndim == 1 and len(numbers) != rows):
        raise InputError(
            f"the intervention on {name!r} has shape {numbers.shape}; expected one number, or one "
            f"for each of the {rows} rows."
        )
    return torch.from_numpy(np.atleast_1d(scale.encode(numbers)).copy())


def _shift(function: Callable[[Any], Any], scale: ColumnScale) -> Callable[[Tensor], Tensor]:
    def clamp(natural: Tensor) -> Tensor:
        raw = pd.Series(scale.decode(natural.detach().cpu().numpy()).ravel(), name=scale.name)
        wanted = np.broadcast_to(np.asarray(function(raw), dtype=np.float64), raw.shape)
        if not np.isfinite(wanted).all():
            raise InputError(
                f"the function that intervenes on {scale.name!r} returned a missing or infinite "
                f"number."
            )
        return torch.from_numpy(scale.encode(wanted).reshape(natural.shape).copy()).to(natural)

    return clamp
