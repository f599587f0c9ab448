r"""Runs trials: make the tables, fit the method, measure it against the truth.

A trial knows nothing of others, and nothing of where its row goes: `sweep` hands each outcome to
whoever keeps it, as soon as it is there. A trial that fails is an outcome with its error; even
one that takes its worker process down with it (out of memory, say) is no more than that.

Each trial has one thread of torch and one of BLAS, however many run at a time, so that its numbers
do not depend on that.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from misscnf import InputError, MissCNF, __version__
from misscnf_study.data import TrialData, make_data
from misscnf_study.losses import TwoPatterns
from misscnf_study.methods import Flow, load_method
from misscnf_study.metrics import (
    ate_error,
    cf_error,
    exact_ate_error,
    exact_kl,
    local_kl,
    symmetric_kl,
)
from misscnf_study.real import REAL
from misscnf_study.real import measure as measure_answer
from misscnf_study.rivals import ImpossibleError
from misscnf_study.suites import SUITES, Cell, Trial
from misscnf_study.workers import lost_workers, run_alone, run_parallel

__all__ = ["Outcome", "run_trial", "sweep"]


@dataclass(frozen=True)
class Outcome:
    """What came of a trial."""

    trial: Trial
    row: dict[str, Cell]
    """Its numbers, status, error and version."""
    curve: pd.DataFrame | None = None
    """The local KL, where the suite asks for it."""


def run_trial(trial: Trial, unfinished: Path | None = None) -> Outcome:
    """Runs a trial; whatever goes wrong in it is part of the outcome.

    Arguments:
        trial: The trial.
        unfinished: A directory for checkpoints, so that a killed trial goes on; None for none.
    """
    row: dict[str, Cell] = {"version": __version__}
    try:
        with _same_everywhere(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a row has no place for them
            numbers, curve = _measure(trial, unfinished)
    except ImpossibleError as error:
        return Outcome(trial, {**row, "status": "impossible", "error": str(error)})
    except Exception as error:  # a sweep goes on, whatever a method does
        return Outcome(trial, {**row, "status": "failed", "error": _sentence(error)})
    wrong = [name for name, value in numbers.items() if not np.isfinite(value)]
    status = {"status": "failed", "error": f"{', '.join(wrong)} not finite"} if wrong else {}
    return Outcome(trial, {**row, **numbers, "status": "ok", **status}, curve)


def sweep(
    trials: Sequence[Trial],
    keep: Callable[[Outcome], None],
    *,
    jobs: int = 1,
    backend: str = "loky",
    cluster: str | None = None,
    unfinished: Path | None = None,
) -> None:
    """Runs trials and hands over each outcome as it comes.

    Arguments:
        trials: The trials.
        keep: Takes an outcome; called in this process, by one trial at a time.
        jobs: Trials at a time; on a cluster, −1 for as many as it has workers.
        backend: One of `workers.BACKENDS`.
        cluster: The address of a cluster; one on this machine if None.
        unfinished: A directory for checkpoints; only this machine's workers use it.
    """
    if jobs == 1 and backend == "loky":
        for trial in trials:
            keep(run_trial(trial, unfinished))
        return
    left = {trial.id: trial for trial in trials}
    where = unfinished if backend == "loky" else None
    tasks = [(trial, where) for trial in trials]
    outcomes = run_parallel(run_trial, tasks, jobs=jobs, backend=backend, cluster=cluster)
    try:
        for outcome in outcomes:
            left.pop(outcome.trial.id)
            keep(outcome)
    except lost_workers():
        # Nobody knows whose worker died: what is left runs one by one, each on its own.
        for trial in left.values():
            keep(_run_alone(trial, unfinished))


def _measure(
    trial: Trial, unfinished: Path | None
) -> tuple[dict[str, float], pd.DataFrame | None]:
    if trial.suite == REAL.name:
        return measure_answer(trial), None
    data = make_data(trial.scm, trial.mechanism, trial.rate, trial.seed, trial.rows)
    flow = Flow(
        graph=data.world.graph,
        preset=trial.preset,
        seed=trial.seed,
        settings=_settings(trial),
        checkpoint=None if unfinished is None else unfinished / trial.id,
        kinds=data.world.kinds,
    )
    started = time.perf_counter()
    fitted = load_method(trial.method)(data.tables, flow)
    seconds = _seconds(fitted, time.perf_counter() - started)
    numbers = {**_distances(fitted, data, trial.seed), "seconds": seconds}
    suite = SUITES.get(trial.suite)
    return numbers, _curve(fitted, data) if suite is not None and suite.curves else None


def _distances(fitted: MissCNF, data: TrialData, seed: int) -> dict[str, float]:
    model, truth = fitted.structural_model(holes=False), data.world.model
    nodes = data.world.interventions
    return {
        "kl": symmetric_kl(model, truth, data.test, seed),
        "kl_exact": exact_kl(model, truth, seed=seed),
        "ate": ate_error(model, truth, nodes, seed),
        "ate_exact": exact_ate_error(model, truth, nodes, seed=seed),
        "cf": cf_error(model, truth, data.test, nodes, seed),
    }


def _curve(fitted: MissCNF, data: TrialData) -> pd.DataFrame:
    """Returns the local KL along the node that decides the pattern, and where the boundary is."""
    (cut,) = (data.world.graph.nodes[i] for i in TwoPatterns().reads(data.world.graph))
    curve = local_kl(fitted.structural_model(holes=False), data.world.model, data.test, cut)
    return curve.assign(cut=cut, boundary=data.tables.complete_train[cut].median())


def _settings(trial: Trial) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    if trial.epochs is not None:
        changes["epochs"] = trial.epochs
    if trial.draws is not None:
        changes |= {"integration.training.draws": trial.draws, "integration.training.adapt": False}
    return changes


def _seconds(fitted: MissCNF, elapsed: float) -> float:
    """Returns the time of imputing and fitting; of a fit that was resumed, all of its epochs."""
    epochs = fitted.history_["seconds"].sum() if "seconds" in fitted.history_ else 0.0
    return max(elapsed, float(epochs))


@contextlib.contextmanager
def _same_everywhere() -> Iterator[None]:
    """Gives a trial one thread and torch's usual precision, whatever process it runs in."""
    threads, dtype = torch.get_num_threads(), torch.get_default_dtype()
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float32)
    try:
        with threadpool_limits(limits=1):
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)


def _run_alone(trial: Trial, unfinished: Path | None) -> Outcome:
    try:
        return run_alone(run_trial, trial, unfinished)
    except lost_workers():
        error = "the process that ran it was killed; it may have needed more memory than there is"
        return Outcome(trial, {"version": __version__, "status": "failed", "error": error})


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split())
    text = text if isinstance(error, InputError) else f"{type(error).__name__}: {text}"
    return text if len(text) <= 500 else text[:499] + "…"
