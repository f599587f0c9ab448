"""`misscnf report`: an HTML page about a fitted model and its table, by `misscnf.report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from misscnf.cli.endings import in_a_sentence, say
from misscnf.cli.options import Data, Dates, Decimal, Json, Model, Na, Quiet, Separator, option
from misscnf.errors import InputError

__all__ = ["report"]


@in_a_sentence
def report(
    model: Model,
    data: Data,
    *,
    out: Annotated[str, option("--out", "The page, such as report.html.", "FILE")],
    effect: Annotated[str | None, option("--effect", "The effect to open with.", "T:Y")] = None,
    group: Annotated[
        list[str] | None,
        option("--group", "A column whose groups are compared; repeatable.", "NAME"),
    ] = None,
    do: Annotated[
        list[str] | None,
        option("--do", "Over time: the first regime, such as 'A=L[t] < 350'.", "NAME=VALUE"),
    ] = None,
    versus: Annotated[
        list[str] | None, option("--versus", "The second; 'natural' by default.", "NAME=VALUE")
    ] = None,
    interval: Annotated[
        float, option("--interval", "Intervals of this level; 0 leaves them out.", "LEVEL")
    ] = 0.95,
    strength: Annotated[
        str | None,
        option("--strength", "Also if values drive their own loss: -2:2:0.5.", "GRID"),
    ] = None,
    shift: Annotated[
        str | None, option("--shift", "Also if lost values differ by 0,1,2.", "GRID")
    ] = None,
    arm: Annotated[
        str | None, option("--arm", "In which arm they do: do or versus.", "ARM")
    ] = None,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a page with the answer, and how far to trust it."""
    from misscnf.cli import arguments, inputs, outputs

    if Path(out).suffix.lower() not in (".html", ".htm"):
        raise InputError(f"--out {out!r}: a report is an .html file.")
    outputs.check_target(out)
    level = interval or None
    arguments.check_share(level, "--interval")
    how = inputs.reading(na, sep, decimal, dates)
    asked, pair = inputs.outline(model), arguments.read_pair(effect)
    if asked.panel_ is None:
        inputs.check_nodes(pair or (), asked.graph_, f"--effect {effect}")
        inputs.check_nodes(group or (), asked.graph_, "--group")
        if do or versus:
            raise InputError("--do and --versus are regimes of a table over time; leave them out.")
    arms = arguments.read_regime(do, "--do"), arguments.read_regime(versus, "--versus")
    if group and pair is None:
        raise InputError("--group needs --effect, the effect that is asked for in groups.")
    along = arguments.read_along({"strength": strength, "shift": shift}, arm)
    if along and pair is None:
        raise InputError("--strength and --shift need --effect, the effect that is asked along.")
    frame = inputs.read_table_of_fit(data, asked, how)
    fitted = inputs.open_model(model, quiet=quiet)
    from misscnf.report import write_report

    with inputs.naming(inputs.shown(data)), outputs.staged(out) as page:
        given: dict[str, Any] = {
            "groups": group or (),
            "interval": level,
            "sensitivity": along or None,
        }
        if asked.panel_ is not None:
            given |= {"do": arms[0], "versus": arms[1]}
        write_report(fitted, frame, page, effect=pair, **given)
    say(f"wrote {out}")
    inputs.keep_replicates(fitted, model)
    if json:
        outputs.print_json({"report": out})
