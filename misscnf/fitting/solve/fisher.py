r"""The likelihood of what the rows show, with its gradient by Fisher's identity.

    ∇ Σ_rows log p(x_O) = Σ_rows E[ Σ_i ∇ log φ_i | x_O ]

It is exact wherever the integrals are: sums over discrete nodes, closed forms, quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Generator, Tensor, nn

from misscnf.data.rows import RowSource, SelectedRows
from misscnf.draws import derive_generator
from misscnf.fitting.settings import Settings
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Integral, integrate
from misscnf.inference.integrals.closed_form import linear_gaussian
from misscnf.inference.likelihood import free_log_prob, observed_log_prob
from misscnf.model import StructuralModel
from misscnf.threads import row_parts, side_by_side, spawn

__all__ = ["row_log_likelihood", "log_likelihoods", "likelihood_noise", "rows_by_chance"]


def row_log_likelihood(
    model: StructuralModel, rows: RowSource, plan: Plan, effort: Effort
) -> Tensor:
    """Returns the log-density of what each row shows, (N,).

    The gradient of their mean is added to the parameters. Every call uses the same random numbers,
    so that the function is one and the same.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    parts = row_parts(len(rows), effort.rows_at_once)

    def work(part: tuple[Tensor, Generator]) -> tuple[Tensor, list[Tensor]]:
        mine, generator = part
        x, its = rows.take(mine).values, plan.select(mine)
        gradient = _Gradient(parameters)
        free = free_log_prob(model, x, its)
        gradient.add(free.sum())
        found = free.detach().clone()
        integrals = integrate(model, x, its.components(), effort, generator)
        while (integral := _next(integrals)) is not None:
            gradient.add(
                integral.expected_log_factors(model, x, x.new_ones(len(integral.components)))
            )
            found.index_add_(
                0, integral.components.row, integral.log_integral().detach().to(found)
            )
        return found, gradient.total

    generators = spawn(derive_generator(0, "line"), len(parts))
    found, gradients = zip(
        *side_by_side(work, list(zip(parts, generators, strict=True))), strict=True
    )
    for parameter, *its in zip(parameters, *gradients, strict=True):
        mean = sum(its[1:], its[0]) / len(rows)
        parameter.grad = mean if parameter.grad is None else parameter.grad + mean
    return torch.cat(found)


def likelihood_noise(model: StructuralModel, rows: RowSource, settings: Settings) -> float:
    """Returns by how much the log-likelihood of the table differs with other random numbers.

    Next to nothing where integrals are sums, closed forms or quadrature; nats where drawn. Only
    rows that hide several nodes together may have to be drawn: some of these are asked.
    """
    components = Plan.of(model.graph, rows).components()
    drawn = ~linear_gaussian(model, components)
    together = components.row[(components.size > 1) & drawn].unique()
    if not len(together):
        return 0.0
    some = rows_by_chance(SelectedRows(rows, together), settings.solving.noise_rows)
    one, other = (log_likelihoods(model, some, settings, of) for of in ("line", "another"))
    squares = (one - other).square().sum() * (len(together) / (2 * len(some)))
    return math.sqrt(float(squares))


def log_likelihoods(
    model: StructuralModel, rows: RowSource, settings: Settings, purpose: str
) -> Tensor:
    """Returns the log-density of what each row shows, (N,), by the random numbers of a purpose."""
    effort, generator = settings.integration.linear, derive_generator(0, purpose)
    found = []
    for batch in rows.batches(effort.rows_at_once):
        plan = Plan.make(model.graph, batch.observed)
        found.append(observed_log_prob(model, batch.values, plan, generator, effort).log_prob)
    return torch.cat(found)


def rows_by_chance(rows: RowSource, most: int) -> RowSource:
    """Returns at most so many rows, by chance."""
    if len(rows) <= most:
        return rows
    some = torch.randperm(len(rows), generator=derive_generator(0, "white rows"))[:most]
    return SelectedRows(rows, some.sort().values)


def _next(integrals: Iterator[Integral]) -> Integral | None:
    with torch.no_grad():
        return next(integrals, None)


class _Gradient:
    """A sum of gradients that no other thread writes to.

    Every surrogate is back-propagated at once, so that memory holds its graph alone.
    """

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        self.total = [torch.zeros_like(parameter) for parameter in parameters]

    def add(self, surrogate: Tensor) -> None:
        """Adds the gradient of a surrogate."""
        if not surrogate.requires_grad:  # all of these rows are empty
            return
        for total, part in zip(
            self.total,
            torch.autograd.grad(surrogate, self.parameters, allow_unused=True),
            strict=True,
        ):
            if part is not None:
                total += part
