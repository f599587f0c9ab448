r"""After a fit: where answers leave the rows that the mechanisms were learned from.

The mechanism of a node was learned at its parents' values in rows that show the family whole. An
intervention may carry the parents elsewhere, and what the model says there is extrapolation. With
e(·) the numbers by which parents enter a network, and x_r the revealed rows, a drawn row is
outside if it is further from the nearest of them than almost all of these are from one another:

    min_r ‖e(x_pa) − e(x_r,pa)‖ > q,      q = the 99 % quantile of the same among revealed rows.

So about 1 % outside is usual, and a larger share is extrapolated. In a short table that share
hangs on a few rows at the edge. With c_r the share of drawn rows that only row r keeps inside, the
jackknife over rows gives it the standard error

    √( Σ_r (c_r − c̄)² ),

and only a share that is too large by more than chance is a warning.

Rows in a region that the report flags may hide the very column that defines it; after a fit its
share is that of the model's posterior draws. Mechanisms that do not follow what was revealed are
told of here too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy  # its parts are imported when they are first used
import torch
from torch import Tensor

from misscnf.data.codecs import Column, Levels
from misscnf.data.table import IncompleteTable, Schema
from misscnf.display.notebook import card
from misscnf.draws import derive_generator, normal_numbers
from misscnf.identification import Report
from misscnf.identification.settings import SupportRules
from misscnf.mechanisms import Encoding
from misscnf.mechanisms.history import read_domains, read_parents_by
from misscnf.model import Policy, StructuralModel

__all__ = ["FittedReport", "measure_support", "region_shares", "rough_sentence"]


@dataclass(frozen=True, eq=False)
class FittedReport:
    """The positivity report, and what the fitted model adds to it.

    Example:
        >>> from misscnf import MissCNF
        >>> dose = np.random.default_rng(0).normal(size=300)
        >>> df = pd.DataFrame({"dose": dose, "days": 9 - 2 * dose + np.cos(9 * dose)})
        >>> model = MissCNF("dose -> days", "linear").fit(df)
        >>> model.check(df, do={"dose": 0.5}).ok, model.check(df, do={"dose": 50}).ok
        (True, False)
    """

    report: Report
    """What the rows alone say."""
    support: pd.DataFrame
    """A line a family that the question leans on: rows that reveal it, and the share outside."""
    question: str
    """What was asked, in words."""

    @property
    def ok(self) -> bool:
        """Whether the report is, and no answer leaves what was revealed."""
        return self.report.ok and not self.warnings

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence for each family where the question extrapolates."""
        return tuple(self.support.loc[self.support["extrapolates"], "sentence"])

    def summary(self) -> str:
        """Returns the report as text."""
        said = self.warnings or ("no family leaves what the rows reveal of it.",)
        lines = [self.report.summary(), f"After the fit, {self.question}:"]
        return "\n".join([*lines, *(f"  {sentence}" for sentence in said)])

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        title, facts = self.report.glance()
        shown = self.support[["node", "parents", "rows revealed", "share outside"]]
        shown = shown.assign(parents=shown["parents"].map(", ".join))
        tables = {"": self.report.families(), f"after the fit, {self.question}": shown}
        return card(title, facts, tables, self.warnings, state="good" if self.ok else "bad")

    def to_dict(self) -> dict[str, Any]:
        """Returns plain values, for JSON."""
        support = self.support.assign(parents=self.support["parents"].map(list))
        return {
            **self.report.to_dict(),
            "ok": self.ok,
            "question": self.question,
            "support": support.to_dict(orient="records"),
        }


def measure_support(
    model: StructuralModel,
    table: IncompleteTable,
    policies: Mapping[int, Policy],
    nodes: Collection[int],
    question: str,
    rules: SupportRules,
    seed: int = 0,
) -> pd.DataFrame:
    """Returns how far draws under policies leave what the rows of a fit reveal of each family.

    `nodes` are those whose families the question leans on, `question` its words.
    """
    generator = derive_generator(seed, "support")
    noise = normal_numbers((rules.draws, model.noise_width), generator, table.values)
    with torch.no_grad():
        drawn = model.generate(noise, policies)
    lines = [
        _family(model, table, drawn, node, question, rules, seed)
        for node in sorted(nodes)
        if model.graph.parents[node] and (node not in policies or node in policies[node].reads)
    ]
    names = ["node", "parents", "rows revealed", "share outside", "extrapolates", "sentence"]
    return pd.DataFrame(lines, columns=names)


def _family(
    model: StructuralModel,
    table: IncompleteTable,
    drawn: Tensor,
    node: int,
    question: str,
    rules: SupportRules,
    seed: int,
) -> tuple[str, tuple[str, ...], int, float, bool, str]:
    graph, parents = model.graph, list(model.graph.parents[node])
    names = tuple(graph.nodes[j] for j in parents)
    whole = table.observed[:, [node, *parents]].all(1)
    rows = table.values[whole][:, parents]
    reading = graph.readings.get(node)
    encoding = Encoding(read_domains(reading, [table.schema.domains[j] for j in parents]))
    some = rows
    if len(rows) > rules.most_rows:
        order = torch.randperm(len(rows), generator=derive_generator(seed, "rows"))
        some = rows[order[: rules.most_rows]]
    revealed, asked = (
        encoding(read_parents_by(reading, x.double())).numpy() for x in (some, drawn[:, parents])
    )
    share, error = _share_outside(revealed, asked, rules.usual)
    extrapolates = share - rules.z * error > rules.worth_saying
    sentence = (
        f"{graph.nodes[node]} with its parents {', '.join(names)}: {100 * share:.0f} % of the "
        f"rows {question} lie where no row shows this family whole ({100 * rules.usual:.0f} % is "
        f"usual; {len(rows)} rows do); what the model says there is extrapolated."
    )
    return graph.nodes[node], names, len(rows), share, extrapolates, sentence


def _share_outside(revealed: np.ndarray, drawn: np.ndarray, share: float) -> tuple[float, float]:
    """Returns the share of drawn points further from all revealed ones than is usual.

    Beside it stands its standard error over revealed points. By the (n + 1)-quantile, a further
    point of the same law is outside with the usual share, however few there are.
    """
    if len(revealed) < 2:
        return 1.0, 0.0
    tree = scipy.spatial.cKDTree(revealed)
    apart = tree.query(revealed, k=2)[0][:, 1]
    usual = np.quantile(apart, 1.0 - share, method="weibull") + 1e-9
    (first, second), nearest = (found.T for found in tree.query(drawn, k=2))
    alone = nearest[0][(first <= usual) & (second > usual)]
    only = np.bincount(alone, minlength=len(revealed)) / len(drawn)
    return float((first > usual).mean()), float(np.sqrt(len(only)) * only.std())


def region_shares(regions: pd.DataFrame, schema: Schema, completed: Tensor) -> list[float]:
    """Returns the share of completed rows (n, d) in each region of a report.

    It is NaN where a region is of a column that is not the model's.
    """
    raw = schema.decode(completed.numpy()).T
    known = dict(zip(schema.nodes, zip(schema.columns, raw, strict=True), strict=True))
    shares = []
    for conditions in regions["conditions"]:
        inside = np.ones(len(completed))
        for one in conditions:
            inside *= _holds(one, *known[one["column"]]) if one["column"] in known else np.nan
        shares.append(float(inside.mean()))
    return shares


def _holds(condition: Mapping[str, Any], column: Column, raw: np.ndarray) -> np.ndarray:
    if "levels" not in condition:
        low, high = condition["low"], condition["high"]
        above = raw >= (-np.inf if low is None else low)
        return above & (raw <= (np.inf if high is None else high))
    wanted = set(map(str, condition["levels"]))
    if isinstance(column, Levels):
        named = np.array([_label(level) in wanted for level in column.levels])
        return named[raw.astype(np.int64)]
    return np.array([_label(float(number)) in wanted for number in raw])


def _label(level: object) -> str:
    return f"{level:.12g}" if isinstance(level, float) else str(level)


def rough_sentence(node: str, found: Mapping[str, Any]) -> str:
    """Returns what to say of a mechanism that rows ask more of (`select.roughness`)."""
    if "beside" in found:
        return (
            f"the rows ask for more than a line at {node} (p = {found['p_value']:.1g}), and "
            f"beside the hidden cause {found['beside']} it has none: levels, counts and hidden "
            f"causes keep the (generalised) linear form there; an effect that leans on it may be "
            f"off, and its interval does not know."
        )
    return (
        f"the rows wave or jump along {found['along']} in a way that the mechanism of {node} does "
        f"not follow (p = {found['p_value']:.1g}); an effect that leans on it may be far off, and "
        f"its interval does not know."
    )
