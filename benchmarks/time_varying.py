"""A known world over time: a confounder that the treatment moves, drop-out and holes.

    python benchmarks/time_varying.py                                    # 60 tables
    python benchmarks/time_varying.py --tables 20 --store time_varying.jsonl

With a store, each table is a line that is written once it is done, and not done again: a run that
was cut short goes on.

800 people, three periods. A covariate L drives the treatment A and the outcome; A lowers the next
L; both lead to Y at the last visit. The laws bend (a hyperbolic tangent, a parabola). People leave
after the first and the second visit, the more so the higher the L and the A that they were seen
with (at random, given what is shown), and 30 % of all cells of L and A are missing, the more the
higher the baseline. The question is Y under always treating against never; the truth is simulated.

The rival is what people do with such tables: carry the last observation forward, and take the
g-formula of pooled regressions with squares, on the people whose outcome is there.

Bars: over the first 20 tables the mean error is within t(0.975; 19) of its own standard error (a
right method fails in 1 of 20 such runs), and the rival's is not; of 60 intervals of 95 %, 53 to 60
hold the truth (a right method fails in 1 of 70 such runs).
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from report import finish, peak_memory
from scipy.special import expit
from scipy.stats import t as student

from misscnf import MissCNF

PEOPLE, VISITS, TABLES, FIRST = 800, 3, 60, 20
HOLES = 0.3
"""The share of cells of L and A that are missing."""
GRAPH = "base, L[t-1], A[t-1] -> L[t]; L[t], A[t-1] -> A[t]; L[t], A[t], A[t-1] -> Y[t]"
COVERED = (53, 60)

World = dict[str, np.ndarray]


def simulate(people: int, seed: int, dose: int | None = None) -> World:
    """Draws the world; under a regime every A is `dose`, with the same noise."""
    rng, world = np.random.default_rng(seed), dict[str, np.ndarray]()
    base = world["base"] = rng.normal(size=people)
    level, last = np.zeros(people), np.zeros(people)
    for k in range(VISITS):
        drift = 0.9 * np.tanh(1.5 * level) - 0.8 * last if k else 0.0
        level = world[f"L{k}"] = drift + 0.4 * base + 0.7 * rng.normal(size=people)
        chance = rng.random(people)
        own = (chance < expit(1.2 * level + 0.8 * last - 0.2)).astype(float)
        before, last = last, own if dose is None else np.full(people, float(dose))
        world[f"A{k}"] = last
    noise = rng.normal(size=people)
    world["Y"] = -0.5 * last - 0.3 * before + level + 0.4 * level**2 + noise
    return world


def truth() -> float:
    """Returns the effect of always against never, with an error of 0.001."""
    people = 2_000_000
    always, never = (simulate(people, 10**6, dose)["Y"].mean() for dose in (1, 0))
    return float(always - never)


def collect(seed: int) -> pd.DataFrame:
    """Returns a long table as it is collected: people leave, and cells are missing."""
    world, rng = simulate(PEOPLE, seed), np.random.default_rng([seed, 1])
    there, parts = np.ones(PEOPLE, dtype=bool), []
    level = intercept(world["base"])
    for k in range(VISITS):
        part = pd.DataFrame({"id": np.arange(PEOPLE), "visit": k, "base": world["base"]})
        for name in "LA":
            lost = rng.random(PEOPLE) < expit(level + 0.5 * world["base"])
            part[name] = np.where(lost, np.nan, world[f"{name}{k}"])
        part["Y"] = world["Y"] if k == VISITS - 1 else np.nan
        parts.append(part[there])
        seen = part[["L", "A"]].fillna(0.0)
        there = there & (rng.random(PEOPLE) > expit(-2.2 + 0.8 * seen["L"] + 0.5 * seen["A"]))
    return pd.concat(parts, ignore_index=True).sort_values(["id", "visit"], ignore_index=True)


def intercept(base: np.ndarray) -> float:
    """Returns the intercept that loses the share of cells that is asked for."""
    from scipy.optimize import brentq

    return float(brentq(lambda a: expit(a + 0.5 * base).mean() - HOLES, -10, 10))


def ours(table: pd.DataFrame, seed: int) -> dict[str, Any]:
    """Fits and asks; returns the answer and what it cost."""
    start = time.process_time()
    model = MissCNF(GRAPH, id="id", time="visit", seed=seed, progress=False).fit(table)
    effect = model.effect("Y", do={"A": 1}, versus={"A": 0}, interval=0.95, draws=50_000)
    assert effect.interval is not None
    return {
        "estimate": effect.estimate,
        "lower": effect.interval[0],
        "upper": effect.interval[1],
        "seconds": time.process_time() - start,
        "forms": {name: form.name for name, form in model.forms_.items() if form.name != "line"},
    }


def carried_forward(table: pd.DataFrame, seed: int) -> float:
    """Returns the answer of the rival."""
    full = table.copy()
    full[["L", "A"]] = full.groupby("id")[["L", "A"]].ffill()
    full[["L", "A"]] = full[["L", "A"]].fillna(full[["L", "A"]].median())  # nothing to carry
    by = full.groupby("id")
    full["L1"], full["A1"] = by["L"].shift(1), by["A"].shift(1)
    later, end = full.dropna(subset=["L1"]), full.dropna(subset=["Y", "L1"])

    def fit(frame: pd.DataFrame, own: str, squared: str, names: list[str]) -> np.ndarray:
        design = np.column_stack([np.ones(len(frame)), frame[squared] ** 2, frame[names]])
        found, *_ = np.linalg.lstsq(design, frame[own].to_numpy(), rcond=None)
        return np.asarray(found)

    of_level = fit(later, "L", "L1", ["L1", "A1", "base"])
    of_outcome = fit(end, "Y", "L", ["L", "A", "A1"])
    spread = np.std(
        later["L"] - _line(of_level, later["L1"], later["L1"], later["A1"], later["base"])
    )
    first = full[full["visit"] == 0]
    arms = []
    for dose in (1.0, 0.0):
        rng = np.random.default_rng(seed)
        drawn = first.iloc[rng.integers(0, len(first), 50_000)]
        level, base = drawn["L"].to_numpy(), drawn["base"].to_numpy()
        for _ in range(1, VISITS):
            noise = spread * rng.normal(size=len(level))
            level = _line(of_level, level, level, dose, base) + noise
        arms.append(_line(of_outcome, level, level, dose, dose).mean())
    return float(arms[0] - arms[1])


def _line(coefficients: np.ndarray, squared: Any, *columns: Any) -> Any:
    found = coefficients[0] + coefficients[1] * squared**2
    return found + sum(b * column for b, column in zip(coefficients[2:], columns, strict=True))


def tables(count: int, store: Path | None) -> Iterator[dict[str, Any]]:
    """Yields what is said of each table: from the store, or worked out and stored."""
    known = store.read_text().splitlines() if store is not None and store.exists() else []
    done = {one["seed"]: one for one in map(json.loads, known)}
    for seed in range(count):
        if seed not in done:
            table = collect(seed)
            done[seed] = {"seed": seed, **ours(table, seed), "rival": carried_forward(table, seed)}
            done[seed]["holes"] = float(table[["L", "A"]].isna().mean().mean())
            done[seed]["left"] = 1.0 - float(table["Y"].notna().sum()) / PEOPLE
            if store is not None:
                with store.open("a") as lines:
                    lines.write(json.dumps(done[seed]) + "\n")
        yield done[seed]


def off(answers: list[float], true: float) -> dict[str, float]:
    """Returns the mean error of answers, its standard error, and how far it may be by chance."""
    errors = np.array(answers) - true
    error = float(errors.std(ddof=1) / np.sqrt(len(errors)))
    by_chance = float(student.ppf(0.975, len(errors) - 1)) * error
    return {"bias": float(errors.mean()), "standard_error": error, "by_chance": by_chance}


def main() -> None:
    """Runs the tables, and judges them together."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=TABLES)
    parser.add_argument("--store", type=Path, help="a file of lines, to go on from")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found, true = list(tables(options.tables, options.store)), truth()
    mine = off([one["estimate"] for one in found[:FIRST]], true)
    theirs = off([one["rival"] for one in found[:FIRST]], true)
    held = sum(one["lower"] <= true <= one["upper"] for one in found)
    figures = {"truth": true, "tables": len(found), "misscnf": mine, "carried forward": theirs}
    figures["covered"] = held
    for name in ("holes", "left", "seconds"):
        figures[f"mean {name}"] = float(np.mean([one[name] for one in found]))
    figures["peak_mb"] = peak_memory()
    bars = {
        "our bias is within chance": abs(mine["bias"]) <= mine["by_chance"],
        "the rival's is not": abs(theirs["bias"]) > theirs["by_chance"],
    }
    if len(found) == TABLES:
        bars["53 to 60 of 60 intervals hold"] = COVERED[0] <= held <= COVERED[1]
    finish(figures, bars)


if __name__ == "__main__":
    main()
