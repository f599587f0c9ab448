r"""Histories as causes: functions of a column's earlier visits that a mechanism reads.

    mean(L)[t-1] -> A[t];   ever(A)[t-1] -> Y[t]

| function of x_0, …, x_k | value |
|---|---|
| `mean` | (x_0 + … + x_k) / (k + 1) |
| `ever` | 1 where some x_j is on, that is above zero |
| `count` | how many x_j are on |
| `since` | visits since the last one that was on, 0 at it; k + 1 where none was |
| `last` | x at the last visit at which the table shows the column for anybody |

The node itself has all visits that a history goes over as its causes, so that nothing is filled
in: what of them is hidden is integrated over. A *reading* says what its mechanism makes of them.
The mechanism reads the same numbers at every visit, however many visits these go over, so that
visits can be tied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Literal

__all__ = ["Function", "History", "Reading", "Feature"]

Function = Literal["value", "mean", "ever", "count", "since"]
History = Literal["mean", "ever", "count", "since", "last"]
"""What people write; the last value is the value of one visit."""


@dataclass(frozen=True)
class Feature:
    """A number that a mechanism reads: (function of some parents − location) / scale."""

    name: str
    """What it is called, such as `mean(L)[2]`."""
    function: Function
    places: tuple[int, ...]
    """Which parents, the earliest first."""
    location: float = 0.0
    scale: float = 1.0

    linear: ClassVar[tuple[str, ...]] = ("value", "mean")
    """Functions that are linear in the parents."""

    @property
    def is_linear(self) -> bool:
        """Whether it is linear in its parents."""
        return self.function in self.linear


@dataclass(frozen=True)
class Reading:
    """What a mechanism reads of the parents of a node."""

    features: tuple[Feature, ...]

    def __len__(self) -> int:
        return len(self.features)

    def as_line(self) -> Reading:
        """Returns a reading by linear functions: the mean of a history stands for any other."""
        features = [
            replace(
                f, function="value" if f.function == "value" else "mean", location=0.0, scale=1.0
            )
            for f in self.features
        ]
        return Reading(tuple(features))

    def in_raw_numbers(self) -> Reading:
        """Returns the same without locations and scales."""
        return Reading(tuple(replace(f, location=0.0, scale=1.0) for f in self.features))

    def to_list(self) -> list[dict[str, Any]]:
        """Returns plain values, for JSON."""
        return [asdict(feature) for feature in self.features]

    @staticmethod
    def from_list(entries: Sequence[Mapping[str, Any]]) -> Reading:
        """Reads what `to_list` wrote."""
        return Reading(
            tuple(Feature(**{**entry, "places": tuple(entry["places"])}) for entry in entries)
        )
