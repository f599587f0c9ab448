"""`misscnf log-prob`: the log-density of what each row shows, with its error."""

from __future__ import annotations

from typing import Annotated

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import (
    Data,
    Dates,
    Decimal,
    Do,
    Json,
    Memory,
    Model,
    Na,
    Out,
    Quiet,
    Seed,
    Separator,
    ValuesOnly,
    option,
)

__all__ = ["log_prob"]


@in_a_sentence
def log_prob(
    model: Model,
    data: Data,
    *,
    given: Annotated[
        list[str] | None, option("--given", "A column to condition on; may be repeated.", "NAME")
    ] = None,
    do: Do = None,
    values_only: ValuesOnly = False,
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
    """Score each row by the log-density of what it shows.

    Writes .id (the number of a row in DATA), log_prob, standard_error (0 where exact),
    effective_draws and, where a row is impossible, the reason. DATA may lack columns.
    """
    import pandas as pd
    import pyarrow as pa

    from misscnf.cli import arguments, inputs, outputs

    outputs.check_table_target(out, json=json)
    how = inputs.reading(na, sep, decimal, dates)
    asked = inputs.outline(model)
    arm = arguments.read_arm(do, "--do", asked)
    inputs.check_nodes(given or (), asked.graph_, "--given")
    stream = inputs.read_model_stream(data, out, asked, memory, how, partial=True)
    fitted = inputs.open_model(model, quiet=quiet)

    def scores(rows: pd.DataFrame, seed: int, before: int = 0) -> pd.DataFrame:
        holes = not values_only
        found = fitted.log_prob(
            rows, given=given or (), do=arm, holes=holes, quality=True, seed=seed
        )
        table = pd.DataFrame(found).reset_index(drop=True)
        table.insert(0, ".id", range(before + 1, before + len(table) + 1))
        return table

    if stream is not None:
        with (
            inputs.naming(inputs.shown(data)),
            outputs.in_batches([out], 1, {"reason": pa.string()}, json=json) as (part,),
        ):
            for before, rows, its in inputs.batches(stream, seed, quiet=quiet):
                part.add(scores(rows, its, before))
        return
    frame = inputs.read_model_rows(data, asked, how, partial=True)
    with inputs.naming(inputs.shown(data)):
        table = scores(frame, seed)
    outputs.write_table(table, out, json=json)
