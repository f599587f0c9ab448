r"""Draws from the prior: the paper's estimator, and the pilot draws of importance sampling.

    p̂(x_O) = (1/K) Σ_k Π_{i ∈ O} φ_i(u^(k)),   u^(k) ~ N(0, I)          (Algorithm 1)

with independent points as printed, or quasi-random ones (randomly shifted Sobol points).
"""

from __future__ import annotations

from torch import Generator, Tensor

from misscnf.draws import normal_numbers, normal_scores, shifted_points, uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.effort import Effort
from misscnf.inference.integrals.integral import WeightedDraws
from misscnf.inference.integrals.sweep import Sweep
from misscnf.model import StructuralModel

__all__ = ["prior_draws", "random_scores"]


def random_scores(
    components: Components, effort: Effort, generator: Generator, like: Tensor
) -> Tensor:
    """Returns standard normal points for each component, (C, K, m).

    m is the size of the largest component; each component uses the first numbers of its points,
    one for each of its cells. Every randomisation of every component has shifts of its own.
    """
    count, m = len(components), int(components.size.max())
    if effort.independent:
        return normal_numbers((count, effort.randomisations * effort.draws, m), generator, like)
    shifts = uniform_numbers((count, effort.randomisations, m), generator, like)
    return normal_scores(shifted_points(effort.draws, shifts).flatten(1, 2))


def prior_draws(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    generator: Generator,
) -> WeightedDraws:
    """Weighs draws from the prior by the evidence."""
    scores = random_scores(components, effort, generator, values)
    noise = scores[components.cell_component, :, components.slots()]
    hidden, log_evidence = Sweep(model, values, components)(noise)
    return WeightedDraws(components, hidden, log_evidence, effort.randomisations)
