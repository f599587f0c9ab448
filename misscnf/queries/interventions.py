r"""Interventions as people write them, as clamps of a structural model.

`{"dose": 1.5}` holds a column at a number, `{"stage": "III"}` at a level, `{"dose": array}` at one
value a row, and `{"dose": lambda dose: dose + 1}` replaces its natural value by a function of it.
All of them are in the user's units and labels; the model has standardised numbers and codes.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.cells import plain
from misscnf.data.codecs import Column
from misscnf.data.table import Schema
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.model import Clamp

__all__ = ["Do", "read_clamps", "held_values", "beyond_seen"]

Do = Mapping[str, Any]
"""Column name → number or level, one a row, or a function of the natural value."""


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
        column = schema.columns[node]
        clamps[node] = _shift(value, column) if callable(value) else _hold(value, column, rows)
    return clamps


def held_values(
    do: Do | None, graph: CausalGraph, schema: Schema, rows: int, verb: str
) -> dict[int, Tensor]:
    """The same for questions where a function of the natural value has no meaning."""
    held: dict[int, Tensor] = {}
    for node, clamp in read_clamps(do, graph, schema, rows).items():
        if not isinstance(clamp, Tensor):
            raise InputError(
                f"{verb} takes numbers as interventions, or levels; {graph.nodes[node]!r} has a "
                f"function."
            )
        held[node] = clamp
    return held


def beyond_seen(do: Do | None, schema: Schema) -> tuple[str, ...]:
    """Returns a sentence for each column that is held beyond what was seen of it at fit."""
    sentences = []
    for column, note in zip(schema.columns, schema.notes, strict=False):
        value = (do or {}).get(column.name)
        if value is None or callable(value) or note.smallest is None or note.largest is None:
            continue
        held = np.asarray(value, dtype=np.float64)
        low, high = float(held.min()), float(held.max())
        if low < note.smallest or high > note.largest:
            shown = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            sentences.append(
                f"do({column.name} = {shown}) is outside what was seen of {column.name}, "
                f"{note.smallest:g} to {note.largest:g}: the answer is extrapolated."
            )
    return tuple(sentences)


def _hold(value: object, column: Column, rows: int) -> Tensor:
    what = f"the intervention on {column.name!r}"
    raw = _read(_as_cells(value, rows, column, what), column, what)
    return torch.tensor(column.encode(raw))


def _shift(function: Callable[[Any], Any], column: Column) -> Callable[[Tensor], Tensor]:
    what = f"what the function that intervenes on {column.name!r} returned"

    def clamp(natural: Tensor) -> Tensor:
        flat = natural.detach().cpu().double().numpy().ravel()
        wanted = _as_cells(function(column.natural(flat)), len(flat), column, what)
        raw = np.broadcast_to(_read(wanted, column, what), flat.shape)
        return torch.tensor(column.encode(raw)).reshape(natural.shape).to(natural)

    return clamp


def _as_cells(value: object, rows: int, column: Column, what: str) -> pd.Series:
    """Returns what was given as cells: one, or one a row, whatever row labels it has."""
    if isinstance(value, Tensor):
        value = value.detach().cpu().numpy()
    if not pd.api.types.is_list_like(value) or isinstance(value, Mapping | set | frozenset):
        single = value.item() if isinstance(value, np.ndarray) else value
        return pd.Series([single], dtype=None if _is_number(single) else object)
    if not isinstance(value, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        shape = np.shape(np.asarray(value, dtype=object))
        value = value if isinstance(value, np.ndarray) else list(value)  # type: ignore[call-overload]
    else:
        shape = (len(value),)
    if shape != (rows,):
        raise InputError(
            f"{what} has shape {shape}; expected {column.expected}, or one for each of the {rows} "
            f"rows."
        )
    return pd.Series(value).reset_index(drop=True)


def _read(cells: pd.Series, column: Column, what: str) -> np.ndarray:
    """Returns raw numbers of cells (n,), or says which cell is none."""
    if cells.isna().any() or _infinite(cells):
        raise InputError(f"{what} is missing or infinite; expected {column.expected}.")
    try:
        raw = column.parse(cells)
    except InputError as error:  # it names a row, and an intervention may have none
        words = (cell for cell in cells if not _is_number(cell))
        raise _refusal(what, next(words, cells.iloc[0]), column) from error
    if np.isnan(raw).any():
        raise _refusal(what, cells.iloc[int(np.isnan(raw).argmax())], column)
    return raw


def _refusal(what: str, cell: object, column: Column) -> InputError:
    shown = plain(cell)
    return InputError(
        f"{what} is {reprlib.repr(cell if shown is None else shown)}; expected "
        f"{column.expected}, one of these for each row, or a function."
    )


def _is_number(cell: object) -> bool:
    return plain(cell) is not None and not isinstance(cell, str)


def _infinite(cells: pd.Series) -> bool:
    if pd.api.types.is_any_real_numeric_dtype(cells):
        return bool(np.isinf(cells.to_numpy(dtype=np.float64, na_value=np.nan)).any())
    return any(isinstance(cell, float) and math.isinf(cell) for cell in cells)
