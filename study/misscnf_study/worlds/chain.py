"""The chain x1 → x2 → x3, linear and nonlinear (paper, Appendix "Main experiment")."""

from __future__ import annotations

import torch

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.world import World, x_graph

__all__ = ["chain_lin", "chain_nlin", "CHAIN"]

CHAIN = x_graph((), (1,), (2,))


def chain_lin() -> World:
    """The linear chain."""
    equations = [linear(), linear(10.0, scale=-1.0), linear(0.25, scale=2.0)]
    return World(
        name="chain_lin",
        model=StructuralModel(CHAIN, equations),
        interventions=("x1", "x2"),
        description="x1 = u1; x2 = 10 x1 − u2; x3 = 0.25 x2 + 2 u3",
    )


def chain_nlin() -> World:
    """The nonlinear chain."""
    equations = [
        linear(),
        Equation(lambda x1: torch.exp(x1 / 2.0), scale=0.25),
        Equation(lambda x2: (x2 - 5.0) ** 3 / 15.0),
    ]
    return World(
        name="chain_nlin",
        model=StructuralModel(CHAIN, equations),
        interventions=("x1", "x2"),
        description="x1 = u1; x2 = exp(x1 / 2) + u2 / 4; x3 = (x2 − 5)³ / 15 + u3",
    )
