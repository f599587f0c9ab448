"""The everyday table: 500 rows, 30 columns of mixed kinds, holes; from the check to the report.

Ten numbers, ten yes-or-no columns, five counts and five with levels, in a random graph in which
every column has up to two parents; 10 % of all cells lost. Processor time of `check`, `fit`, an
effect with its interval, and the report (bar: 20 s in all). The effect is that of the first column
on the last number that it leads to: the last column has levels without an order, whose answer is
a table and no number.

    python benchmarks/everyday.py
    python benchmarks/everyday.py --rows 1000 --columns 60 --lost 0.25   # bar: two minutes
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from report import finish

from misscnf import CausalGraph, MissCNF, check, write_report

ROWS, COLUMNS, LOST, MOST_SECONDS, MOST_OF_LARGER = 500, 30, 0.1, 20.0, 120.0
KINDS = ("number", "number", "yes or no", "yes or no", "count", "level")


def everyday(
    seed: int, rows: int = ROWS, columns: int = COLUMNS, lost: float = LOST
) -> tuple[pd.DataFrame, str]:
    """Returns a table and its graph."""
    rng = np.random.default_rng(seed)
    cells: dict[str, Any] = {}
    numbers: list[np.ndarray] = []
    edges = []
    for i in range(columns):
        parents = rng.choice(i, size=min(2, i), replace=False).tolist() if i else []
        edges += [f"c{j} -> c{i}" for j in parents]
        drive = sum((0.6 * numbers[j] for j in parents), np.zeros(rows))
        u = rng.normal(size=rows)
        kind = KINDS[i % len(KINDS)]
        found = drive + 0.8 * u
        if kind == "yes or no":
            found = (found > 0).astype(float)
        elif kind == "count":
            found = rng.poisson(np.exp(0.3 * drive.clip(-3, 3) + 0.7)).astype(float)
        elif kind == "level":
            levels = np.digitize(found, [-0.5, 0.5])
            cells[f"c{i}"] = np.array(["low", "middle", "high"])[levels]
            found = levels - 1.0
        cells.setdefault(f"c{i}", found)
        numbers.append((found - found.mean()) / found.std())
    df = pd.DataFrame(cells)
    return df.mask(rng.random(df.shape) < lost), "; ".join(edges)


def about(graph: str) -> tuple[str, str]:
    """Returns the first column, and the last number that it leads to."""
    dag = CausalGraph.read(graph)
    reached = [int(dag.nodes[i][1:]) for i in dag.descendants([dag.index("c0")])]
    return "c0", f"c{max(i for i in reached if KINDS[i % len(KINDS)] == 'number')}"


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--columns", type=int, default=COLUMNS)
    parser.add_argument("--lost", type=float, default=LOST)
    given = parser.parse_args()
    torch.set_num_threads(1)
    df, graph = everyday(given.seed, given.rows, given.columns, given.lost)
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        found = work()
        seconds[name] = round(time.process_time() - started, 2)
        return found

    pair = about(graph)
    timed("check", lambda: check(df, graph, pair))
    model = timed("fit", lambda: MissCNF(graph, progress=False).fit(df))
    arms = {"do": {pair[0]: 1.0}, "versus": {pair[0]: 0.0}}
    effect = timed("effect", lambda: model.effect(pair[1], **arms, interval=0.95))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        timed("report", lambda: write_report(model, df, page, effect=pair))
    total = sum(seconds.values())
    forms = pd.Series([str(form) for form in model.forms_.values()]).value_counts().to_dict()
    stages = {name: round(of, 1) for name, of in model.timings_.items()}
    figures = {"seconds": seconds, "total": round(total, 1), "stages": stages, "forms": forms}
    figures |= {"about": pair, "estimate": effect.estimate, "interval": effect.interval}
    most = MOST_SECONDS if given.columns <= COLUMNS else MOST_OF_LARGER
    finish(figures, {f"{most:.0f} s in all": total <= most})


if __name__ == "__main__":
    main()
