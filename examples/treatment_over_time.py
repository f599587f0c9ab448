"""A treatment that changes over time
=====================================

**The question.** What is the risk of an event by week 4 if a drug is always taken, never taken, or
taken once a marker falls below a threshold? The marker says who takes the drug, and the drug
changes the marker. Regression cannot answer that: adjusting for the marker removes what the drug
does through it, and not adjusting leaves the confounding. The g-formula can.

The table is simulated: 400 people, five visits, one row a person and visit.
"""

import numpy as np
import pandas as pd

from misscnf import MissCNF

rng = np.random.default_rng(5)
rows = []
for person in range(400):
    marker, drug = rng.normal(), 0
    for week in range(5):
        marker = 0.7 * marker - 0.15 + 0.6 * drug + rng.normal(0, 0.6)
        drug = int(rng.random() < 1 / (1 + np.exp(0.5 + 1.5 * marker)))
        event = int(rng.random() < 1 / (1 + np.exp(3.0 + 0.9 * marker + 0.3 * drug)))
        rows.append((person, week, marker, drug, event))
        if event or rng.random() < 0.05:  # some leave the study
            break
df = pd.DataFrame(rows, columns=["id", "week", "marker", "drug", "event"])
df.loc[rng.random(len(df)) < 0.15, "marker"] = np.nan  # and some markers are not measured
print(df.head(8))

# %%
# The graph
# ---------
# It is written for one visit, and unrolled over all of them.
graph = """
marker[t-1], drug[t-1] -> marker[t]
marker[t] -> drug[t]
marker[t], drug[t] -> event[t]
"""

# %%
# Fit
# ---
# One mechanism serves all visits. Who left is not lost: each person says what they show.
model = MissCNF(graph, "linear", id="id", time="week", kinds={"event": "event"}, progress=False)
model.fit(df)
print(model)

# %%
# The answer
# ----------
# Always against never, with intervals.
always = model.risk("event", do={"drug": 1}, versus={"drug": 0}, interval=0.95, draws=2000)
print(always)

# %%
# Blue is always, orange never. Green is a rule: the drug whenever the marker is below zero.
rule = model.risk("event", do={"drug": "marker[t] < 0"}, draws=2000)
ax = always.plot()
ax.plot(rule.table["time"], rule.table["risk"], color="#00795a", label="if the marker is below 0")
ax.legend()

# %%
# Does the model give back what happened? The natural course, beside what the table shows.
natural = model.risk("event", do={}, draws=2000)
natural.plot()

# %%
# The two should agree. If they do not, the model does not fit, and no regime should be believed.
#
# What could be wrong
# -------------------
# *Unmeasured confounding over time.* Whatever the doctor saw and the table does not have.
#
# *History.* Only the visit before is read here. If earlier markers matter, draw these arrows.
#
# *Leaving the study* is taken as ignorable given what was seen of a person.
