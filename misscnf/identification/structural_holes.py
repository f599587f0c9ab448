r"""Structural holes: a column that is missing exactly where another has certain values.

Pregnancies are empty for all men: there is no value that was lost, and imputing one answers a
question that nobody has. A table cannot tell such a hole from a lost value, so it is asked about:

    shown(j) = 0 of all rows with c ∈ A,      shown(j) in nearly all others.

The search is that of `regions`, with the column alone in place of a family.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from misscnf.identification.columns import Column
from misscnf.identification.regions import Region, Rules, Search
from misscnf.identification.scan import Axis

__all__ = ["find_structural_holes"]

RULES = Rules(chance=0.2, share=0.01, vague_level=0.95, luck=0.001)
SHOWN_ELSEWHERE = 0.9
"""Of the other rows, at least these show the column."""


def find_structural_holes(
    columns: Sequence[Column], axes: Sequence[Axis]
) -> list[tuple[Column, Region]]:
    """Returns columns with the region where they are never there, although elsewhere they are.

    Arguments:
        columns: The nodes, and others that may decide.
        axes: The same, sorted.
    """
    holey = [c for c in columns if c.node is not None and not c.observed.all()]
    if not holey:
        return []
    shown = np.column_stack([column.observed for column in holey])
    members = [frozenset({column.node or 0}) for column in holey]
    found = Search(shown, members, axes, RULES).stretches()
    lines = []
    for target, column in enumerate(holey):
        exact = [r for r in found[target] if _is_exact(r)]
        if exact:
            lines.append((column, max(exact, key=lambda region: region.elsewhere)))
    return lines


def _is_exact(region: Region) -> bool:
    return region.flagged and region.whole == 0 and region.elsewhere >= SHOWN_ELSEWHERE
