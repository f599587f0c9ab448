r"""How stiff a curve is: the evidence chooses, from the rows that show a family whole.

Of y = b + W x + c(x) + σ u, with c a Gaussian process,

    Cov[c(x), c(x')] = a² exp(−½ Σ_j (x_j − x'_j)² / ℓ_j²) + (Σ_j β_j² x_j x'_j)²,

the amplitude a, the length scales ℓ, the bends β and σ maximise the marginal likelihood, M of the
rows standing as centres for the first term (`mechanisms.curve`),

    log N(y; 0, Φ Φᵀ + σ² I) − (N a² − |Φ_c|²) / 2σ²,

the last part being the price of what M centres cannot say (Titsias 2009). Φ_c holds the waves
a K_xz K_zz^(−1/2), and Φ the line and the products x_i x_j beside them. Long length scales are
cheap, and a parabola costs next to nothing: it spends three to six degrees of freedom, where a
network spends twenty.

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
from misscnf.mechanisms import Gaussian, straight_bumps, straight_products

__all__ = ["Basis", "find_basis", "fit_curve"]

CENTRES = 128
MOST_CENTRES, MOST_FREEDOM = 64, 8.0
"""Centres and degrees of freedom. What needs more is no curve but a network's business: bumps are all of one width, and a form
that is steep here and flat there takes many of them."""
MOST_ROWS = 3000
"""For length scales, amplitude and noise; the curve itself is fitted to all rows."""
MOST_STEPS = 60
MOST_BENT = 6
"""Features; of more, products are too many."""
START = {"amplitude": 0.4, "reach": 3.0, "bend": 0.4, "noise": 0.4}
BOUNDS = {
    "amplitude": (0.003, 30.0),
    "reach": (0.05, 30.0),
    "bend": (0.003, 10.0),
    "noise": (0.01, 3.0),
}
START_SPREAD = 1.5
"""Of the logarithms of all four around those of the start, before rows are seen."""
LINE_SPREAD = 3.0
"""Of the weights of the line, while the evidence is compared."""
WIDE, WORTH = 2.0, 5.0
"""Length scale, in deviations of a feature, and nats that narrower ones have to gain: the evidence
has a second, wiggly maximum now and then, hardly higher than the smooth one."""
JITTER, SMALLEST = 1e-6, 1e-14
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
    """(M + products, r)"""
    tilt: Tensor
    """(1 + f, r)"""
    edges: Tensor
    """(2, f) beyond which the curve goes on straight"""
    stiffness: Tensor
    """(r,) precision of the prior of each weight"""
    noise: float
    """σ"""

    @property
    def size(self) -> tuple[int, int, int]:
        """Centres, products and waves."""
        forms, waves = self.projection.shape
        return len(self.centres), forms - len(self.centres), waves

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


class _Prior:
    """What the evidence chooses, read from the vector of its logarithms."""

    def __init__(self, theta: Tensor, features: int) -> None:
        amplitude, reach, bend, noise = theta.exp().split(_sizes(features))
        self.amplitude, self.reach, self.bend, self.noise = amplitude[0], reach, bend, noise[0]

    def spreads(self) -> Tensor:
        """Returns the deviation of the weight of each product, (products,)."""
        i, j = torch.triu_indices(len(self.bend), len(self.bend))
        return self.bend[i] * self.bend[j] * torch.where(i == j, 1.0, 2.0**0.5).to(self.bend)


def _sizes(features: int) -> list[int]:
    return [1, features, features if features <= MOST_BENT else 0, 1]


def _products(x: Tensor, inside: Tensor) -> Tensor:
    return straight_products(x, inside) if x.shape[1] <= MOST_BENT else x[:, :0]


def _cost(theta: Tensor, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
    """Returns minus the evidence at some logarithms of amplitude, reach, bend and noise."""
    prior = _Prior(theta, x.shape[1])
    eye = torch.eye(len(z), dtype=x.dtype)
    root = torch.linalg.cholesky(_bumps(z, z, prior.reach) + JITTER * eye)
    bumps = _bumps(z, x, prior.reach)
    waves = prior.amplitude * torch.linalg.solve_triangular(root, bumps, upper=False).T
    products = _products(x, x) * prior.spreads()
    phi = torch.cat([LINE_SPREAD * _line(x), waves, products], 1) / prior.noise
    target = y / prior.noise
    inner = torch.linalg.cholesky(phi.T @ phi + torch.eye(phi.shape[1], dtype=x.dtype))
    found = torch.linalg.solve_triangular(inner, (phi.T @ target)[:, None], upper=False)
    fit = 0.5 * (target @ target - found.square().sum())
    size = inner.diagonal().log().sum() + len(y) * prior.noise.log()
    unsaid = 0.5 * (len(y) * prior.amplitude.square() - waves.square().sum())
    return fit + size + unsaid / prior.noise.square() + _surprise(theta, x.shape[1])


def _surprise(theta: Tensor, features: int) -> Tensor:
    """Returns minus the log-density of the prior of the prior, up to a constant."""
    expected = torch.tensor(list(START.values()), dtype=theta.dtype).log()
    repeats = torch.tensor(_sizes(features))
    return 0.5 * ((theta - expected.repeat_interleave(repeats)) / START_SPREAD).square().sum()


def _maximise(
    x: Tensor, y: Tensor, z: Tensor, narrowest: float = BOUNDS["reach"][0]
) -> tuple[Tensor, float]:
    """Returns where the evidence is highest, and its value, with no bump narrower than asked."""
    names = np.repeat(list(START), _sizes(x.shape[1]))
    bounds = BOUNDS | {"reach": (narrowest, BOUNDS["reach"][1])}

    def cost(theta: np.ndarray) -> tuple[float, np.ndarray]:
        with torch.enable_grad():
            at = torch.tensor(theta, requires_grad=True)
            value = _cost(at, x, y, z)
            (slope,) = torch.autograd.grad(value, at)
        return float(value.detach()), slope.numpy()

    found = minimize(
        cost,
        np.log([START[name] for name in names]),
        jac=True,
        method="L-BFGS-B",
        bounds=[tuple(np.log(bounds[name])) for name in names],
        options={"maxiter": MOST_STEPS},
    )
    return torch.tensor(found.x), -float(found.fun)


def _choose_prior(x: Tensor, y: Tensor, z: Tensor) -> _Prior:
    """Returns what the evidence favours; narrow bumps have to be worth it."""
    theta, evidence = _maximise(x, y, z)
    prior = _Prior(theta, x.shape[1])
    if bool((prior.reach >= WIDE).all()):
        return prior
    wide, its_evidence = _maximise(x, y, z, narrowest=WIDE)
    return prior if evidence > its_evidence + WORTH else _Prior(wide, x.shape[1])


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
    prior = _choose_prior(x[few], y[few], z)
    reach, noise = prior.reach, float(prior.noise)
    enough = LEAST_INFORMATION * noise**2 / (seen * float(prior.amplitude) ** 2)
    spread = _spread(x[few] / reach, enough)
    if len(spread) > MOST_CENTRES:
        return None
    z = x[few][spread]
    size, turn = torch.linalg.eigh(_bumps(z, z, reach))
    of_bumps = prior.amplitude * turn / size.clamp(min=SMALLEST).sqrt()
    projection = torch.block_diag(of_bumps, prior.spreads().diag())
    edges = _edges(x, reach)
    inside = x.clamp(edges[0], edges[1])
    bumps = straight_bumps(x / reach, inside / reach, z / reach)
    line, waves = _line(x), torch.cat([bumps, _products(x, inside)], 1) @ projection
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
    freedom = float((more * information / (1.0 + more * information)).sum())
    if not known.any() or freedom > MOST_FREEDOM:
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
