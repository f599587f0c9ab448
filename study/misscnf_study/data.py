r"""What a trial runs on: a world, its tables, and the holes in them.

All of it depends on (scm, mechanism, rate, seed) and the number of rows alone, so that methods
are compared on the same cells. As in the paper (Section "Setup"), 20,000 rows train, 2,500
validate and 2,500 test; train and validation lose values, each by a law of its own, and the test
rows are complete. A higher rate keeps the holes of a lower one and adds to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from misscnf.draws import derive_generator
from misscnf_study.losses import Missingness, ampute, causes_of_loss, load_missingness
from misscnf_study.suites import COMPLETE
from misscnf_study.worlds import World, load_scm

__all__ = ["Tables", "TrialData", "make_data", "TRAIN_ROWS"]

TRAIN_ROWS = 20_000
TRAIN_ROWS_FOR_A_TEST_ROW = 8

REGIMES: dict[str, tuple[str, dict[str, Any]]] = {
    "two_patterns_holds": ("two_patterns", {"regime": "holds"}),
    "two_patterns_violated": ("two_patterns", {"regime": "violated"}),
}
"""Mechanisms of loss that are another one with options."""


@dataclass(frozen=True, eq=False)
class Tables:
    """What a method may look at. What is known only here is for references and oracles alone."""

    train: pd.DataFrame
    """With holes."""
    validation: pd.DataFrame
    """With holes."""
    complete_train: pd.DataFrame
    """The same rows before anything was lost."""
    complete_validation: pd.DataFrame
    """Likewise."""
    causes: Mapping[str, tuple[str, ...]]
    """The columns that the loss of each column depends on."""


@dataclass(frozen=True, eq=False)
class TrialData:
    """A world and what was drawn from it."""

    world: World
    """The truth."""
    tables: Tables
    """What a method learns from."""
    test: pd.DataFrame
    """Complete rows that no method sees."""


def make_data(
    scm: str, mechanism: str, rate: float | None, seed: int, rows: int | None = None
) -> TrialData:
    """Draws the tables of a trial.

    Arguments:
        scm: The world, as `load_scm` takes it.
        mechanism: A mechanism of loss, or "complete".
        rate: Its rate, if it has one.
        seed: The same seed gives the same tables and the same holes.
        rows: Rows to train on; an eighth of them validate and test.
    """
    world = load_scm(scm)
    count = TRAIN_ROWS if rows is None else rows
    few = max(1, count // TRAIN_ROWS_FOR_A_TEST_ROW)
    train, validation, test = (
        world.sample(n, seed, purpose)
        for n, purpose in ((count, "train"), (few, "validation"), (few, "test"))
    )
    tables = Tables(
        train=_lose(train, world, mechanism, rate, seed, "train"),
        validation=_lose(validation, world, mechanism, rate, seed, "validation"),
        complete_train=train,
        complete_validation=validation,
        causes=_causes(world, mechanism, rate),
    )
    return TrialData(world, tables, test)


def _lose(
    table: pd.DataFrame, world: World, mechanism: str, rate: float | None, seed: int, split: str
) -> pd.DataFrame:
    if mechanism == COMPLETE:
        return table
    holes = derive_generator(seed, "holes", split).initial_seed()
    return ampute(table, world.graph, _mechanism(mechanism, rate), seed=holes)


def _causes(world: World, mechanism: str, rate: float | None) -> dict[str, tuple[str, ...]]:
    if mechanism == COMPLETE:
        return dict.fromkeys(world.graph.nodes, ())
    return causes_of_loss(_mechanism(mechanism, rate), world.graph)


def _mechanism(mechanism: str, rate: float | None) -> Missingness:
    name, options = REGIMES.get(mechanism, (mechanism, {}))
    return load_missingness(name, rate, **options)
