"""Causal normalizing flows learned from tables with holes.

A person has a table with missing values and a causal graph. `MissCNF` fits a causal flow to the
table as it is, by the likelihood of what each row shows, and answers from that one model:
densities of any subset of columns, interventions, counterfactuals, effects and imputations.
`check` says before any fit what the holes leave identified, `MissCNFImputer` fills holes inside
scikit-learn pipelines and `pool` pools analyses of several imputed tables by Rubin's rules.

What stands in `__all__` here is public, and so is that of `misscnf.model`, `misscnf.mechanisms`,
`misscnf.plots`, `misscnf.draws` and `misscnf.cli.plugin`; docs/api.md lists it all. Everything
else may change.
Each name is imported when it is first used, so that `misscnf --help` need not wait for torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from misscnf.data.nhefs import load_nhefs, nhefs_graph
    from misscnf.data.table import IncompleteTable
    from misscnf.data.table import describe as describe_kinds
    from misscnf.errors import InputError, ModelFileError
    from misscnf.estimators.imputer import MissCNFImputer
    from misscnf.estimators.misscnf import MissCNF
    from misscnf.fitting.settings import PRESETS, Settings
    from misscnf.graph import CausalGraph, GraphLike
    from misscnf.identification import PanelReport, Report, check
    from misscnf.queries.effects import Effect
    from misscnf.queries.incidence import Risks
    from misscnf.queries.laws import Draw
    from misscnf.queries.pooling import Pooled, pool
    from misscnf.queries.support import FittedReport
    from misscnf.queries.tipping import Sensitivity
    from misscnf.report import write_report

__version__ = "0.2.0"
__all__ = [
    "MissCNF",
    "MissCNFImputer",
    "check",
    "describe_kinds",
    "pool",
    "write_report",
    "CausalGraph",
    "GraphLike",
    "IncompleteTable",
    "Draw",
    "Settings",
    "PRESETS",
    "Effect",
    "Risks",
    "Pooled",
    "Sensitivity",
    "Report",
    "PanelReport",
    "FittedReport",
    "load_nhefs",
    "nhefs_graph",
    "InputError",
    "ModelFileError",
]

_HOMES = {
    "MissCNF": "misscnf.estimators.misscnf:MissCNF",
    "MissCNFImputer": "misscnf.estimators.imputer:MissCNFImputer",
    "check": "misscnf.identification:check",
    "describe_kinds": "misscnf.data.table:describe",
    "pool": "misscnf.queries.pooling:pool",
    "write_report": "misscnf.report:write_report",
    "CausalGraph": "misscnf.graph:CausalGraph",
    "GraphLike": "misscnf.graph:GraphLike",
    "IncompleteTable": "misscnf.data.table:IncompleteTable",
    "Settings": "misscnf.fitting.settings:Settings",
    "PRESETS": "misscnf.fitting.settings:PRESETS",
    "Draw": "misscnf.queries.laws:Draw",
    "Effect": "misscnf.queries.effects:Effect",
    "Risks": "misscnf.queries.incidence:Risks",
    "Pooled": "misscnf.queries.pooling:Pooled",
    "Sensitivity": "misscnf.queries.tipping:Sensitivity",
    "Report": "misscnf.identification:Report",
    "PanelReport": "misscnf.identification:PanelReport",
    "FittedReport": "misscnf.queries.support:FittedReport",
    "load_nhefs": "misscnf.data.nhefs:load_nhefs",
    "nhefs_graph": "misscnf.data.nhefs:nhefs_graph",
    "InputError": "misscnf.errors:InputError",
    "ModelFileError": "misscnf.errors:ModelFileError",
}
"""Where each public name lives, and what it is called there."""


def __getattr__(name: str) -> object:
    """Imports a public name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, called = _HOMES[name].split(":")
    found = globals()[name] = getattr(importlib.import_module(module), called)
    return found


def __dir__() -> list[str]:
    """Lists the public names too, imported or not."""
    return sorted({*globals(), *__all__})
