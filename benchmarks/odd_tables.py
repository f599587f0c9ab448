r"""Is any answer wrong with nothing said? Over 50 odd tables (`odd_worlds.py`), ten seeds each.

For each: truth, estimate, interval, all that was said against the answer, and whether draws
(`sample`, `impute`) stay within what their column can be. An answer is

    held        its interval holds the truth (or is unbounded)
    warned      it does not, and a warning, a note or a verdict "careful" of the report was given
    open        it does not, no table could show why, and the report's open verdict names it
    refused     no answer, in words (`InputError`)
    silent      it does not hold the truth, and nothing was said
    crashed     any other error

Bars: silent in at most 5 % of all runs; no draw outside of its column's support; nothing crashed.
A verdict against everything would meet the first: how often plain tables, and answers that hold,
are spoken against is told beside it, and at most 10 % of plain tables may be.

    python benchmarks/odd_tables.py [--only sin12 step] [--seeds 10] [--jobs 2] [--summary]

The store keeps a line of JSON a run: an interrupted one goes on where it stopped. Lines of one
`--version` are judged together, by default those of the commit. `--redo` runs again; `--summary`
runs nothing and judges what is there.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from odd_worlds import WORLDS, Odd
from report import finish
from store import Lines, commit

from misscnf import InputError, MissCNF
from misscnf.queries.effects import Effect
from misscnf.report.model_checks import check_fit
from misscnf.report.settings import ReportSettings
from misscnf.report.verdicts import verdicts

LEVEL = 0.95
MOST_SILENT, MOST_FALSE = 0.05, 0.10
FEW, EACH = 6, 5
"""A column of so many values or fewer, each seen five times on average, holds levels."""
DRAWN = 2000


class Heard(logging.Handler):
    """Keeps what the logger `misscnf` warns of."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one message."""
        self.said.append(record.getMessage())


def one_run(name: str, seed: int) -> dict[str, Any]:
    """Fits one table, asks, listens, and draws."""
    torch.set_num_threads(1)
    odd = WORLDS[name]
    df = odd.draw(np.random.default_rng([seed, *name.encode()]))
    record: dict[str, Any] = {"table": name, "seed": seed, "truth": odd.truth}
    start = time.process_time()
    logger, heard = logging.getLogger("misscnf"), Heard()
    logger.addHandler(heard)
    logger.propagate = False
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = MissCNF(odd.graph, kinds=odd.kinds or None, seed=seed, progress=False).fit(df)
            effect = model.effect(
                odd.outcome, odd.do, odd.versus, interval=LEVEL, seed=seed, **odd.ask
            )
            said = [*heard.said, *(str(one.message) for one in caught), *effect.notes]
            record |= answer(odd, effect)
            careful, left_open = told(model, df, odd, effect, seed)
            outside = leaving(odd, df, model, seed)
    except InputError as error:
        record |= {"state": "refused", "error": str(error)[:300]}
    except Exception as error:  # the reader of a traceback is a user
        record |= {"state": "crashed", "error": f"{type(error).__name__}: {error}"[:300]}
    else:
        said = list(dict.fromkeys([*said, *careful]))
        excused = any(about in left_open for about in odd.beyond)
        state = "warned" if said else "open" if excused else "silent"
        record |= {"state": "held" if record["held"] else state, "said": said, "outside": outside}
        record["forms"] = {node: str(form) for node, form in model.forms_.items()}
    finally:
        logger.removeHandler(heard)
    return record | {"seconds": round(time.process_time() - start, 1)}


def answer(odd: Odd, effect: Effect) -> dict[str, Any]:
    """Returns the estimate with its interval; one without ends excludes nothing."""
    ratio = odd.measure == "risk_ratio"
    estimate = effect.risk_ratio if ratio else effect.estimate
    ends = (effect.risk_ratio_interval if ratio else effect.interval) or (-np.inf, np.inf)
    low, high = (float(end) for end in ends)
    held = not (odd.truth < low or odd.truth > high)
    return {"estimate": estimate, "lower": low, "upper": high, "held": held}


def told(
    model: MissCNF, df: pd.DataFrame, odd: Odd, effect: Effect, seed: int
) -> tuple[list[str], list[str]]:
    """Returns the report's verdicts against the answer, and what it leaves open."""
    settings = ReportSettings()
    pair = next(iter(odd.do)), odd.outcome
    fitted = model.check(df, pair, do=odd.do, seed=seed, settings=settings.identification)
    checks = check_fit(model, model._read(df), settings.checks, seed)
    lines = verdicts(model, effect, fitted, checks)
    careful = [f"{line.about}: {line.text}" for line in lines if line.state == "careful"]
    return careful, [line.about for line in lines if line.state == "open"]


def leaving(odd: Odd, df: pd.DataFrame, model: MissCNF, seed: int) -> list[str]:
    """Returns the columns whose draws are what the column cannot be."""
    tables = {"sample": model.sample(DRAWN, seed=seed), "impute": model.impute(df, seed=seed)}
    return [
        f"{verb}: {column}"
        for verb, table in tables.items()
        for column in model.graph_.nodes
        if not possible(odd, df[column].dropna(), table[column], column)
    ]


def possible(odd: Odd, seen: pd.Series, drawn: pd.Series, column: str) -> bool:
    """Returns whether all drawn values can be of a column."""
    levels = seen.nunique() <= FEW and len(seen) >= EACH * seen.nunique()
    if levels or not pd.api.types.is_numeric_dtype(seen):
        return bool(drawn.isin(seen.unique()).all())
    numbers = drawn.to_numpy(float)
    low, high = odd.bounds.get(column, (-np.inf, np.inf))
    whole = column not in odd.whole or np.array_equal(numbers, np.round(numbers))
    return bool(
        np.isfinite(numbers).all() and low <= numbers.min() and numbers.max() <= high and whole
    )


def summary(records: list[dict]) -> dict[str, Any]:
    """Returns one line of the table: states, the middle answer, and what was said."""
    answered = [
        record for record in records if "estimate" in record and record["estimate"] is not None
    ]
    line: dict[str, Any] = {"runs": len(records), **Counter(r["state"] for r in records)}
    line["truth"] = records[0]["truth"]
    for name in ("estimate", "lower", "upper"):
        if answered:
            line[name] = float(np.median([record[name] for record in answered]))
    said = Counter(text for record in records for text in record.get("said", ()))
    line["said"] = [f"{text[:120]} ({times})" for text, times in said.most_common(2)]
    errors = Counter(record["error"][:160] for record in records if "error" in record)
    line["errors"] = [f"{text} ({times})" for text, times in errors.most_common(2)]
    line["outside"] = sorted({text for record in records for text in record.get("outside", ())})
    return line


def main() -> None:
    """Runs the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=list(WORLDS), choices=list(WORLDS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--version", default=commit(), help="of the run; by default the commit")
    parser.add_argument("--redo", action="store_true", help="run what the store has again")
    parser.add_argument("--summary", action="store_true", help="only judge what the store has")
    usual = Path("benchmarks/results/odd_tables.jsonl")
    parser.add_argument("--store", type=Path, default=usual)
    options = parser.parse_args()
    lines = Lines(options.store, ("table", "seed"), options.version)
    wanted = [(name, seed) for seed in range(options.seeds) for name in options.only]
    if not options.summary:
        lines.run(one_run, wanted, options.jobs, redo=options.redo)
    records = list(lines.of(wanted))
    judge(options.only, records)


def judge(names: list[str], records: list[dict]) -> None:
    """Prints a line a table, and leaves with the bars."""
    for name in names:
        mine = [record for record in records if record["table"] == name]
        if mine:
            print(f"{name:24s}", summary(mine))
    states = Counter(record["state"] for record in records)
    outside = [r for r in records if r.get("outside")]
    held = [record for record in records if record["state"] == "held"]
    plain = [record for record in records if WORLDS[record["table"]].plain]
    share = states["silent"] / max(1, len(records))
    false = sum(bool(record.get("said")) for record in plain) / max(1, len(plain))
    figures = {
        "tables": len({record["table"] for record in records}),
        "runs": len(records),
        **states,
        "silent_share": share,
        "silent_tables": dict(Counter(r["table"] for r in records if r["state"] == "silent")),
        "outside_tables": dict(Counter(r["table"] for r in outside)),
        "crashed_tables": dict(Counter(r["table"] for r in records if r["state"] == "crashed")),
        "held_yet_spoken_against": sum(bool(r["said"]) for r in held) / max(1, len(held)),
        "plain_spoken_against": false,
        "cpu_seconds": sum(record["seconds"] for record in records),
        "commits": sorted({record["commit"] for record in records}),
    }
    bars = {
        f"at most {MOST_SILENT:.0%} of runs are wrong with nothing said": share <= MOST_SILENT,
        "no draw leaves its column's support": not outside,
        "nothing crashes": not states["crashed"],
        f"at most {MOST_FALSE:.0%} of plain tables are spoken against": false <= MOST_FALSE,
    }
    finish(figures, bars)


if __name__ == "__main__":
    main()
