"""What a choice of forms is given: a structure, rows, settings, a seed, and who looks on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Generator, Tensor

from misscnf.data.rows import RowSource, SelectedRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Selection, Settings
from misscnf.fitting.timings import Timings
from misscnf.fitting.train.ensemble import EpochWatcher
from misscnf.inference.chains import Chains
from misscnf.model import StructuralModel, Structure

__all__ = ["Given", "some_rows"]


@dataclass(frozen=True)
class Given:
    """What every choice is given."""

    structure: Structure
    rows: RowSource
    """as many as a choice is worth (`some_rows`)"""
    settings: Settings
    seed: int
    watch: EpochWatcher | None = None
    timings: Timings = field(default_factory=Timings)
    """where the time goes; written to"""
    modes: Tensor | None = None
    """(N, S, d) where the modes of what the rows hide are remembered"""
    chains: Chains | None = None
    """of the rows, where they hide much together"""
    drawn: list[tuple[RowSource, Tensor, Completions]] = field(default_factory=list)
    """the last rows that were completed, the parameters of the model and what it made of them"""

    @property
    def selection(self) -> Selection:
        """The settings of choices."""
        return self.settings.selection

    def wide(self, block: int) -> bool:
        """Whether a block has more features than a smooth curve may have."""
        return self._features(block) > self.settings.curves.most_features

    def may_train(self, block: int) -> bool:
        """Whether a block may have networks and splines, which are trained, not solved for."""
        crowded = len(self.rows) < self.selection.rows_a_feature * self._features(block)
        solved = self.member(block) or (crowded and self.wide(block))
        return self.structure.may_grow(block) and not solved

    def member(self, block: int) -> bool:
        """Whether a block of parameters is that of members of a block of columns.

        No cause is claimed among these, so that their laws are kept simple.
        """
        graph, nodes = self.structure.graph, self.structure.blocks[block]
        among = any(graph.block_of(graph.nodes[node]) for node in nodes)
        return among and not self.selection.whole_members

    def _features(self, block: int) -> int:
        return sum(domain.features for domain in self.structure.parents_of(block))

    def generator(self, purpose: str, *numbers: int) -> Generator:
        """Returns where the randomness of a purpose comes from."""
        return derive_generator(self.seed, purpose, *numbers)

    def fewer(self, most: int) -> Given:
        """Returns the same with at most so many rows, by chance."""
        rows = some_rows(self.rows, replace(self.selection, most_rows=most), self.seed)
        if rows is self.rows:
            return self
        return replace(self, rows=rows, modes=None, chains=None)

    def complete(self, model: StructuralModel, purpose: str) -> Completions:
        """Returns completions of the rows by a model; those of before if it is where it was."""
        state = torch.cat([part.flatten().double() for part in model.state_dict().values()])
        for rows, then, completions in self.drawn:
            if rows is self.rows and torch.equal(then, state):
                return completions
        count, effort = self.selection.completions, self.settings.integration.completions
        about = (count, self.generator(purpose), effort, self.modes, self.chains)
        found = Completions.draw(model, self.rows, *about)
        self.drawn[:] = [(self.rows, state, found)]
        return found


def some_rows(rows: RowSource, settings: Selection, seed: int) -> RowSource:
    """Returns as many rows as are worth their time, by chance."""
    most = min(settings.most_rows, settings.most_cells // (rows.columns * settings.completions))
    if len(rows) <= most:
        return rows
    some = torch.randperm(len(rows), generator=derive_generator(seed, "judges"))[:most]
    return SelectedRows(rows, some)
