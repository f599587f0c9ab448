r"""Draws of what is hidden given what is observed.

Hidden ancestors of the observed nodes come from p(x_{M'} | x_O), by the weights of the same
integrals that give the likelihood; barren nodes are then simulated from their mechanisms, given
everything above them. From these come imputations, counterfactuals of incomplete rows (abduct the
noise of each completion, paper Corollary 2) and the gradient of the likelihood (`fitting`).
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from misscnf.draws import normal_numbers
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Efforts, integrate
from misscnf.model import StructuralModel
from misscnf.threads import row_parts, side_by_side, spawn

__all__ = ["draw_completions", "draw_hidden"]


def draw_hidden(
    model: StructuralModel,
    values: Tensor,
    plan: Plan,
    draws: int,
    effort: Effort,
    generator: Generator,
) -> Tensor:
    """Fills the hidden cells by independent posterior draws, (draws, N, d); barren ones stay."""
    completed = values.expand(draws, *values.shape).clone()
    for integral in integrate(model, values, plan.components(), effort, generator):
        c = integral.components
        completed[:, c.cell_row, c.cell_node] = integral.draw(draws, generator).T.to(values)
    return completed


@torch.no_grad()
def draw_completions(
    model: StructuralModel,
    values: Tensor,
    plan: Plan,
    draws: int,
    generator: Generator,
    effort: Effort = Efforts.imputation,
) -> Tensor:
    """Fills all unobserved cells of each row.

    Arguments:
        model: The structural model.
        values: (N, d) with finite numbers in the holes; clamped nodes hold their clamps.
        plan: The plan of these rows, made with the same clamped nodes if there are any.
        draws: Independent completions of each row.
        generator: Where randomness comes from.
        effort: How hard to work on what has no closed form; it gets more points where many
            completions are drawn from them.

    Returns:
        (draws, N, d); observed cells are as they were.
    """
    effort = effort.for_completions(draws)
    parts = [rows.to(values.device) for rows in row_parts(len(values), effort.rows_at_once)]

    def work(part: tuple[Tensor, Generator]) -> Tensor:
        rows, its_generator = part
        its = plan.select(rows)
        x = draw_hidden(model, values[rows], its, draws, effort, its_generator)
        barren = its.barren()
        if barren.any():
            noise = normal_numbers((*x.shape[:-1], model.noise_width), its_generator, values)
            nodes = barren.any(0).nonzero()[:, 0].tolist()
            x = model.complete(x, nodes, noise, where=barren.expand_as(x))
        return x

    generators = spawn(generator, len(parts))
    return torch.cat(side_by_side(work, list(zip(parts, generators, strict=True))), dim=1)
