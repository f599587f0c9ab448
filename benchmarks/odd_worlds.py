r"""Odd tables: what real files hold, each with a question whose true answer is known.

Most are variations of one world, x → t, y and t → y, with 20 % of x and of y lost. Nothing is told
of the columns unless a user would have to. `WORLDS` has them by name; `odd_tables.py` judges.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from scipy import special, stats

__all__ = ["Odd", "WORLDS"]

Rng = np.random.Generator
LOST = 0.2
"""The share of x and of y that is lost where nothing else is said."""


@dataclass(frozen=True)
class Odd:
    """A table that is drawn anew for each seed, and a question with its true answer."""

    draw: Callable[[Rng], pd.DataFrame]
    truth: float
    graph: str = "x -> t; x, t -> y"
    outcome: str = "y"
    do: dict[str, Any] = field(default_factory=lambda: {"t": 1})
    versus: dict[str, Any] = field(default_factory=lambda: {"t": 0})
    ask: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `effect`."""
    kinds: dict[str, Any] = field(default_factory=dict)
    """What is told of the columns."""
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)
    """What no draw may leave, both ends included; few values and levels are held anyway."""
    whole: tuple[str, ...] = ()
    """Columns whose draws are whole numbers."""
    beyond: tuple[str, ...] = ()
    """Open verdicts that say all that anybody could say: no table can show what is wrong here."""
    measure: str = "estimate"
    """Or "risk_ratio": which number of the answer is held against the truth."""
    plain: bool = False
    """Nothing is odd: a verdict against the answer is a false alarm."""


def normal_mean(function: Callable[[np.ndarray], np.ndarray]) -> float:
    """Returns E[f(Z)] of a standard normal number, by 4,000 equal steps of its quantiles."""
    steps = (np.arange(4000) + 0.5) / 4000
    return float(np.mean(function(stats.norm.ppf(steps))))


def lose(rng: Rng, df: pd.DataFrame, x: float = LOST, y: float = LOST) -> pd.DataFrame:
    """Loses x at random, and y at random given the treatment."""
    df = df.copy()
    if x:
        df["x"] = df["x"].mask(rng.random(len(df)) < x)
    if y:
        code = pd.Series(pd.factorize(df["t"], sort=True)[0], index=df.index, dtype=float)
        tilt = 0.5 * np.sign(code - code.mean()) if df["t"].notna().all() else 0.0
        df["y"] = df["y"].mask(rng.random(len(df)) < special.expit(np.log(y / (1 - y)) + tilt))
    return df


def confounded(
    outcome: Callable[[Rng, np.ndarray, np.ndarray], np.ndarray],
    n: int = 1000,
    overlap: float = 0.8,
    **lost: float,
) -> Callable[[Rng], pd.DataFrame]:
    """Returns x ~ N(0, 1), t ~ Bernoulli(σ(overlap · x)), and y as the function has it."""

    def draw(rng: Rng) -> pd.DataFrame:
        x = rng.normal(size=n)
        t = (rng.random(n) < special.expit(overlap * x)) * 1
        return lose(rng, pd.DataFrame({"x": x, "t": t, "y": outcome(rng, x, t)}), **lost)

    return draw


def noisy(noise: Callable[[Rng, np.ndarray], np.ndarray]) -> Callable:
    """Returns y = t + x + noise(rng, x)."""
    return lambda rng, x, t: t + x + noise(rng, x)


def gaussian(rng: Rng, x: np.ndarray) -> np.ndarray:
    """Draws N(0, 1)."""
    return rng.normal(size=len(x))


linear = noisy(gaussian)


def spoilt(column: str, spoil: Callable[[Rng, pd.Series], pd.Series], n: int = 2000) -> Callable:
    """Returns the linear world with one column spoilt after the fact."""

    def draw(rng: Rng) -> pd.DataFrame:
        df = confounded(linear, n)(rng)
        df[column] = spoil(rng, df[column])
        return df

    return draw


def typing_error(rng: Rng, column: pd.Series) -> pd.Series:
    """Puts 1e6 into one seen cell."""
    at = rng.choice(np.flatnonzero(column.notna()))
    return column.where(np.arange(len(column)) != at, 1e6)


def coded(code: float, scale: float, centre: float) -> Callable:
    """Returns what gives a column its units, and writes a code for 3 % of its values."""

    def spoil(rng: Rng, column: pd.Series) -> pd.Series:
        return (centre + scale * column).round(1).mask(rng.random(len(column)) < 0.03, code)

    return spoil


def scaled(factor: float) -> Callable[[Rng], pd.DataFrame]:
    """Returns the linear world with x and y in other units."""

    def draw(rng: Rng) -> pd.DataFrame:
        df = confounded(linear)(rng)
        return df.assign(x=df["x"] * factor, y=df["y"] * factor)

    return draw


def lost_nearly_whole(rng: Rng, *, binary: bool) -> pd.DataFrame:
    """Loses the confounder in 99.9 % of 5,000 rows."""
    n = 5000
    x = rng.normal(size=n)
    t = (rng.random(n) < special.expit(x)) * 1 if binary else x + rng.normal(size=n)
    return lose(rng, pd.DataFrame({"x": x, "t": t, "y": t + x + rng.normal(size=n)}), 0.999, 0)


def zeros(rng: Rng, x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Draws zeros in about 70 % and a log-normal rest."""
    some = rng.random(len(x)) < special.expit(-1.4 + 0.8 * t + 0.5 * x)
    return np.where(some, np.exp(0.8 + 0.3 * t + 0.2 * x + 0.7 * rng.normal(size=len(x))), 0.0)


def mean_of_zeros(t: int) -> float:
    """Returns E[y | do(t)] of `zeros`."""
    return normal_mean(
        lambda x: special.expit(-1.4 + 0.8 * t + 0.5 * x) * np.exp(0.8 + 0.3 * t + 0.2 * x + 0.245)
    )


def share(rng: Rng, x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Draws a share: 0 in some rows, 1 in others, a beta law of mean m in the rest."""
    zero, one, m = parts_of_share(x, t)
    which, rest = rng.random(len(x)), rng.beta(4 * m, 4 * (1 - m))
    return np.where(which < zero, 0.0, np.where(which > 1 - one, 1.0, rest))


def parts_of_share(x: np.ndarray, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the chance of 0, that of 1, and the mean of the rest."""
    return (
        special.expit(-1.5 - 0.5 * x - t),
        special.expit(-2.5 + 0.5 * x + t),
        special.expit(0.5 * x + 0.8 * t - 0.4),
    )


def mean_of_share(t: int) -> float:
    """Returns E[y | do(t)] of `share`."""

    def mean(x: np.ndarray) -> np.ndarray:
        zero, one, m = parts_of_share(x, t)
        return one + (1 - zero - one) * m

    return normal_mean(mean)


def clipped(rng: Rng, x: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Clips an outcome to [0, 1]."""
    return np.clip(0.5 + 0.3 * t + 0.3 * x + 0.3 * rng.normal(size=len(x)), 0, 1)


def mean_of_clipped(t: int) -> float:
    """Returns E[y | do(t)] of `clipped`: a normal number of variance 0.18, clipped."""
    return normal_mean(lambda z: np.clip(0.5 + 0.3 * t + np.sqrt(0.18) * z, 0, 1))


def along(
    curve: Callable[[np.ndarray], np.ndarray], noise: float = 0.3, n: int = 2000
) -> Callable:
    """Returns x → t, both numbers, and y = curve(t) + x/2 + noise."""

    def draw(rng: Rng) -> pd.DataFrame:
        x = rng.normal(size=n)
        t = 0.5 * x + np.sqrt(0.75) * rng.normal(size=n)
        y = curve(t) + 0.5 * x + noise * rng.normal(size=n)
        return lose(rng, pd.DataFrame({"x": x, "t": t, "y": y}))

    return draw


def rare(rng: Rng) -> pd.DataFrame:
    """Draws a trial of 1,000 with three events at the mean: 4.5 against 1.5 in 1,000."""
    t = rng.integers(0, 2, 1000)
    while True:
        y = (rng.random(1000) < np.where(t, 0.0045, 0.0015)) * 1
        if y.sum() >= 1:  # a table without any event is another table: its outcome is constant
            return pd.DataFrame({"t": t, "y": y})


def none_of_sixteen(rng: Rng) -> pd.DataFrame:
    """Draws 16 treated without an event at a risk of 5 %, and 24 others at 30 %."""
    others = (rng.random(24) < 0.3) * 1
    others[:2] = 0, 1  # two levels
    return pd.DataFrame({"t": [1] * 16 + [0] * 24, "y": [0] * 16 + list(others)})


def in_groups(n: int, effects: tuple[float, float]) -> Callable[[Rng], pd.DataFrame]:
    """Returns a trial whose effect differs by group."""

    def draw(rng: Rng) -> pd.DataFrame:
        g, t = rng.integers(0, 2, n), rng.integers(0, 2, n)
        y = 0.5 * g + np.array(effects)[g] * t + rng.normal(size=n)
        return lose(rng, pd.DataFrame({"g": g, "t": t, "y": y}), x=0)

    return draw


def correlated(rng: Rng) -> pd.DataFrame:
    """Draws eight confounders that share a factor; each has 30 % holes."""
    n, d = 1500, 8
    factor = rng.normal(size=n)
    w = 0.95 * factor[:, None] + np.sqrt(1 - 0.95**2) * rng.normal(size=(n, d))
    score = w.mean(axis=1)
    t = (rng.random(n) < special.expit(1.5 * score)) * 1
    df = pd.DataFrame(w, columns=[f"w{i}" for i in range(d)]).mask(rng.random((n, d)) < 0.3)
    return df.assign(t=t, y=t + 2 * score + rng.normal(size=n))


def beside(**more: Callable[[Rng, pd.DataFrame], Any]) -> Callable[[Rng], pd.DataFrame]:
    """Returns the linear world with further columns."""

    def draw(rng: Rng) -> pd.DataFrame:
        df = confounded(linear, x=0)(rng)
        for name, make in more.items():
            df[name] = make(rng, df)
        return df

    return draw


def separated(rng: Rng) -> pd.DataFrame:
    """Draws an outcome that x and t decide."""
    df = confounded(lambda rng, x, t: (x + t > 0.5) * 1, 600, x=0, y=0)(rng)
    return df.assign(y=df["y"].astype(float).mask(rng.random(600) < LOST))


def sites(levels: int, n: int) -> Callable[[Rng], pd.DataFrame]:
    """Returns a confounder of many levels, whose sizes fall off; the last is seen once."""

    def draw(rng: Rng) -> pd.DataFrame:
        chance = 1 / np.arange(3, levels + 2)
        site = rng.choice(levels - 1, n, p=chance / chance.sum())
        site[0] = levels - 1
        level = np.sin(np.arange(levels))
        t = (rng.random(n) < special.expit(level[site])) * 1
        y = t + level[site] + rng.normal(size=n)
        names = np.array([f"site {k}" for k in range(levels)])
        return lose(rng, pd.DataFrame({"x": names[site], "t": t, "y": y}), x=0.1)

    return draw


def one_complete(rng: Rng) -> pd.DataFrame:
    """Loses one cell of each row but one."""
    df = confounded(linear, 300, x=0, y=0)(rng).astype(float)
    which = rng.integers(0, 3, 300)
    which[0] = 3
    return df.mask(which[:, None] == np.arange(3))


def visits(rng: Rng) -> pd.DataFrame:
    """Draws a trial of three visits that those who do badly leave."""
    n = 800
    t, a = rng.integers(0, 2, n), rng.normal(size=n)
    b = 0.7 * a + 0.5 * t + 0.7 * rng.normal(size=n)
    c = 0.7 * b + 0.5 * t + 0.7 * rng.normal(size=n)
    left = rng.random(n) < special.expit(-1.5 + 1.2 * a)
    gone = left | (rng.random(n) < special.expit(-1.5 + 1.2 * b))
    return pd.DataFrame(
        {"t": t, "a": a, "b": np.where(left, np.nan, b), "y": np.where(gone, np.nan, c)}
    )


def self_masked(rng: Rng) -> pd.DataFrame:
    """Loses high outcomes because they are high."""
    df = confounded(linear, y=0)(rng)
    return df.assign(y=df["y"].mask(rng.random(len(df)) < special.expit(1.5 * df["y"] - 1)))


def selected(rng: Rng) -> pd.DataFrame:
    """Keeps rows with high outcomes only."""
    df = confounded(linear, 2500, y=0)(rng)
    return df[rng.random(len(df)) < special.expit(2 * df["y"])].reset_index(drop=True)


def collider(rng: Rng) -> pd.DataFrame:
    """Draws a consequence of t and y in the place of a confounder."""
    t = rng.integers(0, 2, 1000)
    y = t + rng.normal(size=1000)
    return lose(rng, pd.DataFrame({"x": t + y + rng.normal(size=1000), "t": t, "y": y}))


def exclusive(rng: Rng) -> pd.DataFrame:
    """Draws y high where exactly one of g and t is 1."""
    g, t = rng.integers(0, 2, 800), rng.integers(0, 2, 800)
    return lose(
        rng, pd.DataFrame({"g": g, "t": t, "y": 2.0 * (g ^ t) + rng.normal(size=800)}), x=0
    )


def arm_lost(rng: Rng) -> pd.DataFrame:
    """Loses the outcome of everybody who was treated."""
    df = confounded(linear)(rng)
    return df.assign(y=df["y"].mask(df["t"] == 1))


def as_text(rng: Rng) -> pd.DataFrame:
    """Writes whole numbers as text."""
    df = confounded(lambda rng, x, t: np.round(20 + 5 * (t + x + gaussian(rng, x))))(rng)
    return df.assign(y=[None if np.isnan(v) else str(int(v)) for v in df["y"]])


def in_words(rng: Rng) -> pd.DataFrame:
    """Writes the treatment as yes and no."""
    df = confounded(linear)(rng)
    return df.assign(t=np.where(df["t"] == 1, "yes", "no"))


def mixed(rng: Rng) -> pd.DataFrame:
    """Draws sex, age → stage → t → y: every kind, and nothing odd."""
    n = 1200
    sex, x = rng.choice(["f", "m"], n), rng.normal(size=n)
    stage = np.searchsorted([-1.0, 1.0], x + rng.logistic(size=n))
    t = (rng.random(n) < special.expit(stage - 1.0)) * 1
    y = t + 0.5 * stage + 0.3 * (sex == "m") + rng.normal(size=n)
    return lose(rng, pd.DataFrame({"sex": sex, "x": x, "stage": stage, "t": t, "y": y}), x=0.1)


def poisson_like(rng: Rng, x: np.ndarray, t: np.ndarray, shape: float | None) -> np.ndarray:
    """Draws counts of mean exp(0.5 + 0.5 t + 0.4 x), with gamma frailty of a shape."""
    frailty = 1.0 if shape is None else rng.gamma(shape, 1 / shape, len(x))
    return rng.poisson(frailty * np.exp(0.5 + 0.5 * t + 0.4 * x))


MEAN_COUNT = float(np.exp(0.5) * np.expm1(0.5) * np.exp(0.08))
"""E[y | do(1)] − E[y | do(0)] of `poisson_like`."""
CONTINUOUS = {"do": {"t": 1.0}, "versus": {"t": 0.0}}

WORLDS: dict[str, Odd] = {
    # Nothing odd: what is said against these is a false alarm.
    "plain": Odd(confounded(linear), 1.0, plain=True),
    "plain_mixed": Odd(mixed, 1.0, "x -> stage; stage -> t; stage, sex, t -> y", plain=True),
    "yes_and_no": Odd(in_words, 1.0, do={"t": "yes"}, versus={"t": "no"}, plain=True),
    # Little information.
    "lost_999": Odd(lambda rng: lost_nearly_whole(rng, binary=False), 1.0, **CONTINUOUS),
    "lost_999_binary": Odd(lambda rng: lost_nearly_whole(rng, binary=True), 1.0),
    "outcome_lost_95": Odd(confounded(linear, 1000, y=0.95), 1.0),
    "arm_lost": Odd(arm_lost, 1.0),
    "one_complete_row": Odd(one_complete, 1.0),
    "twenty_rows": Odd(confounded(linear, 20), 1.0),
    "forty_curved_rows": Odd(
        along(lambda t: np.exp(0.9 * t), n=40), float(np.expm1(0.9)), **CONTINUOUS
    ),
    "rare": Odd(rare, 0.003, "t -> y"),
    "rare_ratio": Odd(rare, 3.0, "t -> y", measure="risk_ratio"),
    "none_of_sixteen": Odd(none_of_sixteen, 0.05 - 0.3, "t -> y"),
    "deterministic": Odd(confounded(linear, overlap=8.0), 1.0),
    "little_overlap": Odd(
        confounded(lambda rng, x, t: t + x + 0.5 * x**2 + gaussian(rng, x), overlap=4.0), 1.0
    ),
    "monotone_dropout": Odd(visits, 0.85, "t, a -> b; t, b -> y"),
    # Columns that are not what they seem.
    "zeros": Odd(
        confounded(zeros, 2000), mean_of_zeros(1) - mean_of_zeros(0), bounds={"y": (0, np.inf)}
    ),
    "share": Odd(
        confounded(share, 2000), mean_of_share(1) - mean_of_share(0), bounds={"y": (0, 1)}
    ),
    "clipped": Odd(
        confounded(clipped, 2000), mean_of_clipped(1) - mean_of_clipped(0), bounds={"y": (0, 1)}
    ),
    "typing_error_x": Odd(spoilt("x", typing_error), 1.0),
    "typing_error_y": Odd(spoilt("y", typing_error), 1.0),
    "code_999": Odd(spoilt("x", coded(999, 10.0, 50.0)), 1.0),
    "code_0": Odd(spoilt("x", coded(0, 15.0, 120.0)), 1.0),
    "constant": Odd(beside(k=lambda rng, df: 7.0), 1.0, "x -> t; x, t, k -> y"),
    "duplicate": Odd(beside(x2=lambda rng, df: df["x"]), 1.0, "x, x2 -> t; x, x2, t -> y"),
    "collinear": Odd(
        beside(
            a=lambda rng, df: 0.5 * df["x"] + rng.normal(size=len(df)),
            b=lambda rng, df: df["x"] - df["a"],
        ),
        1.0,
        "x, a, b -> t; x, a, b, t -> y",
    ),
    "level_once": Odd(sites(5, 1000), 1.0),
    "levels_200": Odd(sites(200, 1000), 1.0, kinds={"x": "categorical"}),
    "huge": Odd(scaled(1e12), 1e12),
    "tiny": Odd(scaled(1e-12), 1e-12),
    "numbers_as_text": Odd(as_text, 5.0),
    "ties": Odd(
        confounded(lambda rng, x, t: np.round((t + x + gaussian(rng, x)) / 0.7) * 0.7), 1.0
    ),
    "rounded": Odd(
        confounded(lambda rng, x, t: np.round(37 + 0.4 * (t + x + gaussian(rng, x)), 0)), 0.4
    ),
    "ceiling": Odd(
        confounded(lambda rng, x, t: np.minimum(np.round(8 + t + x + gaussian(rng, x)), 10), 1500),
        normal_mean(lambda z: np.minimum(np.round(9 + np.sqrt(2) * z), 10))
        - normal_mean(lambda z: np.minimum(np.round(8 + np.sqrt(2) * z), 10)),
        bounds={"y": (-np.inf, 10)},
        whole=("y",),
    ),
    # Noise.
    "cauchy": Odd(confounded(noisy(lambda rng, x: rng.standard_cauchy(len(x)))), 1.0),
    "cauchy_median": Odd(
        confounded(noisy(lambda rng, x: rng.standard_cauchy(len(x)))),
        1.0,
        ask={"statistic": "median"},
    ),
    "t3": Odd(confounded(noisy(lambda rng, x: rng.standard_t(3, len(x)))), 1.0),
    "contaminated": Odd(
        confounded(
            noisy(lambda rng, x: gaussian(rng, x) * np.where(rng.random(len(x)) < 0.05, 20, 1))
        ),
        1.0,
    ),
    "skewed": Odd(confounded(noisy(lambda rng, x: np.exp(gaussian(rng, x)) - np.exp(0.5))), 1.0),
    "bimodal": Odd(
        confounded(noisy(lambda rng, x: rng.choice([-2, 2], len(x)) + 0.5 * gaussian(rng, x))), 1.0
    ),
    "heteroscedastic": Odd(
        confounded(noisy(lambda rng, x: gaussian(rng, x) * np.exp(0.6 * x))), 1.0
    ),
    "zero_inflated_count": Odd(
        confounded(lambda rng, x, t: poisson_like(rng, x, t, None) * (rng.random(len(x)) < 0.6)),
        0.6 * MEAN_COUNT,
        bounds={"y": (0, np.inf)},
        whole=("y",),
    ),
    "overdispersed_count": Odd(
        confounded(lambda rng, x, t: poisson_like(rng, x, t, 0.5)),
        MEAN_COUNT,
        bounds={"y": (0, np.inf)},
        whole=("y",),
    ),
    "separated": Odd(separated, float(stats.norm.cdf(0.5) - stats.norm.cdf(-0.5))),
    # Shapes.
    "sin12": Odd(
        along(lambda t: np.sin(12 * t)), 2.0, do={"t": np.pi / 24}, versus={"t": -np.pi / 24}
    ),
    "step": Odd(along(lambda t: 2.0 * (t > 0.3)), 2.0, do={"t": 0.4}, versus={"t": 0.2}),
    "u_shaped": Odd(along(lambda t: t**2), 1.0, **CONTINUOUS),
    "trial_in_groups": Odd(
        in_groups(1000, (0.35, 0.70)), 0.70, "g, t -> y", ask={"where": "g == 1"}
    ),
    "exclusive_or": Odd(exclusive, -2.0, "g, t -> y", ask={"where": "g == 1"}),
    "threshold_by_x": Odd(
        confounded(lambda rng, x, t: 2 * t * (x > 0) + x + gaussian(rng, x)), 1.0
    ),
    # A graph, or a way of losing values, that is not the true one.
    "drawn_independent": Odd(
        correlated,
        1.0,
        "; ".join(f"w{i} -> t; w{i} -> y" for i in range(8)) + "; t -> y",
    ),
    "self_masked": Odd(self_masked, 1.0, beyond=("Missing values",)),
    "selected": Odd(selected, 1.0, beyond=("The graph",)),
    "collider_drawn_as_cause": Odd(collider, 1.0, beyond=("The graph",)),
}
"""Every odd table by its name."""
