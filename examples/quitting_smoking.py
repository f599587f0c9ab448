"""Quitting smoking and weight: from a CSV file to a report
=============================================================

**The question.** Does quitting smoking make people gain weight? NHEFS followed 1,629 smokers from
1971 to 1982. Hernán and Robins ask the question in *What If* (part II), and estimate 3.5 kg
(2.6 to 4.5). The plain difference of means is 2.5 kg.

**The table.** Eleven columns, and 63 people without a weight in 1982.
"""

# %%
# Read the table
# --------------
# The demo writes the table to a file. Yours is a file already.
import tempfile
from pathlib import Path

import pandas as pd

from misscnf import MissCNF, check, describe_kinds, load_nhefs, nhefs_graph, plots, write_report

folder = Path(tempfile.mkdtemp())
load_nhefs().to_csv(folder / "nhefs.csv", index=False)
df = pd.read_csv(folder / "nhefs.csv")
print(df.head())

# %%
# What is each column taken for? Read this table before anything else: rules cannot know what a
# column means.
kinds = {"education": "ordinal", "exercise": "ordinal", "active": "ordinal"}
print(describe_kinds(df, kinds).to_string())

# %%
# The graph
# ---------
# Nine confounders, each of which may cause quitting and the change of weight. Among them an order
# is assumed, and no independence: each points to all later ones.
graph = nhefs_graph()

# %%
# Check
# -----
# Each box has the share of rows that show the column with all its causes.
report = check(df, graph, effect=("qsmk", "wt82_71"))
print(report)
plots.graph(report, asked=["qsmk", "wt82_71"])

# %%
# Fit
# ---
# Lines, logistic and ordered regressions, by the likelihood of what each row shows. The preset
# ``auto`` takes some minutes here, and finds curves for some columns.
model = MissCNF(graph, "linear", kinds=kinds, progress=False).fit(df)
print(model)

# %%
# The answer
# ----------
# A linear model gives men and women the same effect by construction; ``by="sex"`` says so.
effect = model.effect("wt82_71", do={"qsmk": 1}, versus={"qsmk": 0}, interval=0.95, draws=20_000)
print(effect)

# %%
# What the rows say without the model stands beside it: the crude difference, and least squares on
# the rows that are complete.
plain = model.plain_estimates(effect)
answers = {"misscnf": effect} | {one.name: one for one in plain}
plots.forest(answers, unit="kg gained by quitting")

# %%
# How strongly would a cause that nobody measured have to go with quitting and with weight, as risk
# ratios, to explain the answer away?
print("E-values of the estimate and of its lower end:", effect.e_values())

# %%
# Paste it into a manuscript:
print(effect.to_markdown())

# %%
# The report
# ----------
# One HTML file with the answer, and how far to trust it. Intervals were made above, so they are
# quick now; ``misscnf report`` does the same from the command line.
write_report(model, df, folder / "report.html", effect=("qsmk", "wt82_71"), interval=None)
print(f"{(folder / 'report.html').stat().st_size / 1000:.0f} kB")

# %%
# What could be wrong
# -------------------
# *The graph.* Somebody who quits may also have been told to by a doctor, for an illness that costs
# weight. The E-value says how strong such a cause would have to be.
#
# *The loss.* The 63 people may have stayed away because of their weight. They are 4 % of the rows,
# so the answer could move by a few hundred grams at most. :doc:`holes_not_at_random` asks such a
# question.
#
# *The form.* A line in each confounder may be too stiff. ``auto`` finds 3.4 kg.
