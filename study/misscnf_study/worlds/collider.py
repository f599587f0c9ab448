"""The collider x1 → x3 ← x2 (paper, Appendix "Main experiment").

The nonlinear one comes twice. The paper prints 0.5 u3; the equation's source has u3, and so,
by the figures that it reports, had the paper's runs. The main suite holds it as printed.
"""

from __future__ import annotations

from misscnf.model import StructuralModel
from misscnf_study.worlds.equations import Equation, linear
from misscnf_study.worlds.world import World, x_graph

__all__ = ["collider_lin", "collider_nlin", "collider_nlin_unit", "COLLIDER"]

COLLIDER = x_graph((), (), (1, 2))


def collider_lin() -> World:
    """The linear collider."""
    equations = [
        linear(),
        linear(intercept=2.0, scale=-1.0),
        linear(-0.5, 0.25, scale=0.5),
    ]
    return World(
        name="collider_lin",
        model=StructuralModel(COLLIDER, equations),
        interventions=("x2",),
        description="x1 = u1; x2 = 2 − u2; x3 = 0.25 x2 − 0.5 x1 + 0.5 u3",
    )


def collider_nlin() -> World:
    """The nonlinear collider as printed, with 0.5 u3."""
    return _nonlinear("collider_nlin", scale=0.5, noise="0.5 u3")


def collider_nlin_unit() -> World:
    """The nonlinear collider as in its source, with u3."""
    return _nonlinear("collider_nlin_unit", scale=1.0, noise="u3")


def _nonlinear(name: str, *, scale: float, noise: str) -> World:
    equations = [
        linear(),
        linear(),
        Equation(lambda x1, x2: 0.25 * x2**2 + 0.05 * x1, scale=scale),
    ]
    return World(
        name=name,
        model=StructuralModel(COLLIDER, equations),
        interventions=("x2",),
        description=f"x1 = u1; x2 = u2; x3 = 0.25 x2² + 0.05 x1 + {noise}",
    )
