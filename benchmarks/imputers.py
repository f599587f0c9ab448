"""The imputers that train: how close they come, how wide their answers are, what they cost.

    python benchmarks/imputers.py accuracy      # chain_nlin, triangle_nlin; MCAR 60 %, 2,000 rows
    python benchmarks/imputers.py spread        # DiffPuter's draws and means on the same tables
    python benchmarks/imputers.py cost          # seconds and memory on fork_nlin, 20,000 rows

`accuracy`: the root mean squared error over that of mean imputation, in the worst column.
`spread`: the variance of filled x2 around a polynomial of x1, over that of the truth, in rows that
show only x1; there x2 | x1 is Gaussian with a mean and a variance that are known. Few draws that
are far off can make it large, so the same by quartiles around the true mean stands beside it: it
says how wide most draws are. There is no bar against draws that are too wide. `cost`: fit and
completion of both tables. Options narrow: --method, --seeds, --rows, --threads; --preset paper
measures the other one (no bars of time then). DiffPuter's would take days: an epoch and a look at
the network are measured, and multiplied with how many there are at most.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from misscnf_study.data import Tables, make_data
from misscnf_study.rivals import DiffPuter, Imputer, Kpi, Mean, Miracle
from misscnf_study.rivals.diffputer import PRESETS
from misscnf_study.worlds import load_scm
from report import finish, peak_memory

WORLDS = ("chain_nlin", "triangle_nlin")
RATE = 0.6
MARGINS = {"kpi": 0.85, "diffputer": 0.85, "miracle": 0.8, "omiracle": 0.75}
"""At most this share of mean imputation's error, in every column."""
MEAN = {"chain_nlin": lambda x1: np.exp(x1 / 2.0), "triangle_nlin": lambda x1: 2.0 * x1**2}
VARIANCE = {"chain_nlin": 1.0 / 16.0, "triangle_nlin": 1.0}
"""Of x2 given x1."""
QUARTILES = 1.348980
"""How far apart those of a standard normal are."""
DRAWN, AVERAGED = 0.9, 0.4
"""At least, and at most, this share of that variance in draws and in means."""
SECONDS = {"kpi": 60.0, "omiracle": 60.0, "miracle": 60.0, "diffputer": 900.0}


def watch(stage: str, done: int, total: int) -> None:
    """Shows progress on standard error where that is a terminal."""
    if sys.stderr.isatty():
        print(f"\r{stage}: {done} of {total}   ", end="", file=sys.stderr)


def maker(method: str, preset: str, scm: str, tables: Tables) -> Callable[[], Imputer]:
    """Returns what builds the imputer of a method."""
    graph = load_scm(scm).graph
    return {
        "kpi": lambda: Kpi(preset, watch=watch),
        "diffputer": lambda: DiffPuter(preset, watch=watch),
        "diffputer_draw": lambda: DiffPuter(preset, readout="draw", watch=watch),
        "miracle": lambda: Miracle(preset, watch=watch),
        "omiracle": lambda: Miracle(preset, graph=graph, causes=tables.causes, watch=watch),
    }[method]


def errors(done: pd.DataFrame, tables: Tables) -> pd.Series:
    """Returns the root mean squared error in the holes of each column that has some."""
    lost = tables.train.isna()
    gap = (done - tables.complete_train).where(lost)
    return np.sqrt((gap**2).mean()[lost.any()])


def spread(done: pd.DataFrame, tables: Tables, scm: str) -> tuple[float, float]:
    """Returns the variance of x2 around a polynomial of x1, over the truth's; by quartiles too."""
    rows = tables.train[["x2", "x3"]].isna().all(axis=1)
    x1, x2 = done.loc[rows, "x1"], done.loc[rows, "x2"]
    curve = np.polynomial.Polynomial.fit(x1, x2, 5)
    low, high = np.quantile(x2 - MEAN[scm](x1), [0.25, 0.75])
    every, most = (x2 - curve(x1)).var(), ((high - low) / QUARTILES) ** 2
    return float(every / VARIANCE[scm]), float(most / VARIANCE[scm])


def accuracy(options: argparse.Namespace) -> None:
    """Measures errors."""
    figures: dict[str, list[float]] = {}
    for method in options.method or MARGINS:
        for scm in WORLDS:
            for seed in range(options.seeds):
                tables = make_data(scm, "mcar", RATE, seed, options.rows or 2000).tables
                mean = errors(Mean().fit(tables.train, seed).complete(tables.train), tables)
                imputer = maker(method, options.preset, scm, tables)().fit(tables.train, seed)
                ratio = errors(imputer.complete(tables.train), tables) / mean
                print(f"{method:10} {scm:14} seed {seed}: {ratio.round(3).to_dict()}", flush=True)
                figures.setdefault(method, []).append(float(ratio.max()))
    bars = {
        f"{method}: at most {MARGINS[method]} of mean imputation's error": max(found)
        <= MARGINS[method]
        for method, found in figures.items()
    }
    finish({"worst_ratio": {name: max(found) for name, found in figures.items()}}, bars)


def spreads(options: argparse.Namespace) -> None:
    """Measures variances."""
    figures: dict[str, list[tuple[float, float]]] = {"diffputer": [], "diffputer_draw": []}
    for method, found in figures.items():
        for scm in WORLDS:
            for seed in range(options.seeds):
                tables = make_data(scm, "mcar", RATE, seed, options.rows or 2000).tables
                imputer = maker(method, options.preset, scm, tables)().fit(tables.train, seed)
                found.append(spread(imputer.complete(tables.train), tables, scm))
                truth = spread(tables.complete_train, tables, scm)
                print(
                    f"{method:14} {scm:14} seed {seed}: {found[-1][0]:.3f} of the variance of "
                    f"x2 | x1, by quartiles {found[-1][1]:.3f}; the true rows {truth[0]:.3f} and "
                    f"{truth[1]:.3f}",
                    flush=True,
                )
    drawn, averaged = (min(figures["diffputer_draw"])[0], max(figures["diffputer"])[0])
    bars = {
        f"draws have at least {DRAWN}": drawn >= DRAWN,
        f"means have at most {AVERAGED}": averaged <= AVERAGED,
    }
    finish({"share_of_variance": figures}, bars)


def days_of_diffputer(tables: Tables) -> dict[str, float]:
    """Measures what the paper's preset consists of; returns at most how long it would take."""
    paper = PRESETS["paper"]

    def seconds(epochs: int, steps: int) -> float:
        below_target = replace(paper, rounds=1, trials=1, epochs=epochs, steps=steps, repeats=1)
        started = time.perf_counter()
        DiffPuter(below_target).fit(tables.train, seed=0)
        return time.perf_counter() - started

    seconds(1, 2)  # to warm up
    least = seconds(1, 2)
    epoch = (seconds(3, 2) - least) / 2
    look = (seconds(1, 5) - least) / 6  # Heun's steps look twice
    looks = 2 * (paper.steps - 1) * paper.repeats + 1
    training = paper.rounds * paper.epochs * epoch / 86400
    drawing = paper.rounds * paper.trials * looks * look / 86400
    print(
        f"diffputer  {len(tables.train)} rows, preset paper: {epoch:.1f} s an epoch, {look:.2f} s "
        f"a look at all rows with holes; at most {training:.1f} days to train, {drawing:.1f} to "
        f"draw"
    )
    return {"epoch": epoch, "look": look, "days_to_train": training, "days_to_draw": drawing}


def cost(options: argparse.Namespace) -> None:
    """Measures time and memory."""
    figures, bars = {}, {}
    scm = "fork_nlin"
    tables = make_data(scm, "mcar", RATE, 0, options.rows).tables
    for method in options.method or SECONDS:
        if (method, options.preset) == ("diffputer", "paper"):
            figures[method] = days_of_diffputer(tables)
            continue
        imputer = maker(method, options.preset, scm, tables)()
        started, cpu = time.perf_counter(), time.process_time()
        imputer.fit(tables.train, seed=0)
        fitted = time.perf_counter() - started
        imputer.complete(tables.train)
        imputer.complete(tables.validation)
        seconds = time.perf_counter() - started
        figures[method] = {
            "seconds": seconds,
            "fit_seconds": fitted,
            "cpu_seconds": time.process_time() - cpu,
            "peak_mb": peak_memory(),
        }
        print(
            f"{method:10} {len(tables.train)} rows, preset {options.preset}: {seconds:.1f} s "
            f"({fitted:.1f} to fit, {figures[method]['cpu_seconds']:.1f} of CPU), peak "
            f"{figures[method]['peak_mb']:.0f} MB",
            flush=True,
        )
        if options.preset == "fast" and options.rows is None:
            limit = SECONDS[method]
            bars[f"{method}: at most {limit:g} s at 20,000 rows"] = seconds <= limit
    finish({"threads": options.threads, "preset": options.preset, "cost": figures}, bars)


def main() -> None:
    """Runs one of the three."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = {"accuracy": accuracy, "spread": spreads, "cost": cost}
    parser.add_argument("what", choices=commands)
    parser.add_argument("--method", action="append", choices=list(MARGINS))
    parser.add_argument("--preset", choices=["fast", "paper"], default="fast")
    parser.add_argument("--seeds", type=int, default=3, help="how many, from 0")
    parser.add_argument("--rows", type=int, help="rows to train on, instead of 2,000 or 20,000")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    commands[options.what](options)


if __name__ == "__main__":
    main()
