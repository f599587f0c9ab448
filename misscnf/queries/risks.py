r"""Intervals of risks: inside [0, 1], and as wide as few events leave them.

With v the sampling variance of logit p, an answer p is worth as much as a count of x events in n
people,

    n = 1 / (v p (1 − p)),     x = p n,

and its interval is the exact one of that count (Clopper and Pearson 1934), as Korn and Graubard
(1998) have it for surveys. An arm of a events in n people has v = 1/a + 1/(n − a), and so the
interval of a in n. Where all n lack the event, p and the information of logit p, n p (1 − p),
vanish together as the fit runs off, and their ratio n stays: 0 of 16 gives 0 to 0.21. Of few
events v is what scores and information of the rows say (`influence`); of many it is the spread of
replicates, with the quantile of its t.

Contrasts of p and q, with ends l to u and m to w, square and add how far each end is (Newcombe
1998; Zou 2008 with the correlation r of the arms), on the scale f: the risk itself for a
difference, its logarithm for a ratio, its logit for an odds ratio,

    f(p) − f(q) − √(a² + b² − 2 r a b),    a = f(p) − f(l),    b = f(w) − f(q).

A difference so stays inside [−1, 1], since a ≤ p and b ≤ 1 − q, and an arm without events, whose
replicates hardly differ, still counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv, betaincinv, logit, ndtri

from misscnf.fitting.replicates import Replicates
from misscnf.queries.influence import Spread

__all__ = ["Interval", "Risk", "far"]

Interval = tuple[float, float]
"""Its lower and its upper end."""


@dataclass(frozen=True)
class Risk:
    """A risk, its interval, and what the contrast with another one needs."""

    value: float
    interval: Interval
    events: float
    """How many it is worth, of the event or of its absence, whichever are fewer."""
    deviation: float
    """√v"""
    logits: np.ndarray
    """(B,) by replicates"""

    @staticmethod
    def of(
        value: float,
        answers: Sequence[float],
        by_line: Sequence[float],
        source: Replicates,
        level: float,
        by_form: Sequence[float] = (),
    ) -> Risk | None:
        """Returns a risk with its interval, from what replicates of the fit answer.

        None where nothing tells it: no unit has the event, or all have it.

        Arguments:
            value: By the fit.
            answers: By each of B replicates.
            by_line: By replicates of its line, where the fit has networks.
            source: The replicates.
            level: Of the interval.
            by_form: By the fit and each of its rivals, with the units of replicates.
        """
        if not 0.0 < value < 1.0:
            return None
        logits = _logits(value, answers)
        of_line = _logits(value, by_line) if by_line else None
        of_forms = _logits(value, by_form) if by_form else ()
        spread = Spread.of(logits, source, of_line, of_forms)
        variance = wide = spread.by_rows + spread.of_forms**2
        product = value * (1.0 - value)
        rarer = min(value, 1.0 - value)
        if not variance > 0.0 or rarer >= source.settings.few_shares * variance * product:
            variance = spread.error**2 + spread.of_forms**2
            wide = (spread.half_width(level) / float(ndtri(0.5 + level / 2.0))) ** 2
        if not variance > 0.0:
            return Risk(value, (value, value), math.inf, 0.0, logits)
        people = 1.0 / (wide * product)
        ends = _exact(value * people, (1.0 - value) * people, level)
        return Risk(value, ends, rarer * people, variance**0.5, logits)

    def difference(self, other: Risk) -> Interval:
        """Returns the interval of the difference from another risk."""
        return self._contrast(other, float)

    def ratio(self, other: Risk) -> Interval:
        """Returns the interval of the ratio to another risk."""
        lower, upper = self._contrast(other, lambda risk: float(np.log(risk)))
        return _exp(lower), _exp(upper)

    def odds_ratio(self, other: Risk) -> Interval:
        """Returns the interval of the odds ratio."""
        lower, upper = self._contrast(other, lambda risk: float(logit(risk)))
        return _exp(lower), _exp(upper)

    @np.errstate(divide="ignore")  # the logarithm of an end at zero
    def _contrast(self, other: Risk, scale: Callable[[float], float]) -> Interval:
        first, second = scale(self.value), scale(other.value)
        lower, upper = map(scale, self.interval)
        least, most = map(scale, other.interval)
        together = self._correlation(other)
        below, above = first - lower, upper - first
        contrast = first - second
        below = far(below, most - second, together)
        return contrast - below, contrast + far(above, second - least, together)

    def _correlation(self, other: Risk) -> float:
        """Returns that of the logits; what the rows leave open beyond replicates has none."""
        scale = self.deviation * other.deviation
        if not scale > 0.0:
            return 0.0
        return float(np.clip(np.cov(self.logits, other.logits)[0, 1] / scale, -1.0, 1.0))


def _logits(value: float, answers: Sequence[float]) -> np.ndarray:
    """Returns the logits of risks, to first order where one of them has none."""
    found = np.asarray(answers, dtype=np.float64)
    if ((found > 0.0) & (found < 1.0)).all():
        return np.asarray(logit(found))
    return (found - value) / (value * (1.0 - value))


def _exact(events: float, others: float, level: float) -> Interval:
    """Returns the interval of a proportion by Clopper and Pearson, of counts of any size."""
    tail, least = 0.5 - level / 2.0, np.finfo(np.float64).tiny  # what stands for zero in scipy
    lower = float(betaincinv(events, others + 1.0, tail))
    return (lower if lower > least else 0.0, float(betainccinv(events + 1.0, others, tail)))


def far(first: float, second: float, correlation: float) -> float:
    """Returns how far the end of a contrast is, by how far the ends of both sides are."""
    if math.isinf(first) or math.isinf(second):
        return math.inf
    squares = first**2 + second**2 - 2.0 * correlation * first * second
    return math.sqrt(max(squares, 0.0))


def _exp(value: float) -> float:
    """Returns e to the power of any number, ∞ beyond all that can be written."""
    return math.exp(value) if value < 700.0 else math.inf
