r"""`misscnf fit`: a table and a graph in, a folder with the fitted model out.

The kinds of the columns are shown before the fit, each with its reason, and what was chosen after
it. With `--checkpoint`, the same command goes on where Ctrl-C stopped it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from misscnf.cli.endings import Stopped, in_a_sentence
from misscnf.cli.options import Data, Graph, Json, KindsFile, Quiet, Seed, option

if TYPE_CHECKING:
    import pandas as pd

    from misscnf.estimators.misscnf import MissCNF

__all__ = ["fit", "show_kinds", "chosen_sentence"]

WIDEST = 24
"""Characters of levels that the table of kinds shows."""


@in_a_sentence
def fit(
    data: Data,
    *,
    graph: Graph,
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
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fit a causal flow to a table with holes.

    It maximises the likelihood of what each row shows: no row is dropped, nothing imputed first.
    """
    from misscnf.cli.inputs import check_kinds, naming, read_graph, read_rows, shown
    from misscnf.cli.notices import say
    from misscnf.cli.outputs import check_target, print_json, staged_folder
    from misscnf.estimators.misscnf import MissCNF
    from misscnf.fitting.settings import preset_settings

    with naming("--preset"):
        preset_settings(preset)
    check_target(out, folder=True)
    if checkpoint is not None:
        check_target(checkpoint, "--checkpoint", folder=True)
    causal_graph = read_graph(graph)
    frame = read_rows(data)
    check_kinds(kinds, causal_graph, frame)
    model = MissCNF(
        causal_graph,
        preset,
        kinds=kinds,
        seed=seed,
        allow_uncovered=allow_uncovered,
        progress=False if quiet else None,
    )
    with naming(shown(data), "the preset", checkpoint):
        show_kinds(frame, causal_graph.nodes, kinds)
        seconds = _fit(model, frame, checkpoint)
    say(f"{chosen_sentence(model)}; {seconds:.1f} s")
    with staged_folder(out) as folder:
        model.save(folder)
    say(f"wrote the model to {out}")
    if json:
        print_json(_summary(model, frame, out, seconds))


def _fit(model: MissCNF, frame: pd.DataFrame, checkpoint: str | None) -> float:
    """Fits, and returns the seconds that it took."""
    start = time.monotonic()
    try:
        model.fit(frame, checkpoint=checkpoint)
    except KeyboardInterrupt as stop:
        if checkpoint is None:
            raise Stopped(
                "stopped, and nothing was written; with --checkpoint DIR, the same command would "
                "go on."
            ) from stop
        raise Stopped(f"stopped; the same command goes on from {checkpoint!r}.") from stop
    return time.monotonic() - start


def show_kinds(frame: pd.DataFrame, nodes: tuple[str, ...], kinds: str | None = None) -> None:
    """Says what kind each column is, and why."""
    from misscnf.cli.notices import say
    from misscnf.data.kinds import describe

    table = describe(frame, kinds, nodes)
    shown = table.drop(columns="offer").astype(str)
    shown["levels"] = [_cut(levels) for levels in shown["levels"]]
    shown["holes"] = shown["holes"].str.rjust(len("holes"))
    lines = [list(shown.columns), *shown.to_numpy().tolist()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = [cell.ljust(width) for cell, width in zip(line, widths, strict=True)]
        say("  ".join(cells).rstrip())
    for name, offer in zip(table["column"], table["offer"], strict=True):
        if offer:
            say(f"  {name}: {offer}")


def _cut(levels: str) -> str:
    return levels if len(levels) <= WIDEST else f"{levels[: WIDEST - 1]}…"


def chosen_sentence(model: MissCNF) -> str:
    """Returns what was chosen, and by how much."""
    rich = [f"{name} ({form})" for name, form in model.forms_.items() if form != "line"]
    nodes = f"{', '.join(rich)}, the rest lines"
    if model.comparison_ is None:
        return f"fitted: {nodes if model.curves_ else f'the {model.chosen_} model'}"
    gain, error = model.comparison_["elpd_difference"], model.comparison_["standard_error"]
    numbers = f"rows that were left out gain {gain:.3f} ± {error:.3f} nats a row by networks"
    return f"fitted: {nodes if rich else 'the linear model was chosen'}; {numbers}"


def _summary(model: MissCNF, frame: pd.DataFrame, out: str, seconds: float) -> dict[str, Any]:
    return {
        "model": out,
        "rows": len(frame),
        "preset": model.settings_.preset,
        "chosen": model.chosen_,
        "networks": list(model.networks_),
        "curves": list(model.curves_),
        "forms": model.forms_,
        "comparison": model.comparison_,
        "kinds": model.kinds_,
        "seed": model.seed,
        "seconds": round(seconds, 3),
    }
