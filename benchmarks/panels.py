"""What tables over time cost: against pygformula, in memory, and as visits get more.

    python benchmarks/panels.py                                # all three; the first needs a table
    python benchmarks/panels.py --only visits
    python benchmarks/panels.py --only rival --samples 100

- `rival`: 2,500 people, 7 visits (gfoRmula's survival example, read where it lies beside the
  repository): fit and three regimes with 95 % intervals, and pygformula's parametric g-formula
  with the same models and 100 bootstrap samples, in one run. pygformula is no dependency: it is
  timed where it can be imported, and skipped, with the reason, where not.
- `large`: 20,000 people, 20 visits, a fifth of the covariate lost at random: peak memory of a fit.
- `visits`: 1,000 people, 5, 10, 20 and 40 visits: processor time a visit, after a first fit.

Bars: fit and intervals within three minutes of processor time, and within that of pygformula; less
than 4 GB; a visit of 40 costs at most one and a half times a visit of 5.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
from report import finish, peak_memory

from misscnf import MissCNF

TABLE = Path(__file__).resolve().parents[2] / "shared" / "data" / "gformula_basicdata_nocomp.csv"
BEFORE = "mean(L1)[t-1], mean(L2)[t-1], A[t-1], L3, time"
PUBLISHED = (
    f"{BEFORE} -> L1[t]; {BEFORE}, L1[t] -> L2[t]; {BEFORE}, L1[t], L2[t] -> A[t]; "
    "L1[t-1], L2[t-1], A[t-1], L3, time, L1[t], L2[t], A[t] -> Y[t]"
)
SMALL = "L[t-1], A[t-1] -> L[t]; L[t], A[t-1] -> A[t]; L[t], A[t] -> Y[t]"
REGIMES = {"natural": {}, "never": {"A": 0}, "always": {"A": 1}}
PARTS = ("rival", "visits", "large")


def panel(people: int, visits: int, seed: int = 0, lost: float = 0.2) -> pd.DataFrame:
    """A covariate, a treatment that follows it, and an event."""
    rng = np.random.default_rng(seed)
    value, given, alive = rng.normal(size=people), np.zeros(people), np.ones(people, dtype=bool)
    parts = []
    for week in range(visits):
        if week:
            value = 0.6 * value - 0.4 * given + rng.normal(size=people)
        given = (rng.random(people) < 1 / (1 + np.exp(-value))).astype(float)
        event = rng.random(people) < 1 / (1 + np.exp(4 - 0.5 * value + 0.5 * given))
        shown = np.where(rng.random(people) < lost, np.nan, value)
        columns = {"id": np.arange(people), "week": week, "L": shown, "A": given}
        parts.append(pd.DataFrame(columns).assign(Y=event.astype(int))[alive])
        alive &= ~event
    return pd.concat(parts, ignore_index=True)


def fitted_seconds(people: int, visits: int) -> float:
    """Returns the processor time of a fit."""
    table, started = panel(people, visits), time.process_time()
    kinds = {"Y": "event", "A": "binary"}
    MissCNF(SMALL, "linear", id="id", time="week", kinds=kinds, progress=False).fit(table)
    return time.process_time() - started


def ours(table: pd.DataFrame) -> dict[str, Any]:
    """Fits, and asks three regimes with intervals."""
    started, kinds = time.process_time(), {"Y": "event", "L3": "continuous"}
    model = MissCNF(PUBLISHED, "linear", id="id", time="t0", kinds=kinds, progress=False)
    model.fit(table)
    fit, found = time.process_time() - started, {}
    for name, do in REGIMES.items():
        last = model.risk("Y", do=do, interval=0.95).table.iloc[-1]
        found[name] = [float(last[end]) for end in ("risk", "risk_lower", "risk_upper")]
    return {"risks": found, "fit": fit, "seconds": time.process_time() - started}


def rival(table: pd.DataFrame, samples: int) -> dict[str, Any]:
    """Times pygformula with the published models, or says why it cannot be run."""
    try:
        import matplotlib

        matplotlib.use = lambda *_, **__: None  # it asks for a window, and draws nothing here
        # The wheel of 1.2.0 imports a file that it does not hold.
        about = sys.modules.setdefault("pygformula.version", ModuleType("version"))
        about.__dict__.setdefault("__version__", "1.2.0")
        from pygformula import ParametricGformula
        from pygformula.interventions import static
    except Exception as error:  # whatever its imports trip over
        return {"skipped": f"pygformula cannot be imported: {error}"}
    before = "lag1_A + lag_cumavg1_L1 + lag_cumavg1_L2 + L3 + t0"
    visits = int(table["t0"].nunique())
    started = time.process_time()
    model = ParametricGformula(
        obs_data=table.copy(),
        id="id",
        time_name="t0",
        time_points=visits,
        covnames=["L1", "L2", "A"],
        covtypes=["binary", "bounded normal", "binary"],
        covmodels=[
            f"L1 ~ {before}",
            f"L2 ~ L1 + {before}",
            f"A ~ L1 + L2 + {before}",
        ],
        basecovs=["L3"],
        outcome_name="Y",
        outcome_type="survival",
        ymodel="Y ~ A + L1 + L2 + L3 + lag1_A + lag1_L1 + lag1_L2 + t0",
        int_descript=["never", "always"],
        Intervention1_A=[static, np.zeros(visits)],
        Intervention2_A=[static, np.ones(visits)],
        nsamples=samples,
        parallel=False,
        seed=1,
    )
    try:
        model.fit()
    except Exception as error:  # such as of a pandas that it does not know
        return {"skipped": f"pygformula failed: {type(error).__name__}: {error}"}
    return {"samples": samples, "seconds": time.process_time() - started}


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--samples", type=int, default=100)
    given = parser.parse_args()
    figures: dict[str, Any] = {}
    bars: dict[str, bool] = {}
    if "rival" in given.only and not TABLE.exists():
        figures["rival"] = {"skipped": "the table of gfoRmula is not beside the repository"}
    elif "rival" in given.only:
        table = pd.read_csv(TABLE)
        mine = figures["misscnf"] = ours(table)
        print(mine, flush=True)
        bars["fit and three intervals within three minutes"] = mine["seconds"] <= 180.0
        its = figures["rival"] = rival(table, given.samples)
        print(its, flush=True)
        if "seconds" in its:
            bars["and within the time of pygformula"] = mine["seconds"] <= its["seconds"]
    if "visits" in given.only:
        fitted_seconds(300, 3)  # what is imported late is no cost of visits
        seconds = {visits: fitted_seconds(1000, visits) for visits in (5, 10, 20, 40)}
        figures["visits"] = seconds
        print(seconds, flush=True)
        bars["linear in visits"] = seconds[40] / 40 <= 1.5 * seconds[5] / 5
    if "large" in given.only:
        figures["large"] = {"seconds": fitted_seconds(20_000, 20), "MB": peak_memory()}
        print(figures["large"], flush=True)
        bars["20,000 people, 20 visits below 4 GB"] = figures["large"]["MB"] < 4096
    finish(figures, bars)


if __name__ == "__main__":
    main()
