"""The codecs of columns, one kind a file: between the user's cells and the model's numbers.

To add a kind, add a file with a `Column`, one line to `CODECS`, one to `misscnf.domains.KINDS`,
its rule to `misscnf.kinds`, and one line to the table in `tests/test_columns.py`.
"""

from misscnf.columns.base import Column
from misscnf.columns.continuous import Continuous, refuse_constant
from misscnf.columns.count import Count
from misscnf.columns.levels import Levels

__all__ = ["Column", "Continuous", "Levels", "Count", "CODECS", "refuse_constant"]

CODECS: dict[str, type[Column]] = {
    "continuous": Continuous,
    "binary": Levels,
    "ordinal": Levels,
    "categorical": Levels,
    "count": Count,
}
"""Kind → its codec."""
