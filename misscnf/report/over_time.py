r"""The page of a table over time: arms by visit, the natural course, follow-up, the graph.

It opens with the outcome under two regimes at its last visit. An event is told by its risk up to
each visit (`queries.incidence`), any other outcome by its mean there. What the page knows of how
far to trust that is what a table over time shows: whether the model's natural course is that of
the table, how many follow each regime by themselves, and who is still seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from misscnf import __version__
from misscnf.data.codecs import Levels
from misscnf.data.panel import Panel
from misscnf.data.table import IncompleteTable
from misscnf.display.style import STYLE
from misscnf.errors import InputError
from misscnf.estimators.fitted import FittedFlow
from misscnf.graph import CausalGraph
from misscnf.graph.indicators import column_of
from misscnf.graph.template import Template, at_visit
from misscnf.identification.families import whole_families
from misscnf.identification.words import listed, percent
from misscnf.queries.incidence import Risks
from misscnf.queries.interventions import Do, written
from misscnf.report.natural_course import (
    Course,
    draw_course,
    draw_follow_up,
    mark_visits,
    natural_courses,
)
from misscnf.report.pictures import Image, draw_graph, image, new_figure
from misscnf.report.settings import EffectRules, ReportSettings
from misscnf.report.verdicts import Verdict
from misscnf.report.words import label, minus, plural, points, rounded, signed, whole

__all__ = ["arms_of", "page_over_time"]


@dataclass(frozen=True)
class ByVisit:
    """An outcome under two regimes at each visit."""

    outcome: str
    arms: tuple[str, str]
    table: pd.DataFrame
    """A row a visit: time, first, second, difference; each with lower and upper if asked for."""
    risk: bool
    """Whether these are risks or shares, and not means."""
    at: str
    """When the last of them is, in words."""
    notes: tuple[str, ...]
    replicates: int | None
    level: float | None
    extra: str = ""
    """What else is to be said of the last visit."""

    def _written(self, name: str, line: int = -1) -> tuple[str, str]:
        """Returns a number, and its interval as "lower to upper"."""
        row = self.table.iloc[line]
        own, named = float(row[name]), (f"{name}_lower", f"{name}_upper")
        ends = [float(row[end]) for end in named if end in row]
        spread = (ends[1] - ends[0]) / 2.0 if ends else abs(own) / 10.0
        write = points if self.risk else rounded
        return write(own, spread), " to ".join(write(end, spread) for end in ends)

    @property
    def figure(self) -> str:
        """The difference at the last visit."""
        return signed(self._written("difference")[0])

    @property
    def unit(self) -> str:
        """What it is a number of."""
        return f"percentage points in {self.what}" if self.risk else f"difference in {self.what}"

    @property
    def what(self) -> str:
        """What is compared, at the last visit."""
        return f"the {'risk' if self.risk else 'mean'} of {self.outcome} {self.at}"

    @property
    def interval(self) -> str:
        """Such as "95 % interval 2.6 to 4.5"; empty where there is none."""
        ends = self._written("difference")[1]
        return f"{100 * (self.level or 0):g} % interval {ends}" if ends else ""

    @property
    def sentence(self) -> str:
        """What would be under one regime rather than the other."""
        (first, _), (second, _) = self._written("first"), self._written("second")
        unit = "\N{NO-BREAK SPACE}%" if self.risk else ""
        return (
            f"With {self.arms[0]}, {self.what} would be {first}{unit}; with {self.arms[1]}, "
            f"{second}{unit}."
        )

    def lines(self) -> list[list[str]]:
        """Returns the numbers of each visit, as people read them."""
        found = []
        for line, time in enumerate(self.table["time"]):
            cells = [f"{time:g}"]
            for name in ("first", "second", "difference"):
                number, ends = self._written(name, line)
                number = signed(number) if name == "difference" else number
                cells.append(f"{number} ({ends})" if ends else number)
            found.append(cells)
        return found

    def draw(self, time: str) -> Image:
        """Draws both arms along the visits, with their bands."""
        scale = 100.0 if self.risk else 1.0
        colours = (STYLE.blue, STYLE.pale_blue), (STYLE.orange, STYLE.pale_orange)
        with new_figure(STYLE.wide, 2.75) as figure:
            ax, when = figure.subplots(), self.table["time"]
            for arm, name, (line, band) in zip(
                self.arms, ("first", "second"), colours, strict=True
            ):
                if f"{name}_lower" in self.table:
                    low, high = (scale * self.table[f"{name}_{end}"] for end in ("lower", "upper"))
                    ax.fill_between(when, low, high, color=band, alpha=0.7, linewidth=0)
                ax.plot(when, scale * self.table[name], "o-", color=line, markersize=3, label=arm)
            if self.risk:
                ax.set_ylim(bottom=0.0)
            mark_visits(ax, when)
            ax.set_xlabel(time)
            unit = ", %" if self.risk else ""
            ax.set_ylabel(f"{'risk' if self.risk else 'mean'} of {self.outcome}{unit}")
            ax.legend(loc="best")
            return image(figure, f"{self.outcome} by {time}, both arms. {self.sentence}")


def page_over_time(
    model: FittedFlow,
    table: IncompleteTable,
    effect: tuple[str, str] | None,
    arms: tuple[Do, Do] | None,
    interval: float | None,
    replicates: int | None,
    settings: ReportSettings,
    seed: int,
) -> dict[str, Any]:
    """Returns what the page is filled with.

    Arguments:
        model: The fit of a table over time.
        table: Its table, a row a person.
        effect: (treatment, outcome), or None for a page without a question.
        arms: The regimes that are compared; None for two common values at every visit.
        interval: The level of intervals.
        replicates: How many these come from.
        settings: What the page shows.
        seed: Where randomness starts.
    """
    panel, rules = model.panel_, settings.effects
    assert panel is not None
    found = compared = None
    if effect is not None:
        treatment, outcome = effect
        _refuse_unknown(panel, treatment, outcome)
        compared = arms or _common(table, panel, treatment, rules)
        how = {
            "interval": interval,
            "replicates": replicates,
            "data": table,
            "seed": seed,
        }
        found = _answer(model, panel, outcome, compared, how, rules)
    courses = natural_courses(model, table, rules.draws, settings.checks.level, seed)
    risks = {
        name: model.risk(name, draws=rules.draws, seed=seed, data=table, population="model")
        for name in panel.events
    }
    followed = () if compared is None else tuple(_followers(table, panel, arm) for arm in compared)
    follow_up = _follow_up(table, panel, followed)
    names = [name for name in panel.template.varying if (follow_up[name] > 0).any()]
    template, shares = _template_graph(model, panel, table)
    cells = table.observed.numpy()
    return {
        "title": _title(effect),
        "panel": panel,
        "people": len(table),
        "missing": 1.0 - float(follow_up["cells"].sum() / max(follow_up["wanted"].sum(), 1)),
        "rows": int(follow_up["seen"].sum()),
        "question": found,
        "picture_of_arms": None if found is None else found.draw(panel.time),
        "verdicts": _verdicts(panel, found, courses, risks, followed, settings, len(cells)),
        "courses": [draw_course(course) for course in courses],
        "alarms": [course.column for course in courses if not course.ok],
        "risks": {name: _draw_risk(one) for name, one in risks.items()},
        "follow_up": _follow_up_lines(follow_up, panel, followed),
        "picture_of_follow_up": draw_follow_up(follow_up, panel.time, names),
        "graph_picture": draw_graph(template, shares, (), _asked(panel, effect)),
        "arrows": _arrows(panel.template),
        "mechanisms": _mechanisms(model, panel),
        "kinds": panel.described(model.kinds_),
        "methods": _methods(model, panel, table, found),
        "recipe": _recipe(model, panel, effect, arms),
    }


def _title(effect: tuple[str, str] | None) -> str:
    if effect is None:
        return "A causal model over time"
    return f"What does {effect[0]} do to {effect[1]} over time?"


def _refuse_unknown(panel: Panel, treatment: str, outcome: str) -> None:
    known = (*panel.template.baseline, *panel.template.varying)
    for name in (treatment, outcome):
        if name not in known:
            raise InputError(
                f"the graph over time has no column {name!r}; it has {listed(known)} (name a "
                f"column, not a single visit)."
            )
    if outcome in panel.template.baseline:
        raise InputError(f"{outcome!r} is known once a person; name an outcome of the visits.")
    if treatment in panel.events:
        raise InputError(f"{treatment!r} is an event, and no treatment.")


def _nodes(panel: Panel, name: str) -> list[str]:
    return panel.at(name) if name in panel.template.varying else [name]


def _common(
    table: IncompleteTable, panel: Panel, treatment: str, rules: EffectRules
) -> tuple[Do, Do]:
    """Returns two values at every visit: both levels, or two quantiles of numbers."""
    places = [table.nodes.index(node) for node in _nodes(panel, treatment)]
    codec = table.schema.columns[places[0]]
    if isinstance(codec, Levels):
        high, low = codec.levels[-1], codec.levels[0]
        if len(codec.levels) > 2:
            raise InputError(
                f"{treatment!r} has {len(codec.levels)} levels; say which regimes are compared, "
                f"do={{{treatment!r}: …}} and versus={{{treatment!r}: …}}."
            )
        return {treatment: high}, {treatment: low}
    seen = np.concatenate([table.raw[:, j][~np.isnan(table.raw[:, j])] for j in places])
    below, above = np.quantile(seen, rules.compared)
    return {treatment: float(f"{above:.3g}")}, {treatment: float(f"{below:.3g}")}


def _arm_words(arm: Do, panel: Panel) -> str:
    if not arm:
        return "the natural course"
    parts = []
    for name, value in arm.items():
        rule = isinstance(value, str) and any(sign in value for sign in "[(<> ")
        shown = f"{name} by the rule {value}" if rule else f"{name} = {label(value)}"
        parts.append(shown + " at every visit" * (name in panel.template.varying and not rule))
    return " and ".join(parts)


def _answer(
    model: FittedFlow,
    panel: Panel,
    outcome: str,
    arms: tuple[Do, Do],
    how: Mapping[str, Any],
    rules: EffectRules,
) -> ByVisit:
    """Asks for both arms at each visit."""
    words = _arm_words(arms[0], panel), _arm_words(arms[1], panel)
    if outcome in panel.events:
        risks = model.risk(outcome, arms[0], arms[1], draws=rules.draws, **how)
        table = risks.table.rename(columns=lambda name: _renamed(name))
        mean, away = risks.restricted_mean_interval, risks.restricted_mean_difference_interval
        extra = f"Mean time without it up to then, by {panel.time}: {risks.restricted_mean:.3g} "
        extra += "against "
        extra += f"{risks.restricted_mean_versus:.3g}"
        if mean is not None and away is not None:
            extra += f", a difference of {risks.restricted_mean_difference:.3g} "
            extra += f"({away[0]:.3g} to {away[1]:.3g})"
        if risks.competing:
            extra += f". {listed(risks.competing)} end a course too, and are left as they are"
        last = f"by {panel.time} {risks.table['time'].iloc[-1]:g}"
        about = risks.notes + risks.doubts, risks.replicates, risks.level
        risk = True
        return ByVisit(outcome, words, table, risk, last, *about, minus(extra) + ".")
    visits = [v for v in panel.visits if at_visit(outcome, v) in panel.at(outcome)]
    places = np.unique(np.linspace(0, len(visits) - 1, rules.grid).round().astype(int))
    lines, doubts, last_effect = [], dict[str, None](), None
    for place in places:
        node = at_visit(outcome, visits[place])
        effect = model.effect(node, arms[0], arms[1], draws=rules.draws_of_parts, **how)
        if effect.estimate is None or effect.mean_versus is None:
            raise InputError(
                f"{outcome!r} has several levels, and so no mean that could be drawn over time; "
                f"ask model.effect({node!r}, …) for the chances of its levels."
            )
        line = {"time": float(visits[place]), "first": effect.mean, "second": effect.mean_versus}
        line["difference"] = effect.estimate
        named = (
            ("first", effect.mean_interval),
            ("second", effect.mean_versus_interval),
            ("difference", effect.interval),
        )
        for name, ends in named:
            if ends is not None:
                line[f"{name}_lower"], line[f"{name}_upper"] = ends
        lines.append(line)
        told = (note.replace(node, outcome) for note in effect.notes + effect.doubts)
        doubts |= dict.fromkeys(told)
        last_effect = effect
    assert last_effect is not None
    risk = last_effect.event is not None
    at = f"at {panel.time} {visits[-1]:g}"
    name = outcome if not risk else f"{outcome} = {label(last_effect.event)}"
    about = tuple(doubts), last_effect.replicates, last_effect.level
    return ByVisit(name, words, pd.DataFrame(lines), risk, at, *about)


def _renamed(name: str) -> str:
    """Returns the columns of risks as those of arms."""
    for old, new in (("risk", "first"), ("versus", "second")):
        if name == old or name.startswith(f"{old}_"):
            return new + name[len(old) :]
    return name


def _followers(table: IncompleteTable, panel: Panel, arm: Do) -> pd.Series | None:
    """Returns how many have followed an arm of plain values up to each visit, by themselves."""
    if len(arm) != 1:
        return None
    ((name, value),) = arm.items()
    nodes = _nodes(panel, name)
    codec = table.schema.columns[table.nodes.index(nodes[0])]
    if not isinstance(codec, Levels) or value not in codec.levels:
        return None
    code, still = float(codec.levels.index(value)), np.ones(len(table), dtype=bool)
    counts = {}
    for visit in panel.visits:
        node = at_visit(name, visit) if name in panel.template.varying else name
        if node in table.nodes:
            j = table.nodes.index(node)
            still &= (table.raw[:, j] == code) & table.observed[:, j].numpy()
        counts[visit] = int((still & _seen(table, panel, visit)).sum())
    return pd.Series(counts)


def _seen(table: IncompleteTable, panel: Panel, visit: float) -> np.ndarray:
    """Says who shows something at a visit, (N,)."""
    nodes = [at_visit(name, visit) for name in panel.template.varying]
    places = [table.nodes.index(node) for node in nodes if node in table.nodes]
    return np.asarray(table.observed[:, places].any(1).numpy())


def _follow_up(
    table: IncompleteTable, panel: Panel, followed: tuple[pd.Series | None, ...]
) -> pd.DataFrame:
    """Returns a row a visit: who is seen, events, and the share of their cells that is missing."""
    lines = []
    for visit in panel.visits:
        seen = _seen(table, panel, visit)
        line: dict[str, Any] = {"time": visit, "seen": int(seen.sum()), "cells": 0, "wanted": 0}
        for name in panel.template.varying:
            node = at_visit(name, visit)
            if node not in table.nodes:
                line[name] = np.nan
                continue
            j = table.nodes.index(node)
            shown = table.observed[:, j].numpy() & seen
            line[name] = 1.0 - float(shown.sum()) / max(int(seen.sum()), 1)
            if name in panel.events:
                happened = table.raw[shown, j] == 1.0
                line[f"events of {name}"] = int(happened.sum())
                continue
            line["cells"] += int(shown.sum())
            line["wanted"] += int(seen.sum())
        lines.append(line)
    return pd.DataFrame(lines)


def _follow_up_lines(
    lines: pd.DataFrame, panel: Panel, followed: tuple[pd.Series | None, ...]
) -> tuple[list[str], list[list[str]]]:
    """Returns the heads and the lines of the table of follow-up."""
    heads = [panel.time, "people seen"]
    columns = [lines["time"].map(lambda t: f"{t:g}"), lines["seen"].map(whole)]
    for name in panel.events:
        heads.append(f"{name} then")
        columns.append(lines[f"events of {name}"].fillna(0).astype(int).map(whole))
    for number, counts in enumerate(followed):
        if counts is not None:
            heads.append(f"followed arm {number + 1} so far")
            columns.append(lines["time"].map(counts).astype(int).map(whole))
    for name in panel.template.varying:
        if name not in panel.events:
            heads.append(f"{name} missing")
            columns.append(lines[name].map(lambda s: "—" if np.isnan(s) else percent(s)))
    return heads, [list(cells) for cells in zip(*columns, strict=True)]


def _draw_risk(risks: Risks) -> Image:
    """Draws the natural course of an event beside the product limit of the table."""
    with new_figure(STYLE.small, 1.5) as figure:
        ax, table = figure.subplots(), risks.table
        ax.plot(table["time"], 100.0 * table["observed"], "o", color=STYLE.ink, markersize=3)
        ax.plot(table["time"], 100.0 * table["risk"], color=STYLE.blue)
        mark_visits(ax, table["time"])
        ax.set_title(f"risk of {risks.event}, %")
        ax.set_ylim(bottom=0.0)
        last = table.iloc[-1]
        told = f"{percent(last['risk'])} by the model, {percent(last['observed'])} in the table"
        return image(figure, f"Risk of {risks.event} by visit, natural course. At the end {told}.")


def _verdicts(
    panel: Panel,
    answer: ByVisit | None,
    courses: list[Course],
    risks: Mapping[str, Risks],
    followed: tuple[pd.Series | None, ...],
    settings: ReportSettings,
    people: int,
) -> list[Verdict]:
    """Returns what speaks for and against the answer, the latter first."""
    found = []
    off = [course.column for course in courses if not course.ok]
    for name, one in risks.items():
        last = one.table.iloc[-1]
        error = np.sqrt(max(last["observed"] * (1.0 - last["observed"]), 0.0) / people)
        if abs(last["risk"] - last["observed"]) > 3.0 * error:
            off.append(name)
    if off:
        text = (
            f"Without any intervention the model's {listed(off)} leaves that of the table: its "
            f"laws do not fit, or those who left are unlike those who stayed."
        )
        found.append(Verdict("The natural course", "natural", "careful", text))
    else:
        text = "Without any intervention the people of the model look like those of the table."
        found.append(Verdict("The natural course", "natural", "fine", text))
    if answer is not None:
        found.append(_support(panel, answer, followed, settings.checks.fewest))
        found += [
            Verdict("To know", "arms", "careful", note[0].upper() + note[1:])
            for note in answer.notes
        ]
    graph = (
        "The answer is right only if the graph is: no arrow missing, no common cause left out at "
        "any visit. No table can show that."
    )
    told = listed([column_of(name) or "" for name in panel.template.losses])
    lost = (
        "Holes, missed visits and leaving are taken as at random given what each person showed "
        f"before{f', but those of {told}, which follow their arrows' if told else ''}. "
        f"No table can show that."
    )
    found.append(Verdict("The graph", "graph", "open", graph))
    found.append(Verdict("Missing values and leaving", "follow-up", "open", lost))
    return sorted(found, key=lambda line: ("careful", "open", "fine").index(line.state))


def _support(
    panel: Panel, answer: ByVisit, followed: tuple[pd.Series | None, ...], fewest: int
) -> Verdict:
    """Says how many follow the arms by themselves, up to the end."""
    known = [
        (arm, int(n.iloc[-1]))
        for arm, n in zip(answer.arms, followed, strict=True)
        if n is not None
    ]
    if not known:
        text = "How many follow these regimes by themselves is not counted for rules and numbers."
        return Verdict("Who follows the arms", "follow-up", "open", text)
    told = [f"{plural(n, 'person', 'people')} with {arm}" for arm, n in known]
    text = f"By themselves, and seen up to the last visit: {' and '.join(told)}."
    few = min(n for _, n in known) < fewest
    text += " The answer rests on the shape of the laws where so few tell." if few else ""
    return Verdict("Who follows the arms", "follow-up", "careful" if few else "fine", text)


def _template_graph(
    model: FittedFlow, panel: Panel, table: IncompleteTable
) -> tuple[CausalGraph, dict[str, float]]:
    """Returns the graph of one visit, and how often each family is seen whole."""
    template, edges = panel.template, []
    for name in (*template.baseline, *template.at_visits):
        own = f"{name}[t]" if name in template.at_visits else name
        edges += [(str(cause), own) for cause in template.of(name)]
    ends = dict.fromkeys(end for edge in edges for end in edge)
    alone = [n for n in template.baseline if n not in ends]
    graph = CausalGraph.from_edges(edges, [*ends, *alone])
    seen = whole_families(model.graph_, table.observed.numpy()).mean(axis=0)
    of_node = dict(zip(model.graph_.nodes, seen.tolist(), strict=True))
    own = table.observed.numpy().mean(axis=0)
    alone_share = dict(zip(table.nodes, own.tolist(), strict=True))
    shares = {}
    for node in graph.nodes:
        name = node.removesuffix("[t]")
        if column_of(name) is not None or column_of(node.rpartition("[")[0]) is not None:
            shares[node] = 1.0  # whether a value is lost is always known
        elif name in template.varying and node.endswith("[t]"):
            shares[node] = float(np.mean([of_node[n] for n in panel.at(name)]))
        elif node in of_node:
            shares[node] = of_node[node]
        elif node == Template.clock:
            shares[node] = 1.0
        else:  # an earlier visit, or a history of several
            column = next((c for c in template.varying if c in node), None)
            nodes = [] if column is None else panel.at(column)
            shares[node] = float(np.mean([alone_share[n] for n in nodes])) if nodes else 1.0
    return graph, shares


def _asked(panel: Panel, effect: tuple[str, str] | None) -> tuple[str, ...]:
    names = effect or ()
    return tuple(f"{n}[t]" if n in panel.template.varying else n for n in names)


def _arrows(template: Template) -> list[tuple[str, str]]:
    """Returns each column with its causes, as they are written."""
    found = []
    for name in (*template.baseline, *template.at_visits):
        own = f"{name}[t]" if name in template.at_visits else name
        found.append((own, ", ".join(map(str, template.of(name))) or "—"))
    return found


def _mechanisms(model: FittedFlow, panel: Panel) -> list[tuple[str, str, str]]:
    """Returns each mechanism, at which visits it stands, and its form."""
    nodes, found = model.graph_.nodes, []
    columns = {node: name for name in panel.template.at_visits for node in panel.at(name)}
    for block in model.model_.blocks:
        named = [nodes[i] for i in block]
        if named[0].startswith(f"{Template.clock}["):
            continue
        column = columns.get(named[0], named[0])
        where = "once a person" if named[0] not in columns else _span(named, column)
        found.append((column, where, str(model.forms_[named[0]])))
    return found


def _span(nodes: list[str], column: str) -> str:
    own = column_of(column) or column
    visits = [(column_of(node) or node)[len(own) + 1 : -1] for node in nodes]
    return visits[0] if len(visits) == 1 else f"{visits[0]} to {visits[-1]}"


def _methods(
    model: FittedFlow, panel: Panel, table: IncompleteTable, answer: ByVisit | None
) -> str:
    """Returns a paragraph for the methods section of a paper."""
    events = f" Events ({listed(list(panel.events))}) are discrete-time hazards, after which "
    events += "nothing is measured."
    parts = (
        f"A causal normalizing flow was fitted to {plural(len(table), 'person', 'people')} over "
        f"{plural(len(panel.visits), 'visit')} ({panel.time} {panel.visits[0]:g} to "
        f"{panel.visits[-1]:g}) by maximum likelihood of the observed values (MissCNF; misscnf "
        f"{__version__}, seed {model.seed}). The graph over time was taken as given, and "
        f"mechanisms are shared by all visits at which a column has the same causes. No row was "
        f"dropped and no value was imputed or carried forward; missing values, missed visits and "
        f"loss to follow-up were assumed to be at random given what each person showed."
    )
    if panel.template.losses:
        told = listed([column_of(name) or "" for name in panel.template.losses])
        parts += f" Those of {told} were modelled instead, and follow their arrows in the graph."
    parts += events if panel.events else ""
    if answer is not None:
        parts += (
            f" {answer.what[0].upper()}{answer.what[1:]} with {answer.arms[0]} and with "
            f"{answer.arms[1]} was computed by the g-formula."
        )
        if answer.level is not None and answer.replicates is not None:
            parts += (
                f" Intervals of {100 * answer.level:g} % come from {answer.replicates} replicates "
                f"of the fit with random weights of the people (Bayesian bootstrap)."
            )
    return parts


def _recipe(
    model: FittedFlow, panel: Panel, effect: tuple[str, str] | None, arms: tuple[Do, Do] | None
) -> str:
    """Returns the Python that makes this model and this page again."""
    arrows = [f"{causes} -> {name}" for name, causes in _arrows(panel.template) if causes != "—"]
    kinds = panel.described(model.kinds_)
    asked = dict(zip(kinds["column"], kinds["kind"], strict=True))
    asked |= dict.fromkeys(panel.events, "event")
    asked = {name: kind for name, kind in asked.items() if name not in panel.template.losses}
    question = "" if effect is None else f", effect={effect!r}"
    if arms is not None:
        question += f", do={dict(arms[0])!r}, versus={dict(arms[1])!r}"
    graph = "; ".join(arrows)
    return f"""\
import pandas as pd
from misscnf import MissCNF, write_report

df = pd.read_csv("your-table.csv")
graph = {graph!r}
kinds = {asked!r}
model = MissCNF(
    graph, preset={model.settings_.preset!r}, kinds=kinds, id={panel.id!r},
    time={panel.time!r}, seed={model.seed},
).fit(df)
write_report(model, df, "report.html"{question})"""


def arms_of(do: Do | None, versus: Do | None) -> tuple[Do, Do] | None:
    """Returns the regimes that somebody named; None where nobody did."""
    if do is None and versus is None:
        return None
    if do is None:
        raise InputError(f"versus is {written(versus or {})}, and do is not said; name both arms.")
    return do, versus or {}
