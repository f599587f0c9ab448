r"""The log-density of each row as a table, with a reason where it is −∞.

A row has probability zero where it shows what no column of its kind can hold (a negative count, a
share above one), or where the model rules it out given the rest. Neither is an error of the
reader: the answer is −∞, never NaN, and it says why.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from misscnf.data.table import IncompleteTable
from misscnf.inference.likelihood import RowLikelihood
from misscnf.model import Chance, Hold, Policy, StructuralModel

__all__ = ["row_densities", "counted_nodes"]

logger = logging.getLogger("misscnf")


def row_densities(
    model: StructuralModel,
    table: IncompleteTable,
    policies: Mapping[int, Policy],
    result: RowLikelihood,
) -> pd.DataFrame:
    """Returns log_prob, standard_error, effective_draws and reason of each row.

    What a row shows of a node with a policy matters for draws alone.
    """
    free = counted_nodes(policies, table.shape[1])
    refused = table.impossible[:, free].any(dim=1)
    columns = {
        "log_prob": torch.where(refused, -torch.inf, result.log_prob).numpy(),
        "standard_error": torch.where(refused, 0.0, result.standard_error).numpy(),
        "effective_draws": torch.where(refused, torch.inf, result.effective_draws).numpy(),
    }
    never = np.flatnonzero(np.isneginf(columns["log_prob"]))
    reasons = [""] * len(table)
    for row in never.tolist():
        reasons[row] = table.explain(row, free) or _explain_zero(model, table, policies, row)
    if len(never):
        ask = "log_prob(..., quality=True) says why"
        sentence = "%d rows have probability zero, and a log-density of −∞; %s."
        logger.warning(sentence, len(never), ask)
    return pd.DataFrame({**columns, "reason": reasons}, index=table.index)


def counted_nodes(policies: Mapping[int, Policy], nodes: int) -> list[int]:
    """Returns the nodes that have a density under policies: all but what is held or ruled."""
    return [j for j in range(nodes) if j not in policies or isinstance(policies[j], Chance)]


def _explain_zero(
    model: StructuralModel, table: IncompleteTable, policies: Mapping[int, Policy], row: int
) -> str:
    """Names the nodes that are ruled out by parents that are seen too, if there are any."""
    values, seen = table.values[row].clone(), table.observed[row].clone()
    for node, policy in policies.items():
        seen[node] = isinstance(policy, Hold)
        if isinstance(policy, Hold):
            values[node] = policy.value.expand(len(table))[row]
    names = []
    for node, family in enumerate(map(list, model.graph.families)):
        if node not in policies and seen[family].all():
            factor = model.mechanism(node).log_prob(values[node], values[family[1:]])
            names += [repr(model.graph.nodes[node])] if factor.isneginf() else []
    where = f" ({', '.join(names)}, given its parents)" if names else ""
    return f"the model gives what this row shows probability zero{where}"
