r"""The report in words: numbers that a person can act on, and no more than the rows allow.

A family that is not covered is "not guaranteed", never "impossible": family positivity is enough
for every flow, and parametric ones may do with less. Nothing is said to be missing at random.

The summary says first whether every family is covered and where not, then which questions lean on
that, then how values seem to be lost, and last what somebody should be asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from misscnf.graph import CausalGraph
from misscnf.identification.families import family_names
from misscnf.identification.independences import Contradiction
from misscnf.identification.loss import Explained, Explanation
from misscnf.identification.regions import Region
from misscnf.identification.scan import Stretch

if TYPE_CHECKING:
    from misscnf.identification.report import Report

__all__ = ["percent", "listed", "edges", "where", "region_sentence", "uncovered_sentence"]
__all__ += ["covered_sentence", "loss_sentences", "contradiction_sentence", "denied_sentence"]
__all__ += ["write_summary"]


def percent(share: float) -> str:
    """Returns a share as a percentage with two digits at most, such as "11 %"."""
    value = 100.0 * share
    if 0.0 < value < 0.1:
        return "less than 0.1 %"
    if 99.9 < value < 100.0:
        return "more than 99.9 %"
    return f"{value:.1f} %".replace(".0 %", " %") if value < 10.0 else f"{value:.0f} %"


def _at_most(share: float) -> str:
    """Returns an upper bound as a percentage, rounded up."""
    return f"{math.ceil(1000.0 * share - 1e-9) / 10.0:g} %"


def _chance_of(p_value: float) -> str:
    """Returns a p-value with its sign, such as "= 0.03" or "below 1e-12"."""
    return f"= {p_value:.2g}" if p_value >= 1e-12 else "below 1e-12"


def listed(names: Sequence[object], most: int = 8) -> str:
    """Returns names with commas, and how many more there are."""
    shown = ", ".join(map(str, names[:most]))
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def _tidy(low: float, high: float, slack: float = 0.0) -> float:
    """Returns the number with the fewest digits between two, or a little beside them."""
    middle = 0.5 * low + 0.5 * high
    for digits in range(1, 16):
        short = float(f"{middle:.{digits}g}")
        if low - slack <= short <= high + slack:
            return short
    return middle


def edges(stretch: Stretch) -> tuple[float | None, float | None]:
    """Returns where a stretch begins and ends, between values inside and outside if it can."""
    column = stretch.column
    if column.stepped:
        return stretch.low, stretch.high
    shown = column.values[column.observed]
    slack = 1e-3 * float(np.quantile(shown, 0.95) - np.quantile(shown, 0.05))

    def between(low: float | None, high: float | None) -> float | None:
        return None if low is None or high is None else _tidy(low, high, slack)

    return between(stretch.below, stretch.low), between(stretch.high, stretch.above)


def where(conditions: Sequence[Stretch]) -> str:
    """Returns a region in words, such as "dose is above 12.5 and sex is 1"."""
    return " and ".join(f"{c.column.name} is {_stretch(c)}" for c in conditions)


def _stretch(stretch: Stretch) -> str:
    column = stretch.column
    if stretch.levels is not None:
        names = [column.label(code) for code in stretch.levels]
        if len(names) > 8:
            return f"one of {listed(names)}"
        return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
    first, last = ("" if end is None else column.label(end) for end in edges(stretch))
    if column.stepped:  # the ends themselves are inside
        if first and last:
            return first if first == last else f"from {first} to {last}"
        return f"{first} or more" if first else f"{last} or less"
    if first and last:
        return f"between {first} and {last}"
    return f"above {first}" if first else f"below {last}"


def region_sentence(graph: CausalGraph, region: Region) -> str:
    """Returns a sentence on a family and a region of it."""
    family = family_names(graph, region.node)
    together = " together" if graph.parents_of(region.node) else ""
    counts = f"in {region.whole} of {region.rows} rows"
    if not region.conditions:
        if region.whole == 0:
            return f"{family}: no row shows {'them together' if together else 'it'}."
        below = _at_most(region.upper)
        return f"{family}: almost never seen{together}, {counts}, a chance below {below}."
    if region.thin:
        parents = graph.in_blocks(graph.parents_of(region.node))
        beside = f" with its parent{'s' * (len(parents) > 1)} {', '.join(parents)}"
        return (
            f"{region.node} is seen{beside if parents else ''} in only {region.whole} of "
            f"{region.rows} rows where {where(region.conditions)} "
            f"({percent(region.whole / region.rows)}, against {percent(region.elsewhere)} "
            f"elsewhere)."
        )
    if not region.flagged:
        return (
            f"{family}: seen{together} least where {where(region.conditions)} "
            f"({percent(region.share)} of rows): {counts}, against "
            f"{percent(region.elsewhere)} elsewhere."
        )
    often = "never" if region.whole == 0 else "almost never"
    return f"{family}: {often} seen{together} {_where_and_how_much(region)}."


def _where_and_how_much(region: Region) -> str:
    hidden = f"; {percent(region.hidden)} of rows do not show where they are"
    return (
        f"where {where(region.conditions)} ({percent(region.share)} of rows; {region.whole} of "
        f"{region.rows} rows, a chance below {_at_most(region.upper)}, against "
        f"{percent(region.elsewhere)} elsewhere{hidden if region.hidden > 0.0 else ''})"
    )


def uncovered_sentence(graph: CausalGraph, regions: Sequence[Region]) -> str:
    """Returns what to say of a family with flagged regions."""
    first, *others = regions
    further = [f"Also {_where_and_how_much(region)}." for region in others]
    return " ".join([region_sentence(graph, first), *further])


def covered_sentence(graph: CausalGraph, node: str, whole: int, rows: int) -> str:
    """Returns a sentence on a family in which nothing was found."""
    return (
        f"{family_names(graph, node)}: seen whole in {whole} of {rows} rows "
        f"({percent(whole / rows)}), and no region without it was found."
    )


def loss_sentences(lines: Sequence[Explained]) -> list[str]:
    """Returns what goes with the holes of columns; those of which the same is said share it."""
    told: list[str] = []
    nothing: list[Explained] = []
    few: list[Explained] = []
    for line in lines:
        kept = [by for by in line.by if by.kept]
        if kept:
            beside = len(line.by) - len(kept)
            goes = "other column goes" if beside == 1 else "other columns go"
            more = f"; {beside} {goes} with these holes only through that" if beside else ""
            lost = "; ".join(_direction(by) for by in kept)
            told.append(f"{_holes_of([line])}: lost {lost}{more}.")
        else:
            (nothing if line.tested else few).append(line)
    if nothing:
        whose = "its" if len(nothing) == 1 else "their"
        why = f"no other column goes with {whose} holes, as far as these rows tell."
        told.append(f"{_holes_of(nothing)}: {why}")
    if few:
        told.append(f"{_holes_of(few)}: too few holes or values to test what goes with them.")
    return told


def _holes_of(lines: Sequence[Explained]) -> str:
    """Returns columns with their shares of holes."""
    low, high = (percent(end(line.share for line in lines)) for end in (min, max))
    shares = low if low == high else f"{low} to {high}"
    return f"{listed([line.column for line in lines])} ({shares} holes)"


def _direction(by: Explanation) -> str:
    if by.odds is None:
        return f"in step with {by.column}"
    if math.isclose(by.odds, 1.0, rel_tol=0.05):
        return f"in step with {by.column}, not in one direction"
    way = "high" if by.odds > 1.0 else "low"
    factor = max(by.odds, 1.0 / by.odds)
    size = "more than 1000" if factor > 1000 else f"{factor:.2g}"
    if by.levels is not None:
        return f"more often where {by.column} is {by.levels[way == 'high']} (odds times {size})"
    return f"more often where {by.column} is {way} (odds times {size} a standard deviation)"


def contradiction_sentence(line: Contradiction) -> str:
    """Returns a sentence on two nodes that depend on one another against the graph."""
    given = f" given {', '.join(line.given)}" if line.given else ""
    return (
        f"{line.node} and {line.other}{given}: independent by the graph, correlated by "
        f"{line.correlation:.2f} in the {line.rows} rows looked at"
    )


def denied_sentence(lines: Sequence[Contradiction]) -> str:
    """Returns what to say of independences that an answer leans on and rows deny; "" of none."""
    if not lines:
        return ""
    first, more = lines[0], len(lines) - 1
    given = f" given {listed(first.given)}" if first.given else ""
    others = f", and on {more} more like it" if more else ""
    which = "which the rows deny" if not more else "and the rows deny all of these"
    return (
        f"the answer leans on {first.node} ⟂ {first.other}{given} (correlated by "
        f"{first.correlation:.2f} in {first.rows} rows){others}, {which}: draw the arrow, or give "
        f"these columns as a block."
    )


def write_summary(report: Report) -> str:
    """Returns a report as text."""
    parts = [_head(report), *_hidden_causes(report), _families(report)]
    if report.unlikely:
        odd = [f"✗ {one.sentence}" for one in report.unlikely]
        parts.append("\n".join(["Unlikely values", *_cut(odd, report)]))
    if report.denied:
        told = denied_sentence(report.denied)
        found = [f"✗ {contradiction_sentence(line)}" for line in report.denied]
        parts.append("\n".join([f"Rows against the graph: {told}", *_cut(found, report)]))
    if report.effect is None and not report.ok:
        parts.append(_consequences(report))
    parts.append(_loss(report))
    if report.structural_holes:
        asked = [hole.question for hole in report.structural_holes]
        parts.append("\n".join(["Please ask", *_cut(asked, report)]))
    others = [line for line in report.contradictions if line not in report.denied]
    if others:
        head = "rows against the graph"
        if report.effect is not None:
            head += ", where the asked effect does not lean on it"
        found = [contradiction_sentence(line) for line in others]
        parts.append("\n".join([f"For information: {head}", *_cut(found, report)]))
    if report.ignored:
        why = "being outside the graph and neither numbers nor levels that vary"
        parts.append(f"Left aside, {why}: {listed(report.ignored)}.")
    return "\n\n".join(parts) + "\n"


def _head(report: Report) -> str:
    complete, ours = report.usage.iloc[0], report.usage.iloc[1]
    order = "monotone" if report.monotone else "not monotone"
    count = len(report.patterns)
    return (
        f"{report.rows} rows, {len(report.graph)} columns, "
        f"{percent(report.share_missing)} holes, "
        f"{count} pattern{'s' * (count != 1)} ({order})\n"
        f"Complete rows: {complete['rows']} ({percent(complete['row share'])}), with "
        f"{percent(complete['cell share'])} of what was seen; misscnf uses {ours['rows']} rows "
        f"and all of it.\n{_searched(report)}{report.full_pattern_sentence}"
    )


def _searched(report: Report) -> str:
    """Returns what was counted in all rows, and what was not."""
    if report.searched == report.rows:
        return ""
    return (
        f"Patterns, families and cells are counted in all rows; all else was looked for in "
        f"{report.searched} of them by chance.\n"
    )


def _hidden_causes(report: Report) -> list[str]:
    if not report.latent:
        return []
    told = [
        f"{name} ({'a number' if classes is None else f'{classes} classes'})"
        for name, classes in report.latent.items()
    ]
    lines, estimand = [f"Hidden causes: {listed(told)}"], report.estimand
    if estimand is None:
        lines.append("  Whether an effect is identified beside them: ask for it, effect=(t, y).")
    else:
        mark = "✓" if estimand.identified else "✗" if estimand.by == "shape" else "!"
        lines.append(f"  {mark} {estimand.sentence}")
    lines.append(
        "  Columns that a hidden cause ties together count among one another's parents below: so "
        "the law of\n  what is shown is written."
    )
    return ["\n".join(lines)]


def _families(report: Report) -> str:
    flagged = report.nodes[report.nodes["status"] != "covered"]
    lines = [_verdict(report), *_cut([f"✗ {told}" for told in flagged["sentence"]], report)]
    if report.reached:
        names = listed(report.reached)
        lines.append(f"  ○ not seen whole everywhere, but reached by the modelled loss: {names}")
    seen = [name for name in report.covered if name not in report.reached]
    if seen:
        names = listed(report.graph.in_blocks(seen))
        lines.append(f"  ✓ seen whole, with no region without them found: {names}")
    if report.thin:
        lines += _cut([f"! {told}" for told in report.thin], report)
        lines.append("  Where few rows show a family, what is said of it hangs on them.")
    if report.needed and report.searched < report.rows_to_tell:
        lines.append(
            f"  With fewer than {report.rows_to_tell} rows no region can be told from chance, "
            f"only families that are never seen whole."
        )
    if not report.family_positivity:
        lines.append(
            "  Not guaranteed means: these rows do not show what the mechanism is there. A "
            "parametric fit may\n  still extrapolate rightly; nothing in the table can tell."
        )
    return "\n".join(lines)


def _verdict(report: Report) -> str:
    asked, total = "", len(report.nodes)
    if report.effect is not None:
        treatment, outcome = report.effect
        if not report.needed:
            why = f"By the graph {treatment} has no effect on {outcome}"
            return f"{why}: no mechanism is needed to say so."
        told = dict.fromkeys(_needed(report.graph, node) for node in report.needed)
        needed = listed(list(told))
        asked = f"The effect of {treatment} on {outcome} needs {needed}.\n"
        if len(told) > 4:
            blocks = {report.graph.block_of(node) or node: None for node in report.needed}
            asked = (
                f"The effect of {treatment} on {outcome} needs {listed(list(blocks))}, "
                f"each with its parents in the graph.\n"
            )
    if report.family_positivity:
        families = f"{total} famil{'ies' if total != 1 else 'y'}"
        return f"{asked}Family positivity: nothing in these rows speaks against it ({families})."
    missing = len(report.uncovered)
    return f"{asked}Family positivity: not guaranteed for {missing} of {total} families."


def _needed(graph: CausalGraph, node: str) -> str:
    """Returns what of a node is needed: the law of its block, or its family."""
    block = graph.block_of(node)
    return family_names(graph, node) if block is None else f"the law of {block}"


def _consequences(report: Report) -> str:
    table = report.consequences
    leans = table["leans on"].map(len) > 0
    lines = []
    for head, chosen in (("What leans on that", leans), ("What does not", ~leans)):
        lines.append(head)
        for question, asked in table.groupby("question", sort=False):
            told = _asked(asked, chosen[asked.index])
            safe = question == "counterfactual" and chosen is not leans
            rows = " (in rows without holes)" if safe else ""
            lines.append(f"  {question}s{rows}: {told}")
    return "\n".join(lines)


def _asked(part: pd.DataFrame, chosen: pd.Series) -> str:
    """Returns some of the questions of a kind in words."""
    if not chosen.any():
        return "none"
    if part["treatment"].isna().all():
        return listed(part.loc[chosen, "outcome"].tolist())
    if chosen.all():
        return "all"
    return listed([f"{line.treatment} on {line.outcome}" for line in part[chosen].itertuples()])


def _loss(report: Report) -> str:
    if not report.loss:
        return "No value is missing."
    lines = ["How values are lost"]
    lines += [recovery.sentence for recovery in report.recovery]
    lines += _cut(loss_sentences(report.loss), report)
    lines.append(f"  {_little(report)}")
    if report.completely_at_random is None:
        lines.append("  These rows are too few to say how values are lost.")
    elif not report.completely_at_random:
        alone = report.little is None or report.little.p_value >= report.settings.little.level
        so = "Since holes go with other columns, " if alone else "So "
        lines.append(
            f"  {so}values are not lost completely at random. Whether they are lost\n  at random "
            "given what is shown (MAR) no table can tell: that depends on values that are not "
            "there."
        )
    else:
        lines.append(
            "  Nothing here contradicts loss completely at random; loss that depends on the lost "
            "values themselves\n  would look the same, and no table can tell."
        )
    outside = report.loss_outside
    if outside:
        lines.append(
            "  Loss goes with columns outside the graph, which a fit does not see: "
            f"{listed(outside)}.\n  That makes MAR doubtful: give them as auxiliary=[…] "
            "(--auxiliary), or draw them as nodes."
        )
    return "\n".join(lines)


def _little(report: Report) -> str:
    test = report.little
    if test is None:
        return "Little's test was not made: it needs two patterns of numbers with enough rows."
    part = "" if test.row_share == 1.0 else f", {percent(test.row_share)} of rows"
    rest = "" if test.converged else " (its moments had not come to rest)"
    return (
        f"Little's test of loss completely at random: χ²({test.degrees}) = {test.statistic:.1f}, "
        f"p {_chance_of(test.p_value)} ({test.patterns} patterns{part}){rest}."
    )


def _cut(lines: Sequence[str], report: Report) -> list[str]:
    """Returns the first lines, indented, and how many more there are."""
    most = report.settings.telling.most_lines
    more = [f"… and {len(lines) - most} more in the report's tables"] if len(lines) > most else []
    return [f"  {line}" for line in [*lines[:most], *more]]
