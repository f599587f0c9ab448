"""The codecs of columns, one kind a file: between the user's cells and the model's numbers.

To add a kind, add a file with a `Column`, one line to `CODECS`, one to `domains.KINDS`, its
rule to `kinds`, and one line to the table in `tests/data/test_codecs.py`.
"""

from misscnf.data.codecs.base import Column
from misscnf.data.codecs.continuous import Continuous, refuse_constant
from misscnf.data.codecs.count import Count
from misscnf.data.codecs.levels import Levels

__all__ = ["Column", "Continuous", "Levels", "Count", "CODECS", "refuse_constant"]

CODECS: dict[str, type[Column]] = {
    "continuous": Continuous,
    "binary": Levels,
    "ordinal": Levels,
    "categorical": Levels,
    "count": Count,
}
"""Kind → its codec."""
