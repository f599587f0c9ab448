r"""Ours and the rivals on real tables: each returns an estimate with its 95 % interval.

    misscnf          the table as it is, covariates as one block, `auto`
    complete_cases   least squares of the outcome on treatment and covariates, rows without holes
    mice             the same on 20 tables of chained Bayesian regressions, pooled by Rubin's rules
    forest           one table of chained regressions, then EconML's causal forest (doubly robust)
    gcm              dowhy.gcm with mechanisms of its own choice, rows without holes; 20 bootstraps

Levels are coded 0, 1 for all but ours. Least squares is the usual analysis of a trial; where the
effect differs between people it weighs them in its own way, also where the effect on the treated
is asked for. Standard errors are robust (HC1).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

from misscnf import MissCNF, pool
from misscnf_study.real.question import Question
from misscnf_study.rivals import ImpossibleError
from misscnf_study.rivals.mice import IterativeImputer

__all__ = ["METHODS", "Answer"]

LEVEL = 0.95
TABLES = 20
"""Imputed tables of MICE."""
ROUNDS = 10
"""Passes of chained regressions over the columns, as scikit-learn has it."""
BOOTSTRAPS = 20
"""Fits of dowhy.gcm that its interval comes from."""


@dataclass(frozen=True)
class Answer:
    """An estimate and its interval."""

    estimate: float
    lower: float
    upper: float


def ours(df: pd.DataFrame, question: Question, seed: int) -> Answer:
    """Fits the table as it is."""
    graph, blocks = question.drawn(df)
    model = MissCNF(
        graph, blocks=blocks or None, kinds=question.kinds(df), seed=seed, progress=False
    ).fit(df)
    arms = ({question.treatment: question.do}, {question.treatment: question.versus})
    effect = model.effect(
        question.outcome, *arms, interval=LEVEL, treated=question.treated, seed=seed
    )
    if effect.estimate is None:
        raise ImpossibleError("the answer is a table of probabilities")
    if effect.interval is None:
        raise ImpossibleError(" ".join(effect.doubts))
    return Answer(effect.estimate, *effect.interval)


@dataclass(frozen=True)
class Numbers:
    """A table as numbers: levels as 0 and 1, rows of other arms left out."""

    frame: pd.DataFrame
    covariates: list[str]
    between: list[str]

    @staticmethod
    def of(df: pd.DataFrame, question: Question) -> Numbers:
        """Codes a table; treatment and outcome are called t and y."""
        kept = df[df[question.treatment].isin([question.do, question.versus])]
        t = (kept[question.treatment] == question.do).astype(float)
        y, covariates = kept[question.outcome], _coded(kept[question.covariates(df)])
        if not pd.api.types.is_numeric_dtype(y):
            y = pd.Series(pd.Categorical(y).codes, kept.index).replace(-1, np.nan)
        between = _coded(kept[list(question.between)])
        frame = pd.concat([covariates, between, pd.DataFrame({"t": t, "y": y})], axis=1)
        return Numbers(frame.astype(float), [*covariates.columns], [*between.columns])

    def whole(self) -> pd.DataFrame:
        """Returns the rows without holes in what a regression needs."""
        return self.frame[[*self.covariates, "t", "y"]].dropna()

    def chained(self, seed: int, *, draw: bool) -> pd.DataFrame:
        """Returns the table completed by chained regressions: a draw, or its best guess."""
        given = {"max_iter": ROUNDS, "skip_complete": True, "sample_posterior": draw}
        imputer = IterativeImputer(**given, random_state=seed)
        return pd.DataFrame(imputer.fit_transform(self.frame), columns=self.frame.columns)


def _coded(df: pd.DataFrame) -> pd.DataFrame:
    """Returns levels as columns of 0 and 1, holes where the level is not known."""
    parts: list[pd.DataFrame] = []
    for name in df.columns:
        column = df[name]
        if pd.api.types.is_numeric_dtype(column):
            parts.append(column.astype(float).to_frame(str(name)))
            continue
        wide = pd.get_dummies(column, prefix=str(name), drop_first=True, dtype=float)
        parts.append(wide.mask(column.isna()))
    return pd.concat(parts, axis=1) if parts else pd.DataFrame(index=df.index)


def regression(df: pd.DataFrame, covariates: list[str]) -> tuple[float, float, int]:
    """Returns the coefficient of t, its robust variance, and the degrees of freedom."""
    x = np.column_stack([df["t"], np.ones(len(df)), df[covariates]])
    inverse = np.linalg.pinv(x.T @ x)
    beta = inverse @ x.T @ df["y"].to_numpy()
    left = df["y"].to_numpy() - x @ beta
    free = len(df) - int(np.linalg.matrix_rank(x))
    if free < 1:
        raise ImpossibleError(f"{len(df)} complete rows for {x.shape[1]} coefficients")
    meat = (x * left[:, None] ** 2).T @ x * len(df) / free
    return float(beta[0]), float((inverse @ meat @ inverse)[0, 0]), free


def complete_cases(df: pd.DataFrame, question: Question, seed: int) -> Answer:
    """Regresses on the rows without holes."""
    numbers = Numbers.of(df, question)
    estimate, variance, free = regression(numbers.whole(), numbers.covariates)
    reach = float(stats.t.ppf((1 + LEVEL) / 2, free) * variance**0.5)
    return Answer(estimate, estimate - reach, estimate + reach)


def mice(df: pd.DataFrame, question: Question, seed: int) -> Answer:
    """Imputes 20 times, regresses each time, and pools."""
    numbers = Numbers.of(df, question)
    tables = [numbers.chained(1000 * seed + k, draw=True) for k in range(TABLES)]

    def analyse(table: pd.DataFrame) -> tuple[float, float]:
        return regression(table, numbers.covariates)[:2]

    free = len(df) - len(numbers.covariates) - 2
    line = pool(tables, analyse, df_complete=free, level=LEVEL).table.iloc[0]
    return Answer(float(line["estimate"]), float(line["lower"]), float(line["upper"]))


def forest(df: pd.DataFrame, question: Question, seed: int) -> Answer:
    """Imputes covariates once, then grows a causal forest on the rows that show the outcome."""
    numbers = Numbers.of(df, question)
    if not numbers.covariates:
        raise ImpossibleError("a causal forest needs covariates to grow on")
    shown = numbers.frame[["t", "y"]].notna().all(axis=1).to_numpy()
    full = numbers.chained(seed, draw=False)[shown]
    try:
        grown = importlib.import_module("econml.dml").CausalForestDML
    except ImportError as error:
        raise ImpossibleError(f"EconML is not here: {error}") from error
    learned = grown(discrete_treatment=True, random_state=seed, n_jobs=1)
    t = full["t"].to_numpy().round().astype(int)
    learned.fit(full["y"].to_numpy(), t, X=full[numbers.covariates].to_numpy())
    if question.treated:
        found = learned.att_(T=1), learned.att_stderr_(T=1)
    else:
        found = learned.ate_, learned.ate_stderr_
    middle, spread = (float(np.ravel(number)[0]) for number in found)
    reach = float(stats.norm.ppf((1 + LEVEL) / 2)) * spread
    return Answer(middle, middle - reach, middle + reach)


def gcm(df: pd.DataFrame, question: Question, seed: int) -> Answer:
    """Fits dowhy.gcm to the rows without holes, covariates as roots of their own."""
    if question.treated:
        raise ImpossibleError("dowhy.gcm has no effect on the treated")
    try:
        library = importlib.import_module("dowhy.gcm")
    except ImportError as error:
        raise ImpossibleError(f"dowhy is not here: {error}") from error
    networkx = importlib.import_module("networkx")
    numbers = Numbers.of(df, question)
    rows = numbers.whole()
    arrows = [(name, "y") for name in [*numbers.covariates, "t"]]
    arrows += [] if question.randomised else [(name, "t") for name in numbers.covariates]
    if rows["y"].nunique() == 2:  # levels are text there: numbers would be rounded
        rows = rows.assign(y=np.where(rows["y"] == rows["y"].max(), "1", "0"))
    library.config.disable_progress_bars()
    library.util.general.set_random_seed(seed)
    model = library.ProbabilisticCausalModel(networkx.DiGraph(arrows))
    library.auto.assign_causal_mechanisms(model, rows)

    def effect(data: pd.DataFrame) -> float:
        library.fit(model, data)
        means = [
            library.interventional_samples(model, {"t": lambda _, arm=arm: arm}, data)["y"]
            .astype(float)
            .mean()
            for arm in (1.0, 0.0)
        ]
        return float(means[0] - means[1])

    estimate = effect(rows)
    again = [
        effect(rows.sample(frac=1.0, replace=True, random_state=k)) for k in range(BOOTSTRAPS)
    ]
    reach = float(stats.t.ppf((1 + LEVEL) / 2, BOOTSTRAPS - 1) * np.std(again, ddof=1))
    return Answer(estimate, estimate - reach, estimate + reach)


METHODS: dict[str, Callable[[pd.DataFrame, Question, int], Answer]] = {
    "misscnf": ours,
    "complete_cases": complete_cases,
    "mice": mice,
    "forest": forest,
    "gcm": gcm,
}
"""Every method by its name, ours first."""
