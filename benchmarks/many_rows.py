"""What a fit to a million rows needs: peak memory, and seconds.

1,000,000 rows of the linear fork a -> b, a -> c, b -> d, c -> d. Every cell of b, c and d is lost
with probability 1 / (1 + exp(-a)): at random given a, half of them in all. The preset is `auto`,
which has to find that lines are enough. The fit runs in a process of its own, whose peak resident
size is the figure (bar: 4 GB); the same without the table and the imports is told beside it.

    python benchmarks/many_rows.py
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

from report import finish

MOST_GIGABYTES = 4.0


def peak() -> float:
    """Returns the peak resident size of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def fit(rows: int) -> None:
    """Fits once and prints the figures."""
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
    with_table, started = peak(), time.perf_counter()
    model = MissCNF("a -> b; a -> c; b -> d; c -> d", progress=False).fit(table)
    found = {
        "seconds": time.perf_counter() - started,
        "gigabytes": peak(),
        "gigabytes_of_imports": imports,
        "gigabytes_of_imports_and_table": with_table,
        "chosen": model.chosen_,
    }
    print(json.dumps(found))


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--here", action="store_true", help="fit in this process")
    arguments = parser.parse_args()
    if arguments.here:
        fit(arguments.rows)
        return
    command = [sys.executable, __file__, "--here", "--rows", str(arguments.rows)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(ended.stdout.splitlines()[-1])
    fitted = found["gigabytes"] - found["gigabytes_of_imports_and_table"]
    print(
        f"{arguments.rows} rows in {found['seconds']:.0f} s: {found['gigabytes']:.2f} GB at the "
        f"peak, {fitted:.2f} GB of them by the fit; {found['chosen']}"
    )
    met = found["gigabytes"] < MOST_GIGABYTES
    finish(
        {"rows": arguments.rows, **found, "gigabytes_of_the_fit": fitted},
        {f"below {MOST_GIGABYTES:g} GB": met},
    )


if __name__ == "__main__":
    main()
