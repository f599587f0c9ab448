r"""A small language for rules: `min(dose, 2)`, `age > 60`, `'high' if age > 60 else stage`.

| part | what |
|---|---|
| values | numbers, texts in quotes, True, False |
| columns | by name; in backticks if it has other signs than letters, dots and spaces |
| arithmetic | + − * / // % ** |
| conditions | < <= > >= == !=, in ('II', 'III'), and, or, not (& | ~ too), a if c else b |
| functions | min max abs round exp log sqrt floor ceil clip(x, low, high) where(c, a, b) |
| of pandas | isna(x) notna(x) between(x, low, high), also as x.isna() and so on |
| draws | bernoulli(p) normal(mean, sd) uniform(low, high) poisson(mean) choose('a', p, 'b', q) |

A draw is the whole text. There is nothing else: no attributes, no subscripts, no other calls, so
that a text from a stranger can do no harm. Text is parsed by Python's own parser and walked here;
numbers are float64, so that a tower of powers ends in infinity instead of a long wait.
"""

from __future__ import annotations

import ast
import difflib
import keyword
import re
from collections.abc import Callable, Collection, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from misscnf.data.cells import plain
from misscnf.errors import InputError

__all__ = ["Expression"]

MOST_CHARACTERS = 2000
DEEPEST = 50
"""Levels of nesting, so that a walk never runs out of stack."""

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
    ast.USub: np.negative,
    ast.UAdd: np.positive,
    ast.Not: np.logical_not,
    ast.Invert: np.logical_not,
    ast.And: np.logical_and,
    ast.Or: np.logical_or,
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


def _where(condition: Any, yes: Any, no: Any) -> Any:  # noqa: ANN401 - arrays of any kind
    kinds = {np.asarray(side).dtype.kind for side in (yes, no)}
    as_kind = object if len(kinds) > 1 or kinds & set("OU") else None
    return np.where(condition, np.asarray(yes, as_kind), np.asarray(no, as_kind))


def _chances(*pairs: Any) -> dict[Any, Any]:  # noqa: ANN401 - levels and numbers in turn
    levels = [np.asarray(level).item() for level in pairs[::2]]
    return dict(zip(levels, pairs[1::2], strict=True))


def _law(name: str, *parameters: Any) -> Any:  # noqa: ANN401 - numbers; a frozen distribution
    from scipy import stats  # here, since it takes a second to import and few texts draw

    return getattr(stats, name)(*parameters)


class _Call(NamedTuple):
    """What a name that is called does."""

    fewest: int
    most: int
    """Arguments."""
    function: Callable[..., Any]
    draws: bool = False
    """Whether it returns a law, as `Draw` takes it, instead of values."""


_CALLS = {
    "min": _Call(2, 20, lambda *sides: reduce(np.minimum, sides)),
    "max": _Call(2, 20, lambda *sides: reduce(np.maximum, sides)),
    "abs": _Call(1, 1, np.abs),
    "round": _Call(1, 2, lambda x, digits=0.0: np.round(x, int(digits))),
    **{name: _Call(1, 1, getattr(np, name)) for name in ("exp", "log", "sqrt", "floor", "ceil")},
    "clip": _Call(3, 3, lambda x, low, high: np.minimum(np.maximum(x, low), high)),
    "where": _Call(3, 3, _where),
    "isna": _Call(1, 1, pd.isna),
    "notna": _Call(1, 1, pd.notna),
    "between": _Call(3, 3, lambda x, low, high: np.logical_and(x >= low, x <= high)),
    "bernoulli": _Call(1, 1, lambda p: p, draws=True),
    "normal": _Call(2, 2, lambda mean, sd: _law("norm", mean, sd), draws=True),
    "uniform": _Call(2, 2, lambda a, b: _law("uniform", a, np.subtract(b, a)), draws=True),
    "poisson": _Call(1, 1, lambda mean: _law("poisson", mean), draws=True),
    "choose": _Call(2, 40, _chances, draws=True),
}
_METHODS = ("isna", "notna", "between")
"""What may be asked of a column after a dot, as in pandas."""


class Expression:
    """A text of the language, as a tree in which names stand for columns."""

    literal = r"'[^']*'|\"[^\"]*\"|`[^`]*`"
    """What is not taken apart: texts, and names in backticks."""

    def __init__(self, text: str, tree: ast.expr, names: Mapping[str, str]) -> None:
        self.text, self.tree, self.names = text, tree, dict(names)

    @staticmethod
    def parse(text: str, columns: Collection[str] = (), *, long: bool = False) -> Expression:
        """Reads a text, or says what in it is not of the language.

        Of columns that are known, names with dots and spaces need no backticks. One may be `long`
        that was made of a short one, such as a rule on all visits.
        """
        if len(text) > MOST_CHARACTERS and not long:
            raise InputError(f"an expression has {MOST_CHARACTERS} characters at most.")
        plain_text, quoted = _unquoted(text, columns)
        try:
            tree = ast.parse(plain_text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            reason = getattr(error, "msg", None) or "it is nested too deeply"
            advice = "expected one such as min(dose, 2) or age > 60"
            doubled = re.sub(rf"{Expression.literal}|(?<![<>=!])=(?!=)", _doubled, text)
            if doubled != text:
                reason, advice = "= assigns", f"two of them compare: {_shown(doubled)}"
            raise InputError(
                f"{_shown(text)} cannot be read as an expression ({reason}); {advice}."
            ) from error
        _check(tree, plain_text.strip())
        called = {id(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
        names = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and id(n) not in called]
        return Expression(text, tree, {n.id: quoted.get(n.id, n.id) for n in names})

    def __str__(self) -> str:
        return self.text

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(dict.fromkeys(self.names.values()))

    @property
    def bare(self) -> bool:
        """Whether it is one word or one number, and nothing is worked out."""
        return isinstance(self.tree, ast.Name | ast.Constant)

    @property
    def draws(self) -> bool:
        """Whether it names a law."""
        name, _ = _called(self.tree)
        return name is not None and _CALLS[name].draws

    def evaluate(self, columns: Mapping[str, pd.Series]) -> Any:  # noqa: ANN401 - value or law
        """Works it out for rows: a number, a text, an array, or what `Draw` takes."""
        known = {name: _array(columns[column]) for name, column in self.names.items()}
        try:
            with np.errstate(all="ignore"):
                return _value(self.tree, known)
        except (TypeError, ValueError, ArithmeticError) as error:
            raise InputError(
                f"{_shown(self.text)} cannot be worked out ({error}); compare and calculate "
                f"numbers with numbers, and texts with texts."
            ) from error


def _doubled(match: re.Match[str]) -> str:
    return "==" if match.group() == "=" else match.group()


def _unquoted(text: str, columns: Collection[str]) -> tuple[str, dict[str, str]]:
    """Returns the text with plain words for names in backticks, and what these stand for.

    So do names of columns that Python would take apart (`bp.sys`), or for words of its own.

    As in pandas, & and | are `and` and `or`: Python's own would come before comparisons.
    """
    quoted: dict[str, str] = {}

    def word(match: re.Match[str]) -> str:
        if match.group() in "&|":
            return " and " if match.group() == "&" else " or "
        if not match.group().startswith("`") and match.group() not in odd:
            return match.group()
        name = f"_{len(quoted)}_quoted_column"
        quoted[name] = match.group().strip("`")
        return name

    ours = {"and", "or", "not", "in", "if", "else", "True", "False", "None"}
    odd = {
        name
        for name in columns
        if re.fullmatch(r"[^\W\d][\w. ]*", name)
        and (keyword.iskeyword(name) or not name.isidentifier())
        and name not in ours
    }
    longest_first = sorted(odd, key=lambda name: (-len(name), name))
    names = "".join(rf"|(?<![\w.]){re.escape(name)}(?!\w)" for name in longest_first)
    return re.sub(rf"{Expression.literal}|[&|]{names}", word, text), quoted


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


def _called(node: ast.AST) -> tuple[str | None, list[ast.expr]]:
    """Returns the name of the function that a node calls, None if it calls none, and on what."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            return name, arguments
        case ast.Call(func=ast.Attribute(value=of, attr=name), args=arguments, keywords=[]) if (
            name in _METHODS
        ):
            return name, [of, *arguments]
    return None, []


def _check(tree: ast.expr, text: str) -> None:
    """Refuses what is not of the language; without recursion, since a text may nest deeply."""
    ahead: list[tuple[ast.AST, int]] = [(tree, 1)]
    while ahead:
        node, depth = ahead.pop()
        if depth > DEEPEST:
            raise InputError(
                f"{_shown(text)} is nested too deeply; {DEEPEST} levels are the most."
            )
        _check_node(node, text, top=node is tree)
        called = isinstance(node, ast.Call)
        inner = _called(node)[1] if called else ast.iter_child_nodes(node)
        ahead += [(child, depth + 1) for child in inner]


def _check_node(node: ast.AST, text: str, *, top: bool) -> None:
    if isinstance(node, ast.Call):
        _check_call(node, text, top=top)
    elif isinstance(node, ast.Compare):
        for operator, right in zip(node.ops, node.comparators, strict=True):
            listed = isinstance(right, ast.Tuple | ast.List)
            if isinstance(operator, ast.In | ast.NotIn) and not listed:
                raise InputError(f"{_shown(text)}: after `in`, list values: ('II', 'III').")
    elif not (isinstance(node, ast.Constant) and isinstance(node.value, int | float | str)):
        inner = (ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp)
        lists = (ast.Tuple, ast.List, ast.In, ast.NotIn)
        if not isinstance(node, (*inner, *lists, *_OPERATORS)):
            raise _refusal(node, text)


def _check_call(node: ast.Call, text: str, *, top: bool) -> None:
    name, arguments = _called(node)
    if name is None:
        raise _refusal(node, text)
    if name not in _CALLS:
        close = difflib.get_close_matches(name, _CALLS)
        hint = f"did you mean {close[0]}" if close else f"the functions are {', '.join(_CALLS)}"
        raise InputError(f"{_shown(text)} calls {name!r}, which is not there; {hint}.")
    call = _CALLS[name]
    if call.draws and not top:
        raise InputError(f"{_shown(text)}: {name}(…) is a draw, and must be the whole expression.")
    odd = name == "choose" and len(arguments) % 2
    if odd or not call.fewest <= len(arguments) <= call.most:
        raise InputError(f"{_shown(text)}: {name} does not take {len(arguments)} arguments.")


def _refusal(node: ast.AST, text: str) -> InputError:
    part = ast.get_source_segment(text, node) or "another operator"
    return InputError(
        f"{_shown(text)} has {_shown(part)}, which an expression cannot have: there are numbers, "
        f"texts in quotes, columns, arithmetic, comparisons, and, or, not, a if c else b, and the "
        f"functions {', '.join(name for name, call in _CALLS.items() if not call.draws)}."
    )


def _value(node: ast.AST, known: Mapping[str, Any]) -> Any:  # noqa: ANN401 - arrays of any kind
    def of(*nodes: ast.AST) -> list[Any]:
        return [_value(part, known) for part in nodes]

    match node:
        case ast.Constant(value=bool() | str() as value):
            return value
        case ast.Constant(value=value):
            return np.float64(value)  # type: ignore[arg-type]
        case ast.Name(id=name):
            return known[name]
        case ast.UnaryOp(op=operator, operand=operand):
            return _OPERATORS[type(operator)](*of(operand))
        case ast.BinOp(op=operator, left=left, right=right):
            return _OPERATORS[type(operator)](*map(_as_number, of(left, right)))
        case ast.BoolOp(op=operator, values=sides):
            return reduce(_OPERATORS[type(operator)], of(*sides))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _where(*of(test, body, orelse))
        case ast.Compare(left=left, ops=operators, comparators=rights):
            triples = zip(operators, [left, *rights[:-1]], rights, strict=True)
            found = [_compare(o, _value(a, known), b, known) for o, a, b in triples]
            return reduce(np.logical_and, found)
        case ast.Call():
            called, arguments = _called(node)
            return _CALLS[str(called)].function(*of(*arguments))
    raise TypeError("a list of values stands alone")


def _compare(operator: ast.AST, left: Any, right: ast.AST, known: Mapping[str, Any]) -> Any:  # noqa: ANN401
    if isinstance(operator, ast.In | ast.NotIn):
        members = [_value(part, known) for part in right.elts]  # type: ignore[attr-defined]
        found = [_equal(left, member) for member in members]
        inside = reduce(np.logical_or, found, np.False_)
        return inside if isinstance(operator, ast.In) else np.logical_not(inside)
    other = _value(right, known)
    if isinstance(operator, ast.Eq | ast.NotEq):
        same = _equal(left, other)
        return same if isinstance(operator, ast.Eq) else np.logical_not(same)
    sides = [np.asarray(side, object) if _is_text(side) else side for side in (left, other)]
    return _OPERATORS[type(operator)](*sides)


def _equal(left: Any, right: Any) -> Any:  # noqa: ANN401 - arrays of any kind
    if _is_text(left) or _is_text(right):
        left, right = np.asarray(left, object), np.asarray(right, object)
    return np.asarray(np.equal(left, right), bool)


def _is_text(value: Any) -> bool:  # noqa: ANN401 - an array of any kind
    return np.asarray(value).dtype.kind in "OU"


def _as_number(value: Any) -> Any:  # noqa: ANN401 - an array of any kind
    if _is_text(value):
        raise TypeError("a text is no number")
    return np.asarray(value, np.float64) if np.asarray(value).dtype.kind == "b" else value


def _array(cells: pd.Series) -> np.ndarray:
    """Returns a column as booleans, numbers, or objects where it has texts."""
    if pd.api.types.is_bool_dtype(cells):
        return cells.to_numpy(dtype=bool)
    if pd.api.types.is_any_real_numeric_dtype(cells):
        return cells.to_numpy(dtype=np.float64)
    objects = cells.to_numpy(dtype=object)
    labels = [plain(cell) for cell in objects]
    if any(isinstance(label, str) or label is None for label in labels):
        return objects
    return np.array(labels, dtype=bool if all(isinstance(x, bool) for x in labels) else np.float64)
