r"""The guided example: does quitting smoking make people gain weight?

NHEFS, 1,629 smokers, 63 of them without their weight in 1982 (`misscnf.load_nhefs`). The nine
confounders are a block, so that the drawing shows what the question leans on: they drive who
quits and how weight changes, and no arrow among them is claimed.
"""

from __future__ import annotations

from pathlib import Path

from misscnf.data.files import write_atomically
from misscnf.studio.drawing import Drawing, Node

__all__ = ["write_example", "example_drawing"]


def write_example(path: Path) -> None:
    """Writes the table."""
    from misscnf import load_nhefs

    write_atomically(path, load_nhefs().to_csv(index=False).encode())


def example_drawing() -> Drawing:
    """Returns the graph with its question, and the guide at its first step."""
    from misscnf import nhefs_graph

    *confounders, treatment, outcome = nhefs_graph().nodes
    nodes = [
        Node(name, 130.0 + 150 * (i % 3), 90.0 + 70 * (i // 3))
        for i, name in enumerate(confounders)
    ]
    nodes += [Node(treatment, 180.0, 400.0), Node(outcome, 480.0, 400.0)]
    edges = (("confounders", treatment), ("confounders", outcome), (treatment, outcome))
    blocks = {"confounders": tuple(confounders)}
    return Drawing(tuple(nodes), edges, blocks, effect=(treatment, outcome), guide=0)
