r"""Risks over time: how many have had an event by each visit, under regimes.

A unit that is at risk at visit k has the event there with the hazard h_k, the probability that its
mechanism gives given the causes in that arm. What has not happened goes on, so that by visit k

    risk_k = E[ 1 − Π_{j ≤ k} (1 − h_j) ],

the average over all courses of the g-formula (Robins 1986): causes are drawn as if everybody were
still there, and weighted by the chance to be. With a competing event of hazard g,

    risk_k = E[ Σ_{j ≤ k} h_j Π_{i < j} (1 − h_i)(1 − g_i) ],

with the factor 1 − g_j too where the competing event comes first within a visit; "removed" leaves
out all g. The restricted mean is the area under 1 − risk up to the last visit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.panel import Panel
from misscnf.data.table import IncompleteTable, Table
from misscnf.display.digits import with_ends
from misscnf.display.notebook import card
from misscnf.display.tables import Tabular
from misscnf.errors import InputError
from misscnf.graph.template import at_visit
from misscnf.model import StructuralModel
from misscnf.queries.arms import Question
from misscnf.queries.asking import EffectMixin, check_count, told_by_replicates
from misscnf.queries.effects import Interval, Replicated
from misscnf.queries.groups import Where
from misscnf.queries.interventions import Do, written
from misscnf.queries.regimes import at_all_visits
from misscnf.queries.units import Units
from misscnf.threads import one_thread

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Incidence", "RiskMixin", "Risks"]

Competing = Literal["total", "removed"]


@dataclass(frozen=True)
class Risks(Tabular):
    """The risk of an event by each visit, in one arm or in two.

    Example:
        >>> from misscnf import MissCNF
        >>> rng = np.random.default_rng(0)
        >>> df = pd.DataFrame({"id": np.repeat(range(400), 2), "week": [1, 2] * 400})
        >>> df["pill"] = rng.integers(2, size=800)
        >>> df["ill"] = (rng.random(800) < 0.5 - 0.4 * df["pill"]).astype(int)
        >>> df = df.drop(df.index[1::2][df["ill"][::2] == 1])  # who fell ill has left
        >>> about = {"kinds": {"ill": "event"}, "id": "id", "time": "week"}
        >>> model = MissCNF("pill[t] -> ill[t]", "linear", **about, progress=False).fit(df)
        >>> found = model.risk("ill", do={"pill": 1}, versus={"pill": 0})
        >>> found.table[["risk", "versus"]].round(1).to_numpy().tolist()  # 0.1, 0.5; 0.19, 0.75
        [[0.1, 0.5], [0.2, 0.7]]
    """

    event: str
    """The column of the event."""
    do: dict[str, Any]
    """The regime of the first arm; none is the natural course."""
    versus: dict[str, Any] | None
    """The regime of the second; None where the question has one arm."""
    table: pd.DataFrame = field(compare=False)
    """A row a visit: time, risk, versus, difference and ratio, each with lower and upper where an
    interval was asked for; `observed` is what the table itself shows, beside the natural course,
    if those who left are like those who stayed."""
    restricted_mean: float
    """The mean time without the event, up to the last visit."""
    restricted_mean_versus: float | None = None
    """The same in the second arm."""
    restricted_mean_interval: Interval | None = None
    """Of the first, for the sampling error of the fit."""
    restricted_mean_difference: float | None = None
    """The first less the second."""
    restricted_mean_difference_interval: Interval | None = None
    """Likewise."""
    time: str = "time"
    """The column that says when."""
    competing: tuple[str, ...] = ()
    """Events that end a person's course too."""
    removed: bool = False
    """Whether these were removed."""
    standard_error: float = 0.0
    """The Monte-Carlo error of the last risk."""
    draws: int = 0
    """Units that were averaged."""
    population: str = "model"
    """Who was averaged over: "model", units that it draws, or "rows", those of the table."""
    level: float | None = None
    """How often such intervals hold the truth, such as 0.95; None without intervals."""
    replicates: int | None = None
    """From how many replicates of the fit the intervals come."""
    group: str | None = None
    """Within which group, in words; None for all."""
    notes: tuple[str, ...] = ()
    """What to know before believing it."""
    doubts: tuple[str, ...] = ()
    """Why intervals may be too narrow, or could not be given."""

    @property
    def title(self) -> str:
        """Which risk this is, in words."""
        within = "" if self.group is None else f" ({self.group})"
        return f"risk of {self.event}, {' versus '.join(self.arms)}{within}"

    @property
    def arms(self) -> tuple[str, ...]:
        """What the arms are called: one, or two."""
        given = [self.do] if self.versus is None else [self.do, self.versus]
        return tuple(written(arm) if arm else "the natural course" for arm in given)

    def _shown(self, name: str, line: int) -> str:
        """Returns a number of the table with its interval, if it has one."""
        row = self.table.iloc[line]
        if f"{name}_lower" not in row:
            return _with_ends(row[name], None)
        return _with_ends(row[name], (row[f"{name}_lower"], row[f"{name}_upper"]))

    @property
    def told(self) -> str:
        """The answer at the last visit, in words."""
        by = f"by {self.time} {self.table['time'].iloc[-1]:g}: {self._shown('risk', -1)}"
        mean = _with_ends(self.restricted_mean, self.restricted_mean_interval)
        free = f"{self.time} without it up to then {mean}"
        if self.versus is not None:
            by += f" against {self._shown('versus', -1)}"
            by += f", difference {self._shown('difference', -1)}"
            by += f", ratio {self._shown('ratio', -1)}"
            ends = self.restricted_mean_difference_interval
            away = _with_ends(self.restricted_mean_difference, ends)
            free += f" against {self.restricted_mean_versus:.4g}, difference {away}"
        return f"{by}; mean {free}"

    def shown(self) -> pd.DataFrame:
        """Returns the table as people read it: a number and its interval in one cell."""
        names = [n for n in ("risk", "versus", "difference", "ratio") if n in self.table]
        heads = dict(zip(("risk", "versus"), self.arms, strict=False))
        lines = range(len(self.table))
        found = {heads.get(name, name): [self._shown(name, k) for k in lines] for name in names}
        if "observed" in self.table:
            found["observed"] = [f"{number:.4g}" for number in self.table["observed"]]
        return pd.DataFrame({self.time: [f"{t:g}" for t in self.table["time"]], **found})

    def __str__(self) -> str:
        level = "" if self.level is None else f", {100 * self.level:g} % intervals"
        notes = [f"  But {note}" for note in self.notes + self.doubts]
        other = ""
        if self.competing:
            how = "removed" if self.removed else "left as they are"
            other = f"  Competing events ({', '.join(self.competing)}) are {how}.\n"
        rows = "the rows of the table, their holes completed by posterior draws"
        over = rows if self.population == "rows" else f"{self.draws:,} units that the model draws"
        head = f"{self.title}, {self.told}{level}\n  Averaged over {over}."
        return "\n".join([f"{head}\n{other}{self.shown().to_string(index=False)}", *notes])

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the risk of each arm by time, with its band; dashed, what the table itself shows.

        Arguments:
            ax: Axes to draw into; None makes a figure.
        """
        from misscnf import plots

        return plots.risks(self, ax=ax)

    def to_frame(self) -> pd.DataFrame:
        """Returns a row a visit: what `table` has."""
        return self.table.copy()

    def _repr_html_(self) -> str:
        facts = {"at the end": self.told, "population": self.population, "draws": self.draws}
        return card(self.title, facts, {"by visit": self.shown()}, self.notes + self.doubts)

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        said = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "table"}
        return {**said, "table": self.table.to_dict("list")}


class Incidence(Question):
    """How many have had an event by each visit, in one arm or in two."""

    visits: tuple[float, ...]
    own: tuple[int, ...]
    """The nodes of the event, by visit."""
    counted: tuple[int, ...] = ()
    """The nodes of all events that count, in the order in which they may happen."""

    def over(self, panel: Panel, name: str, competing: Competing) -> Incidence:
        """Returns the question about an event of a panel."""
        found, nodes = copy.copy(self), panel.at(name)
        events = [name] if competing == "removed" else list(panel.events)
        found.visits = tuple(v for v in panel.visits if at_visit(name, v) in nodes)
        found.own = tuple(map(self.graph.index, nodes))
        found.counted = tuple(sorted(self.graph.index(n) for e in events for n in panel.at(e)))
        return found

    @property
    def asked(self) -> tuple[int, ...]:
        """The nodes of all events that count."""
        return self.counted

    @torch.no_grad()
    def table(self, model: StructuralModel, units: Units) -> pd.DataFrame:
        """Returns the risk by each visit in each arm, and how they compare."""
        policies, units = self._in_group(model, units)
        arms, each = [], np.zeros((0, 1))
        for arm in policies:
            each = self._risks(model, self._swept(model, units, arm, self.asked)).numpy()
            arms.append(np.average(each, axis=0, weights=units.weights))
        found = pd.DataFrame({"time": self.visits, "risk": arms[0]})
        if len(arms) > 1:
            found["versus"] = arms[1]
            found["difference"] = arms[0] - arms[1]
            with np.errstate(divide="ignore", invalid="ignore"):
                found["ratio"] = arms[0] / arms[1]
        found.attrs["standard_error"] = float(each[:, -1].std() / np.sqrt(len(units)))
        return found

    def _risks(self, model: StructuralModel, values: Tensor) -> Tensor:
        """Returns each unit's chance to have had the event by each visit, (n, visits)."""
        alive, found = torch.ones(len(values)).to(values), []
        total = torch.zeros_like(alive)
        for node in self.asked:
            parents, one = model.parents_of(values, node), torch.ones_like(alive)
            hazard = model.mechanism(node).log_prob(one, parents).exp()
            if node in self.own:
                total = total + alive * hazard
                found.append(total)
            alive = alive * (1.0 - hazard)
        return torch.stack(found, -1)


class RiskMixin(EffectMixin):
    """Risks over time."""

    @one_thread()
    def risk(
        self,
        event: str,
        do: Do | None = None,
        versus: Do | None = None,
        *,
        where: Where | None = None,
        competing: Competing = "total",
        interval: float | None = None,
        population: str | None = None,
        data: Table | None = None,
        replicates: int | None = None,
        draws: int = 100_000,
        seed: int = 0,
    ) -> Risks:
        """Returns how many have had an event by each visit, under a regime or two.

        Arguments:
            event: A column of the kind "event".
            do: The regime of the first arm, such as `{"A": 1}` at all visits, or a rule such as
                `{"A": "L[t] < 350"}` (docs/panels.md); none is the natural course.
            versus: The regime of the second arm; `{}` is the natural course, None no second arm.
            where: Only units for which this holds without any intervention, such as "age > 60".
            competing: Other events end a person's course ("total"), or are "removed".
            interval: A level such as 0.95, as in `effect`.
            population: Who is averaged over, as in `effect`.
            data: The table of the fit, where the model was loaded from disk.
            replicates: How many, as in `effect`.
            draws: Units that are averaged.
            seed: Where the randomness of the units starts.

        Example:
            >>> from misscnf import MissCNF
            >>> rng = np.random.default_rng(0)
            >>> df = pd.DataFrame({"id": np.repeat(range(400), 2), "week": [1, 2] * 400})
            >>> df["pill"] = rng.integers(2, size=800)
            >>> df["ill"] = (rng.random(800) < 0.3).astype(int)
            >>> df = df.drop(df.index[1::2][df["ill"][::2] == 1])  # who fell ill has left
            >>> about = {"kinds": {"ill": "event"}, "id": "id", "time": "week"}
            >>> model = MissCNF("pill[t] -> ill[t]", "linear", **about, progress=False).fit(df)
            >>> model.risk("ill", do={"pill": 1}).table["risk"].round(1).tolist()
            [0.3, 0.5]
        """
        self._graph()
        panel = self._panel_of(event)
        if competing not in ("total", "removed"):
            raise InputError(f"competing is 'total' or 'removed'; got {competing!r}.")
        check_count("draws", draws, least=2)
        said, against = dict(do or {}), None if versus is None else dict(versus)
        arms = [at_all_visits(arm, panel) for arm in (said, against) if arm is not None]
        last = panel.at(event)[-1]
        ask = self._question(last, arms, where, None, None, seed, kind=Incidence)
        assert isinstance(ask, Incidence)
        ask = ask.over(panel, event, competing)
        notes = self._warn_beyond(*arms) + self._rough_notes(ask)
        asked = self._each([ask], interval, population, data, replicates, draws, seed)
        table, *answers = (ask.table(model, units) for model, units in asked)
        who, _ = self._population(ask, population, data)
        notes += self._denied(last, {name: 0 for arm in arms for name in arm}, who)
        found = Risks(
            event,
            said,
            against,
            table,
            restricted_mean(table, "risk"),
            time=panel.time,
            competing=tuple(name for name in panel.events if name != event),
            removed=competing == "removed",
            standard_error=table.attrs["standard_error"],
            draws=draws,
            population=who,
            group=ask.group.words,
            notes=notes,
        )
        if against is not None:
            other = restricted_mean(table, "versus")
            away = found.restricted_mean - other
            found = replace(found, restricted_mean_versus=other, restricted_mean_difference=away)
        known = self._table if data is None else self._table_of_fit(data)
        if not said and known is not None and where is None:
            shown = _observed(known, panel, event)
            found = replace(found, table=table.assign(observed=shown))
        source, _ = self._replicates(interval, data, replicates, whole=who == "rows")
        if interval is None or source is None:
            return found
        return _with_intervals(found, told_by_replicates(source, answers), interval)

    def _panel_of(self, event: str) -> Panel:
        """Returns the panel of an event; refuses what is none."""
        if self.panel_ is None:
            raise InputError(
                "a risk over time needs a table over time; fit one with id= and time=, or ask for "
                "effect()."
            )
        if event not in self.panel_.events:
            known = ", ".join(self.panel_.events) or "none"
            raise InputError(
                f"{event!r} is not an event of the fitted table (its events: {known}); fit with "
                f"kinds={{{event!r}: 'event'}}."
            )
        return self.panel_


def restricted_mean(table: pd.DataFrame, name: str) -> float:
    """Returns the area under one minus the risk, up to the last visit."""
    return float((np.diff(table["time"]) * (1.0 - table[name].to_numpy()[:-1])).sum())


def _observed(table: IncompleteTable, panel: Panel, event: str) -> np.ndarray:
    """Returns the risks that a table itself shows, by the product limit; events compete."""
    alive, total, found = 1.0, 0.0, []
    places = {node: name for name in panel.events for node in panel.at(name)}
    for place, node in enumerate(table.nodes):
        if node not in places:
            continue
        seen = table.observed[:, place]
        hazard = float(table.values[seen, place].mean()) if bool(seen.any()) else 0.0
        if places[node] == event:
            total += alive * hazard
            found.append(total)
        alive *= 1.0 - hazard
    return np.array(found)


def _with_intervals(risks: Risks, told: Replicated[pd.DataFrame], level: float) -> Risks:
    """Adds intervals for the sampling error of the fit."""
    source = told.source
    found: dict[str, Any] = {"level": level, "replicates": len(told.answers)}
    if source.doubt is not None:
        return replace(risks, **found, doubts=(f"no interval can be given: {source.doubt}",))
    table, two = risks.table.copy(), risks.versus is not None
    ends = {
        name: np.full((2, len(table)), np.nan)
        for name in ("risk", "versus", "difference", "ratio")
    }
    for line in range(len(table)):
        first = told.risk(table, partial(_entry, "risk", line), level)
        second = told.risk(table, partial(_entry, "versus", line), level) if two else None
        if first is not None:
            ends["risk"][:, line] = first.interval
        if second is not None:
            ends["versus"][:, line] = second.interval
        if first is not None and second is not None:
            ends["difference"][:, line] = first.difference(second)
            ends["ratio"][:, line] = first.ratio(second)
    for name in [name for name in ends if name in table]:
        place = list(table.columns).index(name) + 1
        table.insert(place, f"{name}_lower", ends[name][0])
        table.insert(place + 1, f"{name}_upper", ends[name][1])
    span = float(table["time"].iloc[-1] - table["time"].iloc[0])

    def interval(number: Callable[[pd.DataFrame], float], own: float, low: float) -> Interval:
        return told.spread(number).interval(own, level, (low, span))

    mean = partial(restricted_mean, name="risk")
    found["restricted_mean_interval"] = interval(mean, risks.restricted_mean, 0.0)
    if two and risks.restricted_mean_difference is not None:
        away = risks.restricted_mean_difference
        found["restricted_mean_difference_interval"] = interval(
            lambda t: restricted_mean(t, "risk") - restricted_mean(t, "versus"), away, -span
        )
        name = "difference"
    else:
        name = "risk"
    spread = told.spread(partial(_entry, name, len(table) - 1))
    return replace(risks, **found, table=table, doubts=spread.doubts(source.settings))


def _with_ends(number: float | None, ends: Interval | None) -> str:
    """Returns a number as text, with its interval if there is one."""
    if ends is None or number is None:
        return f"{number:.4g}"
    middle, lower, upper = with_ends(number, ends)
    return f"{middle} ({lower} to {upper})"


def _entry(name: str, line: int, table: pd.DataFrame) -> float:
    return float(table[name].iloc[line])
