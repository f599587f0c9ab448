r"""How the answer was made, as a paragraph to paste into a paper.

Every number in it is of this fit: rows, holes, forms, replicates, versions, seeds.
"""

from __future__ import annotations

from misscnf import __version__
from misscnf.estimators.fitted import FittedFlow
from misscnf.identification import Report
from misscnf.identification.words import listed, percent
from misscnf.queries.effects import Effect
from misscnf.report.words import label, plural, whole

__all__ = ["methods", "interval_sentence"]


def interval_sentence(model: FittedFlow, effect: Effect) -> str:
    """Returns how the interval was made, or why there is none; empty where none was asked for."""
    if effect.level is None or effect.replicates is None:
        return ""
    if effect.interval is None:
        return " ".join(f"{doubt[0].upper()}{doubt[1:]}" for doubt in effect.doubts)
    trained = model.chosen_ == "network"
    how = "networks trained anew" if trained else "Newton steps on completions of the rows"
    replicates = (
        f"{effect.replicates} replicates of the fit with random weights of the rows (Bayesian "
        f"bootstrap; {how})"
    )
    made = (
        f"is the estimate ± t·s: s is the spread of {replicates}, t is Student's, with as many "
        f"degrees of freedom as the rows that carry the answer leave by their influence"
    )
    if effect.event is not None:
        made = (
            f"combines those of both risks (Newcombe), each the exact interval of a count that "
            f"is known as well as the risk (Clopper and Pearson): by the spread of {replicates}, "
            f"and where events are few by the influence of the rows"
        )
    return (
        f"The {100 * effect.level:g} % interval {made}. It is for chance in the sample, takes the "
        f"forms of mechanisms as chosen, and knows nothing of a wrong graph, of a wrong form of a "
        f"mechanism, or of values that are missing because of what they are."
    )


def methods(model: FittedFlow, report: Report, effect: Effect | None) -> str:
    """Returns the paragraph."""
    graph, complete = model.graph_.without_auxiliary(), report.usage.iloc[0]
    extra = listed(model.graph_.auxiliary)
    beside = f"Auxiliary columns, of which no cause is claimed: {extra}. " if extra else ""
    arrows, hidden = plural(len(graph.edges), "arrow"), len(graph.latent)
    variables = plural(len(graph) - hidden, "variable")
    variables += f" and {plural(hidden, 'hidden cause')}" if hidden else ""
    lost = "at random given what each row shows, except as the graph says"
    assumed = lost if graph.indicators else "at random (MAR)"
    rows = f"all {whole(report.rows)} rows"
    if model._drawn_from is not None and model._stands_for is None:
        rows = f"{whole(report.searched)} of {whole(report.rows)} rows by chance"
    parts = [
        f"A causal normalizing flow was fitted to {rows} by maximum "
        f"likelihood of the observed values (MissCNF; misscnf {__version__}, seed {model.seed}). "
        f"The causal graph ({variables}, {arrows}) was taken as given. "
        f"{beside}"
        f"{percent(report.share_missing)} of the values were missing and "
        f"{whole(int(complete['rows']))} rows were complete; no row was dropped, no value was "
        f"imputed before the fit, and values were assumed to be missing {assumed}.",
        _forms(model),
    ]
    if effect is not None and effect.do:
        (name, value), *_ = effect.do.items()
        versus = [f"{cause} = {label(other)}" for cause, other in effect.versus.items()]
        over = {"rows": "the rows of the table, their holes completed by posterior draws"}.get(
            effect.population, f"{whole(effect.draws)} units drawn from the model"
        )
        what = f"the mean of {effect.outcome}"
        if effect.event is not None:
            what = f"the risk of {effect.outcome} = {label(effect.event)}"
        parts.append(
            f"The effect of {name} = {label(value)} against {' and '.join(versus)} on {what} was "
            f"computed by the g-formula, both interventions simulated with the same noise and "
            f"averaged over {over}."
        )
        parts.append(interval_sentence(model, effect))
    return " ".join(part for part in parts if part)


def _forms(model: FittedFlow) -> str:
    rich = model._richer_than_lines()
    told = "All mechanisms are (generalised) linear."
    if rich:
        some = any(form.name == "line" for form in model.forms_.values())
        rest = ", the others (generalised) linear" if some else ""
        told = f"Mechanisms: {listed(rich, 12)}{rest}."
    if model.interactions_:
        told += " Interactions are products of parents beside the line, shrunk by their evidence."
    if model.comparison_:
        told += " Richer forms had to earn their place by the predictive density of rows left out."
    return told
