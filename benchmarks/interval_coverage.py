"""Do 95 % intervals hold the truth in 95 of 100 tables, and are they no wider than need be?

Two worlds, MAR at 60 %, 2,000 rows, 60 tables each: a chain of curved mechanisms (`chain_nlin`)
and the clinic with columns of every kind. The question is the contrast of the treatment's 75th
against its 25th percentile on the last node: x1 = ±0.6745 on x3, treated = 1 against 0 on the risk
of recovery. Bars: 53 to 60 of 60 intervals hold the truth (a right method falls below 53 in 1 %
of runs), and their mean width is at most 1.4 times 3.92 standard deviations of the estimates.

    python benchmarks/interval_coverage.py [--world chain_nlin clinic] [--tables 60] [--jobs 2]

The store keeps a line of JSON a table: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from joblib import Parallel, delayed
from misscnf_study.losses import ampute
from misscnf_study.worlds import load_scm
from report import finish

from misscnf import MissCNF
from misscnf.draws import derive_generator

ROWS, LEVEL = 2000, 0.95
QUARTILE = 0.6744897501960817
QUESTIONS = {
    "chain_nlin": ("x1", "x3", QUARTILE, -QUARTILE),
    "clinic": ("treated", "recovered", 1.0, 0.0),
}
FEWEST, WIDEST = 53 / 60, 1.4


def truth(name: str, units: int = 4_000_000, at_once: int = 100_000) -> float:
    """Returns the true contrast, from shared noise: its error is below 0.001."""
    world, (treatment, outcome, high, low) = load_scm(name), QUESTIONS[name]
    generator, total = derive_generator(0, "truth", name), 0.0
    cause, node = world.graph.index(treatment), world.graph.index(outcome)
    for _ in range(units // at_once):
        shape = (at_once, world.model.noise_width)
        noise = torch.randn(shape, generator=generator, dtype=torch.float64)
        for sign, value in ((1.0, high), (-1.0, low)):
            clamp = {cause: torch.tensor([value], dtype=torch.float64)}
            total += sign * float(world.model.generate(noise, clamp)[:, node].sum())
    return total / units


def one_table(name: str, seed: int) -> dict[str, object]:
    """Fits one simulated table and asks for the effect with its interval."""
    torch.set_num_threads(1)
    world, (treatment, outcome, high, low) = load_scm(name), QUESTIONS[name]
    df = ampute(world.sample(ROWS, seed), world.graph, "mar", 0.6, seed=seed)
    kinds = world.kinds if isinstance(world.kinds, str) else dict(world.kinds)
    start = time.process_time()
    model = MissCNF(world.graph, kinds=kinds, seed=seed, progress=False).fit(df)
    fitted = time.process_time()
    effect = model.effect(
        outcome, do={treatment: high}, versus={treatment: low}, interval=LEVEL, seed=seed
    )
    lower, upper = effect.interval or (np.nan, np.nan)
    return {
        "world": name,
        "seed": seed,
        "chosen": model.chosen_,
        "comparison": model.comparison_,
        "estimate": effect.estimate,
        "lower": lower,
        "upper": upper,
        "fit_seconds": round(fitted - start, 2),
        "interval_seconds": round(time.process_time() - fitted, 2),
    }


def summary(name: str, records: list[dict]) -> dict[str, object]:
    """Returns coverage, width and cost of one world."""
    value = truth(name)
    found = {key: np.array([r[key] for r in records]) for key in ("estimate", "lower", "upper")}
    spread = float(np.std(found["estimate"], ddof=1))
    return {
        "tables": len(records),
        "truth": value,
        "mean_estimate": float(found["estimate"].mean()),
        "sd_of_estimates": spread,
        "held_truth": int(((found["lower"] <= value) & (value <= found["upper"])).sum()),
        "mean_width": float((found["upper"] - found["lower"]).mean()),
        "width_over_3.92_sd": float((found["upper"] - found["lower"]).mean() / (3.92 * spread)),
        "networks_chosen": sum(r["chosen"] == "network" for r in records),
        "curves_chosen": sum(r["chosen"] == "curve" for r in records),
        "fit_cpu_seconds": float(np.mean([r["fit_seconds"] for r in records])),
        "interval_cpu_seconds": float(np.mean([r["interval_seconds"] for r in records])),
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", nargs="+", default=list(QUESTIONS), choices=list(QUESTIONS))
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--store", type=Path, default=Path("benchmarks/results/interval_coverage.jsonl")
    )
    options = parser.parse_args()
    options.store.parent.mkdir(parents=True, exist_ok=True)
    kept = options.store.read_text().splitlines() if options.store.exists() else []
    records = {(r["world"], r["seed"]): r for r in map(json.loads, kept)}
    wanted = [(name, seed) for name in options.world for seed in range(options.tables)]
    work = (delayed(one_table)(*pair) for pair in wanted if pair not in records)
    for record in Parallel(n_jobs=options.jobs, return_as="generator_unordered")(work):
        records[record["world"], record["seed"]] = record
        with options.store.open("a") as store:
            store.write(json.dumps(record) + "\n")
        print(record, flush=True)
    figures: dict[str, object] = {}
    bars: dict[str, bool] = {}
    for name in options.world:
        mine = [records[pair] for pair in wanted if pair[0] == name]
        figures[name] = found = summary(name, mine)
        print(name, json.dumps(found, indent=1))
        bars[f"{name}: hold the truth"] = bool(found["held_truth"] >= FEWEST * len(mine))
        bars[f"{name}: not too wide"] = bool(found["width_over_3.92_sd"] <= WIDEST)
    finish(figures, bars)


if __name__ == "__main__":
    main()
