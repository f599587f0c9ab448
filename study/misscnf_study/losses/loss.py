r"""Ways of losing values, and the laws of loss that they become on a table.

A way of losing values (`Missingness`) is calibrated on a complete table first: it draws its
weights and finds its intercepts there. The result is a `Loss`, which gives each cell of any rows
a chance and draws from it (paper, Appendix "Missingness mechanisms"). There are two kinds: cells
lost one by one (`cells`), and rows that follow one of two patterns (`patterns`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from misscnf import CausalGraph

__all__ = ["Missingness", "Loss", "Floats", "Flags"]

Floats: TypeAlias = NDArray[np.float64]
Flags: TypeAlias = NDArray[np.bool_]


class Loss(ABC):
    """A law of loss over d nodes, calibrated."""

    @abstractmethod
    def probability(self, values: Floats) -> Floats:
        """Returns the chance of each cell of complete values (N, d) to be lost, (N, d)."""

    @abstractmethod
    def observed(self, values: Floats, generator: np.random.Generator) -> Flags:
        """Draws which cells stay, (N, d), True where a value is there."""


class Missingness(ABC):
    """A way of losing values. Abstract: subclasses are final, frozen dataclasses."""

    @abstractmethod
    def reads(self, graph: CausalGraph) -> tuple[int, ...]:
        """Returns the nodes whose values the chances depend on; these must be complete."""

    @abstractmethod
    def calibrate(
        self, values: Floats, graph: CausalGraph, generator: np.random.Generator
    ) -> Loss:
        """Returns the law of loss, its weights drawn and its intercepts found on values (N, d)."""

    def observed(
        self, values: Floats, graph: CausalGraph, generator: np.random.Generator
    ) -> Flags:
        """Calibrates on values (N, d) and draws which of them stay, (N, d)."""
        return self.calibrate(values, graph, generator).observed(values, generator)
