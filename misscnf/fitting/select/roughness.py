r"""Does what a fit leaves still wave? A test of each mechanism against fast waves and jumps.

Lines and curves are smooth, and a truth such as sin(12 x) looks like noise to all of them: the
effect of x is then zero, with a short interval. The score test of `nonlinearity` goes on where
forms end. For each feature z of the parents, with s = ∂ log φ / ∂η at the fit,

    Σ_rows E[ s sin(ω z) | x_O ],  Σ_rows E[ s cos(ω z) | x_O ],     ω above those of forms,

are zero if the mechanism follows its parents, whatever was lost at random (`scores`). A jump has
waves of every frequency. Bands of frequencies are groups with a p-value each.

The spread of scores is that of the rows (`scores`), which makes the test a little bold where they
are few and skewed: of binary nodes with 300 rows, 2.8 % have p below 0.01. So a band needs rows
that say something of it, for each of its directions, and the level is low (benchmarks/waves.py).

Of a family with a hidden cause no row is whole. A node there that may not bend (`hidden_parents`:
levels, counts and hidden causes keep their lines) is asked whether it wants more than its line at
all, by the waves and products of `nonlinearity`: nobody could listen to it, so it has to be said.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from typing import NamedTuple

import torch
from torch import Tensor

from misscnf.fitting.completions import Cells
from misscnf.fitting.select.given import Given
from misscnf.fitting.select.nonlinearity import nonlinearity_p_values, straight, times
from misscnf.fitting.select.scores import ScoreTests, combined_p_value, p_value
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel
from misscnf.threads import side_by_side

__all__ = ["Rough", "rough_blocks"]


class Rough(NamedTuple):
    """What one block leaves of the rows."""

    p_value: float
    """how likely so many fast waves are if the mechanism is right"""
    parent: int | None
    """the place of the parent along which there are most; None where a line beside a hidden cause
    was asked about all of them"""


@torch.no_grad()
def rough_blocks(model: StructuralModel, given: Given) -> Mapping[int, Rough]:
    """Returns how rough what a fit leaves is, for each block with parents of many values.

    Arguments:
        model: The fit.
        given: Structure, rows, settings and seed.
    """
    structure, settings = given.structure, given.selection
    blocks = [
        block
        for block in range(len(model.blocks))
        if not (given.wide(block) or given.member(block))
        and not structure.beside_hidden(block)  # whose completions follow the fit by themselves
        and any(domain.states is None for domain in structure.parents_of(block))
    ]
    found = _unbent(model, given)
    if not blocks:
        return found
    tests = ScoreTests(model, given.complete(model, "rough"), blocks, straight)

    def test(block: int) -> Rough | None:
        bands, parents, first = list[_Band](), list[int](), 0
        most = len(given.rows) / settings.rows_a_wave / (2.0 * tests.outputs(block))
        for parent, domain in enumerate(structure.parents_of(block)):
            for band in settings.rough_bands if domain.states is None else ():
                if len(band) <= most:  # more waves than the rows could tell apart fill memory
                    bands.append((first, band))
                    parents.append(parent)
            first += domain.features
        if not bands:
            return None
        # All bands at once: what is regressed out of them is the same.
        left = tests.left(block, _Waves(bands, settings.farthest))
        lengths = [len(frequencies) for _, frequencies in bands]
        each = left.rows.shape[1] // sum(lengths)
        groups = left.split([each * length for length in lengths])
        heard = [
            group.rows.shape[1] * settings.rows_a_wave <= int(group.rows.any(1).sum())
            for group in groups
        ]
        groups, parents = list(compress(groups, heard)), list(compress(parents, heard))
        if not groups:
            return None
        said = [p_value(group) for group in groups]
        lowest = min(range(len(said)), key=said.__getitem__)
        return Rough(combined_p_value(groups), parents[lowest])

    tested = zip(blocks, side_by_side(test, blocks), strict=True)
    return found | {block: rough for block, rough in tested if rough is not None}


def _unbent(model: StructuralModel, given: Given) -> dict[int, Rough]:
    """Returns how likely rows are under the lines that hidden causes leave no choice but a line.

    Where lines were asked for, nobody is asked.
    """
    structure, chosen = given.structure, given.settings.train
    blocks = [
        block
        for block in range(len(model.blocks))
        if chosen
        and structure.may_bend_beside_hidden(block)
        and structure.parents_of(block)
        and "curve" not in model.block(block).growths
        and any(domain.states is None for domain in structure.parents_of(block))
        and not given.wide(block)
    ]
    if not blocks:
        return {}
    about = (given.complete(model, "unbent"), blocks, given.selection, given.seed)
    said = nonlinearity_p_values(model, *about)
    return {block: Rough(p, None) for block, p in said.items()}


_Band = tuple[int, tuple[float, ...]]
"""A feature, and frequencies."""


class _Waves:
    """The scores of fast waves, band by band."""

    def __init__(self, bands: list[_Band], farthest: float) -> None:
        self.bands, self.farthest = bands, farthest

    def __call__(self, mechanism: Mechanism, cells: Cells) -> Tensor:
        """Returns s sin(ω z) and s cos(ω z), (cells, q)."""
        features = mechanism.features(cells.parents)
        scores, found = mechanism.line_scores(cells.own, cells.parents), []
        for feature, frequencies in self.bands:
            z = features[:, feature]
            z = (z - z.mean()) / z.std().clamp(min=1e-9)
            phase = z.clamp(-self.farthest, self.farthest)[:, None] * torch.tensor(frequencies).to(
                z
            )
            found.append(times(scores, torch.cat([torch.sin(phase), torch.cos(phase)], 1)))
        return torch.cat(found, 1)
