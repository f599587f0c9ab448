"""What two processes gain in training on rows on disk: lanes that meet once a round, or each step.

1,000,000 rows a -> b -> c with waves, 40 % of b lost, one pass, from the network of a sample of
10,000. Each way has processes of its own:

one     lanes, one process
start   two workers (joblib) that import what they need, and do nothing; they start once a fit
lanes   the same lanes, two workers. Bars: the same bits; at most 0.6 of the time of one, once the
        workers have started
steps   two processes that average the gradient of every step (torch.distributed, gloo on the
        loopback), as `torchrun` would start them; nothing is restarted if one dies

The time is that of the longest way through the work, in processor time: of the process that hands
out, and of the busiest that works. So a machine that others use too says what an idle one would,
but for what waiting costs. How far each gets is the divergence from the truth.

    python benchmarks/lanes.py [--rows 1000000]
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from report import finish
from torch import distributed

from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.data.stored_rows import StoredRows
from misscnf.fitting.fit import fit_model
from misscnf.fitting.settings import Settings, preset_settings
from misscnf.fitting.train import lanes
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Shape
from misscnf.model import StructuralModel, Structure
from misscnf.threads import one_thread
from misscnf.workers import each, workers

STRUCTURE = Structure.of(CausalGraph.read("a -> b; b -> c"), [CONTINUOUS] * 3)
MOST_OF_ONE = 0.6


def draw(rows: int, seed: int) -> torch.Tensor:
    """Draws complete rows."""
    a, u, v = np.random.default_rng(seed).normal(size=(3, rows))
    b = np.sin(2 * a) + 0.5 * u
    return torch.from_numpy(np.stack([a, b, np.tanh(2 * b) + 0.5 * v], 1))


def holed(rows: int, seed: int) -> torch.Tensor:
    """Draws rows with holes, which are NaN."""
    values = draw(rows, seed)
    values[torch.from_numpy(np.random.default_rng(seed + 1).random(rows) < 0.4), 1] = torch.nan
    return values


def divergence(model: StructuralModel) -> float:
    """Returns how far a model is from the truth, by 50,000 rows."""
    values, normal = draw(50_000, 99), torch.distributions.Normal
    a, b, c = values.T
    truth = normal(0, 1).log_prob(a) + normal(torch.sin(2 * a), 0.5).log_prob(b)
    truth = truth + normal(torch.tanh(2 * b), 0.5).log_prob(c)
    with torch.no_grad():
        return float((truth - model.log_prob(values)).mean())


def settings_for(rows: int) -> Settings:
    """Returns settings that walk through so many rows once."""
    given = {"selection.compare": False, "shape": Shape(hidden=(16, 16))}
    settings = preset_settings("auto", given)
    steps = round(rows / (settings.streaming.lanes * settings.training.batch_for(rows)))
    return replace(settings, streaming=replace(settings.streaming, network_steps=steps))


class Reduced(lanes._Walker):
    """A walker whose every step is the mean of those of all processes."""

    def _gradient(self) -> torch.Tensor:
        found = super()._gradient()
        distributed.all_reduce(found)
        return found / distributed.get_world_size()


def every_step(
    model: StructuralModel, rows: StoredRows, settings: Settings, meet: str, rank: int
) -> StructuralModel:
    """Trains by steps that two processes take together."""
    about = {"init_method": f"file://{meet}", "rank": rank, "world_size": 2}
    distributed.init_process_group("gloo", **about)
    rounds = lanes.shards(len(rows), 0, settings.streaming, 1)
    place, share, steps = lanes._place_of(model), 1.0 / len(rounds), 0
    lanes._Walker = Reduced  # type: ignore[misc]
    with one_thread():
        for number, groups in enumerate(rounds):
            span = number * share, (number + 1) * share, steps, "cpu"
            mine = groups[rank][: min(map(len, groups))]  # as many steps as the other takes
            lane = lanes._Lane(rows, mine, settings, 0, 2 * number + rank, *span)
            place, _, count = lanes._walk(model, place, lane)
            steps += count
    distributed.destroy_process_group()
    return lanes._model_at(model, place)


def here(what: str, folder: Path, rank: int) -> dict[str, Any]:
    """Trains in one way, and says what it took."""
    rows, settings, model = pickle.loads((folder / "given").read_bytes())
    about = (rows, None, settings)
    clock, before = time.perf_counter(), time.process_time()
    if what == "steps":
        found = every_step(model, rows, settings, str(folder / "meet"), rank)
    elif what == "start":
        found = model
        with workers(jobs=2):
            each(lanes._rate, [(0.5, settings.training)] * 2)
    elif what == "lanes":
        with workers(jobs=2):
            found, _ = lanes.train_in_lanes(model, *about)
    else:
        found, _ = lanes.train_in_lanes(model, *about)
    own, clock = time.process_time() - before, time.perf_counter() - clock
    if what in ("start", "lanes"):  # the two share rounds evenly
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)
        ended = os.times()
        own += 0.5 * (ended.children_user + ended.children_system)
    vector = torch.cat([part.detach().flatten() for part in found.parameters()])
    return {
        "processor_seconds": own,
        "seconds": clock,
        "divergence": divergence(found),
        "digest": float(vector @ torch.arange(1.0, len(vector) + 1.0, dtype=vector.dtype)),
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--steps", action="store_true", help="take only the way of steps")
    parser.add_argument("--here", nargs=3, metavar=("WAY", "FOLDER", "RANK"))
    arguments = parser.parse_args()
    if arguments.here:
        what, folder, rank = arguments.here
        print(json.dumps(here(what, Path(folder), int(rank))))
        return
    with tempfile.TemporaryDirectory() as name:
        folder, settings = Path(name), settings_for(arguments.rows)
        holed(arguments.rows, 0).numpy().tofile(folder / "rows")
        rows = StoredRows(folder / "rows", 3, arguments.rows, (0, 1, 2))
        some = MemoryRows(*rows.between(0, 10_000))
        model = fit_model(STRUCTURE, some, None, settings_for(10_000)).model
        (folder / "given").write_bytes(pickle.dumps((rows, settings, model)))
        found = {"sample": {"divergence": divergence(model)}}
        for what in ("steps",) if arguments.steps else ("one", "start", "lanes", "steps"):
            ranks = range(2 if what == "steps" else 1)
            command = [sys.executable, __file__, "--here", what, name]
            started = [
                subprocess.Popen([*command, str(rank)], stdout=subprocess.PIPE, text=True)
                for rank in ranks
            ]
            ends = [json.loads(process.communicate()[0].splitlines()[-1]) for process in started]
            found[what] = max(ends, key=lambda end: end["processor_seconds"])
            print(what, found[what], flush=True)
    if arguments.steps:
        finish({**found, "rows": arguments.rows}, {})
    took = {what: its.get("processor_seconds", 0.0) for what, its in found.items()}
    ratio = (took["lanes"] - took["start"]) / took["one"]
    finish(
        {**found, "two workers over one": ratio, "rows": arguments.rows},
        {
            f"two workers take at most {MOST_OF_ONE:g} of one": ratio <= MOST_OF_ONE,
            "two workers find the bits of one": found["lanes"]["digest"] == found["one"]["digest"],
        },
    )


if __name__ == "__main__":
    main()
