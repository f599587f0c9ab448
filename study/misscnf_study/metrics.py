r"""How far a model is from the truth, each distance written once over `StructuralModel`.

The paper's distances (Appendix "Metrics") are

    D_J  = KL(p* ‖ p) + KL(p ‖ p*)                                 `symmetric_kl`
    ATE  = ‖ (E*[X | do b] − E*[X | do a]) − (E[X | do b] − E[X | do a]) ‖₂     `ate_error`
    CF   = mean over rows of ‖ x*_cf − x_cf ‖₂                      `cf_error`
    D_j  = E*[ log p*(X) − log p(X) | x_cut in bin j ]              `local_kl`

Its first two are noisy where fits are good: log-densities are averaged over 2,500 rows, and arms
and models are drawn apart, so that even the truth is at a distance from itself (`floor_of_ate`).
Hence two more, of the same quantities. The chain rule makes the divergence a sum over nodes,

    KL(p* ‖ p) = Σ_i E_{x_pa ~ p*} KL( p*_i(· | x_pa) ‖ p_i(· | x_pa) ),        `exact_kl`

where the inner divergence is analytic if both laws are Gaussian; and with the noise shared by
arms and models, what does not depend on the intervention cancels (`exact_ate_error`).

Both arguments are models in the user's units with the same nodes in the same order; the model
comes first, the truth second, and the truth may stand in for the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf import CausalGraph, InputError
from misscnf.draws import derive_generator
from misscnf.mechanisms import Mechanism
from misscnf.model import StructuralModel

if TYPE_CHECKING:
    from misscnf import MissCNF

__all__ = [
    "symmetric_kl",
    "exact_kl",
    "ate_error",
    "exact_ate_error",
    "floor_of_ate",
    "cf_error",
    "local_kl",
    "interventional_kl",
    "held_out_log_prob",
    "intervention_values",
    "gaussian_parameters",
]

Rows: TypeAlias = pd.DataFrame | Tensor
"""Complete rows: a table with a column for each node, or (N, d) in graph order."""

FLOOR = -1e4
"""Log-densities are clamped from below here, so that no average is infinite."""

PERCENTILES = (0.25, 0.5, 0.75)
ROWS_FOR_PERCENTILES, ROWS_AN_ARM = 5_000, 10_000
PROBES, PROBED_ROWS = 17, 256


@torch.no_grad()
def symmetric_kl(model: StructuralModel, truth: StructuralModel, test: Rows, seed: int) -> float:
    """Returns the paper's symmetric divergence, which can come out a little below zero.

    Arguments:
        model: The model.
        truth: The truth.
        test: Complete rows from the truth.
        seed: Where the model's rows, as many as the test's, come from.
    """
    _check_nodes(model, truth)
    x = _read_rows(test, truth.graph)
    generated = model.generate(_noise(len(x), model, seed, "symmetric_kl"))
    forward = _clamped(truth.log_prob(x)) - _clamped(model.log_prob(x))
    reverse = _clamped(model.log_prob(generated)) - _clamped(truth.log_prob(generated))
    return float(forward.mean() + reverse.mean())


@torch.no_grad()
def exact_kl(
    model: StructuralModel, truth: StructuralModel, *, draws: int = 200_000, seed: int = 0
) -> float:
    """Returns the symmetric divergence, node by node; zero for the truth against itself.

    A node's parents are drawn. Its own divergence given them is analytic where both laws are
    Gaussian, so never below zero; elsewhere the node is drawn too, with log-densities clamped at
    −10⁴. Both directions share their noise.

    Arguments:
        model: The model.
        truth: The truth.
        draws: Rows drawn in each direction.
        seed: Where they come from.
    """
    _check_nodes(model, truth)
    noise = _noise(draws, truth, seed, "exact_kl")
    return _expected_kl(truth, model, noise, {}) + _expected_kl(model, truth, noise, {})


@torch.no_grad()
def interventional_kl(
    model: StructuralModel,
    truth: StructuralModel,
    interventions: Sequence[str],
    *,
    draws: int = 50_000,
    seed: int = 0,
) -> float:
    """Returns the symmetric divergence under do(x_i = a), averaged over nodes and percentiles.

    The law under an intervention has all factors but the held node's; they are compared as in
    `exact_kl`.

    Arguments:
        model: The model.
        truth: The truth.
        interventions: The nodes x_i.
        draws: Rows drawn in each direction.
        seed: Where randomness starts.
    """
    _check_nodes(model, truth)
    noise = _noise(draws, truth, seed, "interventional_kl")
    distances = [
        _expected_kl(truth, model, noise, {node: a}) + _expected_kl(model, truth, noise, {node: a})
        for node, levels in intervention_values(truth, interventions, seed).items()
        for a in levels
    ]
    return float(np.mean(distances))


@torch.no_grad()
def ate_error(
    model: StructuralModel, truth: StructuralModel, interventions: Sequence[str], seed: int
) -> float:
    """Returns the paper's error of average effects, over nodes and pairs of percentiles.

    Every arm of every pair has 10,000 rows of its own, in the model as in the truth, so a perfect
    model has an error too: see `floor_of_ate`.

    Arguments:
        model: The model.
        truth: The truth.
        interventions: The nodes to intervene on.
        seed: Where randomness starts.
    """
    _check_nodes(model, truth)
    errors = []
    for node, levels in intervention_values(truth, interventions, seed).items():
        by_model = derive_generator(seed, "ate", "model", node)
        by_truth = derive_generator(seed, "ate", "truth", node)
        for a, b in combinations(levels, 2):
            true_effect = _drawn_effect(truth, node, a, b, by_truth)
            errors.append(float((true_effect - _drawn_effect(model, node, a, b, by_model)).norm()))
    return float(np.mean(errors))


def floor_of_ate(truth: StructuralModel, interventions: Sequence[str], seed: int) -> float:
    """Returns the paper's ATE error of a perfect model: the truth against itself."""
    return ate_error(truth, truth, interventions, seed)


@torch.no_grad()
def exact_ate_error(
    model: StructuralModel,
    truth: StructuralModel,
    interventions: Sequence[str],
    *,
    draws: int = 100_000,
    seed: int = 0,
) -> float:
    """Returns the error of average effects with one set of noise for all arms and both models.

    The effects and pairs are those of `ate_error`. A unit's effect x(b) − x(a) is taken with the
    same noise in both arms, so that it is free of Monte-Carlo error wherever it does not depend on
    the unit, as in any linear model; and the truth is at distance zero from itself.

    Arguments:
        model: The model.
        truth: The truth.
        interventions: The nodes to intervene on.
        draws: Units.
        seed: Where randomness starts.
    """
    _check_nodes(model, truth)
    noise = _noise(draws, truth, seed, "exact_ate_error")
    errors = []
    for node, levels in intervention_values(truth, interventions, seed).items():
        means = [
            torch.stack([_held(side, noise, node, a).mean(0) for a in levels])
            for side in (model, truth)
        ]
        gap = means[0] - means[1]
        errors += [float((gap[b] - gap[a]).norm()) for a, b in combinations(range(len(gap)), 2)]
    return float(np.mean(errors))


@torch.no_grad()
def cf_error(
    model: StructuralModel,
    truth: StructuralModel,
    test: Rows,
    interventions: Sequence[str],
    seed: int,
) -> float:
    """Returns the mean distance of counterfactual rows, over nodes and their percentiles.

    Arguments:
        model: The model.
        truth: The truth.
        test: Complete factual rows.
        interventions: The nodes to intervene on.
        seed: Where the percentiles come from.
    """
    _check_nodes(model, truth)
    x = _read_rows(test, truth.graph)
    errors = []
    for node, levels in intervention_values(truth, interventions, seed).items():
        for a in levels:
            clamps = {node: torch.tensor(a, dtype=x.dtype)}
            # The noise of discrete values is drawn, from the same numbers for both.
            gap = truth.counterfactual(x, clamps, derive_generator(seed, "cf"))
            gap -= model.counterfactual(x, clamps, derive_generator(seed, "cf"))
            errors.append(float(gap.norm(dim=-1).mean()))
    return float(np.mean(errors))


@torch.no_grad()
def local_kl(
    model: StructuralModel, truth: StructuralModel, test: Rows, cut: str, *, bins: int = 16
) -> pd.DataFrame:
    """Returns the mean of log p* − log p over the test rows in each bin of one node.

    A bin is not weighted by its mass, and can be negative where the model gives it too much.

    Arguments:
        model: The model.
        truth: The truth.
        test: Complete rows from the truth.
        cut: The node whose range is cut.
        bins: Bins of equal width between its 1 % and 99 % quantiles in the test rows.

    Returns:
        A row for each bin: left, right, count and error (NaN where the bin is empty).
    """
    _check_nodes(model, truth)
    x = _read_rows(test, truth.graph)
    error = (_clamped(truth.log_prob(x)) - _clamped(model.log_prob(x))).numpy()
    place = x[:, truth.graph.index(cut)].numpy()
    low, high = np.quantile(place, (0.01, 0.99))
    edges = np.linspace(low, high, bins + 1)
    within = (place >= edges[0]) & (place <= edges[-1])
    # The last bin holds its right edge too.
    which = np.minimum(np.searchsorted(edges, place[within], side="right") - 1, bins - 1)
    count = np.bincount(which, minlength=bins)
    total = np.bincount(which, weights=error[within], minlength=bins)
    mean = np.divide(total, count, out=np.full(bins, np.nan), where=count > 0)
    return pd.DataFrame({"left": edges[:-1], "right": edges[1:], "count": count, "error": mean})


def held_out_log_prob(fitted: MissCNF, df: pd.DataFrame, *, seed: int = 0) -> float:
    """Returns the mean log-density of what held-out rows show, in the user's units.

    Arguments:
        fitted: A fitted estimator.
        df: Rows that it has not seen, NaN where a value is unknown.
        seed: Where the randomness of integrals without a closed form starts.
    """
    return float(fitted.log_prob(df, seed=seed).to_numpy().mean())


@torch.no_grad()
def intervention_values(
    truth: StructuralModel, interventions: Sequence[str], seed: int
) -> dict[int, tuple[float, ...]]:
    """Returns the quartiles of each node to intervene on, from 5,000 fresh rows of the truth.

    Arguments:
        truth: The truth.
        interventions: Names of nodes.
        seed: Where the rows come from; every metric of one seed holds nodes at the same values.

    Returns:
        By the index of the node, the 25th, 50th and 75th percentile.
    """
    if isinstance(interventions, str) or not interventions:
        raise InputError("interventions are names of nodes, such as ['x1', 'x2']; give one.")
    values = {}
    for node in (truth.graph.index(name) for name in interventions):
        x = truth.generate(_noise(ROWS_FOR_PERCENTILES, truth, seed, "percentiles", node))
        values[node] = tuple(np.quantile(x[:, node].numpy(), PERCENTILES).tolist())
    return values


def gaussian_parameters(mechanism: Mechanism, parents: Tensor) -> tuple[Tensor, Tensor] | None:
    """Returns the mean and the standard deviation given parents where the law is Gaussian.

    A continuous law is Gaussian where its value is affine in its noise, x = m + s u: m is the
    value at u = 0 and s the step from there to u = 1, whatever its sign. Whether it is affine is
    seen at points of u between −3 and 3, in the first rows.

    Arguments:
        mechanism: Any mechanism.
        parents: (N, p)

    Returns:
        Two tensors (N,), or None where the law is not Gaussian.
    """
    if mechanism.noise_size > 1:  # categories
        return None
    zero = parents.new_zeros(parents.shape[:-1])
    mean = mechanism.generate(zero, parents).expand_as(zero)
    step = mechanism.generate(zero + 1.0, parents) - mean
    u = torch.linspace(-3.0, 3.0, PROBES, dtype=parents.dtype)
    found = mechanism.generate(u, parents[:PROBED_ROWS, None])
    m, s = mean[:PROBED_ROWS, None], step[:PROBED_ROWS, None]
    room = (m.abs() + s.abs()) * torch.finfo(parents.dtype).eps ** 0.5
    bent = (found - (m + s * u)).abs() > room  # not where a value overflows
    return None if bool(bent.any()) or bool((s == 0.0).any()) else (mean, step.abs())


def _expected_kl(
    p: StructuralModel, q: StructuralModel, noise: Tensor, held: Mapping[int, float]
) -> float:
    """Returns KL(p ‖ q) of the laws with some nodes held, rows drawn from p."""
    clamps = {node: torch.tensor(a, dtype=noise.dtype) for node, a in held.items()}
    x = p.generate(noise, clamps)
    return math.fsum(
        float(_node_kl(p, q, x, i).mean()) for i in range(len(p.graph)) if i not in held
    )


def _node_kl(p: StructuralModel, q: StructuralModel, x: Tensor, i: int) -> Tensor:
    """Returns the divergence of node i given its parents in each row, or an unbiased draw of it.

    Each side reads the parents that its own graph has: given all nodes before it in the common
    order, a node depends on these alone.
    """
    pair = (p.mechanism(i), p.parents_of(x, i)), (q.mechanism(i), q.parents_of(x, i))
    (first, second) = (gaussian_parameters(*side) for side in pair)
    if first is None or second is None:
        log_p, log_q = (_clamped(mechanism.log_prob(x[:, i], pa)) for mechanism, pa in pair)
        return log_p - log_q
    (m, s), (n, t) = first, second
    return torch.log(t / s) + (s * s + (m - n) ** 2) / (2.0 * t * t) - 0.5


def _drawn_effect(
    model: StructuralModel, node: int, a: float, b: float, generator: torch.Generator
) -> Tensor:
    """Returns E[X | do(b)] − E[X | do(a)] from rows drawn for each arm, (d,)."""
    shape = (ROWS_AN_ARM, model.noise_width)
    arms = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(2))
    means = [_held(model, u, node, at).mean(0) for u, at in zip(arms, (a, b), strict=True)]
    return means[1] - means[0]


def _held(model: StructuralModel, noise: Tensor, node: int, level: float) -> Tensor:
    return model.generate(noise, {node: torch.tensor(level, dtype=noise.dtype)})


def _noise(rows: int, model: StructuralModel, seed: int, *purpose: str | int) -> Tensor:
    generator = derive_generator(seed, "metrics", *purpose)
    return torch.randn(rows, model.noise_width, generator=generator, dtype=torch.float64)


def _clamped(log_density: Tensor) -> Tensor:
    """Clamps at the floor; what overflowed on its way (NaN) has no density to speak of."""
    return torch.nan_to_num(log_density, nan=FLOOR).clamp(min=FLOOR)


def _check_nodes(model: StructuralModel, truth: StructuralModel) -> None:
    if model.graph.nodes != truth.graph.nodes:
        raise InputError(
            f"model and truth must have the same nodes in the same order; the model has "
            f"{', '.join(model.graph.nodes)} and the truth {', '.join(truth.graph.nodes)}."
        )


def _read_rows(rows: Rows, graph: CausalGraph) -> Tensor:
    if isinstance(rows, pd.DataFrame):
        absent = [name for name in graph.nodes if name not in rows.columns]
        if absent:
            raise InputError(f"the test rows lack the columns {', '.join(absent)}.")
        rows = torch.tensor(rows[list(graph.nodes)].to_numpy(dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != len(graph) or len(rows) == 0:
        raise InputError(
            f"test rows have shape (N, {len(graph)}), N at least 1; got {tuple(rows.shape)}."
        )
    if not bool(torch.isfinite(rows).all()):
        raise InputError("test rows must be complete and finite; some have holes.")
    return rows.double()
