"""Does `auto` take what it says before it starts?

Tables of five kinds: four columns of 20,000 rows (lines, or bent), ten bent columns of 5,000 rows
with 40 % of all cells lost and with none, 46 columns of 5,000 rows (ecoli70, 30 % lost), and the
everyday table. The processor time of each fit over what was said of it: if all means turn out to
be lines, or if most are curves. Bar: within a factor of two.

    python benchmarks/expectation.py [--tables bent everyday]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import everyday
import nonlinear_dags
import numpy as np
import pandas as pd
import torch
import wide
from report import finish

from misscnf import MissCNF
from misscnf.data.rows import MemoryRows
from misscnf.fitting.expectation import expected_seconds, pace
from misscnf.model import Structure

MOST_RATIO = 2.0
Table = tuple[pd.DataFrame, str]


def four_columns(*, bent: bool) -> Table:
    """Returns 20,000 rows of a -> b; a, b -> c; b, c -> d, a fifth of all cells lost."""
    rng, n = np.random.default_rng(0), 20_000
    a, *u = (rng.normal(size=n) for _ in range(4))
    if bent:
        b = np.tanh(1.5 * a) + 0.5 * u[0]
        c = 0.5 * a + 0.5 * b**2 + 0.6 * u[1]
        d = np.sin(1.5 * b) + 0.5 * c + 0.5 * u[2]
    else:
        b = 0.7 * a + u[0]
        c = 0.5 * a - 0.6 * b + u[1]
        d = 0.4 * b + 0.5 * c + u[2]
    df = pd.DataFrame({"a": a, "b": b, "c": c, "d": d})
    return df.mask(rng.random(df.shape) < 0.2), "a -> b; a -> c; b -> c; b -> d; c -> d"


def ten_bent(*, complete: bool) -> Table:
    """Returns the table of ten nodes of `nonlinear_dags.py`."""
    dag, rng = nonlinear_dags.Dag.draw(10, seed=10), np.random.default_rng(1)
    df = dag.frame(dag.sample(5_000, rng))
    return (df if complete else df.mask(rng.random(df.shape) < nonlinear_dags.LOST)), dag.graph


def ecoli() -> Table:
    """Returns the table of ecoli70 of `wide.py`."""
    truth = wide.true_line("ecoli70")
    edges = [(a, b) for b in truth.graph.nodes for a in truth.graph.parents_of(b)]
    return wide.with_holes(truth, 0), "; ".join(f"{a} -> {b}" for a, b in edges)


TABLES: dict[str, Callable[[], Table]] = {
    "lines": lambda: four_columns(bent=False),
    "bent": lambda: four_columns(bent=True),
    "ten": lambda: ten_bent(complete=False),
    "ten complete": lambda: ten_bent(complete=True),
    "ecoli70": ecoli,
    "everyday": lambda: everyday.everyday(0),
}


def measure(name: str) -> dict[str, float]:
    """Returns what was said of a fit and what it took."""
    df, graph = TABLES[name]()
    started = time.process_time()
    model = MissCNF(graph, progress=False).fit(df)
    took, table = time.process_time() - started, model._read(df)
    about = (
        Structure.of(model.graph_, model.schema_.domains),
        MemoryRows(table.values, table.observed),
    )
    least, most = expected_seconds(*about)
    curves = sum(not str(form).startswith("line") for form in model.forms_.values())
    said = most if curves > len(model.forms_) / 2 else least
    figures = {"took": took, "if lines": least, "if curves": most, "ratio": took / said}
    return {key: round(number, 2) for key, number in figures.items()}


def main() -> None:
    """Runs the benchmark."""
    torch.set_num_threads(1)
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    found = {name: measure(name) for name in reader.parse_args().tables}
    bars = {
        f"{name} within a factor of two": 1 / MOST_RATIO <= its["ratio"] <= MOST_RATIO
        for name, its in found.items()
    }
    finish({"pace": round(pace(), 2), "tables": found}, bars)


if __name__ == "__main__":
    main()
