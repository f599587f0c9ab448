r"""Three hidden causes in a network of 46 nodes: effects that proxies identify, and a fit unaware.

The graph is ecoli70 as the wheel of pgmpy has it (its file is read, it is not imported). Every
node with parents is x = 0.75 w₂ · silu(W₁ x_pa) + u, with 16 units, weights U(−1, 1) and u ~
N(0, 1), as in DeCaFlow; columns of W₁ that read a hidden parent are U(1, 3), and one entry of w₂
is U(−2, 2). Hidden are b1191, eutG and cspG. Of the effects that are confounded by them, seven are
identified by proxies: yceP on yfaD, asnA and lacA on lacY, lacA and lacZ on yaeM, yedE on pspA and
on pspB. Each is asked as E[y | do(t = q90)] − E[y | do(t = q10)] in standard deviations of y; the
truth is a simulation of 400,000 units.

`aware` has the graph with its hidden causes; `unaware` the graph without these nodes, as a flow
fits it that assumes no hidden cause. Only what is connected to a question is fitted: the ancestors
of the fourteen nodes, and the children of hidden causes, which see them.

Bar: the geometric mean over paths and seeds of |error of aware| / |error of unaware| is at most
1/3, each error not counted below 0.005, which is what the truth is known to.

    python benchmarks/hidden_ecoli.py [--seeds 3] [--rows 5000] [--preset linear] [--summary]
"""

from __future__ import annotations

import argparse
import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from report import finish
from scipy import special
from store import Lines, commit
from wide import read_network

from misscnf import MissCNF

HIDDEN = ("b1191", "eutG", "cspG")
PATHS = (
    ("yceP", "yfaD"),
    ("asnA", "lacY"),
    ("lacA", "lacY"),
    ("lacA", "yaeM"),
    ("lacZ", "yaeM"),
    ("yedE", "pspA"),
    ("yedE", "pspB"),
)
UNITS, FRESH, KNOWN, BAR = 16, 400_000, 0.005, 1.0 / 3.0

Law = tuple[list[str], np.ndarray, np.ndarray]
"""Parents, W₁ and w₂ of a node."""


def laws(seed: int) -> dict[str, Law]:
    """Returns the law of every node, in an order in which parents come first."""
    network, rng = read_network("ecoli70"), np.random.default_rng([seed, 70])
    parents = {node: [a for a, b in network["arcs"] if b == node] for node in network["nodes"]}
    found: dict[str, Law] = {}
    while len(found) < len(parents):
        for node, its in parents.items():
            if node in found or not all(p in found for p in its):
                continue
            first = rng.uniform(-1.0, 1.0, (UNITS, len(its)))
            second = rng.uniform(-1.0, 1.0, UNITS)
            for place, parent in enumerate(its):
                if parent in HIDDEN:
                    first[:, place] = rng.uniform(1.0, 3.0, UNITS)
                    second[rng.integers(UNITS)] = rng.uniform(-2.0, 2.0)
            found[node] = (its, first, second)
    return found


def draw(
    world: dict[str, Law], rows: int, rng: np.random.Generator, do: dict[str, float] | None = None
) -> dict[str, np.ndarray]:
    """Returns all columns of some rows, with some nodes held."""
    x: dict[str, np.ndarray] = {}
    for node, (parents, first, second) in world.items():
        noise = rng.normal(size=rows)
        if node in (do or {}):
            x[node] = np.full(rows, do[node])
            continue
        x[node] = noise
        if parents:
            inner = np.stack([x[parent] for parent in parents], 1) @ first.T
            x[node] = noise + 0.75 * (inner * special.expit(inner)) @ second
    return x


def above(world: dict[str, Law], y: str) -> dict[str, Law]:
    """Returns the laws of a node and its ancestors, which are all that decides it."""
    wanted = {y}
    while more := {p for node in wanted for p in world[node][0]} - wanted:
        wanted |= more
    return {node: law for node, law in world.items() if node in wanted}


def truth(world: dict[str, Law], seed: int, path: tuple[str, str], ends: np.ndarray) -> float:
    """Returns the effect between two values of a treatment, by simulation with one noise."""
    t, y = path
    laws = above(world, y)
    low, high = (
        draw(laws, FRESH, np.random.default_rng([seed, 2]), {t: at})[y].mean() for at in ends
    )
    return float(high - low)


def arcs(world: dict[str, Law]) -> list[tuple[str, str]]:
    """Returns the arcs around the questions: above their nodes, and of hidden causes."""
    every = {(p, node) for node, (parents, *_) in world.items() for p in parents}
    wanted = {node for path in PATHS for node in path} | {b for a, b in every if a in HIDDEN}
    while more := {a for a, b in every if b in wanted} - wanted:
        wanted |= more
    return sorted(pair for pair in every if wanted.issuperset(pair))


def one_table(seed: int, model: str, rows: int, preset: str) -> dict[str, Any]:
    """Fits one table, aware of hidden causes or not, and asks all paths."""
    torch.set_num_threads(1)
    logging.getLogger("misscnf").setLevel(logging.ERROR)
    world = laws(seed)
    table = pd.DataFrame(draw(world, rows, np.random.default_rng([seed, 1])))
    edges, aware = arcs(world), model == "aware"
    if not aware:
        edges = [pair for pair in edges if not set(pair) & set(HIDDEN)]
    nodes = sorted({node for pair in edges for node in pair} - set(HIDDEN))
    start = time.process_time()
    latent = list(HIDDEN) if aware else None
    fitted = MissCNF(edges, preset, latent=latent, seed=seed, progress=False).fit(table[nodes])
    seconds, errors = time.process_time() - start, {}
    for t, y in PATHS:
        ends = np.quantile(table[t], [0.1, 0.9])
        effect = fitted.effect(y, do={t: ends[1]}, versus={t: ends[0]}, seed=seed)
        off = effect.estimate - truth(world, seed, (t, y), ends)
        errors[f"{t} -> {y}"] = float(off / table[y].std())
    forms = {name: str(form) for name, form in fitted.forms_.items()}
    about = {"seed": seed, "model": model, "rows": rows, "preset": preset}
    record = {**about, "errors": errors, "forms": forms}
    return {**record, "cpu_seconds": round(seconds, 1)}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--preset", default="auto", help="of both models")
    parser.add_argument("--version", default=commit(), help="of the run; by default the commit")
    parser.add_argument("--summary", action="store_true", help="only judge what the store has")
    usual = Path("benchmarks/results/hidden_ecoli.jsonl")
    parser.add_argument("--store", type=Path, default=usual)
    options = parser.parse_args()
    lines = Lines(options.store, ("seed", "model", "rows", "preset"), options.version)
    models = ("unaware", "aware")
    about = (options.rows, options.preset)
    wanted = [(seed, model, *about) for seed in range(options.seeds) for model in models]
    if not options.summary:
        lines.run(one_table, wanted, 1)
    found = {(r["seed"], r["model"]): r for r in lines.of(wanted)}
    seeds = [seed for seed in range(options.seeds) if all((seed, m) in found for m in models)]
    sizes = {
        model: np.array([list(found[seed, model]["errors"].values()) for seed in seeds])
        for model in models
    }
    ratio = np.log(np.maximum(np.abs(sizes["aware"]), KNOWN)) - np.log(
        np.maximum(np.abs(sizes["unaware"]), KNOWN)
    )
    names = [f"{t} -> {y}" for t, y in PATHS]
    figures = {
        "preset": options.preset,
        "seeds": len(seeds),
        "ratio": float(np.exp(ratio.mean())),
        "ratio_by_path": dict(zip(names, np.exp(ratio.mean(0)).tolist(), strict=True)),
        "mean_error": {model: float(np.abs(size).mean()) for model, size in sizes.items()},
        "cpu_seconds": {m: sum(found[s, m]["cpu_seconds"] for s in seeds) for m in models},
    }
    finish(figures, {"errors a third of those unaware": figures["ratio"] <= BAR})


if __name__ == "__main__":
    main()
