"""`misscnf counterfactual`: what each row would have been, had a column been something else."""

from __future__ import annotations

from typing import Annotated

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import (
    Data,
    Dates,
    Decimal,
    Json,
    Model,
    Na,
    Out,
    Quiet,
    Seed,
    Separator,
    option,
)

__all__ = ["counterfactual"]


@in_a_sentence
def counterfactual(
    model: Model,
    data: Data,
    *,
    do: Annotated[
        list[str], option("--do", "An intervention: t=0, 'dose=dose+1'; repeatable.", "NAME=VALUE")
    ],
    draws: Annotated[
        int | None, option("--draws", "Draws of each row, in long form.", "N", min=1)
    ] = None,
    interval: Annotated[
        float | None,
        option("--interval", "A line a row, with intervals of this level.", "LEVEL"),
    ] = None,
    out: Out = "-",
    seed: Seed = 0,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what each row would have been under an intervention. Rows may have holes.

    Several draws are told apart by the columns .draw and .id, the number of a row in DATA. Columns
    outside the graph are carried along.
    """
    from misscnf.cli import arguments, inputs, outputs

    outputs.check_table_target(out, json=json)
    arguments.check_share(interval, "--interval")
    how = inputs.reading(na, sep, decimal, dates)
    asked = inputs.outline(model)
    arm = arguments.read_arm(do, "--do", asked)
    frame = inputs.read_model_rows(data, asked, how)
    fitted = inputs.open_model(model, quiet=quiet)
    with inputs.naming(inputs.shown(data)):
        if interval is not None:
            inputs.check_replicated(fitted, frame)
        drawn = fitted.counterfactual(frame, arm, draws=draws, interval=interval, seed=seed)
        table = outputs.carry_along(frame, drawn)
        if draws is not None and interval is None:
            table = outputs.number_rows(table, ".draw", draws)
    inputs.keep_replicates(fitted, model)
    outputs.write_table(table, out, json=json)
