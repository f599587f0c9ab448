r"""A hidden confounder with proxies: is the effect unbiased, and do intervals hold the truth?

A world with two proxies z and w of a hidden cause u, a binary child k, a binary treatment and a
cause x that is shown; 2,000 rows, 40 % of all cells lost completely at random:

    z = 0.9 u + 0.6 ε,   w = 0.9 u + 0.6 ε,   k ~ Bernoulli(logistic(1.2 u)),
    t ~ Bernoulli(logistic(u + 0.4 z + 0.5 x)),   y = t + 1.2 u + 0.4 w + 0.5 x + ε.

The effect of t on y is 1. Two models answer: one with u as a latent node, and back-door adjustment
for all that is shown, z, w, k and x, which leaves some of u out. Bars:

- the mean error of the first 20 seeds is zero by Student's test (p above 0.01: a method without
  bias fails it in 1 % of runs), while that of the adjustment is not (p below 0.01);
- of 60 intervals, 53 to 60 hold the truth (a right method has fewer in 3 % of runs).

    python benchmarks/proxies.py [--tables 60] [--preset linear] [--summary]
"""

from __future__ import annotations

import argparse
import logging
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from report import finish
from scipy import special, stats
from store import Lines, commit

from misscnf import MissCNF

ROWS, LOST, TRUTH = 2_000, 0.4, 1.0
BIAS_TABLES, P_VALUE, FEWEST = 20, 0.01, 53 / 60
HIDDEN = "u -> t; u -> y; u -> z; u -> w; u -> k; z -> t; w -> y; t -> y; x -> t; x -> y"
ADJUSTED = "z, w, x, k -> t; z, w, x, k, t -> y; z -> w; z, w -> k"


def table(seed: int) -> pd.DataFrame:
    """Returns a table of the world with its holes."""
    rng = np.random.default_rng(seed)
    u, x = rng.normal(size=ROWS), rng.normal(size=ROWS)
    z, w = 0.9 * u + 0.6 * rng.normal(size=(2, ROWS))
    k = rng.random(ROWS) < special.expit(1.2 * u)
    t = rng.random(ROWS) < special.expit(u + 0.4 * z + 0.5 * x)
    y = TRUTH * t + 1.2 * u + 0.4 * w + 0.5 * x + rng.normal(size=ROWS)
    complete = pd.DataFrame({"x": x, "z": z, "w": w, "k": k * 1.0, "t": t * 1.0, "y": y})
    return complete.mask(rng.random(complete.shape) < LOST)


def one_table(seed: int, preset: str) -> dict[str, Any]:
    """Asks both models for the effect with its interval."""
    torch.set_num_threads(1)
    logging.getLogger("misscnf").setLevel(logging.ERROR)
    df, record, start = table(seed), {"seed": seed}, time.process_time()
    for name, graph, latent in (("hidden", HIDDEN, ["u"]), ("adjusted", ADJUSTED, None)):
        model = MissCNF(graph, preset, latent=latent, seed=seed, progress=False).fit(df)
        effect = model.effect("y", do={"t": 1}, versus={"t": 0}, interval=0.95, seed=seed)
        # an interval that is not there, for a reason, is one that does not hold
        lower, upper = effect.interval or (np.nan, np.nan)
        record[name] = [effect.estimate, lower, upper]
        record[f"{name}_doubts"] = list(effect.doubts)
    return {**record, "cpu_seconds": round(time.process_time() - start, 1)}


def in_sight(seed: int) -> float:
    """Returns the error of least squares on rows that show y, t, w and x, with u in plain sight.

    Nobody has u. It says how much of an error of a run of tables is luck of its noise and holes.
    """
    rng = np.random.default_rng(seed)
    u = rng.normal(size=ROWS)
    df = table(seed).assign(u=u).dropna(subset=["y", "t", "w", "x"])
    causes = np.column_stack([np.ones(len(df)), df[["t", "u", "w", "x"]]])
    return float(np.linalg.lstsq(causes, df["y"].to_numpy(), rcond=None)[0][1] - TRUTH)


def summary(records: list[dict], name: str) -> dict[str, Any]:
    """Returns bias, its test and coverage of one model."""
    estimate, lower, upper = np.array([record[name] for record in records]).T
    every = estimate - TRUTH
    first = every[: min(BIAS_TABLES, len(estimate))]
    return {
        "tables": len(records),
        "mean_error": float(first.mean()),
        "its_standard_error": float(stats.sem(first)),
        "p_value": float(stats.ttest_1samp(first, 0.0).pvalue),
        "of_all": [float(every.mean()), float(stats.sem(every))],
        "held": int(((lower <= TRUTH) & (upper >= TRUTH)).sum()),
        "without_interval": int(np.isnan(lower).sum()),
        "mean_width_over_3.92_sd": float(
            np.nanmean(upper - lower) / (3.92 * estimate.std(ddof=1))
        ),
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--preset", default="linear")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--version", default=commit(), help="of the run; by default the commit")
    parser.add_argument("--summary", action="store_true", help="only judge what the store has")
    parser.add_argument("--store", type=Path, default=Path("benchmarks/results/proxies.jsonl"))
    options = parser.parse_args()
    lines = Lines(options.store, ("seed",), f"{options.version} {options.preset}")
    wanted = [(seed,) for seed in range(options.tables)]
    if not options.summary:
        lines.run(partial(one_table, preset=options.preset), wanted, options.jobs)
    records = list(lines.of(wanted))
    figures: dict[str, Any] = {"cpu_seconds": sum(record["cpu_seconds"] for record in records)}
    figures |= {name: summary(records, name) for name in ("hidden", "adjusted")}
    seen = np.array([in_sight(record["seed"]) for record in records])
    first = seen[:BIAS_TABLES]
    figures["u in sight"] = {
        "mean_error": [float(first.mean()), float(stats.sem(first))],
        "of_all": [float(seen.mean()), float(stats.sem(seen))],
    }
    hidden, adjusted = figures["hidden"], figures["adjusted"]
    bars = {
        "the latent model has no bias": hidden["p_value"] > P_VALUE,
        "adjustment for the proxies has": adjusted["p_value"] < P_VALUE,
        "intervals hold the truth": hidden["held"] >= FEWEST * hidden["tables"],
    }
    finish(figures, bars)


if __name__ == "__main__":
    main()
