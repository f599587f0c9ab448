"""Every imputer keeps the contract; each does what its name says."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn.impute
from closed_forms import mice_curve
from misscnf_study.losses import ampute
from misscnf_study.rivals import (
    IMPUTERS,
    ByPath,
    ImpossibleError,
    Knn,
    Mean,
    Mice,
    MiceForest,
    MissForest,
    complete_rows,
    knn,
    load_imputer,
)
from misscnf_study.rivals.mice_forest import DonorForest
from misscnf_study.rivals.miss_forest import PRESETS
from misscnf_study.worlds import load_scm
from quick_rivals import QUICK
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import KNNImputer
from sklearn.linear_model import BayesianRidge

from misscnf import InputError

RATE = 0.4


def table_with_holes(rows, seed, name="fork_nlin"):
    world = load_scm(name)
    return ampute(world.sample(rows, seed), world.graph, "mcar", rate=RATE, seed=seed)


TRAIN, NEW = table_with_holes(80, 0), table_with_holes(30, 1)


@pytest.fixture(scope="module", params=QUICK)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def fitted(name):
    return QUICK[name]().fit(TRAIN, seed=5)


def bits(df):
    return df.to_numpy().view(np.int64)


# The laws.


@pytest.mark.parametrize("df", [TRAIN, NEW], ids=["train", "new"])
def test_observed_cells_are_untouched_and_nothing_is_missing(fitted, df):
    before = df.copy()
    done = fitted.complete(df)
    shown = df.notna().to_numpy()
    assert (bits(done)[shown] == bits(df)[shown]).all()
    assert np.isfinite(done.to_numpy()).all()
    assert done.columns.equals(df.columns)
    assert done.index.equals(df.index)
    pd.testing.assert_frame_equal(df, before)


def test_same_seed_same_answer(name, fitted):
    state = np.random.get_state()[1].copy()
    again = QUICK[name]().fit(TRAIN, seed=5)
    pd.testing.assert_frame_equal(again.complete(TRAIN), fitted.complete(TRAIN), check_exact=True)
    first = fitted.complete(NEW)
    fitted.complete(TRAIN)
    pd.testing.assert_frame_equal(fitted.complete(NEW), first, check_exact=True)
    assert (np.random.get_state()[1] == state).all()  # the global state is nobody's


@pytest.mark.slow
def test_seed_moves_what_is_drawn(name):
    one, other = (QUICK[name]().fit(TRAIN, seed=s).complete(TRAIN) for s in (0, 1))
    assert one.equals(other) == (name in {"mean", "knn"})


def test_single_row_is_filled_by_what_was_learned(fitted):
    done = fitted.complete(NEW.iloc[[0]].assign(x4=np.nan))["x4"].iloc[0]
    reach = TRAIN["x4"].max() - TRAIN["x4"].min()
    assert TRAIN["x4"].min() - reach < done < TRAIN["x4"].max() + reach


def test_complete_table_comes_back_as_it_is(fitted):
    whole = load_scm("fork_nlin").sample(5, 0)
    pd.testing.assert_frame_equal(fitted.complete(whole), whole, check_exact=True)
    assert fitted.complete(NEW.iloc[:0]).empty


def test_order_of_columns_and_index_are_the_tables_own(fitted):
    shuffled = NEW[["x3", "x1", "x4", "x2"]].set_index(pd.Index(range(100, 130)))
    done = fitted.complete(shuffled)
    assert done.columns.tolist() == ["x3", "x1", "x4", "x2"]
    assert done.index.equals(shuffled.index)
    expected = fitted.complete(NEW)[["x3", "x1", "x4", "x2"]]
    assert (done.to_numpy() == expected.to_numpy()).all()


def test_hole_in_a_column_that_had_none_is_filled(fitted):
    assert TRAIN["x1"].notna().all()
    done = fitted.complete(NEW.assign(x1=np.nan))
    assert np.isfinite(done.to_numpy()).all()


def test_learning_from_a_complete_table_is_enough(name):
    imputer = QUICK[name]().fit(load_scm("fork_nlin").sample(60, 0), seed=0)
    assert np.isfinite(imputer.complete(NEW).to_numpy()).all()


def test_row_without_any_value_and_table_of_one_column_are_filled(name, fitted):
    nothing = pd.DataFrame(np.nan, index=[0], columns=TRAIN.columns)
    assert np.isfinite(fitted.complete(nothing).to_numpy()).all()
    alone = TRAIN[["x3"]]
    done = QUICK[name]().fit(alone, seed=0).complete(alone)
    assert np.isfinite(done.to_numpy()).all()


def test_other_kinds_of_numbers_are_read(name):
    df = pd.DataFrame(
        {
            "whole": np.arange(40),
            "single": np.arange(40, dtype=np.float32) / 3,
            "nullable": pd.array([*range(39), None], dtype="Int64"),
            "flag": np.arange(40) % 2 == 0,
        }
    )
    df.loc[3, "single"] = np.nan
    done = QUICK[name]().fit(df, seed=0).complete(df)
    assert done["whole"].equals(df["whole"])
    assert done["flag"].equals(df["flag"])
    assert (done["single"].drop(3) == df["single"].drop(3)).all()
    assert done["nullable"].iloc[:39].tolist() == list(range(39))
    assert done.notna().all(axis=None)


def test_column_without_any_value_is_refused(name):
    with pytest.raises(ImpossibleError, match="no value of x3 is known"):
        QUICK[name]().fit(TRAIN.assign(x3=np.nan), seed=0)


def test_tables_that_cannot_be_read_are_refused(name, fitted):
    imputer = QUICK[name]()
    with pytest.raises(InputError, match="not fitted yet"):
        imputer.complete(TRAIN)
    with pytest.raises(InputError, match="learned from the columns x1, x2, x3, x4"):
        fitted.complete(TRAIN.drop(columns="x3"))
    with pytest.raises(InputError, match="'x2' is of type"):
        imputer.fit(TRAIN.assign(x2="text"), seed=0)
    with pytest.raises(InputError, match="infinite"):
        imputer.fit(TRAIN.assign(x2=np.inf), seed=0)
    with pytest.raises(InputError, match="name of its own"):
        imputer.fit(TRAIN.set_axis(["x1", "x1", "x3", "x4"], axis=1), seed=0)


# One by one.


def test_mean_is_the_mean_of_the_observed_cells():
    df = pd.DataFrame({"a": [1.0, np.nan, 5.0], "b": [0.0, 2.0, np.nan]})
    done = Mean().fit(df, seed=0).complete(df)
    assert done.to_numpy().tolist() == [[1.0, 0.0], [3.0, 2.0], [5.0, 1.0]]


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [100, 7])
def test_mice_is_the_call_of_scikit_learn_bit_for_bit(rounds):
    direct = sklearn.impute.IterativeImputer(
        BayesianRidge(),
        sample_posterior=True,
        max_iter=rounds,
        imputation_order="ascending",
        initial_strategy="mean",
        random_state=3,
    )
    expected = direct.fit(TRAIN.to_numpy()).transform(TRAIN.to_numpy())
    imputer = (Mice() if rounds == 100 else Mice(rounds)).fit(TRAIN, seed=3)
    assert (bits(imputer.complete(TRAIN)) == expected.view(np.int64)).all()


@pytest.mark.slow
def test_mice_draws_have_the_moments_of_the_closed_form():
    """40 tables: each of 4 coefficients is within 5 standard errors but 1 time in 20,000."""
    world, rate = load_scm("collider_nlin"), 0.6

    def features(x1, x2):
        return np.stack([np.ones_like(x1), x1, x2, x2**2], axis=-1)

    found = []
    for seed in range(40):
        df = ampute(world.sample(1000, seed), world.graph, "mcar", rate=rate, seed=seed)
        x1, x2, x3 = Mice(rounds=1).fit(df, seed).complete(df).to_numpy().T
        found.append(np.linalg.lstsq(features(x1, x2), x3, rcond=None)[0])
    error = np.std(found, axis=0, ddof=1) / np.sqrt(len(found))
    expected = mice_curve(world, rate, features)
    np.testing.assert_allclose(expected, [0.25 * rate, 0.05, 0.0, 0.25 * (1 - rate)], atol=1e-9)
    assert (np.abs(np.mean(found, axis=0) - expected) < 5 * error).all()


def test_knn_takes_the_nearest_rows_whatever_the_units():
    df = pd.DataFrame({"a": [0.0, 1.0, 10.0, 11.0, 10.4], "b": [1.0, 3.0, 50.0, 70.0, np.nan]})
    for table in (df, df.assign(a=df["a"] / 1e6)):
        done = Knn(neighbours=2).fit(table, seed=0).complete(table)
        assert done["b"].iloc[4] == pytest.approx(60.0)


def test_knn_in_pieces_is_knn(monkeypatch):
    centre, spread = TRAIN.mean(), TRAIN.std(ddof=0)
    z = ((TRAIN - centre) / spread).to_numpy()
    expected = centre.to_numpy() + spread.to_numpy() * KNNImputer().fit_transform(z)
    monkeypatch.setattr(knn, "MEGABYTES", 0.002)
    np.testing.assert_allclose(Knn().fit(TRAIN, seed=0).complete(TRAIN).to_numpy(), expected)


# MissForest.


def parabola(rows, seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=rows)
    whole = pd.DataFrame({"x": x, "y": x**2 + 0.1 * generator.normal(size=rows)})
    return whole, whole.assign(y=whole["y"].where(generator.random(rows) < 0.5))


@pytest.mark.parametrize("preset", PRESETS)
def test_miss_forest_beats_the_mean_where_lines_fail(preset):
    """Its error is 0.1 to 0.45 of the mean's, with a standard deviation of 0.06 over tables.

    So the bound of 0.75 is 5 of these away: it fails less than 1 time in a million.
    """
    whole, df = parabola(400, 0)
    imputer = MissForest(replace(PRESETS[preset], trees=20)).fit(df, seed=0)
    lost = df["y"].isna()
    bound = 0.75 * _error(Mean().fit(df, seed=0).complete(df), whole, lost)
    assert _error(imputer.complete(df), whole, lost) < bound
    assert _error(imputer.complete(df.assign(y=np.nan)), whole, lost) < bound  # as new rows


def _error(done, whole, lost):
    return np.sqrt(((done["y"] - whole["y"])[lost] ** 2).mean())


def plain_sweeps(df, sweeps, forest):
    """MissForest without its stopping rule: `forest(sweep, column)` makes each forest."""
    x, lost = df.fillna(df.mean()).to_numpy(), df.isna().to_numpy()
    for sweep in range(sweeps):
        for j in np.flatnonzero(lost.any(axis=0)):
            rest = np.delete(x, j, axis=1)
            model = forest(sweep, j).fit(rest[~lost[:, j]], x[~lost[:, j], j])
            x[lost[:, j], j] = model.predict(rest[lost[:, j]])
    return x


def test_miss_forest_of_the_paper_is_the_plain_loop_until_scores_stall():
    settings = replace(PRESETS["paper"], trees=6)
    imputer = MissForest(settings).fit(TRAIN, seed=2)
    assert 7 <= imputer._sweeps <= 100

    def forest(sweep, j):
        return RandomForestRegressor(6, max_depth=3, max_features="sqrt", random_state=2)

    expected = plain_sweeps(TRAIN, imputer._sweeps, forest)
    assert (imputer.complete(TRAIN).to_numpy() == expected).all()


def test_miss_forest_of_stekhoven_answers_with_the_sweep_before_the_change_grew():
    changes, completions = [], [TRAIN.fillna(TRAIN.mean()).to_numpy()]
    for sweeps in range(1, 11):
        settings = replace(PRESETS["stekhoven"], trees=6, sweeps=sweeps)
        after = MissForest(settings).fit(TRAIN, seed=2).complete(TRAIN).to_numpy()
        if (after == completions[-1]).all():
            break  # a further sweep was rejected
        changes.append(((after - completions[-1]) ** 2).sum() / (after**2).sum())
        completions.append(after)
    assert changes == sorted(changes, reverse=True)
    done = MissForest(replace(PRESETS["stekhoven"], trees=6)).fit(TRAIN, seed=2).complete(TRAIN)
    assert (done.to_numpy() == completions[-1]).all()


def test_miss_forest_presets_are_those_of_the_table():
    assert IMPUTERS["missforest"]().settings == PRESETS["paper"]
    assert IMPUTERS["missforest_stekhoven"]().settings == PRESETS["stekhoven"]
    with pytest.raises(InputError, match="presets are"):
        MissForest("best")


# MICE with forests.


def test_donors_are_drawn_as_often_as_trees_hold_them():
    """Each of 30 shares is within 5 standard errors: it fails 1 time in 58,000."""
    generator = np.random.default_rng(0)
    features, target = generator.normal(size=(30, 2)), np.arange(30.0)
    forest = DonorForest(features, target, trees=3, seed=0)
    row, times = np.array([[0.1, -0.2]]), 20_000
    leaves, leaf = forest._forest.apply(features), forest._forest.apply(row)
    chance = (leaves == leaf).sum(axis=1) / (leaves == leaf).sum()
    drawn = forest.draw(np.repeat(row, times, axis=0), generator)
    share = np.bincount(drawn.astype(int), minlength=30) / times
    assert (np.abs(share - chance) <= 5 * np.sqrt(chance * (1 - chance) / times)).all()
    assert 3 < (chance > 0).sum() < 30


def test_mice_forest_fills_with_values_that_were_seen():
    done = MiceForest().fit(TRAIN, seed=0).complete(NEW)
    for column in TRAIN:
        lost = NEW[column].isna()
        assert set(done.loc[lost, column]) <= set(TRAIN[column].dropna())


def test_mice_forest_keeps_the_spread_that_predictions_lose():
    """Y has noise of variance 1 around a parabola, and so have its draws; predictions have little.

    Over tables the variance of 500 draws is 0.95 with a standard deviation of 0.087 (40 tables
    measured), and the bounds are 5 of these away: it fails 1 time in 1.7 million.
    """
    generator = np.random.default_rng(0)
    x = generator.uniform(-1.0, 1.0, size=1000)
    df = pd.DataFrame({"x": x, "y": x**2 + generator.normal(size=1000)})
    df.loc[:499, "y"] = np.nan
    gap = MiceForest().fit(df, seed=0).complete(df)["y"] - x**2
    assert 0.51 < gap[:500].var() < 1.39


# Listwise deletion, and any imputer by its path.


def test_complete_rows_are_as_they_were():
    rows = complete_rows(TRAIN)
    assert rows.equals(TRAIN[TRAIN.notna().all(axis=1)])
    with pytest.raises(ImpossibleError, match="each of the 80 rows has a hole"):
        complete_rows(TRAIN.assign(x1=np.nan))


def test_imputer_by_path_is_that_imputer():
    imputer = load_imputer("sklearn.impute:SimpleImputer").fit(TRAIN, seed=0)
    assert imputer.complete(NEW).equals(Mean().fit(TRAIN, seed=0).complete(NEW))
    median = ByPath("sklearn.impute:SimpleImputer", strategy="median").fit(TRAIN, seed=0)
    assert median.complete(NEW.assign(x1=np.nan))["x1"].iloc[0] == TRAIN["x1"].median()


class Careless:
    """Leaves holes, or loses columns."""

    def __init__(self, columns=4):
        self.columns = columns

    def fit(self, values):
        return None

    def transform(self, values):
        return values[:, : self.columns]


def test_imputer_by_path_that_breaks_the_contract_is_refused():
    path = f"{__name__}:Careless"
    with pytest.raises(InputError, match=r"left \d+ holes"):
        ByPath(path).fit(TRAIN, seed=0).complete(TRAIN)
    with pytest.raises(InputError, match=r"shape \(80, 3\)"):
        ByPath(path, columns=3).fit(TRAIN, seed=0).complete(TRAIN)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("mise", "did you mean mice"),
        ("a.b:", "package.module:Class"),
        ("no_such_package:Imputer", "cannot be imported"),
        ("sklearn.impute:Nothing", "cannot be imported"),
        ("sklearn.impute:MissingIndicator.fit", "cannot be imported"),
        ("pandas:DataFrame", "no imputer: it has no fit"),
    ],
)
def test_unknown_imputers_are_refused(name, says):
    with pytest.raises(InputError, match=says):
        load_imputer(name)


@pytest.mark.parametrize("kind", [Mice, Knn, MiceForest])
def test_numbers_below_one_are_refused(kind):
    with pytest.raises(InputError, match="at least"):
        kind(0)
