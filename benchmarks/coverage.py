r"""Do 95 % intervals hold the truth in worlds that nobody tuned on?

Six worlds, 100 tables each, 40 % of every column with causes lost at random given the roots. They
were written down before any answer was looked at, and stay as they are:

    interaction       a confounded binary treatment whose effect grows with severity
    skewed_mediator   a binary treatment, directly and through a mediator with gamma noise
    count             a binary treatment on a Poisson outcome
    ordinal           a treatment of four levels whose effect levels off, 3 against 1
    semicontinuous    a binary treatment on costs: exact zeros and a log-normal rest
    small             a binary treatment, curved confounding, 150 rows (the others: 1,000)

The truths are closed forms; that of costs is a quadrature over one normal number.

Bars for each world: 91 to 99 of 100 intervals hold the truth (a right method has fewer
than 91 in 2.8 % of runs, and 100 in 0.6 %), their mean width is at most 1.25 times 3.92
standard deviations of the estimates, and an interval takes at most the processor time of the fit.
With fewer tables, the shares are held against the same bars.

    python benchmarks/coverage.py [--world count small] [--tables 100] [--jobs 2] [--summary]

The store keeps a line of JSON a table: an interrupted run goes on where it stopped, and parts of
it may be run one by one. Lines of one `--version` are judged together, by default those of the
commit. `--redo` runs the tables again; `--summary` runs nothing and judges what is there.
"""

from __future__ import annotations

import argparse
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from misscnf_study.losses import ampute
from report import finish
from scipy import special
from store import Lines, commit

from misscnf import MissCNF

LEVEL, RATE = 0.95, 0.4
FEWEST, MOST, WIDEST = 0.91, 0.99, 1.25
LOW, HIGH = -0.4, 0.7
"""Of the semicontinuous world: the intercept of a positive cost, and what treatment adds to it."""

Columns = dict[str, np.ndarray]


def interaction(rng: np.random.Generator, n: int) -> Columns:
    """Draws age, sex → severity → treated, y with treatment by severity; E[severity] is 0.5."""
    age, sex = rng.normal(size=n), rng.integers(0, 2, n)
    severity = 0.5 + 0.6 * age + 0.8 * rng.normal(size=n)
    treated = rng.random(n) < special.expit(-0.5 + 0.9 * severity + 0.5 * sex)
    y = 1.0 + 0.6 * severity + 0.4 * sex + treated * (1.0 + 0.8 * severity) + rng.normal(size=n)
    return {"age": age, "sex": sex, "severity": severity, "treated": treated * 1, "y": y}


def skewed_mediator(rng: np.random.Generator, n: int) -> Columns:
    """Draws w → treated → mediator → y, with gamma noise of shape 1.5 in the mediator."""
    w = rng.normal(size=n)
    treated = (rng.random(n) < special.expit(w)) * 1
    noise = (rng.gamma(1.5, size=n) - 1.5) / np.sqrt(1.5)
    mediator = 0.5 + treated + 0.4 * w + noise
    y = 0.7 * mediator + 0.3 * treated + 0.5 * w + rng.normal(size=n)
    return {"w": w, "treated": treated, "mediator": mediator, "y": y}


def count(rng: np.random.Generator, n: int) -> Columns:
    """Draws x → z → treated, visits ~ Poisson(exp(0.6 + 0.4 treated + 0.35 z)), z ~ N(0, 1)."""
    x = rng.normal(size=n)
    z = 0.6 * x + 0.8 * rng.normal(size=n)
    treated = (rng.random(n) < special.expit(0.8 * z)) * 1
    return {"x": x, "z": z, "treated": treated, "visits": rng.poisson(_rate(treated, z))}


def _rate(treated: np.ndarray | int, z: np.ndarray) -> np.ndarray:
    return np.exp(0.6 + 0.4 * treated + 0.35 * z)


def ordinal(rng: np.random.Generator, n: int) -> Columns:
    """Draws x → z → dose 0 to 3 by cut points of a logistic noise, y by steps that level off."""
    x = rng.normal(size=n)
    z = 0.7 * x + 0.7 * rng.normal(size=n)
    latent = z + rng.logistic(size=n)
    dose = np.searchsorted([-1.0, 0.3, 1.5], latent)
    y = np.array([0.0, 0.5, 1.2, 1.4])[dose] + 0.7 * z + rng.normal(size=n)
    return {"x": x, "z": z, "dose": dose, "y": y}


def semicontinuous(rng: np.random.Generator, n: int) -> Columns:
    """Draws x → z → treated, cost: zero, or log-normal; z ~ N(0, 1)."""
    x = rng.normal(size=n)
    z = 0.6 * x + 0.8 * rng.normal(size=n)
    treated = (rng.random(n) < special.expit(0.8 * z)) * 1
    some = rng.random(n) < special.expit(LOW + 0.6 * z + HIGH * treated)
    size = np.exp(0.5 + 0.3 * z + 0.3 * treated + 0.6 * rng.normal(size=n))
    return {"x": x, "z": z, "treated": treated, "cost": np.where(some, size, 0.0)}


def small(rng: np.random.Generator, n: int) -> Columns:
    """Draws x → w → treated, y curved in w."""
    x = rng.normal(size=n)
    w = 0.5 * x + np.sqrt(0.75) * rng.normal(size=n)
    treated = (rng.random(n) < special.expit(0.7 * w)) * 1
    y = treated + 0.5 * w + 0.3 * w**2 + rng.normal(size=n)
    return {"x": x, "w": w, "treated": treated, "y": y}


def truth_of_count() -> float:
    """Returns e^0.6 (e^0.4 − 1) E[e^{0.35 z}]."""
    return float(np.exp(0.6) * np.expm1(0.4) * np.exp(0.35**2 / 2))


def truth_of_semicontinuous() -> float:
    """Returns E[P(some | z, t) E[size | z, t]] at t = 1 less t = 0, by 200 nodes over z."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)

    def mean(t: int) -> float:
        some = special.expit(LOW + 0.6 * nodes + HIGH * t)
        size = np.exp(0.5 + 0.3 * nodes + 0.3 * t + 0.6**2 / 2)
        return float((weights / weights.sum()) @ (some * size))

    return mean(1) - mean(0)


@dataclass(frozen=True)
class World:
    """A law of complete rows, its graph, and one question with its true answer."""

    draw: Callable[[np.random.Generator, int], Columns]
    graph: str
    question: tuple[str, str, int, int]
    """Outcome, treatment, do, versus."""
    truth: float
    rows: int = 1000
    kinds: dict[str, str] = field(default_factory=dict)
    """What a user would say of the columns; all else is inferred."""


WORLDS = {
    "interaction": World(
        interaction,
        "age -> severity; severity, sex -> treated; severity, sex, treated -> y",
        ("y", "treated", 1, 0),
        1.0 + 0.8 * 0.5,
    ),
    "skewed_mediator": World(
        skewed_mediator,
        "w -> treated; w, treated -> mediator; w, treated, mediator -> y",
        ("y", "treated", 1, 0),
        0.7 * 1.0 + 0.3,
    ),
    "count": World(
        count,
        "x -> z; z -> treated; z, treated -> visits",
        ("visits", "treated", 1, 0),
        truth_of_count(),
    ),
    "ordinal": World(ordinal, "x -> z; z -> dose; z, dose -> y", ("y", "dose", 3, 1), 1.4 - 0.5),
    "semicontinuous": World(
        semicontinuous,
        "x -> z; z -> treated; z, treated -> cost",
        ("cost", "treated", 1, 0),
        truth_of_semicontinuous(),
        kinds={"cost": "semicontinuous"},
    ),
    "small": World(
        small, "x -> w; w -> treated; w, treated -> y", ("y", "treated", 1, 0), 1.0, rows=150
    ),
}


def table(name: str, seed: int) -> pd.DataFrame:
    """Returns a table of a world with its holes."""
    world = WORLDS[name]
    rng = np.random.default_rng([seed, *name.encode()])
    complete = pd.DataFrame(world.draw(rng, world.rows))
    return ampute(complete, world.graph, "mar", RATE, seed=seed)


def one_table(name: str, seed: int) -> dict[str, Any]:
    """Fits one table and asks for the effect with its interval; an error is kept as one."""
    torch.set_num_threads(1)
    logging.getLogger("misscnf").setLevel(logging.ERROR)
    world, df = WORLDS[name], table(name, seed)
    outcome, treatment, high, low = world.question
    record: dict[str, Any] = {"world": name, "seed": seed, "truth": world.truth}
    start = time.process_time()
    try:
        model = MissCNF(world.graph, kinds=world.kinds, seed=seed, progress=False).fit(df)
        fitted = time.process_time()
        arms = {"do": {treatment: high}, "versus": {treatment: low}}
        effect = model.effect(outcome, **arms, interval=LEVEL, seed=seed)
        lower, upper = effect.interval
    except Exception as error:  # an answer that is not there is one that does not hold
        return {**record, "held": False, "error": f"{type(error).__name__}: {error}"[:300]}
    return {
        **record,
        "estimate": effect.estimate,
        "lower": lower,
        "upper": upper,
        "held": bool(lower <= world.truth <= upper),
        "fit_seconds": round(fitted - start, 2),
        "interval_seconds": round(time.process_time() - fitted, 2),
        "forms": {node: str(form) for node, form in model.forms_.items()},
        "notes": list(effect.notes),
    }


def summary(records: list[dict]) -> dict[str, Any]:
    """Returns coverage, bias, width and cost of one world."""
    answered = [record for record in records if "error" not in record]
    held = sum(record["held"] for record in records)
    figures: dict[str, Any] = {"tables": len(records), "held": held}
    if len(answered) < len(records):
        figures["errors"] = sorted({r["error"] for r in records if "error" in r})
    if len(answered) < 2:
        return figures
    told = pd.DataFrame(answered)
    spread = float(told["estimate"].std())
    return figures | {
        "truth": answered[0]["truth"],
        "mean_estimate": float(told["estimate"].mean()),
        "bias_over_sd": float((told["estimate"].mean() - answered[0]["truth"]) / spread),
        "sd_of_estimates": spread,
        "width_over_3.92_sd": float((told["upper"] - told["lower"]).mean() / (3.92 * spread)),
        "fit_cpu_seconds": float(told["fit_seconds"].mean()),
        "interval_cpu_seconds": float(told["interval_seconds"].mean()),
        "commits": sorted(set(told["commit"])),
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--world", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--version", default=commit(), help="of the run; by default the commit")
    parser.add_argument("--redo", action="store_true", help="run what the store has again")
    parser.add_argument("--summary", action="store_true", help="only judge what the store has")
    usual = Path("benchmarks/results/coverage.jsonl")
    parser.add_argument("--store", type=Path, default=usual)
    options = parser.parse_args()
    lines = Lines(options.store, ("world", "seed"), options.version)
    # Seed by seed, so that an interrupted run has as many tables of each world.
    wanted = [(name, seed) for seed in range(options.tables) for name in options.world]
    if not options.summary:
        lines.run(one_table, wanted, options.jobs, redo=options.redo)
    figures: dict[str, Any] = {}
    bars: dict[str, bool] = {}
    for name in options.world:
        mine = list(lines.of(pair for pair in wanted if pair[0] == name))
        if not mine:
            bars[f"{name}: no table"] = False
            continue
        figures[name] = found = summary(mine)
        print(name, found)
        share = found["held"] / len(mine)
        bars[f"{name}: {FEWEST:.0%} to {MOST:.0%} hold the truth"] = FEWEST <= share <= MOST
        width = found.get("width_over_3.92_sd", np.inf)
        bars[f"{name}: mean width at most {WIDEST} times 3.92 sd"] = bool(width <= WIDEST)
        cheap = found.get("interval_cpu_seconds", np.inf) <= found.get("fit_cpu_seconds", 0.0)
        bars[f"{name}: an interval costs at most a fit"] = bool(cheap)
    finish(figures, bars)


if __name__ == "__main__":
    main()
