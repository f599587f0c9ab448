r"""Chain and collider, nonlinear by degrees (paper, Appendix "Controlled nonlinearity study").

One function, of mean 0 and variance 1 under a standard normal x, goes from a line to a parabola:

    h_α(x) = [ (1 − α) x + α (x² − 1)/√2 ] / √( (1 − α)² + α² ),    0 ≤ α ≤ 1

At α = 0 the equations are declared linear, and closed forms apply.
"""

from __future__ import annotations

import math

from torch import Tensor

from misscnf import InputError
from misscnf.model import StructuralModel
from misscnf_study.worlds.chain import CHAIN
from misscnf_study.worlds.collider import COLLIDER
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.world import World

__all__ = ["chain_alpha", "collider_alpha", "nonlinearity"]


def nonlinearity(x: Tensor, alpha: float) -> Tensor:
    """Returns h_α(x)."""
    mixed = (1.0 - alpha) * x + alpha * (x**2 - 1.0) / math.sqrt(2.0)
    return mixed / math.hypot(1.0 - alpha, alpha)


def chain_alpha(alpha: float = 0.5) -> World:
    """The chain whose last arrow is nonlinear by α.

    Arguments:
        alpha: From 0 (a line) to 1 (a parabola).
    """
    _check(alpha)
    curved = Equation(lambda x2: nonlinearity(x2, alpha), scale=0.5)
    last = linear(1.0, scale=0.5) if alpha == 0.0 else curved
    return World(
        name=f"chain_alpha_{alpha:g}",
        model=StructuralModel(CHAIN, [linear(), linear(0.5, scale=0.5), last]),
        interventions=("x1", "x2"),
        description=f"x1 = u1; x2 = 0.5 x1 + 0.5 u2; x3 = h(x2) + 0.5 u3, α = {alpha:g}",
    )


def collider_alpha(alpha: float = 0.5) -> World:
    """The collider whose two arrows are nonlinear by α.

    Arguments:
        alpha: From 0 (lines) to 1 (parabolas).
    """
    _check(alpha)
    curved = Equation(
        lambda x1, x2: 0.5 * nonlinearity(x1, alpha) + 0.5 * nonlinearity(x2, alpha), scale=0.5
    )
    last = linear(0.5, 0.5, scale=0.5) if alpha == 0.0 else curved
    return World(
        name=f"collider_alpha_{alpha:g}",
        model=StructuralModel(COLLIDER, [linear(), linear(), last]),
        interventions=("x2",),
        description=f"x1 = u1; x2 = u2; x3 = 0.5 h(x1) + 0.5 h(x2) + 0.5 u3, α = {alpha:g}",
    )


def _check(alpha: float) -> None:
    if not 0.0 <= alpha <= 1.0:
        raise InputError(f"alpha goes from 0 (linear) to 1 (quadratic); got {alpha}.")
