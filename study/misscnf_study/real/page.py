r"""The suite as a table: a line a question, a column a method, who holds the answer."""

from __future__ import annotations

import pandas as pd

from misscnf_study.real.methods import METHODS
from misscnf_study.real.tables import QUESTIONS

__all__ = ["answers_table"]

LABELS = {
    "misscnf": "misscnf",
    "complete_cases": "complete cases, regression",
    "mice": "MICE (m = 20), regression",
    "forest": "chained regressions, causal forest",
    "gcm": "dowhy.gcm, complete cases",
}


def answers_table(rows: pd.DataFrame) -> str:
    """Returns the newest answers as Markdown; what does not hold the answer is marked "off"."""
    methods = [name for name in METHODS if name in set(rows["method"])]
    lines = [["table", "answer", *(LABELS[name] for name in methods)]]
    lines.append(["---"] * len(lines[0]))
    for name in QUESTIONS:
        for seed, mine in rows[rows["scm"] == name].groupby("seed"):
            known = mine["answer"].dropna()
            head = name if seed == 0 else f"{name}, seed {seed!s}"
            cells = [_cell(mine[mine["method"] == method]) for method in methods]
            lines.append([head, _number(known.iloc[0]) if len(known) else "–", *cells])
    lines.append(["**hold the answer**", "", *(_held(rows, method) for method in methods)])
    widths = [_width(rows, method) for method in methods]
    lines.append(["median width over ours", "", *widths])
    lines.append(["processor time", "", *(_time(rows, method) for method in methods)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def _cell(rows: pd.DataFrame) -> str:
    if rows.empty:
        return "–"
    row = rows.iloc[0]
    if row["status"] != "ok":
        return str(row["status"])
    found = f"{_number(row['estimate'])} ({_number(row['lower'])} to {_number(row['upper'])})"
    return found if _holds(row) else f"{found} **off**"


def _holds(row: pd.Series) -> bool:
    return bool(row["lower"] <= row["answer"] <= row["upper"])


def _held(rows: pd.DataFrame, method: str) -> str:
    mine = rows[(rows["method"] == method) & (rows["status"] == "ok")]
    return f"{sum(_holds(row) for _, row in mine.iterrows())} of {len(mine)}"


def _width(rows: pd.DataFrame, method: str) -> str:
    """Returns how wide intervals are beside ours: a wide one holds an answer easily."""
    kept = rows[rows["status"] == "ok"].set_index(["scm", "seed", "method"])
    wide = (kept["upper"] - kept["lower"]).unstack("method")
    if "misscnf" not in wide or method not in wide:
        return "–"
    return f"{(wide[method] / wide['misscnf']).median():.2f}"


def _time(rows: pd.DataFrame, method: str) -> str:
    return f"{rows.loc[rows['method'] == method, 'seconds'].sum():.0f} s"


def _number(value: float) -> str:
    """Returns three digits, and whole numbers above a hundred."""
    text = f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return text.replace("-", "−")
