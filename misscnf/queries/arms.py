r"""One outcome in several arms: each unit is swept once in each, with the same noise in all.

Of a unit, only what the interventions lead to and the outcome needs is swept again; the rest is
what it is without intervention.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from torch import Tensor

from misscnf.data.table import Schema
from misscnf.graph import CausalGraph
from misscnf.model import Policy, StructuralModel
from misscnf.model.policies import needed_for
from misscnf.queries.effects import Effect, contrast
from misscnf.queries.groups import Group, Where
from misscnf.queries.interventions import Do, read_policies

__all__ = ["Question"]


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
    ) -> None:
        self.graph, self.schema, self.fewest = graph, schema, fewest
        self.interventions, self.event, self.seed = arms, event, seed
        self.node, self.group = graph.index(outcome), Group(graph, schema, where, taken)

    def arms(self, model: StructuralModel, noise: Tensor, natural: Tensor) -> list[np.ndarray]:
        """Returns the outcome of the units of the group in each arm, (units,) each."""
        rows = len(noise)
        policies = [
            read_policies(_cut(arm, rows), self.graph, self.schema, rows, self.seed)
            for arm in self.interventions
        ]
        if self.group.words is not None:
            assigned = self._swept(model, natural, noise, policies[0], self.group.taken)
            keep = self.group.members(natural, assigned)
            natural, noise = natural[keep], noise[keep]
            policies = [
                {node: policy.of_rows(keep) for node, policy in arm.items()} for arm in policies
            ]
        return [
            self._swept(model, natural, noise, arm, [self.node])[:, self.node].numpy()
            for arm in policies
        ]

    def _swept(
        self,
        model: StructuralModel,
        natural: Tensor,
        noise: Tensor,
        policies: dict[int, Policy],
        nodes: Sequence[int],
    ) -> Tensor:
        """Returns the units with some nodes, and what these need, as they are under policies."""
        touched = self.graph.descendants(policies) & needed_for(self.graph, policies, nodes)
        return model.complete(natural, sorted(touched), noise, policies)

    def contrast(self, arms: Sequence[np.ndarray], do: Do, versus: Do | None) -> Effect:
        """Compares two arms."""
        first, second = arms
        words, column = self.group.words, self.schema.columns[self.node]
        few = len(first) < self.fewest and words is not None
        notes = (f"only {len(first)} units are in the group ({words}).",) if few else ()
        return contrast(column, do, versus or {}, (first, second), self.event, notes, words)

    def curve(
        self,
        model: StructuralModel,
        noise: Tensor,
        natural: Tensor,
        doses: Sequence[Do],
        versus: Do | None,
    ) -> pd.DataFrame:
        """Returns the mean at each dose, and its contrast with the first arm."""
        against, *arms = self.arms(model, noise, natural)
        effects = [
            self.contrast((arm, against), dose, versus)
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
        return found


def _cut(arm: Do, rows: int) -> Do:
    """Returns an arm with as many values of each array as there are units."""
    long = {
        name: value[:rows]
        for name, value in arm.items()
        if hasattr(value, "__len__") and not isinstance(value, str) and len(value) > rows
    }
    return {**arm, **long}
