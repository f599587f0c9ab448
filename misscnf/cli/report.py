"""`misscnf report`: an HTML page about a fitted model and its table, by `misscnf.report`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from misscnf.cli.endings import in_a_sentence, say
from misscnf.cli.options import Data, Json, Model, Quiet, option
from misscnf.errors import InputError

if TYPE_CHECKING:
    from misscnf.data.table import Table
    from misscnf.estimators.misscnf import MissCNF

__all__ = ["report", "write_page"]


@in_a_sentence
def report(
    model: Model,
    data: Data,
    *,
    out: Annotated[str, option("--out", "The page, such as report.html.", "FILE")],
    effect: Annotated[str | None, option("--effect", "The effect to open with.", "T:Y")] = None,
    interval: Annotated[
        float, option("--interval", "Intervals of this level; 0 leaves them out.", "LEVEL")
    ] = 0.95,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a page with the answer, and how far to trust it."""
    from misscnf.cli.arguments import check_share, read_pair
    from misscnf.cli.inputs import check_nodes, naming, open_model, read_model_rows, shown
    from misscnf.cli.outputs import check_target, print_json

    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {out!r}: a report is an .html file.")
    check_target(out)
    level = interval or None
    check_share(level, "--interval")
    fitted = open_model(model)
    pair = read_pair(effect)
    check_nodes(pair or (), fitted.graph_, f"--effect {effect}")
    frame = read_model_rows(data, fitted)
    fitted.progress = False if quiet else None
    with naming(shown(data)):
        write_page(fitted, frame, out, pair, level)
    say(f"wrote {out}")
    if json:
        print_json({"report": out})


def write_page(
    model: MissCNF,
    table: Table,
    out: str,
    effect: tuple[str, str] | None,
    interval: float | None = 0.95,
) -> None:
    """Writes the page, whole or not at all."""
    from misscnf.cli.outputs import staged
    from misscnf.report import write_report

    with staged(out) as path:
        write_report(model, table, path, effect=effect, interval=interval)
