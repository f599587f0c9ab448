r"""Draws from the prior: the paper's estimator, and the pilot draws of importance sampling.

    p̂(x_O) = (1/K) Σ_k Π_{i ∈ O} φ_i(u^(k)),   u^(k) ~ N(0, I)          (Algorithm 1)

with independent points as printed, or quasi-random ones (randomly shifted Sobol points).
"""

from __future__ import annotations

from torch import Tensor

from misscnf.draws import normal_numbers, normal_scores, shifted_points, uniform_numbers
from misscnf.inference.elimination import Components
from misscnf.inference.integrals.integral import WeightedDraws
from misscnf.inference.integrals.problem import Problem

__all__ = ["prior_draws", "random_scores"]


def random_scores(components: Components, problem: Problem) -> Tensor:
    """Returns standard normal points for each component, (C, K, m).

    m is the size of the largest component; each component uses the first numbers of its points,
    one for each of its cells. Every randomisation of every component has shifts of its own.
    """
    effort, generator, like = problem.effort, problem.generator, problem.values
    count, m = len(components), int(components.size.max())
    if effort.independent:
        return normal_numbers((count, effort.randomisations * effort.draws, m), generator, like)
    shifts = uniform_numbers((count, effort.randomisations, m), generator, like)
    return normal_scores(shifted_points(effort.draws, shifts).flatten(1, 2))


def prior_draws(problem: Problem, components: Components) -> WeightedDraws:
    """Weighs draws from the prior by the evidence."""
    sweep, scores = problem.sweep(components), random_scores(components, problem)
    hidden, log_evidence = sweep(scores[components.cell_component, :, sweep.slot])
    return WeightedDraws(components, hidden, log_evidence, problem.effort.randomisations)
