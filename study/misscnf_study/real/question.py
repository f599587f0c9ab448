r"""A real table, a causal question on it, and the answer that is known from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit

from misscnf import CausalGraph

__all__ = ["Question", "hide"]


@dataclass(frozen=True)
class Question:
    """What every method is asked. Covariates point to treatment and outcome; no order is known."""

    load: Callable[[int], tuple[pd.DataFrame, float]]
    """Takes a seed, for what is simulated or hidden; returns the table and the answer."""
    treatment: str
    outcome: str
    do: Any = 1
    versus: Any = 0
    between: tuple[str, ...] = ()
    """Columns that tell who is lost and are not adjusted for, in order, drawn after treatment."""
    randomised: bool = False
    """Whether chance gave the treatment: then nothing points to it."""
    treated: bool = False
    """Whether the answer is the effect on the treated."""
    graph: Callable[[], CausalGraph] | None = None
    """A graph where one is known, instead of a block of covariates."""
    few_values: int | None = None
    """Numbers with more values than this are told to be continuous; None: nothing is told."""
    source: str = ""
    """Where table and answer come from, in a few words."""

    def covariates(self, df: pd.DataFrame) -> list[str]:
        """Returns what is known before the treatment."""
        later = {self.treatment, self.outcome, *self.between}
        return [str(name) for name in df.columns if name not in later]

    def kinds(self, df: pd.DataFrame) -> dict[str, str] | None:
        """Returns what is told of the columns."""
        if self.few_values is None:
            return None
        numbers = df[self.covariates(df)].select_dtypes("number")
        return {str(name): "continuous" for name in numbers if _values(df, name) > self.few_values}

    def drawn(self, df: pd.DataFrame) -> tuple[Any, dict[str, list[str]]]:
        """Returns the graph and its blocks as `MissCNF` takes them."""
        if self.graph is not None:
            return self.graph(), {}
        covariates = self.covariates(df)
        named = ["covariates"] if covariates else []
        text = [f"covariates -> {self.treatment}"] if named and not self.randomised else []
        before = [*named, self.treatment]
        for name in (*self.between, self.outcome):
            text.append(f"{', '.join(before)} -> {name}")
            before.append(name)
        return "; ".join(text), {"covariates": covariates} if covariates else {}


def _values(df: pd.DataFrame, name: object) -> int:
    return int(df[name].nunique())


def hide(df: pd.DataFrame, rates: dict[str, float], drivers: list[str], seed: int) -> pd.DataFrame:
    """Hides cells at random given columns that stay: by a logit of their mean score."""
    rng, holed = np.random.default_rng(seed), df.copy()
    codes = df[drivers].apply(lambda x: x if pd.api.types.is_numeric_dtype(x) else x.cat.codes)
    score = ((codes - codes.mean()) / codes.std()).mean(axis=1).to_numpy(float)
    for name, rate in rates.items():
        level = brentq(lambda a, r=rate: float(expit(a + score).mean()) - r, -20, 20)
        holed[name] = holed[name].mask(rng.random(len(df)) < expit(level + score))
    return holed
