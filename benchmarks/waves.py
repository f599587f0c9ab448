"""How often are fits told that they miss waves or jumps: where they do, and where they do not?

Tables of 300 to 2,000 rows, whole or with 30 % of all columns but x lost at random given x. In
three worlds the form that is fitted is right: lines (`linear`), lines among columns of all kinds
(`linear`), smooth bends (`auto`). In three others the outcome goes along x by sin(12 x), a jump
that keeps its line (`linear`), or a sawtooth.

Bars: of all true fits of a world at most 5 % are accused; of the others 80 % at 1,000 rows or more
are, along x.

    python benchmarks/waves.py [--world …] [--tables 25] [--seconds 200]

The store keeps a line of JSON a table: an interrupted run goes on where it stopped.
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

TRUE = {"lines": "linear", "mixed": "linear", "bends": "auto"}
ROUGH = {"sin12": "auto", "jump": "linear", "sawtooth": "auto"}
SIZES, LOST = (300, 1000, 2000), (0.0, 0.3)
GRAPHS = {"mixed": "x -> level, yes, count; x, level, yes, count -> y"}
GRAPH = "x -> t; x, t -> y"


def table(world: str, rows: int, lost: float, seed: int) -> pd.DataFrame:
    """Returns a table with holes."""
    rng = np.random.default_rng([seed, rows, int(10 * lost)])
    x, noise = rng.normal(size=rows), rng.normal(size=(rows, 3))
    if world == "mixed":
        level = (x[:, None] * [0.0, 0.5, -0.5] + rng.gumbel(size=(rows, 3))).argmax(1)
        yes = (rng.random(rows) < 1.0 / (1.0 + np.exp(-x))).astype(float)
        count = rng.poisson(np.exp(0.5 + 0.3 * x)).astype(float)
        y = x + 0.5 * level + yes + 0.3 * count + noise[:, 1]
        df = pd.DataFrame({"x": x, "level": level, "yes": yes, "count": count, "y": y})
        df["level"] = pd.Categorical.from_codes(level, list("abc"))
    else:
        t = {"bends": np.sin(1.5 * x)}.get(world, 0.5 * x) + 0.5 * noise[:, 0]
        along = {
            "lines": x,
            "bends": 0.5 * x**2 + np.tanh(t),
            "sin12": np.sin(12.0 * x),
            "jump": 1.0 * (x > 0.5),
            "sawtooth": 2.0 * np.mod(2.0 * x, 1.0),
        }[world]
        df = pd.DataFrame({"x": x, "t": t, "y": along + t + 0.5 * noise[:, 1]})
    if lost:
        chance = lost * 2.0 / (1.0 + np.exp(-1.5 * x))
        for name in df.columns[1:]:
            df[name] = df[name].mask(rng.random(rows) < chance)
    return df


def one_table(world: str, rows: int, lost: float, seed: int) -> dict[str, object]:
    """Fits one table and keeps what is said of the fit."""
    torch.set_num_threads(1)
    start = time.process_time()
    preset = {**TRUE, **ROUGH}[world]
    kinds = {"count": "count"} if world == "mixed" else None
    model = MissCNF(GRAPHS.get(world, GRAPH), preset, kinds=kinds, seed=seed, progress=False)
    said = model.fit(table(world, rows, lost, seed)).rough_
    seconds = round(time.process_time() - start, 2)
    key = {"world": world, "rows": rows, "lost": lost, "seed": seed}
    return {**key, "said": said, "seconds": seconds}


def summary(world: str, records: list[dict]) -> dict[str, object]:
    """Returns how many tables of a world are accused, by rows and holes."""
    found: dict[str, object] = {"tables": len(records)}
    for rows in SIZES:
        for lost in LOST:
            some = [r for r in records if (r["rows"], r["lost"]) == (rows, lost)]
            accused = [r for r in some if r["said"]]
            along = [r for r in accused if r["said"].get("y", {}).get("along") == "x"]
            name = f"{rows} rows, {lost:.0%} lost"
            found[name] = {"tables": len(some), "accused": len(accused), "y_along_x": len(along)}
    found["cpu_seconds"] = float(np.mean([r["seconds"] for r in records]))
    return found


def share(records: list[dict], fewest: int) -> float:
    """Returns the share of tables with so many rows that are accused."""
    some = [bool(r["said"]) for r in records if r["rows"] >= fewest]
    return float(np.mean(some)) if some else float("nan")


def main() -> None:
    """Runs what is missing within the time and judges all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--world", nargs="*", default=[*TRUE, *ROUGH])
    parser.add_argument("--tables", type=int, default=25, help="of each size and loss")
    parser.add_argument("--first", type=int, default=100, help="seed; the level saw those below")
    parser.add_argument("--seconds", type=float, default=200.0)
    store = Path(__file__).parent / "results" / "waves.jsonl"
    parser.add_argument("--store", type=Path, default=store)
    options = parser.parse_args()
    records = []
    if options.store.exists():
        records = [json.loads(line) for line in options.store.read_text().splitlines()]
    done = {(r["world"], r["rows"], r["lost"], r["seed"]) for r in records}
    asked = [
        (world, rows, lost, seed)
        for seed in range(options.first, options.first + options.tables)
        for world in options.world
        for rows in SIZES
        for lost in LOST
    ]
    end = time.monotonic() + options.seconds
    for task in asked:
        if task in done or time.monotonic() > end:
            continue
        records.append(one_table(*task))
        with options.store.open("a") as file:
            file.write(json.dumps(records[-1]) + "\n")
    groups = {world: [r for r in records if r["world"] == world] for world in options.world}
    groups = {world: some for world, some in groups.items() if some}
    bars = {f"{w}: at most 5 % accused": share(groups[w], 0) <= 0.05 for w in TRUE if w in groups}
    bars |= {f"{w}: 80 % found": share(groups[w], 1000) >= 0.8 for w in ROUGH if w in groups}
    finish({world: summary(world, some) for world, some in groups.items()}, bars)


if __name__ == "__main__":
    main()
