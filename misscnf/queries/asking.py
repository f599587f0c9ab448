r"""Effects of interventions: in all, within a group, on the treated, along a dose.

A unit is its noise u. Its natural values are x = f(u), and what it would have been under do(A) is
the same noise swept with the policies A in the place of mechanisms, so that

    effect in a group g = E[ Y_A(u) − Y_B(u) | f(u) ∈ g ],

with the group decided by the natural values: `where="age > 60"` for a subgroup, the units that
take the treatment by themselves for the effect on the treated. Both arms, all points of a curve
and all replicates of the fit see the same units; `queries.units` says who they are.
"""

from __future__ import annotations

import copy
import logging
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.codecs import Levels
from misscnf.data.panel import Panel
from misscnf.data.rows import MemoryRows
from misscnf.data.table import IncompleteTable, Schema, Table
from misscnf.display.progress import ProgressBar, Shown
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.fitting.replicates import Replicates, bootstrap_weights, replicate_fit
from misscnf.fitting.rivals import Without, solve_without
from misscnf.fitting.select.means import Rival
from misscnf.fitting.settings import Settings
from misscnf.fitting.told_losses import LossEvidence
from misscnf.graph import CausalGraph
from misscnf.identification.hidden import hidden_note
from misscnf.identification.independences import Contradiction, leaned_on
from misscnf.identification.unlikely import Unlikely
from misscnf.identification.words import denied_sentence, listed
from misscnf.model import StructuralModel, Structure
from misscnf.queries.arms import Question
from misscnf.queries.by import compare_groups
from misscnf.queries.curves import Curve
from misscnf.queries.effects import (
    Answer,
    Effect,
    Replicated,
    pointwise,
    pointwise_risks,
    with_intervals,
)
from misscnf.queries.groups import Part, Where, split
from misscnf.queries.interventions import Do, beyond_seen
from misscnf.queries.losses import loss_slopes, weak_losses
from misscnf.queries.plain import PlainEstimate, plain_estimates
from misscnf.queries.regimes import at_all_visits, at_last_visit
from misscnf.queries.statistics import read_statistic
from misscnf.queries.support import rough_sentence
from misscnf.queries.units import RowPopulation, Units
from misscnf.threads import one_thread

__all__ = ["EffectMixin", "Asked", "Cache", "check_count", "told_by_replicates"]

logger = logging.getLogger("misscnf")

KEPT_OF_REPLICATES = 2**25
"""Numbers of units that all replicates keep together, 256 MB: sweeping them again takes seconds at
the most, and those of a hundred wide models would fill a gigabyte."""


@dataclass
class Asked:
    """A model that questions are put to, with the units of the last one."""

    model: StructuralModel
    most_kept: int | None = None
    """Numbers of units that are kept; None for any."""
    _kept: tuple[Tensor, frozenset[int], Tensor] | None = None
    """Their noise, the nodes that are known, and the values."""

    def natural(self, noise: Tensor, nodes: frozenset[int] | None = None) -> Tensor:
        """Returns what units, with noise (n, noise_width), are without intervention.

        It is kept, since every question asks for it, unless it is too large; another question
        adds the nodes that it needs, or asks of the first of the units.

        Arguments:
            noise: Of the units.
            nodes: With each, its causes; None for all. Others may be nan.
        """
        kept, size = self._kept, len(noise)  # another thread may put another there
        wanted = frozenset(range(len(self.model.graph))) if nodes is None else nodes
        found = noise.new_full((size, len(self.model.graph)), torch.nan)
        known, whole = frozenset[int](), True
        if kept is not None and torch.equal(kept[0][:size], noise):
            known, found, whole = kept[1], kept[2][:size], len(kept[0]) == size
        missing = sorted(wanted - known)
        if not missing:
            return found
        found = self.model.complete(found, missing, noise)
        if whole and (self.most_kept is None or found.numel() <= self.most_kept):
            self._kept = noise, wanted | known, found
        return found


@dataclass
class Cache:
    """What a fitted model keeps from one question to the next; nothing that a fit learned."""

    fit: Asked
    replicates: dict[str, tuple[Replicates, list[Asked]]] = field(default_factory=dict)
    """Replicates of the fit, by their number and the table they come from."""
    unsaved: str | None = None
    """Those of them that were made here last, and are not on disk yet."""
    rows: tuple[str, RowPopulation] | None = None
    """The rows that an average was last taken over, and which they are."""
    sampled: tuple[str, IncompleteTable] | None = None
    """The rows by chance of a table on disk that was last asked with, and which it is."""
    kept_rows: tuple[Tensor, Tensor] | None = None
    """Values and what is observed of the rows of the fit, as saved with its replicates."""
    replicating: threading.Lock = field(default_factory=threading.Lock)
    """Held while replicates are made, so that threads that ask for the same make them once."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "replicating"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, replicating=threading.Lock())


class EffectMixin:
    """Effects. The class that mixes it in provides the attributes."""

    graph_: CausalGraph
    model_: StructuralModel
    schema_: Schema
    settings_: Settings
    seed: int
    progress: Shown
    unseen: str
    denied_: tuple[Contradiction, ...]
    panel_: Panel | None
    """How a table over time was read; None for any other."""
    unlikely_: tuple[Unlikely, ...] = ()
    """Values of the table of the fit that no law of their column makes likely."""
    rivals_: dict[str, Rival]
    """Forms that nodes might have had, by node."""
    _table: IncompleteTable | None
    """The table of the fit, for intervals; a saved model leaves it behind."""
    rough_: dict[str, dict[str, Any]]
    """What the fit does not follow, by node."""
    loss_evidence_: LossEvidence
    loss_starts_: pd.DataFrame
    _digest: str | None
    """By which it is recognised; None in models that did not note it."""
    _stands_for: int | None = None
    """Rows of the fit, where its table is a sample of them; None where it has them all."""
    _drawn_from: int | None = None
    """Rows of the file that the table of the fit was drawn from; None where it is all of them."""
    _marks: tuple[str, ...] = ()
    """What stood for holes in its file beyond what always does, such as "-99"."""
    _cache: Cache

    @one_thread()
    def effect(
        self,
        outcome: str,
        do: Do | None = None,
        versus: Do | None = None,
        *,
        where: Where | None = None,
        by: str | Sequence[Part] | None = None,
        treated: bool = False,
        event: object = None,
        statistic: str | float = "mean",
        interval: float | None = None,
        population: str | None = None,
        data: Table | None = None,
        replicates: int | None = None,
        draws: int = 100_000,
        seed: int = 0,
    ) -> Effect:
        """Returns the contrast of two interventions, both arms with the same units.

        That is a difference of means, the risk difference, risk ratio and odds ratio of a binary
        outcome, or the probability of each category (`misscnf.queries.effects`). Without any
        intervention it is the mean, or the risk, of the outcome as it is.

        Arguments:
            outcome: The column.
            do: Interventions of the first arm: values, rules or draws (docs/policies.md).
            versus: Interventions of the second arm; none leaves the world as it is.
            where: Only units for which this holds without any intervention, such as "age > 60".
            by: A column: the effect in each group that it makes, by its levels or at its median,
                and how they differ, as `groups` of the answer; or parts of one column, as the
                report makes them of its rows.
            treated: Only units that take by themselves what `do` assigns them: the effect on the
                treated.
            event: The level whose risk is compared; a binary outcome's higher one by default.
            statistic: What of the outcome is compared: its "mean", its "median", its "trimmed"
                mean (without the tenth at either end), or a quantile, such as 0.9.
            interval: A level such as 0.95: adds intervals for the sampling error of the fit. The
                first one replicates the fit, which takes longer than the fit itself where it has
                networks; further questions use the same replicates.
            population: Who is averaged over: "model", units that it draws, or "rows", those of the
                table, their holes completed by posterior draws. The default is "rows" where the
                graph has blocks, whose law then hardly matters, and where the law of the
                covariates is not trusted (rows deny an independence among them that the answer
                leans on, or one of them does not follow its causes); "model" elsewhere. The
                answer says which it was.
            data: The table of the fit, where the model was loaded from disk.
            replicates: How many; by default 16 where there are networks, 100 where there are none.
            draws: Units that are averaged.
            seed: Where the randomness of the units starts.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> effect = model.effect("y", do={"t": 1}, versus={"t": 0}, interval=0.95)
            >>> effect.measure, effect.interval[0] < 2 < effect.interval[1]
            ('mean difference', True)
        """
        said, against = do or {}, versus
        outcome, do, versus = self._unrolled(outcome, said, versus)
        taken = do if treated else None
        ask = self._question(outcome, [do, versus or {}], where, taken, event, seed, statistic)
        check_count("draws", draws, least=2)
        parts = [] if by is None else self._parts(by, ask, draws, seed)
        notes = self._warn_beyond(do, versus) + self._no_way(ask) + self._rough_notes(ask)
        asks = [ask, *(ask.within(part) for part in parts)]
        asked = self._each(asks, interval, population, data, replicates, draws, seed)
        effects, *replicated = (
            [one.effect(model, units, said, against) for one in asks] for model, units in asked
        )
        denied = self._denied(outcome, {**(versus or {}), **do}, effects[0].population)
        hidden = self._notes_on_hidden(ask, {**(versus or {}), **do}, by)
        of_rows = self._population(ask, population, data)[0] == "rows"
        source, _ = self._replicates(interval, data, replicates, whole=of_rows)
        known = [] if source is None else [one.cells for one in source.without]
        notes += self._heavy(ask) + self._unlikely(ask, known) + denied + hidden
        notes += self._weak_losses(ask) + self._after_events(outcome)
        because = self._population(ask, population, data)[1]
        effects = [replace(effect, population_because=because) for effect in effects]
        effects = [
            one.with_groups_known(replace(effect, notes=notes + effect.notes), self.model_)
            for one, effect in zip(asks, effects, strict=True)
        ]
        effect = effects[0]
        told_by = (
            []
            if source is None
            else [
                told_by_replicates(source, [answers[i] for answers in replicated])
                for i in range(len(asks))
            ]
        )
        if by is not None:
            names = [part.label for part in parts]
            groups = compare_groups(parts[0].column, names, effects[1:], told_by[1:], interval)
            told = dict.fromkeys(note for one in effects for note in one.notes)
            effect = replace(effect, groups=groups, notes=tuple(told))
        if interval is None or not told_by:
            return effect
        return with_intervals(effect, told_by[0], interval)

    @one_thread()
    def curve(
        self,
        outcome: str,
        along: str,
        values: Sequence[Any],
        *,
        do: Do | None = None,
        versus: Do | None = None,
        where: Where | None = None,
        event: object = None,
        statistic: str | float = "mean",
        interval: float | None = None,
        population: str | None = None,
        data: Table | None = None,
        replicates: int | None = None,
        draws: int = 20_000,
        seed: int = 0,
    ) -> Curve:
        """Returns the dose-response curve: what holding a column at each value leads to.

        Arguments:
            outcome: The column that responds.
            along: The column that is held.
            values: At which values, in its units.
            do: Further interventions, the same at each value.
            versus: What each value is compared with; none leaves the world as it is.
            where: Only units for which this holds without any intervention.
            event: The level whose risk is asked for; a binary outcome's higher one by default.
            statistic: What of the outcome is asked for; as in `effect`.
            interval: A level such as 0.95: adds pointwise bands for the sampling error of the fit.
            population: Who is averaged over: "model", units that it draws, or "rows", those of the
                table, their holes completed by posterior draws. As in
                `effect`.
            data: The table of the fit, where the model was loaded from disk.
            replicates: How many; as in `effect`.
            draws: Units that are averaged.
            seed: Where the randomness of the units starts.

        Returns:
            A row a value: the value, `mean` (of the outcome, or the risk of the event), `estimate`
            (against `versus`); with bands also mean_lower, mean_upper, lower, upper. An outcome
            with levels and neither numbers nor an event has a row a value and `level`. What the
            estimate is stands in `attrs["measure"]`, who was averaged over in
            `attrs["population"]`; `plot()` draws it.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> curve = model.curve("y", "t", [0, 1, 2], versus={"t": 0})
            >>> curve["t"].tolist(), curve["estimate"].round().tolist()
            ([0, 1, 2], [0.0, 2.0, 4.0])
        """
        said, against = [{**(do or {}), along: value} for value in values], versus
        if not said:
            raise InputError(f"a curve along {along!r} needs values; got none.")
        doses = [self._unrolled(outcome, dose, versus)[1] for dose in said]
        outcome, _, versus = self._unrolled(outcome, {}, versus)
        ask = self._question(outcome, [versus or {}, *doses], where, None, event, seed, statistic)
        check_count("draws", draws, least=2)
        numbers = all(isinstance(value, int | float | np.number) for value in values)
        self._warn_beyond({along: np.asarray(values)} if numbers else None, versus)
        for note in self._notes_on_hidden(ask, {**(versus or {}), **doses[0]}):
            logger.warning("%s", note[0].upper() + note[1:])
        asked = self._each([ask], interval, population, data, replicates, draws, seed)
        table, *answers = (ask.curve(model, units, said, against) for model, units in asked)
        who = table.attrs["population"] = self._population(ask, population, data)[0]
        lines = len(table) // len(doses)
        table.insert(0, along, [value for value in values for _ in range(lines)])
        source, _ = self._replicates(interval, data, replicates, whole=who == "rows")
        if interval is None or source is None:
            return Curve.of(table, outcome)
        if source.doubt is not None:
            logger.warning("no interval can be given: %s", source.doubt)
        told_by = told_by_replicates(source, answers)
        if ask.of_risks:
            ends = pointwise_risks(table, told_by, ("mean", "estimate"), interval)
        else:
            own = self.schema_.columns[ask.node].ends
            room = own[1] - own[0]
            of_means = pointwise(table, told_by, "mean", interval, own)
            of_contrasts = pointwise(table, told_by, "estimate", interval, (-room, room))
            ends = np.concatenate([of_means, of_contrasts])
        for name, end in zip(("mean_lower", "mean_upper", "lower", "upper"), ends, strict=True):
            table[name] = end
        return Curve.of(table, outcome)

    def plain_estimates(self, effect: Effect, data: Table | None = None) -> list[PlainEstimate]:
        """Returns what the rows say of an effect without the model: crude, and complete cases.

        Arguments:
            effect: An answer of `effect` to one treatment.
            data: The table of the fit, where the model was loaded from disk.

        Example:
            With `df` and `model` of `MissCNF`:

            >>> effect = model.effect("y", do={"t": 1}, versus={"t": 0})
            >>> [one.name for one in model.plain_estimates(effect, df)]
            ['crude']
        """
        return plain_estimates(self._table_of_fit(data), self._graph(), effect)

    def _parts(self, by: str | Sequence[Part], ask: Question, draws: int, seed: int) -> list[Part]:
        """Returns the groups that a column makes of the units of the fit that are asked about."""
        if not isinstance(by, str):
            parts = list(by) if isinstance(by, list | tuple) else []
            if not parts or not all(isinstance(part, Part) for part in parts):
                raise InputError(
                    f"by is the name of one column, such as 'sex', and not {by!r}; ask once for "
                    f"each column, or give one of them as where=."
                )
            return parts
        node = self._graph().index(by)
        column, few = self.schema_.columns[node], self.settings_.replicates
        noise, causes = self._units(draws, seed), self.graph_.ancestral_closure([node])
        nodes = causes if ask.group.words is None else causes | ask.needed(draws)
        units = Units(noise, self._cache.fit.natural(noise, nodes))
        drawn = ask.among(self.model_, units).natural[:, node]
        codes = isinstance(column, Levels)
        seen = drawn.numpy() if codes else column.decode(drawn.numpy())
        parts = split(column, seen, few.most_groups, 0.0)
        if len(parts) < 2:
            raise InputError(
                f"{by!r} makes no groups to compare; name a column with two to {few.most_groups} "
                f"levels, or one of numbers."
            )
        return parts

    def _each(
        self,
        asks: Sequence[Question],
        interval: float | None,
        population: str | None,
        data: Table | None,
        replicates: int | None,
        draws: int,
        seed: int,
    ) -> Iterator[tuple[StructuralModel, Units]]:
        """Yields the fit, and each replicate where an interval is asked for, with their units."""
        self._refuse_level(interval, replicates)
        population, _ = self._population(asks[0], population, data)
        few = self.settings_.replicates
        if population == "rows":
            rows = self._rows(data, draws, seed)
            moved = asks[0].moved
            yield self.model_, rows.units(self.model_, moved)
            source, others = self._replicates(interval, data, replicates, whole=True)
            size = rows.completed.shape[1]
            parts = () if source is None else (source, source.line or ())
            weights = [w for part in parts for w in bootstrap_weights(len(part), size, self.seed)]
            same = torch.ones(size, dtype=torch.float64)
            weights += [same] * (len(others) - len(weights))
            rows = rows.first(few.row_completions)
            for asked, weight in zip(others, weights, strict=True):
                yield asked.model, rows.units(asked.model, moved, weight)
            return
        noise = self._units(draws, seed)
        nodes = frozenset[int]().union(*(ask.needed(draws) for ask in asks))
        yield self.model_, Units(noise, self._cache.fit.natural(noise, nodes))
        own, others = noise[: few.units], self._replicates(interval, data, replicates)[1]
        for asked in others:
            yield asked.model, Units(own, asked.natural(own, nodes))

    def _population(self, ask: Question, asked: str | None, data: Table | None) -> tuple[str, str]:
        """Returns who is averaged over, and why these where nobody said so.

        Units of the model are as good as its law of the covariates. Where that is not trusted, the
        rows themselves are the safer ones, if they are at hand.
        """
        if asked is not None:
            if asked not in ("rows", "model"):
                raise InputError(f"population is 'rows' or 'model'; got {asked!r}.")
            return asked, ""
        if self.graph_.blocks:
            return "rows", "the graph has a block, whose law then hardly matters"
        why = self._doubted_covariates(ask)
        if not why or data is not None or self._has_rows:
            return ("rows", why) if why else ("model", "")
        safer = "so an average over the rows themselves is safer; give the table of the fit for it"
        return "model", f"{why}, {safer}"

    def _doubted_covariates(self, ask: Question) -> str:
        """Says what speaks against the law of the columns that interventions do not move."""
        graph, outcome = self.graph_, self.graph_.nodes[ask.node]
        held = list(dict.fromkeys(name for arm in ask.interventions for name in arm))
        denied = [
            f"{line.node} ⟂ {line.other}"
            for line in self._leaned_on(outcome, held, "model")
            if graph.index(line.node) not in ask.moved
        ]
        if denied:
            more = f" and {len(denied) - 1} more" if len(denied) > 1 else ""
            return f"the rows deny {denied[0]}{more} among the covariates"
        between = graph.ancestral_closure([ask.node]) - ask.moved
        rough = [name for name in self.rough_ if held and graph.index(name) in between]
        return f"the law of {rough[0]} does not follow the rows" if rough else ""

    def _rows(self, data: Table | None, draws: int, seed: int) -> RowPopulation:
        """Returns the rows of the table, completed so often that they are about so many units."""
        if data is None and self._table is None:
            if self._cache.kept_rows is None:
                raise InputError(
                    "an average over the rows needs the table of the fit, which a saved model "
                    "leaves behind; pass it as data=, or ask for population='model'."
                )
            (values, observed), digest = self._cache.kept_rows, self._digest
        else:
            table = self._table_of_fit(data)
            values, observed, digest = table.values, table.observed, table.digest
        times = max(2, draws // len(values))
        key, kept = f"{times} {seed} {digest}", self._cache.rows
        if kept is None or kept[0] != key:
            effort = self.settings_.integration.completions
            given = (self.model_, values, observed, times, effort, seed)
            kept = self._cache.rows = (key, RowPopulation.of(*given))
        return kept[1]

    @property
    def _has_rows(self) -> bool:
        """Whether the rows of the fit are at hand: in memory, or saved with its replicates."""
        return self._table is not None or self._cache.kept_rows is not None

    def _answers_without_table(self, population: str) -> bool:
        """Whether an answer with the table that was given is what comes without any.

        It is, if that was the table of the fit, and the rows, where they were averaged over, are
        saved with the replicates.
        """
        given = self._table is not None and self._table.digest == self._digest
        return given and (population == "model" or self._cache.kept_rows is not None)

    @property
    def _rows_matter(self) -> bool:
        """Whether effects are averaged over the rows of the fit where nothing else is said.

        Such rows are saved with the replicates: an interval that asks for no table would be about
        other people otherwise.
        """
        return bool(self.graph_.blocks or self.denied_ or self.rough_)

    def _replicates(
        self,
        interval: float | None,
        data: Table | None,
        count: int | None,
        *,
        whole: bool = False,
    ) -> tuple[Replicates | None, list[Asked]]:
        """Returns replicates of the fit, made once for each table and number; none unasked.

        Those of its line, where it has networks, follow among the models that are asked, and the
        fit itself with its rivals, where it has some. Averages over the rows need the whole table,
        whose rows have the weights of the replicates; of very many, some are enough otherwise.
        """
        if interval is None:
            return None, []
        kept = self._cache.replicates
        if data is None and self._table is None and f"{count} {self._digest}" in kept:
            return kept[f"{count} {self._digest}"]  # as they were saved with the model
        table = self._table_of_fit(data)
        key = f"{count} {table.digest}"
        if whole and not self._rows_matter and self._is_large(table):
            key += " whole"  # not what is saved, and what other questions have answers from
        with self._cache.replicating:
            if key in kept:
                return kept[key]
            if table.digest != self._digest is not None:
                logger.warning(
                    "The table is not the one that the model was fitted to, or was read otherwise "
                    "(--na, --dates): the interval is that of a fit to this one."
                )
            with ProgressBar("replicates", show=self.progress) as watch:
                found = replicate_fit(
                    copy.deepcopy(self.model_),  # whose parameters are exchanged on the way
                    Structure.of(self.graph_, self.schema_.domains, self.model_.keys),
                    MemoryRows(table.values, table.observed),
                    self.settings_,
                    seed=self.seed,
                    count=count,
                    watch=watch,
                    rivals=self._rivals(),
                    stands_for=self._stands_for,
                    whole=whole or self._rows_matter,
                )
                found = replace(found, without=self._without(table))
            self._keep(key, found)
            if not key.endswith("whole"):
                self._cache.unsaved = key
        return kept[key]

    def _is_large(self, table: IncompleteTable) -> bool:
        """Whether some rows of a table may stand for all of them."""
        return len(table) > self.settings_.replicates.most_rows

    @property
    def _replicated(self) -> bool:
        """Whether an interval asks for no table, since it is there or was replicated."""
        return self._table is not None or f"None {self._digest}" in self._cache.replicates

    def _keep(self, key: str, found: Replicates) -> None:
        """Keeps replicates for further questions."""
        models = [*found, *(found.line or ())]
        if found.rivals or found.without:
            models += [self.model_, *(rival.model for rival in found.rivals)]
            models += [one.model for one in found.without]
        most = KEPT_OF_REPLICATES // len(models)
        self._cache.replicates[key] = found, [Asked(model, most) for model in models]

    def _rivals(self) -> dict[int, Rival]:
        """Returns the forms that blocks might have had, by block."""
        block_of, graph = self.model_.block_of, self.graph_
        return {block_of[graph.index(name)]: rival for name, rival in self.rivals_.items()}

    def _without(self, table: IncompleteTable) -> tuple[Without, ...]:
        """Returns the fit without each value that no law makes likely, where it can be solved."""
        model = self.model_
        if not all(model.block(b).solvable for b in range(len(model.blocks))):
            return ()
        if self._stands_for is not None:  # without a value of the sample, it is in all rows still
            return ()
        found = []
        for one in self.unlikely_:
            observed, node = table.observed.clone(), self.graph_.index(one.column)
            observed[torch.from_numpy(table.raw[:, node] == one.value), node] = False
            rows = MemoryRows(torch.where(observed, table.values, 0.0), observed)
            given = (model, rows, self.settings_, self.seed, one.place, one.column)
            found.append(solve_without(*given))
        return tuple(found)

    def _refuse_level(self, interval: float | None, count: int | None) -> None:
        """Refuses an interval that cannot be, before anything is worked out."""
        if interval is None:
            return
        if not isinstance(interval, int | float) or not 0.0 < interval < 1.0:
            raise InputError(f"interval is a level between 0 and 1, such as 0.95; got {interval}.")
        if count is not None:
            check_count("replicates", count, least=self.settings_.replicates.fewest)

    def _table_of_fit(self, data: Table | None) -> IncompleteTable:
        """Returns the table of the fit; one that is given is remembered if it is that table."""
        if data is not None:
            table = self._read_again(data)
            if self._table is None and self._digest in (None, table.digest):
                self._table = replace(table, outside=())
            return table
        if self._table is None:
            raise InputError(
                "an interval needs the table of the fit, which a saved model leaves behind; pass "
                "it as data=."
            )
        return self._table

    def _read_again(self, data: Table, *, counted: bool = False) -> IncompleteTable:
        """Reads the table of the fit; of one on disk the rows by chance that the fit kept of it.

        Arguments:
            data: The table; a file is read from disk if the fit did so.
            counted: Whether to count what all its rows show together.
        """
        named = isinstance(data, str | os.PathLike)
        if isinstance(data, pd.DataFrame | IncompleteTable) or (named and not self._drawn_from):
            return self._read(data)
        key, kept = str(data) if named else str(id(data)), self._cache.sampled
        if kept is not None and kept[0] == key and (kept[1].all_rows is not None or not counted):
            return kept[1]
        from misscnf.data.streams import open_stream  # with pyarrow, which few tables need

        stream = open_stream(data, 1, 1)
        if stream is None:  # a form of file that is read whole
            return self._read(data)
        rules, schema = self.settings_.streaming, self.schema_
        table = self._read(stream.sample(rules.sample_rows, self.seed))
        if counted and len(stream) > len(table):
            latent = [schema.nodes[j] for j in schema.latent]
            table = replace(table, all_rows=stream.count_patterns(schema.nodes, latent))
        self._cache.sampled = key, table
        return table

    def _no_way(self, ask: Question) -> tuple[str, ...]:
        """Returns a note where nothing that is held leads to the outcome: the graph answers."""
        held = list(dict.fromkeys(name for arm in ask.interventions for name in arm))
        if not held or ask.node in ask.moved:
            return ()
        outcome = self.graph_.nodes[ask.node]
        return (
            f"the graph has no way from {listed(held)} to {outcome}: there is no effect by "
            f"construction, and the rows were not asked",
        )

    def _rough_notes(self, ask: Question) -> tuple[str, ...]:
        """Returns which mechanisms between arms and outcome do not follow their parents."""
        between = ask.moved & self.graph_.ancestral_closure([ask.node])
        return tuple(
            rough_sentence(name, found)
            for name, found in self.rough_.items()
            if self.graph_.index(name) in between
        )

    def _weak_losses(self, ask: Question) -> tuple[str, ...]:
        """Returns which losses between arms and outcome the rows hardly tell from the values."""
        if not self.graph_.own_losses:
            return ()
        between = ask.moved & self.graph_.ancestral_closure([ask.node])
        kept = [found for found, _ in self._cache.replicates.values() if found.doubt is None]
        others = [model for found in kept[:1] for model in found]
        rules = self.settings_.replicates
        about = (self.schema_.columns, rules, self.loss_evidence_, self.loss_starts_)
        slopes = loss_slopes(self.model_, others, *about)
        slopes = slopes[[self.graph_.index(str(name)) in between for name in slopes["column"]]]
        doubts = tuple(doubt[0].lower() + doubt[1:] for doubt in slopes["doubt"] if doubt)
        return doubts + tuple(
            f"the rows hardly tell how {line.column} drives its own loss (odds times "
            f"{line.lower:.2g} to {line.upper:.2g} a standard deviation): the answer leans on the "
            f"shape of the laws; look at how sensitive it is to that slope."
            for line in weak_losses(slopes, rules).itertuples()
        )

    def _warn_beyond(self, *arms: Do | None) -> tuple[str, ...]:
        """Logs and returns what is to be known about interventions beyond what was seen."""
        sentences = tuple(line for arm in arms for line in beyond_seen(arm, self.schema_))
        hidden = [name for arm in arms for name in arm or () if name in self.graph_.latent]
        sentences += tuple(
            f"nobody measures {name}, so that {_unit(self.graph_.latent[name])}."
            for name in dict.fromkeys(hidden)
        )
        for sentence in sentences:
            logger.warning("%s", sentence)
        return sentences

    def _denied(self, outcome: str, do: Do, population: str) -> tuple[str, ...]:
        """Returns a note on independences that an effect leans on and the rows deny."""
        found = self._leaned_on(outcome, list(do), population)
        return (denied_sentence(found),) if found else ()

    def _leaned_on(
        self, outcome: str, held: Sequence[str], population: str
    ) -> list[Contradiction]:
        """Returns the independences that effects on an outcome lean on and the rows deny."""
        schema, rows = self.schema_, population == "rows"
        kept = zip(schema.nodes, schema.notes, strict=False)
        holed = {name for name, note in kept if note.holes or note.after}
        effects = [(treatment, outcome) for treatment in held]
        found = dict.fromkeys(
            line
            for effect in effects
            for line in leaned_on(self.graph_, effect, self.denied_, holed=holed, rows=rows)
        )
        return list(found)

    def _notes_on_hidden(
        self, ask: Question, do: Do, by: str | Sequence[Part] | None = None
    ) -> tuple[str, ...]:
        """Returns a note where hidden causes leave an effect to the shape of the model."""
        decided, nodes = ask.group.decided_by, self.graph_.nodes
        given = None if decided is None else {nodes[i] for i in decided}
        if given is not None and by is not None:
            given |= {by} if isinstance(by, str) else {part.column for part in by}
        return self._unidentified(list(do), nodes[ask.node], given)

    def _unidentified(
        self, treatments: Sequence[str], outcome: str, given: Collection[str] | None = ()
    ) -> tuple[str, ...]:
        domains = zip(self.graph_.nodes, self.schema_.domains, strict=True)
        states = {name: domain.states for name, domain in domains if domain.discrete}
        note = hidden_note(self.graph_, treatments, outcome, given, states)
        return () if note is None else (note,)

    def _graph(self) -> CausalGraph:
        """Returns the graph; refuses a model that is not fitted."""
        if getattr(self, "model_", None) is None:
            from sklearn.exceptions import NotFittedError  # slow to import, rarely raised

            raise NotFittedError("this MissCNF is not fitted yet; call fit(df) first.")
        return self.graph_

    def _unlikely(self, ask: Question, known: Collection[str]) -> tuple[str, ...]:
        """Returns a note where the answer may rest on values that no law makes likely.

        Those that are known left out, by their cells, are judged by what the answer is then.
        """
        graph = self.graph_
        rests = [
            one.place
            for one in self.unlikely_
            if one.place not in known and ask.node in graph.descendants([graph.index(one.column)])
        ]
        if not rests:
            return ()
        told = "the answer may hang on a value that no law of its column makes likely"
        return (f"{told}: {'; '.join(rests)}. Make it a hole, fit again and compare.",)

    def _heavy(self, ask: Question) -> tuple[str, ...]:
        """Returns a note where the outcome's mean, which is asked for, is that of a few units."""
        graph, least = self.graph_, self.settings_.replicates.least_tail_index
        moved = [i for i in ask.moved if ask.node in graph.descendants([i])]
        heavy = {graph.nodes[i]: self.model_.mechanism(i).tail_index for i in moved}
        heavy = {name: index for name, index in heavy.items() if index < least}
        if not heavy or not ask.statistic.is_mean:
            return ()
        told = " and ".join(f"{name} (tail index {index:.1f})" for name, index in heavy.items())
        return (
            f"the tails of {told} are so heavy that a mean does not exist in any useful sense; "
            f"ask for statistic='median' or 'trimmed'.",
        )

    def _question(
        self,
        outcome: str,
        arms: Sequence[Do],
        where: Where | None,
        taken: Do | None,
        event: object,
        seed: int,
        statistic: str | float = "mean",
        kind: type[Question] = Question,
    ) -> Question:
        graph = self._graph()  # refuses a model that is not fitted
        fewest = self.settings_.replicates.fewest_in_group
        asked = (event, seed, fewest, read_statistic(statistic))
        return kind(graph, self.schema_, outcome, arms, where, taken, *asked)

    def _unrolled(self, outcome: str, do: Do, versus: Do | None) -> tuple[str, Do, Do | None]:
        """Returns a question by node: over time, an outcome at its end and regimes by visit."""
        panel = self.panel_
        self._graph()  # refuses a model that is not fitted
        if panel is None:
            return outcome, do, versus
        if outcome in panel.events:
            raise InputError(
                f"{outcome!r} is an event, whose risk grows with time; ask for risk({outcome!r}, "
                f"do=…, versus=…)."
            )
        arms = at_all_visits(do, panel), None if versus is None else at_all_visits(versus, panel)
        return at_last_visit(outcome, panel), *arms

    def _after_events(self, outcome: str) -> tuple[str, ...]:
        """Returns a note where an outcome is one of people who may not be there any more."""
        panel = self.panel_
        if panel is None or not panel.events or outcome in panel.template.baseline:
            return ()
        events = ", ".join(panel.events)
        return (f"{outcome} is what it would be if nobody had had {events} before.",)

    def _refuse_panel(self, verb: str, instead: str = "") -> None:
        """Refuses a question that is not there yet for tables over time."""
        if self.panel_ is not None:
            hint = instead or "ask for an effect, or for a risk"
            raise InputError(f"{verb} is not there yet for tables over time; {hint}.")

    def _named(self, df: Table) -> Table:
        """Returns rows with the names of their columns; the class that mixes it in knows them."""
        return df

    def _read(self, df: Table, *, keep_impossible: bool = False) -> IncompleteTable:
        """Reads rows by the fitted schema; columns may be left out."""
        return IncompleteTable.read(
            self._named(df),
            self._graph().nodes,
            self.schema_,
            unseen=self.unseen,
            keep_impossible=keep_impossible,
            require_all=False,
        )

    def _units(self, draws: int, seed: int) -> Tensor:
        """Returns the noise of so many units: few are the first of those that replicates see."""
        return self._noise(max(draws, self.settings_.replicates.units), seed, "effect")[:draws]

    def _noise(self, rows: int, seed: int, purpose: str) -> Tensor:
        shape, generator = (rows, self.model_.noise_width), derive_generator(seed, purpose)
        return torch.randn(shape, generator=generator, dtype=torch.float64)


def told_by_replicates(source: Replicates, answers: list[Answer]) -> Replicated[Answer]:
    """Tells the answers of replicates from those of the line's and of rivals."""
    count = len(source), len(source.line or ())
    lines, others = answers[count[0] : sum(count)], answers[sum(count) :]
    own, forms = others[:1], others[1 : 1 + len(source.rivals)]
    forms = [*own, *forms] if forms else []
    without = [*own, *others[1 + len(source.rivals) :]] if source.without else []
    return Replicated(source, answers[: count[0]], lines, forms, without)


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuses what is not a whole number of at least so many."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} is a whole number of at least {least}; got {value!r}.")
    if value >= 2**63:
        raise InputError(f"{name} is more than any memory holds; ask for fewer.")


def _unit(classes: int | None) -> str:
    """Says what the values of a hidden cause mean."""
    if classes is None:
        return (
            "its values are in the model's own unit: 0 is its middle, and its noise has a "
            "standard deviation of one"
        )
    first = "as a rule in the order of its first child"
    return f"its classes 1 to {classes} are the model's own, {first}"
