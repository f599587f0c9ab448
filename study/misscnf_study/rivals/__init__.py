"""The rivals that impute first, one a file; `load_imputer` builds one by its name.

To add one, write the class (`contract`) and add a line to `IMPUTERS`: every law in
study/tests/test_rivals.py then holds or fails for it by name. The imputers that train have their
`fast` preset here. O-MIRACLE is `Miracle` with the true graph, so it is a method of the study
(`misscnf_study.methods`) and has no name in this table.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from misscnf import InputError
from misscnf_study.rivals.by_path import ByPath
from misscnf_study.rivals.contract import ImpossibleError, Imputer
from misscnf_study.rivals.diffputer import DiffPuter
from misscnf_study.rivals.knn import Knn
from misscnf_study.rivals.kpi import Kpi
from misscnf_study.rivals.listwise import complete_rows
from misscnf_study.rivals.mean import Mean
from misscnf_study.rivals.mice import Mice
from misscnf_study.rivals.mice_forest import MiceForest
from misscnf_study.rivals.miracle import Miracle
from misscnf_study.rivals.miss_forest import MissForest

__all__ = [
    "load_imputer",
    "complete_rows",
    "IMPUTERS",
    "Imputer",
    "ImpossibleError",
    "Mean",
    "Mice",
    "MissForest",
    "Knn",
    "MiceForest",
    "Kpi",
    "DiffPuter",
    "Miracle",
    "ByPath",
]

IMPUTERS: dict[str, Callable[[], Imputer]] = {
    "mean": Mean,
    "mice": Mice,
    "missforest": lambda: MissForest("paper"),
    "missforest_stekhoven": lambda: MissForest("stekhoven"),
    "knn": Knn,
    "mice_forest": MiceForest,
    "kpi": Kpi,
    "diffputer": DiffPuter,
    "diffputer_draw": lambda: DiffPuter(readout="draw"),
    "miracle": Miracle,
}
"""Every imputer by its name."""


def load_imputer(name: str) -> Imputer:
    """Builds an imputer.

    Arguments:
        name: A key of `IMPUTERS`, or the path "package.module:Class" of any class with `fit` and
            `transform`.

    Raises:
        InputError: If there is no such imputer.

    Example:
        >>> type(load_imputer("sklearn.impute:KNNImputer")).__name__
        'ByPath'
    """
    if name in IMPUTERS:
        return IMPUTERS[name]()
    if ":" in name:
        return ByPath(name)
    close = difflib.get_close_matches(name, IMPUTERS)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(IMPUTERS)}."
    raise InputError(f"there is no imputer {name!r}; {hint}")
