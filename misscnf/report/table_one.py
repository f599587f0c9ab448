r"""Table 1: every column in all rows and by arm, with its holes.

| column | shown as |
|---|---|
| numbers | mean (standard deviation) |
| levels | rows (percent) of each level, of the rows that show it |

An arm is a level of the treatment, by the rows that show it; a treatment with many values has
none. It describes the rows as they are, and compares nothing.
"""

from __future__ import annotations

import numpy as np

from misscnf.data.codecs import Levels
from misscnf.data.table import IncompleteTable
from misscnf.identification.words import percent
from misscnf.report.settings import Limits
from misscnf.report.words import label, rounded, whole

__all__ = ["table_one"]


def table_one(
    table: IncompleteTable, treatment: str | None, limits: Limits
) -> tuple[list[str], list[tuple[str, list[str]]]]:
    """Returns the heads of the columns, and lines: a name, and a text for each of them."""
    everybody = "all" if table.all_rows is None else "some by chance"
    arms = {f"{everybody} ({whole(len(table))})": np.ones(len(table), bool)}
    arms |= {} if treatment is None else _arms(table, treatment, limits)
    lines: list[tuple[str, list[str]]] = []
    for j, column in enumerate(table.schema.columns):
        if column.latent or (column.name == treatment and len(arms) > 1):
            continue
        parts = [table.raw[rows, j] for rows in arms.values()]
        seen = [part[~np.isnan(part)] for part in parts]
        if not isinstance(column, Levels):
            lines.append((column.name, [_mean(own) for own in seen]))
        elif len(column.levels) == 2:
            name = f"{column.name} = {label(column.levels[1])}"
            lines.append((name, [_count(own == 1) for own in seen]))
        else:
            some = column.levels[: limits.most_levels]
            lines += [
                (f"{column.name} = {label(level)}", [_count(own == code) for own in seen])
                for code, level in enumerate(some)
            ]
        if any(len(own) < len(part) for own, part in zip(seen, parts, strict=True)):
            lines.append(("\N{EN SPACE}missing", [_count(np.isnan(part)) for part in parts]))
    return list(arms), lines


def _arms(table: IncompleteTable, treatment: str, limits: Limits) -> dict[str, np.ndarray]:
    j = table.nodes.index(treatment)
    column, raw = table.schema.columns[j], table.raw[:, j]
    if not isinstance(column, Levels) or len(column.levels) > limits.most_arms:
        return {}
    found = {f"{treatment} = {label(one)}": raw == code for code, one in enumerate(column.levels)}
    if np.isnan(raw).any():
        found[f"{treatment} missing"] = np.isnan(raw)
    return {f"{name} ({whole(int(rows.sum()))})": rows for name, rows in found.items()}


def _mean(values: np.ndarray) -> str:
    if not len(values):
        return "—"
    spread = float(values.std())
    return f"{rounded(float(values.mean()), spread)} ({rounded(spread, spread)})"


def _count(flags: np.ndarray) -> str:
    return f"{whole(int(flags.sum()))} ({percent(float(flags.mean()))})" if len(flags) else "—"
