"""A trial with drop-out
========================

**The question.** In a randomised trial of 400 people, does the drug lower the score at week 8? A
quarter of the people leave before. Who does badly leaves more often, and more often on placebo.

The table is simulated, so that the truth is known: the drug lowers the score by 4.
"""

import numpy as np
import pandas as pd

from misscnf import MissCNF, check, plots

rng = np.random.default_rng(4)
PEOPLE = 400
drug = rng.integers(0, 2, PEOPLE)
base = rng.normal(25, 4, PEOPLE)
week4 = 5 + 0.7 * base - 2.5 * drug + rng.normal(0, 3, PEOPLE)
week8 = 1 + 0.8 * week4 - 2.0 * drug + rng.normal(0, 3, PEOPLE)
df = pd.DataFrame({"drug": drug, "base": base, "week4": week4, "week8": week8})
leaves = rng.random(PEOPLE) < 1 / (1 + np.exp(1.2 - 0.5 * (week4 - 20) + 1.0 * drug))
df.loc[leaves, "week8"] = np.nan
print(f"{leaves.mean():.0%} leave before week 8; {leaves[drug == 1].mean():.0%} on the drug")

# %%
# The graph
# ---------
# Treatment was drawn by lot, so nothing points to it. The score at week 4 is on the way from drug
# to outcome. In a regression of the outcome one would have to leave it out. Here it belongs in: it
# says who leaves, and what those who left would have had.
graph = "base -> week4; drug -> week4; base -> week8; week4 -> week8; drug -> week8"

# %%
# Check
# -----
report = check(df, graph, effect=("drug", "week8"))
print(report)
plots.patterns(report)

# %%
# Fit, and answer
# ---------------
model = MissCNF(graph, "linear", progress=False).fit(df)
effect = model.effect("week8", do={"drug": 1}, versus={"drug": 0}, interval=0.95)
print(effect)

# %%
# Beside it, two habits. Those who stayed are compared in *completers*; the last value is *carried
# forward* where the next is missing. The truth is -0.8 x 2.5 - 2 = -4.
stayed = df.dropna()
completers = stayed.groupby("drug")["week8"].agg(["mean", "var", "size"])
carried = df["week8"].fillna(df["week4"]).groupby(df["drug"]).agg(["mean", "var", "size"])


def difference(arms):
    """Returns the difference of two means with its interval."""
    estimate = arms["mean"][1] - arms["mean"][0]
    error = 1.96 * np.sqrt((arms["var"] / arms["size"]).sum())
    return {"estimate": estimate, "lower": estimate - error, "upper": estimate + error}


lines = pd.DataFrame(
    [
        {"term": "misscnf"} | effect.to_frame().iloc[0, 1:].to_dict(),
        {"term": "completers"} | difference(completers),
        {"term": "last value carried forward"} | difference(carried),
    ]
)
ax = plots.forest(lines, unit="difference of the score at week 8, drug against placebo")
ax.axvline(-4.0, color="#b34700", linewidth=1)

# %%
# What the lost scores would have been
# ------------------------------------
# Those who left did worse at week 4, so their imputed scores (orange) are higher than those that
# were observed (blue).
plots.imputations(df, model.impute(df, 10), "week8")

# %%
# What could be wrong
# -------------------
# *The loss.* People may have left because of how week 8 went, beyond what week 4 shows. If those
# on the drug who left did worse than they look, by how much would it have to be?
found = model.sensitivity(
    "week8", do={"drug": 1}, versus={"drug": 0}, shift={"do": [0, 4, 8, 12, 16, 20]}, interval=0.95
)
print(found.told)
found.plot()

# %%
# *The estimand.* This is the effect if everybody had stayed on treatment. If leaving means
# stopping the drug, a protocol may ask for another one.
