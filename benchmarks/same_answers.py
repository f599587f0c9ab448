"""Do answers stay what they were? Trials of the study, again, beside their rows of 0.1.0.

The twelve settings of study/results/unseen (seeds 10 to 14) and the positivity suite (seed 0):
`kl_exact` of the code as it stands over that of 0.1.0. Bars: the geometric mean over settings
within 3 %, no setting above 1.25. The store is resumable; each line has its commit.

    python benchmarks/same_answers.py [--jobs 2] [--summary]
"""

from __future__ import annotations

import argparse
import csv
import math
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from misscnf_study.runner import run_trial
from misscnf_study.suites import SUITES, grid
from report import finish
from store import Lines

HERE = Path(__file__).parent
RESULTS = HERE.parent / "study" / "results"
BEFORE = {"main": RESULTS / "unseen" / "main.csv", "positivity": RESULTS / "positivity.csv"}
SEEDS = {"main": range(10, 15), "positivity": range(1)}


def rows_before() -> dict[str, dict[str, str]]:
    """Returns what 0.1.0 found, by trial."""
    found = {}
    for suite, path in BEFORE.items():
        for row in csv.DictReader(path.open()):
            ours = (row["method"], row["preset"], row["status"]) == ("misscnf", "auto", "ok")
            whole = not (row["draws"] or row["rows"] or row["epochs"])
            if ours and whole and int(row["seed"]) in SEEDS[suite]:
                names = ("scm", "mechanism", "rate", "seed")
                found[" ".join([suite, *(row[name] or "-" for name in names)])] = row
    return found


def again(trial: str) -> dict[str, Any]:
    """Runs a trial once more."""
    suite, scm, mechanism, rate, seed = trial.split()
    rates = () if rate == "-" else [float(rate)]
    (asked,) = (
        one
        for one in grid(SUITES[suite], scm=[scm], rate=rates, method=["misscnf"], seed=[int(seed)])
        if one.mechanism == mechanism
    )
    started = time.process_time()
    row = run_trial(asked).row
    seconds = round(time.process_time() - started, 1)
    figures = {"kl_exact": row.get("kl_exact"), "seconds": seconds, "error": row.get("error")}
    return {"trial": trial, **figures}


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--summary", action="store_true", help="run nothing more")
    given = parser.parse_args()
    before = rows_before()
    wanted = [(trial,) for trial in before]
    lines = Lines(HERE / "results" / "same_answers.jsonl", ["trial"])
    if not given.summary:
        lines.run(again, wanted, given.jobs)
    by_setting: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines.of(wanted):
        by_setting[line["trial"].rpartition(" ")[0]].append(line)
    ratios = {
        setting: sum(line["kl_exact"] for line in its)
        / sum(float(before[line["trial"]]["kl_exact"]) for line in its)
        for setting, its in sorted(by_setting.items())
    }
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    figures = {
        "trials": sum(map(len, by_setting.values())),
        "geometric mean": round(mean, 4),
        "by setting": {setting: round(ratio, 3) for setting, ratio in ratios.items()},
    }
    bars = {"within 3 %": abs(mean - 1) <= 0.03, "none above 1.25": max(ratios.values()) <= 1.25}
    finish(figures, bars)


if __name__ == "__main__":
    main()
