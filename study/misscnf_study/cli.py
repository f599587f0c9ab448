r"""`misscnf bench`: the study of the paper, run, stored and printed.

    misscnf bench run main --scm chain_lin --mechanism mar --rate 0.6 --method misscnf --seed 7
    misscnf bench table main --metric kl --against published
    misscnf bench figure main --metric kl --out figures
    misscnf bench list

Rows are kept in a store: `study/results` at the root of a clone, which has those of the study;
elsewhere `results` in the folder where one is; or what `--store` names. A sweep in which a trial
failed ends with exit code 1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from misscnf.cli.plugin import in_a_sentence

__all__ = ["bench"]

bench = typer.Typer(
    help="The study of the paper: run it, store it, print it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _named(name: str, what: str) -> Any:  # noqa: ANN401 - typer's
    return typer.Option(name, metavar=name.removeprefix("--").upper(), help=what)


def _usual_store() -> Path:
    """Returns where results are: at the root of a clone those of the study, elsewhere here."""
    of_clone = Path("study", "results")
    return of_clone if of_clone.is_dir() else Path("results")


SuiteName = Annotated[str, typer.Argument(metavar="SUITE", help="A suite, as `list` has them.")]
Scms = Annotated[list[str] | None, _named("--scm", "A world.")]
Mechanisms = Annotated[list[str] | None, _named("--mechanism", "A way of losing values.")]
Rates = Annotated[list[float] | None, _named("--rate", "A share of cells lost, such as 0.6.")]
Methods = Annotated[list[str] | None, _named("--method", "A method.")]
Presets = Annotated[list[str] | None, _named("--preset", "A preset of the flow.")]
Seeds = Annotated[list[int] | None, _named("--seed", "A seed.")]
Draws = Annotated[list[int] | None, _named("--draws", "Draws in a step of the fit.")]
StoreFolder = Annotated[
    Path,
    typer.Option(
        "--store",
        metavar="DIR",
        default_factory=_usual_store,
        show_default="study/results in a clone, else results",
        help="The results.",
    ),
]
Metric = Annotated[
    str, typer.Option(metavar="NAME", help="kl, kl_exact, ate, ate_exact, cf or seconds.")
]


@bench.command(
    "run",
    epilog="Example: misscnf bench run main --scm chain_lin --mechanism mar --rate 0.6 --jobs 2",
)
@in_a_sentence
def run(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="A suite, or the id of a trial.")],
    *,
    scm: Scms = None,
    mechanism: Mechanisms = None,
    rate: Rates = None,
    method: Methods = None,
    preset: Presets = None,
    seed: Seeds = None,
    draws: Draws = None,
    rows: Annotated[int | None, _named("--rows", "Train on fewer rows, for a quick look.")] = None,
    epochs: Annotated[int | None, _named("--epochs", "Train for so many epochs.")] = None,
    store: StoreFolder,
    jobs: Annotated[int, _named("--jobs", "Trials at a time; -1 for one a core.")] = 1,
    backend: Annotated[
        Literal["loky", "dask", "ray"], typer.Option(help="Where they run.")
    ] = "loky",
    cluster: Annotated[str | None, _named("--cluster", "The address of a cluster.")] = None,
    redo: Annotated[
        Literal["none", "failed", "all"], typer.Option(help="What to run again.")
    ] = "none",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the trials.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
) -> None:
    """Run what the store does not have. Options narrow a suite; repeated ones add up."""
    from misscnf_study.commands import choose_trials, run_trials

    trials = choose_trials(
        suite,
        scm=scm or (),
        mechanism=mechanism or (),
        rate=rate or (),
        method=method or (),
        preset=preset or (),
        seed=seed or (),
        draws=draws or (),
        rows=rows,
        epochs=epochs,
    )
    raise typer.Exit(
        run_trials(
            trials,
            store,
            jobs=jobs,
            backend=backend,
            cluster=cluster,
            redo=redo,
            dry_run=dry_run,
            quiet=quiet,
        )
    )


@bench.command("table", epilog="Example: misscnf bench table main --metric kl --against published")
@in_a_sentence
def table(
    suite: SuiteName,
    *,
    metric: Metric = "kl",
    against: Annotated[
        Literal["published"] | None, typer.Option(help="Beside the paper's numbers.")
    ] = None,
    form: Annotated[
        Literal["md", "csv", "latex"], typer.Option("--format", help="Its format.")
    ] = "md",
    scm: Scms = None,
    mechanism: Mechanisms = None,
    rate: Rates = None,
    method: Methods = None,
    preset: Presets = None,
    store: StoreFolder,
) -> None:
    """Print a suite as the paper does. Best in bold, second underlined, full data apart."""
    from misscnf_study.commands import print_table

    chosen = {"scm": scm, "mechanism": mechanism, "rate": rate, "method": method, "preset": preset}
    typer.echo(print_table(suite, metric, store, form, chosen, against=against), nl=False)


@bench.command("figure", epilog="Example: misscnf bench figure main --metric kl --out figures")
@in_a_sentence
def figure(
    suite: SuiteName,
    *,
    metric: Metric = "kl",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where figures go.")] = Path("figures"),
    form: Annotated[
        Literal["png", "pdf", "svg"], typer.Option("--format", help="Its format.")
    ] = "png",
    scm: Scms = None,
    mechanism: Mechanisms = None,
    rate: Rates = None,
    method: Methods = None,
    preset: Presets = None,
    store: StoreFolder,
) -> None:
    """Draw a suite from what the store has."""
    from misscnf_study.commands import save_figures

    chosen = {"scm": scm, "mechanism": mechanism, "rate": rate, "method": method, "preset": preset}
    for path in save_figures(suite, metric, store, out, form, chosen):
        typer.echo(path)


@bench.command("list", epilog="Example: misscnf bench list")
@in_a_sentence
def list_(store: StoreFolder) -> None:
    """List suites, methods and presets. Says how much of a suite the store has."""
    from misscnf_study.commands import listing

    typer.echo(listing(store), nl=False)
