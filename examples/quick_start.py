"""Quick start: four answers, each beside the truth
====================================================

A table with holes, a graph, and five questions.

Severity drives both who gets a high dose and how long recovery takes; the dose shortens it.
Severity and dose are lost more often the longer recovery took, so that complete rows are a skewed
sample, and half of all rows have a hole. We

1. ask what the holes leave identified, before any fit,
2. fit a causal flow to the table as it is,
3. ask for the effect of raising the dose from 1 to 2,
4. ask what one patient's recovery would have been, although the severity is not known,
5. fill the holes several times and pool an analysis of the filled tables.

The table is simulated, so that the truth is known. Each `# %%` starts a cell for editors and
notebooks; as a script it runs in less than half a minute on one core::

    python examples/quick_start.py
"""

# %%
# The world: severity → dose, severity → days, dose → days
# --------------------------------------------------------
import numpy as np
import pandas as pd

import misscnf
from misscnf import MissCNF

rng = np.random.default_rng(0)
ROWS = 1500


def dose_of(severity, noise):
    """Worse cases get more, up to a ceiling."""
    return 3 / (1 + np.exp(-severity)) + 0.4 * noise


def days_of(severity, dose, noise):
    """Worse cases take longer, and the dose helps with diminishing returns."""
    return 12 + 2.5 * severity + 0.5 * severity**2 - 6 * np.tanh(dose / 1.5) + noise


severity = rng.normal(size=ROWS)
dose = dose_of(severity, rng.normal(size=ROWS))
noise = rng.normal(size=ROWS)
complete = pd.DataFrame(
    {"severity": severity, "dose": dose, "days": days_of(severity, dose, noise)}
)

# %%
# The table that we are given: what is lost depends on the days, which are always known
# -------------------------------------------------------------------------------------
df = complete.copy()
long_stay = (df["days"] - df["days"].mean()) / df["days"].std()
for column in ("severity", "dose"):
    df.loc[rng.random(ROWS) < 1 / (1 + np.exp(0.8 - 1.5 * long_stay)), column] = np.nan
print(f"{ROWS} patients, {df.isna().any(axis=1).mean():.0%} of them with a hole\n")

# %%
# 1. What do the holes leave identified?
# --------------------------------------
graph = "severity -> dose; severity -> days; dose -> days"
print(misscnf.check(df, graph, effect=("dose", "days")).summary())

# %%
# 2. Fit: no row is dropped, nothing is imputed first
# ---------------------------------------------------
model = MissCNF(graph, seed=0, progress=False).fit(df)
better = model.comparison_["elpd_difference"]
forms = ", ".join(f"{name}: {form}" for name, form in model.forms_.items())
print(f"mechanisms ({forms}), {better:.2f} nats a held-out row better than linear ones\n")

# %%
# 3. The effect of a dose of 2 instead of 1, on average over all patients
# -----------------------------------------------------------------------
effect = model.effect("days", do={"dose": 2.0}, versus={"dose": 1.0}, interval=0.95)
truth = 6 * (np.tanh(1 / 1.5) - np.tanh(2 / 1.5))
whole = df.dropna()
design = np.column_stack([np.ones(len(whole)), whole["severity"], whole["dose"]])
regression = np.linalg.lstsq(design, whole["days"], rcond=None)[0][2]
print("effect on the days: truth", f"{truth:.2f},", f"misscnf {effect.estimate:.2f},", end=" ")
print(f"regression on complete rows {regression:.2f}")
print("95 % interval from {:.2f} to {:.2f}\n".format(*effect.interval))
effect.plot()

# %%
# 4. One patient of unknown severity: what if the dose had been 2.5?
# ------------------------------------------------------------------
patient = int(np.flatnonzero(df["severity"].isna() & (df["dose"] < 1.0))[0])
would_be = model.counterfactual(df.loc[[patient]], do={"dose": 2.5}, draws=500)["days"]
low, high = np.quantile(would_be, [0.05, 0.95])
answer = days_of(severity[patient], 2.5, noise[patient])
print(f"patient {patient}: dose {dose[patient]:.1f}, {df['days'][patient]:.1f} days; with a dose")
print(f"of 2.5: truth {answer:.2f}, misscnf {would_be.mean():.2f}", end=" ")
print(f"(90 % from {low:.2f} to {high:.2f})\n")


# %%
# 5. Fill the holes ten times, analyse each table, pool the answers by Rubin's rules.
# -----------------------------------------------------------------------------------
#
# ``proper=True`` takes each table from another replicate of the fit: standard errors are right.
def mean_severity(table):
    """Returns the mean and its variance, as a complete table gives them."""
    return {"severity": table["severity"].mean()}, {"severity": table["severity"].var() / ROWS}


pooled = misscnf.pool(model.impute(df, draws=10, proper=True), mean_severity, df_complete=ROWS - 1)
line = pooled.table.loc["severity"]
print(f"mean severity: truth {severity.mean():.3f}, misscnf {line['estimate']:.3f} ±", end=" ")
print(f"{line['standard_error']:.3f}, complete rows {whole['severity'].mean():.3f}")
print(f"fraction of missing information {line['fmi']:.2f}\n")
print(pooled)
