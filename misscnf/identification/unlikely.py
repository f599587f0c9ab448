r"""Values that no law of their column makes likely: errors of typing, codes such as 999.

Let d_1 ≥ d_2 ≥ … be distances from the median. In a tail of index 1/γ, however heavy, the spacing
m log(d_m / d_{m+1}) is exponential with mean γ (Rényi), and lighter tails end sooner. With γ from
the k cells that follow, the chance of so lonely a value is

    p = (1 + m log(d_m / d_{m+1}) / (k γ))^−k.

Up to three values are tried, each with all cells that repeat it, since a code is typed often.
Honest columns are left alone, however heavy: what is told is a gap, not a tail.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from misscnf.data.cells import row_label
from misscnf.data.codecs import Levels
from misscnf.data.rows import ROWS_AT_ONCE
from misscnf.data.table import IncompleteTable
from misscnf.identification.settings import UnlikelyRules
from misscnf.threads import in_order

__all__ = ["Unlikely", "unlikely_values"]


@dataclass(frozen=True)
class Unlikely:
    """A value far from all others of its column."""

    column: str
    value: float
    rows: tuple[str, ...]
    """The labels of the first rows that have it."""
    times: int
    """Cells that have it."""
    low: float
    """All other values of the column lie from here"""
    high: float
    """to here."""
    p_value: float
    """The chance of a value as far as this, whatever the column's tail."""

    @property
    def place(self) -> str:
        """Which cells, in words."""
        more = "" if self.times == len(self.rows) else f" and {self.times - len(self.rows)} more"
        rows = f"row{'s' * (self.times > 1)} labelled {', '.join(self.rows)}{more}"
        return f"{self.column} is {self.value:.12g} in the {rows}"

    @property
    def sentence(self) -> str:
        """What was found, what was expected, and what to do."""
        return (
            f"{self.place}, and from {self.low:.4g} to {self.high:.4g} everywhere else: correct "
            f"it if it is an error of typing, make it a hole if it is a code for a missing value"
        )


def unlikely_values(table: IncompleteTable, rules: UnlikelyRules) -> tuple[Unlikely, ...]:
    """Returns the values of a table's columns of numbers that no law makes likely."""
    numbers = [
        (j, column.name)
        for j, column in enumerate(table.schema.columns)
        if not isinstance(column, Levels)
    ]
    found: list[Unlikely] = []
    most = None if len(table) > ROWS_AT_ONCE else 1

    def lonely(number: tuple[int, str]) -> tuple[list[float], float]:
        return _lonely(table.raw[table.observed[:, number[0]].numpy(), number[0]], rules)

    for (j, name), (odd, p_value) in zip(numbers, in_order(lonely, numbers, most), strict=True):
        values, there = table.raw[:, j], table.observed[:, j].numpy()
        if not odd or p_value * len(numbers) * rules.most_values > rules.level:
            continue
        others = values[there & ~np.isin(values, odd)]
        for value in odd:
            rows = np.flatnonzero(there & (values == value))
            labels = tuple(row_label(table.index, int(row)) for row in rows[: rules.most_rows])
            ends = float(others.min()), float(others.max())
            found.append(Unlikely(name, value, labels, len(rows), *ends, p_value))
    return tuple(found)


def _lonely(cells: np.ndarray, rules: UnlikelyRules) -> tuple[list[float], float]:
    """Returns the farthest values that are least likely, and their p-value."""
    if len(cells) < rules.fewest:
        return [], 1.0
    away = np.abs(cells - np.median(cells))
    farthest = np.unique(cells[np.argsort(-away, kind="stable")[: len(cells) // 4]])
    farthest = farthest[np.argsort(-np.abs(farthest - np.median(cells)), kind="stable")]
    step = 2.0 if bool((cells == np.floor(cells)).all()) else 0.0  # of a grid, no gap
    best: tuple[list[float], float] = ([], 1.0)
    for m in range(1, min(rules.most_values, len(farthest) - 1) + 1):
        odd = farthest[:m]
        rest = away[~np.isin(cells, odd)]
        count = min(rules.most_in_tail, len(rest) // 5)
        if count < 5:
            break
        rest = np.sort(np.partition(rest, -count - 1)[-count - 1 :])[::-1]
        if rest[count] <= 0.0:
            break
        gamma = max(float(np.log(rest[:count] / rest[count]).mean()), rules.least_gamma)
        lone = float(np.abs(odd - np.median(cells)).min()) - step
        gap = math.log(max(lone, rest[0]) / rest[0])
        p_value = math.exp(-count * math.log1p(m * gap / (count * gamma)))
        if p_value < best[1]:
            best = (odd.tolist(), p_value)
    return best
