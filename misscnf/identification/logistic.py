r"""Logistic regression by Newton's method, and Holm's correction of many tests.

    P(hole | x) = σ(b + w · x),        w, b ← w, b + (X' V X)⁻¹ X' (r − p),    V = diag p (1 − p)

Twice the gain in log-likelihood over the fit without a predictor follows χ² where that predictor
has no say. A tiny ridge keeps the steps finite where the holes are separated exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, expit

__all__ = ["LogisticFit", "fit_logistic", "likelihood_ratio_test", "holm"]

RIDGE = 1e-4
STEPS = 40
FAR = 30.0
"""Log-odds beyond this are certain."""


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """A logistic regression with an intercept."""

    intercept: float
    weights: np.ndarray
    log_likelihood: float


def fit_logistic(features: np.ndarray, happens: np.ndarray) -> LogisticFit:
    """Fits a logistic regression.

    Arguments:
        features: (N, k) finite numbers, of a scale near one.
        happens: (N,) True where it happens.
    """
    design = np.column_stack([np.ones(len(features)), features])
    target = happens.astype(np.float64)
    ridge = RIDGE * np.eye(design.shape[1])
    ridge[0, 0] = 1e-10
    weights = np.zeros(design.shape[1])
    share = np.clip(target.mean(), 1e-9, 1.0 - 1e-9)
    weights[0] = np.log(share / (1.0 - share))
    value = _objective(design, target, weights, ridge)
    for _ in range(STEPS):
        p = expit(design @ weights)
        slope = design.T @ (target - p) - ridge @ weights
        step = np.linalg.solve((design * (p * (1.0 - p))[:, None]).T @ design + ridge, slope)
        weights, gain, value = _halving_step(design, target, weights, step, ridge, value)
        if gain < 1e-8 * (1.0 + abs(value)):
            break
    log_likelihood = _log_likelihood(design @ weights, target)
    return LogisticFit(float(weights[0]), weights[1:], log_likelihood)


def likelihood_ratio_test(full: LogisticFit, reduced: LogisticFit) -> float:
    """Returns the p-value of the features that a fit has beside those of another."""
    gain = full.log_likelihood - reduced.log_likelihood
    return float(chdtrc(len(full.weights) - len(reduced.weights), max(0.0, 2.0 * gain)))


def holm(p_values: Sequence[float] | np.ndarray) -> np.ndarray:
    """Returns p-values corrected for their number, such that any false one is as rare as said."""
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = p[order] * (len(p) - np.arange(len(p)))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def _log_likelihood(scores: np.ndarray, target: np.ndarray) -> float:
    scores = np.clip(scores, -FAR, FAR)
    return float((target * scores - np.logaddexp(0.0, scores)).sum())


def _objective(
    design: np.ndarray, target: np.ndarray, weights: np.ndarray, ridge: np.ndarray
) -> float:
    return _log_likelihood(design @ weights, target) - 0.5 * float(weights @ ridge @ weights)


def _halving_step(
    design: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray,
    step: np.ndarray,
    ridge: np.ndarray,
    value: float,
) -> tuple[np.ndarray, float, float]:
    """Goes along a step, halved until it gains; returns where to, the gain and the value."""
    for _ in range(20):
        there = _objective(design, target, weights + step, ridge)
        if there >= value:
            return weights + step, there - value, there
        step = step / 2.0
    return weights, 0.0, value
