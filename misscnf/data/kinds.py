r"""What kind each column is, and why: from its observed values, not from its dtype.

| what is seen | kind |
|---|---|
| True and False, or two distinct values | binary |
| an ordered Categorical | ordinal, in its order |
| text, or an unordered Categorical | categorical |
| 3 to 6 whole numbers, 5 cells of each on average | ordinal |
| more whole numbers from 0 or 1, half of them up to 10, repeated | count |
| any other numbers | continuous |

Holes turn whole numbers into floats and files turn them into text, so that dtypes say little. A
kind that was asked for comes first. A log or logit scale is offered where it would fit, and never
taken unasked: it changes what a density means.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from misscnf.data.cells import (
    Label,
    distinct_labels,
    is_text,
    listed,
    mostly_numbers_as_text,
    observed_cells,
    read_numbers,
    refuse_dates,
    row_label,
)
from misscnf.data.codecs import CODECS, Column, Continuous, Count, Levels, refuse_constant
from misscnf.data.column_names import locate_columns
from misscnf.data.dtypes import is_whole
from misscnf.data.files import read_table
from misscnf.data.kind_requests import Kinds, Request, read_requests
from misscnf.data.scales import Unit
from misscnf.errors import InputError

__all__ = ["Note", "choose_column", "choose_columns", "table_of_kinds", "describe"]

MOST_ORDINAL = 6
"""Whole numbers with so many values or fewer are levels."""
CELLS_A_LEVEL = 5
"""Cells of each level, on average, that make whole numbers levels."""
CELLS_A_COUNT = 2
"""Cells of each value, on average, that make values repeated."""
TYPICAL_COUNT = 10
"""Half of the cells of a count are at most this."""
MOST_CATEGORIES = 50
"""Text with more values than this is no column of levels."""
ENOUGH = 10
"""Fewer cells show neither a skew nor that two fractions are levels."""

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class Note:
    """What the table of kinds says about a column beside its kind."""

    why: str = ""
    """What made it this kind."""
    offer: str = ""
    """Another kind that may fit better."""
    holes: int = 0
    """Cells without a value."""
    smallest: float | None = None
    """The smallest number seen, of a column of numbers without levels."""
    largest: float | None = None
    """The largest."""

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return asdict(self)


class _Choice(NamedTuple):
    column: Column
    why: str
    offer: str = ""


def describe(
    source: pd.DataFrame | str | os.PathLike[str],
    kinds: Kinds = None,
    nodes: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Returns the table of kinds of a table, before anything is fitted.

    Arguments:
        source: A DataFrame, or the path of a .csv, .tsv or .parquet file.
        kinds: Kinds that are asked for.
        nodes: Some of the columns; all by default.
    """
    frame = read_table(source)
    names = [str(name) for name in frame.columns] if nodes is None else list(nodes)
    places = locate_columns(frame, names, require_all=True)
    cells = [frame.iloc[:, places[name]] for name in names]
    return table_of_kinds(*choose_columns(cells, names, kinds, list(frame.columns)))


def table_of_kinds(columns: Sequence[Column], notes: Sequence[Note]) -> pd.DataFrame:
    """Returns one row a column: its kind, its levels, its holes, why, and what else is offered."""
    rows = [
        (column.name, column.shown_kind, column.shown_levels, note.holes, note.why, note.offer)
        for column, note in zip(columns, notes, strict=True)
    ]
    return pd.DataFrame(rows, columns=["column", "kind", "levels", "holes", "why", "offer"])


def choose_columns(
    cells: Sequence[pd.Series], nodes: Sequence[str], kinds: Kinds, columns: Sequence[object] = ()
) -> tuple[tuple[Column, ...], tuple[Note, ...]]:
    """Learns the codec of each column, and a note about it.

    Arguments:
        cells: The cells of each node.
        nodes: The name of each node.
        kinds: Kinds that are asked for.
        columns: All columns of the table.
    """
    requests = read_requests(kinds, nodes, columns)
    pairs = [
        choose_column(column, node, requests.get(node))
        for column, node in zip(cells, nodes, strict=True)
    ]
    return tuple(column for column, _ in pairs), tuple(note for _, note in pairs)


def choose_column(
    cells: pd.Series, name: str, request: Request | None = None
) -> tuple[Column, Note]:
    """Learns the codec of one column, of the kind that is asked for or inferred."""
    refuse_dates(cells, name)
    if not cells.notna().any():
        refuse_constant(name, np.array([]))
    choice = _infer(cells, name) if request is None else _as_asked(cells, name, request)
    column = choice.column
    if isinstance(column, Continuous) and is_whole(column.dtype):
        logger.info("Column %r: what is drawn is rounded to fit its dtype %s.", name, column.dtype)
    holes = int(cells.isna().sum())
    if isinstance(column, Levels):
        return column, Note(choice.why, choice.offer, holes)
    seen = column.read(cells)
    return column, Note(
        choice.why, choice.offer, holes, float(np.nanmin(seen)), float(np.nanmax(seen))
    )


# ----------------------------------------------------------------------------------- inferred


def _infer(cells: pd.Series, name: str) -> _Choice:
    if isinstance(cells.dtype, pd.CategoricalDtype):
        return _infer_categories(cells, name, cells.dtype)
    if is_text(cells):
        return _infer_text(cells, name)
    return _infer_numbers(cells, name)


def _infer_categories(cells: pd.Series, name: str, dtype: pd.CategoricalDtype) -> _Choice:
    levels = _distinct(cells, name)
    unused = len(dtype.categories) - len(levels)
    if unused:
        logger.info("Column %r: %d categories are never seen, and are no levels.", name, unused)
    if len(levels) > MOST_CATEGORIES:
        raise _identifier(name, f"{len(levels)} categories")
    ordered = "an ordered Categorical" if dtype.ordered else "a Categorical without order"
    if len(levels) == 2:
        return _Choice(Levels.learn(name, "binary", levels, cells), f"{ordered} of two levels")
    kind = "ordinal" if dtype.ordered else "categorical"
    return _Choice(Levels.learn(name, kind, levels, cells), ordered)


def _infer_text(cells: pd.Series, name: str) -> _Choice:
    if mostly_numbers_as_text(cells):
        read_numbers(cells, name)  # names the cell and says what to do
    levels = _distinct(cells, name)
    if len(levels) == 2:
        return _Choice(Levels.learn(name, "binary", levels, cells), "two distinct texts")
    frequencies = observed_cells(cells).value_counts()
    if len(levels) > MOST_CATEGORIES:
        raise _identifier(name, f"{len(levels)} distinct texts")
    if 2 * int((frequencies == 1).sum()) > int(frequencies.sum()):
        raise _identifier(name, "mostly texts that occur once")
    why = f"{len(levels)} distinct texts"
    return _Choice(Levels.learn(name, "categorical", levels, cells), why)


def _infer_numbers(cells: pd.Series, name: str) -> _Choice:
    raw = read_numbers(cells, name)
    seen = raw[~np.isnan(raw)]
    refuse_constant(name, seen)
    distinct = np.unique(seen)
    whole = bool((distinct == np.floor(distinct)).all())
    if len(distinct) == 2 and (whole or len(seen) >= ENOUGH):
        levels = distinct_labels(cells, name)
        logical = all(isinstance(level, bool) for level in levels)
        why = "True and False" if logical else f"two distinct {_numbers(whole=whole)}"
        return _Choice(Levels.learn(name, "binary", levels, cells), why)
    if whole and len(distinct) <= MOST_ORDINAL and len(seen) >= CELLS_A_LEVEL * len(distinct):
        levels = distinct_labels(cells, name)
        return _Choice(
            Levels.learn(name, "ordinal", levels, cells),
            f"{len(distinct)} distinct whole numbers, each {len(seen) // len(distinct)} times on "
            f"average",
        )
    if whole and _looks_like_counts(seen, distinct):
        why = f"whole numbers from {distinct[0]:g}, half of them up to {np.median(seen):g}"
        return _Choice(Count.learn_numbers(name, seen, cells.dtype), why)
    column = Continuous.learn(name, seen, dtype=cells.dtype)
    return _Choice(column, _why_continuous(seen, distinct, whole=whole), _offer(name, seen))


def _numbers(*, whole: bool) -> str:
    return "whole numbers" if whole else "numbers"


def _looks_like_counts(seen: np.ndarray, distinct: np.ndarray) -> bool:
    return bool(
        len(distinct) > MOST_ORDINAL
        and 0 <= distinct[0] <= 1
        and np.median(seen) <= TYPICAL_COUNT
        and len(seen) >= CELLS_A_COUNT * len(distinct)
    )


def _why_continuous(seen: np.ndarray, distinct: np.ndarray, *, whole: bool) -> str:
    if not whole:
        return "numbers with fractions"
    span = f"{len(distinct)} distinct whole numbers from {distinct[0]:g} to {distinct[-1]:g}"
    if len(distinct) <= MOST_ORDINAL:
        return f"{span}, too few cells ({len(seen)}) to call them levels"
    return f"{span}, taken as continuous"


# ----------------------------------------------------------------------------------- offered


def _offer(name: str, seen: np.ndarray) -> str:
    """Returns a kind that would keep draws within what the column can be, in a sentence."""
    if len(seen) < ENOUGH or seen.min() < 0:
        return ""
    if seen.max() <= 1:
        return _offer_share(name, seen)
    if _skew(seen) <= 1:
        return ""
    zeros = int((seen == 0).sum())
    if zeros:
        low = -float(f"{np.median(seen[seen > 0]):.0e}")
        asked = {"kind": "positive", "low": low}
        return (
            f"no value below 0, skewed, {zeros} zeros: kinds={{{name!r}: {asked}}} would model "
            f"log(x + {-low:g})"
        )
    return (
        f"all values above 0 and skewed: kinds={{{name!r}: 'positive'}} would model its logarithm"
    )


def _offer_share(name: str, seen: np.ndarray) -> str:
    ends = int(((seen == 0) | (seen == 1)).sum())
    if ends:
        asked = {"kind": "bounded", "low": -0.01, "high": 1.01}
        return (
            f"all values from 0 to 1, {ends} of them at an end, where a logit has no room: "
            f"kinds={{{name!r}: {asked}}} would keep draws near"
        )
    return (
        f"all values between 0 and 1: kinds={{{name!r}: 'proportion'}} would model its logit and "
        f"keep draws between"
    )


def _skew(seen: np.ndarray) -> float:
    deviations = seen - seen.mean()
    widest = np.abs(deviations).max()
    z = deviations / widest
    return float(np.mean(z**3) / np.mean(z**2) ** 1.5)


# ----------------------------------------------------------------------------------- asked for


def _as_asked(cells: pd.Series, name: str, request: Request) -> _Choice:
    why = "as asked in kinds"
    if request.kind in ("binary", "ordinal", "categorical"):
        levels = _asked_levels(cells, name, request)
        return _Choice(Levels.learn(name, request.kind, levels, cells), why)
    raw = read_numbers(cells, name)
    seen = raw[~np.isnan(raw)]
    if request.kind in CODECS and request.kind != "continuous":
        column = CODECS[request.kind].learn_numbers(name, seen, cells.dtype)
        _refuse_impossible(cells, raw, column, request)
        return _Choice(column, why)
    link = {"continuous": "none", "positive": "log"}.get(request.kind, "logit")
    unit = Unit(link=link, low=request.low, high=request.high)
    _refuse_impossible(cells, raw, Continuous(name, unit), request)
    return _Choice(Continuous.learn(name, seen, unit, cells.dtype), why)


def _refuse_impossible(
    cells: pd.Series, raw: np.ndarray, column: Column, request: Request
) -> None:
    possible = column.possible(raw)
    if possible.all():
        return
    row = int((~possible).argmax())
    raise InputError(
        f"column {column.name!r} is asked to be {request.kind!r} and has {raw[row]:g} in the row "
        f"labelled {row_label(cells.index, row)}; expected {column.expected}, or ask for another "
        f"kind."
    )


def _asked_levels(cells: pd.Series, name: str, request: Request) -> list[Label]:
    seen = _distinct(cells, name)
    if request.levels is not None:
        missed = [level for level in seen if level not in request.levels]
        if missed:
            raise InputError(
                f"column {name!r} has {missed[0]!r}, which is not among the levels that kinds "
                f"gives it ({listed(request.levels, most=20)}); add it, or make it a hole."
            )
        never = [level for level in request.levels if level not in seen]
        if never:
            logger.warning(
                "Column %r: %s is never seen, and is no level.", name, listed(never, most=20)
            )
        seen = [level for level in request.levels if level in seen]
    elif request.kind == "ordinal" and is_text(cells) and not _has_categories(cells):
        raise InputError(
            f"column {name!r} is asked to be 'ordinal', and the order of its texts is not known; "
            f"give it, such as kinds={{{name!r}: {seen[:20]}}} in the right order."
        )
    if request.kind == "binary" and len(seen) != 2:
        raise InputError(
            f"column {name!r} is asked to be 'binary' and has {len(seen)} levels "
            f"({listed(seen)}); ask for 'ordinal' or 'categorical'."
        )
    return seen


def _has_categories(cells: pd.Series) -> bool:
    return isinstance(cells.dtype, pd.CategoricalDtype)


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
        f"of the graph, or say what it is, such as kinds={{{name!r}: 'categorical'}}."
    )
