"""Twenty tasks of an analyst (docs/tasks.md), each as the docs say to do it, with its time.

    .venv/bin/python benchmarks/tasks.py            # all
    .venv/bin/python benchmarks/tasks.py 1 7 19     # some
    .venv/bin/python benchmarks/tasks.py --version 1a2b3c4   # go on with the lines of a run

Prints a line of JSON a task: found, expected, whether right, seconds of processor time. Lines are
kept in benchmarks/results/tasks.jsonl under the commit, so that a run that was cut off goes on.
Needs causaldata and statsmodels, which the extra `dev` brings. Exits 1 if one is not right.
"""

# ruff: noqa: D103 - docs/tasks.md says what each task is

import argparse
import json
import logging
import sys
import tempfile
import time
import warnings
from pathlib import Path

import causaldata
import numpy as np
import pandas as pd
import statsmodels.api as sm
import statsmodels.datasets as tables
from sklearn import datasets
from store import Lines, commit
from typer.testing import CliRunner

from misscnf import MissCNF, check, pool, write_report
from misscnf.cli.app import app

STORE = Path(__file__).parent / "results/tasks.jsonl"
RNG = np.random.default_rng(24)
CONFOUNDERS = ["age", "educ", "black", "hisp", "marr", "nodegree", "re74", "re75"]


def nsw():
    return causaldata.nsw_mixtape.load_pandas().data.drop(columns="data_id")


def nsw_graph():
    return "; ".join(f"{name} -> re78" for name in [*CONFOUNDERS, "treat"])


def hide(df, name, chance):
    return df.assign(**{name: df[name].where(RNG.random(len(df)) >= chance)})


def fit(graph, df, **given):
    return MissCNF(graph, seed=0, progress=False, **given).fit(df)


def difference(df, arm, outcome):
    """Difference of means of two arms, and its standard error."""
    parts = [df.loc[df[arm] == k, outcome].dropna() for k in (1, 0)]
    error = np.sqrt(sum(part.var() / len(part) for part in parts))
    return parts[0].mean() - parts[1].mean(), error


def slope(df, outcome, causes, name):
    line = sm.OLS(df[outcome], sm.add_constant(df[causes].astype(float))).fit(cov_type="HC1")
    return line.params[name], line.bse[name]


def near(found, expected, error, interval=None):
    right = abs(found - expected) <= 2 * error
    return {"found": found, "expected": expected, "error": error, "interval": interval}, right


def of(effect, expected, error):
    return near(effect.estimate, expected, error, effect.interval)


def task_1():
    df = nsw()
    model = fit(nsw_graph(), df)
    effect = model.effect("re78", {"treat": 1}, {"treat": 0}, interval=0.95)
    return of(effect, *difference(df, "treat", "re78"))


def task_2():
    df = nsw()
    model = fit(nsw_graph(), df)
    effect = model.effect("re78", {"treat": 1}, {"treat": 0}, where="nodegree == 1", interval=0.95)
    return of(effect, *difference(df[df["nodegree"] == 1], "treat", "re78"))


def task_3():
    df = causaldata.thornton_hiv.load_pandas().data.head(1500)
    model = fit("any -> got; age -> got", df)
    effect = model.effect("got", {"any": 1}, {"any": 0}, interval=0.95)
    return of(effect, *difference(df, "any", "got"))


def logit_effect(df, outcome, causes, name, high, low):
    law = sm.Logit(df[outcome], sm.add_constant(df[causes].astype(float))).fit(disp=False)
    arms = [
        law.predict(
            sm.add_constant(df[causes].astype(float).assign(**{name: value}), has_constant="add")
        )
        for value in (high, low)
    ]
    scale = abs(arms[0].mean() - arms[1].mean()) / abs(law.params[name] * (high - low))
    return arms[0].mean() - arms[1].mean(), scale * law.bse[name] * abs(high - low)


def task_4():
    df = tables.spector.load_pandas().data
    model = fit("GPA -> GRADE; TUCE -> GRADE; PSI -> GRADE", df)
    effect = model.effect("GRADE", {"PSI": 1}, {"PSI": 0}, interval=0.95)
    return of(effect, *logit_effect(df, "GRADE", ["GPA", "TUCE", "PSI"], "PSI", 1, 0))


PLANT = "AIRFLOW -> STACKLOSS; WATERTEMP -> STACKLOSS; ACIDCONC -> STACKLOSS"
PARTS = ["AIRFLOW", "WATERTEMP", "ACIDCONC"]


def task_5():
    df = tables.stackloss.load_pandas().data.astype(float)
    kinds = dict.fromkeys(df.columns, "continuous")
    model = MissCNF(PLANT, kinds=kinds, seed=0, progress=False).fit(df)
    effect = model.effect("STACKLOSS", {"AIRFLOW": 61}, {"AIRFLOW": 60}, interval=0.95)
    return of(effect, *slope(df, "STACKLOSS", PARTS, "AIRFLOW"))


def task_6():
    df = tables.engel.load_pandas().data
    expected, error = slope(df, "foodexp", ["income"], "income")
    model = fit("income -> foodexp", hide(df, "income", 0.2))
    low, high = df["income"].quantile([0.25, 0.75])
    effect = model.effect("foodexp", {"income": high}, {"income": low}, interval=0.95)
    per = 100 / (high - low)
    curve = model.curve("foodexp", "income", [400, 900, 2000, 2500])["mean"].to_numpy()
    report, right = near(per * effect.estimate, 100 * expected, 100 * error)
    report["slopes"] = [float(x) for x in np.diff(curve)[[0, 2]] / 500]
    return report, right


def diabetes():
    return datasets.load_diabetes(as_frame=True, scaled=False).frame


SCORE = "age -> bmi; sex -> bmi; age -> target; sex -> target; bmi -> target"


def task_7():
    df = diabetes()[["age", "sex", "bmi", "target"]]
    expected, error = slope(df, "target", ["age", "sex", "bmi"], "bmi")
    hidden = hide(df, "bmi", np.where(df["age"] > 50, 0.6, 0.1))
    effect = fit(SCORE, hidden).effect("target", {"bmi": 27}, {"bmi": 26}, interval=0.95)
    return of(effect, expected, error)


def college():
    return causaldata.close_college.load_pandas().data.head(1500)


WAGES = "black, smsa, south -> educ; black, smsa, south, educ, exper -> lwage; educ -> exper"


def task_8():
    df = college()
    causes = ["educ", "exper", "black", "smsa", "south"]
    expected, error = slope(df, "lwage", causes, "educ")
    model = fit(WAGES, hide(df, "educ", 0.25))
    effect = model.effect(
        "lwage", {"educ": 13, "exper": 9}, {"educ": 12, "exper": 9}, interval=0.95
    )
    return of(effect, expected, error)


def task_9():
    df = tables.cancer.load_pandas().data
    df["size"] = np.log(df["population"])
    law = sm.GLM(df["cancer"], sm.add_constant(df[["size"]]), sm.families.Poisson()).fit()
    low, high = df["size"].quantile([0.25, 0.75])
    arms = [float(np.exp(law.params["const"] + law.params["size"] * x)) for x in (high, low)]
    model = fit("size -> cancer", hide(df, "size", 0.2))
    effect = model.effect("cancer", {"size": high}, {"size": low}, interval=0.95)
    return of(effect, arms[0] - arms[1], 0.1 * (arms[0] - arms[1]))


def task_10():
    df = tables.anes96.load_pandas().data[["age", "educ", "income", "vote"]]
    causes = ["age", "educ", "income"]
    high, low = df["income"].quantile([0.75, 0.25])
    expected, error = logit_effect(df, "vote", causes, "income", high, low)
    model = fit("age, educ -> income; age, educ, income -> vote", hide(df, "income", 0.2))
    effect = model.effect("vote", {"income": high}, {"income": low}, interval=0.95)
    return of(effect, expected, error)


def task_11():
    df = causaldata.social_insure.load_pandas().data
    df = df[["takeup_survey", "intensive", "age", "male", "literacy"]]
    model = fit("intensive, age, male, literacy -> takeup_survey", df)
    effect = model.effect("takeup_survey", {"intensive": 1}, {"intensive": 0}, interval=0.95)
    return of(effect, *difference(df, "intensive", "takeup_survey"))


def task_12():
    df = tables.stackloss.load_pandas().data.astype(float)
    kinds = dict.fromkeys(df.columns, "continuous")
    model = MissCNF(PLANT, "linear", kinds=kinds, seed=0, progress=False).fit(df)
    row, b = df.iloc[0], slope(df, "STACKLOSS", PARTS, "AIRFLOW")[0]
    rows = pd.DataFrame([row, row.where(row.index != "STACKLOSS")])
    found = model.counterfactual(rows, {"AIRFLOW": 50.0}, interval=0.95)
    width = (found["STACKLOSS_upper"] - found["STACKLOSS_lower"]).to_numpy()
    expected = row["STACKLOSS"] + b * (50 - row["AIRFLOW"])
    one = model.counterfactual(row, {"AIRFLOW": 50.0}, interval=0.95)["STACKLOSS"].iloc[0]
    report, right = near(one, expected, 0.01)
    return {**report, "widths": width.tolist()}, right and 0 < width[0] < width[1]


def task_13():
    df = datasets.load_iris(as_frame=True).frame.set_axis(
        ["sepal_length", "sepal_width", "petal_length", "petal_width", "species"], axis=1
    )
    df["species"] = df["species"].map({0: "setosa", 1: "versicolor", 2: "virginica"})
    expected = df["petal_length"].mean()
    hidden = hide(df, "petal_length", np.where(df["petal_width"] > 1, 0.5, 0.1))
    graph = "; ".join(f"species -> {name}" for name in df.columns[:4])
    graph += "; petal_width, sepal_length -> petal_length"
    tables_ = fit(graph, hidden).impute(hidden, 20, proper=True)
    pooled = pool(tables_, lambda d: (d.petal_length.mean(), d.petal_length.var() / len(d)))
    low, high = pooled.table[["lower", "upper"]].iloc[0]
    told = {"found": str(pooled), "expected": expected}
    return told, float(low) <= expected <= float(high)


def task_14():
    df = datasets.load_wine(as_frame=True).frame
    names = ["alcohol", "malic_acid", "magnesium", "proline", "target"]
    df = df[names].copy()
    df.loc[7, ["magnesium", "proline"]] = df.loc[7, ["proline", "magnesium"]].to_numpy()
    score = fit("; ".join(f"target -> {name}" for name in names[:4]), df).log_prob(df)
    return {"found": int(score.idxmin()), "expected": 7}, score.idxmin() == 7


def run(words):
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def task_15():
    df = hide(diabetes()[["age", "sex", "bmi", "target"]], "bmi", 0.3)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "werte.csv"
        df.fillna(-99).to_csv(path, sep=";", decimal=",", index=False)
        graph = ["--graph", SCORE, "--effect", "bmi:target", "--json"]
        code, out, said = run(["check", str(path), *graph, "--na", "-99"])
        plain = run(["check", str(path), *graph])[2]
    complete, expected = json.loads(out)["usage"][0]["rows"], int(df.notna().all(axis=1).sum())
    asked = "-99 stands in" in plain
    told = {"found": complete, "expected": expected, "asked": asked, "said": said.strip()[:80]}
    return told, code in (0, 1) and asked and complete == expected


def task_16():
    df = nsw().head(200)
    labels = pd.Categorical(df["treat"].map({0: "control", 1: "trained"}))
    days = pd.Timestamp("1978-01-01") + pd.to_timedelta(RNG.integers(0, 300, 200), "D")
    df = df.assign(treat=labels, asked=days)[["treat", "age", "re78", "asked"]]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "nsw.dta"
        df.to_stata(path, write_index=False)
        graph = ["--graph", "treat, age, asked -> re78", "--out", str(Path(folder) / "model")]
        refused = run(["fit", str(path), *graph])
        code, _, _ = run(["fit", str(path), *graph, "--dates", "asked", "--preset", "linear"])
        model = MissCNF.load(Path(folder) / "model") if code == 0 else None
    kinds = {} if model is None else model.kinds_.set_index("column")["levels"].to_dict()
    said = refused[2].replace(f"{path.parent}/", "")  # a folder of this run alone
    told = {"found": kinds.get("treat"), "expected": "control, trained", "refused": said}
    return told, refused[0] == 2 and kinds.get("treat") == "control, trained"


def task_17():
    # Schooling heaps up at 18 years, and four more years are beyond that.
    model = fit(WAGES, college(), kinds={"educ": "continuous"})
    at_least = model.effect("lwage", {"educ": "max(educ, 12)"}, interval=0.95)
    more = model.effect("lwage", {"educ": "educ + 4"}, interval=0.95)
    told = {"found": at_least.estimate, "expected": f"between 0 and {more.estimate:.3f}"}
    return {**told, "interval": at_least.interval}, 0 < at_least.estimate < more.estimate


def task_18():
    df = diabetes()[["age", "bmi", "target"]].copy()
    odd = np.arange(len(df)) % 2 == 1
    df.loc[odd, "bmi"], df.loc[~odd, "target"] = np.nan, np.nan
    graph = "age -> bmi; age, bmi -> target"
    report = check(df, graph, effect=("bmi", "target"))
    with tempfile.TemporaryDirectory() as folder:
        df.to_csv(Path(folder) / "split.csv", index=False)
        code, _, _ = run(["check", str(Path(folder) / "split.csv"), "--graph", graph])
    return {"found": [report.ok, code], "expected": [False, 1]}, not report.ok and code == 1


def task_19():
    with tempfile.TemporaryDirectory() as folder:
        model, path = str(Path(folder) / "model"), Path(folder) / "nsw.csv"
        nsw().to_csv(path, index=False)
        run(["fit", str(path), "--graph", nsw_graph(), "--out", model, "--quiet"])
        ask = ["effect", model, "--on", "re78", "--do", "treat=1", "--versus", "treat=0"]
        ask += ["--interval", "0.95"]
        start = time.process_time()
        first = run([*ask, "--data", str(path)])[1]
        between = time.process_time()
        again = run(ask)[1]
        seconds = between - start, time.process_time() - between
    return {"found": again.strip(), "expected": first.strip(), "seconds": seconds}, first == again


def task_20():
    df = tables.spector.load_pandas().data
    model = fit("GPA -> GRADE; TUCE -> GRADE; PSI -> GRADE", df)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        write_report(model, df, path, effect=("PSI", "GRADE"))
        text = path.read_text()
    return {"found": len(text)}, "by maximum likelihood of the observed values" in text


def ask(number):
    """Does one task; what it hides depends on its number alone."""
    global RNG
    RNG = np.random.default_rng([24, number])
    start = time.process_time()
    try:
        told, right = globals()[f"task_{number}"]()
    except Exception as error:  # a task that ends so is a finding too
        told, right = {"error": f"{type(error).__name__}: {error}"[:300]}, False
    seconds = round(time.process_time() - start, 1)
    line = {"task": number, "right": bool(right), "processor_seconds": seconds, **told}
    return json.loads(json.dumps(line, default=float))


def main():
    logging.getLogger("misscnf").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", type=int, nargs="*", default=range(1, 21))
    parser.add_argument("--version", default=commit(), help="a name for the run")
    given = parser.parse_args()
    lines, wanted = Lines(STORE, ["task"], given.version), [(number,) for number in given.tasks]
    lines.run(ask, wanted, jobs=1)
    sys.exit(not all(record["right"] for record in lines.of(wanted)))


if __name__ == "__main__":
    main()
