"""What holes and the choice of mechanisms cost a whole fit, in processor time and in one run.

20,000 rows of the four nonlinear worlds of the study, complete and MAR at 60 %:

- a fit of `auto` to the table with holes, against one to the complete table (bar: 3 times);
- the same, against one training of the largest form in all nodes, networks of mean and
  scale and a spline, that chooses nothing (bar: 6 times).

    python benchmarks/fit_cost.py
"""

from __future__ import annotations

import statistics
import time

import pandas as pd
import torch
from misscnf_study.data import make_data
from report import finish

from misscnf import MissCNF
from misscnf.fitting.settings import Settings, Shape
from misscnf.graph import CausalGraph

WORLDS = ("chain_nlin", "fork_nlin", "collider_nlin", "triangle_nlin")
LARGEST = {
    "selection.compare": False,
    "shape": Shape(kind="spline", scale_hidden=Settings().selection.scale_hidden),
}
MOST_FOR_HOLES, MOST_FOR_CHOICE = 3.0, 6.0


def seconds(
    graph: CausalGraph, train: pd.DataFrame, validation: pd.DataFrame, settings: dict[str, object]
) -> float:
    """Returns the processor time of one fit."""
    model = MissCNF(graph, kinds="continuous", settings=settings, progress=False)
    started = time.process_time()
    model.fit(train, validation=validation)
    return time.process_time() - started


def main() -> None:
    """Runs the benchmark."""
    torch.set_num_threads(1)
    found: dict[str, dict[str, float]] = {}
    for number, name in enumerate(WORLDS):
        data = make_data(name, "mar", 0.6, seed=0)
        tables, graph = data.tables, data.world.graph
        if not number:  # what torch loads on its first step belongs to no fit
            seconds(graph, tables.train[:500], tables.validation, {"epochs": 1})
        found[name] = {
            "complete": seconds(graph, tables.complete_train, tables.complete_validation, {}),
            "with holes": seconds(graph, tables.train, tables.validation, {}),
            "largest form": seconds(graph, tables.train, tables.validation, LARGEST),
        }
        shown = ", ".join(f"{what} {value:.1f} s" for what, value in found[name].items())
        print(f"{name}: {shown}", flush=True)
    holes, choice = (
        statistics.geometric_mean(row["with holes"] / row[against] for row in found.values())
        for against in ("complete", "largest form")
    )
    print(f"with holes over complete {holes:.2f}, over the largest form {choice:.2f}")
    bars = {
        f"holes cost at most {MOST_FOR_HOLES:g} times": holes <= MOST_FOR_HOLES,
        f"the choice costs at most {MOST_FOR_CHOICE:g} times": choice <= MOST_FOR_CHOICE,
    }
    finish({"seconds": found, "holes": holes, "choice": choice}, bars)


if __name__ == "__main__":
    main()
