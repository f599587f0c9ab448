r"""Several starts of a loss that depends on the value it hides.

    logit P(missing(y) = 1) = a + b y + …,      y hidden wherever missing(y) = 1

No row shows y where it is lost, so the rows that show the family say nothing of b, and the
likelihood need not be concave in it: high values that are lost, and low ones, can both explain a
share of holes. The search starts at a few slopes b, the same for all such losses, on some of the
rows and roughly (`monte_carlo`); the best of them goes on with all rows, and the others are told.
"""

from __future__ import annotations

import copy
import logging
from dataclasses import dataclass, replace

from misscnf.data.rows import RowSource
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.fisher import log_likelihoods, rows_by_chance
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.model import StructuralModel

__all__ = ["LossStart", "start_losses"]

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class LossStart:
    """One start of the losses, and where a rough search from there ended."""

    slope: float
    """log-odds a standard deviation of the lost value, where the search started"""
    log_prob: float
    """log-density of a row at the end, a mean over the rows of the search"""
    slopes: dict[str, float]
    """the slope of each loss on its own value at the end"""
    rows: int
    """rows of the search"""
    below: float = 0.0
    """nats below the best, all these rows together"""
    kept: bool = False
    """whether the fit goes on from there"""

    def to_dict(self) -> dict[str, float | int | bool]:
        """Returns a line of a table."""
        about = {"start": self.slope, "rows": self.rows, "below": self.below, "kept": self.kept}
        return about | {f"slope of {name}": slope for name, slope in self.slopes.items()}


def start_losses(
    model: StructuralModel, rows: RowSource, settings: Settings
) -> tuple[StructuralModel, tuple[LossStart, ...]]:
    """Returns the best of several starts, near its maximum, and what came of each.

    Arguments:
        model: A linear model whose losses do not depend on their own values yet.
        rows: The rows.
        settings: The slopes to start from, and how many rows try them.
    """
    solving = settings.solving
    own, some = model.graph.own_losses, rows_by_chance(rows, solving.loss_rows)
    ends, found = [], []
    for slope in solving.loss_slopes:
        tried = copy.deepcopy(model)
        for r, place in own.items():
            tried.mechanism(r).start_unseen(slope, place)
        maximise_monte_carlo(tried, some, settings, seed=0, rough=True)
        ends.append(tried)
        log_prob = float(log_likelihoods(tried, some, settings, "line").mean())
        found.append(LossStart(slope, log_prob, _slopes(tried, own), len(some)))
    best = max(range(len(found)), key=lambda i: found[i].log_prob)
    top = found[best].log_prob
    starts = tuple(
        replace(start, below=(top - start.log_prob) * start.rows, kept=i == best)
        for i, start in enumerate(found)
    )
    for start in starts:
        ways = ", ".join(f"{slope:.2f} for {name}" for name, slope in start.slopes.items())
        told = "kept" if start.kept else f"{start.below:.2f} nats lower"
        logger.info("the loss, started at a slope of %+.1f, has %s: %s.", start.slope, ways, told)
    return ends[best], starts


def _slopes(model: StructuralModel, own: dict[int, int]) -> dict[str, float]:
    names = model.graph.nodes
    return {
        names[model.graph.indicators[r]]: model.mechanism(r).first_slope(place)
        for r, place in own.items()
    }
