"""What every way of integrating is given: a model, a table, an effort, and randomness."""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Generator, Tensor

from misscnf.inference.elimination import Components
from misscnf.inference.integrals.effort import Effort
from misscnf.inference.integrals.sweep import Sweep
from misscnf.model import StructuralModel

__all__ = ["Problem"]


@dataclass(frozen=True)
class Problem:
    """Four things that travel together through all integrals."""

    model: StructuralModel
    values: Tensor
    """(N, d) with finite numbers in the holes"""
    effort: Effort
    generator: Generator

    def sweep(self, components: Components) -> Sweep:
        """Returns the pass through the graph for some components."""
        return Sweep(self.model, self.values, components)

    def with_draws(self, draws: int) -> Problem:
        """Returns the same problem with another number of points in a randomisation."""
        return replace(self, effort=replace(self.effort, draws=draws))

    def doubled(self) -> Problem:
        """Returns the same problem with twice the draws, up to the limit."""
        return replace(self, effort=self.effort.doubled())
