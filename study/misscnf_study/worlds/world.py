"""A world: an SCM whose equations are known, so that every answer about it can be checked.

Its model is graph + equations, the same kind of object as a learned flow, so each query, metric
and estimator runs on truth and model alike. Only what the study adds stands here: a name, the
nodes that its metrics intervene on (paper, Appendix "Average treatment effect"), and tables
drawn from the model.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import pandas as pd
import torch

from misscnf import CausalGraph
from misscnf.draws import derive_generator
from misscnf.model import StructuralModel

__all__ = ["World", "x_graph"]


def x_graph(*parents: tuple[int, ...]) -> CausalGraph:
    """Returns the graph over x1, x2, … whose i-th node has the i-th argument's parents.

    Example:
        >>> x_graph((), (1,), (1, 2))
        CausalGraph(3 nodes: x1 → x2; x1 → x3; x2 → x3)
    """
    names = [f"x{i}" for i in range(1, len(parents) + 1)]
    edges = [(f"x{p}", name) for name, pa in zip(names, parents, strict=True) for p in pa]
    return CausalGraph.from_edges(edges, nodes=names)


@dataclass(frozen=True, eq=False)
class World:
    """A known SCM, over x1, x2, … if it is the paper's, with what the study asks of it."""

    name: str
    """What `load_scm` calls it."""
    model: StructuralModel
    """The graph with its true equations."""
    interventions: tuple[str, ...]
    """The nodes that the metrics intervene on."""
    description: str
    """The equations, as text."""
    kinds: Mapping[str, str] | str = "continuous"
    """The kind of each column, as `MissCNF` takes it."""

    @property
    def graph(self) -> CausalGraph:
        """The causal graph."""
        return self.model.graph

    def sample(self, n: int, seed: int, *purpose: Hashable) -> pd.DataFrame:
        """Draws a complete table of float64 columns; discrete ones hold codes 0, 1, ….

        Arguments:
            n: Rows.
            seed: The same seed and purpose give the same table.
            purpose: Anything that tells tables of one seed apart, such as "train" and "test".
        """
        generator = derive_generator(seed, "world", *purpose)
        noise = torch.randn(n, self.model.noise_width, generator=generator, dtype=torch.float64)
        with torch.no_grad():
            values = self.model.generate(noise)
        return pd.DataFrame(values.numpy(), columns=list(self.graph.nodes))
