"""`misscnf check`: what the holes leave identified, before any fit. Problems end with code 1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import (
    Auxiliary,
    Blocks,
    Data,
    Dates,
    Decimal,
    Graph,
    Id,
    Json,
    KindsFile,
    Latents,
    Losses,
    Memory,
    Na,
    Quiet,
    Separator,
    Time,
    Varying,
    option,
)

if TYPE_CHECKING:
    from misscnf.identification import PanelReport, Report

__all__ = ["check"]


@in_a_sentence
def check(
    data: Data,
    *,
    graph: Graph,
    block: Blocks = None,
    loss: Losses = None,
    auxiliary: Auxiliary = None,
    latent: Latents = None,
    effect: Annotated[str | None, option("--effect", "Only what one effect needs.", "T:Y")] = None,
    id: Id = None,
    time: Time = None,
    varying: Varying = None,
    kinds: KindsFile = None,
    memory: Memory = None,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what the holes leave identified, before any fit. Exits 1 if something is not covered."""
    from misscnf.cli import arguments, inputs

    pair = arguments.read_pair(effect)
    how = inputs.reading(na, sep, decimal, dates)
    if id is not None or time is not None:
        inputs.refuse_over_time(block=block, auxiliary=auxiliary)
        about: dict[str, Any] = {"kinds": kinds, "id": id, "time": time}
        about |= {"varying": inputs.words(varying) or None, "loss": inputs.read_loss(loss)}
        about["latent"] = inputs.read_latents(latent or ()) or None
        frame = inputs.read_rows(data, how)
        from misscnf.identification import check as find_problems

        with inputs.naming(inputs.shown(data)):
            found = find_problems(frame, graph, pair, **about)
        _tell(found, json=json)
    causal_graph = inputs.read_graph(graph, block, latent)
    inputs.check_nodes(pair or (), causal_graph, f"--effect {effect}")
    stream = inputs.read_stream(data, memory, how)
    frame = inputs.read_rows(data, how) if stream is None else stream.head()
    causal_graph = inputs.with_auxiliary(causal_graph, auxiliary, frame)
    causal_graph = inputs.with_loss(causal_graph, loss, frame if stream is None else stream)
    inputs.check_kinds(kinds, causal_graph, frame)
    from misscnf.identification import check as find_problems  # with torch, after the options

    with inputs.naming(inputs.shown(data)):
        table: Any = frame if stream is None else stream
        asked: dict[str, Any] = {"effect": pair, "kinds": kinds, "memory": memory}
        report = find_problems(table, causal_graph, **asked)
    _tell(report, json=json)


def _tell(report: Report | PanelReport, *, json: bool) -> NoReturn:
    """Prints a report, and ends."""
    from misscnf.cli import outputs

    if json:
        outputs.print_json(report.to_dict())
    else:
        typer.echo(report.summary(), nl=False)
    raise typer.Exit(0 if report.ok else 1)
