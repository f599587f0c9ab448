"""How a training step grows with the graph: Chain_d with alternating holes, d = 4 … 1024.

Every second node of every row is hidden (paper, "Larger graph" and "Computational scalability").
Measured: seconds a step, the growth exponent; the peak memory of a step at d = 64, in a fresh
process; and, on a linear chain at its true parameters, integrated by draws, the error of the
log-likelihood against the closed form.

    python benchmarks/chain_scaling.py
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import torch
from misscnf_study.losses import ampute
from misscnf_study.worlds import load_scm
from report import fastest, finish, peak_memory

from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.data.table import IncompleteTable
from misscnf.draws import derive_generator
from misscnf.fitting.settings import Settings, Training
from misscnf.fitting.train.loop import Trainer
from misscnf.fitting.train.objective import ObservedLikelihood
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Shape
from misscnf.model import Structure

ROWS = 4096
SIZES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
SETTINGS = Settings(
    shape=Shape(hidden=(64, 64), activation="relu"),
    training=Training(batch=ROWS, steps_an_epoch=1),
)


def trainer(d: int) -> Trainer:
    """Returns a trainer on one batch of a chain of d nodes with alternating holes."""
    world = load_scm("chain_d", d=d)
    graph = world.model.graph
    holes = ampute(world.sample(ROWS, seed=0), graph, "alternating", seed=0)
    table = IncompleteTable.read(holes, graph.nodes)
    model = Structure.of(graph, [CONTINUOUS] * len(graph)).build(SETTINGS.shape)
    model.initialise(derive_generator(0, "initialise"))
    rows = MemoryRows(table.values, table.observed)
    return Trainer(ObservedLikelihood(model, rows, None, SETTINGS, 0), SETTINGS.training)


def step_seconds(d: int) -> float:
    """Returns the seconds of one step."""
    mine = trainer(d)
    every = mine.objective.order(0)
    return fastest(lambda: mine.step(every, 0), 20 if d <= 64 else 3)


def memory_of_a_step(d: int) -> float:
    """Returns the MB that a fresh process needs for two steps, beyond its imports."""
    command = [sys.executable, __file__, "--memory", str(d)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(json.loads(output.splitlines()[-1])["megabytes"])


def closed_form_error(d: int, rows: int = 200) -> float:
    """Returns the mean error of the drawn log-likelihood of a linear chain, in nats a row."""
    world = load_scm("chain_d_lin", d=d)
    graph = world.model.graph
    holes = ampute(world.sample(rows, seed=1), graph, "alternating", seed=1).to_numpy()
    observed = torch.from_numpy(~np.isnan(holes))
    values = torch.from_numpy(np.nan_to_num(holes))
    plan = Plan.make(graph, observed)

    def log_prob(*, closed_form: bool) -> torch.Tensor:
        effort = replace(SETTINGS.integration.training, closed_form=closed_form)
        generator = derive_generator(0, "closed form")
        return observed_log_prob(world.model, values, plan, generator, effort).log_prob

    return float((log_prob(closed_form=False) - log_prob(closed_form=True)).mean())


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--memory", type=int, help="measure a step at this size, in this process")
    parser.add_argument("--most", type=int, default=max(SIZES), help="the largest graph")
    arguments = parser.parse_args()
    if arguments.memory:
        before = peak_memory()
        mine = trainer(arguments.memory)
        every = mine.objective.order(0)
        mine.step(every, 0)
        mine.step(every, 0)
        print(json.dumps({"megabytes": peak_memory() - before}))
        return
    sizes = [d for d in SIZES if d <= arguments.most]
    seconds = {}
    for d in sizes:
        seconds[d] = step_seconds(d)
        print(f"d = {d:5}  {seconds[d]:8.4f} s a step  {1000 * seconds[d] / d:.3f} ms a node")
    exponent = float(np.polyfit(np.log(sizes), np.log(list(seconds.values())), 1)[0])
    last = float(np.log2(seconds[sizes[-1]] / seconds[sizes[-2]]))
    memory = memory_of_a_step(64)
    errors = {d: closed_form_error(d) for d in (64, 128)}
    print(f"growth d^{exponent:.3f} overall, d^{last:.3f} at the last doubling")
    print(f"peak memory at d = 64: {memory:.0f} MB")
    print(f"mean error against the closed form: {errors}")
    finish(
        {"seconds": seconds, "exponent": exponent, "megabytes": memory, "error": errors},
        {
            "time grows no faster than d^1.1": exponent <= 1.1,
            "peak memory at d = 64 below 1 GB": memory < 1000,
            "error within 0.05 nats at d = 64": abs(errors[64]) <= 0.05,
            "error within 0.1 nats at d = 128": abs(errors[128]) <= 0.1,
        },
    )


if __name__ == "__main__":
    main()
