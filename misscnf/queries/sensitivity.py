r"""What if values are lost because of themselves? The answer along what no row can tell.

Two ways to ask, both of one column y with holes, and both around the fit:

    strength s    logit P(missing(y) | y, …) = s z_y + …, s held, all else refitted: who is lost
    shift δ       lost values are what the model says, plus δ (`shifts`): what they would have been

The first is a selection model, the second a pattern-mixture model. At s = 0 and δ = 0 the loss is
at random given what else drives it, which is what a fit assumes unless its graph has the arrow
from y to `missing(y)`. docs/sensitivity.md says when to use which.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from misscnf.data.panel import Panel
from misscnf.data.table import IncompleteTable, Table
from misscnf.display.progress import ProgressBar
from misscnf.errors import InputError
from misscnf.graph.template import at_visit
from misscnf.model import StructuralModel
from misscnf.queries.arms import Question
from misscnf.queries.asking import EffectMixin, check_count, told_by_replicates
from misscnf.queries.effects import Effect, with_intervals, written
from misscnf.queries.groups import Where
from misscnf.queries.held_losses import at_strengths, with_indicator
from misscnf.queries.incidence import RiskMixin
from misscnf.queries.interventions import Do
from misscnf.queries.references import ReferenceBased, Trial, compare_regimes, read_regimes
from misscnf.queries.regimes import at_last_visit
from misscnf.queries.shifts import Shift, ShiftedQuestion
from misscnf.queries.tipping import Sensitivity
from misscnf.queries.units import Units
from misscnf.threads import one_thread

__all__ = ["SensitivityMixin", "Numbers", "ByArm"]

Numbers = float | Sequence[float] | np.ndarray
ByArm = Numbers | Mapping[str, Numbers]
"""The same in both arms, or {"do": …, "versus": …}: one of them alone, or a grid of both."""


class SensitivityMixin(RiskMixin):
    """Sensitivity to how values were lost."""

    @one_thread()
    def sensitivity(
        self,
        outcome: str,
        do: Do,
        versus: Do | None = None,
        *,
        loss: str | Mapping[str, Iterable[str]] | None = None,
        strength: Numbers | None = None,
        shift: ByArm | None = None,
        ratio: ByArm | None = None,
        reference: str | Sequence[str] | None = None,
        where: Where | None = None,
        event: object = None,
        statistic: str | float = "mean",
        interval: float | None = 0.95,
        population: str | None = None,
        data: Table | None = None,
        replicates: int | None = None,
        draws: int = 20_000,
        seed: int = 0,
    ) -> Sensitivity | ReferenceBased:
        """Returns an effect along what cannot be known of a loss, and where it tips.

        Arguments:
            outcome: The column.
            do: Interventions of the first arm, as in `effect`.
            versus: Those of the second; none leaves the world as it is.
            loss: The column whose loss is asked about, the outcome by default; or
                `{"y": ["dose"]}`, with what else drives its loss. Without that it is what the
                graph says, or all causes of the column that no row hides. Over time it is the
                loss at the last visit, which shares its mechanism with others where the graph has
                `missing(y)[t]`.
            strength: Log-odds of being lost that a standard deviation of the value itself adds (a
                level, of two), such as `[-1, 0, 1]`: each is held, and all else refitted.
            shift: Numbers that are added to lost values of the outcome, in its units; the same in
                both arms, or `{"do": [0, 1, 2]}` in one; `{"do": …, "versus": …}` is a grid.
            ratio: The same for what lost numbers, the rate of lost counts or the odds of a lost
                event are multiplied by.
            reference: Of a trial with repeated measures, what those who left are told to follow:
                "MAR", "J2R" (jump to reference), "CIR" (copy increments), "CR" (copy reference) or
                "LMCF" (the last mean), or a list of these. `versus` is the reference arm, and the
                answer a `ReferenceBased`.
            where: Only units for which this holds without any intervention, such as "age > 60".
            event: The level whose risk is compared; a binary outcome's higher one by default.
            statistic: What of the outcome is compared; as in `effect`.
            interval: The level of intervals; None leaves them out.
            population: Who is averaged over; as in `effect`.
            data: The table of the fit, where the model was loaded from disk.
            replicates: How many the intervals come from; as in `effect`.
            draws: Units that are averaged.
            seed: Where the randomness of the units starts.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> about = {"loss": {"t": ["y"]}, "strength": [0, 1], "interval": None}
            >>> found = model.sensitivity("y", {"t": 1}, {"t": 0}, **about)
            >>> found.to_frame()["estimate"].round().tolist()  # were large t lost more often
            [2.0, 2.0]
        """
        self._graph()  # refuses a model that is not fitted
        if reference is not None:
            along = {"strength": strength, "shift": shift, "ratio": ratio}
            _refuse_beside(loss=loss, where=where, event=event, **along)
            if statistic != "mean":
                raise InputError("reference-based imputation compares means of the outcome.")
            regimes, arms = read_regimes(reference), (do, versus or {})
            about = (interval, data, replicates, draws, seed)
            return self._by_reference(outcome, arms, regimes, *about)
        column, drivers = _read_loss(outcome if loss is None else loss)
        said, against = dict(do or {}), dict(versus or {})
        outcome, do, versus = self._unrolled(outcome, do, versus)
        if self.panel_ is not None:
            column, drivers = self._at_its_visit(column, drivers, self.panel_)
        self.graph_.index(column)  # refuses one that is not there
        what, grid = _read_grid(strength=strength, shift=shift, ratio=ratio)
        self._refuse_level(interval, replicates)
        check_count("draws", draws, least=2)
        if not do:
            raise InputError("sensitivity needs an intervention, such as do={'dose': 1}.")
        if what != "strength" and column != outcome:
            raise InputError(
                f"a {what} is of lost values of the outcome {outcome!r}, and the loss is that of "
                f"{column!r}; ask for strength=, or for loss={outcome!r}."
            )
        how = _How(
            *(outcome, do, versus, where, event, statistic),
            *(interval, population, replicates, draws, seed),
        )
        question = how.question(self)  # refuses what cannot be asked, before any work
        if what != "strength":
            how.shifted(self).refuse_unshiftable(what)
        notes = self._warn_beyond(do, versus) + self._rough_notes(question)
        known = with_indicator(self, column, drivers, self._rows_of_fit(data))
        if what == "strength":
            effects, more = self._at_strengths(known, column, grid, how)
            notes += more
        else:
            ask, shifts = how.shifted(known), [grid.shifts(what, point) for point in grid.points]
            effects = _answers(
                known, ask, how, lambda model, units: ask.effects(model, units, do, versus, shifts)
            )
        effects = [replace(one, do=said, versus=against) for one in effects]  # over time no visits
        arm = {"do": said, "versus": against}.get(grid.arm or "")
        lost = question.lost_words(None if arm is None else written(arm) or "no intervention")
        return Sensitivity(column, what, grid.names, grid.points, tuple(effects), lost, notes)

    def _at_strengths(
        self, known: SensitivityMixin, column: str, grid: _Grid, how: _How
    ) -> tuple[list[Effect], tuple[str, ...]]:
        """Returns the effect at each strength, and what is to be known of them."""
        strengths, notes = [point[0] for point in grid.points], tuple[str, ...]()
        networks, like = any(not law.solvable for law in self.model_.mechanisms), None
        if networks and how.interval is not None:
            (like,) = how.effects(self)
            notes = (
                "the model has networks, whose replicates take as long as fits: every interval "
                "is as wide as that of the fit.",
            )
        found: dict[int, Effect] = {}
        with ProgressBar("strengths", show=self.progress) as bar:
            for i, other in at_strengths(known, column, strengths):
                (effect,) = how.effects(other, by_replicates=not networks)
                found[i] = effect if like is None else _as_wide(effect, like)
                bar(len(found), len(strengths))
        return [found[i] for i in range(len(strengths))], notes

    def _at_its_visit(
        self, column: str, drivers: list[str] | None, panel: Panel
    ) -> tuple[str, list[str] | None]:
        """Returns the loss of a column over time by node: that of its last visit.

        A slope that is held is that of one mechanism. Where the graph has the loss at all visits,
        it is that of every visit which shares the mechanism; else of the last one alone.
        """
        if panel.events:
            raise InputError(
                f"after the event {next(iter(panel.events))!r} a cell is no loss, so that nothing "
                f"says how much was lost; sensitivity over time is for tables without events."
            )
        node = at_last_visit(column, panel)
        if drivers is None or node == column:
            return node, drivers
        (visit,) = (visit for visit in panel.visits if at_visit(column, visit) == node)
        then = {name: at_visit(name, visit) for name in panel.template.varying}
        return node, [then.get(name.removesuffix("[t]"), name) for name in drivers]

    def _by_reference(
        self,
        outcome: str,
        arms: tuple[Do, Do],
        regimes: Sequence[str],
        interval: float | None,
        data: Table | None,
        replicates: int | None,
        draws: int,
        seed: int,
    ) -> ReferenceBased:
        """Returns the effect in a trial under regimes of those who left."""
        self._refuse_level(interval, replicates)
        check_count("draws", draws, least=2)
        if self.panel_ is not None:
            outcome = at_last_visit(outcome, self.panel_)
        table, rules = self._rows_of_fit(data), self.settings_
        trial = Trial.of(self.graph_, self.schema_, table, outcome, arms, self.panel_)
        notes = self._warn_beyond(*arms)
        source, _ = self._replicates(interval, data, replicates, whole=True)
        lines, doubts = compare_regimes(
            trial,
            self.model_,
            regimes,
            source,
            level=interval,
            draws=max(2, draws // len(trial.rows)),
            few=rules.replicates.row_completions,
            effort=rules.integration.completions,
            seed=seed,
            weights_seed=self.seed,
            rows_of_table=len(table),
        )
        people, left = trial.sizes()
        names = tuple(self.graph_.nodes[j] for j in trial.adjusted)
        found = ReferenceBased(
            outcome, dict(arms[0]), dict(arms[1]), lines, people, left, names, notes=notes + doubts
        )
        if source is None or doubts:
            return found
        return replace(found, level=interval, replicates=len(source))

    def _rows_of_fit(self, data: Table | None) -> IncompleteTable:
        if data is None and self._table is None:
            raise InputError(
                "sensitivity needs the table of the fit, which a saved model leaves behind; pass "
                "it as data=."
            )
        return self._table_of_fit(data)


@dataclass(frozen=True)
class _How:
    """A question, and how it is answered."""

    outcome: str
    do: Do
    versus: Do | None
    where: Where | None
    event: object
    statistic: str | float
    interval: float | None
    population: str | None
    replicates: int | None
    draws: int
    seed: int

    def question(self, fitted: EffectMixin, kind: type[Question] = Question) -> Question:
        """Returns the question to a fit."""
        arms = [self.do, self.versus or {}]
        about = (arms, self.where, None, self.event, self.seed, self.statistic, kind)
        return fitted._question(self.outcome, *about)

    def shifted(self, fitted: EffectMixin) -> ShiftedQuestion:
        """Returns the question to a fit, for many shifts."""
        found = self.question(fitted, ShiftedQuestion)
        assert isinstance(found, ShiftedQuestion)
        return found

    def effects(self, fitted: EffectMixin, *, by_replicates: bool = True) -> list[Effect]:
        """Returns the effect, alone in a list, by a fit."""
        ask, how = self.question(fitted), self if by_replicates else replace(self, interval=None)
        arms = self.do, self.versus
        return _answers(fitted, ask, how, lambda model, units: [ask.effect(model, units, *arms)])


def _answers(
    fitted: EffectMixin,
    ask: Question,
    how: _How,
    effects: Callable[[StructuralModel, Units], list[Effect]],
) -> list[Effect]:
    """Returns several effects of the same units, with intervals by replicates of the fit."""
    about = (how.interval, how.population, None, how.replicates, how.draws, how.seed)
    own, *others = (effects(model, units) for model, units in fitted._each([ask], *about))
    of_rows = fitted._population(ask, how.population, None)[0] == "rows"
    source, _ = fitted._replicates(how.interval, None, how.replicates, whole=of_rows)
    if source is None or how.interval is None:
        return own
    return [
        with_intervals(
            effect, told_by_replicates(source, [one[i] for one in others]), how.interval
        )
        for i, effect in enumerate(own)
    ]


def _as_wide(effect: Effect, like: Effect) -> Effect:
    """Returns an effect with an interval that is as wide as another's, on either side."""
    if like.interval is None or like.estimate is None or effect.estimate is None:
        return replace(effect, level=like.level)
    by = effect.estimate - like.estimate
    ends = like.interval[0] + by, like.interval[1] + by
    return replace(effect, level=like.level, replicates=like.replicates, interval=ends)


class _Grid(NamedTuple):
    """Where an effect is asked for."""

    names: tuple[str, ...]
    points: tuple[tuple[float, ...], ...]
    arm: str | None
    """the one arm that is moved; None for both"""

    def shifts(self, what: str, point: tuple[float, ...]) -> tuple[Shift, Shift]:
        """Returns what is done to lost values of the two arms at a point."""
        first, second = (Shift(add=x) if what == "shift" else Shift(times=x) for x in _pair(point))
        return (
            Shift() if self.arm == "versus" else first,
            Shift() if self.arm == "do" else second,
        )


def _pair(point: tuple[float, ...]) -> tuple[float, float]:
    return point[0], point[-1]


def _refuse_beside(**given: object) -> None:
    """Refuses what has no meaning beside a regime of those who left."""
    named = [f"{name}=" for name, value in given.items() if value is not None]
    if named:
        raise InputError(
            f"reference= says what those who left follow, and goes without {named[0]}; ask for "
            f"one of them at a time."
        )


def _read_loss(loss: object) -> tuple[str, list[str] | None]:
    """Returns the column that is lost, and what else drives its loss if that is said."""
    if isinstance(loss, str):
        return loss, None
    if isinstance(loss, Mapping) and len(loss) == 1:
        ((column, drivers),) = loss.items()
        named = [drivers] if isinstance(drivers, str) else list(drivers)
        return column, [name for name in named if name != column]
    raise InputError(
        f"loss is one column, such as 'y', or {{'y': ['dose']}} with what else drives its loss; "
        f"got {loss!r}."
    )


def _read_grid(**given: ByArm | None) -> tuple[str, _Grid]:
    """Returns what varies, and where."""
    named = {what: value for what, value in given.items() if value is not None}
    if len(named) != 1:
        raise InputError(
            f"sensitivity asks along one of strength=, shift= and ratio=; got "
            f"{' and '.join(named) or 'none'}."
        )
    ((what, value),) = named.items()
    if not isinstance(value, Mapping):
        return what, _Grid((what,), tuple((x,) for x in _numbers(what, value)), None)
    if what == "strength" or not value or not set(value) <= {"do", "versus"}:
        arms = "" if what == "strength" else " or {'do': …, 'versus': …}"
        raise InputError(f"{what} is a list of numbers{arms}; got {value!r}.")
    lists = {arm: _numbers(what, value[arm]) for arm in ("do", "versus") if arm in value}
    if len(lists) == 1:
        ((arm, numbers),) = lists.items()
        return what, _Grid((what,), tuple((x,) for x in numbers), arm)
    names = tuple(f"{what}_{arm}" for arm in lists)
    return what, _Grid(names, tuple(itertools.product(*lists.values())), None)


def _numbers(what: str, value: Any) -> list[float]:  # noqa: ANN401 - whatever people give
    """Reads numbers, in their order and each once."""
    examples = {"strength": "[-1, 0, 1]", "shift": "[0, 1, 2]", "ratio": "[1, 1.5, 2]"}
    try:
        if isinstance(value, str):
            raise TypeError
        found = sorted({float(x) for x in np.atleast_1d(np.asarray(value))})
    except (TypeError, ValueError):
        found = []
    fits = all(math.isfinite(x) and (what != "ratio" or x > 0.0) for x in found)
    if not found or not fits:
        positive = "positive " if what == "ratio" else ""
        raise InputError(
            f"{what} is {positive}numbers, such as {examples[what]}; got {value!r}.", about=what
        )
    return found
