"""Holes that are not at random, with a sensitivity analysis
============================================================

**The question.** Does a diet lower weight? Those who weigh most skip the scale. Then a weight is
lost because of itself, and what rows show is not enough: an assumption has to come from outside.

The table is simulated. The diet lowers weight by 3 kg, and the log-odds of skipping the scale grow
by 1.5 for each standard deviation of weight.
"""

import numpy as np
import pandas as pd

from misscnf import MissCNF, check, plots

rng = np.random.default_rng(3)
ROWS = 1500
height = rng.normal(172, 9, ROWS)
diet = rng.integers(0, 2, ROWS)
weight = 75 + 0.8 * (height - 172) - 3 * diet + rng.normal(0, 8, ROWS)
df = pd.DataFrame({"height": height, "diet": diet, "weight": weight})
z = (weight - weight.mean()) / weight.std()
df.loc[rng.random(ROWS) < 1 / (1 + np.exp(0.8 - 1.5 * z)), "weight"] = np.nan
print(f"{df['weight'].isna().mean():.0%} of the weights are missing")

# %%
# As if they were lost at random
# ------------------------------
graph = "height -> weight; diet -> weight"
print(check(df, graph, effect=("diet", "weight")))
plain = MissCNF(graph, "linear", progress=False).fit(df)
ask = {"do": {"diet": 1}, "versus": {"diet": 0}, "interval": 0.95}
at_random = plain.effect("weight", **ask)
print(at_random)

# %%
# The effect is too small: heavy people without the diet are the ones who are missing. No test of
# this table could have said so.
#
# If the loss is worse than it looks
# ----------------------------------
# *Strength*: the log-odds of being lost that one standard deviation of weight adds. At 0 values
# are lost at random. Everything else is fitted again at each point.
found = plain.sensitivity("weight", **ask, strength=[-1, -0.5, 0, 0.5, 1, 1.5, 2])
print(found)
ax = found.plot()
ax.axhline(-3.0, color="#00795a", linewidth=1)

# %%
# The green line is the truth, and 1.5 the strength that made the holes. A reader of your paper can
# judge which strengths are plausible. The conclusion, that the diet works, does not depend on it.
#
# The loss as a part of the model
# -------------------------------
# Whoever knows what drives the loss can say so. Height is no cause of the loss except through
# weight: that is what identifies the strength. ``check`` says whether anything does.
loss = {"weight": ["weight"]}
print(check(df, graph, effect=("diet", "weight"), loss=loss).recovery[0].sentence)
told = MissCNF(graph, "linear", loss=loss, progress=False).fit(df)
print(told.loss_["sentence"].iloc[0])

# %%
answers = {"at random": at_random, "loss by weight itself": told.effect("weight", **ask)}
ax = plots.forest(answers, unit="kg, diet against none")
ax.axvline(-3.0, color="#00795a", linewidth=1)

# %%
# What could be wrong
# -------------------
# *The claim about the loss.* If height drives it too, the strength is another. The model asks the
# rows whether further columns do (``loss_evidence_``), and they can only say so much.
#
# *The shape.* The law of weight is a normal one around a line. A skewed law that is cut by nothing
# looks much like a normal one that lost its upper end.
