r"""What was done to the table on the way into the model, and what is needed to do it again.

Nothing is left unsaid: columns that the graph does not name, rows that show nothing, cells that
became holes, kinds that were inferred and why. Then the settings, versions and seeds, and a
fingerprint of the table, by which it can be recognised.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version

from misscnf import __version__
from misscnf.data.table import IncompleteTable
from misscnf.estimators.fitted import FittedFlow
from misscnf.identification.words import listed
from misscnf.inference.integrals import Effort
from misscnf.options import flatten
from misscnf.report.settings import ReportSettings
from misscnf.report.words import plural

__all__ = ["changes", "settings", "versions", "recipe"]


def changes(model: FittedFlow, table: IncompleteTable) -> list[str]:
    """Returns a sentence for everything that was dropped or changed, and for what was not."""
    lines = ["No row was dropped, and no value was filled in before the fit."]
    empty, aside = int((~table.observed.any(1)).sum()), len(table.ignored)
    if empty:
        show, tell = ("shows", "tells") if empty == 1 else ("show", "tell")
        row = f"{plural(empty, 'row')} {show} none of the model's columns"
        lines.append(f"{row}, and so {tell} it nothing.")
    if aside:
        were = "was" if aside == 1 else "were"
        names = listed(table.ignored, 20)
        lines.append(f"{plural(aside, 'column')} not in the graph {were} left aside: {names}.")
    else:
        lines.append("No column was left aside: all of them are in the graph.")
    for j, name in enumerate(table.nodes):
        lost = int((table.cells[j].notna().to_numpy() & ~table.observed[:, j].numpy()).sum())
        if lost:
            cells = f"{plural(lost, 'cell')} of {name} had a level unknown to the model"
            lines.append(f"{cells} and became {'a hole' if lost == 1 else 'holes'}.")
    offers = model.kinds_[model.kinds_["offer"] != ""]
    return lines + [f"{line.column}: {line.offer}" for line in offers.itertuples()]


def settings(model: FittedFlow, page: ReportSettings) -> list[tuple[str, str]]:
    """Returns the settings of the fit and of the page, each under the names of its groups.

    Seven efforts have thirty numbers each: of these only what is not as in a plain `Effort`.
    """
    plain = flatten(Effort())
    ours = {f"report.{name}": value for name, value in flatten(page).items()}
    found = {**flatten(model.settings_), **ours}
    return [
        (name, _shown(value))
        for name, value in found.items()
        if not name.startswith("integration.") or value != plain.get(name.split(".", 2)[-1])
    ]


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def versions() -> list[tuple[str, str]]:
    """Returns the versions of this package, of Python and of what the numbers come from."""
    names = ["torch", "numpy", "scipy", "pandas", "networkx", "scikit-learn", "zuko", "matplotlib"]
    own = [("misscnf", __version__), ("Python", platform.python_version())]
    return own + [(name, version(name)) for name in names]


def recipe(
    model: FittedFlow,
    effect: tuple[str, str] | None,
    groups: tuple[str, ...],
    page: ReportSettings,
    sensitivity: Mapping[str, object] | None = None,
) -> str:
    """Returns the Python that makes this model and this page again."""
    usual = flatten(ReportSettings())
    changed = {name: value for name, value in flatten(page).items() if value != usual[name]}
    columns = [column for column in model.schema_.columns if not column.latent]
    asked = {column.name: column.shown_kind for column in columns}
    blocks = model.graph_.blocks
    apart = f"\n    blocks={json.dumps(blocks, ensure_ascii=False)}," if blocks else ""
    extra = list(model.graph_.auxiliary)
    apart += f"\n    auxiliary={json.dumps(extra, ensure_ascii=False)}," if extra else ""
    latent = model.graph_.latent
    apart += f"\n    latent={latent!r}," if latent else ""
    causes = model.graph_.arranged(()).to_dict()
    causes = {name: parents for name, parents in causes.items() if name not in extra}
    question = "" if effect is None else f", effect={effect!r}"
    question += f", groups={list(groups)!r}" if groups else ""
    question += f", settings={changed!r}" if changed else ""
    question += f", sensitivity={dict(sensitivity)!r}" if sensitivity else ""
    table, memory = 'pd.read_csv("your-table.csv")', ""
    if model._drawn_from is not None:
        table, memory = '"your-table.parquet"', ', memory="1kB"  # from disk'
    return f"""\
import pandas as pd
from misscnf import MissCNF
from misscnf.report import write_report

df = {table}
graph = {json.dumps(causes, ensure_ascii=False)}
kinds = {json.dumps(asked, ensure_ascii=False)}
model = MissCNF(
    graph, preset={model.settings_.preset!r}, kinds=kinds, seed={model.seed},{apart}
).fit(df{memory})
write_report(model, df, "report.html"{question})"""
