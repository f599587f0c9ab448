"""Words that several verbs take, said once, so that they mean the same everywhere."""

from __future__ import annotations

from typing import Annotated, Any

import typer

__all__ = [
    "Auxiliary",
    "Blocks",
    "Data",
    "Dates",
    "Decimal",
    "Do",
    "Graph",
    "Id",
    "Json",
    "KindsFile",
    "Cluster",
    "Jobs",
    "Latents",
    "Losses",
    "Memory",
    "Model",
    "Na",
    "Out",
    "Quiet",
    "Seed",
    "Separator",
    "Time",
    "Untied",
    "Varying",
    "WithLatents",
    "option",
]


def option(name: str, what: str, metavar: str | None = None, **rest: Any) -> Any:  # noqa: ANN401 - typer's
    """Returns an option; its value is called by its own name in capitals, unless it has one."""
    shown = metavar or name.removeprefix("--").upper()
    return typer.Option(name, metavar=shown, help=what, **rest)


Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A table (.csv, .parquet, .dta, …); - is CSV on stdin."),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A folder that `misscnf fit` made.")]
Graph = Annotated[
    str, option("--graph", "A file (DOT, GML, dagitty, JSON, CSV, …) or text: 'a -> b'.")
]
Blocks = Annotated[
    list[str] | None,
    option("--block", "Columns without arrows among them; repeatable.", "'NAME: A, B, …'"),
]
Losses = Annotated[
    list[str] | None,
    option(
        "--loss", "What drives the loss of a column; repeatable. self for all.", "'Y: A, B, …'"
    ),
]
Auxiliary = Annotated[
    str | None,
    option("--auxiliary", "Columns that tell of lost values; not in the graph.", "NAMES"),
]
Id = Annotated[
    str | None, option("--id", "The column that says who, in a table over time.", "NAME")
]
Time = Annotated[
    str | None, option("--time", "The column that says when (more in docs/panels.md).", "NAME")
]
Varying = Annotated[
    str | None,
    option("--varying", "Columns measured at each visit though constant.", "NAMES", hidden=True),
]
Untied = Annotated[
    str | None,
    option("--untied", "Columns with a mechanism a visit; all for all.", "NAMES", hidden=True),
]
Latents = Annotated[
    list[str] | None,
    option("--latent", "A hidden cause, or class=3 for classes; repeatable.", "NAME[=N]"),
]
KindsFile = Annotated[
    str | None, option("--kinds", "Kinds of columns, a .json or .yaml file.", "FILE")
]
Do = Annotated[
    list[str] | None,
    option("--do", "An intervention: t=1, 'dose=min(dose, 2)'; repeatable.", "NAME=VALUE"),
]
Out = Annotated[str, option("--out", "A .csv, .tsv or .parquet file; - is CSV on stdout.", "FILE")]
Na = Annotated[
    str | None, option("--na", "Further marks of a missing value, such as -99,999.", "MARKS")
]
Separator = Annotated[str | None, option("--sep", "What separates fields, if not found.", "SIGN")]
Decimal = Annotated[str | None, option("--decimal", "The decimal sign, such as ','.", "SIGN")]
Dates = Annotated[
    str | None, option("--dates", "Columns of dates, read as days since 1970-01-01.", "NAMES")
]
Memory = Annotated[
    str | None,
    option(
        "--memory",
        "What may be taken: larger tables are read from disk (docs/many_rows.md).",
        "SIZE",
    ),
]
Jobs = Annotated[int | None, option("--jobs", "Processes that share its rows.", "N", hidden=True)]
Cluster = Annotated[
    str | None, option("--cluster", "A dask scheduler whose workers do.", "tcp://…", hidden=True)
]
Seed = Annotated[int, option("--seed", "Where randomness starts.", "N", min=0)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output.")]
WithLatents = Annotated[
    bool, typer.Option("--latents", help="Hidden causes have columns too, in their own unit.")
]
WithHoles = Annotated[
    bool, typer.Option("--holes", help="Rows as collected, where the graph says what is lost.")
]
ValuesOnly = Annotated[
    bool, typer.Option("--values-only", help="Leave out what is lost, where the graph says why.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no notes and no progress.")]
