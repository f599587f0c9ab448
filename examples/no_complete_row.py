"""No complete row: two studies that never measured the same things
====================================================================

A question about a → b → c → d, with b → d too: what does a do to d? One clinic measures a, b and
c, the other b, c and d. Not one row shows a and d together, so that

- deleting incomplete rows leaves nothing at all,
- no correlation of a and d can be computed from any rows,
- filling in means makes the effect vanish.

Yet every causal family, a node with its direct causes, is seen whole in one clinic or the other,
and that is enough: d depends on a only through b and c. Which clinic a patient goes to depends on
b, so the clinics differ (the holes are missing at random, not completely at random).

As a script it runs in a few seconds::

    python examples/no_complete_row.py
"""

# %%
# Two clinics. The truth: b = 0.8 a + …, c = 0.5 b + …, d = 1.2 c + 0.6 b + …
# ---------------------------------------------------------------------------
import numpy as np
import pandas as pd

import misscnf
from misscnf import MissCNF, plots

rng = np.random.default_rng(0)
ROWS = 4000
a = 1 + rng.normal(size=ROWS)
b = 0.8 * a + rng.normal(size=ROWS)
c = 0.5 * b + rng.normal(size=ROWS)
d = 1.2 * c + 0.6 * b + rng.normal(size=ROWS)
complete = pd.DataFrame({"a": a, "b": b, "c": c, "d": d})
truth = 0.8 * (0.5 * 1.2 + 0.6)

second_clinic = rng.random(ROWS) < 1 / (1 + np.exp(-b))
df = complete.copy()
df.loc[second_clinic, "a"] = np.nan
df.loc[~second_clinic, "d"] = np.nan
print(f"{ROWS} rows, {len(df.dropna())} of them complete\n")

# %%
# What do the holes leave identified?
# -----------------------------------
graph = "a -> b -> c -> d; b -> d"
report = misscnf.check(df, graph, effect=("a", "d"))
print(f"identified with {graph}: {report.ok}")
plots.patterns(report)

# It is the graph that makes it so. Were a a direct cause of d, nothing in the table could tell:
direct = misscnf.check(df, f"{graph}; a -> d", effect=("a", "d"))
print(f"identified with a -> d too: {direct.ok} (not covered: {', '.join(direct.uncovered)})\n")

# %%
# Fit, and ask
# ------------
model = MissCNF(graph, preset="linear", progress=False).fit(df)
effect = model.effect("d", do={"a": 1.0}, versus={"a": 0.0}, draws=1000).estimate
filled = df.fillna(df.mean())
means = np.polyfit(filled["a"], filled["d"], 1)[0]
print(f"effect of a on d: truth {truth:.3f}, misscnf {effect:.3f}, means filled in {means:.3f}")
print("                  listwise deletion: no row is left\n")

# %%
# The joint law of columns that were never seen together
# ------------------------------------------------------
sample = model.sample(200_000)
drawn, real = sample["a"].corr(sample["d"]), complete["a"].corr(complete["d"])
print(f"correlation of a and d: truth {real:.3f}, misscnf {drawn:.3f}")
means = d.mean(), sample["d"].mean(), df["d"].mean()
print("mean of d: truth {:.3f}, misscnf {:.3f}, seen {:.3f}\n".format(*means))

# %%
# One patient of the second clinic: what was a, and what would d be had a been 2 higher?
# --------------------------------------------------------------------------------------
patient = int(np.flatnonzero(second_clinic)[0])
row = df.loc[[patient]]
would_be = model.counterfactual(row, do={"a": lambda value: value + 2}, draws=2000)["d"]
print(f"patient {patient} with a 2 higher: d of {d[patient]:.2f} would be {would_be.mean():.2f},")
print(f"truth {d[patient] + 2 * truth:.2f} (a itself was never measured there)")
