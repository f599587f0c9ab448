r"""Regimes: interventions on a column at every visit, written once.

| `do=` | at visit t |
|---|---|
| `{"A": 1}` | A is held at 1 |
| `{"A": "L[t] < 350"}` | a rule that reads this visit; a bare `L` means the same |
| `{"A": "A[t-1] or L[t-1] < 350"}` | a rule that reads visits before, as they are under it |
| `{"A": "max(A[t], 30)"}` | a function of the natural value |
| `{"A": "1 if time >= 2 else A[t]"}` | from a time on |
| `{"A[0]": 0, "A": 1}` | a visit by itself, and all others |

Each becomes one policy a visit (`queries.interventions`). No intervention is the natural course.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

from misscnf.data.panel import Panel
from misscnf.errors import InputError
from misscnf.graph.template import Template, at_visit, split_index
from misscnf.queries.expressions import Expression
from misscnf.queries.interventions import Do

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
    if not isinstance(text, str):
        return value
    varying, said = panel.template.varying, text

    def named(match: re.Match[str]) -> str:
        word, sign, steps = match["name"], match["sign"], match["steps"]
        if word is None:  # a text, or a name in backticks
            return match.group()
        if word == Template.clock or word == panel.time:
            return f"{panel.visits[k]:g}"
        if word not in varying:
            return match.group()
        place = k + (int(steps or 0) if sign == "+" else -int(steps or 0))
        if not 0 <= place <= k:
            where = f"{panel.time} {panel.visits[k]:g}"
            raise InputError(
                f"the rule {said!r} for {column!r} reads {match.group()}, which does not exist at "
                f"{where}; say what holds there, such as do={{'{at_visit(column, panel.visits[k])}"
                f"': 0, '{column}': …}}, or read no later visit."
            )
        return f"`{at_visit(word, panel.visits[place])}`"

    index = r"(?:\[\s*t\s*(?:(?P<sign>[+-])\s*(?P<steps>\d+)\s*)?\])?"
    return re.sub(rf"{Expression.literal}|(?P<name>[^\W\d][\w.]*){index}", named, said)


def _refuse_function(column: str, value: object, panel: Panel) -> None:
    """Refuses a function of other columns, whose visit its arguments cannot say."""
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
