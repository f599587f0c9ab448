r"""A whole fit: solve the linear model, let rows that were left out choose, train networks.

The linear model is the exact maximum of the observed-data likelihood and costs a fraction of a
second. Networks start as that linear model and have to earn their place by the gain in log-density
of rows that were left out, node by node (`forms`): first curves and networks of the means.
Networks are trained on the likelihood itself; lines and curves settle at its maximum, given the
networks (`maximise_monte_carlo`). Then, where the noise that they leave is odd, richer noise, and
another training that starts from the first, its splines already bent to that noise
(`noise_spline`).
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from misscnf.data.domains import Domain
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import COMPLETIONS, some_rows
from misscnf.fitting.select.curves import choose_curves, reselect_curve
from misscnf.fitting.select.forms import (
    Form,
    Pair,
    build_model,
    choose_means,
    choose_noise,
)
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.generalised_linear import Line, fit_line
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.fitting.solve.noise_spline import fit_noise_splines
from misscnf.fitting.threads import one_thread
from misscnf.fitting.train.checkpoint import Checkpoint, fingerprint
from misscnf.fitting.train.loop import Rows, Trainer, Watcher
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel

__all__ = ["Fitted", "fit_model"]

logger = logging.getLogger("misscnf")

FEWEST_TO_COMPARE = 20
"""With fewer held-out rows nobody can tell when a network has been trained enough: lines and
curves, which need no training, are all there is."""

SHARE_OF_EPOCHS = {"noise": 0.5, "scale": 0.25}
"""Of the epochs of the likelihood, for stages that start close to their end."""

History = list[dict[str, Any]]


@dataclass(frozen=True)
class Fitted:
    """What a fit returns."""

    model: StructuralModel
    """in double precision, on the CPU"""
    history: History
    """one record an epoch; log-densities of standardised rows"""
    forms: tuple[Form, ...]
    """how rich each node's mechanism is"""
    comparison: dict[str, Any] | None = None
    """the gain of networks over lines on rows that were left out, with its standard error, in all
    and by `nodes`"""

    @property
    def chosen(self) -> str:
        """The richest of them: "linear", "curve" (lines and curves, normal noise) or "network"."""
        if all(replace(form, curve=None) == Form() for form in self.forms):
            return "curve" if any(form.curve for form in self.forms) else "linear"
        return "network"


@dataclass(frozen=True)
class _Task:
    """What a fit is given."""

    graph: CausalGraph
    domains: Sequence[Domain]
    train: Pair
    validation: Pair | None
    settings: Settings
    seed: int
    device: torch.device | str
    folder: str | os.PathLike[str] | None
    watch: Watcher | None

    @property
    def everything(self) -> Pair:
        """All rows."""
        if self.validation is None:
            return self.train
        return tuple(torch.cat(pair) for pair in zip(self.train, self.validation, strict=True))  # type: ignore[return-value]

    @property
    def held_out(self) -> int:
        """The number of held-out rows."""
        return 0 if self.validation is None else len(self.validation[0])

    @property
    def many_held_out(self) -> bool:
        """Whether networks can be trained at all."""
        return self.held_out >= FEWEST_TO_COMPARE

    def solve(self, rows: Pair, start: StructuralModel | None = None) -> Line:
        """Fits the linear model to some rows."""
        return fit_line(self.graph, self.domains, *rows, start=start)

    def only_line(self) -> Fitted:
        """Fits the linear model to all rows."""
        line = self.solve(self.everything)
        if not line.converged:
            logger.warning("the linear fit stopped before it converged.")
        history = [{"epoch": line.iterations, "train": line.log_prob}]
        return Fitted(line.model, history, (Form(),) * len(self.graph))

    def train_forms(
        self, forms: Sequence[Form], start: StructuralModel | None, stage: str
    ) -> tuple[StructuralModel, History]:
        """Trains a model that starts as a simpler one."""
        shapes = [form.shape(self.settings.shape) for form in forms]
        model = build_model(self.graph, self.domains, shapes, start, self.seed)
        if stage == "noise":
            self._fit_noise_splines(model)
        return self.train_on(model, stage)

    def train_on(self, model: StructuralModel, stage: str) -> tuple[StructuralModel, History]:
        """Trains a model from where it is."""
        settings, joint = self.settings, self.settings.joint
        if share := SHARE_OF_EPOCHS.get(stage):
            settings = replace(
                settings, epochs=math.ceil(share * settings.epochs), complete_family_share=0.0
            )
        model.float().to(self.device)
        held_out = (
            None if self.validation is None else Rows.of(model, *self.validation, joint=joint)
        )
        train = Rows.of(model, *self.train, joint=joint)
        kept = self._checkpoint(stage)
        history = Trainer(model, train, held_out, settings, self.seed, kept).run(self.watch)
        return model.double().cpu(), history

    def networks(
        self, line: StructuralModel
    ) -> tuple[dict[int, ElpdDifference] | None, dict[str, Any] | None]:
        """Returns the nodes that earn a network, and what it gains on rows that were left out."""
        if not self.many_held_out:
            logger.info("too few held-out rows (%d) to justify a network.", self.held_out)
            return None, None
        return choose_means(
            line, self.domains, self.everything, self.settings, self.seed, self.choosing
        )

    def curves(
        self, networks: Mapping[int, ElpdDifference] | None
    ) -> tuple[dict[int, Gaussian], frozenset[int]]:
        """Returns the curves of the nodes that get one, and the nodes that keep a network."""
        if not self.settings.curves or self.settings.shape.kind != "gaussian":
            return {}, frozenset(networks or ())
        return choose_curves(
            self.graph,
            self.domains,
            some_rows(self.everything, self.seed),
            networks,
            self.settings,
            self.seed,
            self.choosing,
        )

    def reselect(
        self, model: StructuralModel, forms: Sequence[Form]
    ) -> tuple[StructuralModel, tuple[Form, ...]]:
        """Chooses the curves beside networks of the scale anew, now that these are known."""
        mechanisms, forms = [model.mechanism(i) for i in range(len(self.graph))], list(forms)
        rows = some_rows(self.everything, self.seed)
        for i, form in enumerate(forms):
            law = mechanisms[i]
            if form.scale and form.curve and isinstance(law, Gaussian):
                law = reselect_curve(self.graph, law, self.domains, rows, i, self.seed)
                mechanisms[i], forms[i] = law, replace(form, curve=_curve_size(law))
        return StructuralModel(self.graph, mechanisms), tuple(forms)

    def maximise_monte_carlo(self, model: StructuralModel) -> int:
        """Moves lines and curves to the maximum of the likelihood; returns the rounds it took."""
        return maximise_monte_carlo(model, self.everything, self.seed, self._maximising)

    def log_prob(self, model: StructuralModel) -> float:
        """Returns the mean log-density of what all rows show."""
        values, observed = self.everything
        plan, generator = (
            Plan.make(self.graph, observed),
            derive_generator(self.seed, "settled"),
        )
        effort, values = self.settings.validation_effort, torch.where(observed, values, 0.0)
        found = observed_log_prob(model, values, plan, generator, effort)
        return float(found.log_prob.mean())

    def _fit_noise_splines(self, model: StructuralModel) -> None:
        """Gives the splines of a model the noise that the training rows leave it."""
        rows, generator = some_rows(self.train, self.seed), derive_generator(self.seed, "bend")
        fit_noise_splines(model.double(), Completions.draw(model, *rows, COMPLETIONS, generator))

    def _checkpoint(self, stage: str) -> Checkpoint | None:
        if self.folder is None:
            return None
        if os.path.exists(self.folder) and not os.path.isdir(self.folder):
            raise InputError(f"the checkpoint {str(self.folder)!r} is a file; name a directory.")
        tensors = {"values": self.train[0], "observed": self.train[1]}
        if self.validation is not None:
            held_out = self.validation
            tensors |= {"held_out_values": held_out[0], "held_out_observed": held_out[1]}
        about = {
            "graph": self.graph.to_dict(),
            "domains": [domain.to_dict() for domain in self.domains],
            "settings": self.settings.to_dict(),
            "seed": self.seed,
        }
        return Checkpoint(self.folder, stage, fingerprint(about, tensors))

    def choosing(self, done: int, epochs: int) -> None:
        """Tells who looks on how far a choice is."""
        if self.watch is not None:
            self.watch({"epoch": done, "stage": "choosing"}, epochs)

    def _maximising(self, done: int, rounds: int) -> None:
        if self.watch is not None:
            self.watch({"epoch": done, "stage": "settling"}, rounds)


@one_thread()
def fit_model(
    graph: CausalGraph,
    domains: Sequence[Domain],
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor] | None,
    settings: Settings,
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    checkpoint: str | os.PathLike[str] | None = None,
    watch: Watcher | None = None,
) -> Fitted:
    """Fits a causal flow to incomplete rows.

    Arguments:
        graph: The causal graph.
        domains: What the values of each node can be.
        train: Values (N, d), standardised or codes, and observed (N, d).
        validation: The same of held-out rows, or None.
        settings: How the model is shaped and trained.
        seed: Where randomness starts.
        device: Where networks are trained.
        checkpoint: A directory that lets an interrupted fit go on.
        watch: Called after each epoch.
    """
    _check_gradient(domains, settings)
    task = _Task(graph, domains, train, validation, settings, seed, device, checkpoint, watch)
    if not settings.train:
        return task.only_line()
    if not (settings.compare_linear and settings.linear_start):
        return _all_networks(task)
    fitted = _nonlinear_means(task)
    richer_noise = settings.richer_noise and task.many_held_out
    return _with_richer_noise(task, fitted) if richer_noise else fitted


def _all_networks(task: _Task) -> Fitted:
    """Gives every node a network, unasked."""
    line = task.solve(task.train).model if task.settings.linear_start else None
    forms = tuple(Form(mean=bool(parents)) for parents in task.graph.parents)
    model, history = task.train_forms(forms, line, "network")
    return Fitted(model, history, forms)


def _nonlinear_means(task: _Task) -> Fitted:
    """Gives curves and networks to the nodes that earn one."""
    linear = task.only_line()
    asked, comparison = task.networks(linear.model)
    curves, networks = task.curves(asked)
    if not networks and not curves:
        logger.info("no node asks for more than a line: the linear model is used.")
        return replace(linear, comparison=comparison)
    forms = tuple(
        Form(mean=i in networks, curve=_curve_size(curves.get(i))) for i in range(len(task.graph))
    )
    if not networks:
        model = _with_curves(linear.model, curves)
        history = [{"epoch": task.maximise_monte_carlo(model), "train": task.log_prob(model)}]
        return Fitted(model, history, forms, comparison)
    start = _with_curves(task.solve(task.train, start=linear.model).model, curves)
    model, history = task.train_forms(forms, start, "network")
    task.maximise_monte_carlo(model)
    return Fitted(model, history, forms, comparison)


def _with_curves(line: StructuralModel, curves: Mapping[int, Gaussian]) -> StructuralModel:
    """Returns a linear model with curves in the place of some of its lines."""
    nodes = range(len(line.graph))
    return StructuralModel(line.graph, [curves.get(i, line.mechanism(i)) for i in nodes])


def _with_richer_noise(task: _Task, fitted: Fitted) -> Fitted:
    """Gives scales and splines to the nodes that earn them."""
    richer = choose_noise(
        fitted.model, task.domains, task.everything, task.settings, task.seed, task.choosing
    )
    if not richer:
        return fitted
    forms = tuple(
        replace(form, scale=richer[i].scale, noise=richer[i].noise) if i in richer else form
        for i, form in enumerate(fitted.forms)
    )
    model, history = task.train_forms(forms, fitted.model, "noise")
    if any(form.scale and not (form.mean or form.noise) for form in forms):
        # in training a scale takes what a mean that is off leaves, and hides it
        model, forms = task.reselect(model, forms)
        task.maximise_monte_carlo(model)
        model, later = task.train_on(model, "scale")
        history = _after(history, later)
    task.maximise_monte_carlo(model)
    before = [] if fitted.chosen == "linear" else fitted.history
    return Fitted(model, _after(before, history), forms, fitted.comparison)


def _after(before: History, later: History) -> History:
    """Returns one history after another, with its epochs counted on."""
    return [*before, *({**record, "epoch": record["epoch"] + len(before)} for record in later)]


def _curve_size(mechanism: Gaussian | None) -> tuple[int, ...] | None:
    if mechanism is None or mechanism.mean.curve is None:
        return None
    return mechanism.mean.curve.size


def _check_gradient(domains: Sequence[Domain], settings: Settings) -> None:
    if settings.gradient == "pathwise" and any(domain.discrete for domain in domains):
        raise InputError(
            f"the preset {settings.preset!r} takes its gradient through the draws, and a draw of "
            f"a discrete column has none; use another preset, or kinds='continuous'."
        )
