r"""Score tests: could a richer law say more of what the rows show? Nothing is fitted.

The slope of the log-likelihood of row i as a law is tilted some way is, by Fisher's identity, the
expectation of that way's complete-data score given what the row shows: an average over completions
by the fit. If the fit is right, it has mean zero (Rao 1948). What the fit could have moved by
itself, the nuisance, is regressed out of it, row by row (Neyman's C(α)): of its own block, and of
the Markov blanket of that, with which it shares most of what is hidden. With r_i what is left of
row i,

    (Σ r)ᵀ (Σ r rᵀ)⁻¹ (Σ r)   is χ² under the fit.

Nuisance that is not regressed out makes the test a little cautious, no more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np
import torch
from scipy.stats import chi2
from torch import Tensor

from misscnf.fitting.completions import Cells, Completions, Families
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel

__all__ = ["ScoreTests", "blankets", "combined_p_value", "p_value", "residual_of"]

ROUNDING = 1e-12
"""Of a score's square: what is left of a wave of two values, which is a line."""

CellScores = Callable[[Mechanism, Cells], Tensor]
"""Scores at each cell of a node, (cells, q)."""


class ScoreTests:
    """Scores of rows at a fit.

    Arguments:
        model: The fit.
        completions: Completions of the rows by it.
        blocks: The blocks that have a nuisance.
        nuisance: What the fit could have moved by itself, at each cell.
    """

    def __init__(
        self,
        model: StructuralModel,
        completions: Completions,
        blocks: Collection[int],
        nuisance: CellScores,
    ) -> None:
        self.model, self.rows = model, len(completions)
        self.families: Families = completions.families(torch.arange(self.rows))
        self.nuisance: Mapping[int, Tensor] = {b: self._of_rows(b, nuisance) for b in blocks}
        self._blankets = blankets(model)

    def left(self, block: int, tested: CellScores) -> Tensor:
        """Returns scores of a block's rows less what the fit could have moved, (N, q)."""
        around = [b for b in sorted(self._blankets[block]) if b in self.nuisance]
        return residual_of(
            self._of_rows(block, tested), torch.cat([self.nuisance[b] for b in around], 1)
        )

    def _of_rows(self, block: int, scores: CellScores) -> Tensor:
        """Returns what each row expects of functions of a block's cells, (N, q)."""
        mechanism, total = self.model.block(block), None
        for node in self.model.blocks[block]:
            cells = self.families.nodes[node]
            found = scores(mechanism, cells)
            rows = self.families.component_row[cells.component]
            total = found.new_zeros(self.rows, found.shape[1]) if total is None else total
            total.index_add_(0, cells.free, found[: len(cells.free)])
            total.index_add_(0, rows, found[cells.place].mean(0))
        assert total is not None
        return total


def blankets(model: StructuralModel) -> list[set[int]]:
    """Returns each block with the blocks of its parents, its children and their parents."""
    found: list[set[int]] = [{block} for block in range(len(model.blocks))]
    for node, parents in enumerate(model.graph.parents):
        family = {model.block_of[i] for i in (node, *parents)}
        for block in family:
            found[block] |= family
    return found


def residual_of(asked: Tensor, known: Tensor) -> Tensor:
    """Returns scores less their regression on others, (N, q); zero where that is rounding only."""
    left: Tensor = asked - known @ torch.linalg.lstsq(known, asked, driver="gelsd").solution
    return left * (left.square().sum(0) > ROUNDING * asked.square().sum(0))


def p_value(left: Tensor) -> float:
    """Returns the p-value of what is left of scores (N, q); 1 where nothing is."""
    total, spread = left.sum(0), left.T @ left
    rank = int(torch.linalg.matrix_rank(spread, hermitian=True))
    statistic = total @ torch.linalg.pinv(spread, hermitian=True) @ total
    return float(chi2.sf(float(statistic), rank)) if rank else 1.0


def combined_p_value(left: Sequence[Tensor]) -> float:
    """Returns one p-value for groups of scores that may depend on each other (Liu and Xie 2020).

    Their p-values are averaged as Cauchy variables: a small one among large ones is not drowned.
    """
    said = [p_value(group) for group in left if bool(group.any())]
    if not said:
        return 1.0
    each = np.clip(said, 1e-15, 0.99)
    return float(0.5 - np.arctan(np.tan(np.pi * (0.5 - each)).mean()) / np.pi)
