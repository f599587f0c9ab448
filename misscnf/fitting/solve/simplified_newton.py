r"""Lines at the maximum of the likelihood of completions, one for each set of weights of the rows.

One Newton step (`sandwich`) is the maximum to first order. Where lines are rivals of networks that
are trained to the end, first order is not fair to them: on linear tables of 20,000 rows with 90 %
lost, networks beat one-step lines by three standard errors. Here the steps go on, all sets of
weights at once, with the information at the fit as it is (a simplified Newton iteration),

    θ_b ← θ_b + t_b A⁻¹ ∇ Σ_i w_i^b log p(x_O; θ_b),

where t_b is one, shrinks after a step that loses and is taken back, and grows again after one
that gains.
"""

from __future__ import annotations

import torch
from torch import Tensor

from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.sandwich import measure_information, moved
from misscnf.fitting.stacked import Ensemble
from misscnf.model import StructuralModel

__all__ = ["maximise_lines"]


def maximise_lines(
    line: StructuralModel,
    completions: Completions,
    weights: Tensor,
    settings: Settings | None = None,
) -> list[StructuralModel]:
    """Returns a line for each set of weights of the rows.

    Arguments:
        line: The linear fit to all rows, in double precision.
        completions: Completions of the rows by it.
        weights: (B, N) with mean one.
        settings: Numbers of the iteration.
    """
    settings = settings or Settings()
    information = measure_information(line, completions, settings.replicates)
    lines = [line] * len(weights)
    value, gradient = _value_and_gradient(lines, completions, weights)
    share = value.new_ones(len(lines), 1)
    for _ in range(settings.solving.newton_steps):
        moves = share * information.newton_moves(gradient)
        tried = [moved(of, move) for of, move in zip(lines, moves, strict=True)]
        found, slope = _value_and_gradient(tried, completions, weights)
        better = found > value
        gain = torch.where(better, found - value, 0.0)
        pairs = zip(lines, tried, better.tolist(), strict=True)
        lines = [new if is_better else old for old, new, is_better in pairs]
        value, gradient = value + gain, torch.where(better[:, None], slope, gradient)
        share = (share * torch.where(better[:, None], 2.0, 0.25)).clamp(max=1.0)
        if better.all() and float(gain.max()) < settings.solving.newton_tolerance:
            break
    return lines


def _value_and_gradient(
    models: list[StructuralModel], completions: Completions, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the weighted log-likelihoods of all rows, (B,), and their gradients, (B, p)."""
    ensemble = Ensemble(models)
    log_factor = ensemble.log_factor(ensemble.parameters)
    value = weights.new_zeros(len(models))
    for rows in torch.arange(len(completions)).split(4096):
        part = (weights[:, rows] * completions.log_prob(rows, log_factor)).sum(1)
        part.sum().backward()
        value += part.detach()
    for prior in ensemble.priors():
        part = prior.log_probs(ensemble.parameters)
        part.sum().backward()
        value += part.detach()
    gradients = [
        (torch.zeros_like(tensor) if tensor.grad is None else tensor.grad).reshape(len(models), -1)
        for block in ensemble.parameters
        for tensor in block.values()
    ]
    return value, torch.cat(gradients, 1)
