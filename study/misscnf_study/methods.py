r"""The methods by name: each turns tables with holes into a fitted flow.

The flow is the same for all of them, in shape and in budget. `misscnf` shows it the table as it
is, and `misscnf_loss` tells it besides that each column drives its own loss; every rival makes the
table complete first, by an imputer fitted to the training rows and applied to validation rows too,
or by leaving rows out; `full` is shown what was lost, and `omiracle` is told the graph and what
the loss depends on. Imputers that train have their `fast` preset; those of the paper's settings
have `_paper` to their names.

To add a rival, add an imputer to `misscnf_study.rivals`; any class with scikit-learn's `fit` and
`transform` serves without, as ``sklearn:package.module:Class``.
"""

from __future__ import annotations

import contextlib
import difflib
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from misscnf import CausalGraph, InputError, MissCNF
from misscnf_study.data import Tables
from misscnf_study.rivals import (
    IMPUTERS,
    ByPath,
    DiffPuter,
    ImpossibleError,
    Imputer,
    Kpi,
    Miracle,
    complete_rows,
)

__all__ = ["METHODS", "Method", "Flow", "load_method"]


@dataclass(frozen=True)
class Flow:
    """The flow that every method fits."""

    graph: CausalGraph
    """The causal graph."""
    preset: str = "auto"
    """A preset of `MissCNF`."""
    seed: int = 0
    """Where randomness starts."""
    settings: Mapping[str, Any] | None = None
    """Changes to the preset."""
    checkpoint: Path | None = None
    """A directory that lets an interrupted fit go on."""
    kinds: Mapping[str, Any] | str = "continuous"
    """The kinds of the columns, as `MissCNF` takes them."""
    loss: Mapping[str, Sequence[str]] | None = None
    """What drives the loss of columns, likewise."""

    def fit(self, train: pd.DataFrame, validation: pd.DataFrame | float) -> MissCNF:
        """Fits the flow to a table, by the likelihood of what its rows show."""
        model = MissCNF(
            self.graph,
            self.preset,
            kinds=self.kinds,
            seed=self.seed,
            settings=dict(self.settings or {}),
            loss=self.loss,
            allow_uncovered=True,  # the scaling suite shows no family whole, on purpose
            progress=False,
        )
        resumed = self.checkpoint is not None and self.checkpoint.exists()
        try:
            return model.fit(train, validation=validation, checkpoint=self.checkpoint)
        except InputError:
            if not resumed or self.checkpoint is None:
                raise
        # What was left behind belongs to another version of the code or of the table.
        shutil.rmtree(self.checkpoint, ignore_errors=True)
        return model.fit(train, validation=validation, checkpoint=self.checkpoint)


Method = Callable[[Tables, Flow], MissCNF]
"""Takes the tables of a trial and the flow, and returns it fitted."""


def as_it_is(tables: Tables, flow: Flow) -> MissCNF:
    """Fits the flow to the table with its holes: the paper's method."""
    return flow.fit(tables.train, tables.validation)


def told_the_loss(tables: Tables, flow: Flow) -> MissCNF:
    """Fits the flow to the table with its holes, told that each column drives its own loss.

    Nothing is said of how strongly. Validation rows are lost by a law of their own, so a tenth of
    the training rows is held out instead.
    """
    told = replace(flow, loss={name: (name,) for name in _with_holes(tables.train)})
    return told.fit(tables.train, 0.1)


def told_a_wrong_loss(tables: Tables, flow: Flow) -> MissCNF:
    """The same, told that the parents of each column drive its loss, which they do not."""
    parents = {name: flow.graph.parents_of(name) for name in _with_holes(tables.train)}
    return replace(flow, loss=parents).fit(tables.train, 0.1)


def _with_holes(table: pd.DataFrame) -> list[str]:
    return [str(name) for name in table.columns[table.isna().any()]]


def nothing_lost(tables: Tables, flow: Flow) -> MissCNF:
    """Fits the flow to the table before anything was lost: the reference."""
    return flow.fit(tables.complete_train, tables.complete_validation)


def complete_rows_only(tables: Tables, flow: Flow) -> MissCNF:
    """Fits the flow to the rows without holes; a tenth of them validate if no other can."""
    train = complete_rows(tables.train)
    validation: pd.DataFrame | float = 0.1
    with contextlib.suppress(ImpossibleError):
        validation = complete_rows(tables.validation)
    return flow.fit(train, validation)


def impute_then_fit(make: Callable[[], Imputer]) -> Method:
    """Returns the method that completes both tables first."""

    def method(tables: Tables, flow: Flow) -> MissCNF:
        imputer = make().fit(tables.train, seed=flow.seed)
        return flow.fit(imputer.complete(tables.train), imputer.complete(tables.validation))

    return method


def oracle_miracle(preset: str) -> Method:
    """Returns MIRACLE with the true graph and the true causes of loss: the paper's O-MIRACLE."""

    def method(tables: Tables, flow: Flow) -> MissCNF:
        def make() -> Imputer:
            return Miracle(preset, graph=flow.graph, causes=tables.causes)

        return impute_then_fit(make)(tables, flow)

    return method


METHODS: dict[str, Method] = {
    "misscnf": as_it_is,
    "misscnf_loss": told_the_loss,
    "misscnf_wrong_loss": told_a_wrong_loss,
    "full": nothing_lost,
    "listwise": complete_rows_only,
    **{name: impute_then_fit(make) for name, make in IMPUTERS.items()},
    "omiracle": oracle_miracle("fast"),
    "kpi_paper": impute_then_fit(lambda: Kpi("paper")),
    "diffputer_paper": impute_then_fit(lambda: DiffPuter("paper")),
    "miracle_paper": impute_then_fit(lambda: Miracle("paper")),
    "omiracle_paper": oracle_miracle("paper"),
}
"""Every method by its name."""


def load_method(name: str) -> Method:
    """Returns a method.

    Arguments:
        name: A key of `METHODS`, or ``sklearn:package.module:Class``.

    Raises:
        InputError: If there is no such method.
    """
    if name in METHODS:
        return METHODS[name]
    if name.startswith("sklearn:"):
        path = name.removeprefix("sklearn:")
        try:
            ByPath(path)
        except InputError as error:
            raise InputError(f"--method: {error}") from error
        return impute_then_fit(lambda: ByPath(path))
    close = difflib.get_close_matches(name, METHODS)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(METHODS)}."
    raise InputError(f"--method: there is no {name!r}; {hint}")
