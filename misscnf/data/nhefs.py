"""A real table with a published answer: does quitting smoking make people gain weight?

NHEFS followed 1629 smokers from 1971 to 1982; 63 of them have no weight in 1982. Hernán and Robins
(Causal Inference: What If, part II) estimate the effect of quitting on the change of weight, with
nine confounders: 3.4 to 3.5 kg by inverse-probability weighting and by the g-formula, where the
plain difference of means is 2.5 kg. The table is bundled (nhefs.csv, from the package causaldata).

The graph takes quitting to depend on all confounders, the change of weight on these and on
quitting, and each confounder on all before it in the list: an order, but no independence, is
assumed among them.
"""

from __future__ import annotations

import itertools
from importlib.resources import files

import pandas as pd

from misscnf.graph import CausalGraph

__all__ = ["load_nhefs", "nhefs_graph", "PUBLISHED", "TREATMENT", "OUTCOME"]

CONFOUNDERS = ["sex", "race", "age", "education", "smokeyrs", "smokeintensity"]
CONFOUNDERS += ["exercise", "active", "wt71"]
TREATMENT, OUTCOME = "qsmk", "wt82_71"
LEVELS = {"sex": "01", "race": "01", "education": "12345", "exercise": "012", "active": "012"}
"""The columns with levels, a digit each, in their order."""
PUBLISHED = {"estimate": 3.5, "lower": 2.6, "upper": 4.5, "units": "kg"}
"""The g-formula over all 1629 rows (chapter 13): 3.5 kg, 95 % interval 2.6 to 4.5."""


def load_nhefs() -> pd.DataFrame:
    """Returns the eleven columns of the question, 1629 rows.

    Example:
        >>> int(load_nhefs()["wt82_71"].isna().sum())
        63
    """
    with files("misscnf.data").joinpath("nhefs.csv").open(encoding="utf-8") as file:
        table = pd.read_csv(file, dtype=dict.fromkeys(LEVELS, str))
    codes = {name: pd.CategoricalDtype(list(LEVELS[name]), ordered=True) for name in LEVELS}
    return table.astype(codes)


def nhefs_graph() -> CausalGraph:
    """Returns the graph of the question.

    Example:
        >>> nhefs_graph().parents_of("wt82_71")[-1]
        'qsmk'
    """
    nodes = (*CONFOUNDERS, TREATMENT, OUTCOME)
    return CausalGraph.from_edges(itertools.combinations(nodes, 2), nodes)
