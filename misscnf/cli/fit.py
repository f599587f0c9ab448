r"""`misscnf fit`: a table and a graph in, a folder with the fitted model out.

The kinds of the columns are shown before the fit, each with its reason, and what was chosen after
it. With `--checkpoint`, the same command goes on where Ctrl-C stopped it.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from misscnf.cli.endings import Stopped, in_a_sentence, say
from misscnf.cli.options import (
    Auxiliary,
    Blocks,
    Cluster,
    Dates,
    Decimal,
    Graph,
    Id,
    Jobs,
    Json,
    KindsFile,
    Latents,
    Losses,
    Memory,
    Na,
    Quiet,
    Seed,
    Separator,
    Time,
    Untied,
    Varying,
    option,
)

if TYPE_CHECKING:
    import pandas as pd

    from misscnf.data.streams import TableStream
    from misscnf.data.table import IncompleteTable
    from misscnf.estimators.misscnf import MissCNF

__all__ = ["fit", "show_kinds", "chosen_sentence"]


@in_a_sentence
def fit(
    data: Annotated[str, typer.Argument(metavar="DATA", hidden=True)],
    *,
    graph: Graph,
    block: Blocks = None,
    loss: Losses = None,
    auxiliary: Auxiliary = None,
    latent: Latents = None,
    id: Id = None,
    time: Time = None,
    untied: Untied = None,
    varying: Varying = None,
    out: Annotated[str, option("--out", "The folder of the model.", "DIR")],
    preset: Annotated[str, option("--preset", "auto, linear or paper.", "NAME")] = "auto",
    kinds: KindsFile = None,
    checkpoint: Annotated[
        str | None, option("--checkpoint", "Lets an interrupted fit go on.", "DIR")
    ] = None,
    allow_uncovered: Annotated[
        bool,
        typer.Option("--allow-uncovered", help="Train though some family is never seen whole."),
    ] = False,
    replicates: Annotated[
        bool,
        typer.Option("--replicates", help="Also replicate the fit: intervals are quick then."),
    ] = False,
    memory: Memory = None,
    jobs: Jobs = None,
    cluster: Cluster = None,
    seed: Seed = 0,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Say how long each stage took.")
    ] = False,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a causal flow to DATA, a table with holes; - is CSV on stdin. No row is dropped."""
    from misscnf.cli import inputs, outputs
    from misscnf.data.table import IncompleteTable
    from misscnf.graph import CausalGraph

    inputs.check_preset(preset)
    outputs.check_target(out, folder=True)
    if checkpoint is not None:
        outputs.check_target(checkpoint, "--checkpoint", folder=True)
    over_time = id is not None or time is not None
    if over_time:
        inputs.refuse_over_time(block=block, auxiliary=auxiliary)
    causal_graph = graph if over_time else inputs.read_graph(graph, block, latent)
    how = inputs.reading(na, sep, decimal, dates)
    stream = inputs.read_stream(data, memory, how)
    frame = inputs.read_rows(data, how) if stream is None else stream.head()
    if isinstance(causal_graph, CausalGraph):
        causal_graph = inputs.with_auxiliary(causal_graph, auxiliary, frame)
        causal_graph = inputs.with_loss(causal_graph, loss, frame if stream is None else stream)
        inputs.check_kinds(kinds, causal_graph, frame)
    from misscnf.estimators.misscnf import MissCNF  # with torch: all options are known to be good

    model = MissCNF(
        causal_graph,
        preset,
        kinds=kinds,
        seed=seed,
        id=id,
        time=time,
        latent=inputs.read_latents(latent or ()) or None if over_time else None,
        loss=inputs.read_loss(loss) if over_time else None,
        untied=True if untied == "all" else inputs.words(untied) or None,
        varying=inputs.words(varying) or None,
        allow_uncovered=allow_uncovered,
        progress=False if quiet else None,
    )
    with inputs.naming(inputs.shown(data)):
        table: pd.DataFrame | IncompleteTable | TableStream = frame if stream is None else stream
        if isinstance(causal_graph, CausalGraph) and stream is None:
            nodes, hidden = causal_graph.nodes, causal_graph.latent
            table = IncompleteTable.read(frame, nodes, kinds=kinds, latent=hidden)
            show_kinds(table.schema.describe())
        many = {"memory": memory, "n_jobs": jobs, "cluster": cluster}
        seconds = _fit(model, table, checkpoint=checkpoint, **many)
    if stream is not None:
        show_kinds(model.kinds_)
    for name, members in model.blocks_.items():
        arrows = sum(map(len, members.values()))
        kept = f"{arrows} arrow{'s' * (arrows != 1)}"
        say(f"block {name}: {len(members)} columns, {kept} kept to write their law")
    say(f"{chosen_sentence(model)}; {seconds:.1f} s")
    for sentence in model.loss_["sentence"]:
        say(f"  {sentence}")
    if verbose:
        for stage, its_seconds in model.timings_.items():
            say(f"  {its_seconds:8.1f} s  {stage}")
    model._marks = how.na
    with outputs.staged(out, folder=True) as folder:
        model.save(folder)
        if replicates:
            model._replicates(0.5, None, None)
            inputs.keep_replicates(model, str(folder), out)
    say(f"wrote the model to {out}")
    if json:
        outputs.print_json(_summary(model, len(table), out, seconds))


def _fit(
    model: MissCNF,
    table: pd.DataFrame | IncompleteTable | TableStream,
    *,
    checkpoint: str | None,
    **many: Any,  # noqa: ANN401 - as `fit` takes them
) -> float:
    """Fits, and returns the seconds that it took."""
    start = monotonic()
    try:
        model.fit(table, checkpoint=checkpoint, **many)
    except KeyboardInterrupt as stop:
        said = f"stopped; the same command goes on from {checkpoint!r}."
        if checkpoint is None:
            later = "with --checkpoint DIR, the same command would go on"
            said = f"stopped, and nothing was written; {later}."
        raise Stopped(said) from stop
    return monotonic() - start


def show_kinds(kinds: pd.DataFrame, widest: int = 24) -> None:
    """Says what kind each column is, and why; levels in at most so many characters."""
    shown = kinds.drop(columns="offer").astype(str)
    cut = shown["levels"].str.slice(stop=widest - 1) + "…"
    shown["levels"] = shown["levels"].where(shown["levels"].str.len() <= widest, cut)
    shown["holes"] = shown["holes"].str.rjust(len("holes"))
    lines = [list(shown.columns), *shown.to_numpy().tolist()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        say("  ".join(cells).rstrip())
    for name, offer in zip(kinds["column"], kinds["offer"], strict=True):
        if offer:
            say(f"  {name}: {offer}")
    if kinds["offer"].str.contains(" in kinds").any():
        say("  --kinds FILE gives kinds: a .json file of such lines in braces, or a .yaml file")


def chosen_sentence(model: MissCNF) -> str:
    """Returns what was chosen, and by how much."""
    rich = model._richer_than_lines()
    some = any(form.name == "line" for form in model.forms_.values())
    nodes = ", ".join([*rich, "lines for the rest"] if some else rich)
    if model.comparison_ is None:
        return f"fitted: {nodes if rich else f'the {model.chosen_} model'}"
    more, error = model.comparison_["elpd_difference"], model.comparison_["standard_error"]
    if not rich and not error:
        return "fitted: the linear model was chosen; by a score test no mean asks for more"
    if not round(max(abs(more), error), 3):  # products that lines keep are no gain over lines
        return f"fitted: {nodes if rich else 'the linear model was chosen'}"
    compared = "on rows left out, the log predictive density of these forms less that of lines"
    numbers = f"{compared} is {more:.3f} ± {error:.3f} nats a row"
    return f"fitted: {nodes if rich else 'the linear model was chosen'}; {numbers}"


def _summary(model: MissCNF, rows: int, out: str, seconds: float) -> dict[str, Any]:
    return {
        "model": out,
        "rows": rows,
        "preset": model.settings_.preset,
        "chosen": model.chosen_,
        "networks": list(model.networks_),
        "curves": list(model.curves_),
        "interactions": list(model.interactions_),
        "forms": {name: str(form) for name, form in model.forms_.items()},
        "comparison": model.comparison_,
        "blocks": model.blocks_,
        "auxiliary": list(model.graph_.auxiliary),
        "latent": model.graph_.latent,
        "loss": model.loss_.drop(columns="sentence"),
        "loss_starts": model.loss_starts_,
        "kinds": model.kinds_,
        "seed": model.seed,
        "seconds": round(seconds, 3),
        "stages": {stage: round(its, 3) for stage, its in model.timings_.items()},
    }
