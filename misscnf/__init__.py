"""Causal normalizing flows learned from tables with holes.

A person has a table with missing values and a causal graph. `MissCNF` fits a causal flow to the
table as it is, by the likelihood of what each row shows, and answers from that one model:
densities of any subset of columns, interventions, counterfactuals, effects and imputations.
`check` says before any fit what the holes leave identified, `MissCNFImputer` fills holes inside
scikit-learn pipelines and `pool` pools analyses of several imputed tables by Rubin's rules.

Each name is imported when it is first used, so that `misscnf --help` need not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from misscnf.data.table import IncompleteTable
    from misscnf.errors import InputError, ModelFileError
    from misscnf.estimators.imputer import MissCNFImputer
    from misscnf.estimators.misscnf import MissCNF
    from misscnf.graph import CausalGraph
    from misscnf.identification import check
    from misscnf.queries.effects import Effect
    from misscnf.queries.laws import Draw
    from misscnf.queries.pooling import Pooled, pool

__version__ = "0.1.0"
__all__ = [
    "MissCNF",
    "MissCNFImputer",
    "check",
    "pool",
    "CausalGraph",
    "IncompleteTable",
    "Draw",
    "Effect",
    "Pooled",
    "InputError",
    "ModelFileError",
]

_HOMES = {
    "MissCNF": "misscnf.estimators.misscnf",
    "MissCNFImputer": "misscnf.estimators.imputer",
    "check": "misscnf.identification",
    "pool": "misscnf.queries.pooling",
    "CausalGraph": "misscnf.graph",
    "IncompleteTable": "misscnf.data.table",
    "Draw": "misscnf.queries.laws",
    "Effect": "misscnf.queries.effects",
    "Pooled": "misscnf.queries.pooling",
    "InputError": "misscnf.errors",
    "ModelFileError": "misscnf.errors",
}


def __getattr__(name: str) -> object:
    """Imports a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Lists the public names too, imported or not."""
    return sorted({*globals(), *__all__})
