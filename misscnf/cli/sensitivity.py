"""`misscnf sensitivity`: an effect along what cannot be known of a loss, and where it tips."""

from __future__ import annotations

from typing import Annotated

import typer

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import Dates, Decimal, Json, Na, Quiet, Seed, Separator, option
from misscnf.errors import InputError

__all__ = ["sensitivity"]


@in_a_sentence
def sensitivity(
    model: Annotated[str, typer.Argument(metavar="MODEL", hidden=True)],
    *,
    on: Annotated[str, option("--on", "The outcome.", "NAME")],
    do: Annotated[list[str], option("--do", "First arm, such as t=1.", "NAME=VALUE")],
    versus: Annotated[
        list[str] | None,
        option("--versus", "Second arm; without it, no intervention.", "NAME=VALUE"),
    ] = None,
    loss: Annotated[
        str | None, option("--loss", "The column that is lost; --on by default.", "NAME")
    ] = None,
    strength: Annotated[
        str | None,
        option("--strength", "Log-odds of a loss by its own value: -2:2:0.4 or -1,0,1.", "GRID"),
    ] = None,
    shift: Annotated[
        str | None, option("--shift", "Added to lost values: 0:5:0.5 or 0,1,2.", "GRID")
    ] = None,
    ratio: Annotated[
        str | None,
        option("--ratio", "Times lost values, rates of counts, odds of events.", "GRID"),
    ] = None,
    reference: Annotated[
        str | None,
        option("--reference", "Who left follows: MAR, J2R, CIR, CR, LMCF, or some.", "REGIMES"),
    ] = None,
    arm: Annotated[
        str | None,
        option("--arm", "Of a shift or ratio: do, versus, or grid for both apart.", "ARM"),
    ] = None,
    data: Annotated[
        str | None, option("--data", "The table of the fit, which is needed.", "FILE")
    ] = None,
    interval: Annotated[
        float, option("--interval", "Intervals of this level; 0 leaves them out.", "LEVEL")
    ] = 0.95,
    event: Annotated[
        str | None, option("--event", "The level whose risk is compared.", "LEVEL")
    ] = None,
    out: Annotated[
        str | None, option("--out", "Where the table goes, such as curve.csv.", "FILE")
    ] = None,
    plot: Annotated[
        str | None, option("--plot", "Where the picture goes: .png, .svg or .pdf.", "FILE")
    ] = None,
    seed: Seed = 0,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say how an effect changes if the loss is worse than it looks."""
    from misscnf.cli import arguments, inputs, outputs

    if out is not None:
        outputs.check_table_target(out, json=False)
    if plot is not None:
        outputs.check_picture(plot)
    arguments.check_share(interval or None, "--interval")
    along = arguments.read_along({"strength": strength, "shift": shift, "ratio": ratio}, arm)
    if bool(along) == (reference is not None):
        raise InputError("give one of --strength, --shift, --ratio and --reference.")
    if reference is not None:
        along = {"reference": [name.strip() for name in reference.split(",")]}
    if data is None:
        raise InputError("--data is needed: the table that the model was fitted to.")
    how = inputs.reading(na, sep, decimal, dates)
    asked = inputs.outline(model)
    if asked.panel_ is None:
        inputs.check_nodes([on], asked.graph_, "--on")
    inputs.check_nodes([loss] if loss else [], asked.graph_, "--loss")
    first = arguments.read_arm(do, "--do", asked)
    second = arguments.read_arm(versus, "--versus", asked)
    level = arguments.read_event(event, on, asked)
    table = inputs.read_table_of_fit(data, asked, how)
    fitted = inputs.open_model(model, quiet=quiet)
    blamed = "loss" if loss and not reference else next(iter(along))
    with inputs.naming(f"--{blamed}"):
        found = fitted.sensitivity(
            on,
            first,
            second or None,
            loss=loss,
            event=level,
            interval=interval or None,
            data=table,
            seed=seed,
            **along,
        )
    if out is not None:
        outputs.write_tables({out: found.to_frame()})
    if plot is not None:
        outputs.write_picture(plot, found.plot())
    if json:
        outputs.print_json(found.to_dict())
    else:
        typer.echo(str(found))
