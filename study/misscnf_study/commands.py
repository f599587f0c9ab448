r"""What the commands of the study do: suites, runner, store and reports meet here, only here."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from misscnf import PRESETS, InputError
from misscnf_study.methods import METHODS, load_method
from misscnf_study.published import published
from misscnf_study.real import REAL, answers_table
from misscnf_study.store import Store
from misscnf_study.suites import COMPLETE, SUITES, Suite, Trial, choose, grid

KNOWN: dict[str, Suite] = {**SUITES, REAL.name: REAL}
"""Every suite that can be run: the paper's, and real tables."""

__all__ = ["choose_trials", "run_trials", "print_table", "save_figures", "listing"]

Chosen: TypeAlias = Mapping[str, Sequence[str] | Sequence[float] | None]
"""What to narrow rows to, by column; None for no matter what."""


def choose_trials(
    name: str,
    *,
    method: Sequence[str] = (),
    preset: Sequence[str] = (),
    **options: Any,  # noqa: ANN401 - those of `grid`
) -> list[Trial]:
    """Lists the trials of a suite that options leave, or the one trial of an id.

    Arguments:
        name: A suite, or a trial's id.
        method: Methods; each must be able to run.
        preset: Presets.
        options: The other options of `grid`.

    Raises:
        InputError: If something is not known.
    """
    if "-" in name:
        trial = Trial.read(name)
        if method or preset or any(options.values()):
            raise InputError(f"{name} says all there is to say; leave the other options out.")
        return choose_trials(
            trial.suite,
            **{key: (value,) for key, value in _named(trial).items()},
            rows=trial.rows,
            epochs=trial.epochs,
        )
    suite = load_suite(name)
    choose("preset", preset, PRESETS, "misscnf")
    if suite is REAL:
        choose("method", method, REAL.methods, "the suite real")
    else:
        for each in method:
            load_method(each)
    return grid(suite, method=method, preset=preset, **options)


def _named(trial: Trial) -> dict[str, Any]:
    """Returns the fields of a trial that narrow its suite to it."""
    fields = {
        "scm": trial.scm,
        "method": trial.method,
        "preset": trial.preset,
        "seed": trial.seed,
        "draws": trial.draws,
    }
    if trial.method != "full":
        fields |= {"mechanism": trial.mechanism, "rate": trial.rate}
    return {name: value for name, value in fields.items() if value is not None}


def load_suite(name: str) -> Suite:
    """Returns a suite by its name.

    Raises:
        InputError: If there is no such suite.
    """
    if name in KNOWN:
        return KNOWN[name]
    close = difflib.get_close_matches(name, KNOWN)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(KNOWN)}."
    raise InputError(f"SUITE: there is no {name!r}; {hint}")


def run_trials(
    trials: Sequence[Trial],
    folder: Path,
    *,
    jobs: int = 1,
    backend: str = "loky",
    cluster: str | None = None,
    redo: str = "none",
    dry_run: bool = False,
    quiet: bool = False,
) -> int:
    """Runs the trials that a store does not have, and returns the exit code.

    Arguments:
        trials: The trials.
        folder: The store.
        jobs: Trials at a time.
        backend: Where workers run.
        cluster: The address of a cluster.
        redo: Which of those it has to run again: "none", "failed" or "all".
        dry_run: Whether to only list them.
        quiet: Whether to show no progress.
    """
    if jobs < 1 and jobs != -1:
        raise InputError(f"--jobs is a whole number of at least 1, or -1; got {jobs}.")
    store = Store(folder)
    suite = trials[0].suite
    status = store.rows(suite)["status"]
    again = {"none": set(), "failed": {"failed"}, "all": {"ok", "failed", "impossible"}}[redo]
    pending = [trial for trial in trials if status.get(trial.id, "") in {"", *again}]
    if dry_run:
        print("\n".join(trial.id for trial in pending))
        return 0
    from misscnf_study.display import SweepDisplay
    from misscnf_study.runner import Outcome, sweep

    workers = jobs if jobs > 0 else os.cpu_count() or 1
    display = SweepDisplay(len(pending), jobs=workers, quiet=quiet)

    def keep(outcome: Outcome) -> None:
        store.add(outcome.trial, outcome.row, outcome.curve)
        display(outcome)

    try:
        with display.bar:
            sweep(
                pending,
                keep,
                jobs=jobs,
                backend=backend,
                cluster=cluster,
                unfinished=store.unfinished,
            )
    except KeyboardInterrupt:
        print("misscnf: stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    if not quiet:
        had = len(trials) - len(pending)
        counts = ", ".join(f"{count} {name}" for name, count in sorted(display.counts.items()))
        ran = f"ran {len(pending)} ({counts})" if pending else "nothing left to run"
        print(f"{ran}; the store {folder} had {had} of {len(trials)} trials", file=sys.stderr)
    return 1 if display.counts["failed"] else 0


def print_table(
    name: str,
    metric: str,
    folder: Path,
    form: str,
    chosen: Chosen,
    *,
    against: str | None = None,
) -> str:
    """Returns the table of a suite as text.

    Arguments:
        name: The suite.
        metric: A number of its rows.
        folder: The store.
        form: "md", "csv" or "latex".
        chosen: What to narrow the rows to, by column.
        against: "published" to hold them against the paper's numbers.
    """
    from misscnf_study.table_formats import render
    from misscnf_study.tables import compare_table, make_table

    rows = _rows(Store(folder), name, chosen)
    if name == REAL.name:
        return rows.to_csv() if form == "csv" else answers_table(rows)
    if against is None:
        return render(make_table(rows, metric), form)
    if published(name, metric).empty:
        raise InputError(f"--against: the paper prints no {metric!r} of the suite {name}.")
    return render(compare_table(rows, metric), form)


def save_figures(
    name: str,
    metric: str,
    folder: Path,
    out: Path,
    form: str,
    chosen: Chosen,
) -> list[Path]:
    """Draws the figures of a suite and returns where they are.

    Arguments:
        name: The suite.
        metric: A number of its rows.
        folder: The store.
        out: The directory for figures.
        form: "png", "pdf" or "svg".
        chosen: What to narrow the rows to, by column.
    """
    from misscnf_study.figures import draw_figures

    if name == REAL.name:
        raise InputError("SUITE: real tables have a table (misscnf bench table real), no figure.")
    store = Store(folder)
    rows = _rows(store, name, chosen)
    figures = draw_figures(rows, store.curves(name), metric)
    if out.exists() and not out.is_dir():
        raise InputError(f"--out: {str(out)!r} is a file; name a directory.")
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for title, figure in figures.items():
        paths.append(out / f"{title}.{form}")
        figure.savefig(paths[-1])
    return paths


def listing(folder: Path) -> str:
    """Returns suites, methods and presets as text, with what a store has."""
    store = Store(folder)
    lines = []
    for name, suite in KNOWN.items():
        trials = {trial.id for trial in grid(suite)}
        have = len(trials & set(store.rows(name).index))
        losses = [loss if rate is None else f"{loss} {rate:g}" for loss, rate in suite.losses]
        lines += [
            f"{name}: {suite.about}",
            f"  trials      {len(trials)}, of which {folder} has {have}",
            f"  scm         {' '.join(suite.scms)}",
            *([f"  also        {' '.join(suite.more_scms)}"] if suite.more_scms else []),
            f"  mechanism   {', '.join(losses)}",
            f"  method      {' '.join(suite.methods)}",
            f"  preset      {suite.preset}",
            f"  seed        {' '.join(map(str, suite.seeds))}",
            *([f"  draws       {' '.join(map(str, suite.draws))}"] if any(suite.draws) else []),
            "",
        ]
    lines += [
        f"methods that run: {' '.join(METHODS)} sklearn:package.module:Class",
        f"presets: {' '.join(PRESETS)}",
    ]
    return "\n".join(lines) + "\n"


def _rows(store: Store, name: str, chosen: Chosen) -> pd.DataFrame:
    """Returns the rows of a suite that have the chosen values; the reference has any loss."""
    load_suite(name)
    rows = store.rows(name)
    if rows.empty:
        raise InputError(
            f"the store {str(store.folder)!r} has no rows of the suite {name} yet; "
            f"misscnf bench run {name} makes them."
        )
    for column, values in chosen.items():
        if not values:
            continue
        choose(column, values, rows[column].dropna().unique(), f"the store {str(store.folder)!r}")
        fits = rows[column].isin(list(values))
        if column in ("mechanism", "rate"):
            fits |= rows["mechanism"] == COMPLETE
        rows = rows[fits]
    if rows.empty:
        raise InputError(f"no row of the suite {name} in {str(store.folder)!r} fits all options.")
    return rows
