r"""Codes for "missing" that a table may hold: −99 in 37 rows of ages from 18 to 90.

A number is asked about, and never changed unasked, where it is one that people use as such a code,
stands in several rows, and is the smallest or the largest by far:

    gap to the next value  ≥  half of the range of all others.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
from pandas.api.types import is_any_real_numeric_dtype, is_bool_dtype

__all__ = ["code_question"]


def code_question(cells: pd.Series, codes: Collection[int], fewest: int, gap: float) -> str:
    """Returns a question about a number that may stand for a missing value, or nothing.

    Arguments:
        cells: A column.
        codes: Numbers that people use so, whatever their sign.
        fewest: Rows that it stands in at the least.
        gap: Of the range of all other values, that parts it from them.
    """
    if not is_any_real_numeric_dtype(cells) or is_bool_dtype(cells):
        return ""
    seen = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    seen = seen[np.isfinite(seen)]
    if not seen.size or not {abs(seen.min()), abs(seen.max())} & {*codes}:
        return ""
    values, counts = np.unique(seen, return_counts=True)
    if len(values) < 3:
        return ""
    for end, (lowest, highest) in {-1: (0, -2), 0: (1, -1)}.items():
        code, others = values[end], values[highest] - values[lowest]
        apart = abs(code - values[-2 if end else 1])
        if abs(code) in codes and counts[end] >= fewest and apart >= max(gap * others, 1.5):
            shown, rows = f"{code:g}", counts[end]
            return (
                f"{shown} stands in {rows} rows, far from all other values; if it means missing, "
                f"say --na {shown}, or df.replace({shown}, float('nan'))"
            )
    return ""
