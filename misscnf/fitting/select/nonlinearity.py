r"""Is a mean, or are logits, more than a line? A score test that says who is worth a comparison.

With η = b + W z what a line makes of the features z of the parents, and s = ∂ log φ / ∂η, the
slope of the log-likelihood as η moves towards η + ε h(z) is s h(z) (`scores`). The h are waves of
each feature, products of two, and a few waves of all features at once,

    sin ω z_j, cos ω z_j,      z_j z_k,      cos(v · z + c),

each kind a group with a p-value of its own, so that one bent parent among many straight ones is
seen. What the line could have moved by itself, s and s z, is regressed out of them.

The same is asked of a curve: what is left of the rows that show its family, once its basis
functions are regressed out too, is what a network could still say.
"""

from __future__ import annotations

import math
from collections.abc import Collection

import torch
from torch import Generator, Tensor

from misscnf.fitting.completions import Cells, Completions
from misscnf.fitting.select.scores import Left, ScoreTests, combined_p_value, residual_of
from misscnf.fitting.settings import Selection
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel

__all__ = ["left_p_value", "nonlinearity_p_values", "straight", "times"]


@torch.no_grad()
def nonlinearity_p_values(
    line: StructuralModel,
    completions: Completions,
    blocks: Collection[int],
    settings: Selection,
    seed: int,
) -> dict[int, float]:
    """Returns how likely rows so bent are if the line of a block is right.

    Arguments:
        line: The linear fit.
        completions: Completions of the rows by it.
        blocks: The blocks that are asked, all with parents.
        settings: Which waves and products.
        seed: Where those of all features come from.
    """
    tests = ScoreTests(line, completions, blocks, straight)
    found = {}
    for block in blocks:
        sizes: list[int] = []

        def bent(mechanism: Mechanism, cells: Cells, sizes: list[int] = sizes) -> Tensor:
            generator = torch.Generator().manual_seed(seed)
            groups = _directions(mechanism.features(cells.parents), settings, generator)
            scores = mechanism.line_scores(cells.own, cells.parents)
            sizes[:] = [group.shape[1] * scores.shape[1] for group in groups]
            return torch.cat([times(scores, group) for group in groups], 1)

        left = tests.left(block, bent)
        found[block] = combined_p_value(left.split(sizes))
    return found


@torch.no_grad()
def left_p_value(
    mechanism: Mechanism, x: Tensor, y: Tensor, settings: Selection, seed: int
) -> float:
    """Returns how likely rows so bent are if a curve, fitted to them, is right.

    Arguments:
        mechanism: The curve.
        x: Parents (n, p).
        y: (n,)
        settings: Which waves and products.
        seed: Where those of all features come from.
    """
    mean, scores = mechanism.linear_mean(), mechanism.line_scores(y, x)
    assert mean is not None
    generator = torch.Generator().manual_seed(seed)
    groups = _directions(mechanism.features(x), settings, generator)
    left = residual_of(times(scores, torch.cat(groups, 1)), times(scores, mean.columns(x)))
    return combined_p_value(Left.of(left).split([group.shape[1] for group in groups]))


def straight(mechanism: Mechanism, cells: Cells) -> Tensor:
    """Returns the scores of what is there already, s and s z, and of basis functions."""
    scores = mechanism.line_scores(cells.own, cells.parents)
    return torch.cat([scores, times(scores, mechanism.basis(cells.parents))], 1)


def times(scores: Tensor, functions: Tensor) -> Tensor:
    """Returns all products of scores (n, k) and functions (n, q), (n, k q)."""
    return (scores[:, :, None] * functions[:, None, :]).flatten(1)


def _directions(features: Tensor, settings: Selection, generator: Generator) -> list[Tensor]:
    """Returns the functions of features (n, f) that are tested, in groups."""
    (n, f), farthest = features.shape, settings.farthest
    z = features - features.sum(0) / max(n, 1)
    z = (z / (z.square().sum(0) / max(n, 1)).sqrt().clamp(min=1e-9)).clamp(-farthest, farthest)
    frequencies = torch.tensor(settings.frequencies[: None if f <= settings.few_parents else 1])
    phases = z[:, :, None] * frequencies.to(z)
    groups = list(torch.cat([torch.sin(phases), torch.cos(phases)], 2).unbind(1))
    if f == 1:
        return groups
    if f <= settings.few_parents:
        i, j = torch.triu_indices(f, f, offset=1)
        groups.append(z[:, i] * z[:, j])
    towards = torch.randn(f, settings.joint_waves, generator=generator).to(z)
    shift = 2.0 * math.pi * torch.rand(settings.joint_waves, generator=generator).to(z)
    return [*groups, torch.cos(z @ towards + shift)]
