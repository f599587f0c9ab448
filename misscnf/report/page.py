r"""The page: every section's numbers, words and pictures, put into the template.

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
from misscnf.errors import InputError
from misscnf.estimators.misscnf import MissCNF
from misscnf.identification import Report
from misscnf.identification.families import whole_families
from misscnf.identification.words import contradiction_sentence, listed, loss_sentence, percent
from misscnf.options import change
from misscnf.queries.effects import Effect
from misscnf.report import inventory, pictures, verdicts
from misscnf.report.effects import Question, contrasts, dose_grid, forest_lines, open_question
from misscnf.report.graph_picture import draw_graph
from misscnf.report.model_checks import NoiseCheck, integrals, noise_checks, overimpute
from misscnf.report.settings import Limits, ReportSettings
from misscnf.report.words import Answer, label, minus, plural, tell, whole

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
    """Whether groups differ by no more than rounding."""
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
        pair, rules = _read_pair(model, effect), settings.effects
        asked = Question(model, table, *pair, interval, rules, replicates=replicates, seed=seed)
        question = open_question(asked)
    page = _render(model, table, question, settings, seed)
    Path(path).write_text(page, encoding="utf-8")


def _read_pair(model: MissCNF, effect: tuple[str, str]) -> tuple[str, str]:
    if isinstance(effect, str) or len(effect) != 2 or effect[0] == effect[1]:
        wanted = "an effect is a pair (treatment, outcome) of two nodes, such as ('t', 'y')"
        raise InputError(f"{wanted}; got {effect!r}.")
    for name in effect:
        model.graph_.index(name)
    return str(effect[0]), str(effect[1])


def _render(
    model: MissCNF,
    table: IncompleteTable,
    question: Question | None,
    settings: ReportSettings,
    seed: int,
) -> str:
    pair = None if question is None else (question.treatment, question.outcome)
    effects = None if question is None else _effects(question)
    first = None if effects is None else effects.first
    do = None if first is None else first.do
    fitted = model.check(table, pair, do=do, seed=seed, settings=settings.identification)
    limits, rules = settings.limits, settings.checks
    noise = noise_checks(model, table, rules, seed)
    ranks = overimpute(model, table, rules, seed)
    exactness = integrals(model, table, rules, seed)
    drawn, history = noise, model.history_
    if len(noise) > limits.most_noise:  # those with a departure first
        drawn = sorted(noise, key=lambda check: check.ok)[: limits.most_noise]
    return _template().render(
        title=_title(model, pair),
        version=__version__,
        shape=_shape(fitted.report, len(model.graph_)),
        effects=effects,
        verdicts=verdicts.verdicts(model, first, fitted, noise, ranks, exactness),
        holes=_holes(fitted.report, limits),
        positivity=_positivity(fitted.report, fitted.warnings, limits),
        graph=_graph(model, table, fitted.report, pair or ()),
        fit={
            "picture": pictures.draw_training(history) if len(history) > 1 else None,
            "held_out": verdicts.held_out_sentence(model),
            "chosen": model.chosen_,
            "score": minus(f"{exactness.score:.3f}"),
        },
        checks={
            "noise": noise,
            "noise_pictures": [pictures.draw_noise(check, limits) for check in drawn],
            "noise_sentence": verdicts.noise_sentence(noise),
            "noise_rows": min(rules.noise_rows, int(table.observed.any(1).sum())),
            "ranks": None if ranks is None else ranks.columns.to_dict(orient="records"),
            "ranks_picture": None if ranks is None else pictures.draw_ranks(ranks, limits),
            "ranks_sentence": verdicts.rank_sentence(ranks),
            "draws": rules.draws,
            "integrals": verdicts.integral_sentence(exactness),
        },
        inventory={"changes": inventory.changes(model, table), "kinds": inventory.kinds(model)},
        again={
            "settings": inventory.settings(model, settings),
            "versions": inventory.versions(),
            "seed": model.seed,
            "page_seed": seed,
            "fingerprint": table.digest[:16],
            "recipe": inventory.recipe(model, pair, settings),
        },
    )


def _template() -> Any:  # noqa: ANN401 - Jinja's template
    here = files("misscnf.report")
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_keep_together,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"percent": percent, "whole": whole, "minus": minus}
    environment.filters |= {**filters, "share": _share, "finding": _finding}
    environment.globals["style"] = Markup(here.joinpath("style.css").read_text("utf-8"))
    return environment.from_string(here.joinpath("page.html").read_text("utf-8"))


def _keep_together(value: object) -> object:
    """Lets no line break between a number and its percent sign."""
    return value.replace(" %", "\N{NO-BREAK SPACE}%") if type(value) is str else value


def _title(model: MissCNF, pair: tuple[str, str] | None) -> str:
    if pair is None:
        return f"A causal model of {plural(len(model.graph_), 'column')}"
    return f"What does {pair[0]} do to {pair[1]}?"


def _shape(report: Report, columns: int) -> dict[str, str]:
    complete = int(report.usage["rows"].iloc[0])
    cells = int(report.usage["cells"].iloc[1])
    return {
        "rows": whole(report.rows),
        "columns": whole(columns),
        "holes": percent(1.0 - cells / (report.rows * columns)),
        "complete": f"{whole(complete)} ({percent(complete / report.rows)})",
        "patterns": whole(len(report.patterns)),
        "order": "nested" if report.monotone else "not nested",
    }


def _effects(question: Question) -> Effects:
    """Returns the answer, the forest plot and the dose-response curve."""
    names = question.treatment, question.outcome
    if not question.has_effect:
        value, versus = contrasts(question)[0]
        return Effects(*names, replace(question, level=None).ask(value, versus))
    lines = forest_lines(question)
    told = tell(lines[0].answer)
    return Effects(
        *names,
        lines[0].answer,
        told,
        pictures.draw_forest(lines, told.unit) if len(lines) > 1 else None,
        _alike([line.answer.estimate for line in lines if line.heading]),
        _curve(question),
    )


def _alike(estimates: list[float | None]) -> bool:
    """Whether groups differ by no more than rounding: the model has no interactions."""
    found = [estimate for estimate in estimates if estimate is not None]
    return len(found) > 1 and bool(np.allclose(found, found[0], rtol=1e-6))


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


def _holes(report: Report, limits: Limits) -> dict[str, object]:
    return {
        "picture": pictures.draw_patterns(report, limits),
        "more": max(len(report.patterns) - limits.most_patterns, 0),
        "loss": [loss_sentence(line) for line in report.loss],
        "little": report.little,
        "level": report.settings.little.level,
        "questions": [hole.question for hole in report.structural_holes],
        "complete_cells": percent(float(report.usage["cell share"].iloc[0])),
    }


def _positivity(report: Report, warnings: tuple[str, ...], limits: Limits) -> dict[str, object]:
    covered = report.nodes["status"] == "covered"
    return {
        "ok": report.ok,
        "count": len(report.nodes),
        "uncovered": report.nodes.loc[~covered, "sentence"].tolist(),
        "covered": listed(report.nodes.loc[covered, "node"].tolist(), 40),
        "full_pattern": report.full_pattern_sentence,
        "regions": report.regions.head(limits.most_regions).to_dict(orient="records"),
        "more": max(len(report.regions) - limits.most_regions, 0),
        "pictures": [pictures.draw_coverage(curve) for curve in report.curves],
        "warnings": list(warnings),
        "rows_to_tell": report.rows_to_tell,
        "no_need": report.effect is not None and not report.needed,
    }


def _share(share: float, none: str = "—") -> str:
    return none if np.isnan(share) else percent(share)


def _graph(
    model: MissCNF, table: IncompleteTable, report: Report, asked: tuple[str, ...]
) -> dict[str, object]:
    graph = model.graph_
    seen = whole_families(graph, table.observed.numpy()).mean(axis=0).tolist()
    shares = dict(zip(graph.nodes, seen, strict=True))
    status = dict(zip(report.nodes["node"], report.nodes["status"], strict=True))
    lines = [
        (name, ", ".join(parents) or "—", percent(shares[name]), status.get(name, "not needed"))
        for name, parents in graph.to_dict().items()
    ]
    return {
        "picture": draw_graph(graph, shares, set(report.uncovered), asked),
        "families": lines,
        "contradictions": [contradiction_sentence(line) for line in report.contradictions],
        "tested": report.independences_tested,
    }


def _finding(check: NoiseCheck) -> str:
    parts = []
    for p_value, found in (
        (check.p_value, "not normal"),
        (check.parent_p_value, f"goes with {check.parent}"),
    ):
        if p_value < check.level:
            chance = "below 0.0001" if p_value < 1e-4 else f"= {p_value:.4f}"
            parts.append(f"{found} (p {chance})")
    return "; ".join(parts) or "nothing found"
