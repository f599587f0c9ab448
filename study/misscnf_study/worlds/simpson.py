"""Two SCMs with Simpson's paradox, from the causal flows literature (not in the paper).

In the first, x1 confounds x2 and x3, and x4 follows x3; its third noise is bounded, tanh(u3).
In the second, x1 also moves x3 through the product x1 x2, and x4 is a child of x1 alone.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import TANH, Equation, linear
from misscnf_study.worlds.world import World, x_graph

__all__ = ["simpson_nlin", "simpson_symprod"]


def simpson_nlin() -> World:
    """The nonlinear one, with a bounded noise."""
    equations = [
        linear(),
        Equation(lambda x1: F.softplus(1.0 - x1), scale=math.sqrt(3.0 / 20.0)),
        Equation(lambda x1, x2: torch.tanh(2.0 * x2) + 1.5 * x1 - 1.0, noise=TANH),
        linear(0.2, intercept=2.2, scale=1.0 / math.sqrt(10.0)),
    ]
    return World(
        name="simpson_nlin",
        model=StructuralModel(x_graph((), (1,), (1, 2), (3,)), equations),
        interventions=("x1", "x2", "x3"),
        description=(
            "x1 = u1; x2 = log(1 + exp(1 − x1)) + √(3/20) u2; "
            "x3 = tanh(2 x2) + 1.5 x1 − 1 + tanh(u3); x4 = (x3 − 4) / 5 + 3 + u4 / √10"
        ),
    )


def simpson_symprod() -> World:
    """The one with a product."""
    equations = [
        linear(),
        Equation(lambda x1: 2.0 * torch.tanh(2.0 * x1), scale=1.0 / math.sqrt(10.0)),
        Equation(lambda x1, x2: 0.5 * x1 * x2, scale=1.0 / math.sqrt(2.0)),
        Equation(lambda x1: torch.tanh(1.5 * x1), scale=math.sqrt(0.3)),
    ]
    return World(
        name="simpson_symprod",
        model=StructuralModel(x_graph((), (1,), (1, 2), (1,)), equations),
        interventions=("x1", "x2", "x3"),
        description=(
            "x1 = u1; x2 = 2 tanh(2 x1) + u2 / √10; x3 = 0.5 x1 x2 + u3 / √2; "
            "x4 = tanh(1.5 x1) + √0.3 u4"
        ),
    )
