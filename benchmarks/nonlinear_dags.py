"""Random nonlinear graphs with holes everywhere: what `auto` costs and how good it is.

Every node has two parents (the first two have fewer); a tanh, a sine or a parabola of each, noise
of its own, unit variance. 5,000 rows, 40 % of all cells lost completely at random. By the size of
the graph:

- the processor time of `auto` (bars: 60 s at 10 nodes, 25 s where nothing is lost, 180 s at 50
  nodes; growth no faster than d^1.3);
- the mean log-density of fresh complete rows less that of the truth, against the same flow fitted
  after MICE, after MissForest, and to the rows that are complete (bar: above all of them);
- the stated errors of the log-density of rows with holes: in how many of 200 rows one evaluation
  lies more than four of them from the mean of eight others (bar: as many as errors of 16
  randomisations, t with 15 degrees of freedom, exceed with a chance of 1e-3).

Parabolas of parabolas have heavy tails, in which curves go on straight: from 50 nodes on a few of
the fresh rows decide the mean. So the median over the rows is given too.

    python benchmarks/nonlinear_dags.py                            # all of it, in one go
    python benchmarks/nonlinear_dags.py --sizes 20 --only misscnf errors --models FOLDER
    python benchmarks/nonlinear_dags.py --sizes 50 --only mice --most-seconds 1800

Every part of a size (`misscnf`, its stated `errors`, `complete` rows, and each rival) is a line of
a store, written once it is done and not done again: a run can be made in pieces. Rivals stop after
so many seconds of processor time, which is then what is known of them.
"""

from __future__ import annotations

import argparse
import itertools
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from misscnf_study.rivals.mice import Mice
from misscnf_study.rivals.miss_forest import ForestSettings, MissForest
from report import finish
from scipy import stats
from store import Lines

from misscnf import MissCNF

HERE = Path(__file__).parent
PARTS = ("misscnf", "errors", "complete", "mice", "miss_forest", "listwise")
LOST, NOISE, FRESH, JUDGED = 0.4, 0.5, 2_000, 200
MOST_SECONDS = {10: 60.0, 50: 180.0}
MOST_COMPLETE_SECONDS, MOST_GROWTH = 25.0, 1.3
FOUR_ERRORS = 2 * stats.t.sf(4.0, df=15)
"""The chance that an error is beyond four stated ones."""
FORMS = (np.tanh, np.sin, lambda z: 0.5 * (z * z - 1.0))


@dataclass
class Dag:
    """A random graph with its laws: x_i = (Σ_j w_j f_j(r_j x_j) + 0.5 u − centre) / scale."""

    parents: list[list[tuple[int, int, float, float]]]
    """of each node: parent, form, rate and weight"""
    centre: np.ndarray
    scale: np.ndarray

    @staticmethod
    def draw(nodes: int, seed: int) -> Dag:
        """Draws a graph; its centres and scales come from 100,000 rows."""
        rng = np.random.default_rng(seed)
        parents = []
        for i in range(nodes):
            mine = []
            for j in rng.choice(i, size=min(2, i), replace=False) if i else []:
                form = int(rng.integers(len(FORMS)))
                rate = 1.0 if form == 2 else rng.uniform(1.0, 2.0)
                mine.append((int(j), form, rate, rng.choice([-1, 1]) * rng.uniform(0.6, 1.2)))
            parents.append(mine)
        dag = Dag(parents, np.zeros(nodes), np.ones(nodes))
        dag.sample(100_000, rng, learn=True)
        return dag

    def mean(self, x: np.ndarray, i: int) -> np.ndarray:
        """Returns what the parents of a node make, before it is standardised."""
        parts = [w * FORMS[form](rate * x[:, j]) for j, form, rate, w in self.parents[i]]
        return np.sum(parts, axis=0) if parts else np.zeros(len(x))

    def sample(self, rows: int, rng: np.random.Generator, *, learn: bool = False) -> np.ndarray:
        """Draws rows."""
        x = np.empty((rows, len(self.parents)))
        for i in range(len(self.parents)):
            raw = self.mean(x, i) + NOISE * rng.normal(size=rows)
            if learn:
                self.centre[i], self.scale[i] = raw.mean(), raw.std()
            x[:, i] = (raw - self.centre[i]) / self.scale[i]
        return x

    def log_prob(self, x: np.ndarray) -> np.ndarray:
        """Returns the true log-density of rows."""
        total = np.zeros(len(x))
        for i in range(len(self.parents)):
            u = (x[:, i] * self.scale[i] + self.centre[i] - self.mean(x, i)) / NOISE
            total += -0.5 * u * u - 0.5 * math.log(2.0 * math.pi) + math.log(self.scale[i] / NOISE)
        return total

    @property
    def graph(self) -> str:
        """The graph as text."""
        return "; ".join(f"x{j} -> x{i}" for i, its in enumerate(self.parents) for j, *_ in its)

    def frame(self, x: np.ndarray) -> pd.DataFrame:
        """Returns rows as a table."""
        return pd.DataFrame(x, columns=[f"x{i}" for i in range(len(self.parents))])


def fit(dag: Dag, df: pd.DataFrame) -> tuple[MissCNF, float]:
    """Fits `auto`; returns the model and the processor time."""
    started = time.process_time()
    model = MissCNF(dag.graph, kinds="continuous", progress=False).fit(df)
    return model, time.process_time() - started


def gaps(dag: Dag, model: MissCNF, fresh: np.ndarray) -> np.ndarray:
    """Returns the log-densities of fresh complete rows, less the true ones."""
    return model.log_prob(dag.frame(fresh)).to_numpy() - dag.log_prob(fresh)


def beyond_four_errors(model: MissCNF, df: pd.DataFrame) -> tuple[int, int]:
    """Returns how many rows an evaluation misses by four errors, and how many have an error."""
    once = model.log_prob(df, quality=True)
    others = [model.log_prob(df, quality=True, seed=seed) for seed in range(1, 9)]
    careful = np.logaddexp.reduce([other["log_prob"] for other in others]) - math.log(len(others))
    spread = np.sqrt(np.mean([other["standard_error"] ** 2 for other in others], axis=0))
    error = np.hypot(once["standard_error"], spread / math.sqrt(len(others)))
    has = error > 0
    away = (once["log_prob"] - careful).abs()
    return int((away[has] > 4 * error[has]).sum()), int(has.sum())


class OutOfTimeError(Exception):
    """A rival has used up its processor time."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises once the block has taken so many seconds of processor time."""

    def stop(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def completed(df: pd.DataFrame, rival: str) -> pd.DataFrame:
    """Returns the table as a rival has it: its holes filled, or its incomplete rows gone."""
    if rival == "listwise":
        return df.dropna()
    forest = MissForest(ForestSettings(trees=20, sweeps=4))
    imputer = Mice(rounds=10) if rival == "mice" else forest
    return imputer.fit(df, seed=0).complete(df)


def summary(dag: Dag, model: MissCNF, fresh: np.ndarray) -> dict[str, float]:
    """Returns how far a model falls short of the truth."""
    away = gaps(dag, model, fresh)
    return {"short": float(away.mean()), "median": float(np.median(away))}


def measure(
    nodes: int, rows: int, part: str, most_seconds: float, models: Path | None
) -> dict[str, Any]:
    """Returns the figures of one part."""
    dag, rng = Dag.draw(nodes, seed=nodes), np.random.default_rng(1)
    complete, fresh = dag.frame(dag.sample(rows, rng)), dag.sample(FRESH, rng)
    df = complete.mask(rng.random(complete.shape) < LOST)
    found: dict[str, Any] = {"nodes": nodes, "rows": rows, "part": part}
    kept = None if models is None else models / f"{nodes}-{rows}.misscnf"
    if part == "misscnf":
        model, seconds = fit(dag, df)
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            model.save(kept)
        forms = pd.Series([str(form) for form in model.forms_.values()]).value_counts()
        stages = {stage: round(its, 1) for stage, its in model.timings_.items()}
        about = {"stages": stages, "forms": forms.to_dict(), "seconds": round(seconds, 1)}
        return found | about | summary(dag, model, fresh)
    if part == "errors":
        known = kept is not None and kept.exists()
        model = MissCNF.load(kept) if known else fit(dag, df)[0]
        beyond, judged = beyond_four_errors(model, df.iloc[:JUDGED])
        return found | {"beyond": beyond, "judged": judged}
    if part == "complete":
        return found | {"seconds": round(fit(dag, complete)[1], 1)}
    try:
        with time_limit(most_seconds):
            table = completed(df, part)
            if len(table) < 2 * nodes:
                return found | {"impossible": f"{len(table)} complete rows"}
            return found | summary(dag, fit(dag, table)[0], fresh)
    except OutOfTimeError:
        return found | {"impossible": f"not done after {most_seconds:g} s"}


def bars_of(found: dict[tuple[int, str], dict[str, Any]]) -> dict[str, bool]:
    """Returns which bars are met."""
    bars = {}
    for (nodes, part), its in found.items():
        mine = found.get((nodes, "misscnf"))
        if part == "misscnf" and nodes in MOST_SECONDS:
            limit = MOST_SECONDS[nodes]
            bars[f"{nodes} nodes in {limit:.0f} s"] = its["seconds"] <= limit
        elif part == "complete":
            limit = MOST_COMPLETE_SECONDS
            bars[f"{nodes} nodes, complete, in {limit:.0f} s"] = its["seconds"] <= limit
        elif part == "errors":
            most = stats.binom.isf(1e-3, its["judged"], FOUR_ERRORS) if its["judged"] else 0
            bars[f"stated errors at {nodes} nodes"] = bool(its["beyond"] <= most)
        elif "short" in its and mine is not None and mine is not its:
            for what in ("short", "median"):
                bars[f"above {part} at {nodes} nodes ({what})"] = mine[what] > its[what]
    exponent = growth(found)
    if exponent is not None:
        bars[f"no faster than d^{MOST_GROWTH}"] = exponent <= MOST_GROWTH
    return bars


def growth(found: dict[tuple[int, str], dict[str, Any]]) -> float | None:
    """Returns the exponent of the processor time in the number of nodes."""
    seconds = {d: its["seconds"] for (d, part), its in found.items() if part == "misscnf"}
    if len(seconds) < 2:
        return None
    return float(np.polyfit(*(np.log(list(of)) for of in (seconds, seconds.values())), 1)[0])


def main() -> None:
    """Runs the benchmark."""
    torch.set_num_threads(1)
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--sizes", type=int, nargs="+", default=[10, 20, 50, 100])
    reader.add_argument("--rows", type=int, default=5_000)
    reader.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    reader.add_argument("--most-seconds", type=float, default=1800.0, help="of a rival")
    reader.add_argument("--models", type=Path, help="a folder where fits are kept")
    reader.add_argument("--store", type=Path, default=HERE / "results" / "nonlinear_dags.jsonl")
    reader.add_argument("--redo", action="store_true")
    asked = reader.parse_args()
    wanted = [
        (nodes, asked.rows, part)
        for nodes, part in itertools.product(asked.sizes, asked.only)
        if part != "complete" or nodes == min(MOST_SECONDS)
    ]
    lines = Lines(asked.store, ("nodes", "rows", "part"))
    work = partial(measure, most_seconds=asked.most_seconds, models=asked.models)
    lines.run(work, wanted, jobs=1, redo=asked.redo)
    found = {(one["nodes"], one["part"]): one for one in lines.of(wanted)}
    figures: dict[str, Any] = {"rows": asked.rows, "parts": list(found.values())}
    finish({**figures, "growth": growth(found)}, bars_of(found))


if __name__ == "__main__":
    main()
