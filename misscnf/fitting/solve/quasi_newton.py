r"""The one quasi-Newton driver: L-BFGS over tensors, within bounds or in other coordinates.

    θ* = argmax f(θ),      θ = θ_0 + W z,    z moved by L-BFGS-B

W whitens: where the information of f at θ_0 is (W Wᵀ)⁻¹, f is as steep in every coordinate and a
third of the steps are enough. Without W, lower bounds of θ are kept.

A step may leave the numbers behind: the search then comes back, from a value that is worse than
any. A maximum is only ever a point where f and its gradient are finite: where there is none, the
fit fails in words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its parts are imported when they are first used
import torch
from torch import Tensor

from misscnf.errors import FitError

__all__ = ["Maximum", "maximise"]


@dataclass(frozen=True)
class Maximum:
    """Where a search ended."""

    value: float
    """f there"""
    start: float
    """f where the search started"""
    iterations: int
    converged: bool
    """whether nothing pulls any more"""


def maximise(
    parameters: Iterable[Tensor],
    objective: Callable[[], float],
    *,
    lowest: Sequence[float] | None = None,
    highest: Sequence[float] | None = None,
    whitening: np.ndarray | None = None,
    steps: int = 500,
    memory: int = 30,
    value_tolerance: float = 1e-9,
    slope_tolerance: float = 1e-6,
    flat: float = 1e-4,
    least_gain: float | None = None,
    no_gain: float | None = None,
) -> Maximum:
    """Moves parameters to the maximum of a function of them, in place.

    Arguments:
        parameters: What is moved; all require a gradient.
        objective: Returns f at the present parameters and adds its gradient to them.
        lowest: The least value of each number, −∞ where it has none.
        highest: The largest value of each number, likewise.
        whitening: W. Bounds are not kept in these coordinates: where one is passed, the search is
            done again without.
        steps: At most so many.
        memory: Steps that L-BFGS remembers.
        value_tolerance: A step that gains a smaller share of f is the last.
        slope_tolerance: A slope, in every coordinate, that counts as none.
        flat: The same where the line search ends at the limit of precision.
        least_gain: The search ends where several steps together gain less, each on average: the
            first step is a short one, and gains little wherever it starts.
        no_gain: Where the search has to stop at a step of f, it has converged if a Newton step
            would gain less; by default `least_gain`. Only with a whitening.

    Raises:
        FitError: If f or its gradient is not finite where the search starts.
    """
    options = {
        "maxiter": steps,
        "maxfun": 2 * steps,
        "ftol": value_tolerance,
        "gtol": slope_tolerance,
        "maxcor": memory,
    }
    no_gain = least_gain if no_gain is None else no_gain
    search = _Search(list(parameters), objective, whitening, least_gain)
    low = np.full_like(search.origin, -np.inf) if lowest is None else np.asarray(lowest)
    high = np.full_like(search.origin, np.inf) if highest is None else np.asarray(highest)
    if whitening is not None:
        result = _minimise(search, options)
        found = search.at(search.best_point)
        if ((found >= low) & (found <= high)).all():
            return search.end(result, flat, no_gain)
        search.load(search.origin)
        search = _Search(search.parameters, objective, None, least_gain)
    bounds = scipy.optimize.Bounds(low - search.origin, high - search.origin)
    result = _minimise(search, options, bounds)
    return search.end(result, flat, None, bounds)


class _StuckError(Exception):
    """A line search tries one point after another that are no better and no worse."""


def _minimise(
    search: _Search, options: Mapping[str, float], bounds: scipy.optimize.Bounds | None = None
) -> scipy.optimize.OptimizeResult:
    """Returns what L-BFGS-B says of its end; without success where its line search was stuck."""
    try:
        return scipy.optimize.minimize(
            search,
            search.zero,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options=options,
            callback=search.after_step,
        )
    except _StuckError:
        return scipy.optimize.OptimizeResult(x=search.best_point, nit=search.taken, success=False)


class _Search:
    """−f as scipy wants it, with the best point seen so far."""

    averaged = 4  # steps, over which a gain is
    patience = 4  # points of one line search that are no better and no worse than the best

    def __init__(
        self,
        parameters: list[Tensor],
        objective: Callable[[], float],
        whitening: np.ndarray | None,
        least_gain: float | None,
    ) -> None:
        self.parameters, self.objective, self.whitening = parameters, objective, whitening
        self.least_gain, self.came_from, self.at_rest = least_gain, list[float](), False
        self.in_vain = self.taken = 0
        self.origin = _flat([parameter.detach() for parameter in parameters])
        self.zero = np.zeros_like(self.origin)
        self.best = self.first = math.nan
        self.best_point, self.best_slope = self.zero, self.zero

    def __call__(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = self._evaluate(point)
        finite = math.isfinite(value) and bool(np.isfinite(slope).all())
        if math.isnan(self.best):
            if not finite:
                raise FitError(
                    "the likelihood of the rows is not a finite number where the fit starts; look "
                    "for columns with values very far from the others, or that others determine."
                )
            self.first = value
        if not finite:  # a step too far: worse than any value, so that the search comes back
            return abs(self.best) * 1e3 + 1e10, np.zeros_like(point)
        self._check_stuck(value)
        if not self.best <= value:
            self.best, self.best_point, self.best_slope = value, point.copy(), slope
        return value, slope

    def _check_stuck(self, value: float) -> None:
        """Ends a line search that stands at a step of the function.

        An integral that takes more points on one side of a place than on the other leaves such
        steps, tenths of a nat high. The line search of scipy tries forty points there.
        """
        if self.least_gain is None or math.isnan(self.best):
            return
        self.in_vain += abs(value - self.best) < self.least_gain
        if self.in_vain == self.patience:
            raise _StuckError

    def after_step(self, intermediate_result: scipy.optimize.OptimizeResult) -> None:
        """Ends the search where its last steps gained little."""
        self.in_vain, self.taken = 0, self.taken + 1
        if self.least_gain is None:
            return
        self.came_from.append(float(intermediate_result.fun))
        before = self.came_from[-1 - self.averaged : -self.averaged]
        self.at_rest = bool(before) and before[0] - self.best < self.averaged * self.least_gain
        if self.at_rest:
            raise StopIteration

    def _evaluate(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        self.load(self.at(point))
        value = -self.objective()
        slope = -_flat([_gradient(parameter) for parameter in self.parameters])
        for parameter in self.parameters:
            parameter.grad = None
        return value, slope if self.whitening is None else self.whitening.T @ slope

    def end(
        self,
        result: scipy.optimize.OptimizeResult,
        flat: float,
        no_gain: float | None = None,
        bounds: scipy.optimize.Bounds | None = None,
    ) -> Maximum:
        """Leaves the parameters at the best point, and says what was found there."""
        self.load(self.at(self.best_point))
        slope = self.best_slope
        if bounds is not None:  # what would lead out of the bounds does not pull
            out = (self.best_point <= bounds.lb) & (slope > 0)
            out |= (self.best_point >= bounds.ub) & (slope < 0)
            slope = np.where(out, 0.0, slope)
        at_best = bool(np.array_equal(self.best_point, result.x))
        converged = float(np.abs(slope).max(initial=0.0)) < flat
        converged |= (bool(result.success) and at_best) or self.at_rest
        if no_gain is not None:
            # the information is one in these coordinates: so much a Newton step would gain
            converged |= bool(0.5 * (slope**2).sum() < no_gain)
        return Maximum(-self.best, -self.first, int(result.nit), converged)

    def at(self, point: np.ndarray) -> np.ndarray:
        """Returns the parameters at a point of the search."""
        return self.origin + (point if self.whitening is None else self.whitening @ point)

    def load(self, vector: np.ndarray) -> None:
        """Writes a vector into the parameters."""
        sizes = [parameter.numel() for parameter in self.parameters]
        pieces = torch.from_numpy(vector).split(sizes)
        with torch.no_grad():
            for parameter, piece in zip(self.parameters, pieces, strict=True):
                parameter.copy_(piece.reshape(parameter.shape))


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _flat(tensors: Sequence[Tensor]) -> np.ndarray:
    return torch.cat([tensor.reshape(-1) for tensor in tensors]).double().numpy().copy()
