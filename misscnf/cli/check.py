"""`misscnf check`: what the holes leave identified, before any fit. Problems end with code 1."""

from __future__ import annotations

from typing import Annotated

import typer

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import (
    Auxiliary,
    Blocks,
    Data,
    Dates,
    Decimal,
    Graph,
    Json,
    KindsFile,
    Latents,
    Losses,
    Na,
    Quiet,
    Separator,
    option,
)

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
    kinds: KindsFile = None,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what the holes leave identified, before any fit. Exits 1 if something is not covered."""
    from misscnf.cli import arguments, inputs, outputs

    pair = arguments.read_pair(effect)
    causal_graph = inputs.read_graph(graph, block, latent)
    inputs.check_nodes(pair or (), causal_graph, f"--effect {effect}")
    frame = inputs.read_rows(data, inputs.reading(na, sep, decimal, dates))
    causal_graph = inputs.with_auxiliary(causal_graph, auxiliary, frame)
    causal_graph = inputs.with_loss(causal_graph, loss, frame)
    inputs.check_kinds(kinds, causal_graph, frame)
    from misscnf.identification import check as find_problems  # with torch, after the options

    with inputs.naming(inputs.shown(data)):
        report = find_problems(frame, causal_graph, effect=pair, kinds=kinds)
    if json:
        outputs.print_json(report.to_dict())
    else:
        typer.echo(report.summary(), nl=False)
    raise typer.Exit(0 if report.ok else 1)
