r"""Interventions and questions as people write them after an option.

    --do t=1                 a number, for a column of numbers
    --do stage=III           a level, by its label
    --do dose=0:10:0.5       a grid from 0 to 10 in steps of 0.5, where a curve is asked for
    --do 'dose=min(dose, 2)' a rule: dose by itself, or other columns (`queries.expressions`)
    --effect t:y             of t on y

A name may stand in backticks, as it does in rules where it has other signs than letters. A value
is read by the column of the fitted model, so that 1, 1.0 and True are what they are in the table;
what is no value of it is read as an expression. Names, levels and arrows are enough for that
(`data.model_file.Outline`): nothing here waits for the model itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from misscnf.cli.inputs import naming
from misscnf.data.cells import Label
from misscnf.data.codecs import Column, Levels
from misscnf.data.model_file import Outline
from misscnf.errors import InputError
from misscnf.queries.conditions import read_condition
from misscnf.queries.expressions import Expression

__all__ = ["Arm", "read_arm", "read_values", "read_pair", "read_event", "check_share"]
__all__ += ["check_where", "read_along", "read_regime", "read_statistic"]

Assigned = Label | Expression
"""A value, or a rule."""
Arm = dict[str, Assigned]
"""One of them for each column that is intervened on."""


def read_arm(words: Sequence[str] | None, option: str, model: Outline) -> Arm:
    """Reads interventions such as `["t=1", "stage=III"]`, one value or rule each.

    Over time a column that is measured at every visit is set at all of them.
    """
    over = [word for word in words or () if _is_over_time(word, model)]
    alone = [word for word in words or () if word not in over]
    found = _read(alone, option, model)
    for word, values in zip(alone, found.values(), strict=True):
        if len(values) > 1:
            raise InputError(f"{option} {word}: a grid is for `effect --do`; give one value.")
    return {name: values[0] for name, values in found.items()} | (read_regime(over, option) or {})


def _is_over_time(word: str, model: Outline) -> bool:
    """Tells whether an intervention is one on all visits of a table over time."""
    if model.panel_ is None:
        return False
    name = word.partition("=")[0].strip()
    return word == "natural" or name.removesuffix("[t]") in model.panel_.template.varying


def read_values(
    words: Sequence[str], option: str, model: Outline
) -> tuple[Arm, str | None, list[Assigned]]:
    """Reads interventions, then the one column that may have a grid, and its values."""
    found = _read(words, option, model)
    single = {name: values[0] for name, values in found.items() if len(values) == 1}
    grids = [name for name in found if name not in single]
    if len(grids) > 1:
        raise InputError(f"{option}: one column can have a grid, not {len(grids)} of them.")
    return (single, grids[0], found[grids[0]]) if grids else (single, None, [])


def _read(words: Sequence[str] | None, option: str, model: Outline) -> dict[str, list[Assigned]]:
    found: dict[str, list[Assigned]] = {}
    for word in words or ():
        name, equals, text = (part.strip() for part in word.partition("="))
        if not (name and equals and text):
            leave = "; without it, there is no intervention" * (option == "--versus")
            expected = f"expected a column and a value, such as t=1{leave}"
            raise InputError(f"{option} {word}: {expected}.")
        if name not in model.graph_.nodes and name[0] == name[-1] == "`":
            name = name.strip("`")  # as rules write names with spaces
        with naming(f"{option} {word}"):
            if model.panel_ is not None:
                model.panel_.refuse_unknown(name)
            column = model.schema_.columns[model.graph_.index(name)]
            model.graph_.refuse_intervention(name)
        if name in found:
            raise InputError(f"{option} {word}: {name!r} has a value already; give it once.")
        found[name] = _values(text, column, model.graph_.nodes, f"{option} {word}")
    _check_rules({name: values[0] for name, values in found.items()}, option, model)
    return found


def _check_rules(arm: Arm, option: str, model: Outline) -> None:
    """Refuses rules that read what is not there, or what they lead to."""
    graph = model.graph_
    rules = {name: rule for name, rule in arm.items() if isinstance(rule, Expression)}
    held = frozenset(map(graph.index, arm))
    with naming(f"{option} {' '.join(f'{name}={rule}' for name, rule in rules.items())}"):
        reads = {
            name: {graph.index(column) for column in rule.columns} - {graph.index(name)}
            for name, rule in rules.items()
        }
        if any(read & (held | graph.descendants(held)) for read in reads.values()):
            from misscnf.queries.interventions import read_policies  # with torch: this is rare

            read_policies(arm, graph, model.schema_, 1)


def _values(text: str, column: Column, nodes: Sequence[str], what: str) -> list[Assigned]:
    value = _label(text, column)
    if value is not None:
        return [value]
    ends = text.split(":")
    if len(ends) == 3:
        values = [_label(repr(number), column) for number in _grid(ends, what)]
        if None in values:
            raise InputError(f"{what}: some values of the grid are not {column.expected}.")
        return [value for value in values if value is not None]
    if text.startswith("="):
        raise InputError(f"{what}: one = is enough: {column.name}={text.lstrip('= ')}.")
    try:
        rule = Expression.parse(text, nodes)
    except InputError as error:
        raise InputError(f"{what}: expected {column.expected}, or a rule; {error}") from error
    if rule.bare and not set(rule.columns) & set(nodes):  # it was meant as a value
        raise InputError(f"{what}: expected {column.expected}, or a rule.")
    return [rule]


def _label(text: str, column: Column) -> Label | None:
    """Returns a text as a value of the column, or None where it is none."""
    number = _number(text)
    if not isinstance(column, Levels):
        there = number is not None and not np.isnan(column.parse(pd.Series([number]))[0])
        return number if there else None
    for level in column.levels:
        same = isinstance(level, bool) and str(level).casefold() == text.casefold()
        if level == text or same or (number is not None and level == number):
            return level
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _grid(ends: Sequence[str], what: str) -> list[float]:
    low, high, step = (_number(end) for end in ends)
    if low is None or high is None or step is None or step <= 0 or high < low:
        raise InputError(f"{what}: a grid is low:high:step, such as 0:10:0.5.")
    steps = (high - low) / step
    if steps >= 1000:
        raise InputError(f"{what}: a grid has 1000 points at most; take larger steps.")
    count = math.floor(steps + 1e-9) + 1
    return [float(f"{low + i * step:.12g}") for i in range(count)]  # 0.3, not 0.30000000000000004


def _numbers(text: str, option: str) -> list[float]:
    """Reads numbers such as "0,1,2", or the grid "0:2:0.5"."""
    if text.count(":") == 2:
        return _grid(text.split(":"), f"{option} {text}")
    found = [_number(word) for word in text.split(",")]
    numbers = [number for number in found if number is not None]
    if len(numbers) < len(found):
        raise InputError(f"{option} {text}: expected numbers, such as 0,1,2 or 0:2:0.5.")
    return numbers


def read_along(given: Mapping[str, str | None], arm: str | None) -> dict[str, Any]:
    """Reads along what an effect is asked, such as {"shift": "0,1,2"}, and in which arm.

    Returns it as `MissCNF.sensitivity` takes it; nothing where nothing is given.
    """
    named = {what: text for what, text in given.items() if text is not None}
    if len(named) > 1:
        raise InputError(f"give one of --{', --'.join(named)}: an effect is asked along one.")
    if arm is not None and arm not in ("do", "versus", "grid"):
        raise InputError(f"--arm {arm}: expected do, versus or grid.")
    if arm is not None and not set(named) & {"shift", "ratio"}:
        raise InputError("--arm is for --shift and --ratio; a strength holds in both arms.")
    found = {what: _numbers(text, f"--{what}") for what, text in named.items()}
    if arm is None:
        return found
    arms = ("do", "versus") if arm == "grid" else (arm,)
    return {what: dict.fromkeys(arms, numbers) for what, numbers in found.items()}


def read_regime(words: Sequence[str] | None, option: str) -> Arm | None:
    """Reads regimes such as `["A=1", "B=L[t] < 350"]`; "natural" is one without any."""
    if not words:
        return None
    found: Arm = {}
    for word in words if list(words) != ["natural"] else ():
        name, equals, text = (part.strip() for part in word.partition("="))
        if not (name and equals and text):
            raise InputError(f"{option} {word}: expected a column and a value, such as A=1.")
        try:
            found[name] = float(text)
        except ValueError:
            found[name] = text
    return found


def read_pair(word: str | None, option: str = "--effect") -> tuple[str, str] | None:
    """Reads `t:y` as (treatment, outcome)."""
    if word is None:
        return None
    treatment, colon, outcome = (part.strip() for part in word.partition(":"))
    if not (treatment and colon and outcome):
        raise InputError(f"{option} {word}: expected a treatment and an outcome, such as t:y.")
    return treatment, outcome


def read_event(text: str | None, outcome: str, model: Outline) -> Label | None:
    """Reads the level whose risk is asked for."""
    if text is None:
        return None
    column = model.schema_.columns[model.graph_.index(outcome)]
    level = _label(text, column) if isinstance(column, Levels) else text
    if level is None:
        raise InputError(f"--event {text}: expected {column.expected}.")
    return level


def check_where(text: str | None, model: Outline) -> None:
    """Refuses a condition that cannot be read, before any work."""
    if text is not None:
        with naming("--where"):
            read_condition(text, model.graph_, model.schema_)


def read_statistic(text: str) -> str | float:
    """Returns the name of a statistic, or the quantile that a text is."""
    try:
        return float(text)
    except ValueError:
        return text


def check_share(value: float | None, option: str) -> None:
    """Refuses a share that is not between 0 and 1."""
    if value is not None and not 0.0 < value < 1.0:
        raise InputError(f"{option} is a share between 0 and 1, such as 0.95; got {value:g}.")
