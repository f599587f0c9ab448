"""Any imputer in the manner of scikit-learn, by its path, such as `sklearn.impute:KNNImputer`.

It needs `fit` and `transform` over matrices with NaN in the holes. So whatever is installed can be
a rival without a line of code here; the contract is checked on what it returns.
"""

from __future__ import annotations

import copy
import importlib
import inspect
from collections.abc import Callable
from typing import Any, final

import numpy as np

from misscnf import InputError
from misscnf_study.rivals.contract import Floats, Imputer

__all__ = ["ByPath"]


@final
class ByPath(Imputer):
    """Wraps a class that has `fit` and `transform`.

    Each `complete` works on a fresh copy of what was fitted, so that one which draws at random
    gives the same answer every time. The seed is passed on as `random_state` or `seed` where the
    class takes one of them.

    Arguments:
        path: "package.module:Class".
        options: Arguments of the class.
    """

    def __init__(self, path: str, **options: Any) -> None:  # noqa: ANN401 - each class has its own
        self.path = path
        self.options = options
        self._make = _import(path)

    def _learn(self, values: Floats, seed: int) -> None:
        takes = inspect.signature(self._make).parameters
        seeds = {name: seed for name in ("random_state", "seed") if name in takes}
        self._fitted = self._make(**{**seeds, **self.options})
        self._fitted.fit(values)

    def _fill(self, values: Floats) -> Floats:
        return np.asarray(copy.deepcopy(self._fitted).transform(values), dtype=np.float64)


def _import(path: str) -> Callable[..., Any]:
    module, colon, name = path.partition(":")
    if not (module and colon and name):
        raise InputError(
            f"an imputer's path is 'package.module:Class', such as 'sklearn.impute:KNNImputer'; "
            f"got {path!r}."
        )
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"the imputer {path!r} cannot be imported: {error}.") from error
    lacks = [verb for verb in ("fit", "transform") if not callable(getattr(found, verb, None))]
    if lacks:
        raise InputError(f"{path!r} is no imputer: it has no {' and no '.join(lacks)}.")
    return found
