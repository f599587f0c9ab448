"""Tables that make equations singular: a fit goes on or refuses in words, as do its answers."""

import numpy as np
import pandas as pd
import pytest

from misscnf import InputError, MissCNF
from misscnf.errors import FitError, solvable
from misscnf.identification import check

GRAPH = "x -> t; x -> y; t -> y"


def confounded(rng, rows=80):
    x = rng.normal(size=rows)
    t = (rng.random(rows) < 1 / (1 + np.exp(-x))).astype(float)
    return pd.DataFrame({"x": x, "t": t, "y": x + t + rng.normal(size=rows)})


def with_holes(df, rng, share=0.3):
    return df.mask(rng.random(df.shape) < share)


def nearly_lost(rng):
    df = confounded(rng, 1000)
    return df.assign(x=df.x.where(rng.random(1000) > 0.998)), GRAPH


def copies(rng):
    df = confounded(rng)
    return with_holes(df.assign(x2=df.x), rng), f"{GRAPH}; x2 -> t; x2 -> y"


def sums(rng):
    df = confounded(rng).assign(a=rng.normal(size=80))
    df = df.assign(b=df.x + df.a, c=df.a)
    return with_holes(
        df, rng, 0.2
    ), "x -> b; a -> b; b -> c; x -> y; a -> y; b -> y; c -> y; t -> y"


def determined(rng):
    df = confounded(rng)
    return with_holes(df.assign(y=2 * df.x), rng), GRAPH


def two_rows(rng):
    return pd.DataFrame({"x": [0.0, 1.0], "t": [0.0, 1.0], "y": [1.0, 3.0]}), GRAPH


def never_together(rng):
    return pd.DataFrame({"x": [1, 2, np.nan], "t": [0, np.nan, 1], "y": [np.nan, 2, 3]}), GRAPH


def almost_constant(rng):
    df = confounded(rng)
    return df.assign(x=np.where(df.index == 0, 1 + 1e-12, 1.0)), GRAPH


def smaller_than_its_square(rng):
    df = confounded(rng)
    return with_holes(df.assign(x=1e-200 * df.x), rng), GRAPH


@pytest.mark.parametrize(
    "make",
    [
        nearly_lost,
        copies,
        sums,
        determined,
        two_rows,
        never_together,
        almost_constant,
        smaller_than_its_square,
    ],
)
def test_a_table_is_fitted_or_refused_in_words(make):
    df, graph = make(np.random.default_rng(0))
    asked = {"do": {"t": 1}, "versus": {"t": 0}, "draws": 500}
    try:
        check(df, graph)
        model = MissCNF(graph, preset="linear", progress=False).fit(df)
        effect = model.effect("y", **asked, interval=0.9, replicates=10)
        model.effect("y", **asked, interval=0.9, replicates=10, population="rows")
        completed = model.impute(df)
    except InputError:
        return
    assert np.isfinite(effect.estimate)
    assert effect.doubts if effect.interval is None else np.isfinite(effect.interval).all()
    assert np.isfinite(completed[list(model.graph_.nodes)].to_numpy(float)).all()


def test_a_matrix_without_an_inverse_is_said_in_words():
    with pytest.raises(FitError, match="have no solution"), solvable():
        np.linalg.inv(np.zeros((2, 2)))
    with pytest.raises(RuntimeError, match="ours"), solvable():
        raise RuntimeError("ours")
