r"""The large backdoor: nine nodes and bounded noise (not in the paper).

It comes from the causal flows literature. Two long arms leave x1 and meet in x9, through softplus
layers

    layer(x, v) = softplus(x + 1) + softplus(v + 0.5) − 3,    v uniform on (0, 1),

and the outcome x9 is Laplace about its location. The uniform v is the normal cdf of the noise.
"""

from __future__ import annotations

import math

import torch.nn.functional as F
from torch import Tensor

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import LAPLACE, UNIFORM, Equation, softplus_of_uniform
from misscnf_study.worlds.world import World, x_graph

__all__ = ["backdoor_nlin"]

SOFTPLUS_HALF = math.log1p(math.exp(0.5))


def backdoor_nlin() -> World:
    """The nonlinear large backdoor."""
    graph = x_graph((), (1,), (1,), (2,), (3,), (4,), (5,), (6,), (7, 8))
    equations = [
        Equation(-1.0, noise=softplus_of_uniform(shift=0.0, slope=1.8)),
        Equation(lambda x1: 1.5 * (_carried(x1) + SOFTPLUS_HALF), scale=0.25, noise=UNIFORM),
        *(Equation(_carried, noise=softplus_of_uniform(shift=0.5, slope=1.0)) for _ in range(5)),
        Equation(lambda x6: F.softplus(x6 + 1.0) - 1.0, scale=0.3, noise=UNIFORM),
        Equation(_outcome, scale=0.6, noise=LAPLACE),
    ]
    return World(
        name="backdoor_nlin",
        model=StructuralModel(graph, equations),
        interventions=("x1", "x2", "x3", "x5"),
        description=(
            "x1 = softplus(1.8 v1) − 1; x2 = 1.5 layer(x1, 0) + 0.25 v2; x3 = layer(x1, v3); "
            "x4 = layer(x2, v4); x5 = layer(x3, v5); x6 = layer(x4, v6); x7 = layer(x5, v7); "
            "x8 = softplus(x6 + 1) − 1 + 0.3 v8; "
            "x9 = 2 − softplus((1.3 x7 + x8) / 3 + 1) + 0.6 Laplace; "
            "layer(x, v) = softplus(x + 1) + softplus(v + 0.5) − 3, v uniform"
        ),
    )


def _carried(x: Tensor) -> Tensor:
    """What a layer takes from its parent."""
    return F.softplus(x + 1.0) - 3.0


def _outcome(x7: Tensor, x8: Tensor) -> Tensor:
    return 2.0 - F.softplus((1.3 * x7 + x8) / 3.0 + 1.0)
