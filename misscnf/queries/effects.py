r"""Contrasts of interventions, on the scale that the outcome has.

| outcome | measure |
|---|---|
| continuous, count, ordinal with numbers for levels | E[Y; do(A)] − E[Y; do(B)] (`statistics`) |
| binary, or any level that is called the event | p − q, p / q and p (1 − q) / ((1 − p) q) |
| categorical, ordinal with text for levels | the probability of each level |

with p and q the probability of the event under do(A) and do(B). Both arms are swept with the same
noise, so that what does not depend on the intervention cancels and only the contrast is left to
average. Monte-Carlo errors of ratios are by the delta method, √(∇ᵀ Σ ∇ / n) with Σ the covariance
of the two arms.

The sampling error of the fit comes from replicates of it (`fitting.replicates`): with s their
spread the interval is estimate ± t s, and `influence` says with how many degrees of freedom s is
known. Risks and their contrasts have intervals of their own (`risks`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pandas as pd

from misscnf.data.cells import Label, level_text
from misscnf.data.codecs import Column, Levels
from misscnf.display.digits import with_ends
from misscnf.display.notebook import card
from misscnf.display.tables import Tabular
from misscnf.errors import InputError
from misscnf.fitting.replicates import Replicates
from misscnf.queries.influence import Spread
from misscnf.queries.interventions import written
from misscnf.queries.risks import Interval, Risk
from misscnf.queries.statistics import Statistic
from misscnf.queries.units import Units

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from misscnf.queries.by import GroupEffects

__all__ = ["Effect", "Interval", "Replicated", "contrast", "pointwise", "pointwise_risks"]
__all__ += ["event_code", "with_intervals", "written"]

Answer = TypeVar("Answer")
Arms = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Effect(Tabular):
    """The contrast of two interventions on one outcome, in the outcome's units.

    Example:
        >>> import numpy as np, pandas as pd
        >>> from misscnf import MissCNF
        >>> dose = np.random.default_rng(0).normal(size=200)
        >>> df = pd.DataFrame({"dose": dose, "days": 9 - 2 * dose + np.sin(9 * dose)})
        >>> model = MissCNF("dose -> days", "linear").fit(df)
        >>> effect = model.effect("days", do={"dose": 2}, versus={"dose": 1})
        >>> effect.measure, -2.2 < effect.estimate < -1.8
        ('mean difference', True)
        >>> effect.to_frame().columns.tolist()
        ['term', 'estimate', 'lower', 'upper']
    """

    outcome: str
    """The column that was asked about."""
    do: dict[str, Any]
    """The interventions of the first arm."""
    versus: dict[str, Any]
    """Those of the second; none leaves the world as it is."""
    estimate: float | None
    """The difference of means or risks; None where only `probabilities` compare the arms."""
    standard_error: float | None
    """Monte-Carlo error of the estimate; the sampling error of the fit is not in it."""
    mean: float | None
    """E[Y; do], or the risk of the event."""
    mean_versus: float | None
    """E[Y; versus], or the risk of the event; None where the question has one arm."""
    draws: int
    """Units that were averaged."""
    group: str | None = None
    """Within which group, in words; None for all."""
    interval: Interval | None = None
    """For the sampling error of the fit, of `estimate`; None until one is asked for."""
    level: float | None = None
    """How often such intervals hold the truth, such as 0.95."""
    replicates: int | None = None
    """From how many replicates of the fit the intervals come."""
    measure: str = "mean difference"
    """What the estimate is: a difference of means, risks or quantiles, or probabilities."""
    statistic: str = "mean"
    """What `mean` and `mean_versus` are: "mean", "median", "trimmed mean", "0.9 quantile", …"""
    event: Label | None = None
    """The level whose risk is compared."""
    risk_ratio: float | None = None
    """The risk under do over the one under versus; None where that is zero."""
    risk_ratio_error: float | None = None
    """Its Monte-Carlo error."""
    risk_ratio_interval: Interval | None = None
    """For the sampling error of the fit."""
    odds_ratio: float | None = None
    """The same of odds; None where the event is sure under do, or impossible under versus."""
    odds_ratio_error: float | None = None
    """Its Monte-Carlo error."""
    odds_ratio_interval: Interval | None = None
    """For the sampling error of the fit."""
    notes: tuple[str, ...] = ()
    """What to know before believing it, such as a value outside of what was seen."""
    doubts: tuple[str, ...] = ()
    """Why there is no interval, or why it is wide: the rows say little of this answer."""
    population: str = "model"
    """Who was averaged over: units that the model draws, or the "rows" of the table."""
    population_because: str = ""
    """Why these, where nobody asked for them."""
    mean_interval: Interval | None = None
    """For the sampling error of the fit, of `mean`."""
    mean_versus_interval: Interval | None = None
    """The same of `mean_versus`."""
    deviation: float | None = None
    """The standard deviation of the outcome in the second arm, where means are compared."""
    ends: Interval | None = None
    """What the outcome lies between, where it has ends and means are compared."""
    equal_groups: bool = False
    """Whether the model gives every group the same effect, whatever the rows say."""
    groups: GroupEffects | None = None
    """The effect in each group, and how they differ, where these were asked for."""
    probabilities: pd.DataFrame | None = field(default=None, compare=False)
    """level, do, versus, difference, standard_error (lower, upper): for an outcome with levels."""

    @property
    def title(self) -> str:
        """Which effect this is, in words."""
        within = "" if self.group is None else f" ({self.group})"
        if not self.do and not self.versus:
            return f"{self.outcome} without intervention{within}"
        versus = written(self.versus) if self.versus else "no intervention"
        return f"effect on {self.outcome} of {written(self.do)} versus {versus}{within}"

    def __str__(self) -> str:
        groups = [f"  {self.averaged_over}"]
        groups += [] if self.groups is None else [str(self.groups)]
        notes = [f"  But {note}" for note in self.notes + self.doubts]
        return "\n".join([f"{self.title}: {self.told}", *groups, *notes])

    @property
    def averaged_over(self) -> str:
        """Who was averaged over, and why these, in words."""
        rows = "the rows of the table, their holes completed by posterior draws"
        over = rows if self.population == "rows" else f"{self.draws:,} units that the model draws"
        because = f": {self.population_because}" if self.population_because else ""
        return f"Averaged over {over}{because}."

    @property
    def told(self) -> str:
        """The answer in words: both arms, and how they compare."""
        if self.estimate is None:
            return self._levels
        of = self.statistic
        if self.event is not None:
            of = f"risk of {self.outcome} = {level_text(self.event)}:"
        if self.mean_versus is None:
            return f"{of} {self.shown(self.estimate, self.interval)}{self._simulated}"
        arms = f"{self._arm(self.mean, self.mean_interval)} against "
        arms += self._arm(self.mean_versus, self.mean_versus_interval)
        told = f"{of} {arms}, difference {self.shown(self.estimate, self.interval)}"
        told += self._simulated
        for name, ratio, interval in (
            ("risk ratio", self.risk_ratio, self.risk_ratio_interval),
            ("odds ratio", self.odds_ratio, self.odds_ratio_interval),
        ):
            if ratio is not None:
                told += f", {name} {self.shown(ratio, interval)}"
        return told

    @property
    def _levels(self) -> str:
        """The probability of each level, without what compares arms where there is one."""
        if self.probabilities is None:
            return "probability of each level"
        table = self.probabilities.round(4)
        if not self.do and not self.versus:
            table = table[["level", "do"]].rename(columns={"do": "probability"})
            return f"probability of each level\n{table.to_string(index=False)}"
        return f"probability of each level, Monte-Carlo standard errors\n{table.to_string()}"

    @property
    def _simulated(self) -> str:
        """The Monte-Carlo error of the estimate, where it has no other and is not rounding."""
        error = self.standard_error or 0.0
        told = self.interval is None and self._drawn(error)
        return f" (Monte-Carlo standard error {error:.2g})" if told else ""

    def _drawn(self, error: float | None) -> bool:
        """Says whether an error is of draws, and not of the rounding of both arms."""
        sizes = (abs(x) for x in (self.estimate, self.mean, self.mean_versus) if x is not None)
        return error is not None and error > 1e-9 * max([*sizes, 1e-9])

    @staticmethod
    def _arm(number: float | None, interval: Interval | None) -> str:
        if number is None or interval is None:
            return f"{number:.4g}"
        middle, lower, upper = with_ends(number, interval)
        return f"{middle} ({lower} to {upper})"

    def e_values(self) -> tuple[float, float | None] | None:
        """Returns the E-values of the estimate and of the end of its interval nearer to no effect.

        So strongly would an unmeasured confounder have to go with both the treatment and the
        outcome, as risk ratios, to explain the answer away (VanderWeele and Ding 2017). A mean
        difference stands for the risk ratio exp(0.91 d), d being in deviations of the outcome.
        None where neither is there.
        """
        if self.risk_ratio:
            ratio, ends = self.risk_ratio, self.risk_ratio_interval
        elif self.deviation and self.estimate is not None:
            steep = 0.91 / self.deviation
            ratio, ends = math.exp(steep * self.estimate), None
            if self.interval is not None:
                ends = math.exp(steep * self.interval[0]), math.exp(steep * self.interval[1])
        else:
            return None
        if ends is None:
            return _e_value(ratio), None
        lower, upper = ends
        crosses = lower <= 1.0 <= upper
        return _e_value(ratio), 1.0 if crosses else _e_value(lower if ratio > 1.0 else upper)

    def shown(self, number: float, interval: Interval | None) -> str:
        """Returns a number with its interval, if it has one."""
        if interval is None or self.level is None:
            return f"{number:.4g}"
        middle, lower, upper = with_ends(number, interval)
        return f"{middle} ({100 * self.level:g} % interval {lower} to {upper})"

    def to_frame(self) -> pd.DataFrame:
        """Returns a line a number: term, estimate, lower and upper.

        First the contrast, then both arms and ratios; groups and levels, where there are any, have
        lines and a column of their own. Ends are NaN where no interval was asked for.
        """
        arm = self.statistic if self.event is None else "risk"
        versus = written(self.versus) if self.versus else "no intervention"
        alone = self.mean_versus is None
        lines: list[tuple[str, float | None, Interval | None]] = [
            (self.measure, self.estimate, self.interval),
            (f"{arm}, {written(self.do)}", None if alone else self.mean, self.mean_interval),
            (f"{arm}, {versus}", self.mean_versus, self.mean_versus_interval),
            ("risk ratio", self.risk_ratio, self.risk_ratio_interval),
            ("odds ratio", self.odds_ratio, self.odds_ratio_interval),
        ]
        nothing = (math.nan, math.nan)
        found = pd.DataFrame(
            [
                (term, number, *(ends or nothing))
                for term, number, ends in lines
                if number is not None
            ],
            columns=["term", "estimate", "lower", "upper"],
        )
        if self.estimate is None and self.probabilities is not None:
            levels = self.probabilities.rename(columns={"difference": "estimate"})
            found = levels.assign(term="difference of probabilities").reindex(
                columns=["term", "level", "estimate", "lower", "upper"]
            )
        if self.groups is None:
            return found
        parts = {"everybody": found}
        parts |= {
            f"{self.groups.by} {k}": one.to_frame() for k, one in self.groups.effects.items()
        }
        whole = pd.concat(parts, names=["group", None]).reset_index(0).reset_index(drop=True)
        return whole[["term", "group", *found.columns.drop("term")]]

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the effect with its interval, and those of its groups, one below the other.

        Arguments:
            ax: Axes to draw into; None makes a figure.
        """
        from misscnf import plots

        frame = self.to_frame()
        own = frame[frame["term"] == frame["term"].iloc[0]]
        names = own.get("group", own.get("level", own["term"])).astype(str)
        of = "" if self.event is None else f" = {level_text(self.event)}"
        unit = f"{own['term'].iloc[0]} of {self.outcome}{of}: {self._arms}"
        return plots.forest(own.assign(term=names), unit=unit, ax=ax)

    @property
    def _arms(self) -> str:
        versus = written(self.versus) if self.versus else "no intervention"
        return f"{written(self.do)} versus {versus}" if self.do or self.versus else "as it is"

    def _repr_html_(self) -> str:
        of = "" if self.event is None else f" of {self.event!r}"
        arm = self.statistic if self.event is None else "risk"
        facts = {
            self.measure + of: (self.estimate, self.interval, self.standard_error),
            "risk ratio": (self.risk_ratio, self.risk_ratio_interval, self.risk_ratio_error),
            "odds ratio": (self.odds_ratio, self.odds_ratio_interval, self.odds_ratio_error),
        }
        told: dict[str, object] = {
            name: self.shown(number, ends)
            + (f" (Monte-Carlo error {error:.2g})" if self._drawn(error) else "")
            for name, (number, ends, error) in facts.items()
            if number is not None
        }
        told |= {f"{arm} under do": self.mean, f"{arm} under versus": self.mean_versus}
        told |= {"draws": self.draws, "replicates": self.replicates}
        told |= {"population": self.averaged_over}
        levels = self.probabilities
        tables = {} if levels is None else {"probability of each level": levels}
        if self.groups is not None:
            tables[f"by {self.groups.by}"] = self.groups.frame()
        told = {name: value for name, value in told.items() if value is not None}
        return card(self.title, told, tables, self.notes + self.doubts)


@np.errstate(invalid="ignore", over="ignore")  # replicates of a singular table may be beyond all
def contrast(
    column: Column,
    do: Mapping[str, Any],
    versus: Mapping[str, Any],
    arms: Arms,
    event: object = None,
    notes: tuple[str, ...] = (),
    group: str | None = None,
    units: Units | None = None,
    statistic: Statistic | None = None,
) -> Effect:
    """Compares an outcome of units in two arms: (n,) in the model's values, or (n, levels).

    The risk of the event is compared where the outcome has levels, a binary column's higher one by
    default; of numbers the statistic, by default their mean. Notes and the group are passed on to
    the answer. Units are by default all alike.
    """
    statistic = statistic or Statistic()
    units = units or Units.alike(len(arms[0]))
    common: dict[str, Any] = {
        "outcome": column.name,
        "do": dict(do),
        "versus": dict(versus),
        "draws": len(arms[0]),
        "notes": notes,
        "group": group,
        "population": "model" if units.draw is None else "rows",
    }
    alone = not do and not versus
    if not isinstance(column, Levels):
        if event is not None:
            raise InputError(
                f"{column.name!r} has no levels, and event={event!r} asks for one; leave it out "
                f"to compare means."
            )
        decoded = (column.decode(arms[0]), column.decode(arms[1]))
        common["ends"] = _finite(column.ends)
        return Effect(**common, **_numbers(decoded, units, statistic, alone=alone))
    if not statistic.is_mean and (event is not None or column.kind != "ordinal"):
        raise InputError(
            f"{column.name!r} has levels, whose risks are compared; leave the statistic out.",
            about="statistic",
        )
    common["probabilities"] = _probabilities(column.levels, arms, units)
    if event is not None or column.kind == "binary":
        code = event_code(column, event)
        indicated = _indicated(arms, code)
        risks = _risks(indicated, units)
        if alone:
            risks = {**_numbers(indicated, units, statistic, alone=True), "statistic": "mean"}
        return Effect(**common, event=column.levels[code], **risks)
    if column.kind == "ordinal" and not any(isinstance(level, str) for level in column.levels):
        of_levels = np.array(column.levels, dtype=np.float64)
        first, second = (of_levels[np.rint(arm).astype(np.int64)] for arm in arms)
        common["ends"] = _finite(column.ends)
        return Effect(**common, **_numbers((first, second), units, statistic, alone=alone))
    nothing: dict[str, Any] = dict.fromkeys(("estimate", "standard_error", "mean", "mean_versus"))
    return Effect(**common, **nothing, measure="probabilities")


@dataclass(frozen=True)
class Replicated(Generic[Answer]):
    """What replicates of a fit answer, and those of its line where it has networks."""

    source: Replicates
    answers: Sequence[Answer]
    by_line: Sequence[Answer] = ()
    by_form: Sequence[Answer] = ()
    """What the fit answers, and each of its rivals, with the same units."""
    without: Sequence[Answer] = ()
    """What the fit answers, and the fit without each of some cells."""

    def spread(self, number: Callable[[Answer], float]) -> Spread:
        """Returns the spread of a number of each answer."""
        by_line, by_form = ([number(a) for a in some] for some in (self.by_line, self.by_form))
        answers = [number(a) for a in self.answers]
        return Spread.of(answers, self.source, by_line or None, by_form)

    def risk(self, own: Answer, number: Callable[[Answer], float], level: float) -> Risk | None:
        """Returns a risk that is a number of each answer, with its interval."""
        answers, by_line, by_form = (
            [number(one) for one in some] for some in (self.answers, self.by_line, self.by_form)
        )
        return Risk.of(number(own), answers, by_line, self.source, level, by_form)

    def hanging(self, value: float, number: Callable[[Answer], float]) -> tuple[str, ...]:
        """Returns notes about cells without which a number would be another."""
        if not self.without:
            return ()
        own, *others = map(number, self.without)
        least = self.source.settings.least_move * self.spread(number).error
        moved = [
            f"{one.cells}; without it the answer is {value + other - own:.4g}"
            for one, other in zip(self.source.without, others, strict=True)
            if abs(other - own) > least
        ]
        told = "the answer hangs on a value that no law of its column makes likely"
        return tuple(f"{told}: {which}." for which in moved)


def with_intervals(effect: Effect, replicated: Replicated[Effect], level: float) -> Effect:
    """Returns an effect with intervals for the sampling error, from those by replicates.

    Where replicates do not tell it, there is none, and a doubt says why.
    """
    source, answers = replicated.source, replicated.answers
    found: dict[str, Any] = {"level": level, "replicates": len(answers)}
    if source.doubt is not None:
        doubt = f"no interval can be given: {source.doubt}"
        return replace(effect, **found, doubts=(*effect.doubts, doubt))
    if effect.estimate is not None:
        spread = replicated.spread(attrgetter("estimate"))
        found["doubts"] = effect.doubts + spread.doubts(source.settings)
        found["notes"] = effect.notes + replicated.hanging(effect.estimate, attrgetter("estimate"))
        if effect.event is not None:
            found |= _intervals_of_risks(effect, replicated, level, found["doubts"])
        else:
            ends = effect.ends or (-math.inf, math.inf)
            for name in ("mean", "mean_versus"):
                mean = getattr(effect, name)
                if mean is not None:
                    own = replicated.spread(attrgetter(name))
                    found[f"{name}_interval"] = own.interval(mean, level, ends)
            room = ends[1] - ends[0]
            found["interval"] = spread.interval(effect.estimate, level, (-room, room))
            if effect.mean_versus is None:
                found["interval"] = found["mean_interval"]
    if effect.probabilities is not None:
        tables = Replicated(
            source,
            *(
                [one.probabilities for one in some if one.probabilities is not None]
                for some in (answers, replicated.by_line, replicated.by_form)
            ),
        )
        bands = pointwise_risks(effect.probabilities, tables, ("do", "difference"), level)
        found["probabilities"] = effect.probabilities.assign(lower=bands[2], upper=bands[3])
    return replace(effect, **found)


def _intervals_of_risks(
    effect: Effect, replicated: Replicated[Effect], level: float, doubts: tuple[str, ...]
) -> dict[str, Any]:
    """Returns the intervals of both risks and of their contrasts, and doubts about these."""
    first = replicated.risk(effect, attrgetter("mean"), level)
    alone = effect.mean_versus is None
    second = None if alone else replicated.risk(effect, attrgetter("mean_versus"), level)
    if first is None or (second is None and not alone):
        doubt = (
            f"no interval can be given: no unit has {effect.outcome} = {effect.event} in an arm, "
            f"or every unit has; ask for population='model' and no group that {effect.outcome} "
            f"decides."
        )
        return {"doubts": (*doubts, doubt)}
    few = min(risk.events for risk in (first, second) if risk is not None)
    if few < replicated.source.settings.next_to_none:
        doubts = (
            *doubts,
            f"next to no row tells how often {effect.outcome} = {effect.event} in an arm: its "
            f"risk is at an end of its range, and of its interval only the other end says much.",
        )
    found: dict[str, Any] = {"doubts": doubts, "mean_interval": first.interval}
    if second is None:
        return {**found, "interval": first.interval}
    return {
        **found,
        "mean_versus_interval": second.interval,
        "interval": first.difference(second),
        "risk_ratio_interval": first.ratio(second),
        "odds_ratio_interval": first.odds_ratio(second),
    }


def pointwise(
    table: pd.DataFrame,
    replicated: Replicated[pd.DataFrame],
    name: str,
    level: float,
    ends: Interval = (-math.inf, math.inf),
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the lower and the upper ends for a column of a table, a line at a time.

    They stay inside the ends of what these numbers can be.
    """
    own = table[name].to_numpy(dtype=np.float64)
    if replicated.source.doubt is not None:
        return np.full_like(own, np.nan), np.full_like(own, np.nan)
    spreads = [replicated.spread(partial(_entry, name, i)) for i in range(len(own))]
    pairs = zip(spreads, own, strict=True)
    both = np.array([spread.interval(float(value), level, ends) for spread, value in pairs])
    return both[:, 0], both[:, 1]


def pointwise_risks(
    table: pd.DataFrame, replicated: Replicated[pd.DataFrame], names: tuple[str, str], level: float
) -> np.ndarray:
    """Returns the ends for risks and their differences, columns of a table, (4, lines)."""
    found = np.full((4, len(table)), np.nan)
    if replicated.source.doubt is not None:
        return found
    for line in range(len(table)):
        first = replicated.risk(table, partial(_entry, names[0], line), level)
        second = replicated.risk(table, partial(_versus, names, line), level)
        if first is not None:
            found[:2, line] = first.interval
        if first is not None and second is not None:
            found[2:, line] = first.difference(second)
    return found


def _versus(names: tuple[str, str], line: int, table: pd.DataFrame) -> float:
    return _entry(names[0], line, table) - _entry(names[1], line, table)


def _entry(name: str, line: int, table: pd.DataFrame) -> float:
    return float(table[name].iloc[line])


def event_code(column: Levels, event: object) -> int:
    """Returns the code of the level whose risk is asked for, the highest where none is named."""
    if event is None:
        return len(column.levels) - 1
    code = column.parse(pd.Series([event], dtype=object))[0]
    if np.isnan(code):
        raise InputError(f"the event of {column.name!r} is {event!r}; expected {column.expected}.")
    return int(code)


def _numbers(arms: Arms, units: Units, statistic: Statistic, *, alone: bool) -> dict[str, Any]:
    """Compares a statistic of numbers, or says that of the one arm there is."""
    named = {"measure": statistic.measure, "statistic": statistic.word}
    if alone:
        arms = arms[0], np.zeros_like(arms[0])
    found = {**statistic.contrast(arms, units), **named}
    if alone:
        return {**found, "mean_versus": None, "measure": f"{statistic.word} without intervention"}
    if statistic.is_mean:
        away = arms[1] - units.mean(arms[1])
        found["deviation"] = math.sqrt(units.mean(away * away))
    return found


def _finite(ends: Interval) -> Interval | None:
    """Returns ends of which one at least is one."""
    return None if all(map(math.isinf, ends)) else ends


def _e_value(ratio: float) -> float:
    """Returns the E-value of a risk ratio."""
    ratio = max(ratio, 1.0 / ratio)
    return ratio + math.sqrt(ratio * (ratio - 1.0))


def _risks(arms: Arms, units: Units) -> dict[str, Any]:
    found: dict[str, Any] = {**Statistic().contrast(arms, units), "measure": "risk difference"}
    p, q = found["mean"], found["mean_versus"]
    covariance = units.covariance(arms)
    if q > 0:
        found["risk_ratio"] = p / q
        found["risk_ratio_error"] = _error((1 / q, -p / q**2), covariance)
    if q > 0 and p < 1:
        found["odds_ratio"] = p * (1 - q) / ((1 - p) * q)
        slopes = (1 - q) / (q * (1 - p) ** 2), -p / ((1 - p) * q**2)
        found["odds_ratio_error"] = _error(slopes, covariance)
    return found


def _error(slopes: tuple[float, float], covariance: np.ndarray) -> float:
    gradient = np.array(slopes)
    return math.sqrt(max(float(gradient @ covariance @ gradient), 0.0))


def _probabilities(levels: Sequence[Label], arms: Arms, units: Units) -> pd.DataFrame:
    found = pd.DataFrame(
        [Statistic().contrast(_indicated(arms, code), units) for code in range(len(levels))]
    )
    found = found[["mean", "mean_versus", "estimate", "standard_error"]]
    found.columns = pd.Index(["do", "versus", "difference", "standard_error"])
    found.insert(0, "level", list(levels))
    return found


def _indicated(arms: Arms, code: int) -> Arms:
    """Returns the probability of a level: 1 where the outcome has it, if it is no average."""
    first, second = (arm[:, code] if arm.ndim == 2 else (arm == code) + 0.0 for arm in arms)
    return first, second
