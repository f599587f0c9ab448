"""What a positivity report costs: 100,000 rows and 50 columns, almost every row its own pattern.

A random graph with about two parents a node, values lost at rates of 10 to 40 % by columns that
are always seen, one family unseen in a tenth of the rows, and three columns of levels.

    python benchmarks/check_speed.py
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from report import finish, peak_memory

from misscnf.graph import CausalGraph
from misscnf.identification import check

ROWS, NODES, ALWAYS = 100_000, 50, 5
SECONDS, MEGABYTES = 30.0, 2048.0


def make_table() -> tuple[CausalGraph, pd.DataFrame]:
    """Returns a graph and a table with holes."""
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(NODES)]
    edges = [
        (names[j], names[i]) for i in range(NODES) for j in range(i) if rng.random() < 4 / NODES
    ]
    graph = CausalGraph.from_edges(edges, nodes=names)
    values = rng.normal(size=(ROWS, NODES))
    for i, parents in enumerate(graph.parents):
        for j in parents:
            values[:, i] += rng.uniform(-0.8, 0.8) * values[:, j]
    driver = values[:, :ALWAYS] @ rng.normal(size=(ALWAYS, NODES))
    rate = rng.uniform(0.1, 0.4, NODES)
    lost = rng.random((ROWS, NODES)) < rate / (1.0 + np.exp(-driver)) * 1.5
    lost[:, :ALWAYS] = False
    lost[values[:, 0] > np.quantile(values[:, 0], 0.9), -1] = True
    for j in (7, 19, 31):
        values[:, j] = np.digitize(values[:, j], [-1.0, 0.5])
    return graph, pd.DataFrame(np.where(lost, np.nan, values), columns=names)


def main() -> None:
    """Runs the benchmark."""
    graph, df = make_table()
    before = peak_memory()
    started, worked = time.perf_counter(), time.process_time()
    report = check(df, graph)
    text = report.summary()
    seconds, cpu = time.perf_counter() - started, time.process_time() - worked
    memory = peak_memory()
    print(text)
    print(f"{seconds:.1f} s ({cpu:.1f} s of processor time)")
    print(f"peak {memory:.0f} MB, {before:.0f} MB of them before")
    finish(
        {
            "seconds": seconds,
            "cpu_seconds": cpu,
            "peak_mb": memory,
            "patterns": len(report.patterns),
            "uncovered": list(report.uncovered),
        },
        {
            f"under {SECONDS:g} s": seconds < SECONDS,
            f"under {MEGABYTES:g} MB": memory < MEGABYTES,
            "the family that is unseen is found": f"x{NODES - 1}" in report.uncovered,
        },
    )


if __name__ == "__main__":
    main()
