"""What a sweep shows while it runs, on standard error: done, running, failed, time left."""

from __future__ import annotations

import sys
import time
from collections import Counter

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from misscnf_study.runner import Outcome

__all__ = ["SweepDisplay"]

SHOWN = ("kl", "ate", "cf", "answer", "estimate", "lower", "upper")
"""The numbers of a row that its line shows."""


class SweepDisplay:
    """A line for each trial that ends and, in a terminal, a bar below them: `with display.bar:`.

    Arguments:
        total: Trials to run.
        jobs: Trials at a time.
        quiet: Whether to show nothing.
    """

    def __init__(self, total: int, *, jobs: int = 1, quiet: bool = False) -> None:
        self.total, self.jobs, self.quiet = total, max(1, jobs), quiet
        self.counts: Counter[str] = Counter()
        self._started = time.monotonic()
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self.bar = Progress(
            BarColumn(),
            TextColumn("{task.fields[state]}"),
            console=self._console,
            disable=quiet or not sys.stderr.isatty(),
            transient=True,
        )
        self._task = self.bar.add_task("", total=total, state=self.state())

    def __call__(self, outcome: Outcome) -> None:
        """Takes the outcome of a trial."""
        self.counts[str(outcome.row["status"])] += 1
        self.bar.update(self._task, advance=1, state=self.state())
        if not self.quiet:
            self._console.print(f"{outcome.trial.id}  {_result(outcome)}", markup=False)

    def state(self) -> str:
        """Returns where the sweep stands, in words."""
        done = self.counts.total()
        left = self.total - done
        words = [f"{done} of {self.total} done", f"{min(left, self.jobs)} running"]
        words += [f"{self.counts[name]} {name}" for name in ("failed", "impossible")]
        if done and left:
            elapsed = time.monotonic() - self._started
            words.append(f"{_duration(elapsed / done * left)} left")
        return ", ".join(words)


def _result(outcome: Outcome) -> str:
    row = outcome.row
    if row["status"] != "ok":
        return f"{row['status']}: {row['error']}"
    told = [f"{name} {row[name]:.4g}" for name in SHOWN if name in row]
    return f"{'  '.join(told)}  {row['seconds']:.1f} s"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
