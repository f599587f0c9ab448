r"""Score tests: could a richer law say more of what the rows show? Nothing is fitted.

The slope of the log-likelihood of row i as a law is tilted some way is, by Fisher's identity, the
expectation of that way's complete-data score given what the row shows: an average over completions
by the fit. If the fit is right, it has mean zero (Rao 1948). What the fit could have moved by
itself, the nuisance, is regressed out of it (Neyman's C(α)): of its own block, and, row by row, of
the Markov blanket of that, with which it shares most of what is hidden. With r_i what is left of
row i,

    (Σ r)ᵀ (Σ r rᵀ)⁻¹ (Σ r)   is χ² under the fit.

Nuisance that is not regressed out makes the test a little cautious, no more.

How much of the own block to take is told by values that the fit expects, not by those of the rows:
scores of levels are near zero but for the few that surprise, a regression on the same rows follows
these, and what it leaves looks too small (of right logistic fits to 500 rows, two of three had a
p-value below 0.01). Levels are few, so that all of them are taken, with their probabilities; other
values are drawn.

The law of levels is all told by their logits. So is Σ r rᵀ: where a row shows a family whole, what
the fit expects of it stands for the square of what came, which is again too small where few rows
surprise (of right logistic fits to 500 rows, 14 % had a p-value below 0.05 by their squares, and
5 % have it so).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.special import chdtrc
from torch import Generator, Tensor

from misscnf.draws import derive_generator
from misscnf.fitting.completions import Cells, Completions, Families
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel

__all__ = ["Left", "ScoreTests", "blankets", "combined_p_value", "p_value", "residual_of"]

ROUNDING = 1e-12
"""Of a score's square: what is left of a wave of two values, which is a line."""

DRAWN = 4000
"""Cells, at least, of which values are drawn: more hardly change the regression on them."""

CellScores = Callable[[Mechanism, Cells], Tensor]
"""Scores at each cell of a node, (cells, q)."""


@dataclass(frozen=True)
class Left:
    """What is left of the scores of rows, once what the fit could have moved is taken out."""

    rows: Tensor
    """(N, q)"""
    spread: Tensor
    """(q, q) Σ r rᵀ, as the fit expects it where its law is all told, else as it came"""

    @staticmethod
    def of(rows: Tensor) -> Left:
        """Returns what is left, with the spread that it has."""
        return Left(rows, rows.T @ rows)

    def split(self, sizes: Sequence[int]) -> list[Left]:
        """Returns groups of so many scores each."""
        ends = np.cumsum([0, *sizes])
        groups = [slice(*pair) for pair in itertools.pairwise(ends)]
        return [Left(self.rows[:, mine], self.spread[mine, mine]) for mine in groups]


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
        self._cell_nuisance = nuisance
        self.nuisance: Mapping[int, Tensor] = {b: self._of_rows(b, nuisance) for b in blocks}
        self._blankets = blankets(model)

    def outputs(self, block: int) -> int:
        """Returns how many numbers a line of the parents sets, such as one for each logit."""
        cells = self.families.nodes[self.model.blocks[block][0]]
        few = replace(cells, own=cells.own[:1], parents=cells.parents[:1])
        return self.model.block(block).line_scores(few.own, few.parents).shape[1]

    def left(self, block: int, tested: CellScores) -> Left:
        """Returns scores of a block's rows less what the fit could have moved."""
        known, expected, seen = self._expected(block, tested)
        taken = torch.linalg.lstsq(known, expected, driver="gelsd").solution
        asked = self._of_rows(block, tested)
        left = asked - self.nuisance[block] @ taken
        left = left * (left.square().sum(0) > ROUNDING * asked.square().sum(0))
        around = [b for b in sorted(self._blankets[block] - {block}) if b in self.nuisance]
        if around:
            left = residual_of(left, torch.cat([self.nuisance[b] for b in around], 1))
        if not self._all_levels(block):
            return Left.of(left)
        whole = (expected[seen] - known[seen] @ taken) * left.any(0)
        others = torch.ones(self.rows, dtype=torch.bool)
        for node in self.model.blocks[block]:
            others[self.families.nodes[node].free] = False
        return Left(left, whole.T @ whole + left[others].T @ left[others])

    def _expected(self, block: int, tested: CellScores) -> tuple[Tensor, Tensor, Tensor]:
        """Returns nuisance and tested scores at values that the fit expects, times √ of weights.

        They are of all levels, or of values that are drawn; and which of them are of families that
        rows show whole.
        """
        mechanism, nodes = self.model.block(block), self.model.blocks[block]
        cells = [self.families.nodes[node] for node in nodes]
        generator, known, asked, whole = derive_generator(0, "score draws", block), [], [], []
        draws = max(1, math.ceil(DRAWN / max(1, sum(len(each.own) for each in cells))))
        draws = 0 if self._all_levels(block) else draws
        for each in cells:
            for values, weight in _values(mechanism, each, draws, generator):
                drawn, root = replace(each, own=values), (weight * each.shares()).sqrt()[:, None]
                known.append(root * self._cell_nuisance(mechanism, drawn))
                asked.append(root * tested(mechanism, drawn))
                whole.append(torch.arange(len(values)) < len(each.free))
        return torch.cat(known), torch.cat(asked), torch.cat(whole)

    def _all_levels(self, block: int) -> bool:
        """Says whether a block has levels, and its cells are few enough to take them all.

        Of more, draws and squares say the same, and memory is short.
        """
        states = self.model.block(block).domain.states
        cells = sum(len(self.families.nodes[node].own) for node in self.model.blocks[block])
        return states is not None and states * cells <= 50 * DRAWN

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


def _values(
    mechanism: Mechanism, cells: Cells, draws: int, generator: Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yields values of a node at the parents of its cells, with weights: draws, or all levels."""
    if not draws:
        for level in range(mechanism.domain.states or 0):
            values = torch.full_like(cells.own, float(level))
            yield values, mechanism.log_prob(values, cells.parents).exp()
    for _ in range(draws):
        shape = (*cells.own.shape, *[mechanism.noise_size][: mechanism.noise_size > 1])
        u = torch.randn(shape, generator=generator, dtype=cells.own.dtype)
        yield mechanism.generate(u, cells.parents), torch.ones_like(cells.own)


def p_value(left: Left) -> float:
    """Returns the p-value of what is left of scores; 1 where nothing is."""
    total, spread = left.rows.sum(0), left.spread
    rank = int(torch.linalg.matrix_rank(spread, hermitian=True))
    statistic = total @ torch.linalg.pinv(spread, hermitian=True) @ total
    return float(chdtrc(rank, float(statistic))) if rank else 1.0


def combined_p_value(left: Sequence[Left]) -> float:
    """Returns one p-value for groups of scores that may depend on each other (Liu and Xie 2020).

    Their p-values are averaged as Cauchy variables: a small one among large ones is not drowned.
    """
    said = [p_value(group) for group in left if bool(group.rows.any())]
    if not said:
        return 1.0
    each = np.clip(said, 1e-300, 0.99)
    # 1 / π p where the tangent has no digits left: so the smallest are still told apart
    cauchy = np.where(each < 1e-8, 1.0 / (np.pi * each), np.tan(np.pi * (0.5 - each))).mean()
    return float(1.0 / (np.pi * cauchy) if cauchy > 1e8 else 0.5 - np.arctan(cauchy) / np.pi)
