r"""How long a fit with `auto` may take, said before it starts. A rough guess, from a few tables.

    least = 2 s + 5e-5 s · rows · edges + 0.5 s · columns of levels or counts, if some are lost,
    most  = least + 2.5e-4 s · rows · edges · share lost + 0.5 s · numbers with causes:

the first where every mean turns out to be a line, the second where most of them are curves, whose
integrals over what is lost have no closed form. Levels and counts are summed over, in many small
steps, whatever the number of rows. Networks may take longer still. These are seconds of processor
time of a core that does a small piece of work of the same kind in `PIECE` seconds. How long this
one takes for it is measured, so that a slower machine says more.
"""

from __future__ import annotations

import statistics
import time
from functools import lru_cache

import torch

from misscnf.data.rows import RowSource
from misscnf.model import Structure

__all__ = ["expected_duration", "expected_seconds", "pace"]

SECONDS, PER_FAMILY, PER_DISCRETE, PER_HOLE, PER_CURVE, PIECE = 2, 5e-5, 0.5, 2.5e-4, 0.5, 2.5e-3


def expected_duration(structure: Structure, rows: RowSource) -> str:
    """Returns the sentence."""
    least, most = expected_seconds(structure, rows)
    return (
        f"the fit tests which means bend, and fits lines, curves or networks; that takes roughly "
        f"{_words(least)} of processor time if all are lines, {_words(most)} if most are curves, "
        f"more if networks are trained."
    )


def expected_seconds(structure: Structure, rows: RowSource) -> tuple[float, float]:
    """Returns the least and the most, on this machine."""
    parents = structure.graph.parents
    edges = len(rows) * sum(map(len, parents))
    lost = torch.stack([(~batch.observed).sum(0) for batch in rows.batches()]).sum(0)
    discrete = [domain.discrete for domain in structure.domains]
    summed = sum(discrete) if bool(lost[discrete].any()) else 0
    least = SECONDS + PER_FAMILY * edges + PER_DISCRETE * summed
    share = int(lost.sum()) / (len(rows) * rows.columns)
    bent = sum(bool(of) and not its for of, its in zip(parents, discrete, strict=True))
    most = least + PER_HOLE * edges * share + PER_CURVE * bent
    return pace() * least, pace() * most


@lru_cache(maxsize=1)
def pace() -> float:
    """Returns how many times the processor time of the machine of the guess this one takes."""
    wide = torch.linspace(-3.0, 3.0, 2**17, dtype=torch.float64).reshape(4096, 32)
    short = torch.linspace(0.0, 1.0, 512, dtype=torch.float64)
    found = []
    for _ in range(5):
        start = time.thread_time()
        for _ in range(4):  # radial basis functions, and small steps
            float((wide.exp() @ wide.T[:, :8]).sum())
        for _ in range(60):
            float(torch.where(short > 0.5, short * short + 1.0, short.exp()).sum())
        found.append(time.thread_time() - start)
    return statistics.median(found) / PIECE


def _words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
