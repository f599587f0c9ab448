r"""`misscnf effect`: the contrast of two interventions on one column, as a sentence or as JSON.

Where one intervention has a grid of values (`--do dose=0:10:0.5`), the answer is a curve, a line a
value; all of them share their noise.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from misscnf.commands.endings import in_a_sentence
from misscnf.commands.options import Json, Model, Quiet, Seed, option
from misscnf.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from misscnf.cells import Label
    from misscnf.commands.arguments import Arm
    from misscnf.effects import Effect
    from misscnf.estimator import MissCNF

__all__ = ["effect", "effect_to_dict"]


@in_a_sentence
def effect(
    model: Model,
    *,
    on: Annotated[str, option("--on", "The outcome.", "NAME")],
    do: Annotated[
        list[str], option("--do", "First arm: t=1, or a grid dose=0:10:0.5.", "NAME=VALUE")
    ],
    versus: Annotated[
        list[str] | None,
        option("--versus", "Second arm; without it, no intervention.", "NAME=VALUE"),
    ] = None,
    interval: Annotated[
        float | None, option("--interval", "An interval of this level, such as 0.95.", "LEVEL")
    ] = None,
    data: Annotated[
        str | None, option("--data", "The table of the fit, for intervals and groups.", "FILE")
    ] = None,
    where: Annotated[
        str | None, option("--where", "Only within a group, such as 'age > 60'.", "CONDITION")
    ] = None,
    event: Annotated[
        str | None, option("--event", "The level whose risk is compared.", "LEVEL")
    ] = None,
    draws: Annotated[int | None, option("--draws", "Units that are averaged.", "N", min=2)] = None,
    seed: Seed = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Estimate the effect of one intervention against another."""
    from misscnf.commands.arguments import check_share, read_arm, read_event, read_values
    from misscnf.commands.inputs import naming, open_model, read_model_rows
    from misscnf.commands.outputs import print_json

    check_share(interval, "--interval")
    fitted = open_model(model)
    with naming("--on"):
        fitted.graph_.index(on)
    arm, name, grid = read_values(do, "--do", fitted)
    against = read_arm(versus, "--versus", fitted)
    given = {
        "interval": interval,
        "data": None if data is None else read_model_rows(data, fitted),
        "where": where,
        "event": read_event(event, on, fitted),
        "draws": draws,
    }
    ask = _question(fitted, on, against, given, seed)
    if name is None:
        answer = ask(arm)
        if json:
            print_json(effect_to_dict(answer))
        else:
            typer.echo(answer)
        return
    answers = [ask({**arm, name: value}) for value in grid]
    if json:
        print_json({"outcome": on, "along": name, "curve": list(map(effect_to_dict, answers))})
    else:
        table = _curve(name, grid, answers)
        typer.echo(_head(answers[0], name))
        typer.echo(table.to_string(index=False, float_format=lambda number: f"{number:.4g}"))


def _question(
    model: MissCNF, on: str, versus: Arm, given: dict[str, Any], seed: int
) -> Callable[[Arm], Effect]:
    """Returns the question that the options ask, of any first arm."""
    from misscnf.commands.inputs import naming

    wanted = {key: value for key, value in given.items() if value is not None}
    known = inspect.signature(model.effect).parameters
    for key in wanted:
        if key not in known:
            raise InputError(f"--{key}: this version of misscnf has no such effects yet.")

    blamed = next((f"--{key}" for key in ("where", "interval", "event") if key in wanted), "--do")

    def ask(do: Arm) -> Effect:
        with naming(blamed, *(f"--{key}" for key in wanted)):
            return model.effect(on, do=do, versus=versus or None, seed=seed, **wanted)

    return ask


def effect_to_dict(effect: Effect) -> dict[str, Any]:
    """Returns an effect as plain values, its interval as `lower` and `upper`."""
    found = {field.name: getattr(effect, field.name) for field in dataclasses.fields(effect)}
    lower, upper = effect.interval or (None, None)
    return {**found, "lower": lower, "upper": upper}


def _head(effect: Effect, name: str) -> str:
    from misscnf.effects import written

    versus = written(effect.versus) if effect.versus else "no intervention"
    return (
        f"{effect.outcome} along {name}: the mean under each intervention, and the "
        f"{effect.measure} versus {versus}"
    )


def _curve(name: str, grid: list[Label], answers: list[Effect]) -> pd.DataFrame:
    """Returns a line a value of the grid."""
    import pandas as pd

    if answers[0].estimate is None:
        return pd.concat(
            [
                answer.probabilities.assign(**{name: value})[[name, "level", "do", "difference"]]
                for value, answer in zip(grid, answers, strict=True)
                if answer.probabilities is not None
            ]
        )
    columns: dict[str, list[Any]] = {
        name: list(grid),
        "mean": [answer.mean for answer in answers],
        "estimate": [answer.estimate for answer in answers],
    }
    if answers[0].interval is None:
        columns["standard_error"] = [answer.standard_error for answer in answers]
    else:
        columns["lower"] = [answer.interval[0] for answer in answers if answer.interval]
        columns["upper"] = [answer.interval[1] for answer in answers if answer.interval]
    return pd.DataFrame(columns)
