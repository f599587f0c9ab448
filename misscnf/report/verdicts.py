r"""How far to trust the answer, in one line each: fine, careful, or what no table can tell.

Each line has a link to the part of the page that it is about. What cannot be checked is said too:
a report that only lists what passed would promise more than it knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from misscnf.estimators.fitted import FittedFlow
from misscnf.identification import Report
from misscnf.identification.hidden import Estimand
from misscnf.identification.words import denied_sentence, listed, percent
from misscnf.queries.effects import Effect
from misscnf.queries.support import FittedReport, rough_sentence
from misscnf.report.model_checks import Integrals, ModelChecks, NoiseCheck, Overimputation
from misscnf.report.words import chance, minus, plural, significant

__all__ = ["Verdict", "verdicts", "noise_sentence", "finding", "rank_sentence"]
__all__ += ["integral_sentence", "held_out_sentence"]

State = Literal["fine", "careful", "open"]


@dataclass(frozen=True)
class Verdict:
    """One line."""

    about: str
    anchor: str
    """The section that says more."""
    state: State
    text: str


def verdicts(
    model: FittedFlow, answer: Effect | None, fitted: FittedReport, checks: ModelChecks
) -> list[Verdict]:
    """Returns what speaks for and against the answer, the latter first."""
    report = fitted.report
    graph = (
        "The answer is right only if the graph is: no arrow missing, no common cause left out. "
        "No table can show that."
    )
    lines = [
        Verdict("The graph", "graph", "open", graph),
        Verdict("Missing values", "holes", *_loss(report, model)),
        Verdict("Coverage", "positivity", *_coverage(report, leaves=bool(fitted.warnings))),
    ]
    if answer is not None:
        # What the rows say against the graph, and against mechanisms, has lines of its own.
        denied = denied_sentence(report.denied_over(rows=answer.population == "rows"))
        rough = [rough_sentence(name, found) for name, found in model.rough_.items()]
        found = report.estimand
        hidden = () if found is None else model._unidentified([found.treatment], found.outcome)
        said = [note for note in answer.notes if note not in (denied, *rough, *hidden)]
        notes = [note[0].upper() + note[1:] for note in said]
        lines += [Verdict("Range", "positivity", "careful", note) for note in notes]
        doubts = [doubt[0].upper() + doubt[1:] for doubt in answer.doubts]
        lines += [Verdict("Information", "fit", "careful", doubt) for doubt in doubts]
        lines.append(Verdict("Extrapolation", "positivity", *_extrapolation(fitted)))
    if report.estimand is not None:
        lines.append(Verdict("Hidden causes", "graph", *_hidden(report.estimand)))
    sharp: State = "fine" if checks.integrals.ok else "careful"
    lines += [
        Verdict("Rows against graph", "graph", *_against_graph(report, answer)),
        Verdict("Waves and jumps", "checks", *_waves(model, answer)),
        Verdict("Model fit", "checks", *_fit(checks, report)),
        Verdict("Integrals", "checks", sharp, integral_sentence(checks.integrals)),
        Verdict("Shape of the model", "fit", "fine", held_out_sentence(model)),
    ]
    return sorted(lines, key=lambda line: ("careful", "open", "fine").index(line.state))


def _hidden(estimand: Estimand) -> tuple[State, str]:
    states: dict[str, State] = {"shape": "careful", "proxies": "open"}
    return states.get(estimand.by, "fine"), estimand.sentence


def _loss(report: Report, model: FittedFlow) -> tuple[State, str]:
    if not report.loss:
        return "fine", "No value is missing."
    if report.recovery:
        shape = [one.sentence for one in report.recovery if not one.identified]
        told = ["The loss of values is part of the model.", *model.loss_["sentence"], *shape]
        modelled = {one.column for one in report.recovery}
        others = [line.column for line in report.loss if line.column not in modelled]
        if others:
            told.append(f"That of {listed(others)} is taken as random given what rows show.")
        return "careful" if shape else "open", " ".join(told)
    if report.loss_outside:
        return "careful", (
            f"Losses go with columns outside the graph, which the fit did not see: "
            f"{listed(report.loss_outside)}. That makes it doubtful that values are missing at "
            f"random; fit again with auxiliary={report.loss_outside}."
        )
    return "open", (
        "The answer assumes that whether a value is missing depends only on what the row shows "
        "(missing at random). No table can show that either."
    )


def _coverage(report: Report, *, leaves: bool) -> tuple[State, str]:
    if not report.family_positivity:
        return "careful", (
            f"There are values at which these were not seen together with their causes: "
            f"{listed(report.uncovered)}. There the answer leans on the model's shape, not on "
            f"rows."
        )
    if report.thin:
        more = f" And {plural(len(report.thin) - 1, 'place')} more." if report.thin[1:] else ""
        return "careful", f"{report.thin[0]}{more} There the answer hangs on these few rows."
    if report.reached:
        return "open", (
            f"There are values at which no row shows these with their causes: "
            f"{listed(report.reached)}. The modelled loss reaches there, by its law."
        )
    text = "Every part of the model that is needed was seen in the rows, with no gap found."
    if leaves:
        text += " The comparison itself leaves what they show: see Extrapolation."
    if report.searched < report.rows_to_tell:
        text += f" With fewer than {report.rows_to_tell} rows, gaps could hardly be found."
    return "fine", text


def _extrapolation(fitted: FittedReport) -> tuple[State, str]:
    if not fitted.warnings:
        text, report = "What is compared stays where rows were seen", fitted.report
        gaps = report.thin or not report.family_positivity
        return "fine", f"{text}, apart from what Coverage says." if gaps else f"{text}."
    told = fitted.support[fitted.support["extrapolates"]]
    worst = told.iloc[int(told["share outside"].to_numpy().argmax())]
    return "careful", (
        f"What is compared leads to values that few or no rows show: for {worst['node']} in "
        f"{percent(float(worst['share outside']))} of cases "
        f"({percent(fitted.report.settings.support.usual)} is usual)."
    )


def _against_graph(report: Report, answer: Effect | None) -> tuple[State, str]:
    rows = answer is not None and answer.population == "rows"
    told = denied_sentence(report.denied_over(rows=rows))
    if told:
        return "careful", told[0].upper() + told[1:]
    if report.contradictions:
        pairs = [f"{line.node} and {line.other}" for line in report.contradictions]
        return "careful", (
            f"By the graph these do not depend on one another given their causes, but in the rows "
            f"they do: {listed(pairs)}. {_untouched(report)}"
        )
    tested = report.independences_tested
    if not tested:
        return "open", "The graph leaves no independence that rows could contradict."
    implied = f"{plural(tested, 'independence')} that the graph implies and rows can test"
    return "fine", f"Of {implied}, none is contradicted."


def _untouched(report: Report) -> str:
    if report.effect is None:
        return "Answers that need these columns may be wrong."
    return "The answer above does not lean on it."


def _waves(model: FittedFlow, answer: Effect | None) -> tuple[State, str]:
    if not model.rough_:
        return "fine", "No mechanism leaves fast waves or jumps along its causes that rows show."
    rough = model.rough_.items()
    along = [f"{name} along {found['along']}" for name, found in rough if "along" in found]
    lines = [f"{name} beside {found['beside']}" for name, found in rough if "beside" in found]
    told = []
    if along:
        told.append(
            f"The rows wave or jump faster than the model follows: {listed(along)}. Plot the one "
            f"against the other. If it jumps, give the cause as levels, cut where it jumps; if it "
            f"waves, add a column that waves with it as a cause."
        )
    if lines:
        told.append(
            f"The rows ask for more than the line that levels, counts and hidden causes keep "
            f"beside a hidden cause: {listed(lines)}. Where you can, give such a column as a "
            f"number, which may bend."
        )
    text = " ".join(told)
    if answer is None:
        return "careful", f"{text} Until then, effects that lean on it may be far off."
    leans = any(rough_sentence(*each) in answer.notes for each in model.rough_.items())
    leant = "The answer leans on it, may be far off, and its interval does not know."
    return "careful", f"{text} {leant if leans else 'The answer above does not lean on it.'}"


def _fit(checks: ModelChecks, report: Report) -> tuple[State, str]:
    noise, ranks = checks.noise, checks.ranks
    fits = all(check.ok for check in noise) and (ranks is None or ranks.ok)
    text = f"{noise_sentence(noise)} {rank_sentence(ranks)}"
    if fits:
        return "fine", text
    odd = {check.node for check in noise if not check.ok}
    if ranks is not None:
        odd |= set(ranks.columns.loc[~ranks.columns["ok"], "column"])
    touched = [name for name in report.needed if name in odd]
    if report.effect is not None:
        text += f" The answer leans on {listed(touched) if touched else 'none of these columns'}."
    return "careful", text


def noise_sentence(noise: Sequence[NoiseCheck]) -> str:
    """Returns what the noise of all nodes says."""
    bad = [check.node for check in noise if not check.ok]
    if not bad:
        return "What the model leaves unexplained looks as it should for every column."
    return f"What the model leaves unexplained does not look as it should for {listed(bad)}."


def finding(check: NoiseCheck) -> str:
    """Returns what the noise of one node says."""
    tests = (check.p_value, "not normal"), (check.parent_p_value, f"goes with {check.parent}")
    parts = [f"{found} (p {chance(p)})" for p, found in tests if p < check.level]
    return "; ".join(parts) or "nothing found"


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
    rows, impossible = exactness.rows, exactness.impossible
    of = f"{rows}" if rows == exactness.table else f"{rows} rows by chance"
    if impossible:
        return f"{plural(impossible, 'row')} of {of} have probability zero under the model."
    if exactness.exact == rows:
        every = "every row" if rows == exactness.table else f"each of {of}"
        return f"The likelihood of {every} is exact: nothing had to be averaged by draws."
    said = (
        f"{plural(rows - exactness.exact, 'row')} of {of} were averaged by draws: typically "
        f"{significant(exactness.typical)} effective draws, {significant(exactness.smallest)} in "
        f"the worst row"
    )
    if exactness.few:
        few = plural(exactness.few, "row")
        return f"{said}; {few} had fewer than {exactness.enough:g}, which is few."
    return f"{said}. That is enough."


def held_out_sentence(model: FittedFlow) -> str:
    """Returns why the model has the shape it has."""
    if model.comparison_ is None:
        if not model.settings_.train:
            return "Linear mechanisms, as the settings ask; networks were not tried."
        if model.chosen_ == "network":
            return "Networks, as the settings ask; they were not compared with linear mechanisms."
        means = f"Curves for {listed(model.curves_)}" if model.curves_ else "Linear mechanisms"
        return f"{means}: too few rows could be held out to justify a network."
    more, error = model.comparison_["elpd_difference"], model.comparison_["standard_error"]
    numbers = f"{minus(f'{more:.3f} ± {error:.3f}')} nats a row"
    compared = "on rows left out, the log predictive density less that of lines"
    nonlinear = {"Curves": model.curves_, "Networks": model.networks_}
    told = [f"{what} for {listed(names)}." for what, names in nonlinear.items() if names]
    if told or (model.interactions_ and more > model.settings_.selection.z * error):
        told.append(f"O{compared[1:]} is {numbers}.")
    elif round(max(abs(more), error), 3):
        told = [f"Linear mechanisms were kept: {compared} is {numbers}, which is too little."]
    else:
        told = ["Linear mechanisms were kept: by a score test no mean asks for more."]
    forms = model.forms_.items()
    for what, names in (
        ("Products of parents beside the line, shrunk", model.interactions_),
        ("Noise whose scale depends on the parents", [name for name, form in forms if form.scale]),
        ("Noise of a shape of its own", [name for name, form in forms if form.noise]),
    ):
        told += [f"{what}: {listed(names)}."] if names else []
    return " ".join(told)
