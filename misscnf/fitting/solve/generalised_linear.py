r"""The linear model of any table, fitted to all rows by maximum likelihood.

Where every column is continuous this is full-information maximum likelihood (`linear`). With
discrete columns, each node is a generalised linear model of its parents: logistic, cumulative or
multinomial logits, a negative binomial with a log link, a line with normal noise. What the rows
show has the likelihood of `likelihood`, and by Fisher's identity its gradient,

    ∇ Σ_rows log p(x_O) = Σ_rows E[ Σ_i ∇ log φ_i | x_O ],

is exact wherever the integrals are: sums over discrete nodes, closed forms, quadrature. L-BFGS
follows it with all rows at once. It starts from each node's own fit to the rows that show its
whole family, which on a complete table is already the maximum, and searches in coordinates in
which the information of the table at that start (`sandwich`) is one: a third of the steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor, nn

from misscnf.data.domains import Domain
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import Shape
from misscnf.fitting.solve.linear import LinearFit, fit_linear
from misscnf.fitting.solve.sandwich import measure_information
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, Integral, integrate
from misscnf.inference.likelihood import free_log_prob
from misscnf.mechanisms import Conditioner, Count, Gaussian
from misscnf.model import StructuralModel

__all__ = ["SMALLEST_LOG_SCALE", "Line", "fit_line", "linear_model"]

ROWS_AT_ONCE = 4096
OUT_OF_REACH = 1e10
UNSEEN_SLOPE = 0.3
"""Where a family is never seen whole, a slope of zero could be a saddle."""
SMALLEST_LOG_SCALE = math.log(1e-4)
EFFORT = Effort(draws=64, least_effective=20.0, limit=1024)
"""How hard each evaluation works on what has neither a sum nor a closed form."""
COMPLETIONS = 16
"""Of each row, for the information at the start."""
LEAST_SHARE = 1e-3
"""Of the largest information: below it, a direction is not stretched further."""
FLAT = 1e-4
"""Nats a row and unit of a coordinate: no slope left to follow."""


@dataclass(frozen=True)
class Line:
    """A fitted linear model."""

    model: StructuralModel
    """in double precision"""
    log_prob: float
    """mean log-density of what the rows show, at the fit"""
    iterations: int
    converged: bool


def linear_model(graph: CausalGraph, line: LinearFit) -> StructuralModel:
    """Makes the linear-Gaussian model of a fit, in double precision."""
    mechanisms = [Gaussian(len(parents)).double() for parents in graph.parents]
    for i, mechanism in enumerate(mechanisms):
        mechanism.set_line(line.intercepts[i], line.weights[i], line.scales[i])
    return StructuralModel(graph, mechanisms)


def fit_line(
    graph: CausalGraph,
    domains: Sequence[Domain],
    values: Tensor,
    observed: Tensor,
    start: StructuralModel | None = None,
) -> Line:
    """Fits the linear model to all rows.

    Arguments:
        graph: The causal graph.
        domains: The domain of each node.
        values: (N, d), with finite numbers in the holes.
        observed: (N, d).
        start: A linear model close by, such as the fit to most of these rows; without it, each
            node starts from its own fit. It is left as it is.
    """
    if not any(domain.discrete for domain in domains):
        fit = fit_linear(graph, values, observed)
        return Line(linear_model(graph, fit), fit.log_prob, fit.iterations, fit.converged)
    values = torch.where(observed, values, 0.0).double()
    model = Shape(hidden=()).build_model(graph, domains).double()
    plan = Plan.make(graph, observed)
    for node in range(len(graph)):
        if start is None:
            _fit_node(model, node, domains[node], values, observed)
        else:
            model.mechanism(node).start_from(start.mechanism(node))
    result = _maximise(
        model, lambda: _all_rows(model, values, plan), _whitening(model, values, observed)
    )
    flat = float(np.abs(result.jac).max()) < FLAT
    return Line(model, -float(result.fun), int(result.nit), bool(result.success) or flat)


def _fit_node(
    model: StructuralModel, node: int, domain: Domain, values: Tensor, observed: Tensor
) -> None:
    """Fits one node to the rows that show its whole family."""
    mechanism = model.mechanism(node)
    family = [node, *model.graph.parents[node]]
    rows = observed[:, family].all(1).nonzero()[:, 0]
    if isinstance(mechanism, Count):
        with torch.no_grad():
            mechanism.location.bias.fill_(math.log(max(domain.location, 0.1)))
    if not len(rows):
        for part in mechanism.modules():
            if isinstance(part, Conditioner) and part.weight is not None:
                nn.init.constant_(part.weight, UNSEEN_SLOPE)
        return
    own, parents = model.family_of(values, node, rows)

    def log_likelihood() -> float:
        log_prob = mechanism.log_prob(own, parents).mean()
        log_prob.backward()
        return float(log_prob.detach())

    _maximise(mechanism, log_likelihood)


def _all_rows(model: StructuralModel, values: Tensor, plan: Plan) -> float:
    """Returns the mean log-density of what the rows show, and adds its gradient to the parameters.

    Every call uses the same random numbers, so that the function is one and the same.
    """
    total = 0.0
    generator = derive_generator(0, "line")
    for rows in torch.arange(len(values)).split(ROWS_AT_ONCE):
        part, x = plan.select(rows), values[rows]
        free = free_log_prob(model, x, part).sum()
        total += _push(free, free, len(values))
        integrals = integrate(model, x, part.components(), EFFORT, generator)
        while (integral := _next(integrals)) is not None:
            weight = x.new_ones(len(integral.components))
            expected = integral.expected_log_factors(model, x, weight)
            total += _push(integral.log_integral().sum(), expected, len(values))
    return total / len(values)


def _next(integrals: Iterator[Integral]) -> Integral | None:
    with torch.no_grad():
        return next(integrals, None)


def _push(log_prob: Tensor, surrogate: Tensor, rows: int) -> float:
    """Back-propagates a part at once, so that memory holds its graph alone; returns its value."""
    if surrogate.requires_grad:  # not where all of these rows are empty
        (surrogate / rows).backward()
    return float(log_prob.detach())


def _whitening(model: StructuralModel, values: Tensor, observed: Tensor) -> np.ndarray:
    """Returns W with W Wᵀ the inverse of the information a row, bounded where there is little."""
    completions = Completions.draw(
        model, values, observed, COMPLETIONS, derive_generator(0, "white")
    )
    information = measure_information(model, completions).matrix / len(values)
    size, direction = torch.linalg.eigh(information)
    return (direction / size.clamp(min=LEAST_SHARE * float(size.max())).sqrt()).numpy()


def _maximise(
    module: nn.Module,
    log_likelihood: Callable[[], float],
    whitening: np.ndarray | None = None,
) -> OptimizeResult:
    """Maximises a mean log-likelihood over a module's parameters, in place, by L-BFGS.

    Arguments:
        module: The parameters, and where to start.
        log_likelihood: Returns the value at the present parameters and adds its gradient to them.
        whitening: Coordinates to search in. Bounds of the scales are not kept in them: where one
            is passed, the search is done again without.
    """
    parameters = list(module.parameters())
    start = _flat([parameter.detach() for parameter in parameters])
    lowest = np.array(
        [
            SMALLEST_LOG_SCALE if name.endswith("log_scale.bias") else -np.inf
            for name, parameter in module.named_parameters()
            for _ in range(parameter.numel())
        ]
    )
    turn = np.eye(len(start)) if whitening is None else whitening

    def objective(moved: np.ndarray) -> tuple[float, np.ndarray]:
        _load(parameters, start + turn @ moved)
        for parameter in parameters:
            parameter.grad = None
        value = log_likelihood()
        gradient = turn.T @ _flat([_gradient(parameter) for parameter in parameters])
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return OUT_OF_REACH, np.zeros_like(moved)  # a step too far: the search comes back
        return -value, -gradient

    result = minimize(
        objective,
        np.zeros_like(start),
        jac=True,
        method="L-BFGS-B",
        bounds=[(low, None) for low in lowest - start] if whitening is None else None,
        options={"maxiter": 500, "maxfun": 1000, "ftol": 1e-9, "gtol": 1e-6, "maxcor": 30},
    )
    found = start + turn @ result.x
    for parameter in parameters:
        parameter.grad = None
    if whitening is not None and not (np.isfinite(found).all() and (found >= lowest).all()):
        _load(parameters, start)
        return _maximise(module, log_likelihood)
    _load(parameters, found)
    return result


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _flat(tensors: Sequence[Tensor]) -> np.ndarray:
    return torch.cat([tensor.reshape(-1) for tensor in tensors]).double().numpy().copy()


def _load(parameters: Sequence[Tensor], vector: np.ndarray) -> None:
    pieces = torch.from_numpy(vector).split([parameter.numel() for parameter in parameters])
    with torch.no_grad():
        for parameter, piece in zip(parameters, pieces, strict=True):
            parameter.copy_(piece.reshape(parameter.shape))
