"""Listwise deletion: only the rows without holes (paper, "Listwise deletion").

Not an imputer: it fills nothing. What is left follows the law of the complete rows, which is the
truth's only where holes come by chance; and there may be nothing left.
"""

from __future__ import annotations

import pandas as pd

from misscnf_study.rivals.contract import ImpossibleError

__all__ = ["complete_rows"]


def complete_rows(df: pd.DataFrame) -> pd.DataFrame:
    """Returns the rows of a table that have no hole, as they are.

    Arguments:
        df: A table, NaN where a value is unknown.

    Raises:
        ImpossibleError: If every row has a hole.
    """
    rows = df.dropna()
    if rows.empty:
        raise ImpossibleError(
            f"listwise deletion leaves no row: each of the {len(df)} rows has a hole. Use a "
            f"method that reads incomplete rows."
        )
    return rows
