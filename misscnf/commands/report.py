"""`misscnf report`: an HTML page about a fitted model and its table, by `misscnf.report`."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from misscnf.commands.endings import in_a_sentence
from misscnf.commands.options import Data, Json, Model, Quiet, option
from misscnf.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from misscnf.estimator import MissCNF

__all__ = ["report", "can_report", "write_page"]


@in_a_sentence
def report(
    model: Model,
    data: Data,
    *,
    out: Annotated[str, option("--out", "The page, such as report.html.", "FILE")],
    effect: Annotated[str | None, option("--effect", "The effect to open with.", "T:Y")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a page with the answer, and how far to trust it."""
    from misscnf.commands.arguments import read_pair
    from misscnf.commands.inputs import naming, open_model, read_model_rows, shown
    from misscnf.commands.notices import say
    from misscnf.commands.outputs import check_target, print_json

    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {out!r}: a report is an .html file.")
    check_target(out)
    if not can_report():
        raise InputError("report: this version of misscnf does not write reports yet.")
    fitted = open_model(model)
    pair = read_pair(effect)
    with naming(f"--effect {effect}"):
        for name in pair or ():
            fitted.graph_.index(name)
    frame = read_model_rows(data, fitted)
    with naming(shown(data)):
        write_page(fitted, frame, out, pair)
    say(f"wrote {out}")
    if json:
        print_json({"report": out})


def can_report() -> bool:
    """Whether this version writes reports."""
    return importlib.util.find_spec("misscnf.report") is not None


def write_page(
    model: MissCNF, frame: pd.DataFrame, out: str, effect: tuple[str, str] | None
) -> None:
    """Writes the page, whole or not at all."""
    from misscnf.commands.outputs import staged

    write = importlib.import_module("misscnf.report").write_report
    with staged(out) as path:
        write(model, frame, path, effect=effect)
