"""How often do 95 % intervals hold the truth where the loss is modelled?

Tables of 1,000 rows: x → y → z, linear with normal noise, y lost by a logistic line in itself
(1.5 a unit, about half of the values). x and z are always shown, so that the loss has a shadow.
Asked are the effect of x on y (1) and on z (0.5), and the slope of the loss on y, by `linear`.

Bar: of 60 tables, 53 to 60 intervals of each hold the truth; a method that holds 95 % does so in
all but 1.3 % of runs.

    python benchmarks/loss_coverage.py [--tables 60] [--rows 1000] [--store …]

The store keeps a line of JSON a table: an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from report import finish
from store import Lines

from misscnf import MissCNF

SLOPE, TRUTH = 1.5, {"y": 1.0, "z": 0.5}


def table(seed: int, rows: int) -> pd.DataFrame:
    """Returns a table with holes in y."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = x + rng.normal(size=rows)
    z = 0.5 * y + rng.normal(size=rows)
    lost = rng.random(rows) < 1.0 / (1.0 + np.exp(-SLOPE * y))
    return pd.DataFrame({"x": x, "y": np.where(lost, np.nan, y), "z": z})


def work(seed: int, rows: int) -> dict:
    """Fits one table and asks it."""
    df = table(seed, rows)
    model = MissCNF("x -> y -> z", "linear", loss={"y": ["y"]}, seed=seed, progress=False).fit(df)
    found: dict = {"seed": seed, "rows": rows}
    for outcome in TRUTH:
        asked = {"do": {"x": 1.0}, "versus": {"x": 0.0}, "interval": 0.95}
        effect = model.effect(outcome, **asked)
        found[outcome] = [effect.estimate, *(effect.interval or (np.nan, np.nan))]
    (line,) = model.loss_.itertuples()
    found["slope"] = [line.log_odds, np.log(line.lower), np.log(line.upper)]
    found["true slope"] = SLOPE * float(df["y"].std(ddof=0))
    return found


def main() -> None:
    """Runs what the store does not have."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    here = Path(__file__).parent / "results" / "loss_coverage.jsonl"
    parser.add_argument("--store", type=Path, default=here)
    asked = parser.parse_args()
    lines = Lines(asked.store, ["seed", "rows"])
    wanted = [(seed, asked.rows) for seed in range(asked.tables)]
    lines.run(work, wanted, asked.jobs)
    records = list(lines.of(wanted))
    held, off = {}, {}
    for name in (*TRUTH, "slope"):
        truth = [TRUTH.get(name, record["true slope"]) for record in records]
        ends = np.array([record[name] for record in records])
        held[name] = int(((ends[:, 1] <= truth) & (truth <= ends[:, 2])).sum())
        off[name] = float(np.mean(ends[:, 0] - truth))
    few = 53 * len(records) / 60
    bars = {f"intervals of {name} hold the truth": count >= few for name, count in held.items()}
    finish({"tables": len(records), "rows": asked.rows, "held": held, "mean error": off}, bars)


if __name__ == "__main__":
    main()
