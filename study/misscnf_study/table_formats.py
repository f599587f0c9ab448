r"""Renders tables as Markdown, LaTeX (booktabs, as in the paper) or CSV.

Markdown has no underline; `<ins>` is what GitHub shows as one.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable

from misscnf_study.tables import Cell, Table

__all__ = ["FORMATS", "render", "markdown", "latex", "comma_separated", "number"]


def number(value: float, like: float | None = None) -> str:
    """Returns a number with three decimals, or as many as two digits of `like` need, up to six.

    Example:
        >>> number(0.00421), number(13.6418), number(0.0004, like=13.6)
        ('0.0042', '13.642', '0.000')
    """
    size = abs(value if like is None else like)
    decimals = 3
    while decimals < 6 and 0.0 < size < 10.0 ** (1 - decimals):
        decimals += 1
    return f"{value:.{decimals}f}"


def markdown(table: Table) -> str:
    """Renders a table for a README."""
    heads = [*table.heads, *table.columns]
    lines = [_bar(heads), _bar(["---"] * len(table.heads) + ["---:"] * len(table.columns))]
    for block in table.blocks:
        if block.title:
            lines.append(_bar([f"*{block.title}*", *[""] * (len(heads) - 1)]))
        for words, cells in block.lines:
            shown = [f"*{word}*" for word in words] if not block.title else list(words)
            lines.append(_bar([*shown, *(_markdown_cell(cell) for cell in cells)]))
    notes = [table.caption, *_partial_note(table)]
    return "\n".join([*lines, "", " ".join(notes)]) + "\n"


def latex(table: Table) -> str:
    """Renders a table for a paper that loads booktabs."""
    heads = [*table.heads, *table.columns]
    lines = [
        r"\begin{tabular}{" + "l" * len(table.heads) + "c" * len(table.columns) + "}",
        r"\toprule",
        " & ".join(_latex_text(head) for head in heads) + r" \\",
        r"\midrule",
    ]
    for i, block in enumerate(table.blocks):
        if block.title:
            title = rf"\textit{{{_latex_text(block.title)}}}"
            lines.append(rf"\multicolumn{{{len(heads)}}}{{l}}{{{title}}} \\")
        for words, cells in block.lines:
            shown = [_latex_text(word) for word in words]
            shown = shown if block.title else [rf"\textit{{{word}}}" for word in shown]
            lines.append(" & ".join([*shown, *(_latex_cell(cell) for cell in cells)]) + r" \\")
        if i + 1 < len(table.blocks):
            lines.append(r"\addlinespace" if block.title else r"\midrule")
    caption = " ".join([table.caption, *_partial_note(table)])
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", f"% {caption}"]) + "\n"


def comma_separated(table: Table) -> str:
    """Renders a table for programs: one row a line, three columns a cell, full precision."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    names = [f"{column} {what}" for column in table.columns for what in ("mean", "std", "mark")]
    writer.writerow(["Block", *table.heads, *names])
    for block in table.blocks:
        for words, cells in block.lines:
            numbers = [
                part
                for cell in cells
                for part in (_plain(cell.mean), _plain(cell.std), cell.mark or cell.note)
            ]
            writer.writerow([block.title, *words, *numbers])
    return buffer.getvalue()


FORMATS: dict[str, Callable[[Table], str]] = {
    "md": markdown,
    "csv": comma_separated,
    "latex": latex,
}
"""Every format by its name."""


def render(table: Table, form: str) -> str:
    """Renders a table in a format, "md", "csv" or "latex"."""
    return FORMATS[form](table)


def _bar(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown_cell(cell: Cell) -> str:
    if math.isnan(cell.mean):
        return cell.note or "–"
    mean, std = _digits(cell)
    mean = {"best": f"**{mean}**", "second": f"<ins>{mean}</ins>"}.get(cell.mark, mean)
    text = mean + (f" ± {std}" if std else "")
    text += " †" if cell.partial else ""
    return f"*{text}*" if cell.mark == "reference" else text


def _latex_cell(cell: Cell) -> str:
    if math.isnan(cell.mean):
        return cell.note or "--"
    mean, std = _digits(cell)
    mean = {"best": rf"\textbf{{{mean}}}", "second": rf"\underline{{{mean}}}"}.get(cell.mark, mean)
    text = mean + (rf"{{\tiny$\pm${std}}}" if std else "")
    text += r"$^\dagger$" if cell.partial else ""
    return rf"\textit{{{text}}}" if cell.mark == "reference" else text


def _latex_text(text: str) -> str:
    text = text.replace("_", r"\_").replace("%", r"\%").replace("α", r"$\alpha$")
    return re.sub(r" (N?LIN)\b", r"$_{\\text{\1}}$", text)


def _digits(cell: Cell) -> tuple[str, str]:
    """Returns mean and std as text, the latter empty where there is none."""
    if cell.kind == "ratio":
        return (f"{cell.mean:.2f}" if 0.095 <= abs(cell.mean) < 9.995 else f"{cell.mean:.2g}"), ""
    if cell.kind == "printed":  # no more digits than were printed
        return f"{cell.mean:g}", "" if math.isnan(cell.std) else f"{cell.std:g}"
    std = "" if math.isnan(cell.std) else number(cell.std, cell.mean)
    return number(cell.mean), std


def _plain(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.6g}"


def _partial_note(table: Table) -> list[str]:
    cells = [cell for block in table.blocks for _, line in block.lines for cell in line]
    return ["† Some seeds gave no number."] if any(cell.partial for cell in cells) else []
