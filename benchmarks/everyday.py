"""The everyday table: 500 rows, 30 columns of mixed kinds, holes; from the check to the report.

Ten numbers, ten yes-or-no columns, five counts and five with levels, in a random graph in which
every column has up to two parents; 10 % of all cells lost. Processor time of `check`, `fit`, an
effect with its interval, and the report (bar: 20 s in all).

    python benchmarks/everyday.py
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from report import finish

from misscnf import MissCNF, check, write_report

ROWS, COLUMNS, LOST, MOST_SECONDS = 500, 30, 0.1, 20.0
KINDS = ("number", "number", "yes or no", "yes or no", "count", "level")


def everyday(seed: int) -> tuple[pd.DataFrame, str]:
    """Returns a table and its graph."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    numbers: list[np.ndarray] = []
    edges = []
    for i in range(COLUMNS):
        parents = rng.choice(i, size=min(2, i), replace=False).tolist() if i else []
        edges += [f"c{j} -> c{i}" for j in parents]
        drive = sum((0.6 * numbers[j] for j in parents), np.zeros(ROWS))
        u = rng.normal(size=ROWS)
        kind = KINDS[i % len(KINDS)]
        found = drive + 0.8 * u
        if kind == "yes or no":
            found = (found > 0).astype(float)
        elif kind == "count":
            found = rng.poisson(np.exp(0.3 * drive.clip(-3, 3) + 0.7)).astype(float)
        elif kind == "level":
            levels = np.digitize(found, [-0.5, 0.5])
            columns[f"c{i}"] = np.array(["low", "middle", "high"])[levels]
            found = levels - 1.0
        columns.setdefault(f"c{i}", found)
        numbers.append((found - found.mean()) / found.std())
    df = pd.DataFrame(columns)
    return df.mask(rng.random(df.shape) < LOST), "; ".join(edges)


def main() -> None:
    """Runs the benchmark."""
    torch.set_num_threads(1)
    df, graph = everyday(seed=0)
    seconds: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        started = time.process_time()
        found = work()
        seconds[name] = round(time.process_time() - started, 2)
        return found

    about = ("c0", "c29")
    timed("check", lambda: check(df, graph, about))
    model = timed("fit", lambda: MissCNF(graph, progress=False).fit(df))
    arms = {"do": {about[0]: 1.0}, "versus": {about[0]: 0.0}}
    effect = timed("effect", lambda: model.effect(about[1], **arms, interval=0.95))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        timed("report", lambda: write_report(model, df, page, effect=about))
    total = sum(seconds.values())
    forms = pd.Series([str(form) for form in model.forms_.values()]).value_counts().to_dict()
    figures = {"seconds": seconds, "total": round(total, 1), "stages": model.timings_}
    figures |= {"forms": forms, "estimate": effect.estimate, "interval": effect.interval}
    finish(figures, {f"{MOST_SECONDS:.0f} s in all": total <= MOST_SECONDS})


if __name__ == "__main__":
    main()
