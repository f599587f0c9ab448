r"""Two patterns and no complete row (paper, Appendix "Pattern-based MAR").

Each row shows the nodes of o₁ or of o₂, by the value of a node x_cut that both show. With z_cut
the standardised value and τ the median of x_cut,

    holds       p(o₁ | x) = σ(z_cut)
    violated    p(o₁ | x) = σ(z_cut) · 1{x_cut ≥ τ}

Where it holds, both patterns happen everywhere, each causal family is in one of them, and the
law of x is identified; where it is violated, the families in o₁ alone are unseen below τ.
Roots are lost too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from misscnf import CausalGraph, InputError
from misscnf_study.losses.loss import Flags, Floats, Missingness
from misscnf_study.losses.patterns import PatternLoss

__all__ = ["TwoPatterns"]

PAPER: dict[tuple[tuple[int, ...], ...], tuple[tuple[int, ...], tuple[int, ...]]] = {
    ((), (0,), (1,)): ((0, 1), (1, 2)),  # the chain
    ((), (), (0, 1), (2,)): ((0, 1, 2), (2, 3)),  # the fork
}
"""The paper's o₁ and o₂, by the parents of each node."""


@final
@dataclass(frozen=True)
class TwoPatterns(Missingness):
    """Shows one of two sets of nodes, by the value of a node in both."""

    regime: Literal["holds", "violated"] = "holds"
    """Whether both patterns happen everywhere, or the first only above the median of the cut."""
    first: Sequence[str] | None = None
    """The nodes of o₁; the paper's if None, on its chain and its fork."""
    second: Sequence[str] | None = None
    """The nodes of o₂; likewise."""
    cut: str | None = None
    """The node that decides; the one in both patterns if None."""

    def __post_init__(self) -> None:
        if self.regime not in ("holds", "violated"):
            raise InputError(f"the regime is 'holds' or 'violated'; got {self.regime!r}.")
        if (self.first is None) != (self.second is None):
            raise InputError("give both patterns, first and second, or neither.")

    def reads(self, graph: CausalGraph) -> tuple[int, ...]:
        """Returns the cut alone."""
        return (self._cut(graph),)

    def calibrate(
        self, values: Floats, graph: CausalGraph, generator: np.random.Generator
    ) -> PatternLoss:
        """Measures mean, deviation and median of the cut."""
        first, second = self._patterns(graph)
        cut = self._cut(graph)
        x = values[:, cut]
        return PatternLoss(
            first=_shows(first, graph),
            second=_shows(second, graph),
            cut=cut,
            centre=float(x.mean()),
            spread=float(x.std()) or 1.0,
            threshold=float(np.median(x)) if self.regime == "violated" else -np.inf,
        )

    def _patterns(self, graph: CausalGraph) -> tuple[tuple[int, ...], tuple[int, ...]]:
        if self.first is not None and self.second is not None:
            first, second = (
                tuple(graph.index(name) for name in names) for names in (self.first, self.second)
            )
            return first, second
        if graph.parents in PAPER:
            return PAPER[graph.parents]
        raise InputError(
            f"the paper gives two patterns for its chain and its fork, not for {graph}; give the "
            "nodes of each, as first=[...] and second=[...]."
        )

    def _cut(self, graph: CausalGraph) -> int:
        first, second = self._patterns(graph)
        shared = sorted(set(first) & set(second))
        names = [graph.nodes[i] for i in shared]
        if self.cut is not None:
            if graph.index(self.cut) not in shared:
                raise InputError(
                    f"the cut {self.cut!r} must be in both patterns, or it is hidden where it "
                    f"decides; they share {names}."
                )
            return graph.index(self.cut)
        if len(shared) != 1:
            raise InputError(f"the patterns share {names}; say which node decides, as cut=...")
        return shared[0]


def _shows(nodes: Sequence[int], graph: CausalGraph) -> Flags:
    return np.isin(np.arange(len(graph)), nodes)
