r"""Networks that all rows train, wherever these lie: in lanes, whose means are taken.

Training by small steps is one long chain. Here it is parted: in round r, L lanes start at the same
place, and each walks by Adam's steps through rows of its own,

    θ_{r+1} = 1/L Σ_l walk(θ_r, rows of lane l),

and so do the moments of the gradient that Adam remembers (parallel stochastic gradients: Zinkevich
et al. 2010; local steps: Stich 2019). The walk starts at what a sample has found, so that lanes
stay in one basin and their mean is better than each: it has the noise of L times as many rows. The
gradient of a step is Fisher's (`objective`), the rate rises once and falls along a cosine, over
all rounds.

A shard is what a lane reads: groups of neighbouring rows by chance, from all over the table, and
its rows in an order by chance. So rows are read in long pieces, memory holds a shard a lane, and a
table that is sorted is no trap. Everything follows from the seed and the number of the round: who
walks the lanes, and where a walk was interrupted, changes no bit.

A lane needs its rows and the place where it starts, and hands back where it ended, some hundred
kilobytes a round. That is why joblib's workers do (`misscnf.workers`): steps that wait for each
other would need a `torchrun`, and all would start again when one dies.
"""

from __future__ import annotations

import copy
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from misscnf.data.rows import Batch, RowSource
from misscnf.draws import derive_generator
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.settings import Settings, Streaming, Training
from misscnf.fitting.train.checkpoint import Checkpoint
from misscnf.fitting.train.loop import SECONDS_BETWEEN_CHECKPOINTS, EpochRecord, Watcher
from misscnf.fitting.train.objective import (
    ObservedLikelihood,
    StepReport,
    fisher_gradient,
    pathwise_gradient,
)
from misscnf.inference.elimination import Plan
from misscnf.model import StructuralModel
from misscnf.threads import one_thread
from misscnf.workers import each

__all__ = ["train_in_lanes", "shards"]

logger = logging.getLogger("misscnf")

Tell: TypeAlias = Callable[[int, int, str], object]


class Place(NamedTuple):
    """Where a walk is. p parameters."""

    parameters: Tensor
    """(p,) in double precision"""
    first: Tensor
    """(p,) Adam's mean of the gradient"""
    second: Tensor
    """(p,) and of its square"""


@dataclass(frozen=True)
class _Lane:
    """What is done in a lane of a round."""

    rows: RowSource
    groups: Tensor
    """(g,) the numbers of its groups of neighbouring rows"""
    settings: Settings
    seed: int
    number: int
    """of the lane, counted over all rounds"""
    begin: float
    end: float
    """which part of the whole way the round is, in [0, 1]"""
    steps: int
    """that every lane has taken before"""
    device: torch.device | str


def shards(rows: int, seed: int, rules: Streaming, passes: int) -> list[list[Tensor]]:
    """Returns the groups of neighbouring rows of each lane of each round, in all passes.

    Every group is in one lane of one round of a pass.

    Arguments:
        rows: The number of all rows, N.
        seed: Where the order starts.
        rules: Sizes.
        passes: How many passes.
    """
    groups = math.ceil(rows / rules.group_rows)
    a_round = rules.lanes * rules.shard_rows
    rounds = max(1, round(rows / a_round))
    found = []
    for number in range(passes):
        order = torch.randperm(groups, generator=derive_generator(seed, "row groups", number))
        parts = [part.sort().values for part in order.tensor_split(rounds * rules.lanes)]
        parts = [part for part in parts if len(part)]
        found += [parts[at : at + rules.lanes] for at in range(0, len(parts), rules.lanes)]
    return found


@one_thread()
def train_in_lanes(
    model: StructuralModel,
    rows: RowSource,
    held_out: RowSource | None,
    settings: Settings,
    seed: int = 0,
    device: torch.device | str = "cpu",
    watch: Watcher | None = None,
    checkpoint: Checkpoint | None = None,
    tell: Tell | None = None,
) -> tuple[StructuralModel, list[EpochRecord]]:
    """Returns a model whose parameters all rows have trained, and a record of each round.

    Arguments:
        model: Where the walk starts, in double precision, such as the fit of a sample.
        rows: All rows.
        held_out: Rows that tell whether the walk has gone astray; None asks nobody.
        settings: How to walk.
        seed: Where randomness starts.
        device: Where steps are taken.
        watch: Called after each round.
        checkpoint: Where the end of each round is kept.
        tell: Is told how many rows a pass has seen.
    """
    rules, training = settings.streaming, settings.training
    rounds = shards(len(rows), seed, rules, rules.network_passes(len(rows), training))
    place = _place_of(model)
    history, steps, stage = list[EpochRecord](), 0, "networks, all rows"
    kept = None if checkpoint is None else checkpoint.read()
    if kept is not None:
        tensors, state = kept
        place = Place(*(tensors[name] for name in Place._fields))
        history, steps = [EpochRecord(**one) for one in state["history"]], state["steps"]
    seen, saved = 0, time.monotonic()
    for number, lanes in enumerate(rounds):
        size = sum(len(groups) for groups in lanes) * rules.group_rows
        seen = min(seen % len(rows) + size, len(rows))
        if number < len(history):
            continue
        share = 1.0 / len(rounds)
        of_all = (number * share, (number + 1) * share, steps, device)
        about = [
            _Lane(rows, groups, settings, seed, number * rules.lanes + lane, *of_all)
            for lane, groups in enumerate(lanes)
        ]
        started = time.monotonic()
        walks = each(_walk, [(model, place, lane) for lane in about])
        ends, reports, counts = zip(*walks, strict=True)
        place = Place(*(torch.stack(parts).mean(0) for parts in zip(*ends, strict=True)))
        steps += max(counts)
        record = _record(number + 1, reports, _rate((number + 1) * share, training))
        history.append(replace(record, seconds=time.monotonic() - started))
        if tell is not None:
            tell(seen, len(rows), stage)
        if watch is not None:
            watch(replace(record, stage=stage), len(rounds))
        done = number + 1 == len(rounds)
        if checkpoint is not None and (
            done or time.monotonic() - saved > SECONDS_BETWEEN_CHECKPOINTS
        ):
            state = {"history": [one.to_dict() for one in history], "steps": steps}
            checkpoint.write(place._asdict(), state)
            saved = time.monotonic()
    found = _model_at(model, place)
    if held_out is not None and _astray(model, found, held_out, settings, seed):
        return model, history
    return found, history


def _walk(
    model: StructuralModel, start: Place, lane: _Lane
) -> tuple[Place, list[StepReport], int]:
    """Walks through the shard of a lane; returns where it ends, and how many steps it took."""
    with one_thread():
        generator = derive_generator(lane.seed, "lane", lane.number)
        size = lane.settings.training.batch_for(len(lane.rows))
        batch = _shard(lane, lane.settings.streaming.group_rows)
        order = torch.randperm(len(batch.values), generator=generator).split(size)
        walker = _Walker(model, start, lane)
        reports = [
            walker.step(Batch(batch.values[mine], batch.observed[mine]), step, len(order))
            for step, mine in enumerate(order)
        ]
        return walker.place(), reports, len(order)


def _shard(lane: _Lane, size: int) -> Batch:
    """Reads groups of neighbouring rows."""
    count = len(lane.rows)
    parts = [
        lane.rows.take(torch.arange(at * size, min((at + 1) * size, count)))
        for at in lane.groups.tolist()
    ]
    return Batch(*(torch.cat(columns) for columns in zip(*parts, strict=True)))


class _Walker:
    """One model on its way: its parameters are pieces of one vector, which Adam's steps move.

    Arguments:
        model: The model; a copy walks.
        start: Where it starts.
        lane: What is walked through.
    """

    def __init__(self, model: StructuralModel, start: Place, lane: _Lane) -> None:
        self.model = copy.deepcopy(model).float().to(lane.device).requires_grad_()
        self.lane, self.parameters = lane, list(self.model.parameters())
        self.vector, self.first, self.second = (
            part.to(lane.device, torch.float32).clone() for part in start
        )
        sizes = [parameter.numel() for parameter in self.parameters]
        for parameter, piece in zip(self.parameters, self.vector.split(sizes), strict=True):
            parameter.data = piece.view_as(parameter)
        blocks = [self.model.block(block) for block in range(len(self.model.blocks))]
        self.with_prior = [law for law in blocks if law.prior_precision()]

    def step(self, batch: Batch, step: int, steps: int) -> StepReport:
        """Takes a step of the lane, of so many."""
        lane, training = self.lane, self.lane.settings.training
        share = lane.begin + (lane.end - lane.begin) * (step + 0.5) / steps
        for parameter in self.parameters:
            parameter.grad = None
        values = batch.values.to(self.vector).T.contiguous().T  # as nodes read them
        integration, graph = lane.settings.integration, self.model.graph
        plan = Plan.make(graph, batch.observed, joint=integration.joint).to(values.device)
        generator = derive_generator(
            lane.seed, "lane", lane.number, step, device=self.vector.device
        )
        about = (self.model, values, plan, integration.training)
        if training.gradient == "pathwise":
            report = pathwise_gradient(*about, generator)
        else:
            report = fisher_gradient(*about, training.completions, generator)
        for law in self.with_prior:
            log_prior = law.log_prior()
            assert log_prior is not None
            (-log_prior / len(lane.rows)).backward()
        self._move(_rate(share, training), lane.steps + step + 1)
        return report

    @torch.no_grad()
    def _move(self, rate: float, count: int) -> None:
        """Takes Adam's step of this number (Kingma and Ba 2015), with its usual constants."""
        gradient = self._gradient()
        self.first.lerp_(gradient, 0.1)
        self.second.lerp_(gradient.square(), 0.001)
        size = (self.second / (1.0 - 0.999**count)).sqrt().add_(1e-8)
        self.vector -= rate / (1.0 - 0.9**count) * self.first / size

    def _gradient(self) -> Tensor:
        """Returns the gradient of the last step, (p,)."""
        parts = (torch.zeros_like(at) if at.grad is None else at.grad for at in self.parameters)
        return torch.cat([part.flatten() for part in parts])

    def place(self) -> Place:
        """Returns where it is."""
        return Place(*(part.double().cpu() for part in (self.vector, self.first, self.second)))


def _rate(share: float, rules: Training) -> float:
    """Returns the rate after a share of the whole way: it rises once, and falls along a cosine."""
    if share < rules.warm_up:
        return rules.learning_rate * share / rules.warm_up
    fallen = (share - rules.warm_up) / (1.0 - rules.warm_up)
    return rules.learning_rate * 0.5 * (1.0 + math.cos(math.pi * min(fallen, 1.0)))


def _record(number: int, reports: tuple[list[StepReport], ...], rate: float) -> EpochRecord:
    """Returns what the steps of a round have said."""
    said = [report for of_lane in reports for report in of_lane]
    log_probs = [report.log_prob for report in said if report.log_prob is not None]
    below = sum(report.below_target for report in said) / len(said)
    mean = sum(log_probs) / len(log_probs) if log_probs else None
    return EpochRecord(number, rate, below, mean)


def _place_of(model: StructuralModel) -> Place:
    vector = torch.cat([part.detach().double().flatten() for part in model.parameters()])
    return Place(vector, torch.zeros_like(vector), torch.zeros_like(vector))


@torch.no_grad()
def _model_at(model: StructuralModel, place: Place) -> StructuralModel:
    """Returns a copy of a model with other parameters."""
    found = copy.deepcopy(model)
    parameters = list(found.parameters())
    pieces = place.parameters.split([parameter.numel() for parameter in parameters])
    for parameter, piece in zip(parameters, pieces, strict=True):
        parameter.copy_(piece.view_as(parameter))
    return found


def _astray(
    before: StructuralModel,
    after: StructuralModel,
    held_out: RowSource,
    settings: Settings,
    seed: int,
) -> bool:
    """Says whether rows are clearly worse off after a walk than before it.

    They may be among those that were walked through: what they lend a mean of many rows is far
    below the error of the comparison.
    """
    judge = ObservedLikelihood(before, held_out, held_out, settings, seed)
    one, other = (judge.validate(dict(model.named_parameters())) for model in (before, after))
    gain = ElpdDifference.of(one - other)
    if gain.ratio <= settings.training.z_best:
        return False
    logger.warning(
        "Training on all rows lost %.4f ± %.4f nats a row where the sample's networks were asked: "
        "these stay.",
        gain.mean,
        gain.error,
    )
    return True
