"""The codecs of columns, one kind a file: between the user's cells and the model's numbers.

To add a kind, write a `Column`, a `domains.Domain` and a `mechanisms.Mechanism` that name it in
their class lines, in a file or two: `tests/laws/test_worked_example.py` does so for shares.
"""

from misscnf.data.codecs.base import Column
from misscnf.data.codecs.continuous import Continuous, refuse_constant
from misscnf.data.codecs.count import Count
from misscnf.data.codecs.fixed import Fixed
from misscnf.data.codecs.heavy_tailed import HeavyTailed, tail_index
from misscnf.data.codecs.latent import LatentClass, LatentNumber, latent_column
from misscnf.data.codecs.levels import Levels
from misscnf.data.codecs.semicontinuous import Semicontinuous

__all__ = ["Column", "Continuous", "Levels", "Count", "Semicontinuous", "CODECS"]
__all__ += ["Fixed", "HeavyTailed", "LatentClass", "LatentNumber", "latent_column"]
__all__ += ["refuse_constant", "tail_index"]

CODECS = Column.by_kind
"""Kind → its codec."""
