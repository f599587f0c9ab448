"""A gallery of plots
====================

Every picture of ``misscnf.plots``. Each takes ``ax=`` and returns its axes.
"""

import numpy as np
import pandas as pd

from misscnf import CausalGraph, MissCNF, check, plots

rng = np.random.default_rng(2)
ROWS = 800
age = rng.normal(60, 10, ROWS)
sex = rng.integers(0, 2, ROWS)
dose = 2 + 0.04 * (age - 60) + rng.normal(0, 0.8, ROWS)
days = 14 + 0.2 * (age - 60) - 6 * np.tanh(dose / 1.5) + rng.normal(0, 1.5, ROWS)
df = pd.DataFrame({"age": age, "sex": sex, "dose": dose, "days": days})
df.loc[rng.random(ROWS) < 1 / (1 + np.exp(9 - days)), "dose"] = np.nan
df.loc[rng.random(ROWS) < 0.2, "age"] = np.nan
graph = "age, sex -> dose; age, sex, dose -> days"

# %%
# The graph, and the table on it
# ------------------------------
plots.graph(CausalGraph.read(graph), asked=["dose", "days"])

# %%
report = check(df, graph, effect=("dose", "days"))
plots.graph(report, asked=["dose", "days"])

# %%
plots.patterns(report)

# %%
plots.coverage(report)

# %%
# All of these, and regions in which a family is never seen whole, are in ``report.plot()``.
report.plot()

# %%
# The answer
# ----------
model = MissCNF(graph, seed=0, progress=False).fit(df)
effect = model.effect("days", do={"dose": 3}, versus={"dose": 1}, by="sex", interval=0.95)
effect.plot()

# %%
curve = model.curve("days", "dose", np.linspace(0, 4, 21), interval=0.95, draws=4000)
curve.plot()

# %%
# Several answers beside one another, in axes of your own:
from matplotlib import pyplot as plt

fig, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
curve.plot(ax=axes[0])
plots.imputations(df, model.impute(df, 10), "dose", ax=axes[1])
axes[1].legend()

# %%
# Does it fit?
# ------------
# The noise of each column should be standard normal. Rows are completed first: complete rows alone
# would be a selection, since doses are lost where recovery took long.
completed = model.impute(df, 1)[list(model.graph_.nodes)]
found = model.structural_model()
import torch

from misscnf.draws import derive_generator

generator = derive_generator(0, "noise")  # levels have several noises, of which one is drawn
noise = found.abduct(torch.as_tensor(completed.to_numpy(dtype=float)), generator)
place = list(model.graph_.nodes).index("days")
plots.noise(noise[:, place].detach().numpy(), name="days")
