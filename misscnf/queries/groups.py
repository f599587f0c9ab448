r"""Groups of units, by what they are without any intervention.

`where="age > 60"` is a condition on columns (`queries.expressions`), or a function of the frame of
natural values; the treated are the units that take by themselves what an intervention
assigns them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.table import Schema
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.queries.expressions import Expression
from misscnf.queries.interventions import Do, written

__all__ = ["Group", "Where"]

Where = str | Callable[[pd.DataFrame], Any]
"""A condition on the natural values of units, such as "age > 60", or a function that says it."""


class Group:
    """Some of the units: those where a condition holds, who take by themselves what is `taken`."""

    def __init__(
        self, graph: CausalGraph, schema: Schema, where: Where | None, taken: Do | None
    ) -> None:
        self.schema = schema
        if not (where is None or isinstance(where, str) or callable(where)):
            raise InputError(
                f"where is a condition such as 'age > 60 and sex == 'f'', or a function of the "
                f"frame of units, not of type {type(where).__name__}; join several with `and`."
            )
        self.where = _condition(where, graph, schema) if isinstance(where, str) else where
        self.taken = [graph.index(name) for name in taken or ()]
        """The nodes that units take by themselves as they are assigned."""
        self.words = _in_words(where, taken)
        """The group in words, None where it is everyone."""
        for column in (schema.columns[node] for node in self.taken):
            if not column.domain.discrete:
                raise InputError(
                    f"the effect on the treated needs levels that units take by themselves, and "
                    f"{column.name!r} is {column.shown_kind}; use where= instead."
                )

    def members(self, natural: Tensor, assigned: Tensor) -> Tensor:
        """Returns which units belong to it, (n,), by their natural and assigned values (n, d)."""
        keep = (natural[:, self.taken] == assigned[:, self.taken]).all(1)
        if self.where is not None:
            keep &= _holds(self.where, self.schema.decode_frame(natural))
        if not keep.any():
            raise InputError(
                f"no unit of {len(natural)} is in the group ({self.words}); widen it, or take "
                f"more draws."
            )
        return keep


def _in_words(where: Where | None, taken: Do | None) -> str | None:
    words = []
    if where is not None:
        words.append(f"where {where}" if isinstance(where, str) else "where the function holds")
    if taken is not None:
        words.append(f"on those with {written(taken).removeprefix('do(').removesuffix(')')}")
    return ", ".join(words) or None


def _condition(text: str, graph: CausalGraph, schema: Schema) -> Expression:
    """Reads a condition, and refuses one that no unit can be asked: it is tried out on one."""
    condition = Expression.parse(text, graph.nodes)
    for name in condition.columns:
        try:
            graph.index(name)
        except InputError as error:
            raise InputError(f"where {text!r} reads {name!r}, and {error}") from error
    unit = [0.0 if column.domain.discrete else 0.5 for column in schema.columns]
    _holds(condition, schema.decode_frame(torch.tensor([unit], dtype=torch.float64)))
    return condition


def _holds(where: Expression | Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> Tensor:
    """Returns for which rows the condition holds, (n,)."""
    if isinstance(where, Expression):
        shown = f"where {where.text!r}"
        found = where.evaluate({name: frame[name] for name in where.columns})
    else:
        shown = f"where {where!r}"
        try:
            found = where(frame)
        except Exception as error:
            raise InputError(
                f"{shown} cannot be worked out ({error}); expected a condition on columns, such "
                f"as 'age > 60'."
            ) from error
    holds = np.asarray(found)
    if holds.shape != (len(frame),) or holds.dtype != np.bool_:
        raise InputError(
            f"{shown} does not say yes or no for each row; expected a condition on columns, such "
            f"as 'age > 60'."
        )
    return torch.from_numpy(holds.copy())
