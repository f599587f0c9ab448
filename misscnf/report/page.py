r"""The page: what was found, put into the template, which writes and draws it.

The order is that of a reader: the question and its answer, what speaks against it, effects in
groups and along the dose, then the table, what its holes leave known, the graph, the fit, its
checks, and at last all that is needed to do it again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from misscnf import __version__
from misscnf.data.codecs import Levels
from misscnf.data.table import IncompleteTable, Table
from misscnf.errors import InputError
from misscnf.estimators.fitted import FittedFlow
from misscnf.identification.checking import read_effect
from misscnf.identification.families import whole_families
from misscnf.identification.words import contradiction_sentence, listed, loss_sentences, percent
from misscnf.options import change
from misscnf.queries.by import GroupEffects
from misscnf.queries.effects import Effect
from misscnf.queries.interventions import Do
from misscnf.queries.plain import PlainEstimate
from misscnf.queries.support import FittedReport
from misscnf.report import inventory, methods, pictures, verdicts
from misscnf.report.effects import (
    Question,
    contrasts,
    dose_grid,
    forest_lines,
    group_effects,
    open_question,
)
from misscnf.report.model_checks import check_fit
from misscnf.report.over_time import arms_of, page_over_time
from misscnf.report.sensitivity import Section, ask_sensitivity, how_to_ask
from misscnf.report.settings import ReportSettings
from misscnf.report.table_one import table_one
from misscnf.report.words import Answer, chance, label, minus, of_group, plural, whole
from misscnf.threads import one_thread

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
    beside: tuple[PlainEstimate, ...] = ()
    """What the rows say without the model."""
    groups: tuple[GroupEffects, ...] = ()
    """The same in groups, a column each, and how they differ."""
    forest: pictures.Image | None = None
    curve: pictures.Image | None = None

    @property
    def alike(self) -> bool:
        """Whether the model gives every group the same effect, whatever the rows say."""
        answers = [one for found in self.groups for one in found.effects.values()]
        return bool(answers) and all(one.equal_groups for one in answers)

    @property
    def group_notes(self) -> list[str]:
        """What is to be known about groups, and not about everybody."""
        answers = [one for found in self.groups for one in found.effects.values()]
        notes = [
            note for one in answers if not one.equal_groups for note in one.notes + one.doubts
        ]
        own = dict.fromkeys(
            note for note in notes if note not in self.first.notes + self.first.doubts
        )
        return [note[0].upper() + note[1:] for note in own]


@one_thread()
def write_report(
    model: FittedFlow,
    df: Table,
    path: str | os.PathLike[str],
    effect: tuple[str, str] | None = None,
    *,
    groups: Sequence[str] = (),
    do: Do | None = None,
    versus: Do | None = None,
    interval: float | None = 0.95,
    replicates: int | None = None,
    seed: int = 0,
    settings: ReportSettings | Mapping[str, object] | None = None,
    sensitivity: Mapping[str, Any] | None = None,
) -> None:
    """Writes a page about a fitted model and its table: one HTML file that needs nothing else.

    Arguments:
        model: The fitted model.
        df: The table it was fitted to.
        path: Where the page goes.
        effect: (treatment, outcome): the question to open with; without it, a summary opens.
        groups: Columns in whose groups the effect is asked for as well, by their levels or at
            their median; without any, a few that suggest themselves.
        do: Of a table over time, the first regime that is compared (docs/panels.md); without it,
            two common values of the treatment at every visit.
        versus: The second one; the natural course by default.
        interval: The level of intervals, or None to leave them out: they take longest.
        replicates: How many replicates of the fit the intervals come from; as in `effect`.
        seed: Where the randomness of the page starts.
        settings: `ReportSettings`, or changes to them by name, such as `{"effects.grid": 30}`.
        sensitivity: Asks the effect along what cannot be known of a loss as well, such as
            `{"shift": {"do": [0, 1, 2]}}`; as in `MissCNF.sensitivity`.

    Example:
        >>> import tempfile
        >>> import numpy as np, pandas as pd
        >>> from misscnf import MissCNF
        >>> dose = np.random.default_rng(0).normal(size=100)
        >>> df = pd.DataFrame({"dose": dose, "days": 9 - 2 * dose + np.cos(9 * dose)})
        >>> model = MissCNF("dose -> days", "linear").fit(df)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = Path(folder, "report.html")
        ...     write_report(model, df, page, ("dose", "days"), interval=None)
        ...     "</html>" in page.read_text(encoding="utf-8")
        True
    """
    if not isinstance(settings, ReportSettings):
        settings = change(ReportSettings(), settings or {})
    table = model._read_again(df, counted=True)
    question = None
    if model.panel_ is not None:
        if groups or sensitivity:
            what = "groups=" if groups else "sensitivity="
            raise InputError(f"{what} is not there yet on the page of a table over time.")
        about = (interval, replicates, settings, seed)
        filled = page_over_time(model, table, effect, arms_of(do, versus), *about)
        page = _write("over_time.html", filled, model, table, settings, seed)
        Path(path).write_text(page, encoding="utf-8")
        return
    if do is not None or versus is not None:
        raise InputError(
            "do= and versus= are regimes over time; name the effect alone, "
            "effect=(cause, outcome), for a table that is none."
        )
    named = (groups,) if isinstance(groups, str) else tuple(dict.fromkeys(groups))
    for name in named:
        model.graph_.index(name)  # refuses one that is not there
    if effect is not None:
        pair, rules = read_effect(model.graph_, effect), settings.effects
        asked = Question(
            model, table, *pair, interval, rules, replicates=replicates, groups=named, seed=seed
        )
        question = open_question(asked)
    elif named or sensitivity:
        what = "groups are those" if named else "sensitivity is that"
        raise InputError(f"{what} of an effect; name it as well, effect=(cause, outcome).")
    page = _render(model, table, question, settings, seed, sensitivity)
    Path(path).write_text(page, encoding="utf-8")


def _render(
    model: FittedFlow,
    table: IncompleteTable,
    question: Question | None,
    settings: ReportSettings,
    seed: int,
    sensitivity: Mapping[str, Any] | None,
) -> str:
    graph, pair, effects = model.graph_, None, None
    if question is not None:
        pair, effects = (question.treatment, question.outcome), _effects(question)
    do = None if effects is None else effects.first.do
    fitted = model.check(table, pair, do=do, seed=seed, settings=settings.identification)
    assert isinstance(fitted, FittedReport)  # pages of tables over time are others
    hidden = sorted(graph.latent_nodes)
    observed = table.observed.numpy().copy()
    observed[:, hidden] = True  # a family is seen whole where all of it is that can be
    seen = whole_families(graph, observed).mean(axis=0)
    seen[hidden] = np.nan
    size = plural(len(graph) - len(hidden), "column")
    size += f" and {plural(len(hidden), 'hidden cause')}" if hidden else ""
    title = f"A causal model of {size}"
    filled = dict(
        title=title if pair is None else f"What does {pair[0]} do to {pair[1]}?",
        graph=graph,
        pair=pair,
        effects=effects,
        fitted=fitted,
        report=fitted.report,
        complete=fitted.report.usage.iloc[0],
        size=size,
        shares=dict(zip(graph.nodes, seen.tolist(), strict=True)),
        groups=() if question is None else question.groups,
        sensitivity=_sensitivity(question, effects, sensitivity),
        asked_of_loss=sensitivity,
        checks=check_fit(model, table, settings.checks, seed),
    )
    return _write("page.html", filled, model, table, settings, seed)


def _write(
    name: str,
    filled: Mapping[str, Any],
    model: FittedFlow,
    table: IncompleteTable,
    settings: ReportSettings,
    seed: int,
) -> str:
    """Returns a template with what it is filled with."""
    about = {"model": model, "table": table, "settings": settings, "limits": settings.limits}
    return str(_template(name).render(**about, **filled, seed=seed))


def _sensitivity(
    question: Question | None, effects: Effects | None, asked: Mapping[str, Any] | None
) -> Section | None:
    """Returns the answer along what cannot be known of a loss, where that was asked for."""
    if question is None or effects is None or not asked or effects.answer is None:
        return None
    how = {
        "interval": question.level,
        "replicates": question.replicates,
        "draws": question.rules.draws_of_parts,
        "seed": question.seed,
    }
    return ask_sensitivity(question.model, question.table, effects.first, asked, how)


def _template(name: str) -> Any:  # noqa: ANN401 - Jinja's template
    """Returns a page's text, with the functions that write and draw what it is given."""
    here = files("misscnf.report")
    environment = Environment(
        loader=FunctionLoader(lambda part: here.joinpath(part).read_text("utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_keep_together,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    written = [percent, listed, loss_sentences, contradiction_sentence, whole, minus, chance]
    written += [of_group]
    drawn = [pictures.draw_family, pictures.draw_noise]
    environment.filters |= {function.__name__: function for function in [*written, *drawn]}
    environment.filters["share"] = _share
    environment.globals |= {"pictures": pictures, "verdicts": verdicts, "inventory": inventory}
    environment.globals |= {"draw_graph": pictures.draw_graph, "version": __version__}
    environment.globals |= {"methods": methods, "table_one": table_one}
    environment.globals["how_to_ask"] = how_to_ask
    environment.globals["style"] = Markup(here.joinpath("style.css").read_text("utf-8"))
    return environment.get_template(name)


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
    groups = group_effects(question)
    lines = forest_lines(question, groups)
    first = lines[0].answer
    told = Answer(first)
    return Effects(
        *names,
        first,
        told,
        tuple(question.model.plain_estimates(first, question.table)),
        tuple(groups),
        pictures.draw_forest(lines, told.unit) if len(lines) > 1 else None,
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
