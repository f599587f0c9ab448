r"""The numbers that the paper prints, in the terms of a store.

They were copied from the tables of the source below (Appendices "Full results" and "Additional
experiments"; mean and standard deviation over seeds). Where the printed worlds and the equations
in the appendix seem to differ, both variants of ours are held against the printed one.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pandas as pd

from misscnf_study.suites import COMPLETE

__all__ = ["published", "beside", "SOURCE"]

SOURCE = (
    "T.-D. Hoang, A. Bissoto, T. Flühmann, D. Herzig, C. Nakas, L. Bally, L. M. Koch: "
    "Learning Causal Normalizing Flows from Incomplete Data via Observed-Data Likelihood, "
    "tables of the appendix."
)
"""Where the numbers come from."""

MECHANISMS = {
    "mnar": "self_masking",
    "full_positivity": "mar",
    "family_positivity": "two_patterns_holds",
    "family_violated": "two_patterns_violated",
}
"""Our names of the paper's mechanisms, where they differ."""

PRINTED_SCM = {"triangle_nlin_code": "triangle_nlin", "collider_nlin_unit": "collider_nlin"}
"""The printed world that a variant of ours is held against."""

PRINTED_METRIC = {"kl_exact": "kl", "ate_exact": "ate"}
"""The printed metric that a better estimate of ours is held against."""

KEY = ["scm", "mechanism", "rate", "method", "draws"]


@cache
def _table() -> pd.DataFrame:
    with files("misscnf_study").joinpath("published.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file)
    table["mechanism"] = table["mechanism"].fillna(COMPLETE).replace(MECHANISMS)
    table["rate"] = table["rate"] / 100.0
    table["draws"] = table["draws"].astype("Int64")
    return table.rename(columns={"study": "suite"})


def published(suite: str, metric: str) -> pd.DataFrame:
    """Returns what the paper prints of a suite, one row a number.

    Arguments:
        suite: The name of a suite; the paper prints nothing of scaling.
        metric: "kl", "ate", "cf" or "seconds"; "kl_exact" and "ate_exact" stand for the first two.

    Returns:
        Columns scm, mechanism, rate (a fraction), method, draws, mean and std.
    """
    table = _table()
    chosen = (table["suite"] == suite) & (table["metric"] == PRINTED_METRIC.get(metric, metric))
    return table.loc[chosen, [*KEY, "mean", "std"]].reset_index(drop=True)


def beside(summary: pd.DataFrame, suite: str, metric: str) -> pd.DataFrame:
    """Returns a summary with the printed numbers in two more columns and our ratio to them.

    Arguments:
        summary: Rows with scm, mechanism, rate, method, draws and mean.
        suite: The suite that they belong to.
        metric: The metric that they hold.
    """
    printed = published(suite, metric).rename(columns={"mean": "printed", "std": "printed_std"})
    ours = summary.assign(printed_scm=summary["scm"].replace(PRINTED_SCM))
    both = ours.merge(
        printed.rename(columns={"scm": "printed_scm"}),
        how="left",
        on=["printed_scm", *KEY[1:]],
        validate="many_to_one",
    )
    return both.drop(columns="printed_scm").assign(ratio=both["mean"] / both["printed"])
