r"""What of an outcome two arms are compared by: its mean, or what tails do not move.

    mean        E[Y; do(A)] − E[Y; do(B)]
    median      q_½[Y; do(A)] − q_½[Y; do(B)]; any other quantile likewise, as a number such as 0.9
    trimmed     the same of means over what lies between the quantiles 0.1 and 0.9 of an arm

These are contrasts of the two laws of the outcome, not of single units: the median of the
differences is another question. Where tails are so heavy that a mean does not exist, the others
do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from misscnf.errors import InputError
from misscnf.queries.units import Units

__all__ = ["Statistic", "read_statistic"]


@dataclass(frozen=True)
class Statistic:
    """A number of a law, by the quantiles that it lies between; a mean lies between 0 and 1."""

    word: str = "mean"
    """What it is called."""
    low: float = 0.0
    high: float = 1.0
    batches: int = 20
    """Of units: their spread is the Monte-Carlo error of what is no mean."""

    @property
    def is_mean(self) -> bool:
        """Whether it is the mean."""
        return (self.low, self.high) == (0.0, 1.0)

    @property
    def measure(self) -> str:
        """What a contrast of it is called."""
        return f"{self.word} difference"

    def of(self, values: np.ndarray, weights: np.ndarray | None = None) -> float:
        """Returns the number of values (n,), with weights (n,) where units have them."""
        if self.is_mean:
            return float(np.average(values, weights=weights))
        order = np.argsort(values, kind="stable")
        values = values[order]
        weights = np.ones(len(values)) if weights is None else weights[order]
        upto = weights.cumsum() / weights.sum()
        middle = upto - 0.5 * weights / weights.sum()
        if self.low == self.high:
            return float(np.interp(self.low, middle, values))
        inside = np.clip(upto, self.low, self.high).astype(float)
        share = np.diff(inside, prepend=self.low)
        return float(share @ values / share.sum())

    def contrast(self, arms: tuple[np.ndarray, np.ndarray], units: Units) -> dict[str, float]:
        """Returns the estimate of a contrast, its Monte-Carlo error and both arms."""
        first, second = (self.of(arm, units.weights) for arm in arms)
        if self.is_mean:
            variance = float(units.covariance([arms[0] - arms[1]])[0, 0])
            # Averages of the differences, since what both arms share cancels there.
            found = {"estimate": units.mean(arms[0] - arms[1])}
            return found | _told(math.sqrt(variance), first, second)
        count = min(self.batches, len(arms[0]) // 2)
        batch = np.arange(len(arms[0])) % max(count, 1) if units.draw is None else units.draw
        parts = [
            [
                self.of(
                    arm[batch == b], None if units.weights is None else units.weights[batch == b]
                )
                for arm in arms
            ]
            for b in np.unique(batch)
        ]
        spread = np.subtract(*np.transpose(parts))
        error = float(spread.std(ddof=1) / math.sqrt(len(spread))) if len(spread) > 1 else 0.0
        return {"estimate": first - second} | _told(error, first, second)


def _told(error: float, first: float, second: float) -> dict[str, float]:
    return {"standard_error": error, "mean": first, "mean_versus": second}


def read_statistic(asked: object) -> Statistic:
    """Reads "mean", "median", "trimmed" or a quantile such as 0.9."""
    named = {
        "mean": Statistic(),
        "median": Statistic("median", 0.5, 0.5),
        "trimmed": Statistic("trimmed mean", 0.1, 0.9),
    }
    if isinstance(asked, str) and asked in named:
        return named[asked]
    is_number = isinstance(asked, int | float) and not isinstance(asked, bool)
    if is_number and 0.0 < float(asked) < 1.0:  # type: ignore[arg-type]
        at = float(asked)  # type: ignore[arg-type]
        return Statistic(f"{at:g} quantile", at, at)
    raise InputError(
        f"statistic is 'mean', 'median', 'trimmed' or a quantile between 0 and 1, such as 0.9; "
        f"got {asked!r}.",
        about="statistic",
    )
