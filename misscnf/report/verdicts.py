r"""How far to trust the answer, in one line each: fine, careful, or what no table can tell.

Each line has a link to the part of the page that it is about. What cannot be checked is said too:
a report that only lists what passed would promise more than it knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from misscnf.estimators.misscnf import MissCNF
from misscnf.identification.words import listed, percent
from misscnf.queries.effects import Effect
from misscnf.queries.support import FittedReport
from misscnf.report.model_checks import Integrals, NoiseCheck, Overimputation
from misscnf.report.words import minus, plural, significant

__all__ = [
    "Verdict",
    "verdicts",
    "held_out_sentence",
    "integral_sentence",
    "noise_sentence",
    "rank_sentence",
]


@dataclass(frozen=True)
class Verdict:
    """One line."""

    state: Literal["fine", "careful", "open"]
    about: str
    text: str
    anchor: str
    """The section that says more."""


def verdicts(
    model: MissCNF,
    answer: Effect | None,
    fitted: FittedReport,
    noise: Sequence[NoiseCheck],
    ranks: Overimputation | None,
    exactness: Integrals,
) -> list[Verdict]:
    """Returns what speaks for and against the answer."""
    lines = [
        Verdict(
            "open",
            "The graph",
            "The answer is right only if the graph is: no arrow missing, no common cause left "
            "out. No table can show that.",
            "graph",
        ),
        _loss(fitted),
        _positivity(fitted),
    ]
    if answer is not None:
        lines += [
            Verdict("careful", "Range", note[0].upper() + note[1:], "positivity")
            for note in answer.notes
        ]
        lines.append(_support(fitted))
    lines.append(_against_graph(fitted))
    fits = all(check.ok for check in noise) and (ranks is None or ranks.ok)
    both = " ".join([noise_sentence(noise), rank_sentence(ranks)])
    lines.append(Verdict("fine" if fits else "careful", "Model fit", both, "checks"))
    lines.append(
        Verdict(
            "fine" if exactness.ok else "careful",
            "Integrals",
            integral_sentence(exactness),
            "checks",
        )
    )
    lines.append(Verdict("fine", "Shape of the model", held_out_sentence(model), "fit"))
    order = {"careful": 0, "open": 1, "fine": 2}
    return sorted(lines, key=lambda line: order[line.state])


def _loss(fitted: FittedReport) -> Verdict:
    if not fitted.report.loss:
        return Verdict("fine", "Missing values", "No value is missing.", "holes")
    return Verdict(
        "open",
        "Missing values",
        "The answer assumes that whether a value is missing depends only on what the row shows "
        "(missing at random). No table can show that either.",
        "holes",
    )


def _positivity(fitted: FittedReport) -> Verdict:
    report = fitted.report
    if report.ok:
        text = "Every part of the model that is needed was seen in the rows, with no gap found."
        if report.rows < report.rows_to_tell:
            text += f" With fewer than {report.rows_to_tell} rows, gaps could hardly be found."
        return Verdict("fine", "Coverage", text, "positivity")
    return Verdict(
        "careful",
        "Coverage",
        f"There are values at which these were not seen together with their causes: "
        f"{listed(report.uncovered)}. There the answer leans on the model's shape, not on rows.",
        "positivity",
    )


def _support(fitted: FittedReport) -> Verdict:
    if not fitted.warnings:
        return Verdict(
            "fine",
            "Extrapolation",
            "What is compared stays where rows were seen.",
            "positivity",
        )
    worst = fitted.support.iloc[int(fitted.support["share outside"].to_numpy().argmax())]
    return Verdict(
        "careful",
        "Extrapolation",
        f"What is compared leads to values that few or no rows show: for {worst['node']} in "
        f"{percent(float(worst['share outside']))} of cases "
        f"({percent(fitted.report.settings.support.usual)} is usual).",
        "positivity",
    )


def _against_graph(fitted: FittedReport) -> Verdict:
    found = fitted.report.contradictions
    if not found:
        tested = fitted.report.independences_tested
        text = "The graph leaves no independence that rows could contradict."
        if tested:
            text = (
                f"Of {plural(tested, 'independence')} that the graph implies and rows can test, "
            )
            text += "none is contradicted."
        return Verdict("fine" if tested else "open", "Rows against graph", text, "graph")
    pairs = listed([f"{line.node} and {line.other}" for line in found])
    return Verdict(
        "careful",
        "Rows against graph",
        f"By the graph these do not depend on one another given their causes, but in the rows "
        f"they do: {pairs}.",
        "graph",
    )


def noise_sentence(noise: Sequence[NoiseCheck]) -> str:
    """Returns what the noise of all nodes says."""
    bad = [check.node for check in noise if not check.ok]
    if not bad:
        return "What the model leaves unexplained looks as it should for every column."
    return f"What the model leaves unexplained does not look as it should for {listed(bad)}."


def rank_sentence(ranks: Overimputation | None) -> str:
    """Returns what overimputation says."""
    if ranks is None:
        return "Too few values could be hidden to test the model on them."
    said = (
        f"Of {plural(len(ranks.ranks), 'known value')}, hidden and drawn anew {ranks.draws} "
        f"times, {percent(ranks.within(0.9))} fell into the middle 90 % of their draws"
    )
    bad = ranks.columns.loc[~ranks.columns["ok"], "column"].tolist()
    return f"{said}, but not evenly for {listed(bad)}." if bad else f"{said}."


def integral_sentence(exactness: Integrals) -> str:
    """Returns how sharply the likelihood is known."""
    if exactness.impossible:
        return (
            f"{plural(exactness.impossible, 'row')} of {exactness.rows} have probability zero "
            f"under the model."
        )
    if exactness.exact == exactness.rows:
        return "The likelihood of every row is exact: nothing had to be averaged by draws."
    rest = exactness.rows - exactness.exact
    said = (
        f"{plural(rest, 'row')} of {exactness.rows} were averaged by draws: typically "
        f"{significant(exactness.typical)} effective draws, {significant(exactness.smallest)} in "
        f"the worst row"
    )
    if exactness.few:
        return (
            f"{said}; {plural(exactness.few, 'row')} had fewer than {exactness.enough:g}, "
            f"which is few."
        )
    return f"{said}. That is enough."


def held_out_sentence(model: MissCNF) -> str:
    """Returns why the model has the shape it has."""
    if model.comparison_ is None:
        if not model.settings_.train:
            return "Linear mechanisms, as the settings ask; networks were not tried."
        if model.chosen_ == "network":
            return "Networks, as the settings ask; they were not compared with linear mechanisms."
        means = f"Curves for {listed(model.curves_)}" if model.curves_ else "Linear mechanisms"
        return f"{means}: too few rows could be held out to justify a network."
    more, error = model.comparison_["elpd_difference"], model.comparison_["standard_error"]
    numbers = f"{_nats(more)} ± {_nats(error)} nats a row on rows that were left out"
    nonlinear = {"Curves": model.curves_, "Networks": model.networks_}
    means = " ".join(f"{what} for {listed(names)}." for what, names in nonlinear.items() if names)
    if means:
        means += f" Networks gain {numbers} over lines."
    else:
        means = f"Linear mechanisms were kept: networks gained {numbers}, which is too little."
    return " ".join([means, *_noise_sentences(model)])


def _noise_sentences(model: MissCNF) -> list[str]:
    """Returns which nodes have more than normal noise of constant scale."""
    nodes = {
        "Noise whose scale depends on the parents": [
            name for name, form in model.forms_.items() if form.scale
        ],
        "Noise of a shape of its own": [name for name, form in model.forms_.items() if form.noise],
    }
    return [f"{told}: {listed(names)}." for told, names in nodes.items() if names]


def _nats(value: float) -> str:
    return minus(f"{value:.3f}")
