"""Linear chains of four and five nodes, from the causal flows literature (not in the paper)."""

from __future__ import annotations

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import linear
from misscnf_study.worlds.world import World, x_graph

__all__ = ["chain4_lin", "chain5_lin"]


def chain4_lin() -> World:
    """The linear chain of four."""
    graph = x_graph((), (1,), (2,), (3,))
    equations = [linear(), linear(5.0, scale=-1.0), linear(-0.5, scale=-1.5), linear(1.0)]
    return World(
        name="chain4_lin",
        model=StructuralModel(graph, equations),
        interventions=("x1", "x2", "x3"),
        description="x1 = u1; x2 = 5 x1 − u2; x3 = −0.5 x2 − 1.5 u3; x4 = x3 + u4",
    )


def chain5_lin() -> World:
    """The linear chain of five."""
    graph = x_graph((), (1,), (2,), (3,), (4,))
    equations = [
        linear(),
        linear(10.0, scale=-1.0),
        linear(0.25, scale=2.0),
        linear(1.0),
        linear(-1.0),
    ]
    return World(
        name="chain5_lin",
        model=StructuralModel(graph, equations),
        interventions=("x1", "x2", "x3"),
        description="x1 = u1; x2 = 10 x1 − u2; x3 = 0.25 x2 + 2 u3; x4 = x3 + u4; x5 = −x4 + u5",
    )
