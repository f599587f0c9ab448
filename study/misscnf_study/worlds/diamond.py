"""The diamond of the causal flows literature (not in the paper).

Its last location, x3 / (|x2 + 2| + x3 + 0.5), is singular where the denominator crosses zero. The
denominator is negative in about 1 row of 700, so x4 has heavy tails and no mean.
"""

from __future__ import annotations

import torch

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.world import World, x_graph

__all__ = ["diamond_nlin"]


def diamond_nlin() -> World:
    """The nonlinear diamond."""
    equations = [
        linear(),
        Equation(lambda x1: x1**2, scale=0.5),
        Equation(lambda x1, x2: x2**2 - 2.0 * torch.sigmoid(x1), scale=0.5),
        Equation(lambda x2, x3: x3 / ((x2 + 2.0).abs() + x3 + 0.5), scale=0.1),
    ]
    return World(
        name="diamond_nlin",
        model=StructuralModel(x_graph((), (1,), (1, 2), (2, 3)), equations),
        interventions=("x1", "x2", "x3"),
        description=(
            "x1 = u1; x2 = x1² + u2 / 2; x3 = x2² − 2 / (1 + exp(−x1)) + u3 / 2; "
            "x4 = x3 / (|x2 + 2| + x3 + 0.5) + u4 / 10"
        ),
    )
