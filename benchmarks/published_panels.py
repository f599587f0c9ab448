"""Published answers over time, from whole tables and again with a fifth of the covariates hidden.

    python benchmarks/published_panels.py                    # what is at hand; others are skipped
    python benchmarks/published_panels.py --only zepid nhefs
    python benchmarks/published_panels.py --preset auto --store published.jsonl

| table | question | published |
|---|---|---|
| gfoRmula, survival | risk at the seventh visit: natural, never, always | 0.504, 0.733, 0.233 |
| gfoRmula, end of follow-up | mean of Y: natural, never, always | −4.382, −3.390, −4.603 |
| zEpid, longitudinal; R's ltmle | risk by the third visit: 111, 000, 101, 010 | see `CASES` |
| NHEFS | survival to ten years: not quitting, quitting (What If, chapter 17) | 0.816, 0.812 |

The tables of gfoRmula are read where they lie beside the repository, `../shared/data`; that of
zEpid from its wheel, of which nothing runs. Lines have the published covariates, with the means of
histories where the published models have them. Bars: risks within 0.02 (zEpid 0.03), means within
0.1, and with 20 % of the covariates' cells hidden at random 95 % intervals hold the published
number.

The published means are those of a simulation in which L1, which has three levels, is never drawn:
it takes its most likely level, of all people alike. `simulated` does the same with statsmodels'
fits of the published models, and comes to the published numbers. With L1 drawn, as the g-formula
has it, the same models come to −4.43, −2.84 and −4.77. Both are asked here: the simulation against
what is published, and misscnf against the simulation with draws.

Each answer is a line of the store as soon as it is there, and is not asked again.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from report import finish

from misscnf import MissCNF

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
HIDDEN = 0.2
"""Of the cells of the covariates that change over time."""

Regimes = dict[str, tuple[dict[str, Any], float]]
"""By name: the intervention, and the published answer."""


class Case:
    """A table with its graph, its covariates and the published answers."""

    def __init__(
        self,
        table: Callable[[], pd.DataFrame | None],
        graph: str,
        kinds: dict[str, str],
        covariates: list[str],
        regimes: Regimes,
        within: float,
        **about: Any,
    ) -> None:
        self.table, self.graph, self.kinds, self.covariates = table, graph, kinds, covariates
        self.regimes, self.within, self.about = regimes, within, about


def shared_table(name: str) -> pd.DataFrame | None:
    """Returns a table of gfoRmula, None where it is not at hand."""
    path = SHARED / name
    return pd.read_csv(path) if path.exists() else None


def zepid_table() -> pd.DataFrame | None:
    """Returns zEpid's table of three visits as a long one, up to the event of each person."""
    found = importlib.util.find_spec("zepid")
    if found is None or found.origin is None:
        return None
    wide = pd.read_csv(Path(found.origin).parent / "datasets" / "longitudinal.dat")
    alive, parts = np.ones(len(wide), dtype=bool), []
    for visit in (1, 2, 3):
        part = wide[["id", "W", f"L{visit}", f"A{visit}", f"Y{visit}"]]
        part = part.set_axis(["id", "W", "L", "A", "Y"], axis=1).assign(visit=visit)
        parts.append(part[alive])
        alive &= (wide[f"Y{visit}"] == 0).to_numpy()
    return pd.concat(parts, ignore_index=True)


def nhefs_table() -> pd.DataFrame | None:
    """Returns NHEFS as a table of years, up to the death of each person (1983 to 1992)."""
    if importlib.util.find_spec("causaldata") is None:
        return None
    from causaldata import nhefs

    people = nhefs.load_pandas().data.apply(pd.to_numeric)
    months = (people["yrdth"] - 83) * 12 + people["modth"]
    last = np.where(people["death"] == 1, (months - 1) // 12, 10).astype(float)
    once = ["qsmk", "sex", "race", "age", "education", "smokeintensity", "smokeyrs"]
    once += ["exercise", "active", "wt71"]
    parts = [
        people[once].assign(
            id=np.arange(len(people)), year=year, death=(last == year).astype(int)
        )[last >= year]
        for year in range(10)
    ]
    return pd.concat(parts, ignore_index=True)


BEFORE = "mean(L1)[t-1], mean(L2)[t-1], A[t-1], L3, time"
LAST = "L1[t-1], L2[t-1], A[t-1], L3, time"
CONFOUNDERS = "sex, race, age, education, smokeintensity, smokeyrs, exercise, active, wt71"

MEANS: Regimes = {
    "natural": ({}, -4.382),
    "never": ({"A": 0}, -3.390),
    "always": ({"A": 1}, -4.603),
}
"""As published, with the most likely level of L1 in the place of a draw."""
DRAWN = {"natural": -4.429, "never": -2.841, "always": -4.766}
"""What `simulated` finds with draws, of 300,000 people."""

CASES = {
    "survival": Case(
        lambda: shared_table("gformula_basicdata_nocomp.csv"),
        f"{BEFORE} -> L1[t]; {BEFORE}, L1[t] -> L2[t]; {BEFORE}, L1[t], L2[t] -> A[t]; "
        f"{LAST}, L1[t], L2[t], A[t] -> Y[t]",
        {"Y": "event", "L3": "continuous"},
        ["L1", "L2"],
        {"natural": ({}, 0.504), "never": ({"A": 0}, 0.733), "always": ({"A": 1}, 0.233)},
        0.02,
        id="id",
        time="t0",
        outcome="Y",
    ),
    "means": Case(
        lambda: shared_table("gformula_continuous_eof.csv"),
        "L1[t-1], L2[t-1], time -> L1[t]; L2[t-1], L1[t-1], A[t-1], time -> L2[t]; "
        "L1[t], L2[t], time -> A[t]; L1[t], L2[t], A[t] -> Y[t]",
        {"L1": "categorical", "Y": "continuous"},
        ["L1", "L2"],
        {name: (do, DRAWN[name]) for name, (do, _) in MEANS.items()},
        0.1,
        id="id",
        time="t0",
        outcome="Y",
    ),
    "zepid": Case(
        zepid_table,
        "W -> L[t]; L[t-1], A[t-1] -> L[t]; L[t], A[t-1] -> A[t]; L[t], A[t] -> Y[t]",
        {"Y": "event", "A": "binary"},
        ["L"],
        {
            "111": ({"A": 1}, 0.4140978),
            "000": ({"A": 0}, 0.6464508),
            "101": ({"A[1]": 1, "A[2]": 0, "A[3]": 1}, 0.4916937),
            "010": ({"A[1]": 0, "A[2]": 1, "A[3]": 0}, 0.5634683),
        },
        0.03,
        id="id",
        time="visit",
        outcome="Y",
        untied=True,
    ),
    "nhefs": Case(
        nhefs_table,
        f"{CONFOUNDERS} -> qsmk; qsmk, {CONFOUNDERS}, time -> death[t]",
        {"death": "event", "education": "continuous"},
        ["smokeintensity", "smokeyrs", "wt71"],
        {"not quitting": ({"qsmk": 0}, 1 - 0.8161), "quitting": ({"qsmk": 1}, 1 - 0.8118)},
        0.02,
        id="id",
        time="year",
        outcome="death",
        population="rows",
    ),
}


def simulated(table: pd.DataFrame, *, drawn: bool, people: int = 20_000) -> dict[str, float]:
    """Returns the means by the published models and a simulation of its own.

    Arguments:
        table: That of the end of follow-up.
        drawn: Whether L1 is drawn, or takes its most likely level.
        people: Who are simulated, from the first visits of the table.
    """
    import statsmodels.api as sm

    before = table.groupby("id")[["L1", "L2", "A"]].shift().add_prefix("last_")
    later = table.join(before)[table["t0"] > 0]
    ended = table.dropna(subset="Y")
    of_l1 = sm.MNLogit(later["L1"].astype(int), _design(later, "last_L1", "last_L2 t0"))
    of_l2 = sm.OLS(later["L2"], _design(later, "last_L1", "last_L2 last_A t0")).fit()
    of_a = sm.Logit(later["A"], _design(later, "L1", "L2 t0")).fit(disp=0)
    of_y = sm.OLS(ended["Y"], _design(ended, "L1", "L2 A")).fit()
    of_l1, found = of_l1.fit(disp=0), {}
    for name, (do, _) in MEANS.items():
        rng = np.random.default_rng(0)
        first = table[table["t0"] == 0].sample(people, replace=True, random_state=0)
        now = first.reset_index(drop=True).assign(**do)
        for visit in range(1, 7):
            now = now[["L1", "L2", "A"]].add_prefix("last_").assign(t0=visit)
            chances = of_l1.predict(_design(now, "last_L1", "last_L2 t0")).to_numpy()
            drawing = (rng.random(people)[:, None] > chances.cumsum(1)).sum(1)
            now["L1"] = 1 + (drawing if drawn else chances.argmax(1))
            noise = rng.normal(size=people) * of_l2.scale**0.5
            now["L2"] = noise + of_l2.predict(_design(now, "last_L1", "last_L2 last_A t0"))
            takes = rng.random(people) < of_a.predict(_design(now, "L1", "L2 t0"))
            now["A"] = do.get("A", takes.astype(float))
        found[name] = float(of_y.predict(_design(now, "L1", "L2 A")).mean())
    return found


def _design(table: pd.DataFrame, level: str, others: str) -> pd.DataFrame:
    """Returns an intercept, two indicators of a column of three levels, and other columns."""
    own = {"one": 1.0, "two": table[level] == 2, "three": table[level] == 3}
    return table[others.split()].assign(**own).astype(float)


def with_holes(table: pd.DataFrame, case: Case, seed: int = 0) -> pd.DataFrame:
    """Hides cells of the covariates at random; what is measured once, in all rows of a person."""
    rng, found = np.random.default_rng(seed), table.copy()
    who = pd.factorize(table[case.about["id"]])[0]
    for name in case.covariates:
        lost = rng.random(len(table)) < HIDDEN
        if (table.groupby(who)[name].nunique() <= 1).all():
            lost = (rng.random(who.max() + 1) < HIDDEN)[who]
        found[name] = found[name].mask(lost)
    return found


def answers(case: Case, table: pd.DataFrame, preset: str) -> dict[str, Any]:
    """Fits, and asks all regimes, each with its interval."""
    started, about = time.process_time(), dict(case.about)
    outcome, population = about.pop("outcome"), about.pop("population", None)
    model = MissCNF(case.graph, preset, kinds=case.kinds, progress=False, **about).fit(table)
    found: dict[str, Any] = {}
    for name, (do, published) in case.regimes.items():
        found[name] = {"published": published}
        if outcome in model.panel_.events:
            last = model.risk(outcome, do=do, interval=0.95, population=population).table.iloc[-1]
            ends = {"lower": float(last["risk_lower"]), "upper": float(last["risk_upper"])}
            found[name] |= {"found": float(last["risk"]), **ends}
        else:
            effect = model.effect(outcome, do=do, interval=0.95, population=population)
            lower, upper = effect.mean_interval or effect.interval or (np.nan, np.nan)
            mean = np.nan if effect.mean is None else effect.mean
            found[name] |= {"found": float(mean), "lower": float(lower), "upper": float(upper)}
    return {"answers": found, "processor seconds": time.process_time() - started}


def main() -> None:
    """Asks what is at hand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--preset", default="linear")
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    done: dict[str, Any] = {}
    if given.store is not None and given.store.exists():
        for line in map(json.loads, given.store.read_text().splitlines()):
            done[line.pop("case")] = line
    bars: dict[str, bool] = {}
    skipped = []
    for name in given.only:
        case, table = CASES[name], CASES[name].table()
        if table is None:
            print(f"skipped {name}: its table is not at hand")
            skipped.append(name)
            continue
        if name == "means":
            for drawn in (False, True):
                means = simulated(table, drawn=drawn)
                print(f"simulated, L1 {'drawn' if drawn else 'at its mode'}: {means}", flush=True)
                for regime, (_, published) in MEANS.items():
                    number = DRAWN[regime] if drawn else published
                    how = "drawn" if drawn else "as published"
                    met = abs(means[regime] - number) <= 0.02
                    bars[f"a simulation, {how}, {regime}: within 0.02"] = met
        for holes in (False, True):
            key = f"{name}, {given.preset}{', a fifth hidden' if holes else ''}"
            if key not in done:
                done[key] = answers(
                    case, with_holes(table, case) if holes else table, given.preset
                )
                if given.store is not None:
                    with given.store.open("a") as file:
                        file.write(json.dumps({"case": key, **done[key]}) + "\n")
            for regime, said in done[key]["answers"].items():
                print(f"{key}, {regime}: {said}", flush=True)
                if holes and "lower" in said:
                    met = said["lower"] <= said["published"] <= said["upper"]
                    bars[f"{key}, {regime}: the interval holds it"] = met
                else:
                    met = abs(said["found"] - said["published"]) <= case.within
                    bars[f"{key}, {regime}: within {case.within:g}"] = met
    finish({"cases": done, "skipped": skipped}, bars)


if __name__ == "__main__":
    main()
