"""A model with blocks: any order writes the same law, effects are those of regression."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from misscnf import MissCNF, MissCNFImputer, check
from misscnf.errors import InputError
from misscnf.graph import CausalGraph

GRAPH, BLOCKS = "w -> t; w, t -> y", {"w": ["a", "b", "c"]}
EVERY = {"selection.arrow_penalty": 0.0}


def table(n=400, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=n)
    b = a + rng.normal(size=n)
    c = a - b + rng.normal(size=n)
    t = a + b + rng.normal(size=n)
    y = 2 * t + a + b - c + rng.normal(size=n)
    return pd.DataFrame({"a": a, "b": b, "c": c, "t": t, "y": y})


def holed(df, seed=1):
    rng = np.random.default_rng(seed)
    some = df.copy()
    for name, rate in {"a": 0.3, "b": 0.1, "y": 0.2}.items():
        some.loc[rng.random(len(df)) < rate, name] = np.nan
    return some


def fitted(df, graph=GRAPH, blocks=BLOCKS, **given):
    return MissCNF(graph, "linear", blocks=blocks, progress=False, **given).fit(df)


def test_any_order_inside_a_block_writes_the_same_law():
    for df in (table(), holed(table())):
        found = []
        for order in ("abc", "cab", "bca"):  # the same holes, so ties and holes decide otherwise
            names = dict(zip("abc", order, strict=True))
            renamed = df.rename(columns=names)
            if df.isna().any().any():
                graph = "t <- a, b, c; y <- a, b, c, t; " + "; ".join(
                    f"{order[i]} -> {order[j]}" for i in range(3) for j in range(i + 1, 3)
                )
                found.append(MissCNF(graph, "linear", progress=False).fit(df).score(df))
            else:
                found.append(fitted(renamed, settings=EVERY).score(renamed))
        assert np.ptp(found) < 1e-6
        assert abs(fitted(df, settings=EVERY).score(df) - found[0]) < 1e-6


def test_the_effect_is_that_of_least_squares_where_nothing_is_missing():
    df = table()
    x = np.column_stack([np.ones(len(df)), df[["t", "a", "b", "c"]]])
    slope = np.linalg.lstsq(x, df["y"], rcond=None)[0][1]
    effect = fitted(df).effect("y", do={"t": 1.0}, versus={"t": 0.0})
    assert effect.population == "rows"
    assert effect.estimate == pytest.approx(slope, abs=1e-6)
    assert effect.standard_error < 1e-9  # rows are what they are: there is nothing to draw


def test_interventions_on_members_are_refused_by_name():
    model = fitted(holed(table()))
    df = holed(table())
    for ask in (
        lambda: model.effect("y", do={"a": 1.0}),
        lambda: model.effect("y", do={"t": 1.0}, versus={"b": 1.0}),
        lambda: model.curve("y", "c", [0.0, 1.0]),
        lambda: model.counterfactual(df, do={"a": 0.0}),
        lambda: model.sample(5, do={"a": 0.0}),
        lambda: model.log_prob(df, do={"b": 0.0}),
        lambda: model.check(df, effect=("a", "y")),
    ):
        with pytest.raises(InputError, match="is a member of the block 'w'"):
            ask()
    assert len(model.counterfactual(df.head(3), do={"t": lambda a: a})) == 3  # rules may read them


def test_a_model_with_blocks_is_saved_cloned_and_fitted_anew(tmp_path):
    df = holed(table())
    model = fitted(df)
    assert list(model.blocks_["w"]) == ["c", "b", "a"]  # the most complete first
    assert model.blocks_["w"]["b"] == ("c",)
    model.save(tmp_path / "model")
    loaded = MissCNF.load(tmp_path / "model")
    assert (loaded.graph_, loaded.blocks_) == (model.graph_, model.blocks_)
    assert loaded.score(df) == model.score(df)
    with pytest.raises(InputError, match="pass it as data="):
        loaded.effect("y", do={"t": 1.0}, versus={"t": 0.0})
    asked = {"do": {"t": 1.0}, "versus": {"t": 0.0}, "interval": 0.9}
    assert loaded.effect("y", **asked, data=df) == model.effect("y", **asked)
    again = clone(loaded)
    assert again.get_params()["blocks"] == {"w": ("a", "b", "c")}
    assert again.fit(df).graph_ == model.graph_  # the arrows inside are chosen anew
    assert clone(model).get_params()["blocks"] == BLOCKS
    text = MissCNF("{a, b, c} -> t; {a, b, c}, t -> y", "linear", progress=False).fit(df)
    assert text.score(df) == model.score(df)


def test_columns_of_an_array_and_tiers():
    df = table()
    tiers = CausalGraph.from_tiers([["a", "b", "c"], "t", "y"])
    assert fitted(df, tiers, None).score(df) == pytest.approx(fitted(df).score(df), abs=1e-9)
    rows = df.to_numpy()
    model = fitted(rows, "w -> x3; w, x3 -> x4", {"w": ["x0", "x1", "x2"]})
    assert model.score(rows) == pytest.approx(fitted(df).score(df), abs=1e-9)


def test_an_imputer_keeps_blocks_without_their_constants():
    df = holed(table()).assign(k=1.0)
    graph = CausalGraph.read("{a, b, c, k} -> t; {a, b, c, k}, t -> y")
    imputer = MissCNFImputer(graph, draws=2).fit(df)
    assert set(imputer.model_.graph_.blocks["{a, b, c, …}"]) == {"a", "b", "c"}
    assert imputer.model_.graph_.edges_inside


def test_check_takes_blocks_and_tests_nothing_inside():
    df = table(2000)
    apart = check(df, "a -> t; b -> t; c -> t; t -> y")
    assert {(line.node, line.other) for line in apart.contradictions} >= {("b", "a"), ("c", "b")}
    report = check(df, GRAPH, blocks=BLOCKS)
    assert not report.contradictions
    assert report.to_dict()["blocks"] == BLOCKS
    causes = set(report.consequences["treatment"].dropna())
    assert causes == {"t"}  # nobody asks what a member does
