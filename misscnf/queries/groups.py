r"""Groups of units, by what they are without any intervention.

`where="age > 60"` is a condition on columns (`queries.conditions`); the treated are the units that
take by themselves what an intervention assigns them.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.cells import Label, level_text
from misscnf.data.codecs import Column, Levels
from misscnf.data.table import Schema
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.model import StructuralModel
from misscnf.queries.conditions import Where, holds, read_condition
from misscnf.queries.interventions import Do, written

__all__ = ["Group", "Part", "Where", "may_differ", "nearby", "split"]


@dataclass(frozen=True)
class Part:
    """The units that have one level of a column, or lie on one side of a number."""

    column: str
    level: Label | None = None
    end: float | None = None
    above: bool = False
    """Whether the units lie above the end, or up to it."""

    @property
    def label(self) -> str:
        """The group in a few words."""
        if self.end is None:
            return "" if self.level is None else level_text(self.level)
        end = f"{self.end:.10g}"  # 14000 rather than 1.4e+04
        return f"above {end}" if self.above else f"{end} or less"

    @property
    def columns(self) -> tuple[str, ...]:
        """What the condition reads."""
        return (self.column,)

    def __str__(self) -> str:
        return f"{self.column}: {self.label}"

    def __call__(self, units: pd.DataFrame) -> np.ndarray:
        """Returns who is in the group."""
        own = units[self.column]
        if self.end is None:
            return (own == self.level).to_numpy(dtype=bool)
        beyond = own.to_numpy(dtype=np.float64) > self.end
        return beyond if self.above else ~beyond


def split(column: Column, seen: np.ndarray, few_levels: int, least_share: float) -> list[Part]:
    """Returns the groups that a column makes: its levels, or both sides of its median.

    Arguments:
        column: Its codec.
        seen: Its values, codes for levels.
        few_levels: More levels than that are split at their median, if they are numbers.
        least_share: Of the values: a smaller group is left out, and one without any.
    """
    if isinstance(column, Levels):
        text = any(isinstance(level, str) for level in column.levels)
        if len(column.levels) <= few_levels:
            shares = [(seen == code).mean() for code in range(len(column.levels))]
            levels = zip(column.levels, shares, strict=True)
            kept = [level for level, share in levels if share > 0.0 and share >= least_share]
            return [Part(column.name, level) for level in kept]
        if text:
            return []  # text has no median to split at
        seen = np.array(column.levels, dtype=float)[seen.astype(np.int64)]
    low, median, high = np.quantile(seen, (0.25, 0.5, 0.75))
    end = nearby(float(median), float(high - low))
    below = (seen <= end).mean()
    if not 0.0 < below < 1.0 or not least_share <= below <= 1.0 - least_share:
        return []
    return [Part(column.name, end=end), Part(column.name, end=end, above=True)]


def nearby(value: float, spread: float) -> float:
    """Returns a short number near a value, within a twentieth of a spread around it."""
    return value if spread <= 0.0 else round(value, math.ceil(-math.log10(spread / 20.0)))


def may_differ(
    model: StructuralModel, held: Collection[int], outcome: int, reads: Collection[int]
) -> bool:
    """Says whether a model lets an effect depend on some columns.

    It does where, on a way from the nodes that are held to the outcome, what one parent adds may
    depend on another that has to do with these columns, or is no line beyond the first step.
    """
    graph = model.graph
    moved = graph.descendants(held) & graph.ancestral_closure([outcome])
    near = graph.descendants(reads) | graph.ancestral_closure(reads)
    for node in moved.difference(held):
        parents = graph.parents[node]
        for a, first in enumerate(parents):
            others = [b for b, second in enumerate(parents) if second in near and b != a]
            others += [a] * (first not in held)
            if first in moved and any(model.mechanism(node).interact(a, b) for b in others):
                return True
    return False


class Group:
    """Some of the units: those where a condition holds, who take by themselves what is `taken`."""

    def __init__(
        self, graph: CausalGraph, schema: Schema, where: Where | None, taken: Do | None
    ) -> None:
        self.schema = schema
        self.inner: Group | None = None
        """The larger group that this one is a part of."""
        if not (where is None or isinstance(where, str) or callable(where)):
            raise InputError(
                f"where is a condition such as `age > 60 and sex == 'f'`, or a function of the "
                f"frame of units, not of type {type(where).__name__}; join several with `and`."
            )
        self.where = read_condition(where, graph, schema) if isinstance(where, str) else where
        self.taken = [graph.index(name) for name in taken or ()]
        """The nodes that units take by themselves as they are assigned."""
        self.words = _in_words(where, taken)
        """The group in words, None where it is everyone."""
        self.reads: tuple[str, ...] = tuple(getattr(self.where, "columns", ()))
        """The columns that decide who is in it, as far as it says."""
        known = self.where is None or bool(self.reads)
        nodes = {*self.taken, *(graph.index(name) for name in self.reads)}
        self.decided_by: frozenset[int] | None = frozenset(nodes) if known else None
        """The nodes that do; None where a function does not say."""
        for column in (schema.columns[node] for node in self.taken):
            if not column.domain.discrete:
                raise InputError(
                    f"the effect on the treated needs levels that units take by themselves, and "
                    f"{column.name!r} is {column.shown_kind}; use where= instead."
                )

    def within(self, part: Part) -> Group:
        """Returns the units of the group that are in a part as well."""
        found = copy.copy(self)
        found.inner, found.words = self, _in_words(part, None)
        if self.words is not None:
            found.words = f"{self.words}, {found.words}"
        found.where, found.reads = part, part.columns
        if self.decided_by is not None:
            names = [column.name for column in self.schema.columns]
            found.decided_by = self.decided_by | {names.index(part.column)}
        return found

    def members(self, natural: Tensor, assigned: Tensor) -> Tensor:
        """Returns which units belong to it, (n,), by their natural and assigned values (n, d)."""
        if self.inner is not None:
            keep = self.inner.members(natural, assigned)
        else:
            keep = (natural[:, self.taken] == assigned[:, self.taken]).all(1)
        if self.where is not None:
            shown = self.schema.decode_frame(natural, only=self.reads)
            keep &= torch.from_numpy(holds(self.where, shown))
        if not keep.any():
            raise InputError(
                f"no unit of {len(natural)} is in the group ({self.words}); widen it, or take "
                f"more draws."
            )
        return keep


def _in_words(where: Where | None, taken: Do | None) -> str | None:
    words = []
    if where is not None:
        named = isinstance(where, str | Part)
        words.append(f"where {where}" if named else "where the function holds")
    if taken is not None:
        words.append(f"on those with {written(taken).removeprefix('do(').removesuffix(')')}")
    return ", ".join(words) or None
