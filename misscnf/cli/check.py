"""`misscnf check`: what the holes leave identified, before any fit. Problems end with code 1."""

from __future__ import annotations

from typing import Annotated

import typer

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import Blocks, Data, Graph, Json, KindsFile, Quiet, option

__all__ = ["check"]


@in_a_sentence
def check(
    data: Data,
    *,
    graph: Graph,
    block: Blocks = None,
    effect: Annotated[str | None, option("--effect", "Only what one effect needs.", "T:Y")] = None,
    kinds: KindsFile = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what the holes leave identified, before any fit. Exits 1 if something is not covered."""
    from misscnf.cli.arguments import read_pair
    from misscnf.cli.inputs import check_kinds, check_nodes, naming, read_graph, read_rows, shown
    from misscnf.cli.outputs import print_json
    from misscnf.identification import check as find_problems

    pair = read_pair(effect)
    causal_graph = read_graph(graph, block)
    check_nodes(pair or (), causal_graph, f"--effect {effect}")
    frame = read_rows(data)
    check_kinds(kinds, causal_graph, frame)
    with naming(shown(data)):
        report = find_problems(frame, causal_graph, effect=pair, kinds=kinds)
    if json:
        print_json(report.to_dict())
    else:
        typer.echo(report.summary(), nl=False)
    raise typer.Exit(0 if report.ok else 1)
