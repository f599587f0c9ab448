r"""A chain of any length, with random curves or one line (paper, Appendix "Larger graph").

    x_1 = u_1,    x_{i+1} = g_i(clip(x_i, −3, 3)) + u_{i+1}

Each g_i is the natural cubic spline through 9 equally spaced knots on [−3, 3] with heights from
N(0, 1). The first curves are the same in every chain of one seed, however long it is. The linear
chain, x_{i+1} = w x_i + s u_{i+1}, has closed forms to check against; its default w = 0.8 and
s = 0.6 give every node unit variance.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy.interpolate import CubicSpline
from torch import Tensor, nn

from misscnf import CausalGraph, InputError
from misscnf.draws import derive_generator
from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.world import World, x_graph

__all__ = ["chain_d", "chain_d_lin", "NaturalSpline"]

EDGE = 3.0
KNOTS = 9


class NaturalSpline(nn.Module):
    """The natural cubic spline through points, flat beyond its ends.

    Arguments:
        knots: (k,) increasing.
        heights: (k,)
    """

    def __init__(self, knots: Tensor, heights: Tensor) -> None:
        super().__init__()
        spline = CubicSpline(knots.numpy(), heights.numpy(), bc_type="natural")
        self.register_buffer("knots", knots)
        self.register_buffer("coefficients", torch.from_numpy(np.ascontiguousarray(spline.c)))

    def forward(self, x: Tensor) -> Tensor:
        """Returns the height at x, any shape."""
        knots, coefficients = self.get_buffer("knots"), self.get_buffer("coefficients")
        knots, coefficients = knots.to(x), coefficients.to(x)
        x = x.clamp(knots[0], knots[-1])
        piece = torch.bucketize(x.detach().contiguous(), knots[1:-1])
        t = x - knots[piece]
        cubic, square, slope, height = (row[piece] for row in coefficients)
        return ((cubic * t + square) * t + slope) * t + height


def chain_d(d: int = 16, seed: int = 0) -> World:
    """A chain of d nodes with random curves.

    Arguments:
        d: Nodes.
        seed: Which curves.
    """
    graph = _chain(d)
    knots = torch.linspace(-EDGE, EDGE, KNOTS, dtype=torch.float64)
    equations = [linear()]
    for i in range(1, d):
        generator = derive_generator(seed, "chain_d", i)
        heights = torch.randn(KNOTS, generator=generator, dtype=torch.float64)
        equations.append(Equation(NaturalSpline(knots, heights)))
    return World(
        name=f"chain_d_{d}",
        model=StructuralModel(graph, equations),
        interventions=("x1", "x2"),
        description=f"x1 = u1; x_i+1 = g_i(clip(x_i, −3, 3)) + u_i+1, random g_i of seed {seed}",
    )


def chain_d_lin(d: int = 16, weight: float = 0.8, scale: float = 0.6) -> World:
    """A chain of d nodes with one line throughout.

    Arguments:
        d: Nodes.
        weight: The coefficient w of each parent.
        scale: The coefficient s of each noise but the first.
    """
    graph = _chain(d)
    return World(
        name=f"chain_d_lin_{d}",
        model=StructuralModel(
            graph, [linear(), *(linear(weight, scale=scale) for _ in graph.nodes[1:])]
        ),
        interventions=("x1", "x2"),
        description=f"x1 = u1; x_i+1 = {weight:g} x_i + {scale:g} u_i+1",
    )


def _chain(d: int) -> CausalGraph:
    if d != int(d) or d < 2:
        raise InputError(f"a chain has at least 2 nodes; got d = {d}.")
    return x_graph((), *((i,) for i in range(1, int(d))))
