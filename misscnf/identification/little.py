r"""Little's test that values are lost completely at random (Little, 1988).

If they are, every pattern is a random sample of the rows, and its means differ from the means of
all by chance alone. With μ and Σ the maximum-likelihood moments of all rows, and a pattern that
shows O in n rows with means m,

    d² = Σ_patterns n (m − μ_O)' Σ_OO⁻¹ (m − μ_O)  ~  χ²( Σ |O| − d ).

μ and Σ come from EM, pattern by pattern: each has a linear map B that predicts what is hidden from
what is shown, so its count, means and scatter are enough,

    B = Σ_·O Σ_OO⁻¹,    μ ← μ + mean of B (x_O − μ_O),    Σ ← mean of B S B' + (Σ − B Σ_O·).

Σ holds the differences between patterns too, which matters where patterns have few rows: the
spread of d² shrinks by φ = 1 − (Σ |O| − d) / (Σ n |O| − d), as that of Pillai's trace does, and
d²/φ is held against χ²((Σ |O| − d)/φ).

Moments from pairs of columns instead are no covariance at all where holes are many, and reject a
true MCAR far too often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import chdtrc

from misscnf.identification.families import find_patterns
from misscnf.identification.settings import LittleRules

__all__ = ["LittleTest", "little_test", "em_moments", "PatternMoments"]


@dataclass(frozen=True)
class LittleTest:
    """The outcome of Little's test."""

    statistic: float
    degrees: int
    p_value: float
    patterns: int
    """How many patterns were compared."""
    rows: int
    """How many rows they hold."""
    row_share: float
    """Of the rows that show anything."""
    converged: bool
    """Whether EM came to rest."""


@dataclass(frozen=True, eq=False)
class PatternMoments:
    """Count, mean and scatter of each pattern, zero where unobserved. P patterns, d columns."""

    observed: np.ndarray
    count: np.ndarray
    mean: np.ndarray
    scatter: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, observed: np.ndarray, of_row: np.ndarray) -> PatternMoments:
        """Takes moments of rows (N, d) whose patterns, (P, d), are numbered by row, (N,)."""
        patterns, d = observed.shape
        count = np.bincount(of_row, minlength=patterns).astype(np.float64)
        order = np.argsort(of_row, kind="stable")
        starts = np.concatenate([[0], np.cumsum(count[:-1])]).astype(np.int64)
        ordered = np.where(observed[of_row[order]], values[order], 0.0)
        mean = np.add.reduceat(ordered, starts, axis=0) / count[:, None]
        centred = np.where(observed[of_row[order]], ordered - mean[of_row[order]], 0.0)
        scatter = np.empty((patterns, d, d))
        for i in range(d):
            scatter[:, i] = np.add.reduceat(centred[:, i : i + 1] * centred, starts, axis=0)
        return cls(observed, count, mean, scatter)


def little_test(values: np.ndarray, rules: LittleRules | None = None) -> LittleTest | None:
    """Tests whether values (N, d) are lost completely at random.

    It is None where it says nothing: one pattern, or too few rows.
    """
    rules, observed = rules or LittleRules(), ~np.isnan(values)
    shows = observed.any(axis=1)
    values, observed = values[shows], observed[shows]
    if not len(values):
        return None
    patterns = find_patterns(observed)
    most = max(2, int(rules.most_work / observed.shape[1] ** 3))
    kept = patterns.of_row < most  # a choice by the holes alone, which MCAR allows
    values, observed, of_row = values[kept], patterns.observed[:most], patterns.of_row[kept]
    frame = pd.DataFrame(values)
    span = (frame.max() - frame.min()).to_numpy()
    seen = span > 0.0
    # A span whose square float64 does not hold is made one; the test does not depend on scales.
    span = np.where(np.abs(np.log10(span, where=seen, out=np.zeros_like(span))) < 100, 1.0, span)
    values, observed = values[:, seen] / span[seen], observed[:, seen]
    degrees = int(observed.sum()) - observed.shape[1]
    enough = rules.rows_a_column * observed.shape[1] + 10
    if len(observed) < 2 or degrees < 1 or len(values) < enough:
        return None
    moments = PatternMoments.of(values, observed, of_row)
    mean, covariance, converged = em_moments(moments, rules)
    inverse, away = _inverse(moments, covariance), _away(moments, mean)
    quadratic = np.einsum("pi,pij,pj->p", away, inverse, away)
    statistic = float((moments.count * quadratic).sum()) * (len(values) - 1) / len(values)
    cells = float((moments.count * observed.sum(axis=1)).sum())
    shrink = max(1e-3, 1.0 - degrees / (cells - observed.shape[1]))
    return LittleTest(
        statistic=statistic,
        degrees=degrees,
        p_value=float(chdtrc(degrees / shrink, statistic / shrink)),
        patterns=len(observed),
        rows=len(values),
        row_share=len(values) / int(shows.sum()),
        converged=converged,
    )


def em_moments(
    moments: PatternMoments, rules: LittleRules | None = None
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Returns the maximum-likelihood mean (d,) and covariance (d, d), and whether EM rested."""
    rules, total = rules or LittleRules(), moments.count.sum()
    seen = moments.observed * moments.count[:, None]
    mean = (seen * moments.mean).sum(axis=0) / seen.sum(axis=0)
    away = _away(moments, mean)
    squares = np.einsum("pii->pi", moments.scatter) + moments.count[:, None] * away**2
    covariance = np.diag(squares.sum(axis=0) / seen.sum(axis=0))
    for _ in range(rules.steps):
        inverse, away = _inverse(moments, covariance), _away(moments, mean)
        predict = covariance @ inverse
        expected = np.einsum("pij,pj->pi", predict, away)
        shift = moments.count @ expected / total
        spread = np.einsum("pij,pjk,plk->il", predict, moments.scatter, predict, optimize=True)
        spread += np.einsum("p,pi,pj->ij", moments.count, expected, expected, optimize=True)
        spread += total * covariance - np.einsum("p,pij->ij", moments.count, predict) @ covariance
        updated = spread / total - np.outer(shift, shift)
        updated = (updated + updated.T) / 2.0
        scale = np.sqrt(np.diag(covariance))
        moved = np.vstack([shift / scale, (updated - covariance) / np.outer(scale, scale)])
        mean, covariance = mean + shift, updated
        if np.abs(moved).max() < rules.tolerance:
            return mean, covariance, True
    return mean, covariance, False


def _away(moments: PatternMoments, mean: np.ndarray) -> np.ndarray:
    return np.where(moments.observed, moments.mean - mean, 0.0)


def _inverse(moments: PatternMoments, covariance: np.ndarray) -> np.ndarray:
    """Returns Σ_OO⁻¹ of each pattern, zero elsewhere (P, d, d)."""
    both = moments.observed[:, :, None] & moments.observed[:, None, :]
    ridged = covariance + 1e-9 * np.diag(np.diag(covariance))  # two columns may be one
    return np.where(both, np.linalg.inv(np.where(both, ridged, np.eye(len(ridged)))), 0.0)
