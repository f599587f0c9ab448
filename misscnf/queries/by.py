r"""An effect in every group that a column makes, and how the groups differ.

    difference of a group = effect in it − effect in the group that comes first,

with the spread of that difference over replicates of the fit, which see the same units and rows:
two intervals that overlap may still differ. Differences of risks square and add how far the ends
of both groups are, as `risks` does for two arms. Levels make groups; a column of numbers is split
at the median of its units.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from misscnf.queries.effects import Effect, Interval, Replicated, Spread, with_intervals
from misscnf.queries.risks import far

__all__ = ["GroupEffects", "Difference", "compare_groups"]


@dataclass(frozen=True)
class Difference:
    """By how much the effect in a group exceeds that in the group that comes first."""

    group: str
    versus: str
    estimate: float
    interval: Interval | None = None
    """For the sampling error of the fit."""

    @property
    def by_construction(self) -> bool:
        """Whether the model cannot tell the groups apart: all that was left was rounding."""
        return self.estimate == 0.0 and self.interval is None


@dataclass(frozen=True)
class GroupEffects:
    """The same contrast in each of several groups."""

    by: str
    """The column that makes them."""
    effects: dict[str, Effect]
    """By the name of the group."""
    differences: tuple[Difference, ...] = ()
    """Of every group against the first; none where only probabilities compare the arms."""

    def frame(self) -> pd.DataFrame:
        """Returns a line a group: its means, its effect and the difference from the first."""
        differences = {found.group: found for found in self.differences}
        lines = []
        for name, effect in self.effects.items():
            line: dict[str, Any] = {self.by: name, "mean": effect.mean}
            line |= {"mean_versus": effect.mean_versus, "estimate": effect.estimate}
            lower, upper = effect.interval or (None, None)
            line |= {"lower": lower, "upper": upper}
            apart = differences.get(name)
            ends = (None, None) if apart is None else apart.interval or (None, None)
            line["difference"] = None if apart is None else apart.estimate
            names = "difference_lower", "difference_upper"
            lines.append(line | dict(zip(names, ends, strict=True)))
        return pd.DataFrame(lines).dropna(axis=1, how="all")

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        lines = self.frame().astype(object)
        groups = lines.where(lines.notna(), None).to_dict(orient="records")
        return {"by": self.by, "groups": groups}

    def __str__(self) -> str:
        first = next(iter(self.effects.values()))
        told = [f"  {self.by} {name}: {effect.told}" for name, effect in self.effects.items()]
        for apart in self.differences:
            shown = f"differs by {first.shown(apart.estimate, apart.interval)}"
            if first.equal_groups or apart.by_construction:
                shown = "equal by construction: the rows were not asked"
            told.append(f"  {apart.group} against {apart.versus}: {shown}")
        return "\n".join(told)


def compare_groups(
    by: str,
    names: Sequence[str],
    effects: Sequence[Effect],
    replicated: Sequence[Replicated[Effect]],
    level: float | None,
) -> GroupEffects:
    """Returns effects and their differences, with intervals where a level is asked for.

    Arguments:
        by: The column that makes the groups.
        names: Of the groups.
        effects: One a group.
        replicated: What replicates of the fit answer, of each group; none without a level.
        level: Of the intervals, or None.
    """
    own = list(effects)
    if level is not None and replicated:
        own = [with_intervals(own[i], told, level) for i, told in enumerate(replicated)]
    differences = []
    for i, name in list(enumerate(names))[1:]:
        apart = _apart(effects[0], effects[i])
        if apart is None:
            continue
        if _rounding(effects[0], effects[i], replicated and (replicated[0], replicated[i])):
            differences.append(Difference(name, names[0], 0.0))
            continue
        ends = None
        known = bool(replicated) and replicated[0].source.doubt is None
        if level is not None and known and not effects[0].equal_groups:
            half = _spread(replicated[0], replicated[i]).half_width(level)
            ends = (apart - half, apart + half)
            if effects[0].event is not None:
                ends = _of_risks((own[0], own[i]), (replicated[0], replicated[i]))
        differences.append(Difference(name, names[0], apart, ends))
    return GroupEffects(by, dict(zip(names, own, strict=True)), tuple(differences))


def _rounding(
    first: Effect, other: Effect, replicated: Sequence[Replicated[Effect]], share: float = 1e-12
) -> bool:
    """Says whether two groups differ by rounding, in the fit and in each of its replicates."""
    told = [(first, other)]
    if replicated:
        told += zip(*(one.answers for one in replicated), strict=True)
    return all(
        abs(_apart(a, b) or 0.0) <= share * max(abs(one.mean or 0.0) for one in (a, b))
        for a, b in told
    )


def _of_risks(
    effects: tuple[Effect, Effect], replicated: tuple[Replicated[Effect], Replicated[Effect]]
) -> Interval | None:
    """Returns the interval of the difference of two risk differences, from theirs (Zou 2008).

    An arm without events, whose replicates hardly differ, so still counts (`risks`).
    """
    first, other = effects
    if first.interval is None or other.interval is None:
        return None
    assert first.estimate is not None
    assert other.estimate is not None
    told = np.array([[one.estimate or 0.0 for one in its.answers] for its in replicated])
    steady = bool((np.ptp(told, axis=1) == 0.0).any())
    together = 0.0 if steady else float(np.corrcoef(told)[0, 1])
    below = far(other.estimate - other.interval[0], first.interval[1] - first.estimate, together)
    above = far(other.interval[1] - other.estimate, first.estimate - first.interval[0], together)
    apart = other.estimate - first.estimate
    return apart - below, apart + above


def _spread(first: Replicated[Effect], other: Replicated[Effect]) -> Spread:
    """Returns the spread of the difference of two groups over replicates."""
    answers, by_line, by_form = (
        [(_apart(*pair) or 0.0) for pair in zip(*both, strict=True)]
        for both in (
            (first.answers, other.answers),
            (first.by_line, other.by_line),
            (first.by_form, other.by_form),
        )
    )
    return Replicated(first.source, answers, by_line, by_form).spread(float)


def _apart(first: Effect, other: Effect) -> float | None:
    if first.estimate is None or other.estimate is None:
        return None
    return other.estimate - first.estimate
