r"""One outcome in several arms: each unit is swept once in each, with the same noise in all.

Of a unit, only what the interventions lead to and the outcome needs is swept again; the rest is
what it is without intervention. Of an outcome with levels, a unit has the probability of each,
given its parents in the arm: that is the average over the noise of the outcome, so that a risk of
one in a million needs no million units.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.codecs import Levels
from misscnf.data.table import Schema
from misscnf.graph import CausalGraph
from misscnf.model import Policy, StructuralModel
from misscnf.model.policies import Hold, needed_for
from misscnf.queries.effects import Effect, contrast, event_code
from misscnf.queries.groups import Group, Part, Where, may_differ
from misscnf.queries.interventions import Do, is_rule, read_policies
from misscnf.queries.statistics import Statistic
from misscnf.queries.units import Units

__all__ = ["Question"]

NUMBERS_AT_ONCE = 2**22
"""Of the units of arms that are swept together, 32 MB: caches and memory hold them."""


class Question:
    """One outcome under several arms, within a group; asked of the fit and of its replicates.

    The units of the group take by themselves what is `taken`, `event` is the level whose risk is
    compared, all arms draw from the same `seed`, and groups with units below `fewest` get a note.
    """

    def __init__(
        self,
        graph: CausalGraph,
        schema: Schema,
        outcome: str,
        arms: Sequence[Do],
        where: Where | None,
        taken: Do | None,
        event: object,
        seed: int,
        fewest: int,
        statistic: Statistic,
    ) -> None:
        self.graph, self.schema, self.fewest = graph, schema, fewest
        self.interventions, self.event, self.seed = arms, event, seed
        self.statistic = statistic
        self._read: tuple[tuple[int, int], list[dict[int, Policy]]] | None = None
        self.node, self.group = graph.index(outcome), Group(graph, schema, where, taken)
        for name in (name for arm in arms for name in arm):
            graph.refuse_intervention(name)
            graph.refuse_outcome(outcome)
        self.moved = graph.descendants(graph.index(name) for arm in arms for name in arm)
        """The nodes that some arm leads to."""

    def lost_words(self, arm: str | None) -> str:
        """Says what of the outcome is lost, in one arm or in all."""
        column = self.schema.columns[self.node]
        what = {"count": "the rate of lost values"}.get(column.domain.kind, "lost values")
        if isinstance(column, Levels):
            level = column.levels[event_code(column, self.event)]
            return f"the odds of {column.name} = {level} if lost" + (f", {arm}" if arm else "")
        return f"{what} of {column.name}" + (f" under {arm}" if arm else "")

    @property
    def asked(self) -> tuple[int, ...]:
        """The nodes that are looked at in each arm."""
        return (self.node,)

    def needed(self, units: int) -> frozenset[int]:
        """Returns the nodes whose natural values so many units need to answer, and their causes.

        Those that an arm moves are swept anew from the noise of the units, so that what they would
        have been is only asked for where it decides who is in the group.
        """
        decided = self.group.decided_by
        if decided is None:  # by a function, which may read any
            return frozenset(range(len(self.graph)))
        found = set(decided)
        for arm in self.interventions:
            fitted = _fitted(arm, Units.alike(units))
            policies = read_policies(fitted, self.graph, self.schema, units, self.seed)
            asked = needed_for(self.graph, policies, [*self.asked, *self.group.taken])
            found |= asked - self.graph.descendants(policies)
        return self.graph.ancestral_closure(found)

    @torch.no_grad()
    def arms(self, model: StructuralModel, units: Units) -> tuple[list[np.ndarray], Units]:
        """Returns the outcome of the units of the group in each arm, and these.

        It is (n,) each, or (n, levels) where a unit has the probability of each level.
        """
        policies, units = self._in_group(model, units)
        found = list[np.ndarray]()
        for arms, held in _swept_together(policies, units):
            values = self._swept(model, units, held, self.asked, arms)
            averaged = self._is_averaged(units) and self.node not in held
            own = self._chances(model, values) if averaged else values[..., self.node]
            found += list(own.numpy()) if arms else [own.numpy()]
        return found, units

    def _policies(self, units: Units) -> list[dict[int, Policy]]:
        """Returns the policies of each arm; replicates, with as many units each, share them."""
        size, kept = (len(units), units.draws), self._read
        if kept is None or kept[0] != size:
            about = (self.graph, self.schema, len(units), self.seed)
            arms = [read_policies(_fitted(arm, units), *about) for arm in self.interventions]
            kept = self._read = (size, arms)
        return kept[1]

    def _in_group(
        self, model: StructuralModel, units: Units
    ) -> tuple[list[dict[int, Policy]], Units]:
        """Returns the policies of each arm for the units of the group, and these."""
        policies = self._policies(units)
        if self.group.words is None:
            return policies, units
        assigned = self._swept(model, units, policies[0], self.group.taken)
        keep = self.group.members(units.natural, assigned)
        own = [{node: policy.of_rows(keep) for node, policy in arm.items()} for arm in policies]
        return own, units.select(keep)

    def among(self, model: StructuralModel, units: Units) -> Units:
        """Returns those units that are in the group."""
        return self._in_group(model, units)[1]

    def _is_averaged(self, units: Units) -> bool:
        """Says whether risks are asked for, of units whose noise of the outcome can be any."""
        decided = self.group.decided_by
        if units.draw is not None or decided is None:
            return False
        return self.of_risks and not self.graph.descendants([self.node]) & decided

    @property
    def of_risks(self) -> bool:
        """Whether probabilities of levels are compared, and not their numbers."""
        column = self.schema.columns[self.node]
        if not isinstance(column, Levels):
            return False
        text = any(isinstance(level, str) for level in column.levels)
        return column.kind != "ordinal" or self.event is not None or text

    def _chances(self, model: StructuralModel, values: Tensor) -> Tensor:
        """Returns the probability of each level of the outcome, (..., levels)."""
        parents, mechanism = model.parents_of(values, self.node), model.mechanism(self.node)
        column = self.schema.columns[self.node]
        assert isinstance(column, Levels)
        levels = [torch.full_like(values[..., 0], code) for code in range(len(column.levels))]
        return torch.stack([mechanism.log_prob(level, parents) for level in levels], -1).exp()

    def _swept(
        self,
        model: StructuralModel,
        units: Units,
        policies: dict[int, Policy],
        nodes: Sequence[int],
        arms: tuple[int, ...] = (),
    ) -> Tensor:
        """Returns the units with some nodes, and what these need, as they are under policies.

        It is (n, d), or (A, n, d) where the policies are those of A arms.
        """
        touched = self.graph.descendants(policies) & needed_for(self.graph, policies, nodes)
        natural, noise = (x.expand(*arms, *x.shape) for x in (units.natural, units.noise))
        return model.complete(natural, sorted(touched), noise, policies)

    def effect(self, model: StructuralModel, units: Units, do: Do, versus: Do | None) -> Effect:
        """Compares two arms."""
        arms, units = self.arms(model, units)
        return self._contrast(arms, units, do, versus)

    def _contrast(
        self, arms: Sequence[np.ndarray], units: Units, do: Do, versus: Do | None
    ) -> Effect:
        first, second = arms
        words, column = self.group.words, self.schema.columns[self.node]
        who, there = ("rows", "units")[units.draw is None], len(first) // units.draws
        few = there < self.fewest and words is not None
        notes = (f"only {there} {who} are in the group ({words}).",) if few else ()
        both = (first, second)
        asked = (self.event, notes, words, units, self.statistic)
        return contrast(column, do, versus or {}, both, *asked)

    def within(self, part: Part) -> Question:
        """Returns the same question within a part of the group."""
        found = copy.copy(self)
        found.group = self.group.within(part)
        return found

    def with_groups_known(self, effect: Effect, model: StructuralModel) -> Effect:
        """Returns an answer that says where the model cannot tell groups apart."""
        held = {name: value for arm in self.interventions for name, value in arm.items()}
        names, nodes = self.graph.nodes, [self.graph.index(name) for name in held]
        columns = [self.schema.columns[node] for node in nodes]
        rules = any(map(is_rule, held.values(), columns))
        reads = {self.graph.index(name) for name in self.group.reads if name in names}
        beside = [names[node] for node in sorted(reads.difference(nodes))]
        if any(self.graph.parents[node] for node in self.group.taken):
            reads, beside = reads.union(self.group.taken), [*beside, "its causes"]
        if rules or not held or not reads or may_differ(model, nodes, self.node, reads):
            return effect
        outcome = self.schema.columns[self.node]
        scale = " on the scale of its line" if outcome.domain.discrete else ""
        note = (
            f"equal by construction{scale}: the model has no interaction of {', '.join(held)} "
            f"with {', '.join(beside) or 'what goes with it'} on {outcome.name}; the rows were "
            f"not asked whether groups differ."
        )
        equal = not outcome.domain.discrete
        return replace(effect, notes=(*effect.notes, note), equal_groups=equal)

    def curve(
        self, model: StructuralModel, units: Units, doses: Sequence[Do], versus: Do | None
    ) -> pd.DataFrame:
        """Returns the mean at each dose, and its contrast with the first arm."""
        (against, *arms), units = self.arms(model, units)
        effects = [
            self._contrast((arm, against), units, dose, versus)
            for arm, dose in zip(arms, doses, strict=True)
        ]
        if effects[0].estimate is not None:
            pairs = [(effect.mean, effect.estimate) for effect in effects]
            found = pd.DataFrame(pairs, columns=["mean", "estimate"])
        else:
            tables = [one.probabilities for one in effects if one.probabilities is not None]
            levels = pd.concat(tables, ignore_index=True)[["level", "do", "difference"]]
            found = levels.set_axis(["level", "mean", "estimate"], axis=1)
        found.attrs["measure"] = effects[0].measure
        found.attrs["statistic"] = effects[0].statistic if effects[0].event is None else "risk"
        return found


def _swept_together(
    policies: Sequence[dict[int, Policy]], units: Units
) -> Iterator[tuple[tuple[int, ...], dict[int, Policy]]]:
    """Yields the policies of arms that one sweep serves, with how many these are.

    Arms that hold the same nodes are swept as one: a sweep of few units is mostly the calls of
    their mechanisms. Any other arm is swept by itself.
    """
    most = max(1, NUMBERS_AT_ONCE // max(1, units.natural.numel()))
    for held, alike in itertools.groupby(policies, _held):
        arms = list(alike)
        size = 1 if held is None else most
        for part in (arms[first : first + size] for first in range(0, len(arms), size)):
            if len(part) == 1:
                yield (), part[0]
            else:
                yield (len(part),), {node: _stacked(part, node, len(units)) for node in part[0]}


def _stacked(arms: Sequence[dict[int, Policy]], node: int, units: int) -> Hold:
    """Returns what some arms hold a node at, (A, n)."""
    holds = [arm[node] for arm in arms]
    return Hold(
        torch.stack([hold.value.expand(units) for hold in holds if isinstance(hold, Hold)])
    )


def _held(arm: dict[int, Policy]) -> frozenset[int] | None:
    """Returns the nodes that an arm holds at values, None where it does more."""
    return frozenset(arm) if all(isinstance(policy, Hold) for policy in arm.values()) else None


def _fitted(arm: Do, units: Units) -> Do:
    """Returns an arm with as many values of each array as there are units."""
    rows = len(units) // units.draws
    long = {}
    for name, value in arm.items():
        if hasattr(value, "__len__") and not isinstance(value, str):
            if len(value) > rows:
                long[name] = value[:rows]
            if len(value) >= rows and units.draws > 1:  # one a row: the same in each completion
                long[name] = np.tile(np.asarray(value)[:rows], units.draws)
    return {**arm, **long}
