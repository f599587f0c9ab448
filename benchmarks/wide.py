r"""Wide tables: Gaussian networks of 46, 64 and 107 nodes, 5,000 rows, 30 % of all cells lost.

The networks are ecoli70, magic-irri and arth150 as the wheel of pgmpy has them (its files are
read, it is not imported: `pip install --no-deps pgmpy` is enough). Cells are lost completely at
random. Each fit runs in a process of its own. Figures, and bars:

- processor time of `linear`, at most 5, 10 and 20 s, and of `auto`, at most 60, 90 and 150 s;
- processor time of an effect with a 95 % interval on the linear fit, at most 10 s;
- the peak resident size of the whole process, imports, table, fit and effect: 1.5 GB;
- what a fit loses in mean log-density of fresh complete rows, against the truth. The maximum of
  the likelihood loses ½ tr(F F_obs⁻¹) / n, with F the Fisher information of a complete row and
  F_obs that of a row with holes (`sandwich`, from completions by the truth). One table's loss is a
  sum of as many squares as there are parameters, 162 at the least, and so up to a ninth off: the
  mean over eight tables is within 1.15 times the limit for `linear`. That of `auto`, on one table,
  is told.

    python benchmarks/wide.py [--networks ecoli70 arth150] [--presets linear auto] [--redo]

Each part of a network (a preset, or the `accuracy` of `linear`) is a line of a store, written once
it is done and not done again: a run that was cut short goes on.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import itertools
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from report import finish
from store import Lines

HERE = Path(__file__).parent
ROWS, LOST, FRESH, TABLES = 5_000, 0.3, 100_000, 8
MOST_SECONDS = {
    "ecoli70": {"linear": 5, "auto": 60},
    "magic-irri": {"linear": 10, "auto": 90},
    "arth150": {"linear": 20, "auto": 150},
}
INTERVAL_SECONDS, MOST_GIGABYTES, LIMIT = 10, 1.5, 1.15
COMPLETIONS = 64
"""Of a row, behind the information of rows with holes."""


def read_network(name: str) -> dict[str, Any]:
    """Returns nodes, arcs and laws of a network in pgmpy's wheel."""
    files = importlib.metadata.files("pgmpy") or []
    found = next(file for file in files if file.match(f"utils/example_models/{name}.json"))
    return json.loads(found.read_text())


def true_line(name: str):
    """Returns a network as the model that is fitted to it."""
    from misscnf.graph import CausalGraph
    from misscnf.mechanisms import Gaussian
    from misscnf.model import StructuralModel

    network = read_network(name)
    graph = CausalGraph.from_edges(map(tuple, network["arcs"]), network["nodes"])
    mechanisms = []
    for node in graph.nodes:
        law, parents = network["cpds"][node], graph.parents_of(node)
        intercept, *weights = (law["coefficients"][at][0] for at in ("(Intercept)", *parents))
        mechanisms.append(Gaussian(len(parents)).double())
        mechanisms[-1].set_line(intercept, weights, law["variance"][0] ** 0.5)
    return StructuralModel(graph, mechanisms).requires_grad_(requires_grad=False)


def sample(truth, rows: int, *key: str | int):
    """Returns complete rows of the truth."""
    import pandas as pd
    import torch

    from misscnf.draws import derive_generator

    generator = derive_generator(0, "wide", *key)
    noise = torch.randn(rows, len(truth.graph), generator=generator, dtype=torch.float64)
    return pd.DataFrame(truth.generate(noise).numpy(), columns=list(truth.graph.nodes))


def with_holes(truth, number: int):
    """Returns the table of a number."""
    import numpy as np

    table = sample(truth, ROWS, "table", number)
    return table.mask(np.random.default_rng(number).random(table.shape) < LOST)


def limit(truth) -> float:
    """Returns ½ tr(F F_obs⁻¹) / n."""
    import torch

    from misscnf.data.rows import MemoryRows
    from misscnf.draws import derive_generator
    from misscnf.fitting.completions import Completions
    from misscnf.fitting.solve.sandwich import measure_information

    found = []
    for table in (sample(truth, ROWS, "table", 0), with_holes(truth, 0)):
        observed = torch.tensor(table.notna().to_numpy())
        rows = MemoryRows(torch.tensor(table.fillna(0.0).to_numpy()), observed)
        generator = derive_generator(0, "limit")
        completions = Completions.draw(truth, rows, COMPLETIONS, generator)
        found.append(measure_information(truth, completions).matrix / ROWS)
    return 0.5 * float(torch.linalg.solve(found[1], found[0]).trace()) / ROWS


def lost(truth, model) -> float:
    """Returns by how much a fit is below the truth, in mean log-density of fresh rows."""
    import torch

    fresh = sample(truth, FRESH, "fresh")
    best = truth.log_prob(torch.tensor(fresh.to_numpy())).mean()
    return float(best) - float(model.log_prob(fresh).mean())


def peak() -> float:
    """Returns the peak resident size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def fit(name: str, preset: str) -> dict[str, Any]:
    """Fits once, asks once, and returns the figures."""
    from misscnf import MissCNF

    truth, imports = true_line(name), peak()
    table, graph = with_holes(truth, 0), truth.graph
    started = time.process_time()
    model = MissCNF(graph, preset, progress=False).fit(table)
    figures = {"seconds": time.process_time() - started, "gigabytes_of_imports": imports}
    figures["gigabytes_of_fit"] = peak()
    if preset == "linear":  # the effect of a parent on the node with most ancestors
        outcome = max(
            graph.nodes, key=lambda node: len(graph.ancestral_closure([graph.index(node)]))
        )
        cause = graph.parents_of(outcome)[0]
        low, high = table[cause].quantile([0.25, 0.75])
        started = time.process_time()
        model.effect(outcome, {cause: high}, {cause: low}, interval=0.95)
        figures["interval_seconds"] = time.process_time() - started
    figures["gigabytes"] = peak()
    return figures | {"lost": lost(truth, model)}


def accuracy(name: str) -> dict[str, float]:
    """Returns the limit, and what linear fits lose on the mean over tables."""
    from misscnf import MissCNF

    truth = true_line(name)
    models = (
        MissCNF(truth.graph, "linear", progress=False).fit(with_holes(truth, number))
        for number in range(TABLES)
    )
    found = [lost(truth, model) for model in models]
    return {"limit": limit(truth), "lost": sum(found) / TABLES}


def elsewhere(name: str, part: str) -> dict[str, Any]:
    """Runs one part in a process of its own."""
    command = [sys.executable, __file__, "--here", name, part]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return {"network": name, "part": part, **json.loads(ended.stdout.splitlines()[-1])}


def bars_of(found: dict[str, Any]) -> dict[str, bool]:
    """Returns which bars a part of a network meets."""
    name, part = found["network"], found["part"]
    if part == "accuracy":
        close = found["lost"] <= LIMIT * found["limit"]
        return {f"{name}: lost at most {LIMIT} times the limit": close}
    most = MOST_SECONDS[name][part]
    bars = {
        f"{name} {part}: within {most} s": found["seconds"] <= most,
        f"{name} {part}: below {MOST_GIGABYTES} GB": found["gigabytes"] < MOST_GIGABYTES,
    }
    if "interval_seconds" in found:
        quick = found["interval_seconds"] <= INTERVAL_SECONDS
        bars[f"{name}: an interval within {INTERVAL_SECONDS} s"] = quick
    return bars


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=MOST_SECONDS, default=list(MOST_SECONDS))
    parser.add_argument(
        "--presets", nargs="+", choices=["linear", "auto"], default=["linear", "auto"]
    )
    parser.add_argument("--store", type=Path, default=HERE / "results" / "wide.jsonl")
    parser.add_argument("--redo", action="store_true")
    parser.add_argument("--here", nargs=2, metavar=("NETWORK", "PART"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.here:
        name, part = asked.here
        print(json.dumps(accuracy(name) if part == "accuracy" else fit(name, part)))
        return
    parts = [*asked.presets, *(["accuracy"] if "linear" in asked.presets else [])]
    wanted = list(itertools.product(asked.networks, parts))
    lines = Lines(asked.store, ("network", "part"))
    lines.run(elsewhere, wanted, jobs=1, redo=asked.redo)
    found = list(lines.of(wanted))
    finish({"parts": found}, {bar: met for one in found for bar, met in bars_of(one).items()})


if __name__ == "__main__":
    main()
