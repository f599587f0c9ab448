r"""What the loss of each node depends on, found by moving one column at a time.

    x_j is a cause of the loss of x_i    if P(x_i lost | x) changes with x_j alone

So it holds for any mechanism, whatever its equations: nothing for MCAR, cond(i) for MAR, x_i
itself where a value is lost because of itself. For oracles (O-MIRACLE); no method could know.
"""

from __future__ import annotations

import numpy as np

from misscnf import CausalGraph
from misscnf_study.losses.loss import Missingness

__all__ = ["causes_of_loss"]

ROWS = 64


def causes_of_loss(mechanism: Missingness, graph: CausalGraph) -> dict[str, tuple[str, ...]]:
    """Returns the names of the nodes that the loss of each node depends on, by node.

    Example:
        >>> from misscnf_study.losses import Mar
        >>> causes_of_loss(Mar(0.5), CausalGraph.read("x1 -> x2; x2 -> x3"))
        {'x1': (), 'x2': ('x1',), 'x3': ('x1',)}
    """
    generator = np.random.default_rng(0)
    values = generator.normal(size=(ROWS, len(graph)))
    law = mechanism.calibrate(values, graph, generator)
    chances = law.probability(values)
    found: dict[str, tuple[str, ...]] = dict.fromkeys(graph.nodes, ())
    for j, cause in enumerate(graph.nodes):
        moved = values.copy()
        moved[:, j] = np.roll(values[:, j], 1)
        for i in np.flatnonzero((law.probability(moved) != chances).any(axis=0)):
            found[graph.nodes[i]] += (cause,)
    return found
