"""The transformer: scikit-learn's checks, what it fills in, and what it leaves alone."""

import logging

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import estimator_checks

from misscnf import InputError, MissCNF, MissCNFImputer


def table(rows=300, seed=0):
    """x → y, x → z, all numbers, labelled rows."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = 2 * x + rng.normal(size=rows)
    z = 10 - x + 0.5 * rng.normal(size=rows)
    return pd.DataFrame({"x": x, "y": y, "z": z}, index=[f"row {j // 2}" for j in range(rows)])


def holes(df, share=0.2, seed=1):
    return df.mask(np.random.default_rng(seed).random(df.shape) < share)


def mixed(rows=120, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=rows)
    level = np.digitize(z + rng.normal(size=rows), [-0.7, 0.7])
    df = pd.DataFrame(
        {
            "small": (z + rng.normal(size=rows)).astype(np.float32),
            "whole": pd.array(np.rint(100 * z + 30 * rng.normal(size=rows)), dtype="Int64"),
            "yes": pd.array(z + rng.normal(size=rows) > 0, dtype="boolean"),
            "text": np.array(["low", "mid", "high"])[level],
            "stage": pd.Categorical.from_codes(level, ["I", "II", "III"], ordered=True),
            "one": "same",
        }
    )
    return df.apply(lambda column: column.mask(rng.random(rows) < 0.15))


@pytest.mark.slow
@estimator_checks.parametrize_with_checks([MissCNFImputer(), MissCNFImputer(draw="sample")])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
@pytest.mark.parametrize(
    "name",
    [
        "check_dataframe_column_names_consistency",
        "check_transformer_get_feature_names_out",
        "check_transformer_get_feature_names_out_pandas",
        "check_set_output_transform",
        "check_set_output_transform_pandas",
        "check_global_output_transform_pandas",
    ],
)
def test_what_scikit_learn_asks_of_its_own_transformers(name):
    if not hasattr(estimator_checks, name):
        pytest.skip("not in this version of scikit-learn")
    getattr(estimator_checks, name)("MissCNFImputer", MissCNFImputer())


# ----------------------------------------------------------------------------------- values


@pytest.mark.parametrize("draw", ["mean", "sample"])
def test_observed_cells_are_untouched_and_no_hole_is_left(draw):
    df = holes(table())
    filled = MissCNFImputer(draw=draw).fit_transform(df)
    assert list(filled.columns) == ["x", "y", "z"]
    assert filled.index.equals(df.index)
    assert not filled.isna().any().any()
    seen = df.notna().to_numpy()
    assert (filled.to_numpy()[seen] == df.to_numpy()[seen]).all()


def test_the_mean_is_the_conditional_mean():
    """y given x and z in a normal law; 400 draws leave a 20th of the spread, 5 errors a 4th."""
    df = table()
    lost = df.copy()
    lost.iloc[:50, 1] = np.nan
    imputer = MissCNFImputer(draws=400).fit(lost)
    complete = lost.iloc[50:]
    fit = LinearRegression().fit(complete[["x", "z"]], complete["y"])
    spread = (complete["y"] - fit.predict(complete[["x", "z"]])).std()
    expected = fit.predict(df[["x", "z"]].iloc[:50])
    found = imputer.transform(lost)["y"].iloc[:50]
    assert np.abs(found - expected).max() < spread / 4
    assert np.abs((found - expected).mean()) < spread / 20


def test_a_sample_keeps_the_spread_that_a_mean_loses():
    df = table(2000)
    lost = df.copy()
    lost.iloc[:1000, 1] = np.nan
    spread = {
        draw: MissCNFImputer(draw=draw).fit_transform(lost)["y"].iloc[:1000].std()
        for draw in ("mean", "sample")
    }
    assert spread["sample"] == pytest.approx(df["y"].std(), rel=0.07)
    assert spread["mean"] < 0.95 * df["y"].std()


def test_the_imputations_are_those_of_the_model():
    df = holes(table())
    filled = MissCNFImputer("x -> y; x -> z", draw="sample", seed=3).fit_transform(df)
    model = MissCNF("x -> y; x -> z", preset="linear", unseen="missing", progress=False, seed=3)
    incomplete = df[df.isna().any(axis=1).to_numpy()]
    expected = model.fit(df).sample(given=incomplete, seed=3)
    pd.testing.assert_frame_equal(
        filled[df.isna().any(axis=1).to_numpy()], expected[["x", "y", "z"]]
    )


def test_the_seed_decides():
    df = holes(table())
    first, again, other = (
        MissCNFImputer(draw="sample", seed=seed).fit_transform(df) for seed in (0, 0, 1)
    )
    pd.testing.assert_frame_equal(first, again)
    assert not first.equals(other)


def test_large_tables_are_drawn_in_parts_with_noise_of_their_own(monkeypatch):
    """Forty copies of one row get forty means, which differ by their draws alone."""
    df = table()
    imputer = MissCNFImputer().fit(df)
    copies = pd.concat([df.iloc[[0]].assign(y=np.nan)] * 40)
    monkeypatch.setattr(MissCNFImputer, "_cells_at_once", 3000)  # 10 rows of 3 cells, 100 draws
    found = imputer.transform(copies)["y"]
    assert found.nunique() == 40
    assert found.std() < 0.3  # a 10th of the conditional spread of about 1


# ----------------------------------------------------------------------------------- kinds


@pytest.fixture(scope="module")
def filled_mixed():
    df = mixed()
    imputer = MissCNFImputer(draws=50).fit(df)
    return df, imputer, imputer.transform(df)


@pytest.mark.slow
def test_kinds_and_dtypes_are_kept(filled_mixed):
    df, imputer, filled = filled_mixed
    pd.testing.assert_series_equal(filled.dtypes, df.dtypes)
    assert not filled.isna().any().any()
    for name in df:
        seen = df[name].notna()
        pd.testing.assert_series_equal(filled[name][seen], df[name][seen])
    assert imputer.constants_ == {"one": "same"}
    assert set(filled["one"]) == {"same"}


def test_a_level_is_the_most_probable_one(filled_mixed):
    """Against the frequencies of 2000 other draws; a near tie may go either way."""
    df, imputer, filled = filled_mixed
    lost = df["text"].isna().to_numpy()
    nodes = list(imputer.model_.graph_.nodes)
    drawn = imputer.model_.sample(2000, given=df.loc[lost, nodes], seed=99)["text"]
    shares = drawn.groupby(level="row").value_counts(normalize=True).unstack(fill_value=0.0)
    for row, found in filled.loc[lost, "text"].items():
        assert shares.loc[row, found] > shares.loc[row].max() - 0.2


def test_a_level_that_was_never_seen_is_left_as_it_is(filled_mixed):
    df, imputer, _ = filled_mixed
    new = df.head(3).copy()
    new.loc[0, "text"], new.loc[0, "small"] = "other", np.nan
    found = imputer.transform(new)
    assert found.loc[0, "text"] == "other"
    assert not found.isna().any().any()


def test_arrays_of_objects_come_back_as_arrays_of_objects():
    rng = np.random.default_rng(0)
    array = np.empty((80, 2), dtype=object)
    array[:, 0] = rng.normal(size=80)
    array[:, 1] = np.where(rng.random(80) < 0.5, "yes", "no")
    array[3, 1] = array[4, 0] = None
    found = MissCNFImputer(draws=10).fit_transform(array)
    assert found.dtype == object
    assert found[3, 1] in ("yes", "no")
    assert isinstance(found[4, 0], float)


def test_counts_are_whole():
    rng = np.random.default_rng(0)
    counts = rng.poisson(4.0, size=200).astype(float)
    counts[:20] = np.nan
    found = MissCNFImputer().fit_transform(pd.DataFrame({"visits": counts}))["visits"]
    assert (found == np.rint(found)).all()
    assert found.head(20).between(3, 5).all()


# ----------------------------------------------------------------------------------- graphs


def test_columns_outside_the_graph_pass_through_whole_or_are_refused():
    df = holes(table()).assign(name="someone", extra=1.5)
    df.iloc[0, -1] = 2.5
    imputer = MissCNFImputer("x -> y; x -> z").fit(df)
    found = imputer.transform(df)
    assert list(found.columns) == list(df.columns)
    assert (found["extra"] == df["extra"]).all()
    df.iloc[5, -1] = np.nan
    for ask in (imputer.transform, MissCNFImputer("x -> y; x -> z").fit):
        with pytest.raises(InputError, match="does not name 'extra', and there are holes"):
            ask(df)


def test_a_constant_column_is_filled_with_its_value():
    df = holes(table()).assign(same=3.0, sum=0.1 + 0.2)
    df.iloc[7, 3:] = np.nan
    df.iloc[8, 4] = 0.3  # within the rounding of the others
    for graph in ("ordered", "x -> y; x -> z; same -> x; sum -> x"):
        found = MissCNFImputer(graph).fit_transform(df)
        assert (found["same"] == 3.0).all()
        assert found["sum"].iloc[7] == df["sum"].iloc[0]
    only = MissCNFImputer().fit_transform(np.array([[1.0], [np.nan]]))
    assert only.tolist() == [[1.0], [1.0]]


def test_no_complete_row_is_needed(caplog):
    df = table()
    df.iloc[::2, 0] = np.nan
    df.iloc[1::2, 2] = np.nan
    with caplog.at_level(logging.WARNING, "misscnf"):
        assert not MissCNFImputer().fit_transform(df).isna().any().any()
    assert "No row shows" in caplog.text


# ----------------------------------------------------------------------------------- at work


@pytest.mark.slow
def test_pipelines_column_transformers_and_cross_validation():
    rng = np.random.default_rng(0)
    df = table()
    target = (df["x"] + df["y"] + 0.1 * rng.normal(size=len(df))).to_numpy()
    df = holes(df).assign(group=np.where(rng.random(len(df)) < 0.5, "a", "b"))
    pipeline = make_pipeline(
        make_column_transformer(
            (make_pipeline(MissCNFImputer(), StandardScaler()), ["x", "y", "z"]),
            (OneHotEncoder(), ["group"]),
        ),
        LinearRegression(),
    )
    scores = cross_val_score(pipeline, df, target, cv=3)
    assert scores.min() > 0.85
    pipeline.fit(df, target)
    assert list(pipeline[:-1].get_feature_names_out())[:3] == [
        "pipeline__x",
        "pipeline__y",
        "pipeline__z",
    ]


def test_set_output_makes_frames_of_arrays():
    found = (
        MissCNFImputer().set_output(transform="pandas").fit_transform(holes(table()).to_numpy())
    )
    assert list(found.columns) == ["x0", "x1", "x2"]
    plain = MissCNFImputer().fit_transform(holes(table()).to_numpy())
    assert isinstance(plain, np.ndarray)
    np.testing.assert_array_equal(found, plain)


def test_names_that_are_numbers_come_back():
    df = holes(table()).set_axis([0, 1, 2], axis=1)
    assert list(MissCNFImputer().fit_transform(df).columns) == [0, 1, 2]


def test_kinds_are_asked_for():
    df = holes(pd.DataFrame({"a": np.arange(60) % 3, "b": np.arange(60.0)}))
    assert list(MissCNFImputer().fit(df).model_.kinds_["kind"]) == ["ordinal", "continuous"]
    asked = MissCNFImputer(kinds={"a": "continuous"}).fit(df.assign(c=1.0))
    assert list(asked.model_.kinds_["kind"]) == ["continuous"] * 2


BAD = {
    "draw": (lambda df: MissCNFImputer(draw="median").fit(df), "'mean' or 'sample'"),
    "draws": (lambda df: MissCNFImputer(draws=0).fit(df), "at least 1; got 0"),
    "empty column": (lambda df: MissCNFImputer().fit(df.assign(x=np.nan)), "'x' has no value"),
    "path": (lambda df: MissCNFImputer().fit("table.csv"), "not the path"),
    "twice": (lambda df: MissCNFImputer().fit(df.set_axis(list("aab"), axis=1)), "named 'a'"),
    "no rows": (lambda df: MissCNFImputer().fit(df.head(0)), "no rows"),
    "unknown node": (lambda df: MissCNFImputer("x -> w").fit(df.dropna()), "'w' has no column"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_choices_get_one_sentence(name):
    ask, fragment = BAD[name]
    with pytest.raises(InputError, match=fragment) as caught:
        ask(holes(table()))
    assert "\n" not in str(caught.value)


def test_cloning_keeps_the_parameters():
    imputer = MissCNFImputer("x -> y", draw="sample", seed=4)
    assert clone(imputer).get_params() == imputer.get_params()
