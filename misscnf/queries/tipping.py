r"""Answers along what cannot be known, and where they tip.

    tipping point = where the interval of the effect meets zero,

interpolated between neighbours of the grid, on either side of the reference: strength 0 (lost at
random given the rest), shift 0, ratio 1. A reader judges whether the point is plausible: no row
can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from misscnf.display.notebook import card
from misscnf.display.tables import Tabular
from misscnf.queries.effects import Effect, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Sensitivity"]


@dataclass(frozen=True)
class Sensitivity(Tabular):
    """An effect under assumptions about values that were lost. Made by `model.sensitivity`.

    Example:
        >>> from misscnf import MissCNF
        >>> rng = np.random.default_rng(0)
        >>> dose = rng.normal(size=300)
        >>> df = pd.DataFrame({"dose": dose, "days": 9 - 2 * dose + rng.normal(size=300)})
        >>> df.loc[rng.random(300) < 0.3, "days"] = np.nan
        >>> model = MissCNF("dose -> days", "linear").fit(df)
        >>> arms = {"do": {"dose": 1}, "versus": {"dose": 0}}
        >>> found = model.sensitivity("days", **arms, shift={"do": [0, 4, 8]}, interval=None)
        >>> 4 < found.tipping_point < 8  # days more of those who were lost would undo the effect
        True
    """

    loss: str
    """The column whose loss is asked about."""
    what: str
    """What varies: "strength", "shift" or "ratio"."""
    names: tuple[str, ...]
    """The columns of `to_frame` that say where: one, or one for each arm."""
    points: tuple[tuple[float, ...], ...]
    """Where, in the order of these."""
    effects: tuple[Effect, ...]
    """The answer at each."""
    lost: str = "lost values"
    """What a shift or a ratio moves, in words."""
    notes: tuple[str, ...] = ()
    """What to know before believing it."""

    @property
    def reference(self) -> float:
        """The value that changes nothing."""
        return 1.0 if self.what == "ratio" else 0.0

    @property
    def level(self) -> float | None:
        """Of the intervals; None where none were asked for."""
        return self.effects[0].level

    def to_frame(self) -> pd.DataFrame:
        """Returns a row a point: where it is, estimate, lower, upper, mean, mean_versus."""
        nothing = (math.nan, math.nan)
        ends = [effect.interval or nothing for effect in self.effects]
        frame = pd.DataFrame(list(self.points), columns=list(self.names))
        frame["estimate"] = [effect.estimate for effect in self.effects]
        frame["lower"], frame["upper"] = np.transpose(ends)
        frame["mean"] = [effect.mean for effect in self.effects]
        frame["mean_versus"] = [effect.mean_versus for effect in self.effects]
        frame.attrs["measure"] = self.effects[0].measure
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        return {
            "outcome": self.effects[0].outcome,
            "loss": self.loss,
            "along": self.what,
            "level": self.level,
            "points": self.to_frame().to_dict(orient="records"),
            "tipping_points": list(self.tipping_points),
            "told": self.told,
            "notes": list(self.cautions),
        }

    @property
    def tipping_points(self) -> tuple[float, ...]:
        """Where the interval (or, without one, the estimate) meets zero, nearest first.

        At most one on either side of the reference; none for a grid of two arms.
        """
        if len(self.names) > 1:
            return ()
        frame = self.to_frame()
        where, margin = frame[self.names[0]].to_numpy(dtype=float), self._margins(frame)
        start = int(np.abs(where - self.reference).argmin())
        if not margin[start] > 0:
            return ()
        found = []
        for step in (1, -1):
            here = start
            while 0 <= here + step < len(where) and margin[here] > 0:
                here += step
                if margin[here] <= 0:
                    share = margin[here - step] / (margin[here - step] - margin[here])
                    found.append(where[here - step] + share * (where[here] - where[here - step]))
        return tuple(float(at) for at in sorted(found, key=lambda at: abs(at - self.reference)))

    @property
    def tipping_point(self) -> float | None:
        """The nearest of them; None where there is none."""
        return next(iter(self.tipping_points), None)

    def _sign(self, frame: pd.DataFrame) -> float:
        """Returns the side of zero where the estimate is at the start, ±1."""
        where = frame[list(self.names)].to_numpy(dtype=float)
        start = int(np.abs(where - self.reference).sum(1).argmin())
        return 1.0 if frame["estimate"].iloc[start] > 0 else -1.0

    def _margins(self, frame: pd.DataFrame) -> np.ndarray:
        """Returns how far zero is outside the interval, on the side where it is at the start."""
        sign = self._sign(frame)
        nearer = "estimate" if self.level is None else ("lower" if sign > 0 else "upper")
        return sign * frame[nearer].to_numpy(dtype=float)

    @property
    def told(self) -> str:
        """Where the answer tips, in words."""
        frame = self.to_frame()
        ends = "estimate" if self.level is None else f"{100 * self.level:g} % interval"
        margin = self._margins(frame)
        if np.isnan(margin).any():
            return f"Where the {ends} meets zero cannot be told: some points have none."
        if len(self.names) > 1:
            share = float((margin > 0).mean())
            side = "above" if self._sign(frame) > 0 else "below"
            return f"The {ends} is {side} zero at {100 * share:.0f} % of the points of the grid."
        if self.tipping_points:
            return " ".join(self._tips(at, ends) for at in self.tipping_points)
        where = frame[self.names[0]]
        low, high = where.min(), where.max()
        span = f"every {self.what} from {low:.3g} to {high:.3g}"
        if low == high:
            span = f"the one {self.what}, {low:.3g}"
        if not margin[int((where - self.reference).abs().argmin())] > 0:
            return f"The {ends} holds zero already where nothing is changed: nothing tips."
        return f"The {ends} leaves zero out at {span}."

    def _tips(self, at: float, ends: str) -> str:
        told = f"The {ends} meets zero at a {self.what} of {at:.3g}"
        if self.what == "strength":
            times = f"{math.exp(abs(at)):.2g} times"
            way = "higher" if at > 0 else "lower"
            return (
                f"{told}: with {self.loss} one standard deviation {way}, the odds that it is lost "
                f"would have to be {times} as high."
            )
        if self.what == "ratio":
            return f"{told}: {self.lost} would have to be {at:.3g} times what the model says."
        way = "higher" if at > 0 else "lower"
        return f"{told}: {self.lost} would have to be {way} by {abs(at):.3g} than the model says."

    @property
    def title(self) -> str:
        """Which question this is, in words."""
        asked = {
            "strength": f"if the loss of {self.loss} follows its own value",
            "shift": f"if {self.lost} are shifted",
            "ratio": f"if {self.lost} are multiplied",
        }[self.what]
        return f"{self.effects[0].title}, {asked}"

    @property
    def cautions(self) -> tuple[str, ...]:
        """The notes, and why intervals are wide or not there."""
        doubts = dict.fromkeys(doubt for effect in self.effects for doubt in effect.doubts)
        return (*self.notes, *doubts)

    def __str__(self) -> str:
        table = self.to_frame().dropna(axis=1, how="all")
        lines = table.to_string(index=False, float_format=lambda number: f"{number:.4g}")
        return "\n".join([self.title, lines, self.told, *(f"  But {n}" for n in self.cautions)])

    def _repr_html_(self) -> str:
        return card(self.title, {}, {"": self.to_frame()}, (self.told, *self.cautions))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the curve with its band and where it tips, or a heat map of two arms.

        Arguments:
            ax: Axes to draw into; None makes a figure.
        """
        from misscnf import plots

        return plots.sensitivity(self, ax=ax)

    @property
    def unit(self) -> str:
        """What the grid is in, as an axis says it."""
        return {
            "strength": f"log-odds that {self.loss} is lost, a standard deviation of it",
            "shift": f"added to {self.lost}",
            "ratio": f"times {self.lost}",
        }[self.what]

    @property
    def asked(self) -> str:
        """What is answered, as an axis says it."""
        return f"{self.effects[0].measure} of {self.effects[0].outcome}"

    @property
    def arms(self) -> tuple[str, str]:
        """Both arms, in words."""
        effect = self.effects[0]
        return written(effect.do), written(effect.versus) if effect.versus else "no intervention"

    def margins(self) -> np.ndarray:
        """Returns how far zero is outside of each interval, on the side where it is at first."""
        return self._margins(self.to_frame())
