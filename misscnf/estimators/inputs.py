r"""What a fit learns from: a table and a graph, read as the parameters of an estimator ask for.

    table, graph  →  the table in the model's numbers  →  the arrows that its rows ask for

A table comes in one of three forms: rows that fit into memory; a file that does not, which is read
a batch at a time (`LargeTable`); or a long one, with a row a person and visit, which becomes a
wide one with the graph unrolled over the visits (`Panel`). What follows need not know which.
"""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
from torch import Tensor

from misscnf.data.column_names import ArrayLike, name_columns
from misscnf.data.kinds import say_rounded
from misscnf.data.large_table import LargeTable
from misscnf.data.panel import Panel, read_template
from misscnf.data.streams import TableStream, open_stream
from misscnf.data.table import IncompleteTable, Schema, Table, holed_columns, read_table
from misscnf.data.ties import Ties, read_ties, tied_keys, tied_schema
from misscnf.display.progress import ProgressBar
from misscnf.errors import InputError
from misscnf.fitting.select.parents import arrange_blocks, whole_members
from misscnf.fitting.settings import Selection, Settings
from misscnf.graph import CausalGraph
from misscnf.identification.projection import shown_graph
from misscnf.model import Structure

if TYPE_CHECKING:
    from misscnf.estimators.misscnf import MissCNF

__all__ = ["InputReader", "Inputs", "ORDERED", "ordered_graph"]

ORDERED = "ordered"
"""The graph in which each column depends on all before it, in the order of the table."""

logger = logging.getLogger("misscnf")


def ordered_graph(names: Sequence[str] | pd.Index) -> CausalGraph:
    """Returns the graph in which each column depends on all before it."""
    return CausalGraph.from_edges(itertools.combinations(names, 2), names)


@dataclass(frozen=True, eq=False)
class Inputs:
    """A table and its graph, with the same nodes in the same order. d nodes."""

    graph: CausalGraph
    table: IncompleteTable
    """the rows, or a sample of those of a table on disk"""
    columns: pd.Index | tuple[object, ...] | int
    """what the table that was given has: names, or a number of columns without names"""
    large: LargeTable | None = None
    """the table on disk"""
    panel: Panel | None = None
    """the visits of a long table, and its graph over time"""
    keys: Sequence[str] | None = None
    """for each node the name of its mechanism, which tied nodes share; None where none are tied"""

    @property
    def shown(self) -> Tensor:
        """(·, d) which cells are shown together: by each row, or by each pattern of rows."""
        return self.table.observed if self.large is None else self.large.patterns

    def structure(self, rules: Selection) -> Structure:
        """Returns the graph with domains, ties, and the nodes that stay lines."""
        graph = self.graph
        lines = [] if rules.whole_members else whole_members(graph, self.shown)
        lines += _lines_of_loss(graph, self.shown, self.keys or graph.nodes)
        lines += map(graph.index, graph.auxiliary)
        return Structure.of(graph, self.table.schema.domains, self.keys, lines)


class _Source(NamedTuple):
    """A graph, and the rows that its columns are read from."""

    graph: CausalGraph
    rows: pd.DataFrame | IncompleteTable
    panel: Panel | None = None
    schema: Schema | None = None
    """known already where the table is long"""
    keys: Sequence[str] | None = None
    ties: Ties | None = None


class InputReader:
    """Reads tables as an estimator's parameters ask for.

    Arguments:
        asked: The estimator, for its parameters alone.
        settings: Its preset with its changes.
    """

    def __init__(self, asked: MissCNF, settings: Settings) -> None:
        self.asked = asked
        self.settings = settings

    def read(
        self,
        df: Table | ArrayLike,
        validation: float | Table | ArrayLike = 0.0,
        memory: str | float | None = None,
    ) -> Inputs:
        """Reads a table and its graph, and says which kinds its columns have."""
        if self.asked.unseen not in ("error", "missing"):
            raise InputError(f"unseen is 'error' or 'missing'; got {self.asked.unseen!r}.")
        stream = None if memory is None else self._stream(df, validation, memory)
        given = _head(df) if stream is None else stream.head()
        if self.asked.id is not None or self.asked.time is not None:
            source = self._read_panel(given)
        else:
            source = self._read_rows(given, stream)
        self._refuse_hidden(source.graph)
        if stream is None and len(source.rows) < 2:
            raise InputError(
                "the table has one row (n_samples=1), where nothing varies; give at least two."
            )
        table, large = self._read_table(source, stream)
        if self.asked.ties is not None:
            source, table = self._tie(source, table)
        self._say_kinds(table, source.panel, known=table is df)
        graph = _arranged(source.graph, table, self.settings.selection)
        return Inputs(
            graph=graph,
            table=table.in_order(graph.nodes),
            columns=given.columns if _has_names(df) else given.shape[1],
            large=None if large is None else large.in_order(graph.nodes),
            panel=source.panel,
            keys=source.keys if source.ties is None else tied_keys(graph, source.ties),
        )

    def _stream(
        self,
        df: Table | ArrayLike,
        validation: float | Table | ArrayLike,
        memory: str | float,
    ) -> TableStream | None:
        """Opens a table that takes more memory than it may; None where it is read as it is."""
        stream = open_stream(df, memory, self.settings.streaming.bytes_a_cell)
        if stream is None:
            return None
        asked = self.asked
        if asked.id is not None or asked.time is not None or asked.ties is not None:
            raise InputError(
                f"{stream.name} takes more than memory={memory!r}, and tables over time or with "
                f"ties are read into memory; give more memory, or some of the people."
            )
        if not isinstance(validation, int | float):
            raise InputError(
                f"{stream.name} takes more than memory={memory!r}; validation is a share then."
            )
        return stream

    def _read_rows(
        self, given: pd.DataFrame | IncompleteTable, stream: TableStream | None
    ) -> _Source:
        """Reads the graph of a table with a row a unit."""
        asked = self.asked
        for name in ("untied", "varying"):
            if getattr(asked, name) is not None:
                raise InputError(f"{name}= is for a table over time; give id= and time= too.")
        graph = self._read_graph(given.columns).with_auxiliary(asked.auxiliary, given.columns)
        if asked.loss is not None:
            holed = holed_columns(given) if stream is None else stream.holed_columns()
            graph = graph.with_loss(asked.loss, holed)
        return _Source(graph, given)

    def _read_graph(self, names: Sequence[Any] | pd.Index) -> CausalGraph:
        graph = self.asked.graph
        if graph is None:
            raise InputError("a causal graph is needed: MissCNF(graph), such as 'a -> b; b -> c'.")
        if isinstance(graph, str) and graph == ORDERED:
            return ordered_graph(names)
        return CausalGraph.read(graph, self.asked.blocks, self.asked.latent)

    def _read_panel(self, given: pd.DataFrame | IncompleteTable) -> _Source:
        """Reads a long table by its graph over time: codecs, and a row a person."""
        asked = self.asked
        if asked.id is None or asked.time is None or isinstance(given, IncompleteTable):
            raise InputError(
                "a table over time is a DataFrame or a file, and needs both id= and time=: the "
                "columns that say who and when."
            )
        for name in ("blocks", "auxiliary", "ties"):
            if getattr(asked, name) is not None:
                raise InputError(
                    f"{name}= is not there yet for tables over time; leave it out, or give a wide "
                    f"table with a column a visit."
                )
        template = read_template(asked.graph, asked.time, asked.latent)
        if asked.loss is not None:
            holes = [n for n in template.varying if n in given and given[n].isna().any()]
            template = template.with_loss(asked.loss, holes, asked.time)
        if asked.untied is not None and asked.untied is not False:
            template = template.without_ties(asked.untied)
        about = (template, asked.id, asked.time, asked.kinds, self.settings.kinds)
        panel, schema, wide = Panel.learn(given, *about, asked.varying or ())
        graph = panel.graph(dict(zip(schema.nodes, schema.domains, strict=True)))
        if asked.progress is not False:
            logger.info("The table over time: %s", panel.summary)
        keys = panel.unrolled().keys
        return _Source(graph, wide, panel, schema, [keys[name] for name in graph.nodes])

    def _refuse_hidden(self, graph: CausalGraph) -> None:
        """Refuses networks beside hidden causes that nothing was compared with."""
        settings = self.settings
        compared = settings.selection.compare and settings.linear_start
        if graph.latent and settings.train and not compared:
            raise InputError(
                f"the preset {settings.preset!r} gives every node a network, and beside hidden "
                f"causes ({', '.join(graph.latent)}) rows cannot tell how these bend; use "
                f"preset='auto' or 'linear', where hidden causes act by lines."
            )

    def _read_table(
        self, source: _Source, stream: TableStream | None
    ) -> tuple[IncompleteTable, LargeTable | None]:
        """Reads cells into the model's numbers: of all rows, or of all and a sample of them."""
        nodes, settings = source.graph.nodes, self.settings
        kinds = None if source.panel is not None else self.asked.kinds  # its codecs are known
        about: dict[str, Any] = {"kinds": kinds, "rules": settings.kinds}
        about["latent"] = source.graph.latent
        if stream is None:
            return IncompleteTable.read(source.rows, nodes, source.schema, **about), None
        chosen: dict[str, Any] = {
            "sample_rows": settings.streaming.sample_rows,
            "columns_at_once": settings.streaming.columns_at_once,
            "seed": self.asked.seed,
        }
        with ProgressBar("reading rows", show=self.asked.progress) as bar:
            chosen["tell"] = bar.rows
            large = LargeTable.read(stream, nodes, **about, **chosen)
        return large.sample, large

    def _tie(self, source: _Source, table: IncompleteTable) -> tuple[_Source, IncompleteTable]:
        """Reads tied columns again, by codecs that they share."""
        if isinstance(source.rows, IncompleteTable):
            raise InputError("ties are for a table that was not read yet; give a DataFrame.")
        ties = read_ties(self.asked.ties, source.graph)
        schema = tied_schema(table, ties, self.asked.kinds, self.settings.kinds)
        table = IncompleteTable.read(source.rows, source.graph.nodes, schema)
        return source._replace(ties=ties), table

    def _say_kinds(self, table: IncompleteTable, panel: Panel | None, *, known: bool) -> None:
        """Says the kinds of the columns, unless whoever gave the table knows them."""
        say_rounded(table.schema.columns, visits=panel is not None)
        if known or self.asked.progress is False:
            return
        shown = table.schema.describe()
        if panel is not None:
            shown = panel.described(shown)  # a line a column, not one a visit
        logger.info("The kinds of the columns:\n%s", shown.to_string(index=False))


def _has_names(df: Table | ArrayLike | TableStream) -> bool:
    """Tells tables whose columns have names from arrays, whose columns are given some."""
    return isinstance(df, pd.DataFrame | str | os.PathLike | IncompleteTable | TableStream)


def _head(df: Table | ArrayLike) -> pd.DataFrame | IncompleteTable:
    return df if isinstance(df, IncompleteTable) else read_table(name_columns(df))


def _arranged(graph: CausalGraph, table: IncompleteTable, rules: Selection) -> CausalGraph:
    """Returns the graph with the arrows inside blocks, and into auxiliary columns."""
    if not (graph.blocks or graph.auxiliary):
        return graph
    shown = shown_graph(graph)
    part = table.in_order(shown.nodes)
    rows = (part.values, part.observed, part.schema.domains)
    arranged = arrange_blocks(shown, *rows, rules)
    if not graph.latent:
        return arranged
    return graph.arranged(arranged.edges_inside, arranged.nodes)


def _lines_of_loss(graph: CausalGraph, observed: Tensor, keys: Sequence[str]) -> list[int]:
    """Returns the indicators that stay logistic lines.

    A flexible law of a loss that reads what it hides follows the shape of the values instead. Tied
    losses are lines together.
    """
    shown = observed.all(0)
    found = {keys[i] for i in graph.indicators if not bool(shown[list(graph.parents[i])].all())}
    return [i for i in graph.indicators if keys[i] in found]
