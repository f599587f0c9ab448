"""Causal normalizing flows learned from tables with holes.

A person has a table with missing values and a causal graph. `MissCNF` fits a causal flow to the
table as it is, by the likelihood of what each row shows, and answers from that one model:
densities of any subset of columns, interventions, counterfactuals, effects and imputations.
`check` says before any fit what the holes leave identified, `MissCNFImputer` fills holes inside
scikit-learn pipelines and `pool` pools analyses of several imputed tables by Rubin's rules.

Each name is imported when it is first used, so that `misscnf --help` need not wait for torch.
"""

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from misscnf.check import check
    from misscnf.effects import Effect
    from misscnf.errors import InputError, ModelFileError
    from misscnf.estimator import MissCNF
    from misscnf.graph import CausalGraph
    from misscnf.imputer import MissCNFImputer
    from misscnf.pooling import Pooled, pool
    from misscnf.table import IncompleteTable

__version__ = "0.1.0"
__all__ = [
    "MissCNF",
    "MissCNFImputer",
    "check",
    "pool",
    "CausalGraph",
    "IncompleteTable",
    "Effect",
    "Pooled",
    "InputError",
    "ModelFileError",
]

_HOMES = {
    "MissCNF": "misscnf.estimator",
    "MissCNFImputer": "misscnf.imputer",
    "check": "misscnf.check",
    "pool": "misscnf.pooling",
    "CausalGraph": "misscnf.graph",
    "IncompleteTable": "misscnf.table",
    "Effect": "misscnf.effects",
    "Pooled": "misscnf.pooling",
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


class _Package(ModuleType):
    """This package, whose public names stay what they are called for."""

    def __setattr__(self, name: str, value: object) -> None:
        # Whoever imports misscnf.check first would bind the package to the function's name.
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
