r"""The page: what was found, put into the template, which writes and draws it.

The order is that of a reader: the question and its answer, what speaks against it, effects in
groups and along the dose, then the table, what its holes leave known, the graph, the fit, its
checks, and at last all that is needed to do it again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from misscnf import __version__
from misscnf.data.codecs import Levels
from misscnf.data.table import IncompleteTable, Table
from misscnf.estimators.misscnf import MissCNF
from misscnf.identification.checking import read_effect
from misscnf.identification.families import whole_families
from misscnf.identification.words import contradiction_sentence, listed, loss_sentence, percent
from misscnf.options import change
from misscnf.queries.effects import Effect
from misscnf.report import inventory, methods, pictures, verdicts
from misscnf.report.effects import Question, contrasts, dose_grid, forest_lines, open_question
from misscnf.report.graph_picture import draw_graph
from misscnf.report.model_checks import check_fit
from misscnf.report.settings import ReportSettings
from misscnf.report.table_one import table_one
from misscnf.report.words import Answer, chance, label, minus, plural, whole

__all__ = ["write_report"]


@dataclass(frozen=True)
class Effects:
    """The part of the page on one effect."""

    treatment: str
    outcome: str
    first: Effect
    """The effect that opens the page."""
    answer: Answer | None = None
    """The same in words; None where by the graph there is no effect."""
    forest: pictures.Image | None = None
    alike: bool = False
    """Whether groups differ by no more than rounding: the model has no interactions."""
    curve: pictures.Image | None = None


def write_report(
    model: MissCNF,
    df: Table,
    path: str | os.PathLike[str],
    effect: tuple[str, str] | None = None,
    *,
    interval: float | None = 0.95,
    replicates: int | None = None,
    seed: int = 0,
    settings: ReportSettings | Mapping[str, object] | None = None,
) -> None:
    """Writes a page about a fitted model and its table: one HTML file that needs nothing else.

    Arguments:
        model: The fitted model.
        df: The table it was fitted to.
        path: Where the page goes.
        effect: (treatment, outcome): the question to open with; without it, a summary opens.
        interval: The level of intervals, or None to leave them out: they take longest.
        replicates: How many replicates of the fit the intervals come from; as in `effect`.
        seed: Where the randomness of the page starts.
        settings: `ReportSettings`, or changes to them by name, such as `{"effects.grid": 30}`.
    """
    if not isinstance(settings, ReportSettings):
        settings = change(ReportSettings(), settings or {})
    table = model._read(df)
    question = None
    if effect is not None:
        pair, rules = read_effect(model.graph_, effect), settings.effects
        asked = Question(model, table, *pair, interval, rules, replicates=replicates, seed=seed)
        question = open_question(asked)
    page = _render(model, table, question, settings, seed)
    Path(path).write_text(page, encoding="utf-8")


def _render(
    model: MissCNF,
    table: IncompleteTable,
    question: Question | None,
    settings: ReportSettings,
    seed: int,
) -> str:
    graph, pair, effects = model.graph_, None, None
    if question is not None:
        pair, effects = (question.treatment, question.outcome), _effects(question)
    do = None if effects is None else effects.first.do
    fitted = model.check(table, pair, do=do, seed=seed, settings=settings.identification)
    seen = whole_families(graph, table.observed.numpy()).mean(axis=0).tolist()
    title = f"A causal model of {plural(len(graph), 'column')}"
    return _template().render(
        title=title if pair is None else f"What does {pair[0]} do to {pair[1]}?",
        model=model,
        table=table,
        graph=graph,
        pair=pair,
        effects=effects,
        fitted=fitted,
        report=fitted.report,
        complete=fitted.report.usage.iloc[0],
        shares=dict(zip(graph.nodes, seen, strict=True)),
        checks=check_fit(model, table, settings.checks, seed),
        settings=settings,
        limits=settings.limits,
        seed=seed,
    )


def _template() -> Any:  # noqa: ANN401 - Jinja's template
    """Returns the page's text, with the functions that write and draw what it is given."""
    here = files("misscnf.report")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_keep_together,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    written = [percent, listed, loss_sentence, contradiction_sentence, whole, minus, chance]
    drawn = [pictures.draw_family, pictures.draw_noise]
    environment.filters |= {function.__name__: function for function in [*written, *drawn]}
    environment.filters["share"] = _share
    environment.globals |= {"pictures": pictures, "verdicts": verdicts, "inventory": inventory}
    environment.globals |= {"draw_graph": draw_graph, "version": __version__}
    environment.globals |= {"methods": methods, "table_one": table_one}
    environment.globals["style"] = Markup(here.joinpath("style.css").read_text("utf-8"))
    return environment.from_string(here.joinpath("page.html").read_text("utf-8"))


def _keep_together(value: object) -> object:
    """Lets no line break between a number and its percent sign."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value


def _share(share: float, none: str = "—") -> str:
    return none if np.isnan(share) else percent(share)


def _effects(question: Question) -> Effects:
    """Returns the answer, the forest plot and the dose-response curve."""
    names = question.treatment, question.outcome
    if not question.has_effect:
        value, versus = contrasts(question)[0]
        return Effects(*names, replace(question, level=None).ask(value, versus))
    lines = forest_lines(question)
    told = Answer(lines[0].answer)
    groups = [line.answer.estimate or 0.0 for line in lines if line.heading]
    return Effects(
        *names,
        lines[0].answer,
        told,
        pictures.draw_forest(lines, told.unit) if len(lines) > 1 else None,
        len(groups) > 1 and bool(np.allclose(groups, groups[0], rtol=1e-6)),
        _curve(question),
    )


def _curve(question: Question) -> pictures.Image | None:
    grid = dose_grid(question)
    if len(grid) < 3:
        return None
    value, versus = contrasts(question)[0]
    curve = question.curve(grid, versus)
    column, own = question.column(question.treatment), question.column(question.outcome)
    event, outcome = question.event, f"mean of {question.outcome}"
    if event is None and isinstance(own, Levels) and own.kind == "binary":
        event = own.levels[-1]
    if event is not None:
        outcome = f"risk of {question.outcome} = {label(event)}, %"
        curve.loc[:, curve.columns.str.startswith("mean")] *= 100.0
    seen = question.seen(question.treatment)
    if isinstance(column, Levels):
        seen = np.array(column.levels, dtype=float)[seen.astype(np.int64)]
    arms = float(value), float(versus)
    return pictures.draw_curve(curve, question.treatment, outcome, seen, arms)
