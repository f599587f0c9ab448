"""Do groups differ where they differ, and only there?

Randomised trials of 1,000 rows: a stratum (40 %), an age, a treatment, and an outcome of which
about 15 % is lost, depending on all three. The outcome is continuous or binary; the effect differs
between the strata by three standard errors, or does not. Asked is the effect by stratum, with 95 %
intervals, by `auto`, and the effect in all by the line alone.

Bars: in trials with a difference at least 80 % of its intervals leave out zero, in trials without
at most 9 % do (a method that finds 5 % finds 10 or more of 100 in 3 % of runs); intervals of both
groups and of the difference hold the truth in 90 % or more; the mean effect of a group is off by
less than a quarter of a standard deviation; the effect in all has at most 1.05 times the root mean
square error of the line.

    python benchmarks/groups.py [--world …] [--tables 100] [--seconds 200]

The store keeps a line of JSON a trial: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from report import finish

from misscnf import MissCNF

ROWS, LEVEL, GRAPH = 1000, 0.95, "stratum, age, treated -> y"
DIFFERENCE = {"continuous": 0.42, "binary": 0.88}
"""Of the effects on the scale of the line: three standard errors."""
WORLDS = [f"{kind}, {what}" for kind in DIFFERENCE for what in ("differing", "equal")]


def line(frame: pd.DataFrame, treated: np.ndarray, difference: float) -> np.ndarray:
    """Returns the mean, or the logit, of the outcome."""
    more = 0.5 + difference * (frame["stratum"].to_numpy() - 0.4)
    base = 0.3 * frame["stratum"].to_numpy() + 0.02 * (frame["age"].to_numpy() - 60.0) - 0.4
    return base + more * treated


def people(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Returns who is in a trial."""
    stratum, treated = rng.random(rows) < 0.4, rng.random(rows) < 0.5
    age = rng.normal(60.0, 10.0, rows)
    return pd.DataFrame({"stratum": stratum * 1, "age": age, "treated": treated * 1})


def trial(world: str, seed: int) -> pd.DataFrame:
    """Returns a trial with holes."""
    kind, what = world.split(", ")
    rng = np.random.default_rng(seed)
    df = people(rng, ROWS)
    eta = line(df, df["treated"].to_numpy(), DIFFERENCE[kind] * (what == "differing"))
    if kind == "binary":
        df["y"] = (rng.random(ROWS) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
    else:
        df["y"] = eta + rng.normal(size=ROWS)
    lost = -2.3 + 0.6 * df["stratum"] + 0.03 * (df["age"] - 60.0) + 0.4 * df["treated"]
    return df.assign(y=df["y"].where(rng.random(ROWS) > 1.0 / (1.0 + np.exp(-lost))))


def truth(world: str) -> dict[str, float]:
    """Returns the effects in both strata and in all; their errors are below 0.0003."""
    kind, what = world.split(", ")
    df, difference = people(np.random.default_rng(0), 1_000_000), DIFFERENCE[kind]
    means = [line(df, np.full(len(df), arm), difference * (what == "differing")) for arm in (1, 0)]
    if kind == "binary":
        means = [1.0 / (1.0 + np.exp(-eta)) for eta in means]
    effect = pd.Series(means[0] - means[1]).groupby(df["stratum"].to_numpy()).mean()
    found = {"0": float(effect[0]), "1": float(effect[1])}
    whole = 0.6 * found["0"] + 0.4 * found["1"]
    return {**found, "all": whole, "difference": found["1"] - found["0"]}


def one_trial(world: str, seed: int) -> dict[str, object]:
    """Fits one trial and asks for the effect by stratum."""
    torch.set_num_threads(1)
    df, question = trial(world, seed), {"do": {"treated": 1}, "versus": {"treated": 0}}
    kinds = {"y": world.split(", ")[0]}
    start = time.process_time()
    model = MissCNF(GRAPH, kinds=kinds, seed=seed, progress=False).fit(df)
    found = model.effect("y", **question, by="stratum", interval=LEVEL, draws=20_000)
    seconds = time.process_time() - start
    plain = (
        MissCNF(GRAPH, "linear", kinds=kinds, seed=seed, progress=False)
        .fit(df)
        .effect("y", **question, draws=20_000)
    )
    assert found.groups is not None
    answers = {name: (e.estimate, *e.interval) for name, e in found.groups.effects.items()}
    (apart,) = found.groups.differences
    return {
        "world": world,
        "seed": seed,
        "form": str(model.forms_["y"]),
        **answers,
        "difference": (apart.estimate, *apart.interval),
        "all": (found.estimate, *found.interval),
        "line": plain.estimate,
        "seconds": round(seconds, 2),
    }


def summary(world: str, records: list[dict]) -> dict[str, object]:
    """Returns power, coverage, bias and error of one world."""
    true = truth(world)
    found: dict[str, object] = {"trials": len(records), "truth": true}
    for name in ("0", "1", "difference", "all"):
        estimate, lower, upper = np.array([r[name] for r in records]).T
        spread = estimate.std(ddof=1)
        found[name] = {
            "held": int(((lower <= true[name]) & (true[name] <= upper)).sum()),
            "mean": float(estimate.mean()),
            "bias_in_sd": float((estimate.mean() - true[name]) / spread),
            "width_over_3.92_sd": float((upper - lower).mean() / (3.92 * spread)),
            "left_out_zero": int(((lower > 0.0) | (upper < 0.0)).sum()),
        }
    errors = [
        np.array([r[k][0] if k == "all" else r[k] for r in records]) for k in ("all", "line")
    ]
    ours, plain = (float(np.sqrt(np.mean((each - true["all"]) ** 2))) for each in errors)
    found["rmse_over_line"] = ours / plain
    found["forms"] = pd.Series([r["form"] for r in records]).value_counts().to_dict()
    found["cpu_seconds"] = float(np.mean([r["seconds"] for r in records]))
    return found


def bars_of(world: str, found: dict) -> dict[str, bool]:
    """Returns what one world has to meet."""
    share = found["difference"]["left_out_zero"] / found["trials"]
    differing = world.endswith("differing")
    bars = {
        "power 80 %" if differing else "found 9 %": share >= 0.8 if differing else share <= 0.09
    }
    for name in ("0", "1", "difference"):
        bars[f"{name} held by 90 %"] = found[name]["held"] >= 0.9 * found["trials"]
        bars[f"{name} unbiased"] = abs(found[name]["bias_in_sd"]) < 0.25
    bars["all no worse"] = found["rmse_over_line"] <= 1.05
    return {f"{world}: {name}": met for name, met in bars.items()}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", nargs="+", default=WORLDS, choices=WORLDS)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--store", type=Path, default=Path("benchmarks/results/groups.jsonl"))
    options = parser.parse_args()
    options.store.parent.mkdir(parents=True, exist_ok=True)
    lines = options.store.read_text().splitlines() if options.store.exists() else []
    records, start = [json.loads(each) for each in lines], time.process_time()
    done = {(record["world"], record["seed"]) for record in records}
    for seed in range(options.tables):
        for world in options.world:
            if (world, seed) not in done and time.process_time() - start < options.seconds:
                records.append(one_trial(world, seed))
                with options.store.open("a") as store:
                    store.write(json.dumps(records[-1]) + "\n")
    figures = {
        world: summary(world, [r for r in records if r["world"] == world])
        for world in options.world
    }
    bars: dict[str, bool] = {}
    for world, found in figures.items():
        bars |= bars_of(world, found)
    finish(figures, bars)


if __name__ == "__main__":
    main()
