"""`misscnf counterfactual`: what each row would have been, had a column been something else."""

from __future__ import annotations

from typing import Annotated

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import (
    Data,
    Dates,
    Decimal,
    Json,
    Memory,
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
    memory: Memory = None,
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
    outside the graph are carried along. Over time every visit of each person comes back, up to the
    event that ends their course in that world, and .draw tells draws apart.
    """
    import pandas as pd

    from misscnf.cli import arguments, inputs, outputs

    outputs.check_table_target(out, json=json)
    arguments.check_share(interval, "--interval")
    how = inputs.reading(na, sep, decimal, dates)
    asked = inputs.outline(model)
    arm = arguments.read_arm(do, "--do", asked)
    stream = inputs.read_model_stream(data, out, asked, memory, how)
    fitted = inputs.open_model(model, quiet=quiet)
    several = None if interval is not None else draws

    def worlds(rows: pd.DataFrame, seed: int, before: int = 0) -> pd.DataFrame:
        drawn = fitted.counterfactual(rows, arm, draws=draws, interval=interval, seed=seed)
        if asked.panel_ is not None:
            return outputs.number_draws(drawn, ".draw")
        table = outputs.carry_along(rows, drawn)
        if several is None:
            return table
        return outputs.number_rows(table, ".draw", several, 1, before)

    if stream is not None:
        if interval is not None:
            inputs.refuse_unreplicated(fitted, "--interval")
        types = inputs.arrow_types(stream)
        with (
            inputs.naming(inputs.shown(data)),
            outputs.in_batches([out], several or 1, types, json=json) as parts,
        ):
            for before, rows, its in inputs.batches(stream, seed, quiet=quiet):
                found = worlds(rows, its, before)
                for k, part in enumerate(parts):
                    part.add(found.iloc[k * len(rows) :][: len(rows)])
        return
    frame = inputs.read_model_rows(data, asked, how)
    with inputs.naming(inputs.shown(data)):
        if interval is not None:
            inputs.check_replicated(fitted, frame)
        table = worlds(frame, seed)
    inputs.keep_replicates(fitted, model)
    outputs.write_table(table, out, json=json)
