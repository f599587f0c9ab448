r"""A fit to more rows than memory holds.

Lines with normal noise have sufficient statistics, which are summed in one pass (`solve.linear`):
their fit is the same wherever the rows lie. Any other form is chosen and fitted on a sample, in
which every row is with the same chance. Lines and curves then move on to the maximum for all N
rows by Newton steps,

    θ ← θ + (N/n A + T)⁻¹ [ Σ_rows E[∇ log p(x) | x_O] + ∇ log prior(θ) ],

whose gradient is summed over all rows in a pass (Fisher's identity, `solve.fisher`) and whose
information A is that of n rows of the sample: another A takes another way to the same maximum. The
rows are parted by their number alone, and the sum is taken in their order, so that one worker and
many find the same bits (`misscnf.workers`).

Networks and richer noise go on from where the sample has brought them, by small steps through all
rows (`train.lanes`). Lines and curves beside them follow by Newton steps, while networks stay.
"""

from __future__ import annotations

import copy
import logging
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import torch
from torch import Tensor

from misscnf.data.rows import ROWS_AT_ONCE, MemoryRows, RowSource, ToldRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.fit import Fitted, fit_model
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.fisher import row_log_likelihood, rows_by_chance
from misscnf.fitting.solve.linear import fit_linear_gaussian
from misscnf.fitting.solve.sandwich import Information, measure_information, moved
from misscnf.fitting.timings import Timings
from misscnf.fitting.train.checkpoint import Checkpoint, fingerprint
from misscnf.fitting.train.lanes import train_in_lanes
from misscnf.fitting.train.loop import EpochRecord, Watcher
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort
from misscnf.mechanisms import Shape
from misscnf.model import StructuralModel, Structure
from misscnf.threads import one_thread
from misscnf.workers import each

__all__ = ["fit_many", "move_to_all"]

logger = logging.getLogger("misscnf")

Tell: TypeAlias = Callable[[int, int, str], object]
"""Who is told of a pass: the rows done, of how many, and which pass it is."""


def fit_many(
    structure: Structure,
    rows: RowSource,
    sample: tuple[RowSource, RowSource | None],
    settings: Settings,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    watch: Watcher | None = None,
    say: Callable[[str], object] | None = None,
    tell: Tell | None = None,
) -> tuple[Fitted, bool]:
    """Fits a causal flow to rows that memory does not hold.

    Arguments:
        structure: The graph, its domains and ties.
        rows: All rows.
        sample: Rows of them by chance, to learn from and held out.
        settings: How the model is shaped, chosen and trained.
        seed: Where randomness starts.
        device: Where networks are trained.
        checkpoint: A directory that lets an interrupted fit go on.
        watch: Called after each epoch, and after each pass.
        say: Is told how long the fit of the sample may take, before it starts.
        tell: Is told how far a pass over all rows has come.

    Returns:
        The fit, and whether it is that of all rows; otherwise it is that of the sample.
    """
    about: dict[str, Any] = {"seed": seed, "device": device, "checkpoint": checkpoint}
    about |= {"watch": watch, "say": say}
    line = structure.build(Shape(hidden=())).linear_forms()
    if not settings.train and all(form is not None for form in line):
        followed = rows if tell is None else ToldRows(rows, tell, "sums of all rows")
        return fit_model(structure, followed, None, settings, **about), True
    train, held_out = sample
    few = len(train) + (0 if held_out is None else len(held_out))
    why = _why_of_sample(structure, train, settings)
    given = settings if why else _for_sample(settings, len(train))
    fitted = fit_model(structure, train, held_out, given, **about)
    if why and (structure.graph.latent or _networks(fitted.model)):
        logger.warning("The fit stays that of %d rows by chance: %s.", few, why)
        note = EpochRecord(epoch=len(fitted.history) + 1, stage=f"of {few} rows by chance")
        return replace(fitted, history=[*fitted.history, note]), False
    logger.info(
        "The forms are those of %d rows by chance; now all %d rows move them.", few, len(rows)
    )
    _say_rivals(fitted)
    every = _EveryRow(rows, train, held_out, settings, seed, device, checkpoint, watch, tell)
    return every.move(fitted), True


@dataclass(frozen=True, eq=False)
class _EveryRow:
    """All rows, which move the fit of a sample on; the fields are as in `fit_many`."""

    rows: RowSource
    train: RowSource
    held_out: RowSource | None
    settings: Settings
    seed: int
    device: torch.device | str
    checkpoint: str | os.PathLike[str] | None
    watch: Watcher | None
    tell: Tell | None

    def move(self, fitted: Fitted) -> Fitted:
        """Returns the fit of all rows: networks first, then lines and curves around them."""
        timings, rows, trained = Timings(fitted.timings), len(self.rows), list[EpochRecord]()
        if _networks(fitted.model):
            with timings.stage("networks, all rows"):
                fitted, trained = self._train_networks(fitted)
        with timings.stage("all rows"):
            model, passes = self._solve_lines(fitted)
        history = [
            *(replace(record, stage=f"networks, all {rows} rows") for record in trained),
            *(EpochRecord(epoch=0, train=mean, stage=f"all {rows} rows") for mean in passes),
        ]
        history = [replace(record, epoch=number + 1) for number, record in enumerate(history)]
        return replace(fitted, model=model, history=history, rivals={}, timings=timings)

    def _train_networks(self, fitted: Fitted) -> tuple[Fitted, list[EpochRecord]]:
        place = self._place("networks, all rows", fitted)
        about = (self.settings, self.seed, self.device, self.watch, place, self.tell)
        model, trained = train_in_lanes(fitted.model, self.rows, self.held_out, *about)
        return replace(fitted, model=model), trained

    def _solve_lines(self, fitted: Fitted) -> tuple[StructuralModel, list[float]]:
        """Returns the model, and the mean log-density of each pass."""
        rows, tell = self.rows, self.tell
        if all(form is not None for form in fitted.model.linear_forms()):
            followed = rows if tell is None else ToldRows(rows, tell, "sums of all rows")
            found = fit_linear_gaussian(fitted.structure, followed, self.settings.solving)
            return found.model, [found.log_prob]
        place = self._place("all rows", fitted)
        about = (self.settings, self.seed, self.watch, place, tell)
        return move_to_all(fitted.model, rows, self.train, *about)

    def _place(self, stage: str, fitted: Fitted) -> Checkpoint | None:
        """Returns where a stage is kept, so that it can go on."""
        if self.checkpoint is None:
            return None
        start = [float(part.detach().double().sum()) for part in fitted.model.parameters()]
        about = {"settings": self.settings.to_dict(), "seed": self.seed, "start": start}
        about["keeps"] = "its place"
        return Checkpoint(self.checkpoint, stage, fingerprint(about, self.rows))


def _say_rivals(fitted: Fitted) -> None:
    """Says where a sample hardly tells one form from another."""
    for block, rival in fitted.rivals.items():
        logger.info(
            "The sample hardly tells whether the law of %r is the %s that was not taken; "
            "intervals of a fit to all rows take the form as given.",
            fitted.structure.graph.nodes[fitted.model.blocks[block][0]],
            rival.form,
        )


@dataclass(frozen=True)
class _Place:
    """Where the passes have come to."""

    model: StructuralModel
    value: float = -math.inf
    """the log-likelihood of all rows, and of the prior"""
    gradient: Tensor = field(default_factory=lambda: torch.zeros(0))
    """(p,) of it"""
    move: Tensor = field(default_factory=lambda: torch.zeros(0))
    """(p,) the Newton step from here"""

    def gain(self, share: float) -> float:
        """Returns what a share of the step would gain, were the log-likelihood a parabola."""
        return 0.5 * share * float(self.gradient @ self.move)

    def written(
        self, passes: list[float], share: float
    ) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Returns it for a checkpoint, with the passes so far and the share of the next step."""
        own = {"its gradient": self.gradient, "its move": self.move}
        about = {"passes": passes, "value": self.value, "share": share}
        return {**self.model.state_dict(), **own}, about


def _read_place(
    model: StructuralModel, tensors: dict[str, Tensor], about: dict[str, Any]
) -> tuple[_Place, list[float], float]:
    """Returns the place that a checkpoint has, its passes and the share of the next step."""
    own = [tensors.pop(name) for name in ("its gradient", "its move")]
    place = _Place(model.with_state(tensors), about["value"], *own)
    return place, list(about["passes"]), about["share"]


@one_thread()
def move_to_all(
    model: StructuralModel,
    rows: RowSource,
    sample: RowSource,
    settings: Settings,
    seed: int = 0,
    watch: Watcher | None = None,
    checkpoint: Checkpoint | None = None,
    tell: Tell | None = None,
) -> tuple[StructuralModel, list[float]]:
    """Returns lines and curves at the maximum for all rows, and the log-density of each pass.

    Networks stay as they are.

    Arguments:
        model: Their maximum for a sample.
        rows: All rows.
        sample: The sample.
        settings: Numbers of the passes.
        seed: Where the randomness of the information starts.
        watch: Called after each pass.
        checkpoint: Where each pass is kept.
        tell: Is told how far a pass has come.
    """
    rules, found, held = settings.streaming, list[float](), _networks(model)
    if len(held) == len(model.blocks):
        return model, found
    information = _information(model, rows, sample, settings, seed)
    best, share = _Place(model), 1.0
    kept = None if checkpoint is None else checkpoint.read()
    if kept is not None:
        best, found, share = _read_place(model, *kept)
        model = moved(best.model, share * best.move, held)
        if best.gain(share) < rules.tolerance:
            return model, found
    for number in range(len(found), rules.passes):
        name = f"pass {number + 1} over all rows"
        value, gradient = _pass_over(model, rows, settings.integration.linear, name, tell)
        if value < best.value:
            share *= 0.25
        else:
            best = _Place(model, value, gradient, information.newton_moves(gradient[None])[0])
        model = moved(best.model, share * best.move, held)
        found.append(best.value / len(rows))
        if checkpoint is not None:
            checkpoint.write(*best.written(found, share))
        if watch is not None:
            watch(EpochRecord(epoch=number + 1, stage="all rows"), rules.passes)
        if best.gain(share) < rules.tolerance:
            break
    else:
        logger.warning("All rows had not come to rest after %d passes.", rules.passes)
    return model, found


def _information(
    model: StructuralModel, rows: RowSource, sample: RowSource, settings: Settings, seed: int
) -> Information:
    """Returns what all rows say of the parameters, by some of them."""
    some = rows_by_chance(sample, settings.streaming.information_rows)
    count, effort = settings.solving.whitening_completions, settings.integration.completions
    drawn = Completions.draw(model, some, count, derive_generator(seed, "information"), effort)
    found = measure_information(model, drawn, settings.replicates, held=_networks(model))
    times = len(rows) / len(some)
    return replace(found, matrix=times * found.matrix, complete=times * found.complete)


def _pass_over(
    model: StructuralModel,
    rows: RowSource,
    effort: Effort,
    name: str = "",
    tell: Tell | None = None,
) -> tuple[float, Tensor]:
    """Returns the log-likelihood of all rows and of the prior, and its gradient (p,)."""
    parts = [
        (model, rows, start, min(start + ROWS_AT_ONCE, len(rows)), effort)
        for start in range(0, len(rows), ROWS_AT_ONCE)
    ]
    done = 0

    def count(part: int) -> None:
        nonlocal done
        start, stop = parts[part][2:4]
        done += stop - start
        if tell is not None:
            tell(done, len(rows), name)

    if tell is not None:
        tell(done, len(rows), name)
    values, gradients = zip(*each(_part, parts, tell=count), strict=True)
    value, gradient = sum(values), torch.stack(gradients).sum(0)
    laws = [model.block(block) for block in range(len(model.blocks))]
    laws = [law for law in laws if law.solvable]
    priors = [prior for prior in (law.log_prior() for law in laws) if prior is not None]
    if priors:
        prior, moving = torch.stack(priors).sum(), [at for law in laws for at in law.parameters()]
        by = torch.autograd.grad(prior, moving, allow_unused=True)
        parts_of = zip(by, moving, strict=True)
        pull = [torch.zeros_like(at) if of is None else of for of, at in parts_of]
        value, gradient = value + float(prior.detach()), gradient + _vector(pull)
    return value, gradient


def _part(
    model: StructuralModel, rows: RowSource, start: int, stop: int, effort: Effort
) -> tuple[float, Tensor]:
    """Returns the log-likelihood of some rows and its gradient (p,)."""
    with one_thread():
        batch = rows.take(torch.arange(start, stop))
        plan = Plan.make(model.graph, batch.observed)
        model = copy.deepcopy(model)  # whose gradients are this part's alone
        model.zero_grad()
        for block in _networks(model):
            model.block(block).requires_grad_(requires_grad=False)
        value = row_log_likelihood(model, MemoryRows(*batch), plan, effort).sum()
        gradient = [
            torch.zeros_like(part) if part.grad is None else part.grad
            for part in model.parameters()
            if part.requires_grad
        ]
        return float(value), _vector(gradient) * (stop - start)


def _networks(model: StructuralModel) -> frozenset[int]:
    """Returns the blocks that are trained, and not solved for."""
    blocks = range(len(model.blocks))
    return frozenset(block for block in blocks if not model.block(block).solvable)


def _why_of_sample(structure: Structure, sample: RowSource, settings: Settings) -> str:
    """Says why a fit with networks stays that of a sample; nothing where all rows can move it."""
    if structure.graph.latent:
        return "beside hidden causes all rows do not move it on"
    most = settings.training.most_together
    if Plan.of(structure.graph, sample).largest() > most:
        return (
            f"it has networks, and some rows hide more than {most} columns together, which each "
            f"step through all rows would have to integrate over"
        )
    return ""


def _for_sample(settings: Settings, rows: int) -> Settings:
    """Returns settings by which a sample brings networks to where all rows take them on."""
    training = settings.training
    steps = math.ceil(rows / training.batch_for(rows))
    epochs = min(training.epochs, math.ceil(settings.streaming.network_steps / steps))
    return replace(settings, training=replace(training, epochs=epochs))


def _vector(parts: list[Tensor]) -> Tensor:
    return torch.cat([part.detach().flatten() for part in parts])
