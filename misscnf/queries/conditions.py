r"""Conditions that say who is in a group: `where="age > 60"`, or a function of the frame of units.

A text is read by the language of `queries.expressions`, and tried out on one unit before any work,
so that one that compares texts with numbers, or says neither yes nor no, is refused at once. That
needs names and levels of columns alone, so nothing here imports torch.
"""

from __future__ import annotations

import ast
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
    _refuse_what_is_no_level(condition, {c.name: c for c in schema.columns})
    return condition


def _refuse_what_is_no_level(condition: Expression, columns: dict[str, Column]) -> None:
    """Refuses a column of levels that is held against what is none of them: nobody has it."""
    of_equality = ast.Eq | ast.NotEq | ast.In | ast.NotIn
    for node in ast.walk(condition.tree):
        if not isinstance(node, ast.Compare) or not isinstance(node.ops[0], of_equality):
            continue
        sides = [node.left, *node.comparators]
        parts = [part for side in sides for part in getattr(side, "elts", [side])]
        said = [part.value for part in parts if isinstance(part, ast.Constant)]
        for side in (side for side in sides if isinstance(side, ast.Name)):
            column = columns[condition.names[side.id]]
            strange = [x for x in said if isinstance(column, Levels) and x not in column.levels]
            if strange:
                raise InputError(
                    f"where {condition.text!r}: {column.name!r} is {column.expected}, and never "
                    f"{strange[0]!r}."
                )


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
