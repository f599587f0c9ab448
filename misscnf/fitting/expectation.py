r"""How long a fit with `auto` may take, said before it starts. A rough guess, from a few tables.

    least = 2 s + 5e-5 s · rows · edges + 0.7 s · columns of levels or counts, if some are lost,
    most  = least + 2e-3 s · rows · edges · share lost:

the first where every mean turns out to be a line, the second where most of them are curves, whose
integrals over what is lost have no closed form. Levels and counts are summed over, in many small
steps, whatever the number of rows. Networks may take longer still. Measured on one core of a
shared server; another machine, or a busy one, differs by a factor.
"""

from __future__ import annotations

import torch

from misscnf.data.rows import RowSource
from misscnf.model import Structure

__all__ = ["expected_duration"]

SECONDS, PER_FAMILY, PER_DISCRETE, PER_HOLE = 2.0, 5e-5, 0.7, 2e-3


def expected_duration(structure: Structure, rows: RowSource) -> str:
    """Returns the sentence."""
    edges = len(rows) * sum(len(parents) for parents in structure.graph.parents)
    lost = torch.stack([(~batch.observed).sum(0) for batch in rows.batches()]).sum(0)
    discrete = [domain.discrete for domain in structure.domains]
    summed = sum(discrete) if bool(lost[discrete].any()) else 0
    least = SECONDS + PER_FAMILY * edges + PER_DISCRETE * summed
    most = least + PER_HOLE * edges * int(lost.sum()) / (len(rows) * rows.columns)
    return (
        f"tests which means are more than lines, and fits lines, curves or networks: roughly "
        f"{_words(least)} if all are lines, {_words(most)} if most are curves, more "
        f"if networks are trained."
    )


def _words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
