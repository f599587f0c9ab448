"""A table with holes, a graph, and a known answer: truth beside estimate.

Severity drives both who gets a high dose and how long recovery takes; the dose shortens it. Dose
and severity are lost more often the longer recovery took, so that complete rows are a skewed
sample, and half of all rows have a hole. The demo asks for the effect of raising the dose from 1
to 2, and for what one patient's recovery would have been.

    make demo
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from misscnf import MissCNF

GRAPH = "severity -> dose; severity -> days; dose -> days"
ROWS = 4000


def severity_to_dose(severity: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Worse cases get more, up to a ceiling."""
    return 3 / (1 + np.exp(-severity)) + 0.4 * noise


def days(severity: np.ndarray, dose: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Recovery: worse cases take longer, the dose helps with diminishing returns."""
    return 12 + 2.5 * severity + 0.5 * severity**2 - 6 * np.tanh(dose / 1.5) + noise


def simulate(rng: np.random.Generator) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the complete table, and the one with holes that depend on what is seen."""
    noise = rng.normal(size=(3, ROWS))
    severity = noise[0]
    dose = severity_to_dose(severity, noise[1])
    df = pd.DataFrame({"severity": severity, "dose": dose, "days": days(severity, dose, noise[2])})
    holes = df.copy()
    standard = (df.days - df.days.mean()) / df.days.std()
    for column in ("severity", "dose"):
        holes.loc[rng.random(ROWS) < 1 / (1 + np.exp(0.8 - 1.5 * standard)), column] = np.nan
    return df, holes


def regression_effect(df: pd.DataFrame) -> float:
    """Returns the effect that a regression on complete rows gives."""
    rows = df.dropna()
    design = np.column_stack([np.ones(len(rows)), rows.severity, rows.dose])
    return float(np.linalg.lstsq(design, rows.days, rcond=None)[0][2])


def main() -> None:
    """Runs the demo."""
    console = Console()
    rng = np.random.default_rng(0)
    complete, holes = simulate(rng)
    share = holes.isna().any(axis=1).mean()
    console.print(f"{ROWS} patients, {share:.0%} of them with a hole; graph: {GRAPH}\n")
    started = time.perf_counter()
    model = MissCNF(GRAPH, seed=0).fit(holes)
    seconds = time.perf_counter() - started

    severity = rng.normal(size=1_000_000)
    truth = float(np.mean(days(severity, 2.0, 0.0) - days(severity, 1.0, 0.0)))
    effect = model.effect("days", do={"dose": 2.0}, versus={"dose": 1.0})
    table = Table(title="effect on recovery (days) of a dose of 2 instead of 1")
    table.add_column("")
    table.add_column("days", justify="right")
    table.add_row("truth", f"{truth:.2f}")
    table.add_row("misscnf, all rows", f"[bold]{effect.estimate:.2f}[/bold]")
    table.add_row("regression on complete rows", f"{regression_effect(holes):.2f}")
    console.print(table)

    patient = holes.index[holes.severity.isna() & holes.dose.notna()][0]
    row, true_row = holes.loc[[patient]], complete.loc[patient]
    draws = model.counterfactual(row, do={"dose": 3.0}, draws=500)["days"]
    noise = true_row.days - days(true_row.severity, true_row.dose, 0.0)
    answer = days(true_row.severity, 3.0, noise)
    low, high = np.quantile(draws, [0.05, 0.95])
    console.print(
        f"\npatient {patient}: dose {true_row.dose:.2f}, {true_row.days:.1f} days, severity "
        f"unknown. With a dose of 3 it would have been {draws.mean():.1f} days (90 % of the "
        f"posterior between {low:.1f} and {high:.1f}); truth {answer:.1f}."
    )
    gain, error = model.comparison_["gain"], model.comparison_["standard_error"]
    console.print(
        f"\nfitted in {seconds:.1f} s ({model.chosen_} mechanisms); held-out gain over a linear "
        f"model {gain:.3f} ± {error:.3f} nats a row."
    )


if __name__ == "__main__":
    main()
