r"""A table as the page shows it: its first rows, what each column looks like, where the holes are.

Each column has bars: how often its values are seen, by levels where these are few and in
intervals of equal width elsewhere. Rows that show the same columns have a pattern of holes, and
the frequent ones are drawn. All of it is counts, quick for long tables too; which kind a column is
of takes longer and is asked for by itself.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

__all__ = ["describe_table", "cell_text", "drawn_text"]


def describe_table(
    frame: pd.DataFrame, *, first: int = 50, bars: int = 24, levels: int = 30, patterns: int = 12
) -> dict[str, Any]:
    """Returns what the page shows of a table.

    Arguments:
        frame: The table.
        first: Rows that are shown.
        bars: Intervals of a histogram.
        levels: The most values that are listed one by one.
        patterns: The most patterns that are drawn.
    """
    names = list(map(str, frame.columns))
    seen = frame.notna().to_numpy()
    top = frame.head(first)
    cells = [[cell_text(value) for value in top.iloc[:, j]] for j in range(len(names))]
    return {
        "rows": len(frame),
        "complete": int(seen.all(axis=1).sum()),
        "holes": int((~seen).sum()),
        "columns": [
            {
                "name": name,
                "holes": int((~seen[:, j]).sum()),
                **_drawn(frame.iloc[:, j].dropna(), bars, levels),
            }
            for j, name in enumerate(names)
        ],
        "patterns": _patterns(seen, patterns),
        "first": [list(row) for row in zip(*cells, strict=True)],
    }


def cell_text(value: object) -> str | None:
    """Returns a cell as it is shown; None for a hole."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, float | np.floating):
        number = float(value)
        return None if math.isnan(number) else f"{number:.10g}"
    return str(value)


def drawn_text(value: object, shown: str | None) -> str | None:
    """Returns a drawn cell as it is shown: as the row has it, or a number with four digits.

    Draws that hang on nothing hidden are the same number but for rounding, and are told as one.
    """
    text = cell_text(value)
    if (
        text == shown
        or not isinstance(value, float | np.floating)
        or not math.isfinite(float(value))
    ):
        return text
    number = float(value)
    digits = 3 - math.floor(math.log10(abs(number))) if number else 0
    return cell_text(round(number, max(0, digits)))


def _drawn(cells: pd.Series, bars: int, levels: int) -> dict[str, Any]:
    """Returns the values of a column with their counts, or its histogram."""
    counts = cells.value_counts()
    if len(counts) <= levels:
        order = counts.index if isinstance(cells.dtype, pd.CategoricalDtype) else _sorted(counts)
        values = [(cell_text(value) or "", int(counts[value])) for value in order]
        return {"levels": values, "bars": None}
    if not is_numeric_dtype(cells) or is_bool_dtype(cells):
        return {"levels": None, "bars": None, "distinct": len(counts)}
    numbers = cells.to_numpy(dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    heights, edges = np.histogram(numbers, bars)
    ends = {"low": float(edges[0]), "high": float(edges[-1]), "mean": float(numbers.mean())}
    return {"levels": None, "bars": heights.tolist(), **ends}


def _sorted(counts: pd.Series) -> list[Any]:
    try:
        return sorted(counts.index)
    except TypeError:  # numbers beside texts
        return sorted(counts.index, key=str)


def _patterns(seen: np.ndarray, most: int) -> dict[str, Any]:
    """Returns the frequent patterns, each with what it shows and its rows."""
    packed = np.packbits(seen, axis=1)
    keys = np.ascontiguousarray(packed).view(np.dtype((np.void, packed.shape[1]))).ravel()
    _, at, counts = np.unique(keys, return_index=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:most]
    shown = [{"shows": seen[at[k]].tolist(), "rows": int(counts[k])} for k in order]
    return {"count": len(counts), "shown": shown}
