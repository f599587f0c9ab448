r"""A whole fit: solve the linear model, let rows that were left out choose, train networks.

The linear model is the exact maximum of the observed-data likelihood and costs a fraction of a
second. Networks start as that linear model and have to earn their place by the gain in
log-density of rows that were left out, paired row by row.

In tables of up to 10,000 rows every row is left out once (`crossfit`), before any other training:
a node gets a network if its gain exceeds 1.5 standard errors. In larger tables all nodes get one,
and keep it if the gain on the held-out rows exceeds two.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from misscnf.domains import Domain
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.fitting.checkpoint import Checkpoint, fingerprint
from misscnf.fitting.crossfit import FOLDS, cross_fit
from misscnf.fitting.line import Line, fit_line
from misscnf.fitting.loop import Rows, Trainer, Watcher
from misscnf.fitting.settings import Settings, Shape
from misscnf.graph import CausalGraph
from misscnf.integration import Effort
from misscnf.likelihood import observed_log_prob
from misscnf.structural import StructuralModel

__all__ = ["Fitted", "fit_model", "build_model"]

logger = logging.getLogger("misscnf")

FEWEST_TO_COMPARE = 20
"""With fewer held-out rows, no comparison is worth its noise, and the linear model stays."""
ERRORS_TO_BEAT = 1.5
"""By every node, where every row is left out once."""
ERRORS_TO_BEAT_HELD_OUT = 2.0
"""More than one, because the best epoch is chosen on the same rows."""
MOST_TO_CROSS_FIT = 10_000
"""Rows up to which every row is left out once."""
COMPARISON = Effort(draws=256, effective=64.0, limit=2048)
"""The spread between rows is far larger than what these draws leave."""


@dataclass(frozen=True)
class Fitted:
    """What a fit returns."""

    model: StructuralModel
    """in double precision, on the CPU"""
    history: list[dict[str, Any]]
    """one record an epoch; log-densities of standardised rows"""
    chosen: str
    """"linear", or "network" where some node has one"""
    comparison: dict[str, Any] | None
    """the gain of networks over lines on rows that were left out, and its standard error; also by
    `nodes` where each was judged"""
    networks: frozenset[int] = frozenset()
    """the nodes that have a network"""


def build_model(
    graph: CausalGraph,
    domains: Sequence[Domain],
    shape: Shape,
    line: StructuralModel | None,
    nodes: Collection[int] | None = None,
) -> StructuralModel:
    """Makes a model that starts as a linear one if there is one.

    Arguments:
        graph: The causal graph.
        domains: The domain of each node.
        shape: The shape of its mechanisms.
        line: The linear model, or None.
        nodes: Which nodes have that shape, the others being linear; None for all.
    """
    model = shape.build_model(graph, domains)
    if nodes is not None:
        linear = replace(shape, hidden=(), scale_hidden=None).build_model(graph, domains)
        chosen = [model if i in nodes else linear for i in range(len(graph))]
        model = StructuralModel(graph, [of.mechanism(i) for i, of in enumerate(chosen)])
    if line is not None:
        for i in range(len(graph)):
            model.mechanism(i).start_from(line.mechanism(i))
    return model


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
    everything = _stack(train, validation)
    if not settings.train:
        return _only_line(fit_line(graph, domains, *everything))
    line = fit_line(graph, domains, *train) if settings.linear_start else None
    if settings.compare_linear and _held_out(validation) < FEWEST_TO_COMPARE:
        logger.info(
            "too few held-out rows (%d) to justify a network: the linear model is used.",
            _held_out(validation),
        )
        return _only_line(fit_line(graph, domains, *everything))
    trained = partial(_train, graph, domains, train, validation, settings, line, seed, device)
    kept = partial(_checkpoint, checkpoint, graph, domains, train, validation, settings, seed)
    every = frozenset(i for i, parents in enumerate(graph.parents) if parents)
    if not settings.compare_linear or line is None or validation is None:
        return Fitted(*trained(every, kept("network"), watch), "network", None, every)
    if len(everything[0]) <= MOST_TO_CROSS_FIT:
        whole = fit_line(graph, domains, *everything, start=line.model)
        nodes, comparison = _cross_fit(whole.model, domains, everything, settings, seed, watch)
        if nodes:
            return Fitted(*trained(nodes, kept("network"), watch), "network", comparison, nodes)
        history = None
    else:
        model, history = trained(every, kept("network"), watch)
        comparison = _compare(model, line.model, validation, seed)
        if comparison["gain"] > ERRORS_TO_BEAT_HELD_OUT * comparison["standard_error"]:
            return Fitted(model, history, "network", comparison, every)
        whole = fit_line(graph, domains, *everything, start=line.model)
    logger.info(
        "rows that were left out do not favour networks over lines (gain %.4f ± %.4f nats a row): "
        "the linear model is used.",
        comparison["gain"],
        comparison["standard_error"],
    )
    linear = _only_line(whole)
    return replace(linear, history=history or linear.history, comparison=comparison)


def _train(
    graph: CausalGraph,
    domains: Sequence[Domain],
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor] | None,
    settings: Settings,
    line: Line | None,
    seed: int,
    device: torch.device | str,
    nodes: frozenset[int],
    kept: Checkpoint | None,
    watch: Watcher | None,
) -> tuple[StructuralModel, list[dict[str, Any]]]:
    """Trains networks in some nodes; returns the model and its history."""
    start = None if line is None else line.model
    model = build_model(graph, domains, settings.shape, start, nodes)
    model.initialise(derive_generator(seed, "initialise"))
    model.float().to(device)
    joint = settings.joint
    held_out = None if validation is None else Rows.of(model, *validation, joint=joint)
    trainer = Trainer(model, Rows.of(model, *train, joint=joint), held_out, settings, seed, kept)
    history = trainer.run(watch)
    return model.double().cpu(), history


def _cross_fit(
    line: StructuralModel,
    domains: Sequence[Domain],
    rows: tuple[Tensor, Tensor],
    settings: Settings,
    seed: int,
    watch: Watcher | None,
) -> tuple[frozenset[int], dict[str, Any]]:
    """Returns which nodes earn a network, and by how much."""
    graph = line.graph
    starts = []
    for fold in range(FOLDS):
        start = build_model(graph, domains, settings.shape, None)
        start.initialise(derive_generator(seed, "fold", fold))
        starts.append(start)
    choosing = None if watch is None else partial(_tell, watch)
    crossed = cross_fit(line, starts, rows, settings, seed, choosing)
    nodes = crossed.choose(ERRORS_TO_BEAT)
    gain = crossed.gain(nodes or crossed.candidates, frozenset())
    by_node = {i: crossed.gain(nodes | {i}, nodes - {i}) for i in sorted(crossed.candidates)}
    return nodes, {
        **gain.to_dict(),
        "nodes": {graph.nodes[i]: found.to_dict() for i, found in by_node.items()},
    }


def _tell(watch: Watcher, done: int, epochs: int) -> None:
    """Tells a watcher of the fit how far the choice of nodes is."""
    watch({"epoch": done, "stage": "choosing"}, epochs)


def _check_gradient(domains: Sequence[Domain], settings: Settings) -> None:
    if settings.gradient == "pathwise" and any(domain.discrete for domain in domains):
        raise InputError(
            f"the preset {settings.preset!r} takes its gradient through the draws, and a draw of "
            f"a discrete column has none; use another preset, or kinds='continuous'."
        )


def _only_line(line: Line) -> Fitted:
    if not line.converged:
        logger.warning("the linear fit stopped before it converged.")
    history = [{"epoch": line.iterations, "train": line.log_prob}]
    return Fitted(line.model, history, "linear", None)


def _held_out(validation: tuple[Tensor, Tensor] | None) -> int:
    return 0 if validation is None else len(validation[0])


def _stack(
    train: tuple[Tensor, Tensor], validation: tuple[Tensor, Tensor] | None
) -> tuple[Tensor, Tensor]:
    if validation is None:
        return train
    return torch.cat([train[0], validation[0]]), torch.cat([train[1], validation[1]])


def _compare(
    network: StructuralModel,
    line: StructuralModel,
    validation: tuple[Tensor, Tensor],
    seed: int,
) -> dict[str, float]:
    """Returns the held-out gain of a network over a line, a row, with its standard error."""
    log_probs = []
    for model in (network, line):
        rows = Rows.of(model, *validation, joint=False)
        generator = derive_generator(seed, "compare")
        found = observed_log_prob(model, rows.values, rows.plan, generator, COMPARISON)
        log_probs.append(found.log_prob)
    gain = log_probs[0] - log_probs[1]
    error = gain.std() / len(gain) ** 0.5
    return {"gain": float(gain.mean()), "standard_error": float(error)}


def _checkpoint(
    folder: str | os.PathLike[str] | None,
    graph: CausalGraph,
    domains: Sequence[Domain],
    train: tuple[Tensor, Tensor],
    validation: tuple[Tensor, Tensor] | None,
    settings: Settings,
    seed: int,
    stage: str,
) -> Checkpoint | None:
    if folder is None:
        return None
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise InputError(f"the checkpoint {str(folder)!r} is a file; name a directory.")
    tensors = {"values": train[0], "observed": train[1]}
    if validation is not None:
        tensors |= {"held_out_values": validation[0], "held_out_observed": validation[1]}
    about = {
        "graph": graph.to_dict(),
        "domains": [domain.to_dict() for domain in domains],
        "settings": settings.to_dict(),
        "seed": seed,
    }
    return Checkpoint(folder, stage, fingerprint(about, tensors))
