r"""The tables of a report: a line a family, a line a region.

A region keeps its counts: k of m rows show the family whole, the chance k/m with its bounds, and
what share of the rows it holds. A bound is one-sided, at 95 %; where a column that makes the
region has holes and is not in the family, it takes in how these change the chance (`regions`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from misscnf.graph import CausalGraph
from misscnf.identification.families import whole_families
from misscnf.identification.patterns import Patterns, pattern_name
from misscnf.identification.regions import Condition, Region
from misscnf.identification.words import (
    covered_sentence,
    edges,
    region_sentence,
    uncovered_sentence,
    where,
)

__all__ = ["node_table", "region_table"]

PATTERNS_NAMED = 10
"""Patterns that are named for a family."""
NODE_COLUMNS = (
    "node",
    "parents",
    "rows shown",
    "rows whole",
    "share whole",
    "family positivity",
    "patterns",
    "pattern count",
    "status",
    "sentence",
)
REGION_COLUMNS = (
    "node",
    "family",
    "where",
    "conditions",
    "rows",
    "whole",
    "share",
    "chance",
    "lower",
    "upper",
    "elsewhere",
    "hidden",
    "luck",
    "flagged",
    "sentence",
)


def node_table(
    graph: CausalGraph,
    patterns: Patterns,
    needed: Sequence[int],
    flagged: Sequence[Sequence[Region]],
) -> pd.DataFrame:
    """Returns a line for each family that is needed.

    Arguments:
        graph: The causal graph.
        patterns: The patterns of the table.
        needed: The nodes to report.
        flagged: The flagged regions of each.
    """
    whole, total = whole_families(graph, patterns.observed), int(patterns.rows.sum())
    names = np.array(graph.nodes, dtype=object)
    lines: list[dict[str, Any]] = []
    for i, regions in zip(needed, flagged, strict=True):
        node, showing = graph.nodes[i], np.flatnonzero(whole[:, i])
        rows = int(patterns.rows[showing].sum())
        lines.append(
            {
                "node": node,
                "parents": graph.parents_of(node),
                "rows shown": int(patterns.rows[patterns.observed[:, i]].sum()),
                "rows whole": rows,
                "share whole": rows / total,
                "family positivity": "not guaranteed" if regions else "nothing against it",
                "patterns": tuple(
                    pattern_name(names[patterns.observed[p]]) for p in showing[:PATTERNS_NAMED]
                ),
                "pattern count": len(showing),
                "status": _status(regions),
                "sentence": uncovered_sentence(graph, node, regions)
                if regions
                else covered_sentence(graph, node, rows, total),
            }
        )
    return pd.DataFrame(lines, columns=list(NODE_COLUMNS))


def _status(regions: Sequence[Region]) -> str:
    if not regions:
        return "covered"
    if regions[0].conditions:
        return "uncovered in part"
    return "never whole" if regions[0].whole == 0 else "almost never whole"


def region_table(graph: CausalGraph, regions: Sequence[tuple[str, Region]]) -> pd.DataFrame:
    """Returns a line for each region, flagged ones first, then by their share.

    Arguments:
        graph: The causal graph.
        regions: Each with the node of its family.
    """
    order = sorted(regions, key=lambda pair: (not pair[1].flagged, -pair[1].share))
    lines = [
        {
            "node": node,
            "family": (node, *graph.parents_of(node)),
            "where": where(region.conditions) or "everywhere",
            "conditions": tuple(_condition(condition) for condition in region.conditions),
            "rows": region.rows,
            "whole": region.whole,
            "share": region.share,
            "chance": region.whole / region.rows if region.rows else 0.0,
            "lower": region.lower,
            "upper": region.upper,
            "elsewhere": region.elsewhere,
            "hidden": region.hidden,
            "luck": region.luck,
            "flagged": region.flagged,
            "sentence": region_sentence(graph, node, region),
        }
        for node, region in order
    ]
    return pd.DataFrame(lines, columns=list(REGION_COLUMNS))


def _condition(condition: Condition) -> dict[str, Any]:
    """Returns a condition as a dictionary: a column with its edges, or with its levels."""
    column, levels = condition.column, condition.stretch.levels
    if levels is not None:
        labels = column.labels or tuple(map(str, levels))
        return {"column": column.name, "levels": tuple(labels[k] for k in levels)}
    low, high = edges(condition)
    if column.labels is not None or column.whole_numbers:  # the ends themselves are inside
        low, high = condition.stretch.low, condition.stretch.high
    return {"column": column.name, "low": low, "high": high}
