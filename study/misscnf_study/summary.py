r"""From rows to means: what tables print and figures draw.

Trials that differ in their seed alone are averaged. A line is a method in one variant: preset,
rows and epochs are part of its name where they are not the usual ones, so that a quick look and a
full run never mix. Among the lines of one setting the best and the second are marked; full data
is the reference and takes no part.
"""

from __future__ import annotations

import pandas as pd

from misscnf import InputError
from misscnf_study.labels import METHODS, METRICS, method_label
from misscnf_study.suites import SUITES

__all__ = ["summarise", "SETTING", "VARIANT"]

SETTING = ["scm", "mechanism", "rate", "draws"]
"""What methods are compared within."""
VARIANT = ["method", "preset", "rows", "epochs"]
"""What makes a line."""

REFERENCE = "full"


def summarise(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Averages a metric over seeds.

    Arguments:
        rows: Rows of one suite, as a store has them.
        metric: One of their numbers.

    Returns:
        A row for each setting and variant: `SETTING`, `VARIANT`, label, mean, std (of a sample;
        NaN for one seed), count, failed, impossible and mark ("best", "second" or ""); in the
        order of the suite, and methods as in the paper.

    Raises:
        InputError: If there is no such metric, or there are no rows.
    """
    if metric not in METRICS:
        raise InputError(f"--metric: there is no {metric!r}; there are {', '.join(METRICS)}.")
    if rows.empty:
        raise InputError("the store has no rows of this suite yet; misscnf bench run makes them.")
    ok = rows["status"] == "ok"
    columns = {
        "value": rows[metric].where(ok),
        "failed": rows["status"] == "failed",
        "impossible": rows["status"] == "impossible",
    }
    groups = rows.assign(**columns).groupby([*SETTING, *VARIANT], dropna=False, sort=False)
    summary = groups.agg(
        mean=("value", "mean"),
        std=("value", "std"),
        count=("value", "count"),
        failed=("failed", "sum"),
        impossible=("impossible", "sum"),
    ).reset_index()
    summary["label"] = _labels(summary)
    summary["mark"] = _marks(summary)
    suite = str(rows["suite"].iloc[0])
    return summary.iloc[_order(summary, suite)].reset_index(drop=True)


def _labels(summary: pd.DataFrame) -> list[str]:
    several = summary["preset"].nunique() > 1
    labels = []
    for method, preset, rows, epochs in summary[VARIANT].itertuples(index=False):
        notes = [preset] if several else []
        notes += [] if pd.isna(rows) else [f"{rows} rows"]
        notes += [] if pd.isna(epochs) else [f"{epochs} epochs"]
        labels.append(method_label(method) + (f" ({', '.join(notes)})" if notes else ""))
    return labels


def _marks(summary: pd.DataFrame) -> pd.Series:
    marks = pd.Series("", index=summary.index)
    rivals = summary[(summary["method"] != REFERENCE) & summary["mean"].notna()]
    for _, group in rivals.groupby(SETTING, dropna=False):
        ranked = group["mean"].sort_values(kind="stable").index
        if len(ranked) > 1:
            marks[ranked[0]], marks[ranked[1]] = "best", "second"
    return marks


def _order(summary: pd.DataFrame, name: str) -> list[int]:
    suite = SUITES.get(name)
    scms = [] if suite is None else [*suite.scms, *suite.more_scms]
    losses = [] if suite is None else list(dict.fromkeys(loss for loss, _ in suite.losses))
    methods = list(METHODS)

    def place(i: int) -> tuple:
        row = summary.iloc[i]
        return (
            _index(losses, row["mechanism"], before=True),
            -1.0 if pd.isna(row["rate"]) else row["rate"],
            _index(scms, row["scm"]),
            -1 if pd.isna(row["draws"]) else row["draws"],
            # What the paper does not know comes just before its own method.
            _index(methods, row["method"]) if row["method"] in methods else len(methods) - 1.5,
            row["label"],
        )

    return sorted(range(len(summary)), key=place)


def _index(known: list[str], name: str, *, before: bool = False) -> int:
    return known.index(name) if name in known else (-1 if before else len(known))
