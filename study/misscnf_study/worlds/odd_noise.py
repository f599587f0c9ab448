"""Two triangles whose noise is not what a bell of constant width says (not in the paper).

In the first, the scale of the noise follows the parents; in the second, the noise has two peaks.
Both are there to ask whether richer noise is found where it is, and only there: in each, one
equation has plain normal noise.
"""

from __future__ import annotations

import torch

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import Equation, linear, two_peaks
from misscnf_study.worlds.world import World, x_graph

__all__ = ["heteroscedastic", "bimodal"]

TRIANGLE = x_graph((), (1,), (1, 2))


def heteroscedastic() -> World:
    """The one whose scales follow the parents."""
    equations = [
        linear(),
        Equation(lambda x1: torch.sin(2.0 * x1), scale=lambda x1: 0.3 * torch.exp(0.6 * x1)),
        linear(0.5, 0.5),
    ]
    return World(
        name="heteroscedastic",
        model=StructuralModel(TRIANGLE, equations),
        interventions=("x1", "x2"),
        description="x1 = u1; x2 = sin(2 x1) + 0.3 exp(0.6 x1) u2; x3 = (x1 + x2) / 2 + u3",
    )


def bimodal() -> World:
    """The one whose noise has two peaks."""
    equations = [
        linear(),
        Equation(lambda x1: x1, noise=two_peaks(0.8, 0.2)),
        Equation(lambda x1, x2: x1 - 0.25 * x2**2),
    ]
    return World(
        name="bimodal",
        model=StructuralModel(TRIANGLE, equations),
        interventions=("x1", "x2"),
        description="x1 = u1; x2 = x1 + 0.2 u2 + 0.8 tanh(3 u2); x3 = x1 − x2² / 4 + u3",
    )
