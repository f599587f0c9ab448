r"""What does a hidden cause cost? Processor time and memory of the fit with it against without.

A nonlinear chain of three columns like the study's chain_nlin, 20,000 rows, with a hidden cause u
of all three, and `auto`; each fit in a process of its own:

    x₁ = ε + u,   x₂ = exp(x₁ / 2) + ε / 4 + u / 2,   x₃ = (x₂ − 5)³ / 15 + ε + u.

Bars: at most 4 times the processor time, and at most 1.5 times the peak resident size.

    python benchmarks/hidden_cost.py [--rows 20000] [--lost 0]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from report import finish, peak_memory

MOST_TIMES, MOST_MEMORY = 4.0, 1.5
CHAIN = "x1 -> x2; x2 -> x3"
GRAPHS = {"without": (CHAIN, None), "with": (f"{CHAIN}; u -> x1; u -> x2; u -> x3", ["u"])}


def fit(name: str, rows: int, lost: float) -> None:
    """Fits one model and prints what it took."""
    import logging

    import numpy as np
    import pandas as pd
    import torch

    from misscnf import MissCNF

    torch.set_num_threads(1)
    logging.getLogger("misscnf").setLevel(logging.ERROR)
    rng = np.random.default_rng(0)
    u, *noise = rng.normal(size=(4, rows))
    x1 = noise[0] + u
    x2 = np.exp(x1 / 2.0) + noise[1] / 4.0 + u / 2.0
    x3 = (x2 - 5.0) ** 3 / 15.0 + noise[2] + u
    table = pd.DataFrame({"x1": x1, "x2": x2, "x3": x3}).mask(rng.random((rows, 3)) < lost)
    graph, latent = GRAPHS[name]
    start = time.process_time()
    model = MissCNF(graph, latent=latent, kinds="continuous", progress=False).fit(table)
    seconds = time.process_time() - start
    forms = {node: str(form) for node, form in model.forms_.items()}
    found = {"seconds": round(seconds, 1), "megabytes": round(peak_memory()), "forms": forms}
    print(json.dumps(found))


def main() -> None:
    """Runs both fits, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--lost", type=float, default=0.0)
    parser.add_argument("--fit", choices=list(GRAPHS))
    options = parser.parse_args()
    if options.fit:
        fit(options.fit, options.rows, options.lost)
        return
    figures = {}
    for name in GRAPHS:
        words = ["--fit", name, "--rows", str(options.rows), "--lost", str(options.lost)]
        ended = subprocess.run(
            [sys.executable, __file__, *words], capture_output=True, text=True, check=True
        )
        figures[name] = json.loads(ended.stdout.splitlines()[-1])
        print(name, figures[name], flush=True)
    ratios = {of: figures["with"][of] / figures["without"][of] for of in ("seconds", "megabytes")}
    bars = {
        f"at most {MOST_TIMES} times the time": ratios["seconds"] <= MOST_TIMES,
        f"at most {MOST_MEMORY} times the memory": ratios["megabytes"] <= MOST_MEMORY,
    }
    finish({**figures, "ratios": ratios}, bars)


if __name__ == "__main__":
    main()
