"""The front door as an estimator of scikit-learn: its checks, arrays, and the ordered graph."""

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_dataframe_column_names_consistency,
    parametrize_with_checks,
)

from misscnf import InputError, MissCNF

ORDERED = MissCNF("ordered", preset="linear", progress=False)


def rows(count=200, seed=0, holes=0.2):
    """x0 → x1 → x2, a fifth of the cells lost."""
    rng = np.random.default_rng(seed)
    x0 = rng.normal(size=count)
    x1 = x0 + rng.normal(size=count)
    x2 = 3 + 2 * x1 + rng.normal(size=count)
    array = np.column_stack([x0, x1, x2])
    array[rng.random(array.shape) < holes] = np.nan
    return array


@pytest.fixture(scope="module")
def fitted():
    return clone(ORDERED).fit(rows())


# No check is expected to fail; docs/sklearn.md says what scikit-learn's own tests ask beyond.
@parametrize_with_checks([ORDERED])
def test_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_the_one_habit_of_scikit_learn_that_is_not_kept():
    """A DataFrame's columns are found by name, so their order and number are free."""
    with pytest.raises(AssertionError, match="score did not raise"):
        check_dataframe_column_names_consistency("MissCNF", ORDERED)


# ----------------------------------------------------------------------------------- arrays


def test_an_array_is_the_frame_with_the_columns_x0_x1(fitted):
    frame = pd.DataFrame(rows(), columns=["x0", "x1", "x2"])
    named = clone(ORDERED).fit(frame)
    pd.testing.assert_series_equal(named.log_prob(frame), fitted.log_prob(rows()))
    pd.testing.assert_frame_equal(named.impute(frame, 2), fitted.impute(rows(), 2))
    assert fitted.n_features_in_ == named.n_features_in_ == 3
    assert list(named.feature_names_in_) == ["x0", "x1", "x2"]
    assert not hasattr(fitted, "feature_names_in_")


def test_a_graph_names_the_columns_of_an_array():
    graph = "x2 -> x1; x1 -> x0"  # against the order of the columns
    model = MissCNF(graph, preset="linear", progress=False).fit(rows())
    frame = pd.DataFrame(rows(), columns=["x0", "x1", "x2"])
    expected = MissCNF(graph, preset="linear", progress=False).fit(frame).log_prob(frame)
    assert model.log_prob(rows()).to_numpy() == pytest.approx(expected.to_numpy())


def test_arrays_are_taken_in_the_order_of_the_fitted_table():
    frame = pd.DataFrame(rows(), columns=["c", "b", "a"]).assign(other="text")
    model = MissCNF("a -> b -> c", preset="linear", progress=False).fit(frame)
    assert list(model.feature_names_in_) == ["c", "b", "a", "other"]
    pd.testing.assert_series_equal(
        model.log_prob(frame.to_numpy(dtype=object)), model.log_prob(frame)
    )


@pytest.mark.parametrize("form", [list, pa.Table.from_pandas], ids=["lists", "arrow"])
def test_lists_and_frames_of_others_are_read(form, fitted):
    frame = pd.DataFrame(rows(), columns=["x0", "x1", "x2"])
    given = form(frame) if form is not list else rows().tolist()
    assert clone(ORDERED).fit(given).score(given) == pytest.approx(fitted.score(rows()))


def test_a_frame_after_an_array_goes_by_position(fitted):
    frame = pd.DataFrame(rows(), columns=["age", "dose", "days"])
    assert fitted.score(frame) == pytest.approx(fitted.score(rows()))
    with pytest.raises(InputError, match="2 features, but MissCNF is expecting 3"):
        fitted.score(frame[["age", "dose"]])


def test_every_query_takes_arrays(fitted):
    array = rows(20)
    assert len(fitted.log_prob(array, given=["x0"])) == 20
    assert fitted.counterfactual(array, do={"x0": 1.0}).shape == (20, 3)
    assert not fitted.sample(given=array).isna().any().any()
    assert np.isfinite(fitted.score(array))


def test_objects_in_an_array_are_read_as_what_they_are():
    rng = np.random.default_rng(0)
    array = np.empty((60, 2), dtype=object)
    array[:, 0] = rng.normal(size=60)
    array[:, 1] = np.where(rng.random(60) < 0.5, "yes", "no")
    array[3, 1] = None
    model = clone(ORDERED).fit(array)
    assert list(model.kinds_["kind"]) == ["continuous", "binary"]
    imputed = model.impute(array, 1)
    assert set(imputed["x1"]) == {"yes", "no"}
    assert imputed["x0"].dtype == np.float64


def test_a_saved_model_knows_its_columns(fitted, tmp_path):
    fitted.save(tmp_path / "array")
    loaded = MissCNF.load(tmp_path / "array")
    assert not hasattr(loaded, "feature_names_in_")
    assert loaded.score(rows()) == pytest.approx(fitted.score(rows()))
    frame = pd.DataFrame(rows(), columns=["c", "b", "a"]).assign(other=1.0)
    MissCNF("a -> b", preset="linear", progress=False).fit(frame).save(tmp_path / "frame")
    loaded = MissCNF.load(tmp_path / "frame")
    assert list(loaded.feature_names_in_) == ["c", "b", "a", "other"]
    assert loaded.n_features_in_ == 4


def test_a_new_fit_forgets_the_names_of_the_last(fitted):
    model = clone(ORDERED).fit(pd.DataFrame(rows(), columns=["c", "b", "a"]))
    assert not hasattr(model.fit(rows()), "feature_names_in_")


@pytest.mark.slow
def test_a_new_fit_forgets_the_replicates_of_the_last():
    """The same table under another graph: the interval has to follow."""
    frame = pd.DataFrame(rows(), columns=["x0", "x1", "x2"])
    model = MissCNF("x0 -> x1 -> x2", preset="linear", progress=False).fit(frame)
    ask = {"outcome": "x2", "do": {"x0": 1.0}, "versus": {"x0": 0.0}, "interval": 0.95}
    first = model.effect(**ask, draws=100).interval
    again = model.set_params(graph="x0 -> x1 -> x2; x0 -> x2").fit(frame)
    fresh = clone(again).fit(frame).effect(**ask, draws=100).interval
    assert again.effect(**ask, draws=100).interval == fresh != first


BAD = {
    "flat": (lambda: clone(ORDERED).fit(np.arange(5.0)), "Reshape your data"),
    "cube": (lambda: clone(ORDERED).fit(np.zeros((2, 2, 2))), r"\(2, 2, 2\)"),
    "no columns": (lambda: clone(ORDERED).fit(np.empty((4, 0))), r"0 feature\(s\)"),
    "no rows": (lambda: clone(ORDERED).fit(np.empty((0, 3))), "no rows"),
    "one row": (lambda: clone(ORDERED).fit(np.ones((1, 3))), "n_samples=1"),
    "complex": (lambda: clone(ORDERED).fit(rows() + 1j), "Complex data not supported"),
    "sparse": (lambda: clone(ORDERED).fit(sparse.csr_array(np.eye(3))), "sparse matrix"),
    "ragged": (lambda: clone(ORDERED).fit([[1.0], [1.0, 2.0]]), "rows of equal length"),
    "infinite": (lambda: clone(ORDERED).fit(np.where(rows() > 2, np.inf, 0.0)), "infinite"),
    "constant": (lambda: clone(ORDERED).fit(np.ones((5, 2))), "'x0' counts as constant"),
    "names": (lambda: clone(ORDERED).fit(pd.DataFrame(rows())), "must be strings"),
}


@pytest.mark.parametrize("name", BAD)
def test_arrays_that_are_no_tables_are_refused(name):
    ask, fragment = BAD[name]
    with pytest.raises(InputError, match=fragment) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_a_cell_that_is_nothing_is_a_type_error():
    array = rows().astype(object)
    array[4, 1] = {"dose": 1.0}
    with pytest.raises(TypeError, match=r"column 1 .* in row 4.*must be a string") as caught:
        clone(ORDERED).fit(array)
    assert isinstance(caught.value, InputError)


# ------------------------------------------------------------------------------- ordered graph


def test_the_ordered_graph_has_all_arrows_in_the_order_of_the_table():
    frame = pd.DataFrame(rows(), columns=["c", "a", "b"])
    graph = clone(ORDERED).fit(frame).graph_
    assert graph.edges == [("c", "a"), ("c", "b"), ("a", "b")]
    assert graph.nodes == ("c", "a", "b")


def test_the_ordered_linear_model_is_any_normal_law():
    """Whatever the order of the columns, the density is that of the normal law they have."""
    array = rows(holes=0.0)
    law = stats.multivariate_normal(array.mean(0), np.cov(array.T, ddof=0))
    expected = law.logpdf(array).mean()
    for order in ([0, 1, 2], [2, 0, 1]):
        assert clone(ORDERED).fit(array[:, order]).score(array[:, order]) == pytest.approx(
            expected, abs=1e-6
        )


# ----------------------------------------------------------------------------------- at work


def test_cross_validation_prefers_the_graph_that_made_the_table():
    frame = pd.DataFrame(rows(300), columns=["x0", "x1", "x2"])
    search = GridSearchCV(
        MissCNF(preset="linear", progress=False), {"graph": ["x0 -> x1 -> x2", "x0; x1; x2"]}, cv=3
    )
    assert search.fit(frame).best_params_ == {"graph": "x0 -> x1 -> x2"}
    assert np.isfinite(cross_val_score(ORDERED, frame, cv=3)).all()


def test_it_ends_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), clone(ORDERED)).fit(rows())
    assert np.isfinite(pipeline.score(rows()))


def test_a_pickled_model_gives_the_same_answers(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    pd.testing.assert_frame_equal(again.impute(rows(20), 2), fitted.impute(rows(20), 2))


def test_check_takes_an_array():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[rng.random((200, 3)) < 0.2] = np.nan
    model = MissCNF("ordered", "linear", kinds="continuous", progress=False).fit(X)
    assert (
        model.check(X).report.summary()
        == model.check(pd.DataFrame(X, columns=["x0", "x1", "x2"])).report.summary()
    )
