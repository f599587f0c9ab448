"""`misscnf impute`: completed tables, with observed cells as they are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    WithLatents,
    option,
)
from misscnf.errors import InputError

__all__ = ["impute"]


@in_a_sentence
def impute(
    model: Model,
    data: Data,
    *,
    draws: Annotated[int, option("--draws", "Completed tables.", "N", min=1)] = 5,
    out: Out = "-",
    wide: Annotated[
        bool, typer.Option("--wide", help="A file for each table: name-1.csv, name-2.csv, …")
    ] = False,
    proper: Annotated[
        bool,
        typer.Option("--proper", help="Each table from a replicate of the fit to DATA, to pool."),
    ] = False,
    original: Annotated[
        bool, typer.Option("--original", help="Also the rows as they came, with .imp 0.")
    ] = False,
    latents: WithLatents = False,
    memory: Memory = None,
    seed: Seed = 0,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Complete a table, several times. Observed cells stay as they are.

    The tables stand one below the other, told apart by .imp and .id as in mice. Columns outside
    the graph are carried along.
    """
    import pandas as pd

    from misscnf.cli import inputs, outputs

    outputs.check_table_target(out, json=json)
    if wide and (out == "-" or original):
        raise InputError("--wide makes a file for each table: give --out, and no --original.")
    how = inputs.reading(na, sep, decimal, dates)
    asked, path = inputs.outline(model), Path(out)
    names = [str(path.with_stem(f"{path.stem}-{draw + 1}")) for draw in range(draws)]
    stream = inputs.read_model_stream(data, out, asked, memory, how)
    if stream is not None:
        fitted = inputs.open_model(model, quiet=quiet)
        if proper:
            inputs.refuse_unreplicated(fitted, "--proper")
        outs, types = names if wide else [out], inputs.arrow_types(stream)
        with (
            inputs.naming(inputs.shown(data)),
            outputs.in_batches(outs, draws + original, types, json=json) as parts,
        ):
            for before, rows, its in inputs.batches(stream, seed, quiet=quiet):
                drawn = fitted.impute(rows, draws, proper=proper, latents=latents, seed=its)
                tables = [drawn.iloc[k * len(rows) :][: len(rows)] for k in range(draws)]
                tables = [rows, *tables] if original else tables
                for k, (part, table) in enumerate(zip(parts, tables, strict=True)):
                    one, first = table.reset_index(drop=True), k + (not original)
                    numbered = outputs.number_rows(one, ".imp", 1, first, before)
                    part.add(one if wide else numbered)
        return
    frame = inputs.read_model_rows(data, asked, how)
    fitted = inputs.open_model(model, quiet=quiet)
    with inputs.naming(inputs.shown(data)):
        of_fit = frame if proper else None
        completed = fitted.impute(
            frame, draws, proper=proper, data=of_fit, latents=latents, seed=seed
        )
        table = completed.reset_index(drop=True)
        long = outputs.number_rows(table, ".imp", draws)
    inputs.keep_replicates(fitted, model)
    if wide:
        size = len(frame)
        files = {name: table.iloc[k * size :][:size] for k, name in enumerate(names)}
        outputs.write_tables(files, json=json)
        return
    if original:
        came = outputs.number_rows(frame.reset_index(drop=True), ".imp", 1, first=0)
        long = pd.concat([came, long], ignore_index=True)
    outputs.write_table(long, out, json=json)
