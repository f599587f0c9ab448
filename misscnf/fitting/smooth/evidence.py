r"""How stiff a curve is: the evidence chooses, from the rows that show a family whole.

Of y = b + W x + c(x) + σ s u, with c a Gaussian process and s known for each row (one, unless a
network has learned it),

    Cov[c(x), c(x')] = a² exp(−½ Σ_j (x_j − x'_j)² / ℓ_j²) + (Σ_j β_j² x_j x'_j)²,

the amplitude a, the length scales ℓ, the bends β and σ maximise the marginal likelihood, M of the
rows standing as centres z for the first term,

    log N(y; 0, Φ Φᵀ + σ² S²) − Σ_i (a² − |Φ_c,i|²) / 2 σ² s_i²,

the last part being the price of what M centres cannot say (Titsias 2009). Φ_c holds the basis
functions a K_xz K_zz^(−1/2), and Φ the line and the products x_i x_j beside them. Long length
scales are cheap, and a parabola costs next to nothing: a curve spends a few degrees of freedom
where a network spends twenty.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from misscnf.mechanisms import extended_products

__all__ = ["Prior", "radial_basis_of", "choose_prior", "line_of", "products_of"]

MOST_STEPS = 60
MOST_CURVED = 6
"""Features; of more, products are too many."""
START = {"amplitude": 0.4, "length_scale": 3.0, "curvature": 0.4, "noise": 0.4}
BOUNDS = {
    "amplitude": (0.003, 30.0),
    "length_scale": (0.05, 30.0),
    "curvature": (0.003, 10.0),
    "noise": (0.01, 3.0),
}
START_SPREAD = 1.5
"""Of the logarithms of all four around those of the start, before rows are seen."""
LINE_SPREAD = 3.0
"""Of the weights of the line, while the evidence is compared."""
WIDE, WORTH = 2.0, 5.0
"""Length scale, in deviations of a feature, and nats that narrower ones have to gain: the evidence
has a second, wiggly maximum now and then, hardly higher than the smooth one."""
JITTER = 1e-6


class Prior:
    """What the evidence chooses, read from the vector of its logarithms.

    Arguments:
        theta: Logarithms of the amplitude, of the f length scales, the bends and the noise.
        features: f.
    """

    def __init__(self, theta: Tensor, features: int) -> None:
        amplitude, length_scale, curvature, noise = theta.exp().split(_sizes(features))
        self.amplitude, self.length_scale, self.curvature, self.noise = (
            amplitude[0],
            length_scale,
            curvature,
            noise[0],
        )

    def spreads(self) -> Tensor:
        """Returns the deviation of the weight of each product, (products,)."""
        i, j = torch.triu_indices(len(self.curvature), len(self.curvature))
        return (
            self.curvature[i]
            * self.curvature[j]
            * torch.where(i == j, 1.0, 2.0**0.5).to(self.curvature)
        )


def _sizes(features: int) -> list[int]:
    return [1, features, features if features <= MOST_CURVED else 0, 1]


def line_of(x: Tensor) -> Tensor:
    """Returns (1, x), (n, 1 + f)."""
    return torch.cat([torch.ones_like(x[:, :1]), x], 1)


def radial_basis_of(x: Tensor, z: Tensor, length_scale: Tensor) -> Tensor:
    """Returns exp(−½ |x − z|²) in units of the length scales, (n, M)."""
    a, b = x / length_scale, z / length_scale
    squares = (a * a).sum(1)[:, None] + (b * b).sum(1) - 2.0 * a @ b.T
    return torch.exp(-0.5 * squares.clamp(min=0.0))


def products_of(x: Tensor, inside: Tensor) -> Tensor:
    """Returns the products of features, straight beyond `inside`; none where they are many."""
    return extended_products(x, inside) if x.shape[1] <= MOST_CURVED else x[:, :0]


def choose_prior(x: Tensor, y: Tensor, z: Tensor, scale: Tensor) -> Prior:
    """Returns what the evidence favours; narrow radial basis functions have to be worth it.

    Arguments:
        x: Features (n, f).
        y: (n,)
        z: Centres (M, f).
        scale: s (n,).
    """
    theta, evidence = _maximise(x, y, z, scale)
    prior = Prior(theta, x.shape[1])
    if bool((prior.length_scale >= WIDE).all()):
        return prior
    wide, its_evidence = _maximise(x, y, z, scale, narrowest=WIDE)
    return prior if evidence > its_evidence + WORTH else Prior(wide, x.shape[1])


def _maximise(
    x: Tensor, y: Tensor, z: Tensor, scale: Tensor, narrowest: float = BOUNDS["length_scale"][0]
) -> tuple[Tensor, float]:
    """Returns where the evidence is highest, and its value, with length scales above a bound."""
    names = np.repeat(list(START), _sizes(x.shape[1]))
    bounds = BOUNDS | {"length_scale": (narrowest, BOUNDS["length_scale"][1])}

    def cost(theta: np.ndarray) -> tuple[float, np.ndarray]:
        with torch.enable_grad():
            at = torch.tensor(theta, requires_grad=True)
            value = _cost(at, x, y, z, scale)
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


def _cost(theta: Tensor, x: Tensor, y: Tensor, z: Tensor, scale: Tensor) -> Tensor:
    """Returns minus the evidence at some logarithms of amplitude, reach, bend and noise."""
    prior = Prior(theta, x.shape[1])
    eye = torch.eye(len(z), dtype=x.dtype)
    root = torch.linalg.cholesky(radial_basis_of(z, z, prior.length_scale) + JITTER * eye)
    radial = radial_basis_of(z, x, prior.length_scale)
    basis_functions = prior.amplitude * torch.linalg.solve_triangular(root, radial, upper=False).T
    products = products_of(x, x) * prior.spreads()
    noise = prior.noise * scale
    phi = torch.cat([LINE_SPREAD * line_of(x), basis_functions, products], 1) / noise[:, None]
    target = y / noise
    inner = torch.linalg.cholesky(phi.T @ phi + torch.eye(phi.shape[1], dtype=x.dtype))
    found = torch.linalg.solve_triangular(inner, (phi.T @ target)[:, None], upper=False)
    fit = 0.5 * (target @ target - found.square().sum())
    size = inner.diagonal().log().sum() + noise.log().sum()
    unsaid = (
        0.5 * ((prior.amplitude.square() - basis_functions.square().sum(1)) / noise.square()).sum()
    )
    return fit + size + unsaid + _surprise(theta, x.shape[1])


def _surprise(theta: Tensor, features: int) -> Tensor:
    """Returns minus the log-density of the prior of the prior, up to a constant."""
    expected = torch.tensor(list(START.values()), dtype=theta.dtype).log()
    repeats = torch.tensor(_sizes(features))
    return 0.5 * ((theta - expected.repeat_interleave(repeats)) / START_SPREAD).square().sum()
