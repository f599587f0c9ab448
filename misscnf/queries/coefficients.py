r"""What a fitted model is made of, in the user's units: kinds, forms, and the lines' coefficients.

The line of a number is x = a + Σ_j b_j x_j + Σ_k c_k 1[x_k = level] + σ u: b_j is what one unit of
a cause moves it by, c_k what a level does against the first one. Those of a count are of the log
of its mean, those of a yes-or-no or ordinal column of its log-odds. Mechanisms of another form, or
of columns on a log or logit scale, have no such number. Standard errors are the spread over the
replicates of the fit, where an interval has made them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from misscnf.data.codecs import Column, Levels
from misscnf.model import StructuralModel

__all__ = ["coefficients"]


def coefficients(
    model: StructuralModel, replicates: Sequence[StructuralModel], columns: Sequence[Column]
) -> pd.DataFrame:
    """Returns a line for each column and cause: column, cause, coefficient, standard_error.

    The models are in the user's units (`MissCNF.structural_model`).
    """
    found = _lines(model, columns)
    others = np.array([[line[2] for line in _lines(one, columns)] for one in replicates])
    table = pd.DataFrame(found, columns=["column", "cause", "coefficient"])
    errors = others.std(0, ddof=1) if len(others) > 1 else np.full(len(table), np.nan)
    return table.assign(standard_error=errors)


def _lines(model: StructuralModel, columns: Sequence[Column]) -> list[tuple[str, str, float]]:
    lines = []
    for node, column in enumerate(columns):
        law, causes = model.law(node), _causes(model, node, columns)
        form = law.linear_form()
        for place, (own, cause) in enumerate(causes):
            levels = cause.levels[1:] if isinstance(cause, Levels) else (None,)
            for code, level in enumerate(levels, start=1):
                name = own if level is None else f"{own} = {level}"
                value, discrete = float("nan"), cause is not None and cause.domain.discrete
                if form is not None and level is None and not discrete:
                    value = float(form.weights[place])
                    if cause is None and form.offset is not None:  # `ever` has two values
                        steps = torch.zeros(2, len(causes), dtype=torch.float64)
                        steps[1, place] = code
                        value += float(form.offset(steps).diff())
                elif form is not None and form.offset is not None:
                    steps = torch.zeros(2, len(causes), dtype=torch.float64)
                    steps[1, place] = code  # of a count: the first unit
                    value = float(form.offset(steps).diff())
                elif form is None:
                    steps = torch.zeros(2, len(causes), dtype=torch.float64)
                    steps[1, place] = code
                    with torch.no_grad():
                        line = law.linear_predictor(steps)
                    value = value if line is None or not line.ndim else float(line.diff())
                lines.append((column.name, name, value))
    return lines


def _causes(
    model: StructuralModel, node: int, columns: Sequence[Column]
) -> list[tuple[str, Column | None]]:
    """Returns what the mechanism of a node reads, by name; None for a history of a column."""
    parents, reading = model.graph.parents[node], model.graph.readings.get(node)
    if reading is None:
        return [(columns[parent].name, columns[parent]) for parent in parents]
    return [
        (f.name, columns[parents[f.places[0]]] if f.function == "value" else None)
        for f in reading.features
    ]
