"""The triangle x1 → x2 → x3 with x1 → x3 (paper, Appendix "Main experiment").

The nonlinear one comes twice. The paper prints x1 = u1 + 1; the public code that it builds on,
and most figures that it reports, have x1 = u1. The main suite holds it as printed.
"""

from __future__ import annotations

import torch

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.world import World, x_graph

__all__ = ["triangle_lin", "triangle_nlin", "triangle_nlin_code", "TRIANGLE"]

TRIANGLE = x_graph((), (1,), (1, 2))


def triangle_lin() -> World:
    """The linear triangle."""
    equations = [linear(intercept=1.0), linear(10.0, scale=-1.0), linear(1.0, 0.5)]
    return World(
        name="triangle_lin",
        model=StructuralModel(TRIANGLE, equations),
        interventions=("x1", "x2"),
        description="x1 = u1 + 1; x2 = 10 x1 − u2; x3 = 0.5 x2 + x1 + u3",
    )


def triangle_nlin() -> World:
    """The nonlinear triangle as printed, x1 = u1 + 1."""
    return _nonlinear("triangle_nlin", intercept=1.0, root="u1 + 1")


def triangle_nlin_code() -> World:
    """The nonlinear triangle as in the public code, x1 = u1."""
    return _nonlinear("triangle_nlin_code", intercept=0.0, root="u1")


def _nonlinear(name: str, *, intercept: float, root: str) -> World:
    equations = [
        linear(intercept=intercept),
        Equation(lambda x1: 2.0 * x1**2),
        Equation(lambda x1, x2: 20.0 * torch.sigmoid(x2**2 - x1)),
    ]
    return World(
        name=name,
        model=StructuralModel(TRIANGLE, equations),
        interventions=("x1", "x2"),
        description=f"x1 = {root}; x2 = 2 x1² + u2; x3 = 20 / (1 + exp(−x2² + x1)) + u3",
    )
