r"""Conditions that say who is in a group: `where="age > 60"`, or a function of the frame of units.

A text is read by the language of `queries.expressions`, and tried out on one unit before any work,
so that one that compares texts with numbers, or says neither yes nor no, is refused at once. That
needs names and levels of columns alone, so nothing here imports torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from misscnf.data.codecs import Column, Levels
from misscnf.data.table import Schema
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.queries.expressions import Expression

__all__ = ["Where", "read_condition", "holds"]

Where = str | Callable[[pd.DataFrame], Any]
"""A condition on the natural values of units, such as "age > 60", or a function that says it."""


def read_condition(text: str, graph: CausalGraph, schema: Schema) -> Expression:
    """Reads a condition, and refuses one that no unit can be asked: it is tried out on one."""
    condition = Expression.parse(text, graph.nodes)
    tried = {}
    for name in condition.columns:
        try:
            tried[name] = _cell(schema.columns[graph.index(name)])
        except InputError as error:
            raise InputError(f"where {text!r} reads {name!r}, and {error}") from error
    holds(condition, pd.DataFrame(tried, index=[0]))
    return condition


def _cell(column: Column) -> pd.Series:
    """Returns some cell of a column: its first level, or a number."""
    if column.latent:
        raise InputError("nobody measures it, so no row can be asked.")
    return column.series(np.zeros(1)) if isinstance(column, Levels) else pd.Series([0.5])


def holds(where: Expression | Callable[[pd.DataFrame], Any], frame: pd.DataFrame) -> np.ndarray:
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
    says = np.asarray(found)
    if says.shape != (len(frame),) or says.dtype != np.bool_:
        raise InputError(
            f"{shown} does not say yes or no for each row; expected a condition on columns, such "
            f"as 'age > 60'."
        )
    return says.copy()
