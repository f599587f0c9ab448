r"""`misscnf demo`: a real table with a published answer, from the check to the report.

Does quitting smoking make people gain weight? The table, its graph, the fitted model and the
report are left in a folder, so that every other verb can be tried on them.
"""

from __future__ import annotations

import time
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from misscnf.cli.endings import in_a_sentence, say
from misscnf.cli.options import Json, Quiet, Seed, option

if TYPE_CHECKING:
    import pandas as pd

    from misscnf.data.table import IncompleteTable
    from misscnf.estimators.misscnf import MissCNF
    from misscnf.queries.effects import Effect

__all__ = ["demo"]


@in_a_sentence
def demo(
    *,
    out: Annotated[str, option("--out", "Where its files go.", "DIR")] = "misscnf-demo",
    preset: Annotated[str, option("--preset", "auto, linear or paper.", "NAME")] = "auto",
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer a real question on a real table, from check to report.

    Does quitting smoking make people gain weight? Checks, fits and asks NHEFS (1629 smokers, 63
    of them without the outcome), and prints the published answer beside ours.
    """
    from misscnf.cli.fit import chosen_sentence, show_kinds
    from misscnf.cli.inputs import naming
    from misscnf.cli.outputs import check_target, print_json
    from misscnf.data.nhefs import OUTCOME, TREATMENT, load_nhefs, nhefs_graph
    from misscnf.data.table import IncompleteTable
    from misscnf.estimators.misscnf import MissCNF
    from misscnf.fitting.settings import preset_settings
    from misscnf.identification import check

    with naming("--preset"):
        preset_settings(preset)
    check_target(out, folder=True)
    start = time.monotonic()
    df, graph = load_nhefs(), nhefs_graph()
    table = IncompleteTable.read(df, graph.nodes)
    say(check(table, graph, effect=(TREATMENT, OUTCOME)).summary())
    show_kinds(table)
    model = MissCNF(graph, preset, seed=seed, progress=False if quiet else None).fit(table)
    say(chosen_sentence(model))
    arms = {TREATMENT: 1}, {TREATMENT: 0}
    answer = model.effect(OUTCOME, *arms, interval=0.95, data=table, seed=seed)
    _leave_files(model, df, table, out)
    seconds = time.monotonic() - start
    if json:
        print_json(_summary(answer, model, out, seconds))
    else:
        typer.echo(_beside(answer))
    say(f"{seconds:.0f} s; its files are in {out}: try `misscnf sample {out}/model --rows 5`")


def _leave_files(model: MissCNF, df: pd.DataFrame, table: IncompleteTable, out: str) -> None:
    """Writes table, graph, kinds, model and page, for the other verbs to be tried on."""
    from misscnf.cli.outputs import staged, write_files, write_tables
    from misscnf.cli.report import write_page
    from misscnf.data.nhefs import OUTCOME, TREATMENT

    folder = Path(out)
    folder.mkdir(exist_ok=True)
    arrows = "".join(f"  {cause} -> {effect};\n" for cause, effect in model.graph_.edges)
    kinds = {column.name: column.shown_kind for column in model.schema_.columns}
    write_tables({str(folder / "nhefs.csv"): df})
    texts = {"graph.dot": f"digraph {{\n{arrows}}}\n", "kinds.json": dumps(kinds, indent=1)}
    write_files({str(folder / name): text.encode() for name, text in texts.items()})
    with staged(str(folder / "model"), folder=True) as place:
        model.save(place)
    write_page(model, table, str(folder / "report.html"), (TREATMENT, OUTCOME))


def _beside(answer: Effect) -> str:
    """Returns our answer and the published one, one below the other."""
    from misscnf.data.nhefs import PUBLISHED

    ours = f"{answer.estimate:.2f} {PUBLISHED['units']}"
    if answer.interval is not None:
        ours += " ({:.2f} to {:.2f})".format(*answer.interval)
    theirs = "{estimate} {units} ({lower} to {upper})".format(**PUBLISHED)
    return (
        f"The effect of quitting smoking on weight, 1971 to 1982\n"
        f"  misscnf    {ours}\n"
        f"  published  {theirs}, Hernán and Robins, What If, chapter 13"
    )


def _summary(answer: Effect, model: MissCNF, out: str, seconds: float) -> dict[str, Any]:
    from misscnf.data.nhefs import PUBLISHED

    lower, upper = answer.interval or (None, None)
    return {
        "estimate": answer.estimate,
        "lower": lower,
        "upper": upper,
        "published": PUBLISHED,
        "chosen": model.chosen_,
        "seed": model.seed,
        "seconds": round(seconds, 3),
        "files": out,
    }
