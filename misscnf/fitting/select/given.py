"""What a choice of forms is given: a structure, rows, settings, a seed, and who looks on."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Generator

from misscnf.data.rows import RowSource, SelectedRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Selection, Settings
from misscnf.fitting.timings import Timings
from misscnf.fitting.train.ensemble import EpochWatcher
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

    @property
    def selection(self) -> Selection:
        """The settings of choices."""
        return self.settings.selection

    def wide(self, features: int) -> bool:
        """Whether a family has more features than a smooth curve may have."""
        return features > self.settings.curves.most_features

    def generator(self, purpose: str, *numbers: int) -> Generator:
        """Returns where the randomness of a purpose comes from."""
        return derive_generator(self.seed, purpose, *numbers)

    def complete(self, model: StructuralModel, purpose: str) -> Completions:
        """Returns completions of the rows by a model."""
        count, effort = self.selection.completions, self.settings.integration.completions
        return Completions.draw(model, self.rows, count, self.generator(purpose), effort)


def some_rows(rows: RowSource, settings: Selection, seed: int) -> RowSource:
    """Returns as many rows as are worth their time, by chance."""
    most = min(settings.most_rows, settings.most_cells // (rows.columns * settings.completions))
    if len(rows) <= most:
        return rows
    some = torch.randperm(len(rows), generator=derive_generator(seed, "judges"))[:most]
    return SelectedRows(rows, some)
