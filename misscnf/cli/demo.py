r"""`misscnf demo`: a real table with a published answer, from the check to the report.

Does quitting smoking make people gain weight? The table, its graph, the fitted model and the
report are left in a folder, so that every other verb can be tried on them.
"""

from __future__ import annotations

import time
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from misscnf.cli.endings import in_a_sentence, say
from misscnf.cli.options import Json, Quiet, Seed, option

if TYPE_CHECKING:
    import pandas as pd

    from misscnf.data.table import IncompleteTable
    from misscnf.estimators.misscnf import MissCNF

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
    from misscnf.cli import inputs, outputs

    inputs.check_preset(preset)
    outputs.check_target(out, folder=True)
    from misscnf.cli.fit import chosen_sentence, show_kinds
    from misscnf.data.nhefs import OUTCOME, PUBLISHED, TREATMENT, load_nhefs, nhefs_graph
    from misscnf.data.table import IncompleteTable
    from misscnf.estimators.misscnf import MissCNF
    from misscnf.identification import check

    start = time.monotonic()
    df, graph = load_nhefs(), nhefs_graph()
    table = IncompleteTable.read(df, graph.nodes)
    say(check(table, graph, effect=(TREATMENT, OUTCOME)).summary())
    show_kinds(table.schema.describe())
    model = MissCNF(graph, preset, seed=seed, progress=False if quiet else None).fit(table)
    say(chosen_sentence(model))
    arms = {TREATMENT: 1}, {TREATMENT: 0}
    answer = model.effect(OUTCOME, *arms, interval=0.95, data=table, seed=seed)
    _leave_files(model, df, table, Path(out))
    seconds = time.monotonic() - start
    lower, upper = answer.interval or (None, None)
    if json:
        numbers = {"estimate": answer.estimate, "lower": lower, "upper": upper}
        about = {"chosen": model.chosen_, "seed": model.seed, "seconds": round(seconds, 3)}
        outputs.print_json({**numbers, "published": PUBLISHED, **about, "files": out})
    else:
        between = "" if lower is None else f" ({lower:.2f} to {upper:.2f})"
        published = "{estimate} {units} ({lower} to {upper})".format(**PUBLISHED)
        typer.echo("The effect of quitting smoking on weight, 1971 to 1982")
        typer.echo(f"  misscnf    {answer.estimate:.2f} {PUBLISHED['units']}{between}")
        typer.echo(f"  published  {published}, Hernán and Robins, What If, chapter 13")
    say(f"{seconds:.0f} s; its files are in {out}: try `misscnf sample {out}/model --rows 5`")


def _leave_files(model: MissCNF, df: pd.DataFrame, table: IncompleteTable, folder: Path) -> None:
    """Writes table, graph, kinds, model and page, for the other verbs to be tried on."""
    from misscnf.cli import outputs
    from misscnf.data.nhefs import OUTCOME, TREATMENT
    from misscnf.report import write_report

    folder.mkdir(exist_ok=True)
    arrows = "".join(f"  {cause} -> {effect};\n" for cause, effect in model.graph_.edges)
    kinds = {column.name: column.shown_kind for column in model.schema_.columns}
    outputs.write_tables({str(folder / "nhefs.csv"): df})
    texts = {"graph.dot": f"digraph {{\n{arrows}}}\n", "kinds.json": dumps(kinds, indent=1)}
    outputs.write_files({str(folder / name): text.encode() for name, text in texts.items()})
    with outputs.staged(str(folder / "model"), folder=True) as place:
        model.save(place)
    with outputs.staged(str(folder / "report.html")) as page:
        write_report(model, table, page, effect=(TREATMENT, OUTCOME), interval=0.95)
