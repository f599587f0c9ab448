r"""What names are called in print, and in which order they come."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from misscnf.bench.suites import COMPLETE

__all__ = ["METHODS", "METRICS", "SCM_FAMILIES", "Loss", "loss_label", "method_label", "scm_label"]

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
    "diffputer": "DiffPuter",
    "miracle": "MIRACLE",
    "omiracle": "O-MIRACLE",
    "misscnf": "MissCNF",
}
"""Methods in the order of the paper's tables."""

METRICS: dict[str, str] = {
    "kl": "Symmetric KL",
    "kl_exact": "Symmetric KL, exact",
    "ate": "ATE error",
    "ate_exact": "ATE error, shared noise",
    "cf": "Counterfactual error",
    "seconds": "Seconds to impute and fit",
}
"""Metrics; lower is better in all of them."""
