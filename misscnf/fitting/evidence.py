r"""How stiff a curve is: the evidence chooses, from the rows that show a family whole.

Of y = b + W x + c(x) + σ u, with c a Gaussian process of amplitude a and length scales ℓ, seen
through M of the rows as centres (`mechanisms.curve`), a, ℓ and σ maximise the marginal likelihood,

    log N(y; 0, Φ Φᵀ + σ² I) − tr(K − Φ_c Φ_cᵀ) / 2σ²,

the last term being the price of what M centres cannot say (Titsias 2009). Φ_c holds the waves
K_xz K_zz^(−1/2), and Φ the line beside them. Long length scales are cheap: a parabola spends five
or six degrees of freedom where a network spends twenty.

Then the waves are turned so that the rows know each of them apart from the others and from the
line, with information D_j; those of which even all rows that show y could tell nothing (D_j below
0.05 for them, against 1 of the prior) are left out. Each is measured in units of its own posterior
error, 1/√N: so the likelihood of all rows, which training follows from there, is as steep in every
weight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from misscnf.domains import Domain
from misscnf.mechanisms import Gaussian, straight_bumps

__all__ = ["Basis", "find_basis", "fit_curve"]

CENTRES = 128
MOST_CENTRES, MOST_WAVES = 64, 12
"""What needs more is no curve but a network's business: bumps are all of one width, and a form
that is steep here and flat there takes many of them."""
MOST_ROWS = 3000
"""For length scales, amplitude and noise; the curve itself is fitted to all rows."""
MOST_STEPS = 40
BOUNDS = {"amplitude": (0.03, 30.0), "reach": (0.05, 30.0), "noise": (0.01, 3.0)}
START = {"amplitude": 1.0, "reach": 1.5, "noise": 0.4}
PRIOR_SPREAD = 2.0
"""Of the logarithms of all three, around zero."""
LINE_SPREAD = 3.0
"""Of the weights of the line, while the evidence is compared."""
JITTER = 1e-6
LEAST_INFORMATION = 0.05
ROUNDING = 1e-9
"""Variance of a bump that single precision cannot tell from nothing."""
BEYOND = 10
"""Rows on either side that do not say how a curve bends, only where it goes; half a percent of
fewer than 2,000."""
LEAD = 0.25
"""In length scales: so far a curve still bends on, when rows come to an end."""
ROUNDS = 3
"""Of noise given curve given noise, once the length scales are known."""


@dataclass(frozen=True)
class Basis:
    """What a curve of one node rests on: all of it but the weights. M centres, r waves."""

    centres: Tensor
    """(M, f)"""
    reach: Tensor
    """(f,) length scales"""
    projection: Tensor
    """(M, r)"""
    tilt: Tensor
    """(1 + f, r)"""
    edges: Tensor
    """(2, f) beyond which the curve goes on straight"""
    stiffness: Tensor
    """(r,) precision of the prior of each weight"""
    noise: float
    """σ"""

    @property
    def size(self) -> tuple[int, int]:
        """Centres and waves."""
        return self.projection.shape[0], self.projection.shape[1]

    def mechanism(self, parents: Sequence[Domain]) -> Gaussian:
        """Returns a mechanism with this curve, all weights zero."""
        found = Gaussian(parents, mean_curve=self.size).double()
        curve = found.mean.curve
        assert curve is not None
        for name in ("centres", "reach", "projection", "tilt", "edges", "stiffness"):
            getattr(curve, name).copy_(getattr(self, name))
        return found


def _bumps(x: Tensor, z: Tensor, reach: Tensor) -> Tensor:
    a, b = x / reach, z / reach
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2.0 * a @ b.T
    return torch.exp(-0.5 * squares.clamp(min=0.0))


def _line(x: Tensor) -> Tensor:
    return torch.cat([torch.ones_like(x[:, :1]), x], 1)


def _cost(theta: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Returns minus the evidence, theta being the logarithms of amplitude, reach and noise."""
    amplitude, reach, noise = theta[0].exp(), theta[1:-1].exp(), theta[-1].exp()
    eye = torch.eye(len(z), dtype=x.dtype)
    root = torch.linalg.cholesky(_bumps(z, z, reach) + JITTER * eye)
    bumps = _bumps(z, x, reach)
    waves = amplitude * torch.linalg.solve_triangular(root, bumps, upper=False).T
    phi = torch.cat([LINE_SPREAD * _line(x), waves], 1) / noise
    target = y / noise
    inner = torch.linalg.cholesky(phi.T @ phi + torch.eye(phi.shape[1], dtype=x.dtype))
    found = torch.linalg.solve_triangular(inner, (phi.T @ target)[:, None], upper=False)
    fit = 0.5 * (target @ target - found.square().sum())
    size = inner.diagonal().log().sum() + len(y) * theta[-1]
    unsaid = 0.5 * (len(y) * amplitude.square() - waves.square().sum()) / noise.square()
    prior = 0.5 * (theta / PRIOR_SPREAD).square().sum()
    return fit + size + unsaid + prior


def _maximise(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    names = ["amplitude", *["reach"] * x.shape[1], "noise"]

    def cost(theta: np.ndarray) -> tuple[float, np.ndarray]:
        with torch.enable_grad():
            at = torch.tensor(theta, requires_grad=True)
            value = _cost(at, x, y, z)
            (slope,) = torch.autograd.grad(value, at)
        return float(value), slope.numpy()

    found = minimize(
        cost,
        np.log([START[name] for name in names]),
        jac=True,
        method="L-BFGS-B",
        bounds=[tuple(np.log(BOUNDS[name])) for name in names],
        options={"maxiter": MOST_STEPS},
    )
    return torch.tensor(found.x)


def _edges(x: Tensor, reach: Tensor) -> Tensor:
    """Returns where each feature has left the rows behind, (2, f)."""
    ordered = x.sort(0).values
    few = min(BEYOND, len(x) // 200)
    return torch.stack([ordered[few] - LEAD * reach, ordered[-1 - few] + LEAD * reach])


def _spread(x: Tensor, enough: float) -> list[int]:
    """Returns rows whose bumps say, up to a variance, all that those of all rows say.

    Pivoted Cholesky factors: the next centre is where the last ones know least.
    """
    unsaid = torch.ones_like(x[:, 0])
    factors: list[Tensor] = []
    chosen: list[int] = []
    while len(chosen) <= MOST_CENTRES:
        pivot = int(unsaid.argmax())
        if float(unsaid[pivot]) < max(enough, ROUNDING):
            break
        column = torch.exp(-0.5 * (x - x[pivot]).square().sum(1))
        for factor in factors:
            column = column - factor * factor[pivot]
        factors.append(column / column[pivot].sqrt())
        chosen.append(pivot)
        unsaid = (unsaid - factors[-1].square()).clamp(min=0.0)
    return chosen


@torch.no_grad()
def find_basis(
    x: Tensor, y: Tensor, rows: int, seen: int, generator: torch.Generator
) -> Basis | None:
    """Returns what a curve of y should rest on; None where a line says it all or few waves do not.

    Arguments:
        x: Features (n, f) of the rows that show the family.
        y: (n,)
        rows: The rows of the whole table, N.
        seen: The rows that show y, with all features or not.
        generator: Where the centres come from.
    """
    more = seen / len(y)
    order = torch.randperm(len(x), generator=generator)
    z = x[order[:CENTRES]].unique(dim=0)
    few = order[:MOST_ROWS]
    theta = _maximise(x[few], y[few], z)
    amplitude, reach, noise = theta[0].exp(), theta[1:-1].exp(), float(theta[-1].exp())
    enough = LEAST_INFORMATION * noise**2 / (seen * float(amplitude) ** 2)
    spread = _spread(x[few] / reach, enough)
    if len(spread) > MOST_CENTRES:
        return None
    z = x[few][spread]
    size, turn = torch.linalg.eigh(_bumps(z, z, reach))
    size = size.clamp(min=1e-14)
    projection = amplitude * turn / size.sqrt()
    edges = _edges(x, reach)
    inside = x.clamp(edges[0], edges[1])
    line = _line(x)
    waves = straight_bumps(x / reach, inside / reach, z / reach) @ projection
    root = torch.linalg.cholesky(line.T @ line + JITTER * torch.eye(line.shape[1]).to(line))
    tilt = torch.cholesky_solve(line.T @ waves, root)
    waves = waves - line @ tilt
    straight = y - line @ torch.cholesky_solve(line.T @ y[:, None], root)[:, 0]
    strength, turn = torch.linalg.eigh(waves.T @ waves)
    pull = (turn.T @ (waves.T @ straight)).square()
    for _ in range(ROUNDS):
        ridge = strength + noise**2
        left = straight @ straight - (pull * (2.0 / ridge - strength / ridge.square())).sum()
        spent = line.shape[1] + (strength / ridge).sum()
        noise = float((left / (len(y) - spent).clamp(min=1.0)).clamp(min=1e-6).sqrt())
    information = strength.clamp(min=0.0) / noise**2
    known = more * information > LEAST_INFORMATION
    if not 0 < int(known.sum()) <= MOST_WAVES:
        return None
    unit = ((1.0 + information[known]) / rows).sqrt()
    turn = turn[:, known] / unit
    return Basis(z, reach, projection @ turn, tilt @ turn, edges, unit**-2.0, noise)


@torch.no_grad()
def fit_curve(
    basis: Basis | None,
    parents: Sequence[Domain],
    x: Tensor,
    y: Tensor,
    weights: Tensor | None = None,
) -> Gaussian:
    """Returns the mechanism that fits some rows best, its curve under the prior.

    Arguments:
        basis: What the curve rests on; None for a line.
        parents: The domains of the parents.
        x: Parents (n, p).
        y: (n,)
        weights: (n,) of the rows; None counts all alike.
    """
    found = Gaussian(parents).double() if basis is None else basis.mechanism(parents)
    features = found.mean.encoding(x)
    weights = torch.ones_like(y) if weights is None else weights
    columns = _line(features)
    penalty = torch.zeros(columns.shape[1], dtype=y.dtype)
    if basis is not None and found.mean.curve is not None:
        columns = torch.cat([columns, found.mean.curve.waves(features)], 1)
        penalty = torch.cat([penalty, basis.stiffness * basis.noise**2])
    gram = columns.T @ (weights[:, None] * columns)
    ridge = gram + penalty.diag() + 1e-9 * len(y) * torch.eye(len(gram), dtype=y.dtype)
    coefficients = torch.linalg.solve(ridge, columns.T @ (weights * y))
    spent = torch.linalg.solve(ridge, gram).diagonal().sum()
    left = (weights * (y - columns @ coefficients).square()).sum()
    scale = (left / (weights.sum() - spent).clamp(min=1.0)).clamp(min=1e-12).sqrt()
    straight = 1 + features.shape[1]
    found.set_line(float(coefficients[0]), coefficients[1:straight].tolist(), float(scale))
    if found.mean.curve is not None:
        found.mean.curve.weight.copy_(coefficients[None, straight:])
    return found
