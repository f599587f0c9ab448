r"""What the imputers that train have in common: presets, a device, units, and progress.

    z = (x − mean) / deviation        over the observed cells of each column

They train on such columns, so that no unit has a say, and answer in the table's own units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import torch
from torch import Tensor

from misscnf import InputError
from misscnf_study.rivals.contract import Floats

__all__ = ["Units", "Watch", "choose_preset", "find_device", "positive", "same_table"]

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


def same_table(one: Floats, other: Floats) -> bool:
    """Returns whether two tables are the same, holes included."""
    return np.array_equal(one, other, equal_nan=True)
