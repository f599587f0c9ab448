r"""Tables as the paper prints them: mean ± std over seeds, best and second marked.

Worlds are columns, methods are lines, and each way of losing values is a block; full data stands
apart. Against the published numbers a line is one method on one world: ours, the printed one and
their ratio. A table is built here and rendered elsewhere (`table_formats`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pandas as pd

from misscnf_study.labels import METRICS, loss_label, regime_label, scm_label
from misscnf_study.published import SOURCE, beside
from misscnf_study.suites import COMPLETE
from misscnf_study.summary import summarise

__all__ = ["Cell", "Block", "Table", "make_table", "compare_table"]


@dataclass(frozen=True)
class Cell:
    """A number in a table, or why there is none."""

    mean: float = math.nan
    std: float = math.nan
    """NaN where one seed was run."""
    mark: str = ""
    """"best", "second", "reference" or nothing."""
    note: str = ""
    """What stands there without a number, such as "impossible"."""
    partial: bool = False
    """Whether some seeds gave no number."""
    kind: str = "ours"
    """"ours", "printed" or "ratio"."""


@dataclass(frozen=True)
class Block:
    """Lines under one title; without a title, they stand apart."""

    title: str
    lines: list[tuple[tuple[str, ...], list[Cell]]] = field(default_factory=list)
    """What a line is called (a word for each head of the table), and its cells."""


@dataclass(frozen=True)
class Table:
    """A table before it has a format."""

    caption: str
    heads: tuple[str, ...]
    """What the words that name a line are."""
    columns: list[str]
    blocks: list[Block]


Axis = Callable[[pd.Series], str]
"""Names a row of a summary along an axis."""


@dataclass(frozen=True)
class Layout:
    """What stands where."""

    block: Axis
    line: Axis
    column: Axis
    head: str
    """What a line is."""
    together: Axis | None = None
    """What stays together, before anything else; nothing if None."""
    spread_reference: bool = False
    """Whether the reference is repeated in each setting of its world."""


def _loss(row: pd.Series) -> str:
    return loss_label(str(row["mechanism"]), row["rate"])


def _regime(row: pd.Series) -> str:
    return regime_label(str(row["mechanism"]))


def _label(row: pd.Series) -> str:
    return str(row["label"])


def _scm(row: pd.Series) -> str:
    return scm_label(str(row["scm"]))


def _family(row: pd.Series) -> str:
    return _scm(row).partition(" ")[0]


def _family_and_loss(row: pd.Series) -> str:
    return f"{_family(row)}, {_loss(row)}"


def _alpha(row: pd.Series) -> str:
    return _scm(row).partition(" ")[2]


def _draws(row: pd.Series) -> str:
    return "as the preset" if pd.isna(row["draws"]) else str(row["draws"])


STANDARD = Layout(_loss, _label, _scm, "Method")
LAYOUTS: dict[str, Layout] = {
    "positivity": Layout(_scm, _regime, _label, "Regime", together=_scm, spread_reference=True),
    "nonlinearity": Layout(_family_and_loss, _label, _alpha, "Method", together=_family),
    "draws": Layout(_label, _draws, _scm, "Draws"),
}
"""How the suites are laid out that differ from the main one."""


def make_table(rows: pd.DataFrame, metric: str) -> Table:
    """Lays out the means of a suite.

    Arguments:
        rows: Rows of one suite, as a store has them.
        metric: One of their numbers.
    """
    suite = str(rows["suite"].iloc[0]) if len(rows) else ""
    layout = LAYOUTS.get(suite, STANDARD)
    summary = summarise(rows, metric)
    if layout.spread_reference:
        summary = _spread_reference(summary)
    if layout.together is not None:
        summary = _keep_together(summary, layout.together)
    columns = list(dict.fromkeys(layout.column(row) for _, row in summary.iterrows()))
    blocks: dict[str, dict[str, dict[str, Cell]]] = {}
    for _, row in summary.iterrows():
        apart = row["mechanism"] == COMPLETE and not layout.spread_reference
        lines = blocks.setdefault("" if apart else layout.block(row), {})
        line = layout.line(row) + (" (reference)" if apart else "")
        lines.setdefault(line, {})[layout.column(row)] = _cell(row)
    return Table(
        caption=f"{METRICS[metric]}, mean ± std over {_seeds(summary)}. Lower is better; best in "
        "bold, second underlined, full data apart.",
        heads=(layout.head,),
        columns=columns,
        blocks=[
            Block(title, [((line,), _fill(cells, columns)) for line, cells in lines.items()])
            for title, lines in blocks.items()
        ],
    )


def compare_table(rows: pd.DataFrame, metric: str) -> Table:
    """Lays out our means beside the printed ones.

    Arguments:
        rows: Rows of one suite, as a store has them.
        metric: One of their numbers; exact ones are held against the printed estimate.
    """
    suite = str(rows["suite"].iloc[0]) if len(rows) else ""
    summary = beside(summarise(rows, metric), suite, metric)
    by_draws = bool(summary["draws"].notna().any())
    blocks: dict[str, Block] = {}
    for _, row in summary.iterrows():
        apart = row["mechanism"] == COMPLETE
        title = "" if apart else (_regime(row) if suite == "positivity" else _loss(row))
        words = (_scm(row), _label(row), *((_draws(row),) if by_draws else ()))
        ours = _cell(row)
        cells = [
            replace(ours, mark="reference" if apart else ""),
            Cell(row["printed"], row["printed_std"], kind="printed"),
            Cell(row["ratio"], kind="ratio"),
        ]
        blocks.setdefault(title, Block(title)).lines.append((words, cells))
    return Table(
        caption=f"{METRICS[metric]}, mean ± std over {_seeds(summary)}; a ratio below 1 is better "
        f"than the printed number. Printed: {SOURCE}",
        heads=("World", "Method", *(("Draws",) if by_draws else ())),
        columns=["Ours", "Printed", "Ratio"],
        blocks=list(blocks.values()),
    )


def _cell(row: pd.Series) -> Cell:
    reference = row["method"] == "full"
    missing = int(row["failed"]) + int(row["impossible"])
    if row["count"] == 0:
        return Cell(note="impossible" if row["impossible"] else "failed")
    return Cell(
        mean=float(row["mean"]),
        std=float(row["std"]),
        mark="reference" if reference else str(row["mark"]),
        partial=missing > 0,
    )


def _fill(cells: dict[str, Cell], columns: list[str]) -> list[Cell]:
    return [cells.get(column, Cell()) for column in columns]


def _spread_reference(summary: pd.DataFrame) -> pd.DataFrame:
    """Repeats the reference of a world in each of its settings."""
    reference = summary["mechanism"] == COMPLETE
    rest = summary[~reference]
    if rest.empty:
        return summary
    settings = rest[["scm", "mechanism", "rate"]].drop_duplicates()
    repeated = settings.merge(summary[reference].drop(columns=["mechanism", "rate"]), on="scm")
    return pd.concat([repeated, rest], ignore_index=True)


def _keep_together(summary: pd.DataFrame, axis: Axis) -> pd.DataFrame:
    """Brings rows of one name together; names and rows stay in their order."""
    names = [axis(row) for _, row in summary.iterrows()]
    place = {name: i for i, name in enumerate(dict.fromkeys(names))}
    order = sorted(range(len(names)), key=lambda i: place[names[i]])
    return summary.iloc[order].reset_index(drop=True)


def _seeds(summary: pd.DataFrame) -> str:
    most = int(summary["count"].max())
    return "1 seed" if most == 1 else f"up to {most} seeds"
