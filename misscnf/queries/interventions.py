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
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from scipy.special import ndtr
from torch import Tensor

from misscnf.data.cells import plain
from misscnf.data.codecs import Column, Levels
from misscnf.data.table import Schema
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.model.policies import Chance, Hold, Policy, Rule, sweep_order
from misscnf.queries.expressions import Expression

__all__ = ["Do", "Draw", "read_policies", "beyond_seen", "written"]

Do = Mapping[str, Any]
"""Column name → number or level, one a row, a function of columns, a text, or a `Draw`."""

LARGEST_CHANCE = 1.0 - 2.0**-53
"""The largest number below 1: its quantile is finite where that of 1 is not."""


class _Distribution(Protocol):
    """A frozen distribution, as scipy.stats has them; with logpdf or logpmf for densities."""

    def ppf(self, q: np.ndarray) -> np.ndarray:
        """Returns quantiles."""


@dataclass(frozen=True)
class Draw:
    """A stochastic rule: the column is drawn, for each row anew.

    Arguments:
        law: What it is drawn from: `{level: probability}`; a number, the probability of the
            higher level of a binary column; a frozen distribution, such as
            `scipy.stats.norm(2, 0.5)`; or a function of columns that returns one of these, with
            one number a row where it depends on them. As a text: `"normal(dose + 1, 0.5)"`.

    Example:
        >>> Draw({"low": 0.3, "high": 0.7})
        Draw({'low': 0.3, 'high': 0.7})
        >>> rule = Draw(lambda age: 1 / (1 + np.exp(60 - age)))
    """

    law: float | Mapping[Any, Any] | _Distribution | Callable[..., Any] | Expression

    def __repr__(self) -> str:
        return f"Draw({_call(self.law) if callable(self.law) else repr(self.law)})"


def read_policies(
    do: Do | None,
    graph: CausalGraph,
    schema: Schema,
    shape: int | tuple[int, ...],
    seed: int = 0,
) -> dict[int, Policy]:
    """Turns interventions in the user's units into policies by node.

    Arguments:
        do: The interventions.
        graph: The causal graph.
        schema: The units.
        shape: How many rows they apply to; (draws, rows) where each row is drawn several times.
        seed: Where the randomness of draws starts.
    """
    if do is not None and not isinstance(do, Mapping):
        raise InputError(f"interventions are {{column: value}}; got {type(do).__name__}.")
    shape = (shape,) if isinstance(shape, int) else shape
    policies: dict[int, Policy] = {}
    for name, value in (do or {}).items():
        reader = _Reader(graph, schema, graph.index(name))
        if isinstance(value, str) and not _is_level(value, reader.column):
            value = _parsed(value, reader.column)
        if isinstance(value, Expression) and value.draws:
            value = Draw(value)
        if isinstance(value, Draw):
            generator = derive_generator(seed, "policy", name)
            score = torch.randn(shape, generator=generator, dtype=torch.float64)
            law = _Law(reader, *reader.rule(value.law))
            policies[reader.node] = Chance(law, score, law.reads)
        elif isinstance(value, Expression) or callable(value):
            policies[reader.node] = reader.policy(value)
        else:
            policies[reader.node] = Hold(reader.hold(value, shape[-1]))
    sweep_order(graph, policies)  # refuses rules that read what they lead to
    return policies


def _is_level(text: str, column: Column) -> bool:
    return isinstance(column, Levels) and not np.isnan(column.parse(pd.Series([text]))[0])


def _parsed(text: str, column: Column) -> Expression:
    try:
        return Expression.parse(text)
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

    def hold(self, value: object, rows: int) -> Tensor:
        """Returns values that a node is held at, (1,) or (rows,)."""
        what = f"the intervention on {self.column.name!r}"
        raw = _read(_as_cells(value, rows, self.column, what), self.column, what)
        return torch.tensor(self.column.encode(raw))

    def policy(self, rule: Expression | Callable[..., Any]) -> Policy:
        """Returns a deterministic rule; a value where it reads nothing."""
        reads, work_out = self.rule(rule)
        what = f"what {_called(rule)} that intervenes on {self.column.name!r} returned"

        def function(*inputs: Tensor) -> Tensor:
            shape = torch.broadcast_shapes(*(x.shape for x in inputs))
            count = math.prod(shape)
            wanted = _as_cells(work_out(self.cells(reads, inputs)), count, self.column, what)
            raw = np.broadcast_to(_read(wanted, self.column, what), (count,))
            return torch.tensor(self.column.encode(raw)).reshape(shape)

        if reads:
            return Rule(function, reads)
        constant = _as_cells(work_out([]), 1, self.column, what)
        return Hold(torch.tensor(self.column.encode(_read(constant, self.column, what))))

    def cells(self, reads: Sequence[int], inputs: Sequence[Tensor]) -> list[pd.Series]:
        """Returns what is read in the user's cells, (rows,) each."""
        columns = []
        for j, x in zip(reads, torch.broadcast_tensors(*inputs) if inputs else (), strict=True):
            flat = x.detach().cpu().double().numpy().ravel()
            columns.append(self.schema.columns[j].natural(flat))
        return columns

    def rule(self, rule: object) -> tuple[tuple[int, ...], Callable[[list[pd.Series]], Any]]:
        """Returns what a rule reads, and how it is worked out from that."""
        if isinstance(rule, Expression):
            if rule.bare and not set(rule.columns) <= set(self.graph.nodes):
                raise _refusal(  # it was meant as a value
                    f"the intervention on {self.column.name!r}", rule.text, self.column
                )
            reads = tuple(self.index(name, str(rule)) for name in rule.columns)
            return reads, lambda cells: rule.evaluate(dict(zip(rule.columns, cells, strict=True)))
        if not callable(rule) or hasattr(rule, "ppf"):
            return (), lambda cells: rule
        reads, keywords = self.arguments(rule)

        def work_out(cells: list[pd.Series]) -> object:
            named = dict(zip(keywords, cells[len(cells) - len(keywords) :], strict=True))
            try:
                return rule(*cells[: len(cells) - len(keywords)], **named)
            except InputError:
                raise
            except Exception as error:
                raise InputError(
                    f"the function that intervenes on {self.column.name!r} cannot be worked out "
                    f"({type(error).__name__}: {error}); it gets whole columns, so use numpy, "
                    f"such as np.minimum and np.where."
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
        named = [p.name for p in wanted if p.kind is not inspect.Parameter.POSITIONAL_ONLY]
        if len(wanted) == 1 and (not named or named[0] not in self.graph.nodes):
            return (self.node,), named if wanted[0].kind is inspect.Parameter.KEYWORD_ONLY else []
        if not wanted and any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
            return (self.node,), []
        reads = tuple(self.index(p.name, _call(function)) for p in wanted)
        keywords = [p.name for p in wanted if p.kind is inspect.Parameter.KEYWORD_ONLY]
        return reads, keywords

    def index(self, name: str, rule: str) -> int:
        """Returns the node of a column that a rule reads."""
        try:
            return self.graph.index(name)
        except InputError as error:
            raise InputError(
                f"the rule {rule} for {self.column.name!r} reads {name!r}, and {error}"
            ) from error




class _Law:
    """The law of a `Draw`, over the model's values.

    Arguments:
        reader: Reads what is said about the node.
        reads: The nodes that the law depends on.
        work_out: Says the law from their cells.
    """

    def __init__(
        self,
        reader: _Reader,
        reads: tuple[int, ...],
        work_out: Callable[[list[pd.Series]], Any],
    ) -> None:
        self.reader, self.reads, self.work_out = reader, reads, work_out
        self.column = reader.column
        self.what = f"what {self.column.name!r} is drawn from"
        if not reads:
            self._at([], 1)  # refuses now what is no law

    def draw(self, score: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """Returns quantiles at Φ(score)."""
        (score, *inputs), shape = _together(score, *inputs)
        law = self._at(inputs, math.prod(shape))
        chance = np.clip(ndtr(score.detach().cpu().double().numpy().ravel()), 1e-300, None)
        found = law.quantile(np.minimum(chance, LARGEST_CHANCE))
        return torch.tensor(found).reshape(shape).to(score)

    def log_prob(self, x: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """Returns the log-density in the model's units."""
        (x, *inputs), shape = _together(x, *inputs)
        law = self._at(inputs, math.prod(shape))
        found = law.log_prob(x.detach().cpu().double().numpy().ravel())
        return torch.tensor(found).reshape(shape).to(x)

    def support(self, inputs: Sequence[Tensor], tail: float) -> Tensor:
        """Returns one more than the quantile at 1 − tail."""
        shape = torch.broadcast_shapes(*(x.shape for x in inputs))
        count = math.prod(shape)
        law = self._at(inputs, count)
        return torch.tensor(law.quantile(np.full(count, 1.0 - tail))).reshape(shape).long() + 1

    def _at(self, inputs: Sequence[Tensor], rows: int) -> _Chances | _Continuum:
        """Returns the law given what it reads."""
        law = self.work_out(self.reader.cells(self.reads, inputs))
        if hasattr(law, "ppf"):
            if isinstance(self.column, Levels):
                raise InputError(
                    f"{self.what} is a distribution of numbers; expected probabilities of "
                    f"{self.column.expected.removeprefix('one of ')}, such as {{level: 0.5, …}}."
                )
            return _Continuum(law, self.column, self.what)
        if not isinstance(law, Mapping):
            if not isinstance(self.column, Levels) or len(self.column.levels) != 2:
                raise InputError(
                    f"{self.what} is {reprlib.repr(law)}; expected {{value: probability}}, or a "
                    f"distribution such as scipy.stats.norm(0, 1); one probability is for a "
                    f"column with two levels."
                )
            chance = np.asarray(law, dtype=np.float64)
            law = dict(zip(self.column.levels, (1.0 - chance, chance), strict=True))
        return _Chances.read(law, self.column, rows, self.what)


def _together(*tensors: Tensor) -> tuple[list[Tensor], torch.Size]:
    """Returns tensors of one shape, and that shape."""
    broadcast = list(torch.broadcast_tensors(*tensors))
    return broadcast, broadcast[0].shape


@dataclass(frozen=True)
class _Chances:
    """Values with probabilities, (n, k)."""

    values: np.ndarray
    """(k,) in the model's units"""
    chances: np.ndarray
    """(n, k), or (1, k)"""
    dense: str
    """Why there is no density; empty where single values have probabilities."""

    @staticmethod
    def read(law: Mapping[Any, Any], column: Column, rows: int, what: str) -> _Chances:
        """Reads {value: probability}, the latter a number or one a row."""
        cells = _as_cells(list(law), len(law), column, what)
        values = column.encode(_read(cells, column, what))
        try:
            parts = [np.atleast_1d(np.asarray(p, dtype=np.float64)) for p in law.values()]
            chances = np.stack(np.broadcast_arrays(*parts), axis=-1)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"{what} has probabilities that are no numbers, or not one for each row."
            ) from error
        off = np.abs(chances.sum(-1) - 1.0)
        if len(chances) not in (1, rows) or not (chances >= 0).all() or not (off < 1e-6).all():
            raise InputError(
                f"{what} has probabilities that are not at least 0 with a sum of 1, as numbers or "
                f"one for each of the {rows} rows."
            )
        dense = "" if column.domain.discrete else f"{what} has single numbers and no density"
        return _Chances(values, chances, dense)

    def quantile(self, chance: np.ndarray) -> np.ndarray:
        """Returns the first value at which the probabilities so far pass a chance (n,)."""
        upto = np.cumsum(self.chances, axis=-1)
        place = (chance[:, None] * upto[:, -1:] > upto).sum(-1)
        return self.values[np.minimum(place, len(self.values) - 1)]

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        """Returns the log-probability of values, (n,)."""
        if self.dense:
            raise InputError(f"{self.dense}; leave the column out, or draw it from a density.")
        same = np.rint(x)[:, None] == self.values
        with np.errstate(divide="ignore"):
            return np.log((same * self.chances).sum(-1))


@dataclass(frozen=True)
class _Continuum:
    """A distribution of numbers."""

    law: Any
    column: Column
    what: str

    def quantile(self, chance: np.ndarray) -> np.ndarray:
        """Returns quantiles at chances (n,), in the model's units."""
        numbers = self._of_rows(self.law.ppf, chance)
        return self.column.encode(_read(pd.Series(numbers), self.column, self.what))

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        """Returns the log-density at values (n,), of the model's units."""
        discrete = self.column.domain.discrete
        density = getattr(self.law, "logpmf" if discrete else "logpdf", None)
        if density is None:
            kind = "probabilities (logpmf)" if discrete else "a density (logpdf)"
            raise InputError(f"{self.what} has not {kind}, as a {self.column.shown_kind} needs.")
        raw = self.column.decode(x)
        return self._of_rows(density, raw) - self.column.log_slope(raw)

    def _of_rows(self, function: Callable[[np.ndarray], Any], at: np.ndarray) -> np.ndarray:
        try:
            return np.broadcast_to(np.asarray(function(at), dtype=np.float64), at.shape)
        except ValueError as error:
            raise InputError(
                f"{self.what} has not one parameter for each of the {len(at)} rows; where it "
                f"depends on rows, give a function of columns: Draw(lambda age: …)."
            ) from error


def beyond_seen(do: Do | None, schema: Schema) -> tuple[str, ...]:
    """Returns a sentence for each column that is held beyond what was seen of it at fit."""
    sentences = []
    for column, note in zip(schema.columns, schema.notes, strict=False):
        value = (do or {}).get(column.name)
        ruled = value is None or callable(value) or isinstance(value, str | Expression | Draw)
        if ruled or note.smallest is None or note.largest is None:
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


def written(do: Do) -> str:
    """Returns an intervention as people write it, such as "do(dose = 1.5)"."""
    return f"do({', '.join(f'{name} = {_shown(value)}' for name, value in do.items())})"


def _shown(value: object) -> str:
    if isinstance(value, Draw | Expression):
        return str(value)
    if callable(value):
        return _call(value)
    label = plain(value)
    if label is None:
        return "…"
    return repr(label) if isinstance(label, str | bool) else f"{label:g}"


def _call(function: Callable[..., Any]) -> str:
    """Returns how a function is called, such as "f(dose, age)"."""
    name = getattr(function, "__name__", "f")
    try:
        arguments = ", ".join(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        arguments = "…"
    return f"{'f' if name == '<lambda>' else name}({arguments})"


def _called(rule: Expression | Callable[..., Any]) -> str:
    return f"the expression {rule.text!r}" if isinstance(rule, Expression) else "the function"


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
