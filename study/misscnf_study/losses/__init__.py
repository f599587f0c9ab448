"""Ways of losing values, one a file; `ampute` makes holes in a complete table.

Each way is a frozen dataclass that is calibrated on a table to a law of loss: weights drawn,
intercepts found (`loss`). To add one, write the class and add a line to `MECHANISMS_OF_LOSS`.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd

from misscnf import CausalGraph, GraphLike, InputError
from misscnf.draws import derive_generator
from misscnf_study.losses.alternating import Alternating
from misscnf_study.losses.causes import causes_of_loss
from misscnf_study.losses.cells import CellLoss
from misscnf_study.losses.loss import Flags, Floats, Loss, Missingness
from misscnf_study.losses.mar import Mar, conditioning_set
from misscnf_study.losses.mcar import Mcar
from misscnf_study.losses.patterns import PatternLoss
from misscnf_study.losses.self_masking import SelfMasking
from misscnf_study.losses.two_patterns import TwoPatterns

__all__ = [
    "ampute",
    "load_missingness",
    "MECHANISMS_OF_LOSS",
    "Missingness",
    "Mcar",
    "Mar",
    "SelfMasking",
    "TwoPatterns",
    "Alternating",
    "Loss",
    "CellLoss",
    "PatternLoss",
    "conditioning_set",
    "causes_of_loss",
]

MECHANISMS_OF_LOSS: dict[str, type[Missingness]] = {
    "mcar": Mcar,
    "mar": Mar,
    "self_masking": SelfMasking,
    "two_patterns": TwoPatterns,
    "alternating": Alternating,
}
"""Every way of losing values by its name."""


def ampute(
    df: pd.DataFrame,
    graph: GraphLike,
    mechanism: str | Missingness,
    rate: float | None = None,
    seed: int = 0,
    **options: Any,  # noqa: ANN401 - each mechanism has its own
) -> pd.DataFrame:
    """Returns a copy of a table with holes made in the columns of the graph.

    With the same seed, a higher rate keeps the holes of a lower one and adds to them.

    Arguments:
        df: A table with a column for each node; other columns stay as they are. Columns that the
            loss depends on must be numeric and complete; others may be of any type, with holes.
        graph: The causal graph, in any form that `CausalGraph.read` takes.
        mechanism: A key of `MECHANISMS_OF_LOSS`, or a mechanism ready made.
        rate: The mean share of cells to lose in each node with parents; only for mechanisms that
            have one (mcar, mar, self_masking).
        seed: The same seed gives the same holes.
        options: Further fields of the mechanism, such as ``regime`` or ``scale``.

    Raises:
        InputError: If the table, the mechanism or an option cannot be used.

    Example:
        >>> table = pd.DataFrame({"x1": [0.0, 1.0, 2.0], "x2": [1.0, 3.0, 5.0]})
        >>> ampute(table, "x1 -> x2", "mcar", rate=0.5)["x1"].isna().sum()
        np.int64(0)
    """
    graph = CausalGraph.read(graph)
    if isinstance(mechanism, str):
        mechanism = load_missingness(mechanism, rate, **options)
    elif rate is not None or options:
        raise InputError("a mechanism ready made has its rate and options; leave these out.")
    values = _read_values(df, graph, mechanism.reads(graph))
    if not len(df):
        return df.copy()
    generator = np.random.default_rng(derive_generator(seed, "missingness").initial_seed())
    return _with_holes(df, graph, mechanism.observed(values, graph, generator))


def load_missingness(name: str, rate: float | None = None, **options: Any) -> Missingness:  # noqa: ANN401
    """Builds a mechanism of loss by its name.

    Arguments:
        name: A key of `MECHANISMS_OF_LOSS`.
        rate: For mechanisms that have one.
        options: Further fields of the mechanism.

    Raises:
        InputError: If there is no such mechanism, or it has no such field.
    """
    if name not in MECHANISMS_OF_LOSS:
        known = ", ".join(MECHANISMS_OF_LOSS)
        raise InputError(f"there is no mechanism of loss {name!r}; there are {known}.")
    kind = MECHANISMS_OF_LOSS[name]
    has = [field.name for field in fields(kind)]  # type: ignore[arg-type]
    if rate is not None:
        options = {"rate": rate, **options}
    elif "rate" in has:
        raise InputError(f"the mechanism {name!r} needs a rate, such as rate=0.3.")
    for option in options:
        if option not in has:
            takes = ", ".join(has) or "nothing"
            raise InputError(f"the mechanism {name!r} has no {option!r}; it takes {takes}.")
    return kind(**options)


def _read_values(df: pd.DataFrame, graph: CausalGraph, reads: tuple[int, ...]) -> Floats:
    """Returns (N, d) in graph order, NaN in the columns that the loss does not depend on."""
    for name in graph.nodes:
        count = int((df.columns == name).sum())
        if count != 1:
            raise InputError(f"the table must have one column {name!r} of the graph; got {count}.")
    values = np.full((len(df), len(graph)), np.nan)
    for i in reads:
        values[:, i] = _read_column(df[graph.nodes[i]])
    return values


def _read_column(column: pd.Series) -> Floats:
    named = f"the loss depends on the column {column.name!r}, which"
    types = pd.api.types
    if not (types.is_any_real_numeric_dtype(column) or types.is_bool_dtype(column)):
        raise InputError(f"{named} is of type {column.dtype}; give it as numbers.")
    numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    holes = int(np.isnan(numbers).sum())
    if holes:
        raise InputError(f"{named} has {holes} holes of its own; fill them or drop these rows.")
    if not np.isfinite(numbers).all():
        raise InputError(f"{named} has infinite values; replace them.")
    return numbers


def _with_holes(df: pd.DataFrame, graph: CausalGraph, observed: Flags) -> pd.DataFrame:
    table = df.copy()
    for name, kept in zip(graph.nodes, observed.T, strict=True):
        if not kept.all():
            table[name] = df[name].where(kept)
    return table
