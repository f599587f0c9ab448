r"""A table that is larger than memory: its codecs, its rows on disk, and a sample in memory.

Kinds and codecs are learned as from a table in memory, from all cells of one column after the
other. Then the rows are read once, a batch at a time, turned into the model's numbers and kept on
disk (`stored_rows`). What looks at single cells, and what chooses among forms, is given a sample:
every row is in it with the same chance. Which cells can be seen together is known of all rows.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from misscnf.data.column_names import locate_columns
from misscnf.data.dtypes import OBJECT
from misscnf.data.kinds import KindRules, Kinds
from misscnf.data.patterns import PatternCounts
from misscnf.data.stored_rows import StoredRows
from misscnf.data.streams import RowsFolder, TableStream, saying_full
from misscnf.data.table import IncompleteTable, learn_schema, measured_nodes
from misscnf.draws import derive_generator
from misscnf.errors import InputError
from misscnf.graph.indicators import column_of
from misscnf.threads import in_order

__all__ = ["LargeTable"]

logger = logging.getLogger("misscnf")


@dataclass(frozen=True, eq=False)
class LargeTable:
    """Rows on disk, and some of them in memory. N rows, d nodes, P patterns."""

    rows: StoredRows
    """all of them"""
    sample: IncompleteTable
    """rows by chance, in their order; it knows which cells all rows show together"""
    log_slope: float
    """the mean of log|dz/dx| over all rows"""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def patterns(self) -> Tensor:
        """(P, d) which cells some row shows together."""
        assert self.sample.all_rows is not None
        return torch.from_numpy(self.sample.all_rows.observed)

    @staticmethod
    def read(
        stream: TableStream,
        nodes: Sequence[str],
        *,
        kinds: Kinds = None,
        rules: KindRules | None = None,
        latent: Mapping[str, int | None] | None = None,
        sample_rows: int,
        columns_at_once: int = 1,
        seed: int = 0,
        tell: Callable[[int, int, str], object] | None = None,
    ) -> LargeTable:
        """Reads a table whose columns are found by the names of nodes.

        Arguments:
            stream: The table.
            nodes: The nodes of the graph.
            kinds: Kinds that are asked for; the others are inferred.
            rules: How they are inferred.
            latent: Nodes that nobody measures, with their numbers of classes.
            sample_rows: Rows of the sample, at most.
            columns_at_once: Columns whose kinds are learned side by side.
            seed: Where its randomness starts.
            tell: Is told how many rows are read, of how many, and that they are.
        """
        head, hidden, nodes = stream.head(), latent or {}, tuple(nodes)
        named = measured_nodes(nodes, head, hidden)
        locate_columns(head, named, require_all=True)
        cells = _cells(stream, nodes, hidden)
        about = (kinds, list(head.columns), rules, hidden)
        schema = learn_schema(cells, nodes, *about, columns_at_once)
        chosen = _chosen(len(stream), sample_rows, seed)
        folder = RowsFolder()
        path, start, log_slope = Path(folder.name) / "rows", 0, 0.0
        some, patterns = list[pd.DataFrame](), PatternCounts(len(nodes))
        with saying_full(folder.name), path.open("wb") as file:

            def read(frame: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray, float]:
                part = IncompleteTable.read(frame, nodes, schema)
                values = np.where(part.observed.numpy(), part.values.numpy(), np.nan)
                return frame, values, float(part.log_slope().sum())

            for frame, values, slope in in_order(read, stream.frames(named)):
                file.write(values.tobytes())
                log_slope += slope
                patterns.add(~np.isnan(values))
                mine = chosen[np.searchsorted(chosen, start) :] - start
                some.append(frame.iloc[mine[mine < len(frame)]])
                start += len(frame)
                if tell is not None:
                    tell(start, len(stream), "reading rows")
        sample = IncompleteTable.read(pd.concat(some), nodes, schema)
        rows = StoredRows(path, len(nodes), start, tuple(range(len(nodes))), folder)
        logger.info("%s has %d rows, which are read from disk.", stream.name, start)
        sample = replace(sample, columns=tuple(head.columns), all_rows=patterns)
        return LargeTable(rows, sample, log_slope / start)

    def in_order(self, nodes: Sequence[str]) -> LargeTable:
        """Returns the same rows with their columns in another order."""
        places = [self.sample.nodes.index(node) for node in nodes]
        rows, sample = self.rows.in_order(places), self.sample.in_order(nodes)
        return replace(self, rows=rows, sample=sample)


def _cells(
    stream: TableStream, nodes: Sequence[str], latent: Mapping[str, int | None]
) -> Iterator[pd.Series]:
    """Yields the cells of each node, which are let go before the next."""
    if len(stream) < 2:
        raise InputError("the table has fewer than two rows, where nothing varies.")
    for node in nodes:
        if node in latent:
            yield pd.Series([None] * len(stream), dtype=OBJECT)
        else:
            lost = column_of(node)
            yield stream.column(node) if lost is None else stream.column(lost).isna()


def _chosen(rows: int, most: int, seed: int) -> np.ndarray:
    """Returns the numbers of the rows of the sample, in order."""
    order = torch.randperm(rows, generator=derive_generator(seed, "sample of rows"))
    return order[:most].sort().values.numpy()
