r"""`misscnf effect`: the contrast of two interventions on one column, as a sentence or as JSON.

Where one intervention has a grid of values (`--do dose=0:10:0.5`), the answer is a curve, a line a
value; all of them share their noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from misscnf.cli.endings import in_a_sentence
from misscnf.cli.options import Dates, Decimal, Json, Na, Quiet, Seed, Separator, option
from misscnf.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from misscnf.cli.arguments import Arm
    from misscnf.data.table import Table
    from misscnf.estimators.fitted import FittedFlow
    from misscnf.queries.effects import Effect

__all__ = ["effect"]

NEEDS_DATA = (
    "--interval needs --data, the table that the model was fitted to; the next one will not, "
    "since replicates of the fit are kept beside the model."
)


@in_a_sentence
def effect(
    model: Annotated[str, typer.Argument(metavar="MODEL", hidden=True)],
    *,
    on: Annotated[str, option("--on", "The outcome.", "NAME")],
    do: Annotated[
        list[str] | None,
        option("--do", "First arm: t=1, 't=age > 60', or a grid dose=0:10:0.5.", "NAME=VALUE"),
    ] = None,
    versus: Annotated[
        list[str] | None,
        option("--versus", "Second arm; without it, no intervention.", "NAME=VALUE"),
    ] = None,
    interval: Annotated[
        float | None, option("--interval", "An interval of this level, such as 0.95.", "LEVEL")
    ] = None,
    data: Annotated[
        str | None,
        option("--data", "The table of the fit, which the first interval needs.", "FILE"),
    ] = None,
    population: Annotated[
        str | None,
        option("--population", "Who is averaged over: the rows of --data, or model.", "WHO"),
    ] = None,
    where: Annotated[
        str | None, option("--where", "Only within a group, such as 'age > 60'.", "CONDITION")
    ] = None,
    by: Annotated[
        str | None,
        option("--by", "In each group of a column, and how they differ.", "NAME"),
    ] = None,
    beside: Annotated[
        bool,
        typer.Option("--beside", help="Also crude and complete-case estimates, the E-value."),
    ] = False,
    treated: Annotated[
        bool,
        typer.Option("--treated", help="Only those who take by themselves what --do says."),
    ] = False,
    event: Annotated[
        str | None, option("--event", "The level whose risk is compared.", "LEVEL")
    ] = None,
    statistic: Annotated[
        str,
        option("--statistic", "Mean, median, trimmed or 0.9.", "NAME"),
    ] = "mean",
    draws: Annotated[int | None, option("--draws", "Units that are averaged.", "N", min=2)] = None,
    seed: Seed = 0,
    na: Na = None,
    sep: Separator = None,
    decimal: Decimal = None,
    dates: Dates = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the effect of one intervention against another.

    MODEL is a folder that `misscnf fit` made.
    """
    from misscnf.cli import arguments, inputs, kept_answers, outputs

    arguments.check_share(interval, "--interval")
    how = inputs.reading(na, sep, decimal, dates)
    asked = inputs.outline(model)
    inputs.check_nodes([by] if by else [], asked.graph_, "--by")
    if asked.panel_ is None:
        inputs.check_nodes([on], asked.graph_, "--on")
        arm, name, grid = arguments.read_values(do or [], "--do", asked)
    else:
        arm, name, grid = arguments.read_arm(do, "--do", asked), None, []
    against = arguments.read_arm(versus, "--versus", asked)
    arguments.check_where(where, asked)
    level = arguments.read_event(event, on, asked)
    if interval is not None and data is None and not asked.replicated:
        raise InputError(NEEDS_DATA)
    over_rows = (population or ("rows" if asked.graph_.blocks else "model")) == "rows"
    if over_rows and data is None:
        _refuse_without_rows(at_hand=asked.replicated)  # with which rows may lie
    for given_too, flag in ((treated, "--treated"), (by, "--by"), (beside, "--beside")):
        if given_too and name is not None:
            raise InputError(f"{flag} is for one value of {name}, not for a grid.")
    if beside and data is None:
        raise InputError("--beside needs --data, the table that the estimates are made from.")
    options = {"on": on, "do": do, "versus": versus, "interval": interval, "where": where}
    options |= {"by": by, "beside": beside, "treated": treated, "event": event, "json": json}
    options |= {"population": population, "statistic": statistic, "draws": draws, "seed": seed}
    reading = {"na": na, "sep": sep, "decimal": decimal, "dates": dates}
    with_table = {**options, **reading} if data is not None else options
    if interval is not None:
        known = kept_answers.find(model, kept_answers.question(model, with_table, data))
        if known is not None:
            typer.echo(known)
            return
    rows = None if data is None else inputs.read_table_of_fit(data, asked, how)
    fitted = inputs.open_model(model, quiet=quiet)
    if interval is not None and data is None and not fitted._replicated:
        raise InputError(NEEDS_DATA)  # those beside it are of another fit
    if over_rows and data is None:
        _refuse_without_rows(at_hand=fitted._has_rows)
    given: dict[str, Any] = {
        "versus": against or None,
        "where": where,
        "event": level,
        "statistic": arguments.read_statistic(statistic),
        "interval": interval,
        "population": population,
        "data": rows,
        "seed": seed,
    }
    if draws is not None:
        given["draws"] = draws
    blamed = next((f"--{key}" for key in ("where", "event") if given[key] is not None), "--do")
    with inputs.naming(blamed), kept_answers.noting() as warnings:
        if name is None:
            answer = fitted.effect(on, arm, treated=treated, by=by, **given)
            extra = _extra(fitted, answer, given["data"], beside=beside)
            over = answer.population
            shown = _plain(answer, extra) if json else _told(answer, extra)
        else:
            curve = fitted.curve(on, name, grid, do=arm, **given)
            over = curve.attrs["population"]
            lines = {"outcome": on, "along": name, "population": over}
            lines |= {"curve": curve.to_dict(orient="records")}
            shown = lines if json else _curve(on, name, against, curve)
    inputs.keep_replicates(fitted, model)
    told = outputs.json_text(shown) if json else str(shown)
    if interval is not None:
        found = kept_answers.Answered(told, warnings)
        kept_answers.keep(model, kept_answers.question(model, with_table, data), found)
        if data is not None and not beside and fitted._answers_without_table(over):
            kept_answers.keep(model, kept_answers.question(model, options), found)
    typer.echo(told)


def _refuse_without_rows(*, at_hand: bool) -> None:
    if not at_hand:
        raise InputError(
            "an average over the rows needs --data, their table; or ask for --population model."
        )


def _extra(
    fitted: FittedFlow, answer: Effect, table: Table | None, *, beside: bool
) -> dict[str, Any]:
    """Returns what was asked for beside the answer."""
    if not beside:
        return {}
    return {"e_values": answer.e_values(), "beside": fitted.plain_estimates(answer, table)}


def _plain(answer: Effect, extra: dict[str, Any]) -> dict[str, Any]:
    """Returns an answer for JSON."""
    lower, upper = answer.interval or (None, None)
    groups = None if answer.groups is None else answer.groups.to_dict()
    beside = {"beside": [vars(line) for line in extra["beside"]]} if "beside" in extra else {}
    return {**vars(answer), "lower": lower, "upper": upper, "groups": groups} | extra | beside


def _told(answer: Effect, extra: dict[str, Any]) -> str:
    """Returns an answer with all that is to be known of it, a line each."""
    lines = [str(answer)]
    lines += [str(line) for line in extra.get("beside", ())]
    if "beside" in extra and not extra["beside"]:
        lines.append("crude, complete cases: only where one treatment has two values to compare")
    if "e_values" in extra:
        found = extra["e_values"]
        lines.append(
            "E-value: there is none for this measure" if found is None else _strong(found)
        )
    return "\n".join(lines)


def _strong(found: tuple[float, float | None]) -> str:
    ends = "" if found[1] is None else f", {found[1]:.3g} for the end of the interval"
    return (
        f"E-value {found[0]:.3g}{ends}: a confounder left out that goes with treatment and with "
        f"outcome by risk ratios of this size could explain the effect"
    )


def _curve(on: str, name: str, against: Arm, curve: pd.DataFrame) -> str:
    """Returns a heading, and a line a value of the grid."""
    from misscnf.queries.effects import written

    versus = written(against) if against else "no intervention"
    table = curve.to_string(index=False, float_format=lambda number: f"{number:.4g}")
    measure = curve.attrs["measure"]
    what = f"the {curve.attrs['statistic']}"
    estimate = f"the estimate ({measure}) versus {versus}"
    over = {"rows": "the rows of the table"}.get(curve.attrs["population"], "units of the model")
    return f"{on} along {name}: {what} under each value, and {estimate}, over {over}\n{table}"
