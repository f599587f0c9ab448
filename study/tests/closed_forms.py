r"""What impute-then-fit comes to in the limit of many rows, in closed form.

In a collider, x3 is the only node with parents, so under MCAR it alone has holes, a share r of
its cells whatever x1 and x2 are. With x3 | x1, x2 ~ N(m, s²), a completed x3 follows a mixture:

    with chance 1 − r   N(m, s²)
    with chance r       the imputed value: mean g, variance t²

    mean imputation     g = μ = E[m],                       t² = 0
    one draw of MICE    g = L(x1, x2), the best line,       t² = s² + E[(m − L)²]

An affine flow with a free mean and scale is fitted by matching these two moments,

    m̂ = (1 − r) m + r g,    v̂ = (1 − r) s² + r t² + r (1 − r) (m − g)²,

and the roots, never lost, are right. So the symmetric divergence from the truth is

    E[ ( s²/v̂ + v̂/s² + (m − m̂)² (1/v̂ + 1/s²) ) / 2 − 1 ]

over x1 and x2, by Gauss–Hermite quadrature. Nothing here uses the metrics or the imputers.
"""

import numpy as np
import torch
from misscnf_study.worlds import Equation

from misscnf.model import StructuralModel

POINTS = 96


def kl_after_mean(world, rate):
    """The symmetric divergence of the best affine flow after mean imputation."""
    return _divergence(world, rate, _mean_line(world), noisy=False)


def kl_after_mice(world, rate):
    """The same after one draw of MICE."""
    return _divergence(world, rate, _best_line(world), noisy=True)


def flow_after_mean(world, rate):
    """The best affine flow itself."""
    return _flow(world, rate, _mean_line(world), noisy=False)


def flow_after_mice(world, rate):
    """The best affine flow itself."""
    return _flow(world, rate, _best_line(world), noisy=True)


def mice_curve(world, rate, features):
    """Coefficients of E[completed x3 | x1, x2] = (1 − r) m + r L on features of (x1, x2).

    Arguments:
        world: A collider.
        rate: The share of holes.
        features: A function of x1 and x2 (n,) to a matrix (n, k), whose span holds m and L.
    """
    roots, _, mean, _ = _population(world)
    design = features(*roots)
    target = (1.0 - rate) * mean + rate * _design(roots) @ _best_line(world)
    return np.linalg.lstsq(design, target, rcond=None)[0]


def _population(world):
    """Roots on a grid (2, n), their weights (n,), and m (n,) and s of x3 there."""
    u, weight = np.polynomial.hermite_e.hermegauss(POINTS)
    weight = weight / weight.sum()
    noise = torch.cartesian_prod(torch.from_numpy(u), torch.from_numpy(u))
    empty = torch.zeros(len(noise), 0, dtype=torch.float64)
    roots = [world.model.mechanism(i).generate(noise[:, i], empty) for i in (0, 1)]
    mean, scale = _truth(world, torch.stack(roots, -1))
    return (
        np.stack([root.numpy() for root in roots]),
        np.outer(weight, weight).ravel(),
        mean.numpy(),
        float(scale[0]),
    )


def _truth(world, parents):
    equation, zero = world.model.mechanism(2), parents.new_zeros(parents.shape[:-1])
    mean = equation.generate(zero, parents)
    return mean, (equation.generate(zero + 1.0, parents) - mean).abs()


def _design(roots):
    return np.stack([np.ones_like(roots[0]), *roots], axis=-1)


def _mean_line(world):
    _, weight, mean, _ = _population(world)
    return np.array([weight @ mean, 0.0, 0.0])


def _best_line(world):
    roots, weight, mean, _ = _population(world)
    design = _design(roots)
    return np.linalg.solve(design.T @ (weight[:, None] * design), design.T @ (weight * mean))


def _imputed_variance(world, line, noisy):
    roots, weight, mean, scale = _population(world)
    return scale**2 + weight @ (mean - _design(roots) @ line) ** 2 if noisy else 0.0


def _matched(mean, scale, guess, spread, rate):
    """m̂ and v̂."""
    variance = (1 - rate) * scale**2 + rate * spread + rate * (1 - rate) * (mean - guess) ** 2
    return (1 - rate) * mean + rate * guess, variance


def _divergence(world, rate, line, *, noisy):
    roots, weight, mean, scale = _population(world)
    spread = _imputed_variance(world, line, noisy)
    fitted, variance = _matched(mean, scale, _design(roots) @ line, spread, rate)
    ratio = scale**2 / variance
    gap = (mean - fitted) ** 2 * (1 / variance + 1 / scale**2)
    return float(weight @ (0.5 * (ratio + 1 / ratio + gap) - 1.0))


def _flow(world, rate, line, *, noisy):
    spread = _imputed_variance(world, line, noisy)

    def matched(x1, x2):
        mean, scale = _truth(world, torch.stack([x1, x2], -1))
        guess = line[0] + line[1] * x1 + line[2] * x2
        return _matched(mean, scale, guess, spread, rate)

    equation = Equation(lambda *x: matched(*x)[0], lambda *x: matched(*x)[1].sqrt())
    return StructuralModel(
        world.graph, [world.model.mechanism(0), world.model.mechanism(1), equation]
    )
