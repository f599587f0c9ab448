r"""A suite: worlds × ways of losing values × methods × seeds, as data; `grid` lists its trials.

Options narrow a suite: a value that is named replaces the suite's list along its axis, and several
add up. The reference on complete data belongs to every way of losing values, so narrowing these
keeps it. Seeds come first in the order of trials: an interrupted sweep has whole tables.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from misscnf import InputError
from misscnf_study.suites.trial import COMPLETE, Trial

__all__ = ["Suite", "grid", "choose"]

REFERENCE = "full"
"""The method that sees the complete table, whatever was lost."""


@dataclass(frozen=True)
class Suite:
    """An experiment as data."""

    name: str
    """What it is called on the command line."""
    about: str
    """A line that says what it asks."""
    scms: tuple[str, ...]
    """The worlds."""
    losses: tuple[tuple[str, float | None], ...]
    """Mechanisms of loss with their rates; None where a mechanism has none."""
    methods: tuple[str, ...]
    """The methods."""
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    """The seeds."""
    preset: str = "auto"
    """The preset of every flow, if no other is asked for."""
    draws: tuple[int | None, ...] = (None,)
    """Numbers of draws in a step; None leaves them to the preset."""
    more_scms: tuple[str, ...] = ()
    """Further worlds that one may ask for."""
    curves: bool = False
    """Whether the local KL along the node that decides the pattern is kept."""


def grid(
    suite: Suite,
    *,
    scm: Sequence[str] = (),
    mechanism: Sequence[str] = (),
    rate: Sequence[float] = (),
    method: Sequence[str] = (),
    preset: Sequence[str] = (),
    seed: Sequence[int] = (),
    draws: Sequence[int] = (),
    rows: int | None = None,
    epochs: int | None = None,
) -> list[Trial]:
    """Lists the trials of a suite, narrowed to the values that are given.

    Arguments:
        suite: The suite.
        scm: Worlds, of the suite or of its further ones.
        mechanism: Mechanisms of loss, of the suite.
        rate: Rates, of the suite.
        method: Any methods.
        preset: Presets; the suite's if none.
        seed: Any seeds.
        draws: Numbers of draws in a step.
        rows: Rows to train on, for a quick look; part of each trial's id.
        epochs: Epochs, likewise.

    Raises:
        InputError: If a value is not one of the suite's, or no trial fits them all.
    """
    choose("scm", scm, (*suite.scms, *suite.more_scms), f"the suite {suite.name}")
    choose("mechanism", mechanism, [name for name, _ in suite.losses], f"the suite {suite.name}")
    choose("rate", rate, [r for _, r in suite.losses if r], f"the suite {suite.name}")
    _check_counts({"seed": (seed, 0), "draws": (draws, 1)})
    _check_counts({"rows": ((rows,), 50), "epochs": ((epochs,), 1)})
    losses = [
        (name, share)
        for name, share in suite.losses
        if (not mechanism or name in mechanism) and (not rate or share in rate)
    ]
    trials = [
        Trial(suite.name, world, *loss, way, flow, number, points, rows, epochs)
        for number, flow, world, points in product(
            _unique(seed) or suite.seeds,
            _unique(preset) or (suite.preset,),
            _unique(scm) or suite.scms,
            _unique(draws) or suite.draws,
        )
        for loss, way in _settings(losses, _unique(method) or suite.methods)
    ]
    if not trials:
        raise InputError(
            f"nothing in the suite {suite.name} has --mechanism {' '.join(mechanism)} together "
            f"with --rate {' '.join(f'{r:g}' for r in rate)}; leave one of them out."
        )
    return trials


def choose(option: str, asked: Iterable[object], known: Iterable[object], whose: str) -> None:
    """Refuses what is not known, naming the option and what comes close.

    Raises:
        InputError: If something asked for is not known.
    """
    names = _unique([_text(value) for value in known])
    for value in asked:
        text = _text(value)
        if text in names:
            continue
        close = [] if isinstance(value, float) else difflib.get_close_matches(text, names)
        hint = f"did you mean {' or '.join(close)}?" if close else f"it has {', '.join(names)}."
        raise InputError(f"--{option}: {whose} has no {text}; {hint}")


def _settings(
    losses: list[tuple[str, float | None]], methods: Sequence[str]
) -> Iterable[tuple[tuple[str, float | None], str]]:
    if losses and REFERENCE in methods:
        yield (COMPLETE, None), REFERENCE
    yield from product(losses, [method for method in methods if method != REFERENCE])


def _check_counts(counts: dict[str, tuple[Sequence[int | None], int]]) -> None:
    for option, (values, least) in counts.items():
        for value in values:
            if value is not None and value < least:
                raise InputError(f"--{option} is a whole number of at least {least}; got {value}.")


def _unique(values: Sequence) -> tuple:
    return tuple(dict.fromkeys(values))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
