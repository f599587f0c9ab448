"""A hidden cause, seen through proxies
=======================================

**The question.** Does a treatment help, where frailty decides who gets it and nobody measured
frailty? Two columns go with it: a test of strength that the doctor saw (z), and a questionnaire
that the doctor did not see (w). Adjusting for both is not enough, since each is only a noisy
picture of frailty.

The table is simulated. The effect is 1.
"""

import numpy as np
import pandas as pd

from misscnf import MissCNF, check, plots

rng = np.random.default_rng(6)
ROWS = 2000
frailty = rng.normal(size=ROWS)
z = frailty + 0.7 * rng.normal(size=ROWS)
w = frailty + 0.7 * rng.normal(size=ROWS)
t = (0.8 * frailty + 0.6 * z + rng.normal(size=ROWS) > 0).astype(int)
y = 1.0 * t - 1.5 * frailty + 0.4 * w + rng.normal(size=ROWS)
df = pd.DataFrame({"z": z, "w": w, "t": t, "y": y})
df = df.mask(rng.random(df.shape) < 0.15)  # and holes in everything

# %%
# The graph
# ---------
# A hidden cause is a node without a column.
graph = "u -> t; u -> y; u -> z; u -> w; z -> t; w -> y; t -> y"

# %%
# Check
# -----
# Is the effect identified? The report says by what: here by proxies. It also says what has to be
# assumed, and cannot be tested: that every change in u shows in z and in w.
report = check(df, graph, effect=("t", "y"), latent=["u"])
print(report)

# %%
# Fit, and answer
# ---------------
model = MissCNF(graph, "linear", latent=["u"], progress=False).fit(df)
ask = {"do": {"t": 1}, "versus": {"t": 0}, "interval": 0.95, "draws": 20_000}
effect = model.effect("y", **ask)
print(effect)

# %%
# Beside it: adjusting for both proxies as if they were the confounder.
adjusted = MissCNF("z, w -> t; z, w, t -> y", "linear", progress=False).fit(df)
answers = {"hidden cause": effect, "adjusted for proxies": adjusted.effect("y", **ask)}
ax = plots.forest(answers, unit="effect of the treatment")
ax.axvline(1.0, color="#00795a", linewidth=1)

# %%
# Factor scores are imputations of u.
scores = model.impute(df.head(200), 20, latents=True)["u"].groupby(level="row").mean()
print(
    "correlation of the scores with frailty:", round(np.corrcoef(scores, frailty[:200])[0, 1], 2)
)

# %%
# What could be wrong
# -------------------
# *An arrow too many in the world.* If the questionnaire were read by the doctor (w -> t), or the
# test helped by itself (z -> y), the proxies would not be proxies. Draw the arrow and check again.
#
# *Completeness.* If the test missed a kind of frailty that matters, no row would show it.
