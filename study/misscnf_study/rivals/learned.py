r"""What the imputers that train have in common: presets, a device, units, and progress.

    z = (x − mean) / deviation        over the observed cells of each column

They train on such columns, so that no unit has a say, and answer in the table's own units.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from misscnf import InputError
from misscnf_study.rivals.contract import Floats, Imputer

__all__ = ["LearnedImputer", "Units", "Watch", "choose_preset", "find_device", "positive"]

Settings = TypeVar("Settings")

Watch: TypeAlias = Callable[[str, int, int], None]
"""Hears how training goes: the stage, how much of it is done, and how much there is at most."""


@dataclass(frozen=True, eq=False)
class Units:
    """Where the columns of a table lie and how wide they are."""

    centre: Floats
    """(d,) the mean of the observed cells."""
    spread: Floats
    """(d,) their deviation; 1 where all are equal."""

    @classmethod
    def of(cls, values: Floats) -> Units:
        """Measures the observed cells of values (N, d), NaN elsewhere."""
        spread = np.nanstd(values, axis=0)
        return cls(np.nanmean(values, axis=0), np.where(spread > 0.0, spread, 1.0))

    def standardise(self, values: Floats) -> Floats:
        """Returns z."""
        return (values - self.centre) / self.spread

    def restore(self, z: Floats | Tensor) -> Floats:
        """Returns the values of z."""
        if isinstance(z, Tensor):
            z = z.detach().cpu().double().numpy()
        return self.centre + self.spread * z


def choose_preset(
    preset: str | Settings, presets: Mapping[str, Settings], method: str
) -> Settings:
    """Returns the settings of a preset, or the settings that are given.

    Raises:
        InputError: If there is no such preset.
    """
    if not isinstance(preset, str):
        return preset
    if preset not in presets:
        raise InputError(f"{method}'s presets are {', '.join(presets)}; got {preset!r}.")
    return presets[preset]


def positive(settings: object, *names: str) -> None:
    """Refuses settings that must be positive and are not.

    Raises:
        InputError: If one is zero or less.
    """
    for name in names:
        if not getattr(settings, name) > 0:
            raise InputError(
                f"{name} of {type(settings).__name__} is a positive number; "
                f"got {getattr(settings, name)}."
            )


def find_device(name: str) -> torch.device:
    """Returns a device that can be used here.

    Raises:
        InputError: If it cannot.
    """
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(f"the device {name!r} cannot be used here; try device='cpu'.") from error
    return device


class LearnedImputer(Imputer):
    """An imputer that trains on standardised columns. Abstract: `_train_and_fill`, `_fill_new`.

    The table learned from comes back as training left it.

    Arguments:
        device: Where to train, such as "cpu" or "cuda".
        watch: Called as training goes on.
    """

    def __init__(self, device: str, watch: Watch | None) -> None:
        self.device = find_device(device)
        self._watch = watch or (lambda stage, done, total: None)

    @abstractmethod
    def _train_and_fill(self, values: Floats) -> Floats:
        """Trains on values (N, d) with NaN in the holes, and returns them completed."""

    @abstractmethod
    def _fill_new(self, values: Floats) -> Floats:
        """Returns other values (N, d) with the holes filled."""

    def _learn(self, values: Floats, seed: int) -> None:
        self._seed, self._seen = seed, values
        self._units = Units.of(values)
        self._completed = self._train_and_fill(values)

    def _fill(self, values: Floats) -> Floats:
        seen = np.array_equal(values, self._seen, equal_nan=True)
        return self._completed if seen else self._fill_new(values)

    def _read_units(self, values: Floats, spread: float = 1.0) -> tuple[Tensor, Tensor]:
        """Returns values in units of a deviation, holes at zero, and which are observed."""
        z = torch.as_tensor(spread * self._units.standardise(values), dtype=torch.float32)
        z = z.to(self.device)
        return torch.nan_to_num(z, nan=0.0), ~torch.isnan(z)
