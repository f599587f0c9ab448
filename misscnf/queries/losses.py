r"""What drives a loss, and how strongly: the slopes of the indicators of a fitted model.

The law of a loss is a logistic line in what drives it,

    logit P(missing(y) = 1 | drivers) = a + Σ_j b_j z_j,

with z_j in standard deviations of a column of numbers (on its scale), or one level against the
first. exp(b_j) multiplies the odds of being lost. Standard errors are the spread over replicates
of the fit, where an interval has made them. How much rows know of a slope is said against what is
believed before any row is seen, b ~ N(0, τ²) with τ = 1.5 (odds up to twenty times as high a
standard deviation): with s the standard error,

    known = s⁻² / (s⁻² + τ⁻²),

near one where rows tell, a half where they say no more than that belief.

Rows may seem to tell, and tell the shape of the laws alone. Two things show it: a slope beyond
2 τ, by which values are lost for sure past some point, as by no logistic line; and a search that
ended on the other side of zero. Either is a doubt, however small the standard error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.special import stdtrit

from misscnf.data.codecs import Column, Levels
from misscnf.fitting.settings import Replication
from misscnf.fitting.told_losses import LossEvidence
from misscnf.model import StructuralModel

__all__ = ["loss_slopes", "slope_of_loss", "weak_losses"]


def loss_slopes(
    model: StructuralModel,
    replicates: Sequence[StructuralModel],
    columns: Sequence[Column],
    settings: Replication,
    evidence: LossEvidence,
    starts: pd.DataFrame,
) -> pd.DataFrame:
    """Returns a line for each loss and driver.

    The columns are column, driver, log_odds, standard_error, odds_ratio, lower, upper (95 %),
    known, told (whether the graph named the driver), doubt (what speaks for the slope may be the
    shape of laws alone; empty where nothing says so) and sentence.

    Arguments:
        model: The fit, over standardised columns.
        replicates: Its replicates.
        columns: The columns of the graph.
        settings: What is believed of a slope before rows are seen.
        evidence: What rows said of the losses that the graph claims.
        starts: Where each start of the losses ended, as `loss_starts_` has it.
    """
    steps = list(_steps(model, columns))
    found = np.array([_slope(model, *step[2:]) for step in steps])
    others = np.array([[_slope(one, *step[2:]) for step in steps] for one in replicates])
    many = len(others) > 1
    errors = others.std(0, ddof=1) if many else np.full(len(steps), np.nan)
    reach = stdtrit(len(others) - 1, 0.975) * errors if many else errors
    with np.errstate(over="ignore"):  # lost for sure beyond some value
        odds, lower, upper = np.exp(found), np.exp(found - reach), np.exp(found + reach)
    table = pd.DataFrame(
        {
            "column": [step[0] for step in steps],
            "driver": [step[1] for step in steps],
            "log_odds": found,
            "standard_error": errors,
            "odds_ratio": odds,
            "lower": lower,
            "upper": upper,
            "known": 1.0 / (1.0 + (errors / settings.slope_spread) ** 2),
        }
    )
    drivers = [step[1].split(" = ")[0] for step in steps]
    pairs = zip(table["column"], drivers, strict=True)
    table["told"] = [pair not in evidence.added for pair in pairs]
    table["doubt"] = [_doubt(line, settings, starts) for line in table.itertuples()]
    told = [_sentence(line, settings, evidence) for line in table.itertuples()]
    return table.assign(sentence=told)


def weak_losses(slopes: pd.DataFrame, settings: Replication) -> pd.DataFrame:
    """Returns the losses whose slope on their own value the rows hardly tell."""
    weak = (slopes["driver"] == slopes["column"]) & (slopes["known"] < settings.least_known)
    return slopes[weak]


def slope_of_loss(
    model: StructuralModel, driver: int, indicator: int, columns: Sequence[Column]
) -> float:
    """Returns the log-odds that a standard deviation of a driver adds to a loss, by the fit."""
    place = model.graph.parents[indicator].index(driver)
    start, end = (0.0, 1.0)
    if not isinstance(columns[driver], Levels):
        start, end = columns[driver].domain.one_step()
    return _slope(model, indicator, place, start, end)


def _steps(
    model: StructuralModel, columns: Sequence[Column]
) -> Iterator[tuple[str, str, int, int, float, float]]:
    """Yields the column, the driver in words, its indicator and place, and from where to where."""
    graph = model.graph
    for indicator, column in graph.indicators.items():
        for place, parent in enumerate(graph.parents[indicator]):
            driver = columns[parent]
            about = (graph.nodes[column], driver.name)
            if isinstance(driver, Levels):
                for code, level in enumerate(driver.levels[1:], start=1):
                    yield about[0], f"{about[1]} = {level}", indicator, place, 0.0, float(code)
            else:
                yield (*about, indicator, place, *driver.domain.one_step())


def _slope(model: StructuralModel, indicator: int, place: int, start: float, end: float) -> float:
    """Returns what a step of one driver adds to the log-odds of a loss, the others at zero."""
    parents = torch.zeros(2, len(model.graph.parents[indicator]), dtype=torch.float64)
    parents[:, place] = torch.tensor([start, end])
    law, lost = model.mechanism(indicator), torch.ones(2, dtype=torch.float64)
    with torch.no_grad():
        odds = law.log_prob(lost, parents) - law.log_prob(1.0 - lost, parents)
    return float(odds[1] - odds[0])


def _doubt(line: Any, settings: Replication, starts: pd.DataFrame) -> str:  # noqa: ANN401 - a row of the table above
    """Says why what speaks for a slope on the own value may be the shape of laws alone."""
    if line.driver != line.column or line.log_odds == 0.0:
        return ""
    why = []
    if abs(line.log_odds) > 2.0 * settings.slope_spread:
        side = "high" if line.log_odds > 0.0 else "low"
        why.append(
            f"the log-odds that {line.column} is lost change by {line.log_odds:+.1f} a standard "
            f"deviation, so that {side} values are lost almost for sure"
        )
    ends = starts.get(f"slope of {line.column}")
    if ends is not None:
        away = (ends - line.log_odds).abs()
        if away.max() > settings.slope_spread and ends[away.idxmax()] * line.log_odds < 0.0:
            other = starts.loc[away.idxmax()]
            why.append(
                f"another search for how {line.column} drives its own loss ended on the other "
                f"side of zero ({ends[away.idxmax()]:+.1f}, {other['below']:.0f} nats lower)"
            )
    if not why:
        return ""
    told = f"{'; '.join(why)}: that rests on the shape of the laws, not on rows; vary it with "
    told += "sensitivity(strength=)."
    return told[0].upper() + told[1:]


def _ratio(odds: float) -> str:
    """Writes a ratio of odds as people read one; past a thousand nobody can tell them apart."""
    if odds > 1000.0:
        return "over 1000"
    if odds < 0.001:
        return "under 0.001"
    return f"{odds:.0f}" if odds >= 99.5 else f"{odds:.2g}"


def _sentence(line: Any, settings: Replication, evidence: LossEvidence) -> str:  # noqa: ANN401 - a row of the table above
    own = line.driver == line.column
    if own and line.column in evidence.weighed and not evidence.kept:
        told = (
            f"The rows do not speak for a say of {line.column} in its own loss: it has none here"
        )
        if np.isnan(line.standard_error):
            return f"{told}."
        times = f"{_ratio(line.lower)} to {_ratio(line.upper)} times"
        return f"{told}, and the odds might be {times} as high a standard deviation up."
    what = line.driver if "=" in line.driver else f"{line.driver} one standard deviation higher"
    times = f"{_ratio(line.odds_ratio)} times"
    if not np.isnan(line.standard_error):
        times += f" ({_ratio(line.lower)} to {_ratio(line.upper)})"
    told = f"With {what}, the odds that {line.column} is lost are {times} as high."
    if not line.told:
        told += " The graph did not say so: the rows asked for it."
    if line.known < settings.least_known:
        told += (
            f" The rows hardly tell: {100 * (1 - line.known):.0f} % of what is known of it was "
        )
        told += "believed before."
    return f"{told} {line.doubt}".rstrip()
