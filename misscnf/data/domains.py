r"""What the values of a node can be, as its mechanism and those of its children see them.

Inside a model every value is a number: a continuous column is standardised; a binary, ordinal or
categorical one is the code 0, 1, …, levels − 1 of its level; a count is itself. A `Domain` tells a
mechanism which of these it makes, and a network how to read it as a parent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Domain", "CONTINUOUS", "KINDS"]

KINDS = ("continuous", "binary", "ordinal", "categorical", "count")
"""The kinds of column."""


@dataclass(frozen=True)
class Domain:
    """The kind of a node, with what is needed to read its values as numbers."""

    kind: str = "continuous"
    """One of `KINDS`."""
    levels: int | None = None
    """How many levels a binary, ordinal or categorical node has."""
    location: float = 0.0
    """The mean of what was seen, in the model's units: 0 where standardised."""
    scale: float = 1.0
    """Its standard deviation."""
    has_zero: bool = False
    """Whether a count is seen both at zero and above: zero may then be a state of its own."""

    @property
    def discrete(self) -> bool:
        """Whether single values have probabilities."""
        return self.kind != "continuous"

    @property
    def states(self) -> int | None:
        """How many values a discrete node can have; None where there is no largest one."""
        return self.levels

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(entry: Mapping[str, Any]) -> Domain:
        """Reads what `to_dict` wrote."""
        return Domain(**entry)


CONTINUOUS = Domain()
"""A standardised number."""
