r"""Tables, graphs and models as the command line names them.

Whatever is wrong with one of them is said with its name: `naming` puts the file or the option
before a sentence that does not say yet what it is about.

A model is looked at before it is loaded: its `outline` has the names and levels that options are
held against, so that a bad one is refused before torch is imported.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from misscnf.cli.endings import say
from misscnf.data.cells import listed
from misscnf.data.files import Reading, read_table
from misscnf.data.kinds import read_requests
from misscnf.data.model_file import Outline
from misscnf.data.table import holed_columns
from misscnf.display.progress import ProgressBar
from misscnf.errors import InputError, naming
from misscnf.graph import CausalGraph
from misscnf.graph.readers import names_a_file

if TYPE_CHECKING:
    from misscnf.data.streams import TableStream
    from misscnf.estimators.fitted import FittedFlow

__all__ = [
    "naming",
    "reading",
    "words",
    "read_latents",
    "read_rows",
    "read_stream",
    "read_model_rows",
    "read_table_of_fit",
    "read_model_stream",
    "batches",
    "arrow_types",
    "refuse_unreplicated",
    "read_graph",
    "check_kinds",
    "check_nodes",
]
__all__ += [
    "PRESETS",
    "check_preset",
    "outline",
    "open_model",
    "keep_replicates",
    "check_replicated",
    "shown",
]


def shown(source: str) -> str:
    """Returns how a table is called in sentences."""
    return "standard input" if source == "-" else repr(source)


def reading(
    na: str | None, separator: str | None, decimal: str | None, dates: str | None
) -> Reading:
    """Reads the options that say how a file is to be read."""
    if separator is not None and len(separator) != 1 and separator != "\\t":
        raise InputError(f"--sep {separator!r}: expected one sign, such as ';' or '\\t'.")
    if decimal is not None and decimal not in (".", ","):
        raise InputError(f"--decimal {decimal!r}: expected . or ,.")
    return Reading(words(na), "\t" if separator == "\\t" else separator, decimal, words(dates))


def words(text: str | None) -> tuple[str, ...]:
    """Returns names such as "a, b"."""
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def read_rows(source: str, how: Reading | None = None) -> pd.DataFrame:
    """Reads a table from a file, or CSV from standard input."""
    frame = _read_stdin(how) if source == "-" else read_table(source, reading=how)
    if frame.index.name is not None:  # of a Parquet file
        frame = frame.reset_index()
    return frame


def read_stream(source: str, memory: str | None, how: Reading | None = None) -> TableStream | None:
    """Opens a table that takes more than --memory; None where it is read into memory."""
    if memory is None:
        return None
    from misscnf.data.streams import open_stream  # with torch
    from misscnf.fitting.settings import Streaming

    with naming("--memory"):
        return open_stream(source, memory, Streaming().bytes_a_cell, how)


def as_at_fit(how: Reading | None, model: Outline) -> Reading:
    """Returns how rows for a model are read: what stood for holes at its fit still does.

    A mark that is forgotten would be taken for a number. Other marks stand instead of these.
    """
    how = how or Reading()
    return how if how.na else replace(how, na=model.marks)


def read_model_rows(
    source: str, model: Outline, how: Reading | None = None, *, partial: bool = False
) -> pd.DataFrame:
    """Reads rows for a fitted model, all of whose columns must be there.

    Where `partial`, one column is enough; the others are then missing in every row.
    """
    frame = read_rows(source, as_at_fit(how, model))
    if model.panel_ is None:  # otherwise it reads long tables and wide ones itself
        _refuse_absent(frame, source, model, partial=partial)
    return frame


def read_table_of_fit(source: str, model: Outline, how: Reading | None = None) -> Any:  # noqa: ANN401 - a frame, or a stream
    """Reads the table of a fit; one that the fit read from disk is opened, and asked as it was."""
    if model.drawn_from is None or source == "-":
        return read_model_rows(source, model, how)
    from misscnf.data.streams import open_stream  # with torch

    stream = open_stream(source, 1, 1, as_at_fit(how, model))
    if stream is None:  # a form of file that is read whole
        return read_model_rows(source, model, how)
    _refuse_absent(stream.head(), source, model, partial=False)
    return stream


def read_model_stream(
    source: str,
    out: str,
    model: Outline,
    memory: str | None,
    how: Reading | None = None,
    *,
    partial: bool = False,
) -> TableStream | None:
    """Opens rows for a fitted model that take more than --memory; None where they do not."""
    stream = read_stream(source, memory, as_at_fit(how, model))
    if stream is None:
        return None
    if model.panel_ is not None:
        raise InputError(
            f"{shown(source)} takes more than --memory, and tables over time are read into "
            f"memory; give more, or some of the people."
        )
    if out == "-":
        raise InputError(
            f"{shown(source)} takes more than --memory, and its answers are written a batch at a "
            f"time; give --out a file."
        )
    _refuse_absent(stream.head(), source, model, partial=partial)
    return stream


def batches(
    stream: TableStream, seed: int, *, quiet: bool
) -> Iterator[tuple[int, pd.DataFrame, int]]:
    """Yields how many rows came before, a batch of rows, and a seed of its own.

    The first has the seed itself, so that a table of one batch has the answers of one in memory.
    Unless it is to be quiet, it shows how far the rows have come.
    """
    from misscnf.draws import derive_generator

    start = 0
    with ProgressBar("rows", show=False if quiet else None) as bar:
        bar.rows(start, len(stream), "rows")
        for number, frame in enumerate(stream.frames()):
            its = derive_generator(seed, "batch", number).initial_seed() if number else seed
            yield start, frame, its
            start += len(frame)
            bar.rows(start, len(stream), "rows")


def arrow_types(stream: TableStream) -> dict[str, Any]:
    """Returns the types of its columns."""
    return {at.name: at.type for at in stream.shards.schema}


def refuse_unreplicated(model: FittedFlow, option: str) -> None:
    """Refuses what needs replicates of the fit, where a large table cannot make them."""
    if not model._replicated:
        raise InputError(
            f"{option} needs replicates of the fit; make them by `misscnf fit --replicates`."
        )


def _refuse_absent(frame: pd.DataFrame, source: str, model: Outline, *, partial: bool) -> None:
    """Refuses rows without columns that the model needs."""
    made = {*model.schema_.indicators, *model.schema_.latent}  # nodes without a column
    nodes = [name for j, name in enumerate(model.schema_.nodes) if j not in made]
    absent = [name for name in nodes if name not in frame.columns]
    if absent and not (partial and len(absent) < len(nodes)):
        raise InputError(
            f"{shown(source)} lacks {listed(absent)}, which the model was fitted to; name another "
            f"table or model, or add an empty column where all values are missing."
        )


def _read_stdin(how: Reading | None) -> pd.DataFrame:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        path.write_bytes(sys.stdin.buffer.read())
        return read_table(path, shown("-"), how)


def read_graph(
    source: str, blocks: Iterable[str] | None = None, latents: Iterable[str] | None = None
) -> CausalGraph:
    """Reads a graph from a file or from the text itself, with blocks and hidden causes.

    Blocks are such as "w: age, sex", hidden causes "u" or "class=3".
    """
    named = _named_lists("--block", blocks or (), "a name and columns, such as w: age, sex")
    if not names_a_file(source) and re.fullmatch(r"[^\s;>]*[./\\][^\s;>]*", source):
        raise InputError(f"--graph: there is no file {source!r}; check the path.")
    brief = source if len(source) <= 80 else f"{source[:79]}…"
    with naming(f"--graph {brief!r}"):
        graph = CausalGraph.read(source, named)
    with naming("--latent"):
        return CausalGraph.read(graph, latent=read_latents(latents or ()))


def refuse_over_time(**given: object) -> None:
    """Refuses options that tables over time do not take yet."""
    for name, value in given.items():
        if value:
            raise InputError(f"--{name} is not there yet for tables over time; leave it out.")


def read_latents(given: Iterable[str]) -> dict[str, int | None]:
    """Reads texts such as "u" and "class=3"."""
    found: dict[str, int | None] = {}
    for words in given:
        name, equals, classes = (part.strip() for part in words.rpartition("="))
        if not equals:
            name, classes = classes, ""
        if not name or (equals and not classes.isdecimal()):
            raise InputError(f"{words!r}: expected a name, or a name and classes, as class=3.")
        found[name] = int(classes) if equals else None
    return found


def with_auxiliary(graph: CausalGraph, names: str | None, frame: pd.DataFrame) -> CausalGraph:
    """Returns a graph with auxiliary columns such as "a,b"."""
    with naming("--auxiliary"):
        return graph.with_auxiliary(words(names), frame.columns)


def with_loss(
    graph: CausalGraph, losses: Sequence[str] | None, frame: pd.DataFrame | TableStream
) -> CausalGraph:
    """Returns a graph with losses such as "y: y, dose", or "self" for all columns with holes."""
    asked = read_loss(losses)
    if asked is None:
        return graph
    with naming("--loss"):
        if asked == "self":
            if isinstance(frame, pd.DataFrame):
                return graph.with_loss("self", holed_columns(frame))
            return graph.with_loss("self", frame.holed_columns())
        return graph.with_loss(asked)


def read_loss(losses: Sequence[str] | None) -> Literal["self"] | dict[str, list[str]] | None:
    """Reads losses such as "y: y, dose", or "self"."""
    if not losses:
        return None
    if list(losses) == ["self"]:
        return "self"
    expected = "a column and what drives its loss, such as y: y, dose, or self"
    return _named_lists("--loss", losses, expected)


def _named_lists(option: str, given: Iterable[str], expected: str) -> dict[str, list[str]]:
    """Reads texts such as "w: age, sex"."""
    named: dict[str, list[str]] = {}
    for words in given:
        name, colon, members = words.partition(":")
        named[name.strip()] = [word.strip() for word in members.split(",") if word.strip()]
        if not (colon and name.strip() and named[name.strip()]):
            raise InputError(f"{option} {words!r}: expected {expected}.")
    return named


PRESETS = ("auto", "linear", "paper")
"""The names of `fitting.settings.PRESETS`, which cannot be read without torch; a test compares."""


def check_preset(name: str) -> None:
    """Refuses a preset that there is not."""
    if name not in PRESETS:
        known = ", ".join(PRESETS)
        raise InputError(f"--preset: there is no preset {name!r}; choose one of {known}.")


def check_nodes(names: Iterable[str], graph: CausalGraph, option: str) -> None:
    """Refuses names that are no nodes of the graph, by the option that gave them."""
    with naming(option):
        for name in names:
            graph.index(name)


def check_kinds(kinds: str | None, graph: CausalGraph, frame: pd.DataFrame) -> None:
    """Refuses kinds that cannot be asked for, by the name of their file."""
    with naming(f"--kinds {kinds!r}"):
        read_requests(kinds, graph.nodes, list(frame.columns))


def outline(folder: str) -> Outline:
    """Reads the graph and the columns of a model, which is all that options need."""
    if not Path(folder).is_dir():
        raise InputError(f"there is no folder {folder!r}; `misscnf fit` makes a model.")
    found = Outline.read(folder)
    if found is None:
        fitted = open_model(folder, quiet=True)  # says what is wrong
        about = (fitted.graph_, fitted.schema_, fitted._replicated, fitted.panel_)
        return Outline(*about, fitted._drawn_from, fitted._marks)
    return found


def open_model(folder: str, *, quiet: bool) -> FittedFlow:
    """Loads a model; unless it is to be quiet, it shows the progress of long work."""
    from misscnf.estimators.fitted import FittedFlow  # here, when all options are known to be good

    model = FittedFlow.load(folder)
    model.progress = False if quiet else None
    return model


def check_replicated(model: FittedFlow, frame: pd.DataFrame) -> None:
    """Refuses an interval of rows where neither replicates nor the table of the fit are there."""
    if model._replicated:
        return
    if model._table_of_fit(frame).digest != model._digest:
        raise InputError(
            "--interval needs replicates of the fit, and these rows are not its table; make them "
            "by `misscnf fit --replicates`, or by one `misscnf effect … --interval … --data TABLE`"
        )


def keep_replicates(model: FittedFlow, folder: str, called: str | None = None) -> None:
    """Keeps new replicates of the fit beside the model, so that a further interval is quick.

    The folder may be called otherwise while it is not in its place yet.
    """
    try:
        kept = model._save_replicates(folder)
    except OSError as error:
        say(f"the replicates of the fit were not kept in {called or folder}: {error.strerror}")
        return
    if kept is not None:
        count, size = kept
        rows = model._cache.kept_rows
        also = "" if rows is None else f", with the {len(rows[0]):,} rows that are averaged over,"
        say(
            f"kept {count} replicates of the fit{also} in {called or folder} ({_size(size)}): "
            f"further intervals are quick, and need no --data"
        )


def _size(size: int) -> str:
    return f"{size / 1000:.0f} kB" if size < 1e6 else f"{size / 1e6:.1f} MB"
