r"""The summary of a report: what it found, in the order in which a person needs it.

First whether every family is covered and where not, then which questions lean on that, then how
values seem to be lost, and last what somebody should be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from misscnf.identification.families import family_names
from misscnf.identification.words import chance_of, listed, loss_sentence, percent

if TYPE_CHECKING:
    from misscnf.identification.report import Report

__all__ = ["write_summary"]

MOST_LINES = 10
"""Of one kind; the rest is counted, and stands in the report's tables."""


def write_summary(report: Report) -> str:
    """Returns a report as text."""
    parts = [_head(report), _families(report)]
    if report.effect is None and not report.ok:
        parts.append(_consequences(report))
    parts += [_loss(report), _questions(report), _graph(report), _ignored(report)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(report: Report) -> str:
    complete, ours = report.usage.iloc[0], report.usage.iloc[1]
    cells = int(report.usage["cells"].iloc[1])
    holes = 1.0 - cells / (report.rows * len(report.graph))
    order = "monotone" if report.monotone else "not monotone"
    count = len(report.patterns)
    lines = [
        f"{report.rows} rows, {len(report.graph)} columns, {percent(holes)} holes, "
        f"{count} pattern{'s' * (count != 1)} ({order})",
        f"Complete rows: {complete['rows']} ({percent(complete['row share'])}), with "
        f"{percent(complete['cell share'])} of what was seen; misscnf uses {ours['rows']} rows "
        f"and all of it.",
        report.full_pattern_sentence,
    ]
    return "\n".join(lines)


def _families(report: Report) -> str:
    lines = [_verdict(report)]
    for line in report.nodes.itertuples():
        if line.status != "covered":
            lines.append(f"  ✗ {line.sentence}")
    lines[1:] = _cut(lines[1:])
    covered = report.nodes.loc[report.nodes["status"] == "covered", "node"].tolist()
    if covered:
        lines.append(f"  ✓ seen whole, with no region without them found: {listed(covered)}")
    if report.needed and report.rows < report.rows_to_tell:
        lines.append(
            f"  With fewer than {report.rows_to_tell} rows no region can be told from chance, "
            f"only families that are never seen whole."
        )
    if not report.ok:
        lines.append(
            "  Not guaranteed means: these rows do not show what the mechanism is there. A "
            "parametric fit may\n  still extrapolate rightly; nothing in the table can tell."
        )
    return "\n".join(lines)


def _verdict(report: Report) -> str:
    if report.effect is not None:
        treatment, outcome = report.effect
        if not report.needed:
            return (
                f"By the graph {treatment} has no effect on {outcome}: no mechanism is needed "
                f"to say so."
            )
        needed = listed([family_names(report.graph, node) for node in report.needed])
        asked = f"The effect of {treatment} on {outcome} needs {needed}.\n"
    else:
        asked = ""
    total, missing = len(report.nodes), len(report.uncovered)
    if report.ok:
        return (
            f"{asked}Family positivity: nothing in these rows speaks against it "
            f"({total} famil{'ies' if total != 1 else 'y'})."
        )
    return f"{asked}Family positivity: not guaranteed for {missing} of {total} families."


def _consequences(report: Report) -> str:
    table = report.consequences
    lines = ["What leans on that"]
    marginals = table[table["question"] == "marginal"]
    leans = marginals["leans on"].map(len) > 0
    lines.append(f"  marginals: {_or_none(marginals.loc[leans, 'outcome'].tolist())}")
    for question in ("effect", "counterfactual"):
        part = table[table["question"] == question]
        if len(part):
            lines.append(
                f"  {question}s: {_pairs(part[part['leans on'].map(len) > 0], len(part))}"
            )
    lines.append("What does not")
    lines.append(f"  marginals: {_or_none(marginals.loc[~leans, 'outcome'].tolist())}")
    for question in ("effect", "counterfactual"):
        part = table[table["question"] == question]
        if len(part):
            free = part[part["leans on"].map(len) == 0]
            rows = " (in rows without holes)" if question == "counterfactual" else ""
            lines.append(f"  {question}s{rows}: {_pairs(free, len(part))}")
    return "\n".join(lines)


def _pairs(part: pd.DataFrame, total: int) -> str:
    if not len(part):
        return "none"
    if len(part) == total:
        return "all"
    pairs = [f"{line.treatment} on {line.outcome}" for line in part.itertuples()]
    return listed(pairs)


def _or_none(names: list[str]) -> str:
    return listed(names) if names else "none"


def _loss(report: Report) -> str:
    if not report.loss:
        return "No value is missing."
    lines = ["How values are lost"]
    lines += _cut([f"  {loss_sentence(line)}" for line in report.loss])
    lines.append(f"  {_little(report)}")
    explained = any(line.by for line in report.loss)
    if report.little is None and not any(line.tested for line in report.loss):
        lines.append("  These rows are too few to say how values are lost.")
    elif explained or (report.little is not None and report.little.p_value < 0.05):
        lines.append(
            "  So values are not lost completely at random. Whether they are lost at random given "
            "what\n  is shown (MAR) no table can tell: that depends on values that are not there."
        )
    else:
        lines.append(
            "  Nothing here contradicts loss completely at random; loss that depends on the lost "
            "values themselves\n  would look the same, and no table can tell."
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
        f"p {chance_of(test.p_value)} ({test.patterns} patterns{part}){rest}."
    )


def _questions(report: Report) -> str:
    if not report.structural_holes:
        return ""
    lines = _cut([f"  {hole.question}" for hole in report.structural_holes])
    return "\n".join(["Please ask", *lines])


def _graph(report: Report) -> str:
    if not report.contradictions:
        return ""
    lines = []
    for line in report.contradictions:
        given = f" given {', '.join(line.given)}" if line.given else ""
        lines.append(
            f"  {line.node} and {line.other}{given}: independent by the graph, correlated by "
            f"{line.correlation:.2f} in the {line.rows} rows looked at"
        )
    return "\n".join(
        [
            "For information: rows against the graph (loss and bent mechanisms can do this too)",
            *_cut(lines),
        ]
    )


def _ignored(report: Report) -> str:
    if not report.ignored:
        return ""
    return (
        f"Left aside, being outside the graph and neither numbers nor levels that vary: "
        f"{listed(report.ignored)}."
    )


def _cut(lines: list[str]) -> list[str]:
    if len(lines) <= MOST_LINES:
        return lines
    return [*lines[:MOST_LINES], f"  … and {len(lines) - MOST_LINES} more in the report's tables"]
