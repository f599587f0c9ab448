r"""`misscnf risk`: how many have had an event by each visit, under a regime or two.

misscnf risk model --on death --do A=1 --versus A=0 --interval 0.95 --data long.csv
misscnf risk model --on death --do 'A=L[t] < 350'       # a rule at every visit
"""

from __future__ import annotations

from typing import Annotated

import typer

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import Dates, Decimal, Json, Model, Na, Quiet, Seed, Separator, option
from misscnf.errors import InputError

__all__ = ["risk"]


@in_a_sentence
def risk(
    model: Model,
    *,
    on: Annotated[str, option("--on", "The event.", "NAME")],
    do: Annotated[
        list[str] | None,
        option("--do", "First arm, at every visit: A=1, 'A=L[t] < 350'.", "NAME=VALUE"),
    ] = None,
    versus: Annotated[
        list[str] | None,
        option("--versus", "Second arm; 'natural' is the natural course.", "NAME=VALUE"),
    ] = None,
    interval: Annotated[
        float | None, option("--interval", "Intervals of this level, such as 0.95.", "LEVEL")
    ] = None,
    data: Annotated[
        str | None,
        option("--data", "The table of the fit, which the first interval needs.", "FILE"),
    ] = None,
    where: Annotated[
        str | None, option("--where", "Only within a group, such as 'age > 60'.", "CONDITION")
    ] = None,
    competing: Annotated[
        str, option("--competing", "Other events: total (as they are) or removed.", "HOW")
    ] = "total",
    out: Annotated[
        str | None, option("--out", "Where the table goes, such as risks.csv.", "FILE")
    ] = None,
    plot: Annotated[
        str | None, option("--plot", "Where the picture goes: .png, .svg or .pdf.", "FILE")
    ] = None,
    draws: Annotated[int, option("--draws", "Units that are averaged.", "N", min=2)] = 100_000,
    seed: Seed = 0,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say how many have had an event by each visit, under regimes.

    MODEL is a folder that `misscnf fit` made of a table over time.
    """
    from misscnf.cli import arguments, inputs, outputs

    if out is not None:
        outputs.check_table_target(out, json=False)
    if plot is not None:
        outputs.check_picture(plot)
    arguments.check_share(interval, "--interval")
    if competing not in ("total", "removed"):
        raise InputError(f"--competing is total or removed; got {competing!r}.")
    arm = arguments.read_regime(do, "--do") or {}
    against = arguments.read_regime(versus, "--versus")
    how = inputs.reading(na, sep, decimal, dates)
    asked = inputs.outline(model)
    rows = None if data is None else inputs.read_model_rows(data, asked, how)
    fitted = inputs.open_model(model, quiet=quiet)
    if interval is not None and data is None and not fitted._replicated:
        raise InputError("--interval needs --data, the table that the model was fitted to.")
    with inputs.naming("--on" if not do else "--do"):
        found = fitted.risk(
            on,
            arm,
            against,
            where=where,
            competing="removed" if competing == "removed" else "total",
            interval=interval,
            data=rows,
            draws=draws,
            seed=seed,
        )
    inputs.keep_replicates(fitted, model)
    if out is not None:
        outputs.write_tables({out: found.table})
    if plot is not None:
        outputs.write_picture(plot, found.plot())
    if json:
        outputs.print_json(found.to_dict())
    else:
        typer.echo(str(found))
