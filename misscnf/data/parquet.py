r"""A Parquet file, or a folder of them, as one table: its rows in order, a batch at a time.

The shards of a folder are read in the order of their names, and parts of their paths such as
`year=2020` are columns. All shards have the same columns, or a sentence names the one that has
not; where one has whole numbers and another fractions, the column has fractions. What cannot be
read is said by the name of its file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds

from misscnf.errors import InputError

__all__ = ["Shards"]


@dataclass(frozen=True, eq=False)
class Shards:
    """The files of one table."""

    pieces: tuple[ds.Fragment, ...]
    """A fragment of `pyarrow.dataset` for each file, in order."""
    schema: pa.Schema
    """That all of them fit into."""
    counts: tuple[int, ...]
    """Rows of each."""

    @staticmethod
    def open(path: Path) -> Shards:
        """Looks at a file, or at all files of a folder; reads no rows."""
        _refuse_other_formats(path)
        with _naming(path):
            whole = ds.dataset(path, format=_format(), partitioning="hive")
        pieces = tuple(sorted(whole.get_fragments(), key=lambda piece: piece.path))
        if not pieces:
            raise InputError(f"the folder {str(path)!r} has no .parquet files; check the path.")
        schemas, counts = [], []
        for piece in pieces:
            with _naming(piece.path):
                schemas.append(piece.physical_schema)
                counts.append(piece.count_rows())
            _refuse_other_columns(pieces[0].path, schemas[0], piece.path, schemas[-1])
        own = set(schemas[0].names)
        parts = [field for field in whole.schema if field.name not in own]
        try:
            joint = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowInvalid as error:
            raise InputError(
                f"the files of {str(path)!r} have columns of the same name and types that do not "
                f"go together ({_reason(error)}); write them with one type."
            ) from error
        for part in parts:
            joint = joint.append(part)
        return Shards(pieces, joint.with_metadata(schemas[0].metadata), tuple(counts))

    def __len__(self) -> int:
        return sum(self.counts)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Returns all rows of some columns, of all by default."""
        tables = list(self.tables(columns, max(1, len(self))))
        names = self.schema.names if columns is None else columns
        return tables[0] if tables else self.schema.empty_table().select(names)

    def tables(self, columns: Sequence[str] | None, size: int) -> Iterator[pa.Table]:
        """Yields all rows in order, so many at a time, whatever the sizes of files are."""
        kept, count = list[pa.Table](), 0
        for piece in self.pieces:
            for table in self._of_piece(piece, columns, size):
                start = 0
                while count + len(table) - start >= size:
                    part = table.slice(start, size - count)
                    yield pa.concat_tables([*kept, part])
                    start += len(part)
                    kept, count = [], 0
                if start < len(table):
                    kept.append(table.slice(start))
                    count += len(table) - start
        if kept:
            yield pa.concat_tables(kept)

    def _of_piece(
        self, piece: ds.Fragment, columns: Sequence[str] | None, size: int
    ) -> Iterator[pa.Table]:
        """Yields the rows of one file; nothing is read far ahead of them."""
        ahead = {"batch_readahead": 1, "fragment_readahead": 1}
        with _naming(piece.path):
            batches = piece.to_batches(
                schema=self.schema, columns=columns, batch_size=min(size, 2**16), **ahead
            )
            for batch in batches:
                if len(batch):
                    yield pa.Table.from_batches([batch])


def _format() -> ds.ParquetFileFormat:
    ahead = ds.ParquetFragmentScanOptions(use_buffered_stream=True, pre_buffer=False)
    return ds.ParquetFileFormat(default_fragment_scan_options=ahead)


def _refuse_other_formats(path: Path) -> None:
    """Refuses a folder of tables of which none is Parquet."""
    if any(path.glob("**/*.parquet")):
        return
    others = sorted(
        file.name for ending in ("csv", "tsv", "gz") for file in path.glob(f"**/*.{ending}")
    )
    if others:
        raise InputError(
            f"the folder {str(path)!r} has {others[0]!r} and no .parquet files; write its tables "
            f"as Parquet, pd.read_csv(one).to_parquet(…), or give the path of a single file."
        )


def _refuse_other_columns(first: str, its: pa.Schema, other: str, found: pa.Schema) -> None:
    missing = [name for name in its.names if name not in found.names]
    more = [name for name in found.names if name not in its.names]
    if missing or more:
        without, name, has = (other, missing[0], first) if missing else (first, more[0], other)
        raise InputError(
            f"{without!r} lacks the column {name!r}, and {has!r} of the same folder has it; give "
            f"all files the same columns."
        )


def _reason(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


@contextmanager
def _naming(path: object) -> Iterator[None]:
    """Says which file cannot be read."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{str(path)!r} cannot be read as Parquet ({_reason(error)}); it may be cut off or "
            f"damaged: write it again, or take it out of the folder.",
            about=str(path),
        ) from error
