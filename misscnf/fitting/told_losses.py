r"""What rows say of a loss that the graph claims: who else drives it, and whether it is there.

    logit P(missing(y) = 1) = a + b z_y + Σ_j c_j z_j

A claim that y drives its own loss is an assumption like any arrow, but it moves everything else:
a slope b that is not there is paid for by all laws around y. So `auto` asks the rows twice, where
no network stands in the way.

**Who else drives it.** Each column j that every row shows is tried by the score test of c_j = 0 at
the fit. With s_i the scores of the rows (Fisher) and A their information (Louis), both with c in
place, and G taking out of the score of c what the other parameters explain of it,

    u = G Σ s_i,   Ω = G (Σ s_i s_iᵀ) Gᵀ,   G = (−A_co A_oo⁻¹, 1),      gain ≈ ½ uᵀ Ω⁻¹ u nats

(White 1982). Where the best gains more than twice Schwarz's price of a slope, ½ log N, the rows
contradict the claim. Some thousand rows are asked first. Where their gain g is below the price,
but what all N rows of which they are n may be expected to say, (g − ½) N / n, is above it, four
times as many are asked. A column that gains joins the drivers, and so do all causes of y that
every row shows: a slope on y and one cause together pass for a slope on another cause, so that one
alone may be the wrong one. The fit is moved to its new maximum, and what is left is asked again.

Rows cannot always tell. Where y is a line in the one column that every row shows, a loss by y and
a loss by that column fit alike, and each with another law of y (docs/loss.md).

**Whether it is there.** Where rows hardly know b, the likelihood is maximised with b = 0 as well,
which makes the holes ignorable given the rest. The fit is Δ nats above that, and along the path
between the two, b(t) = t b, the likelihood falls like Δ (1 − t)². With the belief b ~ N(0, τ²)
before any row is seen, the Bayes factor of a slope against none is

    B = √(π / (π + 2Δ)) exp( 2Δ² / (π + 2Δ) ),      π = |b|² / τ²,

with Δ less ½ for each slope beyond the first, which the maximum gains by chance. If B < 1, the
slopes are zero; else the fit stays at the mean t = 2Δ / (π + 2Δ) of what is then believed. Their
standard errors are those of free slopes in either case: that rows do not speak for a slope is not
knowing that there is none.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from misscnf.data.cells import listed
from misscnf.data.rows import RowSource
from misscnf.draws import derive_generator
from misscnf.errors import FitError
from misscnf.fitting.completions import Completions
from misscnf.fitting.refit import Refitter
from misscnf.fitting.settings import Settings
from misscnf.fitting.solve.fisher import log_likelihoods, rows_by_chance
from misscnf.fitting.solve.sandwich import Information, measure_information
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.mechanisms import Shape
from misscnf.model import StructuralModel, Structure

__all__ = ["LossEvidence", "weigh_losses"]

logger = logging.getLogger("misscnf")


@dataclass(frozen=True)
class LossEvidence:
    """What rows said of the losses that a graph claims, and what was done."""

    sure: ClassVar[float] = 100.0
    """A Bayes factor from which on nobody doubts a slope: nothing is said of it."""

    added: tuple[tuple[str, str], ...] = ()
    """Columns that are lost, each with one that drives its loss as well."""
    weighed: tuple[str, ...] = ()
    """Columns whose say in their own loss the rows hardly know."""
    bayes_factor: float | None = None
    """Of slopes there against none."""
    kept: float = 1.0
    """Share of these slopes that was kept."""

    def sentences(self) -> list[str]:
        """Says what was done."""
        told = [
            f"The rows contradict the loss of {name} as it was given: {other} drives it too, and "
            f"the fit has it so; name it in loss=, or look for what else is wrong around {name}."
            for name, other in self.added
        ]
        if self.weighed and self.bayes_factor is not None and self.bayes_factor < self.sure:
            names, its = listed(self.weighed), "its" if len(self.weighed) == 1 else "their"
            columns = ("column " if len(self.weighed) == 1 else "columns ") + names
            about = f"a Bayes factor of {self.bayes_factor:.2g} for a slope against none"
            if self.kept:
                share = f"the fit has {100 * self.kept:.0f} % of the likeliest slope"
                told.append(
                    f"The rows hardly tell whether lost values of {columns} drive {its} own loss "
                    f"({about}): {share}. Vary it with sensitivity(strength=)."
                )
            else:
                told.append(
                    f"The rows do not say that lost values of {columns} drive {its} own loss "
                    f"({about}): the slope is zero in the fit, and lost values count as random "
                    f"given the rest. Vary it with sensitivity(strength=)."
                )
        return told


def weigh_losses(
    structure: Structure, model: StructuralModel, rows: RowSource, settings: Settings, seed: int
) -> tuple[Structure, StructuralModel, LossEvidence]:
    """Returns the structure and the model after the rows were asked, and what they said.

    Arguments:
        structure: What the fit was told.
        model: The fit, at its maximum. It is left as it is.
        rows: Its rows.
        settings: How it was made.
        seed: Where randomness starts.
    """
    graph, evidence = structure.graph, LossEvidence()
    trained = any(not law.solvable for law in model.mechanisms)
    if trained or not graph.own_losses:
        return structure, model, evidence
    if Plan.of(graph, rows).largest() > settings.training.most_together:  # too dear to refit
        return structure, model, evidence
    try:
        structure, model, evidence = _weighed(structure, model, rows, settings, seed)
    except FitError as problem:
        logger.warning("The rows were not asked what they say of the losses: %s", problem)
    for sentence in evidence.sentences():
        logger.warning("%s", sentence)
    return structure, model, evidence


def _weighed(
    structure: Structure, model: StructuralModel, rows: RowSource, settings: Settings, seed: int
) -> tuple[Structure, StructuralModel, LossEvidence]:
    """Asks for further drivers until there is none, and then for the slopes; see above."""
    graph = structure.graph
    while True:
        tried = _candidates(structure, model, rows)
        wide = _with_wider_laws(_widened(structure, tried), structure, model)
        found, added = _asked(wide, tried, rows, settings)
        if not added:
            break
        wider = _widened(structure, added)
        start, structure = _with_wider_laws(wider, structure, model), wider
        model = Refitter(start, rows, settings, seed).maximum(start)
    names, indicators = graph.nodes, graph.indicators
    evidence = LossEvidence(
        tuple(
            (names[indicators[r]], names[j])
            for r in indicators
            for j in structure.graph.parents[r]
            if j not in graph.parents[r]
        )
    )
    weak = _hardly_known(wide, tried, found, len(rows), settings)
    weak = [r for r in weak if _alone(structure, r)]
    if weak:
        model, factor, kept = _weigh_slopes(structure, model, rows, settings, seed, weak)
        weighed = tuple(names[indicators[r]] for r in weak)
        evidence = replace(evidence, weighed=weighed, bayes_factor=factor, kept=kept)
    return structure, model, evidence


Drivers = dict[int, tuple[int, ...]]
"""Columns that may drive a loss too, by its indicator."""


def _candidates(structure: Structure, model: StructuralModel, rows: RowSource) -> Drivers:
    """Returns the columns that every row shows and that do not drive a loss by the graph."""
    graph, shown = structure.graph, torch.ones(rows.columns, dtype=torch.bool)
    for batch in rows.batches():
        shown &= batch.observed.all(0)
    whole = set(torch.nonzero(shown).flatten().tolist()) - graph.indicators.keys()
    found: Drivers = {}
    for r in graph.own_losses:
        new = sorted(j for j in whole.difference(graph.parents[r]) if j < r)
        if new and _alone(structure, r) and model.mechanism(r).curve_size is None:
            found[r] = tuple(new)
    return found


def _alone(structure: Structure, node: int) -> bool:
    """Says whether a node shares its mechanism with no other."""
    return structure.keys.count(structure.keys[node]) == 1


def _widened(structure: Structure, drivers: Drivers) -> Structure:
    """Returns the structure with more arrows into indicators."""
    graph = structure.graph
    parents = tuple(
        tuple(sorted({*of, *drivers.get(i, ())})) for i, of in enumerate(graph.parents)
    )
    return replace(structure, graph=replace(graph, parents=parents))


def _with_wider_laws(wide: Structure, told: Structure, model: StructuralModel) -> StructuralModel:
    """Returns the same model with laws that read more columns, the slopes on them zero."""
    lines, laws = wide.build(Shape(hidden=())).double(), []
    for block, (node, *_) in enumerate(wide.blocks):
        law, before, now = model.block(block), told.graph.parents[node], wide.graph.parents[node]
        if before != now:
            wider = lines.block(block)
            wider.start_wider(law, [now.index(j) for j in before])
            law = wider
        laws.append(law)
    return wide.model(laws)


def _asked(
    model: StructuralModel, tried: Drivers, rows: RowSource, settings: Settings
) -> tuple[Information, Drivers]:
    """Returns what rows know, and who joins the drivers: of more rows where few leave it open."""
    solving, asked = settings.solving, settings.solving.evidence_rows
    while True:
        found = _measured(model, rows, settings, asked)
        gains, share = _gains(model, tried, found), len(rows) / len(found.scores)
        price = 0.5 * solving.evidence_price * math.log(len(found.scores))
        added = _further_drivers(model.graph, gains, price)
        most = max((gain for its in gains.values() for gain in its.values()), default=0.0)
        open_still = share * (most - 0.5) > 0.5 * solving.evidence_price * math.log(len(rows))
        if added or not open_still or asked >= min(len(rows), solving.evidence_most):
            return found, added
        asked = min(4 * asked, solving.evidence_most)


def _measured(
    model: StructuralModel, rows: RowSource, settings: Settings, asked: int
) -> Information:
    """Returns scores and information of some of the rows."""
    some = rows_by_chance(rows, asked)
    count, effort = settings.solving.whitening_completions, settings.integration.completions
    drawn = Completions.draw(model, some, count, derive_generator(0, "evidence"), effort)
    return measure_information(model, drawn, settings.replicates)


def _places(model: StructuralModel, indicator: int, driver: int) -> list[int]:
    """Returns where the slopes of a loss on a driver stand among all parameters."""
    before, block = 0, model.block_of[indicator]
    for law in (model.block(b) for b in range(block)):
        before += sum(parameter.numel() for parameter in law.parameters())
    place = model.graph.parents[indicator].index(driver)
    return [before + at for at in model.block(block).slope_places(place)]


def _gains(
    model: StructuralModel, tried: Drivers, found: Information
) -> dict[int, dict[int, float]]:
    """Returns the nats a slope that columns gain as drivers of losses, by the score test."""
    places = {(r, j): _places(model, r, j) for r, js in tried.items() for j in js}
    extra = [at for its in places.values() for at in its]
    others = sorted(set(range(len(found.matrix))).difference(extra))
    information = found.matrix + found.prior.diag()
    known = torch.linalg.pinv(information[others][:, others], rtol=1e-6, hermitian=True)

    def gain(its: list[int]) -> float:
        by_others = found.scores[:, others] @ (known @ information[others][:, its])
        left = found.scores[:, its] - by_others
        u, spread = left.sum(0), torch.linalg.pinv(left.T @ left, hermitian=True)
        return 0.5 * float(u @ spread @ u)

    return {r: {j: gain(places[r, j]) / len(places[r, j]) for j in js} for r, js in tried.items()}


def _further_drivers(
    graph: CausalGraph, gains: Mapping[int, Mapping[int, float]], price: float
) -> Drivers:
    """Returns which columns join the drivers of losses that rows contradict."""
    added = dict[int, tuple[int, ...]]()
    for r, its in gains.items():
        best = max(its, key=lambda j: its[j])
        if its[best] > price:
            causes = graph.ancestral_closure([graph.indicators[r]]) | {best}
            added[r] = tuple(j for j in its if j in causes)
    return added


def _hardly_known(
    model: StructuralModel, tried: Drivers, found: Information, rows: int, settings: Settings
) -> list[int]:
    """Returns the losses whose own slope may be zero, as far as completions tell.

    What rows say of a slope beside all else is a difference of larger numbers, each off by some
    percent; what may be no more than that counts as nothing.
    """
    extra = {at for r, js in tried.items() for j in js for at in _places(model, r, j)}
    fitted = [at for at in range(len(found.matrix)) if at not in extra]
    matrix = found.matrix[fitted][:, fitted] + found.prior[fitted].diag()
    covariance, weak = torch.linalg.pinv(matrix, hermitian=True), []
    for r, place in model.graph.own_losses.items():
        (at, *more), solving = _places(model, r, model.graph.indicators[r]), settings.solving
        if more:  # levels: no one slope
            continue
        said = 1.0 / float(covariance[fitted.index(at), fitted.index(at)])
        said -= solving.evidence_noise * float(found.complete[at, at])
        slope = model.mechanism(r).first_slope(place)
        if abs(slope) * math.sqrt(max(0.0, said) * rows / len(found.scores)) < solving.evidence_z:
            weak.append(r)
    return weak


def _weigh_slopes(
    structure: Structure,
    model: StructuralModel,
    rows: RowSource,
    settings: Settings,
    seed: int,
    weak: Sequence[int],
) -> tuple[StructuralModel, float, float]:
    """Returns the model with slopes as the rows speak for them, their Bayes factor and share."""
    graph = model.graph
    slopes = {r: model.mechanism(r).first_slope(graph.own_losses[r]) for r in weak}
    start, blocks = (
        _with_losses_at_random(structure, model, weak),
        [model.block_of[r] for r in weak],
    )
    without = Refitter(start, rows, settings, seed, also=blocks).maximum(start)
    sums = (log_likelihoods(one, rows, settings, "evidence").sum() for one in (model, without))
    above = max(0.0, float(next(sums)) - float(next(sums)) - 0.5 * (len(weak) - 1))
    believed = sum(b**2 for b in slopes.values()) / settings.replicates.slope_spread**2 + 1e-12
    precision = believed + 2.0 * above
    log_factor = 2.0 * above**2 / precision + 0.5 * math.log(believed / precision)
    kept = 0.0 if log_factor < 0.0 else 2.0 * above / precision
    without = _with_wider_laws(structure, replace(structure, graph=start.graph), without)
    fitted = dict(model.named_parameters())
    moved = {
        name: torch.lerp(part.detach(), fitted[name].detach(), kept)
        for name, part in without.named_parameters()
    }
    return model.with_state(moved), math.exp(min(log_factor, 700.0)), kept


def _with_losses_at_random(
    structure: Structure, model: StructuralModel, losses: Sequence[int]
) -> StructuralModel:
    """Returns the model without the arrows from columns into their own losses.

    A slope of zero is no arrow. Without it a lost value is not integrated over where nothing else
    reads it, which is most of what a loss costs.
    """
    own, nodes = model.graph.own_losses, range(len(model.graph))
    kept = [
        [k for k in range(len(model.graph.parents[i])) if i not in losses or k != own[i]]
        for i in nodes
    ]
    parents = tuple(tuple(model.graph.parents[i][k] for k in kept[i]) for i in nodes)
    narrow = replace(structure, graph=replace(model.graph, parents=parents))
    lines, laws = narrow.build(Shape(hidden=())).double(), []
    for block, (node, *_) in enumerate(narrow.blocks):
        law = model.block(block)
        if node in losses:
            law = lines.block(block)
            law.start_narrower(model.block(block), kept[node])
        laws.append(law)
    return narrow.model(laws)
