r"""What things are called in print, and the order in which the paper has them."""

from __future__ import annotations

import re

from misscnf_study.suites import COMPLETE

__all__ = ["METHODS", "METRICS", "loss_label", "regime_label", "method_label", "scm_label"]

METHODS: dict[str, str] = {
    "full": "Full data",
    "listwise": "Listwise deletion",
    "mean": "Mean",
    "knn": "KNN",
    "missforest": "MissForest",
    "missforest_stekhoven": "MissForest (Stekhoven)",
    "mice": "MICE",
    "mice_forest": "MICE (forests)",
    "kpi": "KPI",
    "kpi_paper": "KPI (paper settings)",
    "diffputer": "DiffPuter",
    "diffputer_paper": "DiffPuter (paper settings)",
    "diffputer_draw": "DiffPuter (draw)",
    "miracle": "MIRACLE",
    "miracle_paper": "MIRACLE (paper settings)",
    "omiracle": "O-MIRACLE",
    "omiracle_paper": "O-MIRACLE (paper settings)",
    "misscnf": "MissCNF",
}
"""Methods, in the order of the paper's tables."""

METRICS: dict[str, str] = {
    "kl": "Symmetric KL",
    "kl_exact": "Symmetric KL (exact)",
    "ate": "ATE error",
    "ate_exact": "ATE error (shared noise)",
    "cf": "Counterfactual error",
    "seconds": "Seconds to impute and fit",
}
"""Metrics; lower is better in each."""

MECHANISMS: dict[str, str] = {
    COMPLETE: "Full data (reference)",
    "mcar": "MCAR",
    "mar": "MAR",
    "self_masking": "MNAR (self-masking)",
    "two_patterns_holds": "Two patterns, families seen everywhere",
    "two_patterns_violated": "Two patterns, families unseen in part",
    "alternating": "Every second node missing",
}

REGIMES: dict[str, str] = {
    COMPLETE: "Full data (reference)",
    "mar": "Full positivity",
    "two_patterns_holds": "Family positivity",
    "two_patterns_violated": "Family positivity violated",
}
"""The paper's names of the regimes in its positivity experiment."""


def method_label(method: str) -> str:
    """Returns a method's name in print.

    Example:
        >>> method_label("sklearn:sklearn.impute:KNNImputer")
        'KNNImputer'
    """
    return METHODS.get(method, method.rpartition(":")[2])


def loss_label(mechanism: str, rate: float | None) -> str:
    """Returns a way of losing values in print.

    Example:
        >>> loss_label("mar", 0.6)
        'MAR, 60%'
    """
    name = MECHANISMS.get(mechanism, mechanism)
    return name if rate is None or rate != rate else f"{name}, {100 * rate:g}%"


def regime_label(mechanism: str) -> str:
    """Returns a regime of the positivity experiment in print."""
    return REGIMES.get(mechanism, mechanism)


def scm_label(scm: str) -> str:
    """Returns a world in print.

    Example:
        >>> [scm_label(name) for name in ("chain_lin", "triangle_nlin_code", "chain_alpha_0.25")]
        ['Chain LIN', 'Triangle NLIN (code)', 'Chain α = 0.25']
    """
    numbered = re.fullmatch(r"(\w+)_(alpha|d)_([\d.]+)", scm)
    if numbered:
        family, option, number = numbered.groups()
        letter = {"alpha": "α"}.get(option, option)
        return f"{family.capitalize()} {letter} = {number}"
    family, *rest = scm.split("_")
    words = [f"{word.upper()}" if word in ("lin", "nlin") else f"({word})" for word in rest]
    return " ".join([family.capitalize(), *words])
