r"""The command `misscnf`: a table of verbs. What each does is in `misscnf.commands`.

    misscnf demo
    misscnf check  data.csv --graph graph.dot
    misscnf fit    data.csv --graph graph.dot --out model
    misscnf effect model --on y --do t=1 --versus t=0

What cannot be done is said in a sentence on standard error, with exit code 2 and nothing written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from misscnf import __version__
from misscnf.commands.bench import bench
from misscnf.commands.check import check
from misscnf.commands.counterfactual import counterfactual
from misscnf.commands.demo import demo
from misscnf.commands.effect import effect
from misscnf.commands.endings import Verbs
from misscnf.commands.fit import fit
from misscnf.commands.impute import impute
from misscnf.commands.log_prob import log_prob
from misscnf.commands.report import report
from misscnf.commands.sample import sample

__all__ = ["app", "VERBS"]

app = typer.Typer(
    name="misscnf",
    cls=Verbs,
    help="Causal normalizing flows learned from tables with holes.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"max_content_width": 100, "help_option_names": ["--help", "-h"]},
)

VERBS: dict[str, tuple[Callable[..., None], str]] = {
    "demo": (demo, "demo --out nhefs"),
    "check": (check, "check data.csv --graph graph.dot --effect t:y"),
    "fit": (fit, "fit data.csv --graph graph.dot --out model"),
    "effect": (effect, "effect model --on y --do t=1 --versus t=0"),
    "sample": (sample, "sample model --rows 1000 --do t=1 --out samples.csv"),
    "counterfactual": (
        counterfactual,
        "counterfactual model data.csv --do t=0 --draws 20 --out cf.csv",
    ),
    "impute": (impute, "impute model data.csv --draws 5 --out completed.csv"),
    "log-prob": (log_prob, "log-prob model data.csv --out scores.csv"),
    "report": (report, "report model data.csv --effect t:y --out report.html"),
}
"""Each verb with its example, in the order in which a person needs them."""

for _name, (_verb, _example) in VERBS.items():
    app.command(_name, epilog=f"Example: misscnf {_example}")(_verb)
app.add_typer(bench, name="bench")


def _show_version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        typer.echo(f"misscnf {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: misscnf fit data.csv --graph graph.dot --out model")
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Causal normalizing flows learned from tables with holes."""
