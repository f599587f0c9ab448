r"""The command `misscnf`: a table of verbs. What each does is in `misscnf.cli`.

    misscnf demo
    misscnf check  data.csv --graph graph.dot
    misscnf fit    data.csv --graph graph.dot --out model
    misscnf effect model --on y --do t=1 --versus t=0

What cannot be done is said in a sentence on standard error, with exit code 2 and nothing written.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated

import typer

from misscnf import __version__
from misscnf.cli.check import check
from misscnf.cli.counterfactual import counterfactual
from misscnf.cli.demo import demo
from misscnf.cli.effect import effect
from misscnf.cli.endings import Verbs, in_a_sentence
from misscnf.cli.fit import fit
from misscnf.cli.impute import impute
from misscnf.cli.log_prob import log_prob
from misscnf.cli.report import report
from misscnf.cli.risk import risk
from misscnf.cli.sample import sample
from misscnf.cli.sensitivity import sensitivity
from misscnf.cli.studio import studio
from misscnf.errors import InputError

__all__ = ["app", "VERBS", "add_plug_ins"]

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
    "risk": (risk, "risk model --on death --do A=1 --versus A=0"),
    "sensitivity": (
        sensitivity,
        "sensitivity model --on y --do t=1 --versus t=0 --shift 0:5:0.5 --data data.csv",
    ),
    "sample": (sample, "sample model --rows 1000 --do t=1 --out samples.csv"),
    "counterfactual": (
        counterfactual,
        "counterfactual model data.csv --do t=0 --draws 20 --out cf.csv",
    ),
    "impute": (impute, "impute model data.csv --draws 5 --out completed.csv"),
    "log-prob": (log_prob, "log-prob model data.csv --out scores.csv"),
    "report": (report, "report model data.csv --effect t:y --out report.html"),
    "studio": (studio, "studio data.csv --graph graph.dot"),
}
"""Each verb with its example, in the order in which a person needs them."""

for _name, (_verb, _example) in VERBS.items():
    app.command(_name, epilog=f"Example: misscnf {_example}")(_verb)


INSTALL_THE_STUDY = (
    "the study of the paper is a package of its own; install it with `pip install misscnf-study`, "
    "or with `pip install ./study` in a clone of the repository."
)


def add_plug_ins(app: typer.Typer) -> None:
    """Adds the verbs that other distributions bring, such as `bench` of the study.

    A verb that cannot be had is there too, and says why.
    """
    missing = {"bench": INSTALL_THE_STUDY}
    brought = {entry.name: entry for entry in entry_points(group="misscnf.commands")}
    for name, entry in sorted(brought.items()):
        try:
            app.add_typer(entry.load(), name=name)
            missing.pop(name, None)
        except (ImportError, AttributeError) as error:
            missing[name] = (
                f"{name} comes from {entry.value}, which cannot be imported ({error}); "
                "install its distribution anew."
            )
    for name, why in missing.items():
        _add_missing(app, name, why)


def _add_missing(app: typer.Typer, name: str, why: str) -> None:
    taken = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(
        name,
        help=f"Not installed: {why}",
        short_help=f"Not installed; misscnf {name} says how to get it.",
        context_settings=taken,
    )
    @in_a_sentence
    def _verb() -> None:
        raise InputError(why)


add_plug_ins(app)


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
