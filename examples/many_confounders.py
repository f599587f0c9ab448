"""A wide table with a block of confounders
===========================================

**The question.** What does a treatment do, with twenty confounders of which nobody knows the
arrows among each other? No arrow among them matters for the question, so none has to be drawn.
They are a *block*.

The table is simulated: 800 rows, twenty confounders that go together, a tenth of all cells lost.
The effect is 2.
"""

import numpy as np
import pandas as pd

from misscnf import MissCNF, check, plots

rng = np.random.default_rng(7)
ROWS, WIDE = 800, 20
common = rng.normal(size=(ROWS, 3))
x = common @ rng.normal(size=(3, WIDE)) + rng.normal(size=(ROWS, WIDE))
names = [f"x{i}" for i in range(WIDE)]
score = x[:, :6].sum(1) / 6
treat = (rng.random(ROWS) < 1 / (1 + np.exp(-score))).astype(int)
y = 2.0 * treat + 1.5 * score + rng.normal(size=ROWS)
df = pd.DataFrame(x, columns=names).assign(treat=treat, y=y)
df = df.mask(rng.random(df.shape) < 0.1)
print(f"{len(df.dropna())} of {ROWS} rows are complete")

# %%
# The graph
# ---------
# The block points to the treatment and to the outcome as a whole. Inside it nothing is claimed.
graph, blocks = "w -> treat; w, treat -> y", {"w": names}

# %%
# Check
# -----
report = check(df, f"w = {{{', '.join(names)}}}; {graph}", effect=("treat", "y"))
print(report.summary()[:1200], "…")

# %%
# Fit
# ---
# The fit chooses an order of the members by itself, and leaves arrows out that say nothing.
model = MissCNF(graph, "linear", blocks=blocks, progress=False).fit(df)
print(f"{sum(map(len, model.blocks_['w'].values()))} of {WIDE * (WIDE - 1) // 2} arrows are kept")

# %%
# The answer
# ----------
# Averaged over the rows of the table: their confounders as they are, holes completed. So the law
# of the block matters only where something is hidden.
effect = model.effect("y", do={"treat": 1}, versus={"treat": 0}, interval=0.95)
print(effect)

# %%
# Beside it: the crude difference of means, and least squares on the few complete rows.
whole = df.dropna()
design = np.column_stack([np.ones(len(whole)), whole["treat"], whole[names]])
coefficients, left, *_ = np.linalg.lstsq(design, whole["y"], rcond=None)
variance = left[0] / (len(whole) - design.shape[1]) * np.linalg.inv(design.T @ design)
shown = df.dropna(subset=["treat", "y"]).groupby("treat")["y"].agg(["mean", "var", "size"])
lines = effect.to_frame().head(1).assign(term="misscnf, all rows")
others = (
    (
        f"regression, {len(whole)} complete rows",
        coefficients[1],
        1.96 * np.sqrt(variance[1, 1]),
    ),
    (
        "crude difference",
        shown["mean"].diff().iloc[-1],
        1.96 * np.sqrt((shown["var"] / shown["size"]).sum()),
    ),
)
for term, estimate, width in others:
    lines.loc[len(lines)] = [term, estimate, estimate - width, estimate + width]
ax = plots.forest(lines, unit="effect of the treatment")
ax.axvline(2.0, color="#00795a", linewidth=1)

# %%
# What could be wrong
# -------------------
# *A column in the block that the treatment changes.* Then adjusting for it removes part of the
# effect. Only what was there before the treatment belongs into the block.
#
# *Overlap.* With many confounders, some people may be sure to be treated. ``model.check`` measures
# how far the question leads from what was seen.
