"""What a fit to many rows needs: peak memory, processor time, and what others need for it.

in memory   1,000,000 rows of the linear fork a -> b, a -> c, b -> d, c -> d, the preset `auto` on
            a DataFrame; half of b, c and d is lost at random given a. Bar: 4 GB at the peak.
from disk   rows of eight mixed columns from Parquet, 29 % of their cells lost at random given a:
            the preset `linear` on the five columns of numbers, n = 10,000 to 10,000,000. Bars:
            2 GB over the size after imports; coefficients within 1e-6 of those in memory (at
            1,000,000 rows); processor time grows no faster than n^1.05; an interval takes no
            longer than its fit, from 1,000,000 rows on.
mixed       the same rows from disk, all eight columns: lines, a switch, three levels and a count,
            each with its cause. With --mixed alone, which says how many rows; --preset auto
            chooses the forms. Bars: 2 GB over the size after imports; an interval takes no longer
            than the fit.
auto        1,000,000 rows of x1 -> x2 -> x3 -> x4 from Parquet: the study's chain_nlin, and
            x4 = 2 tanh(x3 / 2) + noise; half of x2, x3 and x4 is lost at random given x1. Bars:
            180 s of processor time; an interval takes no longer than the fit; the divergence from
            the truth within 5 % of that of the fit in memory. With --chain alone.
beside      the effect of t on y in 1,000,000 such rows (it is 0.8): misscnf, least squares on
            complete rows (statsmodels), and IterativeImputer with boosted trees (scikit-learn).

Every fit runs in a process of its own. Processor time is that of all its threads.

    python benchmarks/many_rows.py [--most 10000000]
    python benchmarks/many_rows.py --mixed 10000000 [--preset auto]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import finish

MOST_GIGABYTES = 4.0
MOST_FROM_DISK = 2.0
MOST_SECONDS_OF_AUTO = 180.0
LINES = "a -> b; a -> t; t -> y; b -> y; y -> z; t -> z"
MIXED = f"{LINES}; a -> s; b -> g; a -> k"
ASK = {"do": {"t": 1.0}, "versus": {"t": 0.0}}


def peak() -> float:
    """Returns the peak resident size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def in_memory(rows: int) -> dict:
    """Fits `auto` once to a DataFrame."""
    import numpy as np
    import pandas as pd

    from misscnf import MissCNF

    imports = peak()
    rng = np.random.default_rng(0)
    a, *noise = rng.normal(size=(4, rows))
    b, c = 0.8 * a + noise[0], -0.5 * a + noise[1]
    table = pd.DataFrame({"a": a, "b": b, "c": c, "d": b + c + noise[2]})
    for name in "bcd":
        table.loc[rng.random(rows) < 1.0 / (1.0 + np.exp(-a)), name] = np.nan
    del a, b, c, noise
    with_table, started, before = peak(), time.perf_counter(), time.process_time()
    model = MissCNF("a -> b; a -> c; b -> d; c -> d", progress=False).fit(table)
    return {
        "seconds": time.perf_counter() - started,
        "processor_seconds": time.process_time() - before,
        "gigabytes": peak(),
        "gigabytes_of_imports": imports,
        "gigabytes_of_imports_and_table": with_table,
        "chosen": model.chosen_,
    }


def mixed(rows: int, seed: int):
    """Draws eight mixed columns; all but the first are lost at random given it."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b = 0.5 * a + rng.normal(size=rows)
    s = (rng.random(rows) < 1.0 / (1.0 + np.exp(-a))).astype(float)
    level = np.clip(np.floor(1.2 * b + rng.normal(size=rows) + 1.5), 0, 2).astype(int)
    k = rng.poisson(np.exp(0.3 * a + 0.2)).astype(float)
    t = 0.6 * a + rng.normal(size=rows)
    y = 0.8 * t + 0.5 * b + rng.normal(size=rows)
    z = 0.5 * y + 0.2 * t + rng.normal(size=rows)
    g = pd.Series(np.array(["low", "mid", "high"])[level], dtype="str")
    found = pd.DataFrame({"a": a, "b": b, "s": s, "g": g, "k": k, "t": t, "y": y, "z": z})
    lost = rng.random((rows, 8)) < (1.0 / (1.0 + np.exp(0.85 - a)))[:, None]
    lost[:, 0] = False
    return found.mask(lost)


def write(path: Path, rows: int, at_once: int = 500_000) -> None:
    """Writes so many of these rows to Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer = None
    for start in range(0, rows, at_once):
        part = mixed(min(at_once, rows - start), seed=start)
        table = pa.Table.from_pandas(part, preserve_index=False)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def linear(path: str, memory: str) -> dict:
    """Fits lines to the numbers of a file, in memory ("") or from disk."""
    from misscnf import MissCNF

    model = MissCNF(LINES, "linear", progress=False)
    model._get_param_names()  # imports that a fit makes
    imports, before, started = peak(), time.process_time(), time.perf_counter()
    model.fit(path, memory=memory or None)
    found = {
        "processor_seconds": time.process_time() - before,
        "seconds": time.perf_counter() - started,
        "gigabytes_over_imports": peak() - imports,
        "coefficients": model.summary()["coefficient"].dropna().tolist(),
    }
    before = time.process_time()
    effect = model.effect("y", **ASK, interval=0.95)
    found["processor_seconds_of_the_interval"] = time.process_time() - before
    return {**found, "effect": effect.estimate, "interval": list(effect.interval)}


def mixed_columns(path: str, memory: str, preset: str) -> dict:
    """Fits numbers, levels and counts to all eight columns of a file, from disk."""
    from misscnf import MissCNF

    model = MissCNF(MIXED, preset, progress=False)
    model._get_param_names()  # imports that a fit makes
    imports, before, started = peak(), time.process_time(), time.perf_counter()
    model.fit(path, memory=memory)
    found = {
        "processor_seconds": time.process_time() - before,
        "seconds": time.perf_counter() - started,
        "gigabytes_over_imports": peak() - imports,
        "forms": {name: str(form) for name, form in model.forms_.items()},
        "kinds": model.kinds_.set_index("column")["kind"].to_dict(),
        "stages": dict(model.timings_),
    }
    print(json.dumps(found), flush=True)
    before = time.process_time()
    effect = model.effect("y", **ASK, interval=0.95)
    found["processor_seconds_of_the_interval"] = time.process_time() - before
    return {**found, "effect": effect.estimate, "interval": list(effect.interval)}


def auto(rows: str, memory: str) -> dict:
    """Fits `auto` to a curved chain, from disk or in memory (""), and asks how true it is."""
    import torch
    from misscnf_study.losses import ampute
    from misscnf_study.metrics import exact_kl
    from misscnf_study.worlds.chain import chain_nlin
    from misscnf_study.worlds.equations import Equation
    from misscnf_study.worlds.world import World, x_graph

    from misscnf import MissCNF
    from misscnf.model import StructuralModel

    last = Equation(lambda x3: 2.0 * torch.tanh(x3 / 2.0))
    laws = [*chain_nlin().model.mechanisms, last]
    model = StructuralModel(x_graph((), (1,), (2,), (3,)), laws)
    world = World("chain of four", model, ("x1", "x2"), "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chain.parquet"
        ampute(world.sample(int(rows), 0, "train"), world.graph, "mar", 0.5, 0).to_parquet(path)
        fitted = MissCNF(world.graph, kinds="continuous", progress=False)
        imports, before = peak(), time.process_time()
        fitted.fit(path, memory=memory or None)
    found = {
        "processor_seconds": time.process_time() - before,
        "gigabytes_over_imports_and_drawing": peak() - imports,
        "forms": {name: str(form) for name, form in fitted.forms_.items()},
        "kl": exact_kl(fitted.structural_model(holes=False), world.model),
    }
    if not memory:
        return found
    print(json.dumps(found), flush=True)
    before = time.process_time()
    fitted.effect("x4", do={"x2": 2.0}, versus={"x2": 1.0}, interval=0.95)
    return {**found, "processor_seconds_of_the_interval": time.process_time() - before}


def least_squares(path: str, _: str) -> dict:
    """Asks complete rows by least squares."""
    import pandas as pd
    import statsmodels.api as sm

    table = pd.read_parquet(path, columns=list("abty"))
    before, started = time.process_time(), time.perf_counter()
    rows = table.dropna()
    fit = sm.OLS(rows["y"], sm.add_constant(rows[["t", "a", "b"]])).fit()
    return {
        "processor_seconds": time.process_time() - before,
        "seconds": time.perf_counter() - started,
        "effect": float(fit.params["t"]),
    }


def boosted(path: str, _: str) -> dict:
    """Imputes, fits boosted trees and averages their predictions over all rows."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    table = pd.read_parquet(path, columns=list("abtyz"))
    before, started = time.process_time(), time.perf_counter()
    filled = pd.DataFrame(
        IterativeImputer(sample_posterior=True, random_state=0).fit_transform(table),
        columns=table.columns,
    )
    trees = HistGradientBoostingRegressor(random_state=0).fit(filled[list("tab")], filled["y"])
    arms = [trees.predict(filled.assign(t=t)[list("tab")]).mean() for t in (1.0, 0.0)]
    return {
        "processor_seconds": time.process_time() - before,
        "seconds": time.perf_counter() - started,
        "effect": float(arms[0] - arms[1]),
    }


def alone(what: str, *given: object) -> dict:
    """Runs a function of this file in a process of its own."""
    command = [sys.executable, __file__, "--here", what, *map(str, given)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(ended.stdout.splitlines()[-1])
    print(what, *given, {name: of for name, of in found.items() if name != "coefficients"})
    return found


def only_mixed(rows: int, preset: str) -> None:
    """Runs the part of mixed columns, and ends."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{rows}.parquet"
        write(path, rows)
        found = alone("mixed_columns", path, "1kB", preset)
    took, asked = found["processor_seconds"], found["processor_seconds_of_the_interval"]
    finish(
        {"preset": preset, "mixed": {rows: found}},
        {
            f"mixed columns: below {MOST_FROM_DISK:g} GB": (
                found["gigabytes_over_imports"] < MOST_FROM_DISK
            ),
            "mixed columns: an interval takes no longer than its fit": asked <= took,
        },
    )


def chain(rows: int) -> tuple[dict, dict[str, bool]]:
    """Runs the part of the curved chain; returns what was found, and what was met."""
    found, whole = alone("auto", rows, "1kB"), alone("auto", rows, "")
    took, asked = found["processor_seconds"], found["processor_seconds_of_the_interval"]
    return {"from disk": found, "in memory": whole}, {
        f"auto: {MOST_SECONDS_OF_AUTO:g} s": took <= MOST_SECONDS_OF_AUTO,
        "auto: an interval takes no longer than its fit": asked <= took,
        "auto: as true as in memory, to 5 %": found["kl"] <= 1.05 * whole["kl"],
    }


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=10_000_000)
    parser.add_argument("--no-memory", action="store_true", help="leave out what is in memory")
    parser.add_argument("--no-auto", action="store_true", help="leave out the chain")
    parser.add_argument("--mixed", type=int, help="only so many rows of eight mixed columns")
    parser.add_argument("--chain", action="store_true", help="only the chain, 1,000,000 rows")
    parser.add_argument("--preset", default="linear", help="of --mixed: linear or auto")
    parser.add_argument("--here", nargs="+", help="run one part in this process")
    arguments = parser.parse_args()
    if arguments.here:
        what, *given = arguments.here
        parts = {"auto": auto, "linear": linear, "least_squares": least_squares}
        part = {**parts, "boosted": boosted, "mixed_columns": mixed_columns}.get(what)
        print(json.dumps(part(*given) if part else in_memory(int(given[0]))))
        return
    if arguments.mixed:
        only_mixed(arguments.mixed, arguments.preset)
        return
    if arguments.chain:
        finish(*chain(min(arguments.most, 1_000_000)))
    import numpy as np

    found, bars = {}, {}
    if not arguments.no_memory:
        found["in memory"] = alone("in_memory", min(arguments.most, 1_000_000))
        bars[f"in memory: below {MOST_GIGABYTES:g} GB"] = (
            found["in memory"]["gigabytes"] < MOST_GIGABYTES
        )
    if not arguments.no_auto:
        found["auto"], of_auto = chain(min(arguments.most, 1_000_000))
        bars |= of_auto
    sizes = [n for n in (10**4, 10**5, 10**6, 10**7) if n <= arguments.most]
    from_disk, beside = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            path = Path(folder) / f"{rows}.parquet"
            write(path, rows)
            from_disk[rows] = alone("linear", path, "1kB")
            if rows == min(10**6, sizes[-1]):
                whole = alone("linear", path, "")
                pairs = zip(from_disk[rows]["coefficients"], whole["coefficients"], strict=True)
                found["coefficients differ by"] = max(abs(one - other) for one, other in pairs)
                beside = {name: alone(name, path, "") for name in ("least_squares", "boosted")}
                beside["misscnf"] = from_disk[rows]
            path.unlink()
    times = [from_disk[rows]["processor_seconds"] for rows in sizes]
    found["grows like n^"] = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
    most = from_disk[sizes[-1]]["gigabytes_over_imports"]
    intervals = [
        of["processor_seconds_of_the_interval"] / of["processor_seconds"]
        for rows, of in from_disk.items()
        if rows >= 10**6
    ]
    errors = {name: abs(of["effect"] - 0.8) for name, of in beside.items()}
    finish(
        {**found, "from disk": from_disk, "beside": beside, "errors of the effect": errors},
        {
            **bars,
            f"from disk: below {MOST_FROM_DISK:g} GB": most < MOST_FROM_DISK,
            "from disk: as in memory to 1e-6": found["coefficients differ by"] < 1e-6,
            "from disk: no faster than n^1.05": found["grows like n^"] < 1.05,
            "an interval takes no longer than its fit": all(ratio <= 1 for ratio in intervals),
        },
    )


if __name__ == "__main__":
    main()
