"""`misscnf counterfactual`: what each row would have been, had a column been something else."""

from __future__ import annotations

from typing import Annotated

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import Data, Json, Model, Out, Quiet, Seed, option

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
    out: Out = "-",
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what each row would have been under an intervention. Rows may have holes.

    Several draws are told apart by the columns .draw and .id, the number of a row in DATA. Columns
    outside the graph are carried along.
    """
    from misscnf.cli import arguments, inputs, outputs

    outputs.check_table_target(out, json=json)
    fitted = inputs.open_model(model, quiet=quiet)
    arm = arguments.read_arm(do, "--do", fitted)
    frame = inputs.read_model_rows(data, fitted)
    with inputs.naming(inputs.shown(data)):
        drawn = fitted.counterfactual(frame, arm, draws=draws, seed=seed)
        table = outputs.carry_along(frame, drawn)
        if draws is not None:
            table = outputs.number_rows(table, ".draw", draws)
    outputs.write_table(table, out, json=json)
