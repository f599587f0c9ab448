r"""Every second node missing (paper, Appendix "Computational scalability").

A row shows the 2nd, 4th, … node in graph order or the 1st, 3rd, …, by the toss of a coin. Roots
are lost too: on a chain, every seen node's parent is hidden.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from misscnf import CausalGraph
from misscnf_study.losses.loss import Floats, Missingness
from misscnf_study.losses.patterns import PatternLoss

__all__ = ["Alternating"]


@final
@dataclass(frozen=True)
class Alternating(Missingness):
    """Loses every second node of a row."""

    def reads(self, graph: CausalGraph) -> tuple[int, ...]:
        """Returns nothing: no value has a say."""
        return ()

    def calibrate(
        self, values: Floats, graph: CausalGraph, generator: np.random.Generator
    ) -> PatternLoss:
        """Returns the two patterns; there is nothing to find."""
        even = np.arange(len(graph)) % 2 == 1
        return PatternLoss(first=even, second=~even)
