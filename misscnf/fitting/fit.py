r"""A whole fit: solve the linear model, train the network, let held-out rows choose.

The linear model is the exact maximum of the observed-data likelihood and costs a fraction of a
second. A network starts as that linear model and has to earn its place: it is kept if the gain in
held-out log-density, paired row by row, exceeds 1.5 times its standard error (more than once,
because its best epoch was chosen on the same rows).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from misscnf.domains import Domain
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.fitting.checkpoint import Checkpoint, fingerprint
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
    """"linear" or "network"."""
    comparison: dict[str, float] | None
    """the held-out gain of the network over the line, and its standard error"""


def build_model(
    graph: CausalGraph, domains: Sequence[Domain], shape: Shape, line: StructuralModel | None
) -> StructuralModel:
    """Makes a model of one shape for every node, that starts as a linear one if there is one."""
    model = shape.build_model(graph, domains)
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
    model = build_model(graph, domains, settings.shape, None if line is None else line.model)
    model.initialise(derive_generator(seed, "initialise"))
    model.float().to(device)
    kept = _checkpoint(checkpoint, graph, domains, train, validation, settings, seed)
    joint = settings.joint
    held_out = None if validation is None else Rows.of(model, *validation, joint=joint)
    trainer = Trainer(model, Rows.of(model, *train, joint=joint), held_out, settings, seed, kept)
    history = trainer.run(watch)
    model.double().cpu()
    if not settings.compare_linear or line is None or validation is None:
        return Fitted(model, history, "network", None)
    comparison = _compare(model, line.model, validation, seed)
    if comparison["gain"] > ERRORS_TO_BEAT * comparison["standard_error"]:
        return Fitted(model, history, "network", comparison)
    logger.info(
        "held-out rows do not favour the network over the line (gain %.4f ± %.4f nats a row): "
        "the linear model is used.",
        comparison["gain"],
        comparison["standard_error"],
    )
    return replace(
        _only_line(fit_line(graph, domains, *everything, start=line.model)),
        history=history,
        comparison=comparison,
    )


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
    return Checkpoint(folder, "network", fingerprint(about, tensors))
