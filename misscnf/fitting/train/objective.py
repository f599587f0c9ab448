r"""The gradient of the observed-data likelihood.

Fisher's identity: the score of what is seen is the complete-data score, averaged over the
posterior of what is hidden,

    ∇ log p(x_O) = E[ Σ_i ∇ log φ_i | x_O ].

So the hidden nodes are drawn without gradient, a few completions of each row are resampled by
their weights, and only complete-data factors are differentiated. No gradient flows through
samples, and a step costs little more than one on complete rows. The loss is a sum over nodes:
each node's part is back-propagated by itself, so that memory stays flat in the number of nodes.

The paper differentiates log p̂ itself, through the draws: `pathwise_gradient`.

A fit begins with the factors that have no integral, Σ log φ_i over the families that a row shows
whole (`complete_family_gradient`): steps that cost no draw, from which networks learn their rough
form. What they find is where the likelihood starts, not an estimate: which families are seen may
depend on their values.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import torch
from torch import Tensor

from misscnf.inference.elimination import Components, Plan
from misscnf.inference.integrals import Effort, integrate
from misscnf.inference.likelihood import free_log_prob
from misscnf.model import StructuralModel

__all__ = ["StepReport", "fisher_gradient", "pathwise_gradient", "complete_family_gradient"]


@dataclass(frozen=True)
class StepReport:
    """What a step learned on its way."""

    log_prob: float | None
    """Mean log-density of what the rows show, where the step computed it."""
    below_target: float
    """Share of the components with fewer effective draws than asked for."""


def fisher_gradient(
    model: StructuralModel,
    values: Tensor,
    plan: Plan,
    effort: Effort,
    completions: int,
    generator: torch.Generator,
    last: Tensor | None = None,
) -> StepReport:
    """Adds the gradient of −mean log p(x_O) to the parameters.

    Arguments:
        model: The structural model.
        values: (N, d) rows of the mini-batch, with finite numbers in the holes.
        plan: Their plan.
        effort: How hard to work on what is hidden.
        completions: Posterior draws of each row that are differentiated.
        generator: Where randomness comes from.
        last: (N, d) where the rows were last completed, nan where not yet; written to. Draws go
            on from there, so that few of them are no source of bias over many steps.
    """
    components = plan.components()
    with torch.no_grad():
        completed, log_integral, below_target = _complete(
            model, values, components, effort, completions, generator, last
        )
    total = log_integral
    drawn_nodes = torch.cat([components.cell_node, components.evidence_node])
    drawn_rows = torch.cat([components.cell_row, components.evidence_row])
    order = torch.argsort(drawn_nodes, stable=True)
    free_by_node = _by_node(*plan.free_factors(), len(model.graph))
    drawn_by_node = _by_node(drawn_nodes[order], drawn_rows[order], len(model.graph))
    for node, (free, drawn) in enumerate(zip(free_by_node, drawn_by_node, strict=True)):
        if not len(free) and not len(drawn):
            continue
        own, parents = model.family_of(values, node, free)
        drawn_own, drawn_parents = model.family_of(completed, node, drawn)
        factor = model.mechanism(node).log_prob(
            torch.cat([own, drawn_own.flatten()]),
            torch.cat([parents, drawn_parents.flatten(0, 1)]),
        )
        free_sum = factor[: len(free)].sum()
        total += float(free_sum.detach())
        loss = -(free_sum + factor[len(free) :].sum() / completions) / len(values)
        if loss.requires_grad:
            loss.backward()
    return StepReport(total / len(values), below_target)


def complete_family_gradient(
    model: StructuralModel, values: Tensor, plan: Plan, nodes: Collection[int]
) -> StepReport:
    """Adds the gradient of −Σ log φ_i / N over the families of some nodes that rows show whole."""
    for node, rows in enumerate(_by_node(*plan.free_factors(), len(model.graph))):
        if node in nodes and len(rows):
            factor = model.mechanism(node).log_prob(*model.family_of(values, node, rows))
            loss = -factor.sum() / len(values)
            if loss.requires_grad:
                loss.backward()
    return StepReport(None, 0.0)


def _complete(
    model: StructuralModel,
    values: Tensor,
    components: Components,
    effort: Effort,
    completions: int,
    generator: torch.Generator,
    last: Tensor | None = None,
) -> tuple[Tensor, float, float]:
    """Returns completed rows (S, N, d), Σ log-integrals, and the share that fell short."""
    if not len(components):
        return values.expand(completions, *values.shape), 0.0, 0.0
    # Column by column in memory, as nodes read them.
    completed = values.T.repeat(completions, 1, 1).transpose(1, 2)
    total, below_target = 0.0, 0
    for integral in integrate(model, values, components, effort, generator, last):
        c = integral.components
        drawn = integral.draw(completions, generator, even=True)
        completed[:, c.cell_row, c.cell_node] = drawn.T.to(values)
        total += float(integral.log_integral().sum())
        below_target += integral.below_target
    if last is not None:
        # Spread evenly, completions are in order: only one by chance has the law of a draw.
        one = int(torch.randint(completions, (), generator=generator, device=generator.device))
        where = components.cell_row, components.cell_node
        last[where] = completed[one][where]
    return completed, total, below_target / len(components)


def _by_node(nodes: Tensor, rows: Tensor, count: int) -> tuple[Tensor, ...]:
    """Splits rows that are sorted by node into one piece a node."""
    return rows.split(torch.bincount(nodes, minlength=count).tolist())


def pathwise_gradient(
    model: StructuralModel,
    values: Tensor,
    plan: Plan,
    effort: Effort,
    generator: torch.Generator,
) -> StepReport:
    """Adds the gradient of −mean log p̂(x_O), through the draws, as the paper does."""
    log_prob = free_log_prob(model, values, plan).sum()
    for integral in integrate(model, values, plan.components(), effort, generator):
        log_prob = log_prob + integral.log_integral().sum()
    mean = log_prob / len(values)
    if mean.requires_grad:
        (-mean).backward()
    return StepReport(float(mean.detach()), 0.0)
