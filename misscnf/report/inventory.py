r"""What was done to the table on the way into the model, and what is needed to do it again.

Nothing is left unsaid: columns that the graph does not name, rows that show nothing, cells that
became holes, kinds that were inferred and why. Then the settings, versions and seeds, and a
fingerprint of the table, by which it can be recognised.
"""

from __future__ import annotations

import hashlib
import json
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from misscnf import __version__
from misscnf.data.table import IncompleteTable
from misscnf.estimators.misscnf import MissCNF
from misscnf.identification.words import listed
from misscnf.report.digits import plural

__all__ = ["changes", "kinds", "settings", "versions", "fingerprint", "recipe"]

PACKAGES = ("torch", "numpy", "scipy", "pandas", "networkx", "scikit-learn", "zuko", "matplotlib")


def changes(model: MissCNF, table: IncompleteTable) -> list[str]:
    """Returns a sentence for everything that was dropped or changed, and for what was not.

    Arguments:
        model: The fitted model.
        table: Its rows.
    """
    empty = int((~table.observed.any(1)).sum())
    lines = ["No row was dropped, and no value was filled in before the fit."]
    if empty:
        show = "shows" if empty == 1 else "show"
        lines.append(
            f"{plural(empty, 'row')} {show} none of the model's columns, and so "
            f"{'tells' if empty == 1 else 'tell'} it nothing."
        )
    if table.ignored:
        lines.append(
            f"{plural(len(table.ignored), 'column')} not in the graph "
            f"{'was' if len(table.ignored) == 1 else 'were'} left aside: "
            f"{listed(table.ignored, 20)}."
        )
    else:
        lines.append("No column was left aside: all of them are in the graph.")
    lines += _cells_made_holes(table)
    offers = model.kinds_[model.kinds_["offer"] != ""]
    lines += [f"{line.column}: {line.offer}" for line in offers.itertuples()]
    return lines


def _cells_made_holes(table: IncompleteTable) -> list[str]:
    lines = []
    for j, name in enumerate(table.nodes):
        written = table.cells[j].notna().to_numpy()
        lost = int((written & ~table.observed[:, j].numpy()).sum())
        if lost:
            lines.append(
                f"{plural(lost, 'cell')} of {name} had a level unknown to the model and "
                f"became {'a hole' if lost == 1 else 'holes'}."
            )
    return lines


def kinds(model: MissCNF) -> list[tuple[str, str, str, str, str]]:
    """Returns a line a column: its name, kind, levels, holes and why it is of that kind."""
    return [
        (str(line.column), str(line.kind), str(line.levels), str(line.holes), str(line.why))
        for line in model.kinds_.itertuples()
    ]


def settings(model: MissCNF) -> list[tuple[str, str]]:
    """Returns the settings of the fit, those of parts with the part's name before them."""
    flat: list[tuple[str, str]] = []
    for name, value in model.settings_.to_dict().items():
        if isinstance(value, dict):
            flat += [(f"{name}.{part}", _shown(inner)) for part, inner in value.items()]
        else:
            flat.append((name, _shown(value)))
    return flat


def _shown(value: Any) -> str:  # noqa: ANN401 - whatever a setting holds
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def versions() -> list[tuple[str, str]]:
    """Returns the versions of this package, of Python and of what the numbers come from."""
    found = [("misscnf", __version__), ("Python", platform.python_version())]
    for package in PACKAGES:
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return found


def fingerprint(table: IncompleteTable) -> str:
    """Returns a short name that two tables share only if their columns and cells are the same."""
    digest = hashlib.sha256(json.dumps(table.nodes).encode())
    digest.update(np.ascontiguousarray(np.nan_to_num(table.raw, nan=np.inf)).tobytes())
    return digest.hexdigest()[:16]


def recipe(model: MissCNF, effect: tuple[str, str] | None) -> str:
    """Returns the Python that makes this model and this page again."""
    graph = json.dumps(model.graph_.to_dict(), ensure_ascii=False)
    asked = {column.name: column.shown_kind for column in model.schema_.columns}
    arguments = f"graph, preset={model.settings_.preset!r}, kinds=kinds, seed={model.seed}"
    question = "" if effect is None else f", effect={effect!r}"
    return "\n".join(
        [
            "import pandas as pd",
            "from misscnf import MissCNF",
            "from misscnf.report import write_report",
            "",
            'df = pd.read_csv("your-table.csv")',
            f"graph = {graph}",
            f"kinds = {json.dumps(asked, ensure_ascii=False)}",
            f"model = MissCNF({arguments}).fit(df)",
            f'write_report(model, df, "report.html"{question})',
        ]
    )
