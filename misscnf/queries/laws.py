r"""Stochastic rules: a column that is drawn, by a law that may depend on other columns.

A law is used by its quantiles, x = F⁻¹(Φ(v)) with one standard normal number v a row: two arms
with the same v differ by their laws alone, and integrals place v where they need it. Its density
is that of the user's units over |dz/dx|, as any density of the model's values is.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from misscnf.data.codecs import Column, Levels
from misscnf.errors import InputError
from misscnf.queries.assigned import assigned
from misscnf.queries.expressions import Expression

__all__ = ["Draw", "DrawnLaw", "call_of"]


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
        return f"Draw({call_of(self.law) if callable(self.law) else repr(self.law)})"


def call_of(function: Callable[..., Any]) -> str:
    """Returns how a function is called, such as "f(dose, age)"; what a lambda returns."""
    name = getattr(function, "__name__", "f")
    body = _body(function) if name == "<lambda>" else None
    if body is not None:
        return body
    try:
        arguments = ", ".join(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        arguments = "…"
    return f"{'f' if name == '<lambda>' else name}({arguments})"


def _body(function: Callable[..., Any]) -> str | None:
    """Returns what a lambda returns, as it was written; None where its text is not at hand."""
    code = function.__code__
    try:
        tree = ast.parse("".join(linecache.getlines(code.co_filename)))
    except (SyntaxError, ValueError):
        return None
    spans = set(code.co_positions())  # the whole body is the span of its outermost operation
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            body = node.body
            own = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
            if own in spans:
                return ast.unparse(body)
    return None


class DrawnLaw:
    """The law of a `Draw`, over the model's values; `law_at` says it from what it reads."""

    def __init__(self, column: Column, law_at: Callable[[Sequence[Tensor]], Any]) -> None:
        self.column, self.law_at = column, law_at
        self.what = f"what {column.name!r} is drawn from"

    def draw(self, score: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """Returns quantiles at Φ(score)."""
        score, *inputs = torch.broadcast_tensors(score, *inputs)
        chance = ndtr(score.detach().cpu().double().numpy().ravel())
        # The quantiles of 0 and 1 may be infinite; those of their neighbours are not.
        chance = chance.clip(np.finfo(float).tiny, np.nextafter(1.0, 0.0))
        found = self._at(inputs, score.numel()).quantile(chance)
        return torch.tensor(found).reshape(score.shape).to(score)

    def log_prob(self, x: Tensor, inputs: Sequence[Tensor]) -> Tensor:
        """Returns the log-density in the model's units."""
        x, *inputs = torch.broadcast_tensors(x, *inputs)
        at = x.detach().cpu().double().numpy().ravel()
        return torch.tensor(self._at(inputs, len(at)).log_prob(at)).reshape(x.shape).to(x)

    def support(self, inputs: Sequence[Tensor], tail: float) -> Tensor:
        """Returns one more than the quantile at 1 − tail."""
        shape = torch.broadcast_shapes(*(x.shape for x in inputs))
        chance = np.full(math.prod(shape), 1.0 - tail)
        found = self._at(inputs, len(chance)).quantile(chance)
        return torch.tensor(found).reshape(shape).long() + 1

    def check(self) -> None:
        """Refuses what is no law, where it depends on nothing."""
        self._at([], 1)

    def _at(self, inputs: Sequence[Tensor], rows: int) -> _Chances | _Distributed:
        """Returns the law, given what it reads."""
        law = self.law_at(inputs)
        if hasattr(law, "ppf"):
            if isinstance(self.column, Levels):
                raise InputError(
                    f"{self.what} is a distribution of numbers; expected probabilities of "
                    f"{self.column.expected.removeprefix('one of ')}, such as {{level: 0.5, …}}."
                )
            return _Distributed(law, self.column, self.what)
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


@dataclass(frozen=True)
class _Chances:
    """Values with probabilities, (n, k)."""

    values: np.ndarray
    """(k,) in the model's units"""
    chances: np.ndarray
    """(n, k), or (1, k)"""
    no_density: str
    """Why there is no density; empty where single values have probabilities."""

    @staticmethod
    def read(law: Mapping[Any, Any], column: Column, rows: int, what: str) -> _Chances:
        """Reads {value: probability}, the latter a number or one a row."""
        values = assigned(list(law), len(law), column, what)
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
        points = f"{what} has single numbers and no density"
        return _Chances(values, chances, "" if column.domain.discrete else points)

    def quantile(self, chance: np.ndarray) -> np.ndarray:
        """Returns the first value at which the probabilities so far pass a chance (n,)."""
        upto = np.cumsum(self.chances, axis=-1)
        place = (chance[:, None] * upto[:, -1:] > upto).sum(-1)
        return self.values[np.minimum(place, len(self.values) - 1)]

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        """Returns the log-probability of values, (n,)."""
        if self.no_density:
            ask = "leave the column out, or draw it from a density"
            raise InputError(f"{self.no_density}; {ask}.")
        same = np.rint(x)[:, None] == self.values
        with np.errstate(divide="ignore"):
            return np.log((same * self.chances).sum(-1))


@dataclass(frozen=True)
class _Distributed:
    """A distribution of numbers."""

    law: Any
    column: Column
    what: str

    def quantile(self, chance: np.ndarray) -> np.ndarray:
        """Returns quantiles at chances (n,), in the model's units."""
        numbers = self._of_rows(self.law.ppf, chance)
        return assigned(numbers, len(numbers), self.column, self.what)

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
