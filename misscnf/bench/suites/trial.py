r"""A trial: one method, on one table of one world, with one seed.

Its id says all that decides its result, in one word without spaces,

    main-chain_lin-mar-0.6-misscnf-auto-7
    draws-fork_nlin-mar-0.6-misscnf-paper-0-draws=32-epochs=100

and is its key in a store, the name of its files and an argument of `misscnf bench run`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from misscnf.errors import InputError

__all__ = ["Trial", "COMPLETE"]

COMPLETE = "complete"
"""The mechanism of trials that lose nothing."""

_NOTHING = "none"
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
        suite, scm, mechanism, rate, method, preset, seed, *more = text.split("-") + [""] * 7
        try:
            trial = Trial(
                suite=suite,
                scm=scm,
                mechanism=mechanism,
                rate=None if rate == _NOTHING else float(rate),
                method=method,
                preset=preset,
                seed=int(seed),
                **{name: int(value) for name, value in _options(more)},
            )
        except (ValueError, TypeError):
            trial = None
        if trial is None or trial.id != text:
            raise InputError(
                f"{text!r} is not the id of a trial; one looks like "
                "main-chain_lin-mar-0.6-misscnf-auto-7."
            )
        return trial

    def to_dict(self) -> dict[str, Any]:
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


def _options(parts: list[str]) -> list[tuple[str, str]]:
    pairs = [part.partition("=") for part in parts if part]
    return [(name, value) for name, _, value in pairs]
