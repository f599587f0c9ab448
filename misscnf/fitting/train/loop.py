r"""Training: mini-batches, a learning-rate schedule, averaged weights, checkpoints.

The weights of the last epoch are kept, where the schedule comes to rest, unless those of another
have a held-out likelihood that is clearly higher. The highest of many epochs on few rows is
mostly luck: chosen by it, networks end in the middle of their schedule and are worse.

The loop follows an `Objective`: one model, or B replicates of one, each of which keeps an epoch of
its own. Every random number is derived from (seed, purpose, epoch, step), so that a resumed fit
draws what an uninterrupted one would have drawn, and ends in the same bits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, Protocol

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR, ReduceLROnPlateau
from torch.optim.swa_utils import AveragedModel

from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.settings import Training
from misscnf.fitting.train.checkpoint import Checkpoint
from misscnf.fitting.train.objective import Objective, StepReport

__all__ = ["EpochRecord", "Judge", "Trainer", "Watcher"]


SECONDS_BETWEEN_CHECKPOINTS = 1.0

Judge = Callable[[Mapping[str, Tensor]], Tensor]
"""Takes parameters, and returns how good they are, (), or (B,) for each replicate."""


@dataclass(frozen=True)
class EpochRecord:
    """What is known of an epoch; log-densities in nats a row."""

    epoch: int
    learning_rate: float | None = None
    """In its last step."""
    below_target: float | None = None
    """Share of the components with fewer effective draws than asked for."""
    train: float | None = None
    """Of the rows to learn from, on the way; None where no step computed it."""
    validation: float | None = None
    """Of held-out rows, by the averaged weights; None where there are none."""
    seconds: float | None = None
    kept: bool | None = None
    """Whether its weights are those that are kept."""
    stage: str | None = None
    """What is done, where it is no training."""

    def to_dict(self) -> dict[str, Any]:
        """Returns what is known, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}


class Watcher(Protocol):
    """Someone who looks on while a fit runs, such as a progress bar."""

    def __call__(self, record: EpochRecord, epochs: int, /) -> None:
        """Takes the record of an epoch, and how many there will be."""


@dataclass
class _State:
    """Where a fit is."""

    epoch: int = 0
    step: int = 0
    waited: int = 0
    """epochs since held-out rows gained"""
    history: list[EpochRecord] = field(default_factory=list)


class Trainer:
    """Moves the parameters of an objective to where rows want them.

    Arguments:
        objective: What is trained, on which rows.
        settings: How to train.
        checkpoint: Where to keep the state, or None.
        judge: What chooses the best epoch; the mean of held-out log-densities if None.
        keep: Whether the best epoch is kept whenever there is one, or only where it is clearly
            better than the last, by `settings.z_best` standard errors of held-out log-densities.
            Without `settings.keep_best` it never is.
    """

    def __init__(
        self,
        objective: Objective,
        settings: Training,
        checkpoint: Checkpoint | None = None,
        *,
        judge: Judge | None = None,
        keep: Literal["best", "clearly better"] = "clearly better",
    ) -> None:
        self.objective, self.settings, self.checkpoint = objective, settings, checkpoint
        self.judge = judge or (lambda parameters: objective.validate(parameters).mean(-1))
        self.keep = keep
        self.parameters = objective.parameters
        self.batch = settings.batch_for(len(objective))
        self.optimiser = torch.optim.AdamW(
            self.parameters.values(), lr=settings.learning_rate, weight_decay=0.0, fused=True
        )
        steps = objective.epochs * math.ceil(len(objective) / self.batch)
        self.schedule = _make_schedule(self.optimiser, settings, steps)
        self._now = nn.ParameterList(self.parameters.values())
        self._average = AveragedModel(self._now, multi_avg_fn=_reach_back(settings.averaging))
        self._average.update_parameters(self._now)  # the start counts as a step
        self.averaged = dict(zip(self.parameters, self._average.parameters(), strict=True))
        self.best = {name: tensor.detach().clone() for name, tensor in self.parameters.items()}
        self.highest = torch.full(objective.replicates, -math.inf, dtype=torch.float64)
        """what the judge says of the best, () or (B,)"""
        self.best_epoch = torch.zeros(objective.replicates, dtype=torch.int64)
        """likewise; zero is the start"""
        self.state, self.rate = _State(), settings.learning_rate

    def run(self, watch: Watcher | None = None) -> list[EpochRecord]:
        """Trains, from the checkpoint on if there is one; returns the record of each epoch."""
        self._resume()
        saved = time.monotonic()
        while not self._finished():
            record = self._run_epoch()
            if watch is not None:
                watch(record, self.objective.epochs)
            if time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS or self._finished():
                self._save()
                saved = time.monotonic()
        kept = self._keep()
        return [replace(record, kept=record.epoch in kept) for record in self.state.history]

    def _finished(self) -> bool:
        patience = self.settings.patience
        tired = patience is not None and self.state.waited >= patience
        return tired or self.state.epoch >= self.objective.epochs

    def _run_epoch(self) -> EpochRecord:
        """Visits every row once, in an order of its own, and asks the held-out rows."""
        started, state = time.monotonic(), self.state
        batches = self.objective.order(state.epoch).split(self.batch)
        reports = [self.step(rows, step) for step, rows in enumerate(batches)]
        state.epoch += 1
        log_probs = [report.log_prob for report in reports if report.log_prob is not None]
        record = EpochRecord(
            state.epoch,
            learning_rate=self.rate,
            below_target=sum(report.below_target for report in reports) / len(reports),
            train=sum(log_probs) / len(log_probs) if log_probs else None,
            validation=self._ask_held_out() if self.objective.held_out else None,
        )
        state.history.append(replace(record, seconds=time.monotonic() - started))
        return state.history[-1]

    def step(self, rows: Tensor, step: int) -> StepReport:
        """Takes a step, of this number in its epoch, along the gradient of some rows."""
        self.optimiser.zero_grad(set_to_none=True)
        report = self.objective.gradient(rows, self.state.epoch, step)
        self.optimiser.step()
        self.state.step += 1
        self.rate = self.optimiser.param_groups[0]["lr"]
        if isinstance(self.schedule, OneCycleLR) and self.state.step < self.schedule.total_steps:
            self.schedule.step()
        self._average.update_parameters(self._now)
        return report

    @torch.no_grad()
    def _ask_held_out(self) -> float:
        """Remembers the averaged weights where they are the best; returns how good they are."""
        found = self.judge(self.averaged).to(self.highest)
        better = found > self.highest
        self.highest[better], self.best_epoch[better] = found[better], self.state.epoch
        for name, best in self.best.items():
            best[better] = self.averaged[name][better]
        self.state.waited = 0 if better.any() else self.state.waited + 1
        if isinstance(self.schedule, ReduceLROnPlateau):
            self.schedule.step(-float(found.mean()))
        return float(found.mean())

    @torch.no_grad()
    def _keep(self) -> set[int]:
        """Gives the parameters what is kept; returns the epochs that it comes from."""
        for name, parameter in self.parameters.items():
            parameter.copy_(self.averaged[name])
        if not self.settings.keep_best or not self.objective.held_out:
            return {self.state.epoch}
        chosen = self._is_chosen()
        for name, parameter in self.parameters.items():
            parameter[chosen] = self.best[name][chosen]
        return set(torch.where(chosen, self.best_epoch, self.state.epoch).flatten().tolist())

    def _is_chosen(self) -> Tensor:
        """Says where the best epoch is kept instead of the last, () or (B,)."""
        if self.keep == "best":
            return torch.ones_like(self.best_epoch, dtype=torch.bool)
        gap = self.objective.validate(self.best) - self.objective.validate(self.averaged)
        ratios = [ElpdDifference.of(one).ratio for one in gap.reshape(-1, gap.shape[-1])]
        return torch.tensor(ratios).reshape(self.best_epoch.shape) > self.settings.z_best

    def _save(self) -> None:
        if self.checkpoint is None:
            return
        history = [record.to_dict() for record in self.state.history]
        state = {
            "loop": {**vars(self.state), "history": history},
            "schedule": self.schedule.state_dict(),
        }
        self.checkpoint.write(self._tensors(), state)

    def _tensors(self) -> dict[str, Tensor]:
        """Returns all tensors that change, by name."""
        found = {"highest": self.highest, "best epoch": self.best_epoch}
        found |= {f"objective/{name}": tensor for name, tensor in self.objective.state.items()}
        for name, parameter in self.parameters.items():
            found[f"now/{name}"] = parameter
            found[f"averaged/{name}"] = self.averaged[name]
            found[f"best/{name}"] = self.best[name]
            for key, tensor in self.optimiser.state[parameter].items():
                found[f"optimiser/{key}/{name}"] = tensor
        return found

    @torch.no_grad()
    def _resume(self) -> None:
        found = self.checkpoint.read() if self.checkpoint is not None else None
        if found is None:
            return
        tensors, state = found
        history = [EpochRecord(**record) for record in state["loop"]["history"]]
        self.state = _State(**{**state["loop"], "history": history})
        for name, parameter in self.parameters.items():
            self.optimiser.state[parameter] = {
                key: tensors[f"optimiser/{key}/{name}"].to(parameter.device)
                for key in ("step", "exp_avg", "exp_avg_sq")
                if f"optimiser/{key}/{name}" in tensors
            }
        for name, tensor in self._tensors().items():
            tensor.copy_(tensors[name])
        self._average.n_averaged.fill_(1 + self.state.step)
        self.schedule.load_state_dict(state["schedule"])
        self.optimiser.param_groups[0]["lr"] = self.schedule.get_last_lr()[0]


def _make_schedule(
    optimiser: torch.optim.Optimizer, settings: Training, steps: int
) -> OneCycleLR | ReduceLROnPlateau:
    if settings.schedule == "plateau":
        return ReduceLROnPlateau(optimiser, factor=0.95, patience=60, threshold=1e-4)
    steps = max(2, steps)
    return OneCycleLR(
        optimiser,
        settings.learning_rate,
        total_steps=steps,
        pct_start=max(settings.warm_up, 2 / steps),  # torch needs a step on the way up
        div_factor=25.0,
        final_div_factor=40.0,
        cycle_momentum=False,
    )


def _reach_back(averaging: float | None) -> Callable[[Any, Any, Tensor | int], None]:
    """Returns an exponential average that, early on, reaches back no further than the fit."""

    @torch.no_grad()
    def update(averaged: list[Tensor], now: list[Tensor], count: Tensor | int) -> None:
        share = max(1.0 - (averaging or 0.0), 1.0 / (1.0 + int(count)))
        torch._foreach_lerp_(averaged, now, share)

    return update
