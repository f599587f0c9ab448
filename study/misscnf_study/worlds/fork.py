"""The paper's fork, x1 → x3 ← x2 and x3 → x4 (paper, Appendix "Main experiment")."""

from __future__ import annotations

import torch

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.world import World, x_graph

__all__ = ["fork_lin", "fork_nlin", "FORK"]

FORK = x_graph((), (), (1, 2), (3,))


def fork_lin() -> World:
    """The linear fork."""
    equations = [
        linear(),
        linear(intercept=2.0, scale=-1.0),
        linear(-1.5, 0.25, scale=0.5),
        linear(1.0, scale=0.25),
    ]
    return World(
        name="fork_lin",
        model=StructuralModel(FORK, equations),
        interventions=("x2", "x3"),
        description="x1 = u1; x2 = 2 − u2; x3 = 0.25 x2 − 1.5 x1 + 0.5 u3; x4 = x3 + 0.25 u4",
    )


def fork_nlin() -> World:
    """The nonlinear fork."""
    equations = [
        linear(),
        linear(),
        Equation(lambda x1, x2: 4.0 * torch.sigmoid(x1 + x2) - x2**2, scale=0.5),
        Equation(lambda x3: 20.0 * torch.sigmoid(x3 - 0.5 * x3**2)),
    ]
    return World(
        name="fork_nlin",
        model=StructuralModel(FORK, equations),
        interventions=("x2", "x3"),
        description=(
            "x1 = u1; x2 = u2; x3 = 4 / (1 + exp(−x1 − x2)) − x2² + 0.5 u3; "
            "x4 = 20 / (1 + exp(0.5 x3² − x3)) + u4"
        ),
    )
