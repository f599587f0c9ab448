"""What many patterns of holes cost: every row its own pattern, against four patterns.

20,000 rows, 20 nodes, the same share of holes; one pass over the table in steps of 4096 rows.

    python benchmarks/pattern_count.py
"""

from __future__ import annotations

import itertools

import torch
from report import fastest, finish

from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.settings import Settings, Training
from misscnf.fitting.train.loop import Trainer
from misscnf.fitting.train.objective import ObservedLikelihood
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Shape
from misscnf.model import Structure

ROWS, NODES, SHARE = 20_000, 20, 0.3
SETTINGS = Settings(shape=Shape(hidden=(64, 64)), training=Training(batch=4096, steps_an_epoch=1))


def random_graph() -> CausalGraph:
    """Returns a random graph in which a node has about two parents."""
    generator = derive_generator(0, "graph")
    names = [f"x{i}" for i in range(NODES)]
    edges = [
        (names[j], names[i])
        for i in range(NODES)
        for j in range(i)
        if torch.rand(1, generator=generator) < 4 / NODES
    ]
    return CausalGraph.from_edges(edges, nodes=names)


def holes(patterns: int) -> torch.Tensor:
    """Returns which cells are observed: so many patterns, exactly a share hidden in each."""
    every = torch.tensor(list(itertools.combinations(range(NODES), round(SHARE * NODES))))
    order = torch.randperm(len(every), generator=derive_generator(patterns, "holes"))
    kinds = torch.ones(patterns, NODES, dtype=torch.bool).scatter(1, every[order[:patterns]], 0)
    return kinds[torch.arange(ROWS) % patterns]


def epoch(graph: CausalGraph, observed: torch.Tensor) -> tuple[Trainer, int]:
    """Returns a trainer and how many distinct patterns its rows have."""
    values = torch.randn(ROWS, NODES, generator=derive_generator(0, "values"))
    model = Structure.of(graph, [CONTINUOUS] * len(graph)).build(SETTINGS.shape)
    model.initialise(derive_generator(0, "initialise"))
    objective = ObservedLikelihood(model, MemoryRows(values, observed), None, SETTINGS, 0)
    return Trainer(objective, SETTINGS.training), len(objective.plan.observed)


def steps(mine: Trainer) -> None:
    """Takes four steps."""
    for number, rows in enumerate(mine.objective.order(0).split(mine.batch)[:4]):
        mine.step(rows, number)


def main() -> None:
    """Runs the benchmark."""
    graph = random_graph()
    few, few_patterns = epoch(graph, holes(4))
    many, many_patterns = epoch(graph, holes(ROWS))
    seconds = {"few": float("inf"), "many": float("inf")}
    for _ in range(3):  # interleaved, since the machine is shared
        for name, mine in (("few", few), ("many", many)):
            took = fastest(lambda mine=mine: steps(mine), 2) / 4
            seconds[name] = min(seconds[name], took)
    ratio = seconds["many"] / seconds["few"]
    print(f"{few_patterns} patterns: {seconds['few']:.4f} s a step")
    print(f"{many_patterns} patterns: {seconds['many']:.4f} s a step, {ratio:.2f} times as much")
    finish(
        {"seconds": seconds, "patterns": [few_patterns, many_patterns], "ratio": ratio},
        {
            "at most twice as much": ratio <= 2.0,
            "every row has its own pattern": many_patterns == ROWS,
        },
    )


if __name__ == "__main__":
    main()
