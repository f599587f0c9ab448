r"""`check`: a table and a graph in, a report out, with no model fitted.

The rows are read once, as a fit would read them; then each part of the report is one call to the
file of its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from misscnf.data.kinds import Kinds
from misscnf.data.panel import read_template
from misscnf.data.table import IncompleteTable, Table, holed_columns, read_table
from misscnf.errors import InputError
from misscnf.fitting.select.parents import arrange_blocks
from misscnf.fitting.settings import Streaming
from misscnf.graph import CausalGraph, GraphLike
from misscnf.graph.indicators import Loss
from misscnf.graph.latents import Latent
from misscnf.identification.columns import read_columns
from misscnf.identification.families import (
    counted,
    leaning,
    needed_for_effect,
    patterns_of,
    usage_table,
    whole_families,
)
from misscnf.identification.hidden import Estimand, effect_identified
from misscnf.identification.independences import Contradiction, claims, find_contradictions
from misscnf.identification.little import little_test
from misscnf.identification.loss import explain_holes, find_structural_holes
from misscnf.identification.over_time import PanelReport, check_over_time
from misscnf.identification.pictures import Curve, coverage_curve
from misscnf.identification.projection import project, shown_graph
from misscnf.identification.recovery import Recovery, losses_identified
from misscnf.identification.regions import Region, Search, thinnest_regions, unrevealed_regions
from misscnf.identification.report import Report, StructuralHole, node_table, region_table
from misscnf.identification.scan import Axis, fewest_rows, lower_bound, upper_bound
from misscnf.identification.settings import CheckSettings, RegionRules, Telling
from misscnf.identification.unlikely import unlikely_values
from misscnf.identification.words import percent, where
from misscnf.options import change
from misscnf.threads import one_thread

if TYPE_CHECKING:
    from misscnf.data.streams import TableStream

__all__ = ["check", "denied_by_rows", "read_effect"]


@one_thread()  # hundreds of small regressions
def check(
    df: Table,
    graph: GraphLike,
    effect: tuple[str, str] | None = None,
    *,
    kinds: Kinds = None,
    blocks: Mapping[str, Sequence[str]] | None = None,
    loss: Loss | None = None,
    auxiliary: Sequence[str] | None = None,
    latent: Latent | None = None,
    id: str | None = None,
    time: str | None = None,
    varying: Sequence[str] | None = None,
    chance: float | None = None,
    share: float | None = None,
    settings: CheckSettings | Mapping[str, object] | None = None,
    memory: str | float | None = None,
) -> Report | PanelReport:
    """Reports what the holes of a table leave identified, before any fit.

    Arguments:
        df: A DataFrame, NaN where a value is unknown, the path of a CSV or Parquet file, or an
            `IncompleteTable`. Columns outside the graph are used too, to say where families are
            not seen.
        graph: The causal graph, in any form that `CausalGraph.read` takes.
        effect: (treatment, outcome), to report only the families that this effect needs.
        kinds: Kinds of columns, as `MissCNF` takes them.
        blocks: Columns without arrows among them, likewise.
        loss: What drives the loss of which column, likewise: the report says what identifies it.
        auxiliary: Columns that help to tell what is lost and have no place in the graph, likewise.
        latent: Hidden causes, likewise: the report says whether the effect is still identified.
        id: The column that says who, in a long table with a row a person and visit; the graph is
            then one over time, and the report a `PanelReport` on its families.
        time: The column that says when.
        varying: Columns that are measured at every visit although they do not vary within a
            person, as `MissCNF` takes them.
        chance: A family counts as unseen where the chance to see it whole is below this; short for
            the setting "regions.chance", 0.02 by default.
        share: Regions with a smaller share of the rows are left alone; short for "regions.share",
            0.02 by default.
        settings: `CheckSettings`, or changes to them by name, such as
            `{"independences.level": 0.01}`.
        memory: What may be taken, such as "4GB": of a file that would take more, all rows are
            counted from disk, and rows by chance are searched (docs/many_rows.md).

    Returns:
        A `Report`; over time a `PanelReport`.

    Raises:
        InputError: If the table, the graph or the effect cannot be used.

    Example:
        >>> import numpy as np, pandas as pd
        >>> rng = np.random.default_rng(0)
        >>> t = rng.normal(size=2000)
        >>> df = pd.DataFrame({"t": t, "y": t + rng.normal(size=2000)})
        >>> df.loc[df["t"] > 1.0, "y"] = np.nan
        >>> print(check(df, "t -> y").regions["sentence"].iloc[0].partition(" (")[0])
        y with its parent t: never seen together where t is above 1
    """
    stream = None if memory is None else _stream(df, memory)
    if stream is not None:
        df = stream.sample(Streaming().sample_rows)
    if not isinstance(df, IncompleteTable):
        df = read_table(df)
    chosen = _change_settings(settings, chance, share)
    if id is not None or time is not None:
        if stream is not None:
            raise InputError(
                f"{stream.name} takes more than memory={memory!r}, and tables over time are read "
                f"into memory; give more, or some of the people."
            )
        others = {"blocks": blocks, "auxiliary": auxiliary}
        hidden = latent, loss
        return _over_time(
            df, graph, effect, id, time, kinds, chosen, varying or (), hidden, others
        )
    graph = CausalGraph.read(graph, blocks, latent).with_auxiliary(auxiliary, df.columns)
    if loss is not None:
        holed = holed_columns(df) if stream is None else stream.holed_columns()
        graph = graph.with_loss(loss, holed)
    table = IncompleteTable.read(df, graph.nodes, kinds=kinds, latent=graph.latent)
    if stream is not None:
        table = replace(table, all_rows=stream.count_patterns(graph.nodes, graph.latent))
    return _report(_Subject.read(table, graph, effect), chosen)


def _change_settings(
    settings: CheckSettings | Mapping[str, object] | None,
    chance: float | None,
    share: float | None,
) -> CheckSettings:
    if not isinstance(settings, CheckSettings):
        settings = change(CheckSettings(), settings or {})
    short = {"regions.chance": chance, "regions.share": share}
    return change(settings, {name: given for name, given in short.items() if given is not None})


@dataclass(frozen=True, eq=False)
class _Subject:
    """What is looked at: a table, the graph of its columns, and the effect that is asked for."""

    graph: CausalGraph
    """of what is measured, with the arrows inside blocks that the rows ask for"""
    table: IncompleteTable
    """its nodes are those of the graph"""
    causes: CausalGraph
    """the graph as given, with its hidden causes and without losses"""
    recovery: tuple[Recovery, ...]
    """what identifies each loss"""
    effect: tuple[str, str] | None

    @staticmethod
    def read(
        table: IncompleteTable, graph: CausalGraph, effect: tuple[str, str] | None
    ) -> _Subject:
        recovery = tuple(losses_identified(graph, table.observed.numpy()))
        causes = graph.without_indicators()
        graph = shown_graph(causes)
        table = table.in_order(graph.nodes)
        if not graph.edges_inside:  # of blocks; a fitted graph has its arrows
            graph = arrange_blocks(graph, table.values, table.observed, table.schema.domains)
            table = table.in_order(graph.nodes)
        asked = None if effect is None else read_effect(causes, effect)
        return _Subject(graph, table, causes, recovery, asked)

    @property
    def needed(self) -> list[int]:
        """The nodes whose families are asked about: all, or those that the effect needs."""
        if self.effect is not None:
            return sorted(map(self.graph.index, _needed_columns(self.causes, self.effect)))
        outside = self.graph.auxiliary
        return [i for i, name in enumerate(self.graph.nodes) if name not in outside]

    @property
    def estimand(self) -> Estimand | None:
        """Whether the effect is identified; None where nothing is hidden or no effect asked."""
        if self.effect is None or not self.causes.latent:
            return None
        domains = zip(self.graph.nodes, self.table.schema.domains, strict=True)
        states = {name: domain.states for name, domain in domains if domain.discrete}
        return effect_identified(self.causes, *self.effect, states)


@dataclass(frozen=True, eq=False)
class _Gaps:
    """Where families are (almost) never seen whole."""

    search: Search
    flagged: list[list[Region]]
    """of each needed family"""
    complete: list[Region]
    """of all columns at once"""
    reached: frozenset[int]
    """the nodes whose gaps a modelled loss reaches"""
    needed: list[int]
    """the nodes"""

    @property
    def open(self) -> list[list[Region]]:
        """Those that no modelled loss reaches."""
        return [
            [] if i in self.reached else regions
            for i, regions in zip(self.needed, self.flagged, strict=True)
        ]

    @property
    def uncovered(self) -> list[int]:
        """The nodes that have some."""
        return [i for i, regions in zip(self.needed, self.open, strict=True) if regions]

    @staticmethod
    def find(
        subject: _Subject, needed: list[int], axes: Sequence[Axis], rules: RegionRules
    ) -> _Gaps:
        graph, observed = subject.graph, subject.table.observed.numpy()
        # The families that are needed and, last, all columns at once.
        seen = whole_families(graph, observed)[:, needed]
        whole = np.column_stack([seen, observed.all(axis=1)])
        families = [frozenset(graph.families[i]) for i in needed] + [frozenset(range(len(graph)))]
        names = [*(graph.nodes[i] for i in needed), "all"]
        search = Search(whole, names, families, axes, rules)
        found = unrevealed_regions(search)
        if subject.table.all_rows is not None:
            patterns = patterns_of(subject.table)
            counts = [counted(patterns, family) for family in families]
            found = [
                [_in_all_rows(region, *count) for region in regions]
                for regions, count in zip(found, counts, strict=True)
            ]
        *flagged, complete = found
        gaps = {i for i, regions in zip(needed, flagged, strict=True) if regions}
        reached = frozenset(gaps & _reached_by_loss(graph, subject.recovery))
        return _Gaps(search, flagged, complete, reached, needed)


def _report(subject: _Subject, settings: CheckSettings) -> Report:
    """Puts the report together, a part after the other."""
    graph, table, needed = subject.graph, subject.table, subject.needed
    columns, patterns = read_columns(table, settings.most_levels), patterns_of(table)
    axes = [axis for axis in (Axis(column, settings.regions) for column in columns) if len(axis)]
    gaps = _Gaps.find(subject, needed, axes, settings.regions)
    listed = _listed_regions(gaps.search, gaps.flagged, settings.telling.thin_places)
    explained, loss_p_value = explain_holes(columns, settings.loss)
    nodes = columns[: len(graph)]
    contradictions, tested = find_contradictions(
        graph, table, columns, explained, settings.independences
    )
    numbers = [part for part in (node.features() for node in nodes) if part.shape[1] == 1]
    holes = find_structural_holes(columns, axes, settings)
    named = {column.name for column in columns}
    return Report(
        graph=graph,
        effect=subject.effect,
        needed=tuple(graph.nodes[i] for i in needed),
        rows=int(patterns.rows.sum()),
        searched=len(table),
        nodes=node_table(graph, patterns, needed, gaps.open, settings.telling.patterns_named),
        patterns=patterns.to_frame(graph, whole_families(graph, patterns.observed)),
        monotone=patterns.monotone,
        usage=usage_table(patterns),
        rows_to_tell=fewest_rows(settings.regions.chance, settings.regions.level),
        regions=region_table(graph, listed),
        full_pattern_positivity=not gaps.complete,
        full_pattern_sentence=_full_pattern(gaps.complete),
        consequences=leaning(graph, gaps.uncovered, subject.effect),
        loss=tuple(explained),
        loss_p_value=loss_p_value,
        little=little_test(np.column_stack(numbers), settings.little) if numbers else None,
        structural_holes=tuple(map(_structural_hole, holes)),
        contradictions=tuple(contradictions),
        independences_tested=tested,
        unlikely=unlikely_values(table, settings.unlikely),
        ignored=tuple(name for name in table.ignored if name not in named),
        curves=_curves(gaps.search, listed, settings.telling),
        settings=settings,
        recovery=subject.recovery,
        reached=tuple(graph.nodes[i] for i in sorted(gaps.reached)),
        causes=subject.causes,
        estimand=subject.estimand,
    )


def _over_time(
    df: pd.DataFrame | IncompleteTable,
    graph: GraphLike,
    effect: tuple[str, str] | None,
    id: str | None,
    time: str | None,
    kinds: Kinds,
    settings: CheckSettings,
    varying: Sequence[str],
    hidden: tuple[Latent | None, Loss | None],
    others: Mapping[str, object],
) -> PanelReport:
    """Checks a long table."""
    if id is None or time is None or isinstance(df, IncompleteTable):
        raise InputError(
            "a table over time is a DataFrame or a file, and needs both id= and time=: the "
            "columns that say who and when."
        )
    for name in (name for name, given in others.items() if given is not None):
        raise InputError(f"{name}= is not there yet for tables over time; leave it out.")
    latent, loss = hidden
    template = read_template(graph, time, latent)
    if loss is not None:
        holes = [name for name in template.varying if name in df and df[name].isna().any()]
        template = template.with_loss(loss, holes, time)
    return check_over_time(df, template, effect, id, time, kinds, settings, varying)


def _reached_by_loss(graph: CausalGraph, recovery: Sequence[Recovery]) -> set[int]:
    """Returns the nodes whose families a modelled loss reaches where no row shows them whole.

    The rows that lost a value speak of it there, by the law of the loss, if that is identified.
    """
    told = {one.column for one in recovery if one.identified and one.by != "ignorable"}
    return {
        i for i, family in enumerate(graph.families) if told & {graph.nodes[j] for j in family}
    }


@one_thread()
def denied_by_rows(
    graph: CausalGraph, table: IncompleteTable, settings: CheckSettings | None = None
) -> tuple[Contradiction, ...]:
    """Returns the independences of a graph that some rows of a table contradict.

    For a fit, which keeps them beside the model: its cost does not grow with the rows.
    """
    graph = shown_graph(graph)
    if not claims(graph):
        return ()
    table = table.in_order(graph.nodes)
    chosen, count = settings or CheckSettings(), len(table)
    some = np.random.default_rng(0).permutation(count)[: chosen.independences.most_rows]
    part = table.select(torch.from_numpy(np.sort(some)))
    columns = read_columns(part, chosen.most_levels)
    loss, _ = explain_holes(columns, chosen.loss)
    return tuple(find_contradictions(graph, part, columns, loss, chosen.independences)[0])


def read_effect(graph: CausalGraph, effect: tuple[str, str]) -> tuple[str, str]:
    """Returns a treatment and an outcome of a graph as they are; refuses anything else."""
    if isinstance(effect, str) or not isinstance(effect, Sequence) or len(effect) != 2:
        said = "an effect is a pair (treatment, outcome) of two nodes, such as ('t', 'y')"
        raise InputError(f"{said}; got {effect!r}.", about="effect")
    treatment, outcome = (graph.nodes[graph.index(name)] for name in effect)
    if treatment == outcome:
        said = f"an effect is of one node on another; got {treatment!r} twice."
        raise InputError(said, about="effect")
    graph.refuse_intervention(treatment)
    graph.refuse_outcome(outcome)
    return treatment, outcome


def _needed_columns(graph: CausalGraph, effect: tuple[str, str]) -> set[str]:
    """Returns the columns whose laws an effect needs, and those that hidden causes tie to them."""
    needed = {graph.nodes[i] for i in needed_for_effect(graph, *map(graph.index, effect))}
    if not graph.latent:
        return needed
    mixed = project(graph)
    return {
        other
        for name in needed.difference(graph.latent)
        for other in mixed.district(name, mixed.nodes)
    }


def _in_all_rows(region: Region, whole: int, rows: int) -> Region:
    """Returns a region as all rows have it, where it is everywhere; others are of the sample."""
    if region.conditions:
        return region
    ends = lower_bound(whole, rows), upper_bound(whole, rows)
    return replace(region, whole=whole, rows=rows, lower=ends[0], upper=ends[1])


def _stream(df: Table, memory: str | float) -> TableStream | None:
    """Opens a table that takes more memory than it may."""
    from misscnf.data.streams import open_stream  # with pyarrow, which few tables need

    return open_stream(df, memory, Streaming().bytes_a_cell)


def _listed_regions(
    search: Search, flagged: Sequence[Sequence[Region]], most: int
) -> list[Region]:
    """Returns the flagged regions and, of families without any, where they are seen least."""
    listed: list[Region] = []
    for target, regions in enumerate(flagged):
        if not regions and not search.whole[:, target].all():
            regions = thinnest_regions(search, target, most)
        listed += regions
    return sorted(listed, key=lambda region: (not region.flagged, not region.thin, -region.share))


def _curves(search: Search, listed: Sequence[Region], telling: Telling) -> tuple[Curve, ...]:
    """Returns the curves to draw: of flagged regions, or of the thinnest if there are none."""
    drawn = [region for region in listed if region.conditions]
    drawn.sort(key=lambda region: (not region.flagged, region.upper, -region.share))
    if drawn and drawn[0].flagged:
        drawn = [region for region in drawn if region.flagged]
    return tuple(
        coverage_curve(search, region, telling.bins) for region in drawn[: telling.most_curves]
    )


def _full_pattern(regions: Sequence[Region]) -> str:
    if not regions:
        return "Full-pattern positivity: nothing in these rows speaks against it."
    first = regions[0]
    if not first.conditions:
        seen = "no row is complete" if first.whole == 0 else f"{first.whole} rows are complete"
        return f"Full-pattern positivity: fails, {seen}."
    return (
        f"Full-pattern positivity: not guaranteed, (almost) no complete row where "
        f"{where(first.conditions)} ({percent(first.share)} of rows)."
    )


def _structural_hole(region: Region) -> StructuralHole:
    place, holes = where(region.conditions), 1.0 - region.elsewhere
    rest = f"in {percent(holes)} of the others" if holes > 0.0 else "nowhere else"
    question = (
        f"{region.node} is missing in all {region.rows} rows where {place}, and {rest}: does "
        f"it exist there? If not, these are no lost values, and should not be imputed."
    )
    return StructuralHole(region.node, place, region.rows, holes, question)
