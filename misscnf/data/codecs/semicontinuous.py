r"""A semicontinuous column: point masses where values repeat exactly, and numbers for the rest.

The model's value is the user's number. What is learned is where the masses are, between which
ends the rest lies (a mass that nothing lies beyond is an end), and on which scale the rest is
closest to normal: as it is, cut off at its ends; its logarithm above the lower end; its logit
between two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from pandas.api.types import is_integer_dtype

from misscnf.data import domains, dtypes
from misscnf.data.codecs.base import Column
from misscnf.data.codecs.continuous import Continuous, refuse_constant
from misscnf.data.domains import Domain
from misscnf.data.dtypes import FLOAT, Dtype
from misscnf.data.scales import Link, Unit
from misscnf.errors import InputError

__all__ = ["Semicontinuous"]


@dataclass(frozen=True)
class Semicontinuous(Column, kinds=("semicontinuous",)):
    """The codec of a column with point masses."""

    name: str
    location: float
    """The mean of the observed cells."""
    scale: float
    """Their standard deviation."""
    atoms: tuple[float, ...]
    """Where the point masses are, in their order."""
    rest: Unit
    """The scale of the rest."""
    floor: float | None
    """What the rest lies above; None where it has no end."""
    ceiling: float | None
    """What it lies below."""
    dtype: Dtype = FLOAT
    whole: bool = False
    """Whether all cells were whole numbers: then those that are drawn are too."""

    shown_kind = "semicontinuous"
    scales: ClassVar[dict[str, Link]] = {"plain": "none", "log": "log", "logit": "logit"}
    """The scales that can be asked for."""

    @classmethod
    def learn(
        cls,
        name: str,
        cells: np.ndarray,
        atoms: Sequence[float],
        scale: str | None = None,
        dtype: Dtype = FLOAT,
    ) -> Semicontinuous:
        """Learns from the observed cells of a column, and from where its point masses are.

        `scale` is that of the rest, the closest to normal by default.
        """
        refuse_constant(name, cells)
        found = tuple(sorted({float(atom) for atom in atoms}))
        rest = cells[~np.isin(cells, found)]
        if not rest.size or rest.min() == rest.max():
            raise InputError(
                f"column {name!r} has fewer than two values beside its point masses at "
                f"{', '.join(f'{atom:g}' for atom in found)}; ask for another kind, such as "
                f"'binary' or 'ordinal'."
            )
        floor = found[0] if found[0] < rest.min() else None
        ceiling = found[-1] if found[-1] > rest.max() else None
        unit = _unit(name, rest, (floor, ceiling), scale)
        dtype = dtype if dtypes.can_hold_numbers(dtype) else FLOAT
        moments = float(cells.mean()), float(cells.std())
        whole = bool((cells == np.floor(cells)).all())
        return cls(name, *moments, found, unit, floor, ceiling, dtype, whole)

    @property
    def domain(self) -> Domain:
        ends = self.floor, self.ceiling
        return domains.Semicontinuous(self.location, self.scale, self.atoms, self.rest, *ends)

    @property
    def request(self) -> dict[str, Any]:
        scale = next(name for name, link in self.scales.items() if link == self.rest.link)
        return {"kind": self.shown_kind, "at": list(self.atoms), "scale": scale}

    @property
    def shown_levels(self) -> str:
        return f"mass at {' and '.join(f'{atom:g}' for atom in self.atoms)}"

    @property
    def expected(self) -> str:
        if self.floor is None and self.ceiling is None:
            return "a number"
        if self.ceiling is None:
            found = f"a number of at least {self.floor:g}"
        elif self.floor is None:
            found = f"a number of at most {self.ceiling:g}"
        else:
            found = f"a number from {self.floor:g} to {self.ceiling:g}"
        return f'{found}, where it heaps up ("continuous" in kinds knows no end)'

    @property
    def ends(self) -> tuple[float, float]:
        low = -math.inf if self.floor is None else self.floor
        return low, math.inf if self.ceiling is None else self.ceiling

    def possible(self, raw: np.ndarray) -> np.ndarray:
        low, high = self.ends
        return ((raw >= low) & (raw <= high)) | np.isnan(raw)

    def series(
        self, values: np.ndarray, dtype: Dtype | None = None, *, exact: bool = False
    ) -> pd.Series:
        whole = np.rint(values) if self.whole and not exact else values
        return super().series(whole, dtype, exact=exact)

    def natural(self, values: np.ndarray) -> pd.Series:
        """The numbers, not rounded whatever the dtype."""
        return pd.Series(self.decode(values), name=self.name)

    def output_dtype(self, cells: pd.Series) -> Dtype:
        """The dtype of the cells, unless it would round what the fitted table did not."""
        given = super().output_dtype(cells)
        rounds = is_integer_dtype(given) and not is_integer_dtype(self.dtype)
        return self.dtype if rounds else given

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "rest": asdict(self.rest), "atoms": list(self.atoms)}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Semicontinuous:
        read = {"rest": Unit(**entry["rest"]), "atoms": tuple(entry["atoms"])}
        return super().from_dict({**entry, **read})


def _unit(
    name: str, rest: np.ndarray, ends: tuple[float | None, float | None], scale: str | None
) -> Unit:
    """Returns the scale of the rest that was asked for, or on which it is closest to normal."""
    units, (floor, ceiling) = {"plain": Unit()}, ends
    if floor is not None and ceiling is not None:
        units["logit"] = Unit(link="logit", low=floor, high=ceiling)
    elif floor is not None:
        units["log"] = Unit(link="log", low=floor)
    if scale is not None and scale not in units:
        raise InputError(
            f"the rest of {name!r} is asked for on the scale {scale!r}, and only "
            f"{' or '.join(units)} fits where its point masses are."
        )
    names = [scale] if scale else list(units)
    learned = [Continuous.learn(name, rest, units[of]).unit for of in names]
    if len(learned) == 1:
        return learned[0]
    plain, linked = learned
    import torch
    from scipy import stats

    numbers = torch.tensor(rest)
    of_linked = stats.norm.logpdf(linked.encode(numbers)) + linked.log_slope(numbers).numpy()
    return linked if of_linked.sum() > _cut_off_log_likelihood(plain, rest, ends) else plain


def _cut_off_log_likelihood(
    unit: Unit, rest: np.ndarray, ends: tuple[float | None, float | None]
) -> float:
    """Returns the largest log-likelihood of normal laws that are cut off at the ends.

    It needs the mean and the variance of the cells alone: on average, log p(z) is log p at the
    mean, less half the variance in units of the law's.
    """
    from scipy import optimize, stats

    z = (rest - unit.location) / unit.scale
    center, variance = z.mean(), z.var()
    low, high = (
        side * math.inf if end is None else (end - unit.location) / unit.scale
        for side, end in zip((-1.0, 1.0), ends, strict=True)
    )

    def cost(law: np.ndarray) -> float:
        mean, scale = law[0], math.exp(law[1])
        cut = (low - mean) / scale, (high - mean) / scale
        at_center = float(stats.truncnorm.logpdf(center, *cut, loc=mean, scale=scale))
        return 0.5 * variance / scale**2 - at_center

    found = optimize.minimize(cost, (0.0, 0.0), bounds=((-50.0, 50.0), (-5.0, math.log(8.0))))
    return len(rest) * (-found.fun - math.log(unit.scale))
