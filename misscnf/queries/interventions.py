r"""Interventions as people write them, as policies of a structural model.

| `do=` | policy |
|---|---|
| `{"dose": 1.5}`, `{"stage": "III"}` | held at a number or a level |
| `{"dose": array}` | held at one value a row |
| `{"dose": lambda dose: dose + 1}` | a function of the natural value |
| `{"dose": lambda dose, age: …}` | a function of columns, by the names of its arguments |
| `{"dose": "min(dose, 2)"}` | the same as a text (`expressions`) |
| `{"stage": Draw({"I": 0.3, "II": 0.7})}` | a draw from a law, which may depend on columns |

All of them are in the user's units and labels, whole columns at once; the model has standardised
numbers and codes. Columns are read as they are under the intervention, the intervened column
itself as it would be by itself.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.cells import plain
from misscnf.data.codecs import Column, Levels
from misscnf.data.table import Schema
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.model.policies import Chance, Hold, Policy, Rule, sweep_order
from misscnf.queries.assigned import assigned, refusal
from misscnf.queries.expressions import Expression
from misscnf.queries.laws import Draw, DrawnLaw, call_of

__all__ = ["Do", "read_policies", "beyond_seen", "is_rule", "written"]

Do = Mapping[str, Any]
"""Column name → number or level, one a row, a function of columns, a text, or a `Draw`."""


def read_policies(
    do: Do | None, graph: CausalGraph, schema: Schema, shape: int | tuple[int, ...], seed: int = 0
) -> dict[int, Policy]:
    """Turns interventions in the user's units into policies by node.

    Their shape is the number of rows, or (draws, rows) where each row is drawn several times.
    """
    if do is not None and not isinstance(do, Mapping):
        raise InputError(f"interventions are {{column: value}}; got {type(do).__name__}.")
    shape = (shape,) if isinstance(shape, int) else shape
    policies: dict[int, Policy] = {}
    for name, value in (do or {}).items():
        graph.refuse_intervention(name)
        reader = _Reader(graph, schema, graph.index(name))
        if isinstance(value, str) and not is_level(value, reader.column):
            value = _parsed(value, reader.column, graph.nodes)
        if isinstance(value, Draw) or (isinstance(value, Expression) and value.draws):
            generator = derive_generator(seed, "policy", name)
            score = torch.randn(shape, generator=generator, dtype=torch.float64)
            law = value.law if isinstance(value, Draw) else value
            policies[reader.node] = reader.chance(law, score)
        elif isinstance(value, Expression) or callable(value):
            policies[reader.node] = reader.policy(value)
        else:
            held = assigned(value, shape[-1], reader.column, f"the intervention on {name!r}")
            policies[reader.node] = Hold(torch.tensor(held))
    sweep_order(graph, policies)  # refuses rules that read what they lead to
    return policies


def is_rule(value: Any, column: Column) -> bool:  # noqa: ANN401 - whatever a user gives
    """Says whether an intervention may assign different units different values."""
    if isinstance(value, str):
        return not is_level(value, column)
    return isinstance(value, Draw | Expression) or callable(value)


def is_level(text: str, column: Column) -> bool:
    """Says whether a text is a level of a column, and no expression."""
    return isinstance(column, Levels) and not np.isnan(column.parse(pd.Series([text]))[0])


def _parsed(text: str, column: Column, nodes: Sequence[str]) -> Expression:
    try:
        return Expression.parse(text, nodes)
    except InputError as error:
        raise InputError(
            f"the intervention on {column.name!r}: expected {column.expected}, or an expression, "
            f"and {error}"
        ) from error


@dataclass(frozen=True)
class _Reader:
    """Reads what is said about one node."""

    graph: CausalGraph
    schema: Schema
    node: int

    @property
    def column(self) -> Column:
        return self.schema.columns[self.node]

    def policy(self, rule: Expression | Callable[..., Any]) -> Policy:
        """Returns a deterministic rule; a value where it reads nothing."""
        reads, work_out = self.rule(rule)
        by = f"the expression {rule.text!r}" if isinstance(rule, Expression) else "the function"
        what = f"what {by} that intervenes on {self.column.name!r} returned"

        def function(*inputs: Tensor) -> Tensor:
            shape = torch.broadcast_shapes(*(x.shape for x in inputs))
            found, rows = work_out(self.cells(reads, inputs)), math.prod(shape)
            values = torch.tensor(assigned(found, rows, self.column, what))
            return values.expand(rows).reshape(shape)

        return Rule(function, reads) if reads else Hold(function()[None])

    def chance(self, rule: object, score: Tensor) -> Policy:
        """Returns a stochastic rule."""
        reads, work_out = self.rule(rule)
        law = DrawnLaw(self.column, lambda inputs: work_out(self.cells(reads, inputs)))
        if not reads:
            law.check()
        return Chance(law, score, reads)

    def cells(self, reads: Sequence[int], inputs: Sequence[Tensor]) -> list[pd.Series]:
        """Returns what is read in the user's cells, (rows,) each."""
        flat = [
            x.detach().cpu().double().numpy().ravel() for x in torch.broadcast_tensors(*inputs)
        ]
        return [self.schema.columns[j].natural(x) for j, x in zip(reads, flat, strict=True)]

    def rule(self, rule: object) -> tuple[tuple[int, ...], Callable[[list[pd.Series]], Any]]:
        """Returns what a rule reads, and how it is worked out from that."""
        if isinstance(rule, Expression):
            if rule.bare and not set(rule.columns) <= set(self.graph.nodes):
                raise refusal(  # it was meant as a value
                    f"the intervention on {self.column.name!r}", rule.text, self.column
                )
            reads = tuple(self.index(name, str(rule)) for name in rule.columns)
            return reads, lambda cells: rule.evaluate(dict(zip(rule.columns, cells, strict=True)))
        if not callable(rule) or hasattr(rule, "ppf"):
            return (), lambda cells: rule
        reads, keywords = self.arguments(rule)
        unnamed = len(reads) - len(keywords)

        def work_out(cells: list[pd.Series]) -> object:
            try:
                return rule(*cells[:unnamed], **dict(zip(keywords, cells[unnamed:], strict=True)))
            except InputError:
                raise
            except Exception as error:
                how = "it gets whole columns, so use numpy, such as np.minimum and np.where."
                if isinstance(error, KeyError):  # it takes its argument for a frame
                    how = (
                        f"it gets the columns that its arguments are called like, and no frame; "
                        f"text takes any name, as in '`{self.column.name}` + 1'."
                    )
                raise InputError(
                    f"the function that intervenes on {self.column.name!r} cannot be worked out "
                    f"({type(error).__name__}: {error}); {how}"
                ) from error

        return reads, work_out

    def arguments(self, function: Callable[..., Any]) -> tuple[tuple[int, ...], list[str]]:
        """Returns the nodes that a function reads, and the names of arguments that need one.

        Arguments with a default are the function's own. A single argument that is called like no
        column is the natural value, whatever its name.
        """
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):  # some of numpy's functions do not say
            return (self.node,), []
        rest = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        wanted = [p for p in parameters if p.default is p.empty and p.kind not in rest]
        keywords = [p.name for p in wanted if p.kind is p.KEYWORD_ONLY]
        named = {p.name for p in wanted if p.kind is not p.POSITIONAL_ONLY}
        takes_any = not wanted and any(p.kind is p.VAR_POSITIONAL for p in parameters)
        if takes_any or (len(wanted) == 1 and named.isdisjoint(self.graph.nodes)):
            return (self.node,), keywords
        return tuple(self.index(p.name, call_of(function)) for p in wanted), keywords

    def index(self, name: str, rule: str) -> int:
        """Returns the node of a column that a rule reads."""
        try:
            return self.graph.index(name)
        except InputError as error:
            raise InputError(
                f"the rule {rule} for {self.column.name!r} reads {name!r}, and {error}"
            ) from error


def beyond_seen(do: Do | None, schema: Schema) -> tuple[str, ...]:
    """Returns a sentence for each column that is held beyond what was seen of it at fit."""
    sentences = []
    for column, note in zip(schema.columns, schema.notes, strict=False):
        value = (do or {}).get(column.name)
        ruled = value is None or callable(value) or isinstance(value, str | Expression | Draw)
        if ruled or note.smallest is None or note.largest is None:
            continue
        try:
            held = np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            held = np.empty(0)
        if not held.size:  # no number, and refused where it is assigned
            continue
        low, high = float(held.min()), float(held.max())
        if low < note.smallest or high > note.largest:
            shown = f"{low:g}" if low == high else f"{low:g} to {high:g}"
            sentences.append(
                f"do({column.name} = {shown}) is outside what was seen of {column.name}, "
                f"{note.smallest:g} to {note.largest:g}: the answer is extrapolated."
            )
    return tuple(sentences)


def written(do: Do) -> str:
    """Returns an intervention as people write it, such as "do(dose = 1.5)"."""
    return f"do({', '.join(f'{name} = {_shown(value)}' for name, value in do.items())})"


def _shown(value: object) -> str:
    if isinstance(value, Draw | Expression):
        return str(value)
    if callable(value):
        return call_of(value)
    label = plain(value)
    if isinstance(label, str | bool):
        return repr(label)
    return "…" if label is None else f"{label:g}"
