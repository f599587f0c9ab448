r"""An outcome whose lost values are worse, or better, than the model says.

With M whether a unit's outcome is lost, its law in an arm is a mixture of two patterns,

    Y* = Y            where it is shown,
    Y* = g_a(Y)       where it is lost,      E[Y*; do(a)] = E[Y; do(a)] + E[(g_a(Y) − Y) M; do(a)],

a pattern-mixture model (Little 1993), g_a being what somebody asks about an arm a:

| outcome | lost values |
|---|---|
| numbers | a shift δ is added; a ratio multiplies them |
| counts | a ratio multiplies their rate |
| levels | a ratio multiplies the odds of the event |

Of a mean, δ adds δ · P(M = 1; do(a)): a straight line whose slope is the share lost in the arm, as
the covariates of the population make it. P(M = 1 | …) is the law of the indicator `missing(y)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from misscnf.data.codecs import Continuous, Levels
from misscnf.data.scales import Unit
from misscnf.errors import InputError
from misscnf.graph.indicators import indicator_of
from misscnf.model import Policy, StructuralModel
from misscnf.queries.arms import Question
from misscnf.queries.effects import Effect, contrast, event_code
from misscnf.queries.interventions import Do
from misscnf.queries.units import Units

__all__ = ["Shift", "ShiftedQuestion"]


@dataclass(frozen=True)
class Shift:
    """What is done to lost values of one arm."""

    add: float = 0.0
    times: float = 1.0

    def of_numbers(self, values: np.ndarray, lost: np.ndarray) -> np.ndarray:
        """Returns numbers (n,) of which a share `lost` (n,) is shifted, on average."""
        return values + lost * (values * (self.times - 1.0) + self.add)

    def of_chances(self, shown: np.ndarray, lost: np.ndarray, event: int) -> np.ndarray:
        """Returns the chances of levels, (n, levels), with other odds of the event if lost.

        Arguments:
            shown: (n, levels) the probability of each level together with being shown.
            lost: The same with being lost.
            event: The code of the level whose odds are multiplied.
        """
        together = lost.sum(1, keepdims=True)
        chance = lost[:, [event]] / np.maximum(together, 1e-300)
        raised = self.times * chance / (1.0 + (self.times - 1.0) * chance)
        others = (1.0 - raised) / np.maximum(1.0 - chance, 1e-300)
        moved = lost * others
        moved[:, [event]] = raised * together
        return shown + moved


class _Swept(NamedTuple):
    """An outcome in one arm."""

    values: np.ndarray
    """(n,) in the user's units; (n, levels) the chances of levels together with being shown"""
    lost: np.ndarray
    """(n,) how likely it is lost; (n, levels) chances of levels together with being lost"""


class ShiftedQuestion(Question):
    """A question whose outcome has an indicator of loss, asked at many shifts at once."""

    def refuse_unshiftable(self, what: str) -> None:
        """Refuses a shift, or a ratio, that the outcome cannot have."""
        column = self.schema.columns[self.node]
        levels, counts = isinstance(column, Levels), column.domain.kind == "count"
        if what == "shift" and (levels or counts):
            told = "has levels, whose odds are" if levels else "is a count, whose rate is"
            raise InputError(f"{column.name!r} {told} multiplied; ask for ratio= instead.")
        if isinstance(column, Levels) and self.event is None and column.kind != "binary":
            raise InputError(
                f"{column.name!r} has several levels; name the event whose odds are multiplied, "
                f"such as event={column.levels[-1]!r}."
            )
        if counts and not self.statistic.is_mean:
            raise InputError(
                f"{column.name!r} is a count, whose rate is multiplied; ask for its mean.",
                about="statistic",
            )

    @property
    def indicator(self) -> int:
        """The node that says whether the outcome is lost."""
        return self.graph.index(indicator_of(self.graph.nodes[self.node]))

    @property
    def asked(self) -> tuple[int, ...]:
        """The outcome, and whether it is lost."""
        return self.node, self.indicator

    @torch.no_grad()
    def effects(
        self,
        model: StructuralModel,
        units: Units,
        do: Do,
        versus: Do | None,
        shifts: Sequence[tuple[Shift, Shift]],
    ) -> list[Effect]:
        """Compares two arms at each pair of shifts; units are swept once."""
        policies, units = self._in_group(model, units)
        first, second = (self._outcome(model, units, arm) for arm in policies)
        return [
            self._compared(self._moved(first, one), self._moved(second, two), units, do, versus)
            for one, two in shifts
        ]

    def _outcome(
        self, model: StructuralModel, units: Units, policies: dict[int, Policy]
    ) -> _Swept:
        """Returns the outcome in an arm, and how likely it is lost there."""
        values = self._swept(model, units, policies, self.asked)
        column = self.schema.columns[self.node]
        if isinstance(column, Levels):
            chances = self._chances(model, values)
            codes = range(chances.shape[1])
            lost = torch.stack([self._lost(model, values, float(code)) for code in codes], 1)
            return _Swept((chances * (1.0 - lost)).numpy(), (chances * lost).numpy())
        own = column.decode(values[:, self.node].numpy())
        by_draw = not self.statistic.is_mean  # of a mean, chances of being lost are enough
        lost = values[:, self.indicator] if by_draw else self._lost(model, values)
        return _Swept(own, lost.numpy())

    def _lost(self, model: StructuralModel, values: Tensor, own: float | None = None) -> Tensor:
        """Returns how likely the outcome is lost, (n,), were it this level or as it is."""
        if own is not None:
            values = values.clone()
            values[:, self.node] = own
        parents, law = model.parents_of(values, self.indicator), model.mechanism(self.indicator)
        return law.log_prob(torch.ones_like(values[:, 0]), parents).exp()

    def _moved(self, arm: _Swept, by: Shift) -> np.ndarray:
        column = self.schema.columns[self.node]
        if isinstance(column, Levels):
            return by.of_chances(arm.values, arm.lost, event_code(column, self.event))
        return by.of_numbers(arm.values, arm.lost)

    def _compared(
        self, first: np.ndarray, second: np.ndarray, units: Units, do: Do, versus: Do | None
    ) -> Effect:
        column = self.schema.columns[self.node]
        if not isinstance(column, Levels):  # in the user's units already, and beyond its support
            column = Continuous(column.name, Unit())
        asked = (self.event, (), self.group.words, units, self.statistic)
        return contrast(column, do, versus or {}, (first, second), *asked)
