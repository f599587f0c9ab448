"""Causal normalizing flows learned from tables with holes.

A person has a table with missing values and a causal graph. `MissCNF` fits a causal flow to the
table as it is, by the likelihood of what each row shows, and answers from that one model:
densities of any subset of columns, interventions, counterfactuals, effects and imputations.
"""

from misscnf.effects import Effect
from misscnf.errors import InputError, ModelFileError
from misscnf.estimator import MissCNF
from misscnf.graph import CausalGraph
from misscnf.table import IncompleteTable

__version__ = "0.1.0"
__all__ = ["MissCNF", "CausalGraph", "IncompleteTable", "Effect", "InputError", "ModelFileError"]
