r"""Contrasts of interventions, on the scale that the outcome has.

| outcome | measure |
|---|---|
| continuous, count, ordinal with numbers for levels | E[Y; do(A)] − E[Y; do(B)] |
| binary, or any level that is called the event | p − q, p / q and p (1 − q) / ((1 − p) q) |
| categorical, ordinal with text for levels | the probability of each level |

with p and q the probability of the event under do(A) and do(B). Both arms are swept with the same
noise, so that what does not depend on the intervention cancels and only the contrast is left to
average. Monte-Carlo errors of ratios are by the delta method, √(∇ᵀ Σ ∇ / n) with Σ the covariance
of the two arms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from misscnf.cells import Label, plain
from misscnf.columns import Column, Levels
from misscnf.errors import InputError

__all__ = ["Effect", "contrast", "written"]

Arms = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Effect:
    """The contrast of two interventions on one outcome, in the outcome's units."""

    outcome: str
    do: dict[str, Any]
    versus: dict[str, Any]
    estimate: float | None
    """The difference of means or risks; None where only `probabilities` compare the arms."""
    standard_error: float | None
    """Monte-Carlo error of the estimate; the sampling error of the fit is not in it."""
    mean: float | None
    """E[Y; do], or the risk of the event."""
    mean_versus: float | None
    """E[Y; versus], or the risk of the event."""
    draws: int
    interval: tuple[float, float] | None = None
    """An interval for the sampling error of the fit; None until one is asked for."""
    measure: str = "mean difference"
    """What the estimate is: mean difference, risk difference or probabilities."""
    event: Label | None = None
    """The level whose risk is compared."""
    risk_ratio: float | None = None
    """The risk under do over the one under versus; None where that is zero."""
    risk_ratio_error: float | None = None
    """Its Monte-Carlo error."""
    odds_ratio: float | None = None
    """The same of odds; None where the event is sure under do, or impossible under versus."""
    odds_ratio_error: float | None = None
    """Its Monte-Carlo error."""
    notes: tuple[str, ...] = ()
    """What to know before believing it, such as a value outside of what was seen."""
    probabilities: pd.DataFrame | None = field(default=None, compare=False)
    """level, do, versus, difference, standard_error: for an outcome with levels."""

    def __str__(self) -> str:
        versus = written(self.versus) if self.versus else "no intervention"
        head = f"effect on {self.outcome} of {written(self.do)} versus {versus}"
        if self.estimate is None:
            table = "" if self.probabilities is None else self.probabilities.round(4).to_string()
            return f"{head}: probability of each level, Monte-Carlo standard errors\n{table}"
        of = "" if self.event is None else f" of {self.event!r}"
        error = f"(Monte-Carlo standard error {self.standard_error:.2g})"
        text = f"{head}: {self.measure}{of} {self.estimate:.4g} {error}"
        for name, ratio, spread in (
            ("risk ratio", self.risk_ratio, self.risk_ratio_error),
            ("odds ratio", self.odds_ratio, self.odds_ratio_error),
        ):
            if ratio is not None:
                text += f", {name} {ratio:.4g} ({spread:.2g})"
        return text


def written(do: Mapping[str, Any]) -> str:
    """Returns an intervention as people write it, such as "do(dose = 1.5)"."""
    return f"do({', '.join(f'{name} = {_shown(value)}' for name, value in do.items())})"


def _shown(value: object) -> str:
    label = plain(value)
    if label is None:
        return "…"
    return repr(label) if isinstance(label, str | bool) else f"{label:g}"


def contrast(
    column: Column,
    do: Mapping[str, Any],
    versus: Mapping[str, Any],
    arms: Arms,
    event: object = None,
    notes: tuple[str, ...] = (),
) -> Effect:
    """Compares the outcomes of two arms that share their noise.

    Arguments:
        column: The codec of the outcome.
        do: The first arm's interventions.
        versus: The second arm's.
        arms: The model's values of the outcome in each, (n,).
        event: The level whose risk is compared; a binary column's higher one by default.
        notes: What to know before believing it.
    """
    common: dict[str, Any] = {
        "outcome": column.name,
        "do": dict(do),
        "versus": dict(versus),
        "draws": len(arms[0]),
        "notes": notes,
    }
    if not isinstance(column, Levels):
        if event is not None:
            raise InputError(
                f"{column.name!r} has no levels, and event={event!r} asks for one; leave it out "
                f"to compare means."
            )
        return Effect(**common, **_means((column.decode(arms[0]), column.decode(arms[1]))))
    common["probabilities"] = _probabilities(column.levels, arms)
    if event is not None or column.kind == "binary":
        code = len(column.levels) - 1 if event is None else _code(column, event)
        risks = (arms[0] == code).astype(float), (arms[1] == code).astype(float)
        return Effect(**common, event=column.levels[code], **_risks(risks))
    if column.kind == "ordinal" and not any(isinstance(level, str) for level in column.levels):
        numbers = np.array(column.levels, dtype=np.float64)
        return Effect(**common, **_means((_at(numbers, arms[0]), _at(numbers, arms[1]))))
    nothing: dict[str, Any] = dict.fromkeys(("estimate", "standard_error", "mean", "mean_versus"))
    return Effect(**common, **nothing, measure="probabilities")


def _at(numbers: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return numbers[np.rint(codes).astype(np.int64)]


def _code(column: Levels, event: object) -> int:
    code = column.parse(pd.Series([event], dtype=object))[0]
    if np.isnan(code):
        raise InputError(f"the event of {column.name!r} is {event!r}; expected {column.expected}.")
    return int(code)


def _means(arms: Arms) -> dict[str, Any]:
    difference = arms[0] - arms[1]
    return {
        "estimate": float(difference.mean()),
        "standard_error": float(difference.std(ddof=1) / math.sqrt(len(difference))),
        "mean": float(arms[0].mean()),
        "mean_versus": float(arms[1].mean()),
    }


def _risks(arms: Arms) -> dict[str, Any]:
    found = {**_means(arms), "measure": "risk difference"}
    p, q = found["mean"], found["mean_versus"]
    covariance = np.cov(np.stack(arms)) / len(arms[0])
    if q > 0:
        found["risk_ratio"] = p / q
        found["risk_ratio_error"] = _error((1 / q, -p / q**2), covariance)
    if q > 0 and p < 1:
        found["odds_ratio"] = p * (1 - q) / ((1 - p) * q)
        slopes = (1 - q) / (q * (1 - p) ** 2), -p / ((1 - p) * q**2)
        found["odds_ratio_error"] = _error(slopes, covariance)
    return found


def _error(slopes: tuple[float, float], covariance: np.ndarray) -> float:
    gradient = np.array(slopes)
    return math.sqrt(max(float(gradient @ covariance @ gradient), 0.0))


def _probabilities(levels: Sequence[Label], arms: Arms) -> pd.DataFrame:
    rows = []
    for code, level in enumerate(levels):
        found = _means(((arms[0] == code).astype(float), (arms[1] == code).astype(float)))
        rows.append(
            (
                level,
                found["mean"],
                found["mean_versus"],
                found["estimate"],
                found["standard_error"],
            )
        )
    names = ["level", "do", "versus", "difference", "standard_error"]
    return pd.DataFrame(rows, columns=names)
