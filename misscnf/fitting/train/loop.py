r"""Training: mini-batches, a learning-rate schedule, averaged weights, checkpoints.

The weights of the last epoch are kept, where the schedule comes to rest, unless those of another
have a held-out likelihood that is clearly higher. The highest of many epochs on few rows is
mostly luck: chosen by it, networks end in the middle of their schedule and are worse.

Every random number is derived from (seed, purpose, epoch, step), so that a resumed fit draws what
an uninterrupted one would have drawn, and ends in the same bits.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch import Tensor

from misscnf.draws import derive_generator
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.settings import Settings
from misscnf.fitting.train.checkpoint import Checkpoint
from misscnf.fitting.train.objective import (
    StepReport,
    complete_family_gradient,
    fisher_gradient,
    pathwise_gradient,
)
from misscnf.fitting.train.schedule import Schedule, make_schedule, schedule_state
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Curve
from misscnf.model import StructuralModel

__all__ = ["Rows", "Trainer", "Watcher"]

SECONDS_BETWEEN_CHECKPOINTS = 1.0
FEWEST_SHOWN = 1000
"""A family that fewer rows show whole waits for the likelihood: a network bends to a few hundred
rows as it likes, and the likelihood does not bring it back."""
ERRORS_TO_BEAT = 3.0
"""The best of sixty epochs lies up to two standard errors above the last by luck alone."""


class Watcher(Protocol):
    """Someone who looks on while a fit runs, such as a progress bar."""

    def __call__(self, epoch: dict[str, Any], epochs: int) -> None:
        """Takes the record of an epoch."""


@dataclass(frozen=True)
class Rows:
    """Rows of a table with their plan."""

    values: Tensor
    """(N, d), finite numbers in the holes; column by column in memory, as nodes read them"""
    plan: Plan

    @staticmethod
    def of(model: StructuralModel, values: Tensor, observed: Tensor, *, joint: bool) -> Rows:
        """Plans rows on the device and in the precision of a model."""
        like = next(model.parameters())
        plan = Plan.make(model.graph, observed, joint=joint).to(like.device)
        filled = torch.where(observed, values, 0.0).to(like)
        return Rows(filled.T.contiguous().T, plan)

    def select(self, rows: Tensor) -> Rows:
        """Returns some of the rows."""
        return Rows(self.values.T[:, rows].T, self.plan.select(rows))

    def __len__(self) -> int:
        return len(self.values)


@dataclass
class _State:
    """All that changes while a fit runs."""

    epoch: int = 0
    step: int = 0
    best: float = -math.inf
    best_epoch: int = 0
    waited: int = 0
    history: list[dict[str, Any]] = field(default_factory=list)


def _well_covered(plan: Plan) -> frozenset[int]:
    """Returns the nodes whose family is shown whole by enough rows."""
    shown = torch.bincount(plan.free_factors()[0], minlength=len(plan.graph))
    return frozenset((shown >= FEWEST_SHOWN).nonzero().flatten().tolist())


def _hides_together(plan: Plan) -> bool:
    """Says whether some row hides several nodes in one component."""
    node = torch.arange(len(plan.graph), device=plan.label.device)
    return bool((plan.hidden & (plan.label != node)).any())  # labelled by a smaller node


class Trainer:
    """Fits the parameters of a model to incomplete rows.

    Arguments:
        model: The model; its parameters are changed in place.
        train: Rows to learn from.
        validation: Held-out rows, or None.
        settings: How to train.
        seed: Where randomness starts.
        checkpoint: Where to keep the state, or None.
    """

    def __init__(
        self,
        model: StructuralModel,
        train: Rows,
        validation: Rows | None,
        settings: Settings,
        seed: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.model, self.train, self.validation = model, train, validation
        self.settings, self.seed, self.checkpoint = settings, seed, checkpoint
        self.batch = settings.batch_for(len(train))
        self.steps_an_epoch = math.ceil(len(train) / self.batch)
        self.well_covered = _well_covered(train.plan)
        any_covered = any(train.plan.graph.parents[i] for i in self.well_covered)
        before = round(settings.complete_family_share * settings.epochs) if any_covered else 0
        self.epochs = before + settings.epochs
        # With nothing hidden, the likelihood is no dearer than its shown families: the same.
        self.complete_family_epochs = before if bool(train.plan.hidden.any()) else 0
        self.parameters = dict(model.named_parameters())
        self.optimiser = torch.optim.AdamW(
            self.parameters.values(), lr=settings.learning_rate, weight_decay=0.0, fused=True
        )
        steps = self.epochs * self.steps_an_epoch
        self.schedule: Schedule = make_schedule(settings.schedule, settings.learning_rate, steps)
        self.curves = [part for part in model.modules() if isinstance(part, Curve)]
        self.averaged = self._copy()
        self.best = self._copy()
        self.state = _State()
        self.last = (
            torch.full_like(train.values, torch.nan) if _hides_together(train.plan) else None
        )
        """Where each row was last completed, for `integration.guided`; nan where not yet."""
        self.device = next(iter(self.parameters.values())).device

    def run(self, watch: Watcher | None = None) -> list[dict[str, Any]]:
        """Trains, from the checkpoint on if there is one; returns the record of each epoch."""
        self._resume()
        saved = time.monotonic()
        while not self._finished():
            started = time.monotonic()
            reports = [self._step(step) for step in range(self.steps_an_epoch)]
            record = self._close_epoch(reports)
            record["seconds"] = time.monotonic() - started
            if watch is not None:
                watch(record, self.epochs)
            if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS or self._finished():
                self._save()
                saved = time.monotonic()
        kept = self.state.epoch
        if self._best_is_better():
            kept, self.averaged = self.state.best_epoch, self.best
        self._load(self.averaged)
        return [{**record, "kept": record["epoch"] == kept} for record in self.state.history]

    def _best_is_better(self) -> bool:
        """Returns whether held-out rows clearly favour another epoch than the last."""
        if self.validation is None or not self.settings.keep_best:
            return False
        best, last = (self._validate(self.validation, of) for of in (self.best, self.averaged))
        return ElpdDifference.of(best - last).ratio > ERRORS_TO_BEAT

    def _finished(self) -> bool:
        patience = self.settings.patience
        tired = patience is not None and self.state.waited >= patience
        return tired or self.state.epoch >= self.epochs

    def _step(self, step: int) -> StepReport:
        epoch = self.state.epoch
        if step == 0:
            shuffle = derive_generator(self.seed, "shuffle", epoch)
            order = torch.randperm(len(self.train), generator=shuffle).to(self.device)
            self._order = order
        chosen = self._order[step * self.batch : (step + 1) * self.batch]
        rows = self.train.select(chosen)
        generator = derive_generator(self.seed, "step", epoch, step, device=self.device)
        self.optimiser.zero_grad(set_to_none=True)
        report = self._gradient(rows, chosen, generator)
        for curve in self.curves:
            (-curve.log_prior() / len(self.train)).backward()
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.rate(self.state.step)
        self.optimiser.step()
        self.state.step += 1
        self._average()
        return report

    def _gradient(self, rows: Rows, chosen: Tensor, generator: torch.Generator) -> StepReport:
        s = self.settings
        if self.state.epoch < self.complete_family_epochs:
            return complete_family_gradient(self.model, rows.values, rows.plan, self.well_covered)
        if s.gradient == "pathwise":
            return pathwise_gradient(self.model, rows.values, rows.plan, s.effort, generator)
        last = None if self.last is None else self.last[chosen]
        report = fisher_gradient(
            self.model, rows.values, rows.plan, s.effort, s.completions, generator, last
        )
        if self.last is not None and last is not None:
            self.last[chosen] = last
        return report

    def _average(self) -> None:
        rate = self.settings.averaging
        names = list(self.parameters)
        now = [self.parameters[name].detach() for name in names]
        averaged = [self.averaged[name] for name in names]
        if rate is None:
            torch._foreach_copy_(averaged, now)
            return
        # Early on, the average reaches back no further than the fit itself.
        torch._foreach_lerp_(averaged, now, max(1.0 - rate, 1.0 / (1.0 + self.state.step)))

    def _close_epoch(self, reports: list[StepReport]) -> dict[str, Any]:
        state = self.state
        state.epoch += 1
        record: dict[str, Any] = {
            "epoch": state.epoch,
            "learning_rate": self.schedule.rate(state.step - 1),
            "below_target": sum(report.below_target for report in reports) / len(reports),
        }
        log_probs = [report.log_prob for report in reports if report.log_prob is not None]
        if log_probs:
            record["train"] = sum(log_probs) / len(log_probs)
        if self.validation is not None:
            validation = float(self._validate(self.validation, self.averaged).mean())
            record["validation"] = validation
            self.schedule.observe(validation)
            if validation > state.best:
                state.best, state.best_epoch, state.waited = validation, state.epoch, 0
                self.best = {name: tensor.clone() for name, tensor in self.averaged.items()}
            else:
                state.waited += 1
        state.history.append(record)
        return record

    def _validate(self, rows: Rows, weights: dict[str, Tensor]) -> Tensor:
        """Returns the log-densities of rows, by the same draws for all weights, (N,)."""
        current = self._copy()
        self._load(weights)
        generator = derive_generator(self.seed, "validate", device=self.device)
        effort = self.settings.validation_effort
        result = observed_log_prob(self.model, rows.values, rows.plan, generator, effort)
        self._load(current)
        return result.log_prob

    def _copy(self) -> dict[str, Tensor]:
        return {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    def _load(self, tensors: dict[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(tensors[name])

    def _save(self) -> None:
        if self.checkpoint is None:
            return
        tensors = {
            f"{group}/{name}": tensor
            for group, part in (
                ("now", self._copy()),
                ("averaged", self.averaged),
                ("best", self.best),
            )
            for name, tensor in part.items()
        }
        for name, parameter in self.parameters.items():
            for key, tensor in self.optimiser.state[parameter].items():
                tensors[f"optimiser/{name}/{key}"] = torch.as_tensor(tensor)
        if self.last is not None:
            tensors["last"] = self.last
        state = {"loop": vars(self.state), "schedule": schedule_state(self.schedule)}
        self.checkpoint.write(tensors, state)

    def _resume(self) -> None:
        found = self.checkpoint.read() if self.checkpoint is not None else None
        if found is None:
            return
        tensors, state = found
        tensors = {name: tensor.to(self.device) for name, tensor in tensors.items()}
        self._load({name: tensors[f"now/{name}"] for name in self.parameters})
        self.averaged = {name: tensors[f"averaged/{name}"] for name in self.parameters}
        self.best = {name: tensors[f"best/{name}"] for name in self.parameters}
        self.last = tensors.get("last", self.last)
        for name, parameter in self.parameters.items():
            prefix = f"optimiser/{name}/"
            self.optimiser.state[parameter] = {
                key.removeprefix(prefix): tensor
                for key, tensor in tensors.items()
                if key.startswith(prefix)
            }
        self.state = _State(**state["loop"])
        self.schedule = type(self.schedule)(**state["schedule"])
