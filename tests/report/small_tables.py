"""Tables with holes whose names and gaps a page must stand."""

import numpy as np
import pandas as pd

EVIL = "<script>alert('1')</script>"
"""A column that would break a page that does not escape it."""
MONEY = "cost $a$ & more"
"""One that is mathematics to matplotlib, and an entity to HTML."""
EDGES = [
    ("age", "t"),
    ("age", "y"),
    ("t", "y"),
    (EVIL, "y"),
    ("ward", "y"),
    ("y", MONEY),
    ("y", "stage"),
]


def mixed_table(rows=240):
    """Numbers, levels and text with holes; t raises y by 2."""
    rng = np.random.default_rng(0)
    age = rng.normal(50.0, 10.0, rows).round(1)
    t = (rng.random(rows) < 1.0 / (1.0 + np.exp(-(age - 50.0) / 10.0))).astype(float)
    dose = np.exp(rng.normal(0.0, 0.3, rows)).round(3)
    ward = rng.choice(["A", "B", "C"], rows, p=[0.5, 0.3, 0.2])
    shift = pd.Series(ward).map({"A": 0.0, "B": 1.0, "C": -1.0}).to_numpy()
    y = (2.0 * t + 0.1 * age + 3.0 * dose + shift + rng.normal(size=rows)).round(3)
    felt = y + 2.0 * rng.normal(size=rows)
    table = pd.DataFrame(
        {
            "id": [f"p{i}" for i in range(rows)],
            "age": age,
            "t": t,
            EVIL: dose,
            "ward": ward,
            "y": y,
            MONEY: (y + rng.normal(size=rows)).round(2),
            "stage": np.select([felt < 7, felt < 10], ["early", "middle"], "late"),
        }
    )
    for column in ("age", "t", "ward", "y"):
        table[column] = table[column].where(rng.random(rows) > 0.15)
    table.loc[rows - 1, table.columns[1:]] = None  # a row that shows nothing
    return table


def table_with_a_gap(rows=2500):
    """A chain whose last node is never seen where its parent is high."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=rows)
    b = a + rng.normal(size=rows)
    c = b + rng.normal(size=rows)
    c[(b > np.quantile(b, 0.85)) | (rng.random(rows) < 0.2)] = np.nan
    return pd.DataFrame({"a": a, "b": b, "c": c})
