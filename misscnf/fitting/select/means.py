r"""Line, curve or network? Who asks, who is tried, and who wins.

A line here is one with the products of its parents that it keeps (`products`).

1. Blocks whose rows are likely enough under their line keep it (`nonlinearity`): nothing is fitted
   for them.
2. The others try a curve, which is solved for (`curves`). One that beats the line clearly is
   chosen, unless a network beats it.
3. Networks are trained for what is left: blocks that are clearly bent and have no curve that wins,
   those whose curve wins narrowly, and those that rows hardly ever show with all parents, of which
   a score test sees little.
   Members of a block of columns, and wide families with few rows for their features, try none.
   Two that try have twice the luck: where only one of them beats the line, it has to do so more
   clearly, if the rows are so many that the other could have seen what it sees.
   Levels and counts have no curve, so that nothing speaks for their network but the network. Of m
   such blocks the luckiest looks best: each has to pass the test, and beat its line, as clearly as
   makes one of m pass by luck no more often than one alone (Bonferroni).

Networks are compared on completions by the line, which favour the line a little where much is
hidden; completions by a network would favour that network, and cost a fit. Curves that were chosen
weigh these completions.

What was not taken, and might have been, is kept with its weight (`Rival`): intervals know of it
(`fitting.rivals`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from scipy.special import ndtr, ndtri

from misscnf.fitting.completions import Completions
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.select.crossfit import Folds, RichSet, cross_fit
from misscnf.fitting.select.curves import CurveTrial, Family
from misscnf.fitting.select.forms import Form, build_model, with_mechanisms
from misscnf.fitting.select.given import Given
from misscnf.fitting.select.nonlinearity import nonlinearity_p_values
from misscnf.fitting.select.scores import blankets
from misscnf.fitting.solve.simplified_newton import maximise_lines
from misscnf.mechanisms import Growth, Mechanism
from misscnf.model import StructuralModel, Structure

__all__ = ["Comparison", "Means", "Rival", "choose_means"]


@dataclass(frozen=True)
class Rival:
    """A form that a block does not have, and might have."""

    form: Literal["line", "curve"]
    weight: float
    """of it, against the form that was taken: that of pseudo-BMA+ (`elpd`)"""


@dataclass(frozen=True)
class Comparison:
    """What curves and networks gain over lines on rows that were left out, in nats a row."""

    overall: ElpdDifference
    """of all blocks that earn one together, or of all that tried where none does"""
    by_block: Mapping[int, ElpdDifference]
    """of each that tried: by a network where one was compared with the line, else by a curve"""
    p_values: Mapping[int, float]
    """how likely the rows are under the line of each block with parents"""

    def to_dict(self, structure: Structure) -> dict[str, Any]:
        """Returns plain numbers, by node."""
        nodes = {
            structure.graph.nodes[i]: {"p_value": p_value, **tried}
            for block, p_value in self.p_values.items()
            for tried in [self.by_block[block].to_dict() if block in self.by_block else {}]
            for i in structure.blocks[block]
        }
        return {**self.overall.to_dict(), "nodes": nodes}


@dataclass(frozen=True)
class Means:
    """Which blocks get more than a line."""

    comparison: Comparison | None
    """None where no network was allowed to try"""
    curves: Mapping[int, Mechanism] = field(default_factory=dict)
    """by block, fitted to the rows that show their family"""
    networks: frozenset[int] = frozenset()
    rivals: Mapping[int, Rival] = field(default_factory=dict)
    """by block, where rows that were left out do not settle its form"""


def choose_means(line: StructuralModel, given: Given, *, networks: bool = True) -> Means:
    """Chooses the form of every mean, block by block.

    Arguments:
        line: The linear fit to all rows, with the products that lines keep.
        given: Structure, rows, settings and seed.
        networks: Whether there are held-out rows enough to train one.
    """
    selection, stage = given.selection, given.timings.stage
    with stage("testing lines"):
        completions, growing = given.complete(line, "fold rows"), _growing(line, given, "network")
        about = (growing, selection, given.seed)
        p_values = nonlinearity_p_values(line, completions, *about)
    first = sorted(p_values, key=p_values.__getitem__)[: selection.always_asked]
    asking = [b for b, p in p_values.items() if p < selection.curve_p_value or b in first]
    with stage("trying curves"):
        families = {b: _family(given, completions, b) for b in asking}
        known = {b: its for b, its in families.items() if its.speaks(selection)}
        trials = _try_curves(line, given, _unselected(known, p_values, given))
        others = {b: its for b, its in families.items() if b not in trials and its.few(selection)}
        untaken = _try_curves(line, given, others)
    ratios = {block: trial.over_line.ratio for block, trial in trials.items()}
    clear = {b for b, trial in trials.items() if ratios[b] >= trial.alone}
    narrow = {b for b in trials if ratios[b] >= selection.z} - clear
    if not networks:
        taken = {b: trials[b].mechanism() for b in sorted(clear | narrow)}
        return Means(None, taken, rivals=_rivals({**trials, **untaken}, taken, given))
    trained, lone = {b for b in asking if given.may_train(b)}, _without_curve(line, p_values)
    loud = {
        b
        for b in trained
        if b not in known or p_values[b] < selection.network_p_value / lone.get(b, 1)
    }
    with stage("trying networks"):
        candidates, curves = (
            frozenset(loud | (narrow & trained)) - clear,
            {b: trials[b].mechanism() for b in clear},
        )
        bars = {b: _as_clear_as(selection.z, of=lone.get(b, 1)) for b in candidates}
        compared = _compare_networks(line, completions, bars, curves, given)
        winning = clear | (narrow & compared.chosen)
        beaten = {b for b in winning & trained if trials[b].loses_to_network()}
    alone = {b for b in compared.chosen - winning if compared.clearly(b, trials.get(b))}
    curves = {b: trials[b].mechanism() for b in sorted(winning - beaten)}
    gains = {b: trial.over_line.shared(trial.share) for b, trial in trials.items()}
    counted = clear if clear or compared.chosen else gains
    overall = compared.overall if compared.chosen or not clear else ElpdDifference()
    overall = sum((gains[b] for b in counted), overall)
    comparison = Comparison(overall, gains | dict(compared.by_block), p_values)
    rivals = _rivals({**trials, **untaken}, curves, given)
    settled = alone | beaten
    rivals = {b: rival for b, rival in rivals.items() if b not in settled}
    return Means(comparison, curves, frozenset(settled), rivals)


def _rivals(
    trials: Mapping[int, CurveTrial], curves: Mapping[int, Mechanism], given: Given
) -> dict[int, Rival]:
    """Returns the line of each block that took a curve, the curve of each that kept its line.

    Clear choices are left out, and those between forms that are alike anyway.
    """
    found = {}
    for block, trial in trials.items():
        weight = trial.over_line.weight(len(trial.family.rows))
        rival = Rival("line", 1.0 - weight) if block in curves else Rival("curve", weight)
        if given.wide(block):
            continue
        if rival.weight * trial.departure() >= given.selection.least_departure:
            found[block] = rival
    return found


def _without_curve(line: StructuralModel, blocks: Collection[int]) -> dict[int, int]:
    """Returns the blocks that have no curve between line and network, each with their number."""
    found = [b for b in blocks if "curve" not in line.block(b).growths]
    return dict.fromkeys(found, len(found))


def _as_clear_as(z: float, of: int) -> float:
    """Returns how many errors the luckiest of so many exceeds as seldom as one alone exceeds z."""
    return z if of == 1 else -float(ndtri(ndtr(-z) / of))


def _family(given: Given, completions: Completions, block: int) -> Family:
    """Returns the rows that tell of a block: those that show it whole, completed if wide."""
    if given.wide(block):
        return Family.completed(given, completions, block)
    return Family.of(given.structure, given.rows, block)


def _unselected(
    families: Mapping[int, Family], p_values: Mapping[int, float], given: Given
) -> dict[int, Family]:
    """Returns the families whose complete rows may be believed.

    Rows that show a family whole are a selection where loss depends on the node, and look bent
    then though nothing is. The score test is of the likelihood of all rows, which is not misled:
    it has to agree clearly, unless every row that shows the node shows its family and the graph
    has no arrow from the node to that loss.
    """
    blocks, selected = given.structure.blocks, given.structure.graph.selected
    return {
        b: family
        for b, family in families.items()
        if (family.whole and selected.isdisjoint(blocks[b]))
        or p_values[b] < given.selection.network_p_value
    }


def _growing(line: StructuralModel, given: Given, growth: Growth) -> list[int]:
    """Returns the blocks with parents that may grow into a form."""
    blocks = filter(given.structure.may_grow, range(len(line.blocks)))
    return [b for b in blocks if given.structure.parents_of(b) and growth in line.block(b).growths]


def _try_curves(
    line: StructuralModel, given: Given, families: Mapping[int, Family]
) -> dict[int, CurveTrial]:
    """Tries a curve for every family whose node may have one."""
    if not given.selection.curves or given.settings.shape.kind != "gaussian":
        return {}
    found, wanted = {}, sorted(families.keys() & set(_growing(line, given, "curve")))
    for number, block in enumerate(wanted):
        trial = CurveTrial.of(line.block(block), families[block], given, block)
        if trial is not None:
            found[block] = trial
        if given.watch is not None:
            given.watch(number + 1, len(wanted))
    return found


@dataclass(frozen=True)
class _Compared:
    """Networks beside lines."""

    overall: ElpdDifference = field(default_factory=ElpdDifference)
    """of the chosen ones, or of all that tried"""
    by_block: Mapping[int, ElpdDifference] = field(default_factory=dict)
    """of each alone, the others as they were chosen"""
    chosen: frozenset[int] = frozenset()

    def clearly(self, block: int, trial: CurveTrial | None) -> bool:
        """Whether a network beats the line clearly enough, though a curve that tried does not."""
        return trial is None or self.by_block[block].ratio >= trial.alone


def _compare_networks(
    line: StructuralModel,
    completions: Completions,
    bars: Mapping[int, float],
    curves: Mapping[int, Mechanism],
    given: Given,
) -> _Compared:
    """Trains networks of some blocks and judges them beside their lines.

    Where a neighbour has a curve already, that curve stands beside both: through its line, a bend
    that is seen by way of the neighbour would not be seen.

    Arguments:
        line: The linear fit.
        completions: Completions of the rows by it.
        bars: Of the blocks that try: standard errors by which they must beat the line.
        curves: Those that were chosen, by block.
        given: Structure, rows, settings and seed.
    """
    if not bars:
        return _Compared()
    candidates = frozenset(bars)
    around = set[int]().union(*(blankets(line)[b] for b in candidates))
    beside = {b: curve for b, curve in curves.items() if b in around}
    selection, settings = given.selection, given.settings
    folds = Folds.of(len(completions), selection, given.seed)
    lines = maximise_lines(line, completions, folds.weights(), settings)
    rich = replace(settings.shape, hidden=selection.hidden)
    lines = [with_mechanisms(its, beside) for its in lines]
    laws = [beside.get(b, line.block(b)) for b in range(len(line.blocks))]
    shapes = [
        Form(curve=law.curve_size).shape(rich) if b not in candidates else rich
        for b, law in enumerate(laws)
    ]
    starts = [
        build_model(given.structure, shapes, its, given.seed + fold)
        for fold, its in enumerate(lines)
    ]
    about = (candidates, given, selection.steps, frozenset(beside))
    crossed = cross_fit(completions, folds, starts, lines, *about)
    chosen = crossed.choose(bars)
    best = RichSet(crossed, chosen)
    return _Compared(
        crossed.elpd_difference(chosen or candidates, frozenset()),
        {block: best.elpd_difference(block) for block in sorted(candidates)},
        chosen,
    )
