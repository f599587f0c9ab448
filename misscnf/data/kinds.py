r"""What kind each column is, and why: as people ask for it, or from its observed values.

    kinds="continuous"                                              all columns
    kinds={"stage": "ordinal"}                                      a name
    kinds={"stage": ["I", "II", "III"]}                             ordinal, in this order
    kinds={"weight": "positive", "share": "proportion"}             a log scale, a logit on (0, 1)
    kinds={"score": {"kind": "bounded", "low": 0, "high": 10}}      a logit on (0, 10)
    kinds={"cost": "semicontinuous"}                                point masses, numbers elsewhere
    kinds={"death": "event"}                                        over time, the last of a person
    kinds="kinds.yaml"                                              a .json, .yaml or .yml file

Columns that are not named are inferred, by `KindRules`:

| what is seen | kind |
|---|---|
| True and False, or two distinct values | binary |
| an ordered Categorical | ordinal, in its order |
| text, or an unordered Categorical | categorical |
| 3 to 6 whole numbers, 5 cells of each on average | ordinal |
| more whole numbers that heap up at the largest | semicontinuous |
| more whole numbers from 0 or 1, half of them up to 10, repeated | count |
| numbers of which one value is a twentieth or more, the others hardly repeated | semicontinuous |
| numbers with tails on both sides that leave no variance | heavy-tailed |
| any other numbers | continuous |

Holes turn whole numbers into floats and files turn them into text, so that dtypes say little. A
log or logit scale is offered where it would fit, and never taken unasked: it changes what a
density means.
"""

from __future__ import annotations

import difflib
import json
import logging
import math
import os
import re
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from pandas.api.types import is_integer_dtype

from misscnf.data.cells import (
    Label,
    distinct_labels,
    is_text,
    listed,
    mostly_numbers_as_text,
    observed_cells,
    plain,
    read_numbers,
    refuse_dates,
    refuse_holes_of_r,
    row_label,
)
from misscnf.data.codecs import (
    CODECS,
    Column,
    Continuous,
    Count,
    HeavyTailed,
    Levels,
    Semicontinuous,
    latent_column,
    refuse_constant,
    tail_index,
)
from misscnf.data.codes import code_question
from misscnf.data.scales import Link, Unit
from misscnf.errors import InputError
from misscnf.graph.indicators import column_of
from misscnf.paths import expanded, read_small_text

__all__ = ["Kinds", "KindRules", "Request", "REQUESTS", "read_requests", "Note", "choose_columns"]
__all__ += ["say_rounded"]
__all__ += ["choose_usable", "refuse_events"]

logger = logging.getLogger("misscnf")

Kinds = str | os.PathLike[str] | Mapping[str, Any] | None
"""A kind for all columns, the path of a file, or {column: kind}; None infers all of them."""

REQUESTS: dict[str, tuple[str, ...]] = {
    "continuous": (),
    "binary": ("levels",),
    "ordinal": ("levels",),
    "categorical": ("levels",),
    "count": (),
    "positive": ("low",),
    "proportion": (),
    "bounded": ("high", "low"),
    "semicontinuous": ("at", "scale"),
    "heavy-tailed": (),
    "event": ("levels",),
}
"""The kinds that can be asked for, each with the options that it takes."""


@dataclass(frozen=True)
class KindRules:
    """When numbers are levels or counts, and text is a column of levels."""

    most_ordinal: int = 6
    """Whole numbers with so many values or fewer are levels: scales of answers seldom have more,
    and each of many levels would be learned from too few cells."""
    cells_a_level: int = 5
    """Cells of each level, on average, that make whole numbers levels; with fewer, a short table
    happens to show whole numbers."""
    cells_a_count: int = 2
    """Cells of each value, on average, that make values repeated, as small counts are."""
    typical_count: int = 10
    """Half of the cells of a count are at most this: beyond, a normal law does as well."""
    most_categories: int = 50
    """Text with more values than this is a name or a note, and no column of levels."""
    enough: int = 10
    """Fewer cells show neither a skew, nor that two fractions are levels, nor a point mass."""
    least_mass: float = 0.05
    """A value with such a share of the cells is a point mass: below, draws that miss it change an
    answer little, and rounding alone repeats values."""
    most_masses: int = 3
    """Where more values repeat as often, they are levels or rounded numbers."""
    heaviest: float = 2.0
    """A tail index below this, by two standard errors and on both sides, is a heavy tail: the
    noise has no variance then, and least squares follow a few cells."""
    tail: float = 0.05
    """Of the cells that a tail index is told by, on each side."""
    fewest_in_tail: int = 20
    """With fewer, it tells nothing."""
    least_distinct: float = 0.5
    """Of the cells beside point masses, such a share must differ from each other: numbers on a
    coarse grid repeat too, and have no point masses."""
    codes: tuple[int, ...] = (
        *(1, 2, 7, 8, 9, 77, 88, 97, 98, 99, 777, 888, 997, 998, 999),
        *(7777, 8888, 9997, 9998, 9999, 99999),
    )
    """What statistical offices and people write, with or without a minus, for "missing", "refused"
    and "not asked"."""
    fewest_of_a_code: int = 3
    """Rows in which a number such as −99 stands before it is asked about: chance repeats few."""
    gap_of_a_code: float = 0.5
    """Of the range of all other values, by which such a number is parted from them."""


@dataclass(frozen=True)
class Request:
    """What was asked of one column."""

    kind: str
    """One of `REQUESTS`."""
    levels: tuple[Label, ...] | None = None
    """The levels, in their order."""
    low: float = 0.0
    """What a positive or bounded column lies above."""
    high: float = 1.0
    """What a bounded column lies below."""
    at: tuple[float, ...] = ()
    """Where a semicontinuous column has its point masses; nowhere for those that repeat most."""
    scale: str | None = None
    """The scale of the rest of a semicontinuous column; None for the closest to normal."""


def read_requests(
    kinds: Kinds, nodes: Sequence[str], columns: Iterable[object] = ()
) -> dict[str, Request]:
    """Returns what is asked of each node, of those that something is asked of.

    A kind of a column of the table that is outside the graph does no harm.
    """
    if kinds is None:
        return {}
    if isinstance(kinds, str) and kinds in REQUESTS and kinds != "bounded":
        return {node: Request(kinds) for node in nodes}
    is_path = isinstance(kinds, str | os.PathLike)
    asked = _read_file(expanded(kinds)) if is_path else kinds  # type: ignore[arg-type]
    if not isinstance(asked, Mapping):
        raise InputError(
            f"kinds are {{column: kind}}, one kind for all columns, or the path of a .json or "
            f".yaml file; got {type(asked).__name__}."
        )
    outside = [name for name in asked if name not in nodes]
    for name in outside:
        if name not in list(columns):
            close = difflib.get_close_matches(str(name), nodes, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"the columns are {listed(nodes)}"
            raise InputError(
                f"kinds has an entry for {name!r}, which is not a column of the table ({hint})."
            )
    if outside:
        logger.info("Kinds of columns not in the graph are ignored: %s.", listed(outside))
    return {name: _read_one(name, asked[name]) for name in asked if name in nodes}


def _read_one(name: str, wanted: object) -> Request:
    if isinstance(wanted, str):
        wanted = {"kind": wanted}
    elif isinstance(wanted, Sequence | np.ndarray):
        wanted = {"kind": "ordinal", "levels": wanted}
    elif not isinstance(wanted, Mapping):
        raise InputError(
            f"the kind of {name!r} is {reprlib.repr(wanted)}; expected a name "
            f"({', '.join(REQUESTS)}), a list of levels in their order, or "
            f"{{'kind': ..., 'levels': [...]}}."
        )
    kind = wanted.get("kind")
    if not isinstance(kind, str) or (kind not in REQUESTS and kind not in CODECS):
        close = difflib.get_close_matches(str(kind), REQUESTS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are {', '.join(REQUESTS)}"
        raise InputError(f"the kind of {name!r} is {kind!r}, which is not a kind ({hint}).")
    allowed = REQUESTS.get(kind, ())
    surplus = [option for option in wanted if option != "kind" and option not in allowed]
    if surplus:
        takes = f"takes {listed(allowed)} only" if allowed else "takes no options"
        raise InputError(f"the kind of {name!r} has the option {surplus[0]!r}; {kind!r} {takes}.")
    if kind == "bounded" and not {"low", "high"} <= wanted.keys():
        raise InputError(
            f"the kind of {name!r} is 'bounded' without its ends; give both, such as "
            f"{{'kind': 'bounded', 'low': 0, 'high': 10}}."
        )
    low = _number(name, "low", wanted.get("low", 0.0))
    high = _number(name, "high", wanted.get("high", 1.0))
    if kind == "bounded" and low >= high:
        raise InputError(
            f"the kind of {name!r} has its low end {low:g} at or above its high end {high:g}; "
            f"swap or change them."
        )
    at, scale = wanted.get("at", ()), wanted.get("scale")
    many = at if isinstance(at, Sequence | np.ndarray) and not isinstance(at, str) else [at]
    masses = tuple(_number(name, "at", number) for number in many)
    if scale is not None and (not isinstance(scale, str) or scale not in Semicontinuous.scales):
        shown, scales = reprlib.repr(scale), listed(Semicontinuous.scales)
        raise InputError(f"the kind of {name!r} has scale = {shown}; expected {scales}.")
    return Request(kind, _levels(name, wanted.get("levels")), low, high, masses, scale)


def _number(name: str, end: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        with suppress(OverflowError):  # of an integer beyond float64
            if math.isfinite(number := float(value)):
                return number
    shown = reprlib.repr(value)
    raise InputError(f"the kind of {name!r} has {end} = {shown}; expected a finite number.")


def _levels(name: str, wanted: object) -> tuple[Label, ...] | None:
    if wanted is None:
        return None
    if isinstance(wanted, str) or not isinstance(wanted, Sequence | np.ndarray):
        raise InputError(
            f"the levels of {name!r} are {reprlib.repr(wanted)}; expected a list, in their order."
        )
    levels = [plain(level) for level in wanted]
    if None in levels:
        odd = reprlib.repr(wanted[levels.index(None)])
        raise InputError(
            f"the levels of {name!r} hold {odd}; a level is text, a number, True or False."
        )
    twice = [level for level, times in Counter(levels).items() if times > 1]
    if twice:
        raise InputError(f"the levels of {name!r} hold {twice[0]!r} twice; name each level once.")
    if len(levels) < 2:
        raise InputError(f"the levels of {name!r} are {levels}; a column needs two at least.")
    return tuple(levels)  # type: ignore[arg-type]


def _read_file(path: Path) -> object:
    suffix = path.suffix.lower()
    if suffix not in (".json", ".yaml", ".yml"):
        raise InputError(
            f"kinds is {str(path)!r}; expected a kind ({', '.join(REQUESTS)}), {{column: kind}}, "
            f"or the path of a .json, .yaml or .yml file."
        )
    text = read_small_text(path, "the kinds file")
    try:
        found = json.loads(text) if suffix == ".json" else yaml.safe_load(text)
    except Exception as error:  # a parser of YAML trips over bad text in many ways
        deep = isinstance(error, RecursionError)
        reason = "it is nested too deeply." if deep else " ".join(str(error).split())
        raise InputError(f"{str(path)!r} cannot be read as {suffix}: {reason}") from error
    if not isinstance(found, dict):
        expected = "lines such as `stage: ordinal`"
        if suffix == ".json":
            expected = '{"stage": "ordinal"} or the like'
        raise InputError(f"{str(path)!r} holds no kinds; expected {expected}.")
    return found


@dataclass(frozen=True)
class Note:
    """What the table of kinds says about a column beside its kind."""

    why: str = ""
    """What made it this kind."""
    offer: str = ""
    """Another kind that may fit better."""
    holes: int = 0
    """Cells without a value; over time, those of visits at which a person was still there."""
    after: int = 0
    """Cells without a value that are no holes: of visits after a person left or had an event."""
    smallest: float | None = None
    """The smallest number seen, of a column of numbers without levels."""
    largest: float | None = None
    """The largest."""


Choice = tuple[Column, Note]


def choose_columns(
    cells: Iterable[pd.Series],
    nodes: Sequence[str],
    kinds: Kinds,
    columns: Sequence[object] = (),
    rules: KindRules | None = None,
    latent: Mapping[str, int | None] | None = None,
    at_once: int = 1,
) -> tuple[tuple[Column, ...], tuple[Note, ...]]:
    """Learns the codec of each column, and a note about it; those of hidden causes are given.

    So many columns are looked at side by side.
    """
    requests, hidden, rules = (
        read_requests(kinds, nodes, columns),
        latent or {},
        rules or KindRules(),
    )
    unmeasured = [node for node in nodes if node in hidden and node in requests]
    if unmeasured and isinstance(kinds, Mapping):
        raise InputError(
            f"kinds has an entry for {unmeasured[0]!r}, which nobody measures; for a hidden class "
            f"give latent={{{unmeasured[0]!r}: 3}}, else leave it out."
        )

    def choose(part: tuple[pd.Series, str]) -> Choice:
        column, node = part
        if node in hidden:
            return _hidden(node, hidden[node], len(column), rules)
        return _choose(column, node, requests.get(node), rules)

    parts = zip(cells, nodes, strict=True)
    if at_once == 1:
        pairs = list(map(choose, parts))
    else:
        from misscnf.threads import in_order  # with torch

        pairs = list(in_order(choose, parts, at_once))
    return _parted(pairs)


def choose_usable(
    cells: Mapping[str, pd.Series],
    kinds: Kinds,
    columns: Sequence[object] = (),
    rules: KindRules | None = None,
) -> tuple[tuple[Column, ...], tuple[Note, ...], dict[str, str]]:
    """Learns the codecs of the columns that are of a kind, and why the others are of none.

    A column of which a kind is asked is refused where it is not of that kind.
    """
    requests, rules = read_requests(kinds, list(cells), columns), rules or KindRules()
    pairs: list[Choice] = []
    unusable: dict[str, str] = {}
    for name, column in cells.items():
        try:
            pairs.append(_choose(column, name, requests.get(name), rules))
        except InputError as problem:
            if name in requests:
                raise
            unusable[name] = str(problem)
    return *_parted(pairs), unusable


def _parted(pairs: Sequence[Choice]) -> tuple[tuple[Column, ...], tuple[Note, ...]]:
    """Returns codecs and notes."""
    return tuple(column for column, _ in pairs), tuple(note for _, note in pairs)


def say_rounded(columns: Iterable[Column], *, visits: bool = False) -> None:
    """Says of which columns of a fit draws are rounded; those of several `visits` once."""
    numbers = [column for column in columns if isinstance(column, Continuous | Semicontinuous)]
    names = [column.name for column in numbers if is_integer_dtype(column.dtype)]
    rounded = list(
        dict.fromkeys(name.rpartition("[")[0] or name if visits else name for name in names)
    )
    if rounded:
        noun = "column" if len(rounded) == 1 else "columns"
        sentence = "Draws of the %s %s are rounded, since the table has whole numbers there."
        logger.info(sentence, noun, listed(rounded))


def _hidden(name: str, classes: int | None, rows: int, rules: KindRules) -> Choice:
    """Returns the codec of a node that nobody measures."""
    if classes is not None and classes * rules.cells_a_level > rows:
        raise InputError(
            f"the latent node {name!r} has {classes} classes, and the table {rows} rows: fewer "
            f"than {rules.cells_a_level} rows a class tell nothing of it; ask for fewer classes."
        )
    return latent_column(name, classes), Note("nobody measures it", holes=rows)


def refuse_events(kinds: Kinds, nodes: Sequence[str], columns: Sequence[object]) -> None:
    """Refuses events where a table is not over time, and so nothing comes after them."""
    for name, request in read_requests(kinds, nodes, columns).items():
        if request.kind == "event":
            raise InputError(
                f"the kind of {name!r} is 'event', after which nothing is measured, and the table "
                f"is not over time; give id= and time=, or ask for 'binary'."
            )


def _choose(cells: pd.Series, name: str, request: Request | None, rules: KindRules) -> Choice:
    """Learns the codec of one column, of the kind that is asked for or inferred."""
    lost = column_of(name)
    if lost is not None:
        return Levels.learn(name, "binary", (False, True), cells), Note(f"whether {lost} is lost")
    refuse_dates(cells, name)
    refuse_holes_of_r(cells, name)
    if not cells.notna().any():
        refuse_constant(name, np.array([]))
    if request is None:
        column, note = _infer(cells, name, rules)
    else:
        column, note = _as_asked(cells, name, request, rules)
    code = code_question(cells, rules.codes, rules.fewest_of_a_code, rules.gap_of_a_code)
    if code:
        logger.info("  %s: %s", name, code)
    note = replace(note, holes=int(cells.isna().sum()), offer=code or note.offer)
    if isinstance(column, Levels):
        return column, note
    seen = column.read(cells)
    return column, replace(note, smallest=float(np.nanmin(seen)), largest=float(np.nanmax(seen)))


# ----------------------------------------------------------------------------------- inferred


def _infer(cells: pd.Series, name: str, rules: KindRules) -> Choice:
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return _infer_categories(cells, name, cells.dtype, rules)
    if is_text(cells):
        return _infer_text(cells, name, rules)
    return _infer_numbers(cells, name, rules)


def _infer_categories(
    cells: pd.Series, name: str, dtype: pd.CategoricalDtype, rules: KindRules
) -> Choice:
    levels = _distinct(cells, name)
    unused = len(dtype.categories) - len(levels)
    if unused:
        logger.info("Column %r: %d categories are never seen, and are no levels.", name, unused)
    if len(levels) > rules.most_categories:
        raise _identifier(name, f"{len(levels)} categories")
    kind = "ordinal" if dtype.ordered else "categorical"
    why = "an ordered Categorical" if dtype.ordered else "a Categorical without order"
    if len(levels) == 2:
        kind, why = "binary", f"{why} of two levels"
    return Levels.learn(name, kind, levels, cells), Note(why)


def _infer_text(cells: pd.Series, name: str, rules: KindRules) -> Choice:
    if mostly_numbers_as_text(cells):
        read_numbers(cells, name)  # names the cell and says what to do
    levels = _distinct(cells, name)
    if len(levels) == 2:
        return Levels.learn(name, "binary", levels, cells), Note("two distinct texts")
    if all(re.match(r"\d{4}-\d\d-\d\d", str(level)) for level in levels):
        raise InputError(
            f"column {name!r} holds dates as text, such as {levels[0]!r}; make it a number, such "
            f"as the days since a reference date (--dates {name} counts them from 1970-01-01)."
        )
    frequencies = observed_cells(cells).value_counts()
    if len(levels) > rules.most_categories:
        raise _identifier(name, f"{len(levels)} distinct texts")
    if 2 * int((frequencies == 1).sum()) > int(frequencies.sum()):
        raise _identifier(name, "mostly texts that occur once")
    why = f"{len(levels)} distinct texts"
    return Levels.learn(name, "categorical", levels, cells), Note(why)


def _infer_numbers(cells: pd.Series, name: str, rules: KindRules) -> Choice:
    raw = read_numbers(cells, name)
    seen = raw[~np.isnan(raw)]
    refuse_constant(name, seen)
    ordered = np.sort(seen)  # once: in a long column all that is looked at lies in its order
    distinct, times_seen = _runs(ordered)
    whole = bool((distinct == np.floor(distinct)).all())
    if len(distinct) == 2 and (whole or len(seen) >= rules.enough):
        levels = distinct_labels(cells, name)
        logical = all(isinstance(level, bool) for level in levels)
        why = "True and False" if logical else f"two distinct {'whole ' * whole}numbers"
        return Levels.learn(name, "binary", levels, cells), Note(why)
    few = len(distinct) <= rules.most_ordinal
    if whole and few and len(seen) >= rules.cells_a_level * len(distinct):
        levels, times = distinct_labels(cells, name), len(seen) // len(distinct)
        why = f"{len(distinct)} distinct whole numbers, each {times} times on average"
        return Levels.learn(name, "ordinal", levels, cells), Note(why)
    low, high, middle = distinct[0], distinct[-1], np.median(ordered)
    ends = _heaped_ends(distinct, times_seen, rules) if whole and not few else []
    if ends:
        share = f"{np.mean(seen == high):.0%} of the cells"
        why = f"whole numbers that heap up at the largest, {high:g} ({share}): a ceiling"
        return Semicontinuous.learn(name, seen, ends, dtype=cells.dtype), Note(why)
    masses = _masses(distinct, times_seen, rules)
    if masses and not (whole and np.median(seen[~np.isin(seen, masses)]) <= rules.typical_count):
        shares = [f"{np.mean(seen == mass):.0%} of the cells are {mass:g}" for mass in masses]
        why = f"{', '.join(shares)} exactly, and the others hardly repeat"
        return Semicontinuous.learn(name, seen, masses, dtype=cells.dtype), Note(why)
    repeated = len(seen) >= rules.cells_a_count * len(distinct)
    if whole and not few and 0 <= low <= 1 and middle <= rules.typical_count and repeated:
        why = f"whole numbers from {low:g}, half of them up to {middle:g}"
        return Count.learn_numbers(name, seen, cells.dtype), Note(why)
    indices = _tail_indices(ordered, rules)
    if not whole and indices and max(indices) < rules.heaviest:
        why = "tails so heavy that squares mean nothing (tail index {:.1f} below, {:.1f} above)"
        return HeavyTailed.learn_numbers(name, seen, cells.dtype), Note(why.format(*indices))
    taken = f"too few cells ({len(seen)}) to call them levels" if few else "taken as continuous"
    why = f"{len(distinct)} distinct whole numbers from {low:g} to {high:g}, {taken}"
    offer = _offer(name, seen) if len(seen) >= rules.enough else ""
    column = Continuous.learn(name, seen, dtype=cells.dtype)
    return column, Note(why if whole else "numbers with fractions", offer)


def _runs(ordered: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the distinct values of cells in their order, and how often each stands there."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return ordered[starts], np.diff(np.concatenate([starts, [len(ordered)]]))


def _tail_indices(ordered: np.ndarray, rules: KindRules) -> list[float]:
    """Returns the tail indices of both sides, each two standard errors up; none of few cells."""
    count = int(rules.tail * len(ordered))
    if count < rules.fewest_in_tail:
        return []
    away, up = ordered - np.median(ordered), 1.0 + 2.0 / math.sqrt(count)
    below, above = -away[: count + 1], away[-count - 1 :]
    return [up * tail_index(np.maximum(side, 0.0), count) for side in (below, above)]


def _masses(distinct: np.ndarray, times: np.ndarray, rules: KindRules) -> list[float]:
    """Returns the values that repeat as point masses do; none if the others repeat as well."""
    many = times >= max(rules.enough, rules.least_mass * times.sum())
    rest = int(times[~many].sum())
    smooth = (~many).sum() >= max(rules.enough, rules.least_distinct * rest)
    return distinct[many].tolist() if smooth and many.sum() <= rules.most_masses else []


def _heaped_ends(distinct: np.ndarray, times: np.ndarray, rules: KindRules) -> list[float]:
    """Returns the ceiling of whole numbers that heap up at it, after a floor that they heap up at.

    The laws of counts and numbers thin out towards their largest values. Scores that end there do
    not: many cells have the largest value, and more than have the one below it.
    """
    many = times >= max(rules.enough, rules.least_mass * times.sum())
    if not many[-1] or times[-1] <= times[-2]:
        return []
    return [*distinct[:1][many[:1]].tolist(), float(distinct[-1])]


def _most_repeated(seen: np.ndarray, name: str, rules: KindRules) -> list[float]:
    """Returns the point masses of a column that is asked to have some."""
    distinct, times = np.unique(seen, return_counts=True)
    if times.max() == 1:
        raise InputError(
            f"column {name!r} is asked to be 'semicontinuous' and has no value twice; say where "
            f"its point masses are, such as {_mass_at_zero(name)}, "
            f"or ask for 'continuous'."
        )
    return _masses(distinct, times, rules) or [float(distinct[times.argmax()])]


# ----------------------------------------------------------------------------------- offered


def _offer(name: str, seen: np.ndarray) -> str:
    """Returns a kind that would keep draws within what the column can be, in a sentence."""
    if seen.min() < 0:
        return ""
    if seen.max() <= 1:
        return _offer_share(name, seen)
    if _skew(seen) <= 1:
        return ""
    zeros = int((seen == 0).sum())
    if not zeros:
        asked = _as_kinds(name, "positive")
        return f"all values above 0 and skewed: {asked} would model its logarithm"
    asked = _mass_at_zero(name)
    return f"no value below 0, skewed, {zeros} zeros: {asked} would give zero a mass"


def _offer_share(name: str, seen: np.ndarray) -> str:
    ends = (seen == 0) | (seen == 1)
    if not ends.any():
        return (
            f"all values between 0 and 1: {_as_kinds(name, 'proportion')} would model its logit "
            f"and keep draws between"
        )
    asked = _as_kinds(name, {"kind": "semicontinuous", "at": np.unique(seen[ends]).tolist()})
    return f"all values from 0 to 1, {ends.sum()} of them at an end: {asked} would keep both"


def _mass_at_zero(name: object) -> str:
    return _as_kinds(name, {"kind": "semicontinuous", "at": [0]})


def _as_kinds(name: object, entry: object) -> str:
    """Returns an entry of `kinds` as it is written in Python and in a file for --kinds alike."""
    return f"{json.dumps({str(name): entry}, ensure_ascii=False, default=str)} in kinds"


def _skew(seen: np.ndarray) -> float:
    z = seen - seen.mean()
    z /= np.abs(z).max()
    return float(np.mean(z**3) / np.mean(z**2) ** 1.5)


# ----------------------------------------------------------------------------------- asked for


def _as_asked(cells: pd.Series, name: str, request: Request, rules: KindRules) -> Choice:
    note = Note("as asked in kinds")
    if request.kind == "event":  # `data.panel` has seen to what comes after
        levels = _asked_levels(cells, name, replace(request, kind="binary"))
        why = "an event, as asked in kinds: nothing is measured after it"
        return Levels.learn(name, "binary", levels, cells), Note(why)
    if request.kind in ("binary", "ordinal", "categorical"):
        levels = _asked_levels(cells, name, request)
        return Levels.learn(name, request.kind, levels, cells), note
    raw = read_numbers(cells, name)
    seen = raw[~np.isnan(raw)]
    column: Column
    if request.kind == "semicontinuous":
        at = request.at or _most_repeated(seen, name, rules)
        column = Semicontinuous.learn(name, seen, at, request.scale, cells.dtype)
    elif request.kind in CODECS and request.kind != "continuous":
        column = CODECS[request.kind].learn_numbers(name, seen, cells.dtype)
    else:
        links: dict[str, Link] = {"continuous": "none", "positive": "log"}
        link = links.get(request.kind, "logit")
        column = Continuous(name, Unit(link=link, low=request.low, high=request.high))
    impossible = ~column.possible(raw)
    if impossible.any():
        row = int(impossible.argmax())
        raise InputError(
            f"column {name!r} is asked to be {request.kind!r} and has {raw[row]:g} in the row "
            f"labelled {row_label(cells.index, row)}; expected {column.expected}, or ask for "
            f"another kind."
        )
    if isinstance(column, Continuous):
        column = Continuous.learn(name, seen, column.unit, cells.dtype)
    return column, note


def _asked_levels(cells: pd.Series, name: str, request: Request) -> list[Label]:
    seen = _distinct(cells, name)
    if request.levels is not None:
        missed = [level for level in seen if level not in request.levels]
        if missed:
            raise InputError(
                f"column {name!r} has {missed[0]!r}, which is not among the levels that kinds "
                f"gives it ({listed(request.levels, most=20)}); add it, or make it a hole."
            )
        never = listed([level for level in request.levels if level not in seen], most=20)
        if never:
            logger.warning("Column %r: %s is never seen, and is no level.", name, never)
        seen = [level for level in request.levels if level in seen]
    elif (
        request.kind == "ordinal"
        and is_text(cells)
        and not isinstance(cells.dtype, pd.CategoricalDtype)
    ):
        raise InputError(
            f"column {name!r} is asked to be 'ordinal', and the order of its texts is not known; "
            f"give it, such as {_as_kinds(name, seen[:20])}, in the right order."
        )
    if request.kind == "binary" and len(seen) != 2:
        raise InputError(
            f"column {name!r} is asked to be 'binary' and has {len(seen)} levels "
            f"({listed(seen)}); ask for 'ordinal' or 'categorical'."
        )
    return seen


def _distinct(cells: pd.Series, name: str) -> list[Label]:
    levels = distinct_labels(cells, name)
    if len(levels) == 1:
        raise InputError(
            f"column {name!r} counts as constant, with one and the same value ({levels[0]!r}); "
            f"give it cells that differ or take the node out of the graph."
        )
    return levels


def _identifier(name: str, what: str) -> InputError:
    return InputError(
        f"column {name!r} looks like an identifier or free text, with {what}; take the node out "
        f"of the graph, or say what it is, such as {_as_kinds(name, 'categorical')}."
    )
