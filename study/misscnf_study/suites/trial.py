r"""A trial: one method, on one table of one world, with one seed.

Its id says all that decides its result, in one word without spaces,

    main-chain_lin-mar-0.6-misscnf-auto-7
    draws-fork_nlin-mar-0.6-misscnf-paper-0-draws=32-epochs=100

and is its key in a store, the name of its files and an argument of `misscnf bench run`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeAlias

from misscnf import InputError

__all__ = ["Trial", "Cell", "COMPLETE"]

Cell: TypeAlias = str | float | None
"""What a column of a row holds; None where it is empty."""

COMPLETE = "complete"
"""The mechanism of trials that lose nothing."""

_NOTHING = "none"
_WORDS = ("suite", "scm", "mechanism", "rate", "method", "preset", "seed")
_OPTIONS = ("draws", "rows", "epochs")


@dataclass(frozen=True)
class Trial:
    """What decides the result of a trial; what follows `seed` is None where nothing is changed."""

    suite: str
    """The suite that it belongs to."""
    scm: str
    """The world, as `load_scm` takes it."""
    mechanism: str
    """The mechanism of loss, or "complete"."""
    rate: float | None
    """The share of cells lost, where the mechanism has one."""
    method: str
    """The method, as `load_method` takes it."""
    preset: str = "auto"
    """The preset of the flow."""
    seed: int = 0
    """Where the randomness of data, holes, imputer and flow starts."""
    draws: int | None = None
    """The draws of each hidden component in a step of the fit (K in the paper)."""
    rows: int | None = None
    """Rows to train on, instead of 20,000; validation and test shrink alike."""
    epochs: int | None = None
    """Epochs of the fit, instead of the preset's."""

    def __post_init__(self) -> None:
        for part in self._parts():
            if not part or set(part) & set("-/\\ \t\n,"):
                raise InputError(
                    f"{part!r} cannot be part of a trial's id; use no '-', '/' or ','."
                )
        if self.rate is not None and not 0.0 <= self.rate <= 1.0:
            raise InputError(f"a rate of loss is a share from 0 to 1; got {self.rate}.")

    @property
    def id(self) -> str:
        """The trial in one word."""
        return "-".join(self._parts())

    @staticmethod
    def read(text: str) -> Trial:
        """Reads an id.

        Example:
            >>> Trial.read("main-chain_lin-mar-0.6-misscnf-auto-7").rate
            0.6
        """
        *words, rest = [*text.split("-", 7), ""][:8]
        given = dict(zip(_WORDS, words, strict=False))
        given |= dict(option.partition("=")[::2] for option in rest.split("-") if option)
        try:
            trial = Trial.of({**given, "rate": given["rate"].removeprefix(_NOTHING)})
        except (KeyError, ValueError):
            trial = None
        if trial is None or trial.id != text:
            raise InputError(
                f"{text!r} is not the id of a trial; one looks like "
                "main-chain_lin-mar-0.6-misscnf-auto-7."
            )
        return trial

    @staticmethod
    def of(words: Mapping[str, str]) -> Trial:
        """Makes a trial of its fields as text, as a CSV has them; empty or left out for None.

        Raises:
            ValueError: If a number is none.
            KeyError: If a field is missing that a trial must have.
        """
        return Trial(
            suite=words["suite"],
            scm=words["scm"],
            mechanism=words["mechanism"],
            rate=float(words["rate"]) if words["rate"] else None,
            method=words["method"],
            preset=words["preset"],
            seed=int(words["seed"]),
            draws=_count(words.get("draws")),
            rows=_count(words.get("rows")),
            epochs=_count(words.get("epochs")),
        )

    def to_dict(self) -> dict[str, Cell]:
        """Returns the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def _parts(self) -> list[str]:
        rate = _NOTHING if self.rate is None else f"{self.rate:g}"
        parts = [self.suite, self.scm, self.mechanism, rate, self.method, self.preset]
        options = [(name, getattr(self, name)) for name in _OPTIONS]
        return [
            *parts,
            str(self.seed),
            *(f"{name}={value}" for name, value in options if value is not None),
        ]


def _count(text: str | None) -> int | None:
    return int(text) if text else None
