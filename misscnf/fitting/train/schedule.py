r"""Learning rates: a one-cycle curve known in advance, or a plateau that follows validation.

Both are plain state that a checkpoint can hold as JSON.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Schedule", "OneCycle", "Plateau", "make_schedule", "schedule_state"]


@dataclass
class OneCycle:
    """Rises to the peak over the first part of the steps and falls to almost nothing (cosine)."""

    peak: float
    steps: int
    warm_up: float = 0.15
    lowest: float = 1e-3

    def rate(self, step: int) -> float:
        """Returns the rate of a step."""
        turn = self.warm_up * self.steps
        if step < turn:
            return self.peak * (0.04 + 0.96 * 0.5 * (1 - math.cos(math.pi * step / turn)))
        way = min(1.0, (step - turn) / max(1.0, self.steps - turn))
        return self.peak * (self.lowest + (1 - self.lowest) * 0.5 * (1 + math.cos(math.pi * way)))

    def observe(self, validation: float) -> None:
        """Does nothing: the curve is known in advance."""


@dataclass
class Plateau:
    """Multiplies the rate by a factor after `patience` epochs without a better validation loss.

    As torch's ReduceLROnPlateau: a loss is better if it is lower by a share of 1e-4.
    """

    current: float
    factor: float = 0.95
    patience: int = 60
    best: float = -math.inf
    waited: int = 0

    def rate(self, step: int) -> float:
        """Returns the rate now."""
        return self.current

    def observe(self, validation: float) -> None:
        """Takes the validation log-likelihood of an epoch."""
        loss, best = -validation, -self.best
        if math.isinf(best) or loss < best - 1e-4 * abs(best):
            self.best, self.waited = validation, 0
            return
        self.waited += 1
        if self.waited > self.patience:
            self.current, self.waited = self.current * self.factor, 0


Schedule = OneCycle | Plateau


def make_schedule(name: str, rate: float, steps: int) -> Schedule:
    """Returns the schedule of a name, "one-cycle" or "plateau"."""
    return OneCycle(rate, steps) if name == "one-cycle" else Plateau(rate)


def schedule_state(schedule: Schedule) -> dict[str, Any]:
    """Returns what a checkpoint has to keep of a schedule."""
    return asdict(schedule)
