r"""A whole fit: solve the linear model, let rows that were left out choose, train networks.

The linear model is the exact maximum of the observed-data likelihood and costs a fraction of a
second. Richer forms start as that linear model and have to earn their place by the elpd difference
on rows that were left out, block by block (`select`): first curves and networks of the means.
Networks are trained on the likelihood itself (`train`); lines and curves are solved for at its
maximum, given the networks (`solve.monte_carlo`). Then, where the noise that they leave is odd,
richer noise, and another training that starts from the first, its splines already fitted to that
noise (`solve.noise_spline`).
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from misscnf.data.rows import JoinedRows, RowSource
from misscnf.draws import derive_generator
from misscnf.errors import InputError, solvable
from misscnf.fitting.completions import Completions
from misscnf.fitting.expectation import expected_duration
from misscnf.fitting.select.curves import reselect_curve
from misscnf.fitting.select.forms import Form, build_model, with_mechanisms
from misscnf.fitting.select.given import Given, some_rows
from misscnf.fitting.select.hidden_parents import bend_beside_hidden
from misscnf.fitting.select.means import Comparison, Means, Rival, choose_means
from misscnf.fitting.select.noise import choose_noise
from misscnf.fitting.select.products import with_products
from misscnf.fitting.select.roughness import Rough, rough_blocks
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.exact import climb_exact, without_networks
from misscnf.fitting.solve.generalised_linear import fit_linear, with_losses_at_random
from misscnf.fitting.solve.linear import LinearFit
from misscnf.fitting.solve.loss_starts import LossStart
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.fitting.solve.noise_spline import fit_noise_splines
from misscnf.fitting.solve.stochastic_em import maximise_on_chains, only_linear_means
from misscnf.fitting.timings import Timings
from misscnf.fitting.told_losses import LossEvidence, weigh_losses
from misscnf.fitting.train.checkpoint import Checkpoint, fingerprint
from misscnf.fitting.train.ensemble import CompletionLikelihood
from misscnf.fitting.train.loop import EpochRecord, Trainer, Watcher
from misscnf.fitting.train.objective import ObservedLikelihood
from misscnf.inference.chains import Chains
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import room_for_modes
from misscnf.inference.likelihood import observed_log_prob
from misscnf.model import StructuralModel, Structure
from misscnf.threads import one_thread

__all__ = ["Fitted", "fit_model"]

logger = logging.getLogger("misscnf")

History = list[EpochRecord]


@dataclass(frozen=True)
class Fitted:
    """What a fit returns."""

    structure: Structure
    model: StructuralModel
    """in double precision, on the CPU"""
    history: History
    """one record an epoch; log-densities of standardised rows"""
    block_forms: tuple[Form, ...]
    """how rich the mechanism of each block is"""
    comparison: Comparison | None = None
    """what curves and networks gain over lines, where they were compared"""
    rivals: Mapping[int, Rival] = field(default_factory=dict)
    """forms that blocks might have had, by block; none where noise is richer than normal"""
    rough: Mapping[int, Rough] = field(default_factory=dict)
    """what fast waves each block leaves, by block"""
    timings: Mapping[str, float] = field(default_factory=dict)
    """seconds by stage"""
    loss_starts: tuple[LossStart, ...] = ()
    """what came of several starts, where a loss depends on the value it hides"""
    loss_evidence: LossEvidence = field(default_factory=LossEvidence)
    """what rows said of such losses"""

    @property
    def forms(self) -> tuple[Form, ...]:
        """How rich each node's mechanism is."""
        return tuple(self.block_forms[block] for block in self.model.block_of)

    @property
    def chosen(self) -> str:
        """The richest of them: "linear", "curve" (lines and curves, normal noise) or "network"."""
        if all(replace(form, curve=None) == Form() for form in self.block_forms):
            return (
                "curve" if any(form.richness == "curve" for form in self.block_forms) else "linear"
            )
        return "network"


@dataclass(frozen=True)
class _Task:
    """What a fit is given."""

    structure: Structure
    train: RowSource
    validation: RowSource | None
    settings: Settings
    seed: int
    device: torch.device | str
    folder: str | os.PathLike[str] | None
    watch: Watcher | None
    timings: Timings = field(default_factory=Timings)

    @cached_property
    def everything(self) -> RowSource:
        """All rows."""
        return self.train if self.validation is None else JoinedRows(self.train, self.validation)

    @cached_property
    def plan(self) -> Plan:
        """What the rows hide."""
        return Plan.of(self.structure.graph, self.everything)

    @cached_property
    def modes(self) -> Tensor | None:
        """Where the modes of what the rows hide are remembered, from one integral to the next."""
        return room_for_modes(self.plan, self.settings.integration.training, torch.empty(0))

    @cached_property
    def chains(self) -> Chains | None:
        """Chains of the rows, if any hides much together: the next completions go on from them."""
        if self.modes is None:
            return None
        rows = self.everything
        return Chains.of(len(rows), rows.columns, self.settings.solving.chains)

    @cached_property
    def given(self) -> Given:
        """What choices are given: as many rows as they are worth."""
        rows = some_rows(self.everything, self.settings.selection, self.seed)
        about = (self.structure, rows, self.settings, self.seed)
        kept = (self.modes, self.chains) if rows is self.everything else (None, None)
        return Given(*about, self.choosing, self.timings, *kept)

    @property
    def held_out(self) -> int:
        """The number of held-out rows."""
        return 0 if self.validation is None else len(self.validation)

    @property
    def many_held_out(self) -> bool:
        """Whether networks can be trained at all."""
        return self.held_out >= self.settings.selection.fewest_held_out

    @property
    def tests_noise(self) -> bool:
        """Whether rows are asked for richer noise."""
        return self.settings.selection.noise and self.many_held_out

    def solve(
        self, rows: RowSource, start: StructuralModel | None = None, *, rough: bool = False
    ) -> LinearFit:
        """Fits the linear model to some rows."""
        with self.timings.stage("linear model"):
            return fit_linear(self.structure, rows, self.settings, start, rough=rough)

    def only_line(self, line: LinearFit | None = None) -> Fitted:
        """Fits the linear model to all rows, or takes the one that was fitted."""
        line = line or self.solve(self.everything)
        if not line.converged:
            logger.warning("the linear fit stopped before it converged.")
        if line.ties:
            logger.warning(
                "%d of %d starts reach the same likelihood by another model: these rows do not "
                "tell what hidden causes do from what columns do; misscnf.check says which "
                "effects are identified.",
                line.ties,
                self.settings.solving.starts,
            )
        history = [EpochRecord(epoch=line.iterations, train=line.log_prob)]
        forms = (Form(),) * len(self.structure.blocks)
        about = (self.structure, line.model, history, forms)
        return Fitted(*about, timings=self.timings, loss_starts=line.starts)

    def train_forms(
        self, forms: Sequence[Form], start: StructuralModel | None, stage: str
    ) -> tuple[StructuralModel, History]:
        """Trains a model that starts as a simpler one."""
        hidden = self.settings.selection.scale_hidden
        shapes = [form.shape(self.settings.shape, hidden) for form in forms]
        model = build_model(self.structure, shapes, start, self.seed)
        if stage == "noise":
            self._fit_noise_splines(model)
        return self.train_on(model, forms, stage)

    def train_on(
        self, model: StructuralModel, forms: Sequence[Form], stage: str
    ) -> tuple[StructuralModel, History]:
        """Trains a model from where it is."""
        settings, training = self.settings, self.settings.training
        shares = {"noise": training.noise_share, "scale": training.scale_share}
        if stage in shares:  # they start close to their end
            epochs = math.ceil(shares[stage] * training.epochs)
            short = replace(training, epochs=epochs, complete_family_share=0.0)
            settings = replace(settings, training=short)
        if self.on_completions:
            trained = [b for b, form in enumerate(forms) if form.mean or form.scale or form.noise]
            return model, self._train_on_completions(model, trained, settings, stage)
        model.float().to(self.device)
        objective = ObservedLikelihood(model, self.train, self.validation, settings, self.seed)
        with self.timings.stage("training"):
            trainer = Trainer(objective, settings.training, self._checkpoint(stage))
            history = trainer.run(self.watch)
        return model.double().cpu(), history

    def with_losses_of_networks_at_random(
        self, start: StructuralModel, networks: Collection[int]
    ) -> StructuralModel:
        """Starts anew the losses that depend on columns whose means are to be networks."""
        graph, bent = self.structure.graph, {i for b in networks for i in self.structure.blocks[b]}
        found = [r for r in graph.own_losses if graph.indicators[r] in bent]
        if not found:
            return start
        about = (self.structure, found, self.train, self.settings)
        return with_losses_at_random(start, *about)

    @cached_property
    def on_completions(self) -> bool:
        """Whether networks are trained on completions.

        Where rows hide much together, or levels and counts, a step would cost all these integrals
        and sums, though the few networks that were chosen have to do with few of them.
        """
        hidden, training = self.plan.hidden, self.settings.training
        discrete = torch.tensor([domain.discrete for domain in self.structure.domains])
        sums = self.settings.selection.compare and bool(hidden[:, discrete].any())
        dear = sums or self.plan.largest() > training.most_together
        return training.gradient == "fisher" and dear

    def _train_on_completions(
        self, model: StructuralModel, blocks: Collection[int], settings: Settings, stage: str
    ) -> History:
        """Trains the networks of some blocks, in place, in rounds that complete the rows once.

        What a round starts from follows from the seed, so that its checkpoint is that of the
        training alone.
        """
        history: History = []
        train, held_out = torch.arange(len(self.everything)).split(
            [len(self.train), self.held_out]
        )
        weights = torch.ones(1, len(self.everything))
        at_rest = self.chains is not None and stage != "network"
        for number in range(settings.training.rounds):
            self.maximise(model.double(), rough=True, near=at_rest and not number)
            with self.timings.stage("training"):
                generator = derive_generator(self.seed, "train", number)
                about = (self.settings.solving.completions_of(self.everything), generator)
                effort = self.settings.integration.training
                kept = (self.modes, self.chains)
                drawn = Completions.draw(model, self.everything, *about, effort, *kept)
                given = (drawn.to(torch.float32), (train, held_out), weights, settings)
                objective = CompletionLikelihood([model.float()], *given, self.seed, blocks)
                place = self._checkpoint(stage if not number else f"{stage} {number}")
                trainer = Trainer(objective, settings.training, place)
                history = _after(history, trainer.run(self.watch))
                objective.ensemble.write(objective.ensemble.parameters, [model])
        model.double()
        return history

    def with_products(self, linear: Fitted) -> Fitted:
        """Lets lines keep products of their parents, by which groups may differ.

        They are near their maximum then, which is all that tests of lines ask for.
        """
        with self.timings.stage("products"):
            laws = with_products(linear.model, self.given)
        if not laws:
            return linear
        model = with_mechanisms(linear.model, laws)
        self.maximise(model, rough=True)
        forms = tuple(Form(curve=model.block(b).curve_size) for b in range(len(model.blocks)))
        return replace(linear, model=model, history=[], block_forms=forms)

    def settled(self, fitted: Fitted, *, near: bool = False) -> Fitted:
        """Moves lines and curves to the maximum, and says what the rows are worth there."""
        rounds = self.maximise(fitted.model, near=near)
        with self.timings.stage("log-density"):
            log_prob = self.log_prob(fitted.model)
        return replace(fitted, history=[EpochRecord(epoch=rounds, train=log_prob)])

    def with_weighed_losses(self, fitted: Fitted) -> Fitted:
        """Asks the rows who else drives losses, and whether slopes that they hardly know exist."""
        with self.timings.stage("weighing losses"):
            about = (self.everything, self.settings, self.seed)
            found = weigh_losses(self.structure, fitted.model, *about)
        structure, model, evidence = found
        return replace(fitted, structure=structure, model=model, loss_evidence=evidence)

    def with_roughness(self, fitted: Fitted) -> Fitted:
        """Tests whether what the fit leaves still waves."""
        with self.timings.stage("testing the fit"):
            given = self.given.fewer(self.settings.selection.rough_rows)
            return replace(fitted, rough=rough_blocks(fitted.model, given))

    def means(self, line: StructuralModel) -> Means:
        """Chooses between lines, curves and networks on rows that were left out."""
        if not self.many_held_out:
            logger.info("too few held-out rows (%d) to justify a network.", self.held_out)
        return choose_means(line, self.given, networks=self.many_held_out)

    def reselect(
        self, model: StructuralModel, forms: Sequence[Form]
    ) -> tuple[StructuralModel, tuple[Form, ...]]:
        """Chooses the curves beside networks of the scale anew, now that these are known."""
        mechanisms, forms = [model.block(b) for b in range(len(model.blocks))], list(forms)
        for block, form in enumerate(forms):
            law = mechanisms[block]
            if form.scale and form.curve and not form.interactions and law.linear_mean():
                with self.timings.stage("trying curves"):
                    law = reselect_curve(law, self.given, block)
                mechanisms[block], forms[block] = law, replace(form, curve=law.curve_size)
        return model.like(mechanisms), tuple(forms)

    def maximise(self, model: StructuralModel, *, rough: bool = False, near: bool = False) -> int:
        """Moves lines and curves to the maximum of the likelihood; returns the rounds it took."""
        about = (self.everything, self.settings, self.seed)
        with self.timings.stage("maximising"):
            graph, solved = self.structure.graph, None
            if (graph.latent or graph.own_losses) and not rough:
                solved = without_networks(model, self.structure, self.everything)
            if not graph.latent and solved is not model:  # networks beside losses: rounds
                solved = None
            near_losses = near or bool(graph.own_losses)  # from their starts
            if solved is not None and climb_exact(solved, *about[:2], near=near_losses):
                return 1
            if self.chains is not None and only_linear_means(model):
                kept = (self.chains, self._maximising, self.modes)
                return maximise_on_chains(model, *about, *kept, rough=rough, near=near)
            given = (*about, self._maximising, self.modes, self.chains)
            return maximise_monte_carlo(model, *given, rough=rough, near=near)

    def bend_beside_hidden(self, fitted: Fitted) -> Fitted:
        """Gives curves to the nodes with hidden parents that earn one."""
        if self.validation is None or not self.many_held_out:
            return fitted
        with self.timings.stage("trying curves beside hidden causes"):
            learned = replace(self.given, rows=self.train, modes=None, chains=None)
            bent = bend_beside_hidden(fitted.model, learned, self.validation)
        if bent is None:
            return fitted
        forms = tuple(
            Form(curve=bent.model.block(b).curve_size) if b in bent.curves else form
            for b, form in enumerate(fitted.block_forms)
        )
        compared = fitted.comparison
        if compared is not None:
            gains = {**compared.by_block, **bent.gains}
            compared = replace(
                compared, by_block=gains, p_values={**compared.p_values, **bent.p_values}
            )
        return self.settled(
            replace(fitted, model=bent.model, block_forms=forms, comparison=compared), near=True
        )

    def log_prob(self, model: StructuralModel) -> float:
        """Returns the mean log-density of what all rows show; of some, where they hide much."""
        total, generator = 0.0, derive_generator(self.seed, "settled")
        effort, rows = self.settings.integration.validation, torch.arange(len(self.everything))
        if self.chains is not None:
            some = self.settings.solving.judged_rows
            by_chance = torch.randperm(len(rows), generator=derive_generator(self.seed, "judges"))
            rows = by_chance[:some]
        for mine in rows.split(2**16):
            values, modes = self.everything.take(mine).values, None
            if self.modes is not None:
                modes = self.modes[mine]
            about = (self.plan.select(mine), generator, effort, modes)
            total += float(observed_log_prob(model, values, *about).log_prob.sum())
        return total / len(rows)

    def _fit_noise_splines(self, model: StructuralModel) -> None:
        """Gives the splines of a model the noise that the training rows leave it."""
        with self.timings.stage("noise splines"):
            self._bend_noise(model)

    def _bend_noise(self, model: StructuralModel) -> None:
        if self.chains is not None and self.given.rows is self.everything:
            completions = self.given.complete(model.double(), "bend")
            learned = (torch.arange(len(self.everything)) < len(self.train)).double()
            fit_noise_splines(model, completions, learned / learned.mean())
            return
        selection, efforts = self.settings.selection, self.settings.integration
        rows = some_rows(self.train, selection, self.seed)
        generator = derive_generator(self.seed, "bend")
        completions = Completions.draw(
            model.double(), rows, selection.completions, generator, efforts.completions
        )
        fit_noise_splines(model, completions)

    def _checkpoint(self, stage: str) -> Checkpoint | None:
        if self.folder is None:
            return None
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):
            raise InputError(f"the checkpoint {str(self.folder)!r} is a file; name a directory.")
        about = {
            "graph": self.structure.graph.to_dict(),
            "keys": self.structure.keys,
            "domains": [domain.to_dict() for domain in self.structure.domains],
            "settings": self.settings.to_dict(),
            "seed": self.seed,
        }
        return Checkpoint(self.folder, stage, fingerprint(about, self.train, self.validation))

    def choosing(self, done: int, epochs: int) -> None:
        """Tells who looks on how far a choice is."""
        if self.watch is not None:
            self.watch(EpochRecord(epoch=done, stage="choosing"), epochs)

    def _maximising(self, done: int, rounds: int) -> None:
        if self.watch is not None:
            self.watch(EpochRecord(epoch=done, stage="maximising"), rounds)


@solvable()
@one_thread()
def fit_model(
    structure: Structure,
    train: RowSource,
    validation: RowSource | None,
    settings: Settings,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    watch: Watcher | None = None,
    say: Callable[[str], object] | None = None,
) -> Fitted:
    """Fits a causal flow to incomplete rows.

    Arguments:
        structure: The graph, what the values of each node can be, and which share a mechanism.
        train: Rows to learn from, standardised or codes.
        validation: Held-out rows, or None.
        settings: How the model is shaped, chosen and trained.
        seed: Where randomness starts.
        device: Where networks are trained.
        checkpoint: A directory that lets an interrupted fit go on.
        watch: Called after each epoch.
        say: Is told how long the fit may take, before it starts; the log by default.
    """
    _check_gradient(structure, settings)
    task = _Task(structure, train, validation, settings, seed, device, checkpoint, watch)
    if not settings.train:
        return task.with_roughness(task.only_line())
    if not (settings.selection.compare and settings.linear_start):
        return _all_networks(task)
    (say or logger.info)(expected_duration(structure, task.everything))
    fitted = _nonlinear_means(task)
    if structure.graph.latent:
        fitted = task.bend_beside_hidden(fitted)
    if task.tests_noise:
        fitted = _with_richer_noise(task, fitted)
    return task.with_weighed_losses(task.with_roughness(fitted))


def _all_networks(task: _Task) -> Fitted:
    """Gives every block a network, unasked."""
    line = task.solve(task.train).model if task.settings.linear_start else None
    blocks = range(len(task.structure.blocks))
    forms = tuple(Form(mean=bool(task.structure.parents_of(block))) for block in blocks)
    model, history = task.train_forms(forms, line, "network")
    return Fitted(task.structure, model, history, forms, timings=task.timings)


def _nonlinear_means(task: _Task) -> Fitted:
    """Gives curves and networks to the blocks that earn one."""
    line = task.solve(task.everything, rough=True)
    linear = task.only_line(line)
    plain = task.with_products(linear)
    means = task.means(plain.model)
    plain = replace(plain, comparison=means.comparison, rivals=means.rivals)
    if not means.networks and not means.curves:
        logger.info("no mean bends enough to ask for a curve or a network: lines are fitted.")
        at_maximum = plain.model is line.model and not line.near
        return plain if at_maximum else task.settled(plain, near=not plain.loss_starts)
    blocks = range(len(task.structure.blocks))
    solved = {b: means.curves.get(b, plain.model.block(b)) for b in blocks}
    forms = tuple(
        Form(mean=True) if b in means.networks else Form(curve=law.curve_size)
        for b, law in solved.items()
    )
    plain = replace(plain, block_forms=forms)
    if not means.networks:
        return task.settled(replace(plain, model=with_mechanisms(plain.model, means.curves)))
    start = linear.model
    if not task.on_completions:  # held-out rows judge steps on rows, and must not be known
        start = task.solve(task.train, start=start).model
    start = task.with_losses_of_networks_at_random(start, means.networks)
    curves = {b: law for b, law in solved.items() if forms[b].curve}
    model, history = task.train_forms(forms, with_mechanisms(start, curves), "network")
    task.maximise(model, rough=task.tests_noise and task.chains is not None)  # settled later
    return replace(plain, model=model, history=history)


def _with_richer_noise(task: _Task, fitted: Fitted) -> Fitted:
    """Gives scales and splines to the blocks that earn them."""
    with task.timings.stage("testing noise"):
        richer = choose_noise(fitted.model, task.given)
    if not richer:
        if any(form.mean for form in fitted.block_forms) and task.chains is not None:
            task.maximise(fitted.model, near=True)
        return fitted
    forms = tuple(
        replace(form, scale=richer[b].scale, noise=richer[b].noise) if b in richer else form
        for b, form in enumerate(fitted.block_forms)
    )
    model, history = task.train_forms(forms, fitted.model, "noise")
    if any(form.scale and not (form.mean or form.noise) for form in forms):
        # in training a scale takes what a mean that is off leaves, and hides it
        model, forms = task.reselect(model, forms)
        task.maximise(model, rough=task.chains is not None)
        model, later = task.train_on(model, forms, "scale")
        history = _after(history, later)
    task.maximise(model)
    before = [] if fitted.chosen == "linear" else fitted.history
    rivals = {b: rival for b, rival in fitted.rivals.items() if b not in richer}
    found = replace(fitted, model=model, history=_after(before, history), block_forms=forms)
    return replace(found, rivals=rivals)


def _after(before: History, later: History) -> History:
    """Returns one history after another, with its epochs counted on."""
    return [*before, *(replace(record, epoch=record.epoch + len(before)) for record in later)]


def _check_gradient(structure: Structure, settings: Settings) -> None:
    laws = structure.build(settings.shape).mechanisms
    if settings.training.gradient == "pathwise" and not all(law.invertible for law in laws):
        raise InputError(
            f"the preset {settings.preset!r} takes its gradient through the draws, and a draw of "
            f"a discrete or semicontinuous column has none; use another preset, or "
            f"kinds='continuous'."
        )
