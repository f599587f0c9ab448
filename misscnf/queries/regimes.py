r"""Regimes: interventions on a column at every visit, written once.

| `do=` | at visit t |
|---|---|
| `{"A": 1}` | A is held at 1 |
| `{"A": "L[t] < 350"}` | a rule that reads this visit; a bare `L` means the same |
| `{"A": "A[t-1] or L[t-1] < 350"}` | a rule that reads visits before, as they are under it |
| `{"A": "max(A[t], 30)"}` | a function of the natural value |
| `{"A": "1 if time >= 2 else A[t]"}` | from a time on |
| `{"A": "ever(L[t] < 350)"}` | a rule on all visits so far; those that do not exist do not count |
| `{"A": "grace(L[t] < 350, 2)"}` | start within two visits of it, by oneself or else at the last |
| `{"A": "bernoulli(0.2 + 0.5 * L[t])"}` | a draw at each visit |
| `{"A[0]": 0, "A": 1}` | a visit by itself, and all others |

With C the condition, `grace(C, m)` is short for

    1 if ever(A[t-1] == 1) or ever(C at t-m) else (A[t] if ever(C) else 0):

nobody starts before the condition holds, and who has started goes on.

Each becomes one policy a visit (`queries.interventions`). No intervention is the natural course.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from misscnf.data.panel import Panel
from misscnf.errors import InputError
from misscnf.graph.template import Template, at_visit, split_index
from misscnf.queries.expressions import Expression
from misscnf.queries.interventions import Do
from misscnf.queries.laws import Draw

__all__ = ["at_all_visits", "at_last_visit"]


def at_all_visits(do: Do | None, panel: Panel) -> dict[str, Any]:
    """Returns interventions by node; what is said of a single visit comes first."""
    if do is not None and not isinstance(do, Mapping):
        raise InputError(f"interventions are {{column: value}}; got {type(do).__name__}.")
    found: dict[str, Any] = {}
    for name, value in (do or {}).items():
        column = name if name in panel.template.varying else _of_all(name)
        if column in panel.events or _column(name, panel) in panel.events:
            raise InputError(
                f"{name!r} is an event, which ends what is measured; intervene on what leads to "
                f"it."
            )
        if column not in panel.template.varying:
            panel.refuse_unknown(name)
            found[name] = value
            continue
        _refuse_function(column, value, panel)
        for k, visit in enumerate(panel.visits):
            node = at_visit(column, visit)
            if node not in panel.left_out and node not in (do or {}):
                found[node] = _at(value, column, k, panel)
    return found


def at_last_visit(name: str, panel: Panel) -> str:
    """Returns the node of a column at the last visit that shows it; a node as it is."""
    panel.refuse_unknown(name)
    return panel.at(name)[-1] if name in panel.template.varying else name


def _of_all(name: str) -> str:
    """Returns the column of a name such as `A[t]`; any other name as it is."""
    try:
        end = split_index(name)
    except InputError:  # a single visit, such as A[2]
        return name
    return end.name if end.shift == 0 and not end.history else name


def _column(name: str, panel: Panel) -> str | None:
    """Returns the column of a node such as `A[2]`."""
    return next((column for column in panel.template.varying if name in panel.at(column)), None)


def _at(value: object, column: str, k: int, panel: Panel) -> object:
    """Returns what is assigned at the k-th visit: in texts, names have their visit."""
    text = value.text if isinstance(value, Expression) else value
    return _Rule(text, column, k, panel).unrolled() if isinstance(text, str) else value


@dataclass(frozen=True)
class _Rule:
    """A text that says what a column is, at one visit."""

    said: str
    column: str
    visit: int
    """Its place among the visits."""
    panel: Panel
    names: ClassVar[re.Pattern[str]] = re.compile(
        rf"{Expression.literal}|(?P<name>[^\W\d][\w.]*)"
        r"(?:\[\s*t\s*(?:(?P<sign>[+-])\s*(?P<steps>\d+)\s*)?\])?"
    )

    def unrolled(self) -> str | Expression:
        """Returns the text with histories written out, and names with their visits."""
        call = _history_in(self.said)
        if call is None:
            return self._named(self.said, self.visit)
        found, rest = "", self.said
        while call is not None:
            before, name, inside, rest = call
            found += f"{self._named(before, self.visit)}({self._history(name, inside)})"
            call = _history_in(rest)
        return Expression.parse(found + self._named(rest, self.visit), long=True)

    def _history(self, name: str, inside: str) -> str:
        """Returns `ever` and `grace` in terms of single visits."""
        if name == "ever":
            return self._ever(inside)
        condition, comma, within = inside.rpartition(",")
        if not comma or not within.strip().isdecimal():
            raise self._refusal("grace takes a condition and a number of visits, such as 2")
        own = self._nodes(self.column)
        started = _any_of([f"`{node}` == 1" for node in own[:-1]])
        due, met = self._ever(condition, ago=int(within)), self._ever(condition)
        return f"1 if {started} or {due} else (`{own[-1]}` if {met} else 0)"

    def _ever(self, condition: str, ago: int = 0) -> str:
        """Returns whether a condition held at some visit, up to one so many visits ago."""
        if _history_in(condition) is not None:
            raise self._refusal("a history stands within another; join them by and, or")
        visits = range(self.visit - ago + 1)
        return _any_of([self._named(condition, k) for k in visits if self._is_there(condition, k)])

    def _is_there(self, text: str, k: int) -> bool:
        """Says whether all columns that a text reads are there, seen from the k-th visit."""
        varying = self.panel.template.varying
        read = [found for found in self.names.finditer(text) if found["name"] in varying]
        return all(
            _place(found, k) >= 0 and self._node(found["name"], _place(found, k)) in self._known
            for found in read
        )

    @property
    def _known(self) -> set[str]:
        """The nodes of all columns that are measured at every visit."""
        return {node for name in self.panel.template.varying for node in self.panel.at(name)}

    def _nodes(self, column: str) -> list[str]:
        """Returns the nodes of a column up to this visit."""
        nodes = (self._node(column, k) for k in range(self.visit + 1))
        return [node for node in nodes if node not in self.panel.left_out]

    def _node(self, column: str, k: int) -> str:
        return at_visit(column, self.panel.visits[k])

    def _named(self, text: str, k: int) -> str:
        """Returns a text in which names have their visit, seen from the k-th."""
        panel = self.panel

        def named(match: re.Match[str]) -> str:
            word = match["name"]
            if word is None:  # a text, or a name in backticks
                return match.group()
            if word == Template.clock or word == panel.time:
                return f"{panel.visits[k]:g}"
            if word not in panel.template.varying:
                return match.group()
            place = _place(match, k)
            if not 0 <= place <= k:
                where = f"{panel.time} {panel.visits[k]:g}"
                raise self._refusal(
                    f"{match.group()} does not exist at {where}; say what holds there, such as "
                    f"do={{'{self._node(self.column, k)}': 0, '{self.column}': …}}, or read no "
                    f"later visit"
                )
            return f"`{self._node(word, place)}`"

        return self.names.sub(named, text)

    def _refusal(self, why: str) -> InputError:
        return InputError(f"the rule {self.said!r} for {self.column!r}: {why}.")


def _place(match: re.Match[str], k: int) -> int:
    """Returns which visit a name is read at, seen from the k-th."""
    steps = int(match["steps"] or 0)
    return k + (steps if match["sign"] == "+" else -steps)


def _any_of(conditions: Sequence[str]) -> str:
    """Returns a text that holds where one of some conditions does."""
    return f"({' or '.join(f'({one})' for one in conditions)})" if conditions else "False"


def _history_in(text: str) -> tuple[str, str, str, str] | None:
    """Returns the first ever(…) or grace(…) of a text: what is before, its name, inside, after."""
    depth, start, name, end = 0, 0, "", 0
    for found in re.finditer(rf"{Expression.literal}|\b(ever|grace)\s*\(|[()]", text):
        part = found.group()
        if found[1] and not name:
            name, start, end = found[1], found.start(), found.end()
            depth = 1
        elif name and part.endswith("("):
            depth += 1
        elif name and part == ")":
            depth -= 1
            if depth == 0:
                return text[:start], name, text[end : found.start()], text[found.end() :]
    return None


def _refuse_function(column: str, value: object, panel: Panel) -> None:
    """Refuses a function of other columns, whose visit its arguments cannot say."""
    value = value.law if isinstance(value, Draw) else value
    if not callable(value) or isinstance(value, Expression):
        return
    try:
        names = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):  # some of numpy's functions do not say
        return
    read = [name for name in names if name in panel.template.varying and name != column]
    if read:
        raise InputError(
            f"the function for {column!r} reads {read[0]!r}, and does not say at which visit; "
            f"write the rule as a text, such as do={{'{column}': '{read[0]}[t] > 0'}}."
        )
