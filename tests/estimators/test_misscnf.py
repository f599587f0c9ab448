"""The front door: what goes in, what comes out, and what is refused."""

import logging
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from misscnf_study.losses import ampute
from misscnf_study.worlds import load_scm
from scipy import integrate as quad
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import misscnf.data.table as table_home
from misscnf import IncompleteTable, InputError, MissCNF, ModelFileError
from misscnf.fitting.select.forms import Form
from misscnf.mechanisms import Shape
from misscnf.model.storage import save_model

GRAPH = "t -> m; m -> y; t -> y; y -> z"
SETTINGS = {"epochs": 4, "shape": Shape(hidden=(8,)), "selection.compare": False}


def raw_table(rows=400, seed=0):
    """t → m → y ← t, y → z in units far from standard: t around 50, y in thousands."""
    rng = np.random.default_rng(seed)
    t = 50 + 5 * rng.normal(size=rows)
    m = 0.2 * t + rng.normal(size=rows)
    y = 1000 * (m + 0.1 * t) + 500 * rng.normal(size=rows)
    z = y / 1e6 + 1e-3 * rng.normal(size=rows)
    return pd.DataFrame({"t": t, "m": m, "y": y, "z": z})


def holes(df, share=0.3, seed=1):
    lost = np.random.default_rng(seed).random(df.shape) < share
    return df.mask(lost)


@pytest.fixture(scope="module")
def complete():
    return raw_table()


@pytest.fixture(scope="module")
def df(complete):
    return holes(complete)


@pytest.fixture(scope="module")
def linear(df):
    return MissCNF(GRAPH, preset="linear").fit(df)


@pytest.fixture(scope="module")
def network(df):
    return MissCNF(GRAPH, settings=SETTINGS, progress=False).fit(df)


@pytest.fixture(scope="module", params=["linear", pytest.param("network", marks=pytest.mark.slow)])
def model(request):
    return request.getfixturevalue(request.param)


def dense(model):
    """Returns mean and covariance of a linear fit in the user's units."""
    structural = model.structural_model()
    d = len(structural.graph)
    slopes, intercepts, scales = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    for i, form in enumerate(structural.linear_forms()):
        slopes[i, list(structural.graph.parents[i])] = form.weights.numpy()
        intercepts[i], scales[i] = float(form.intercept), float(form.scale)
    total = np.linalg.inv(np.eye(d) - slopes)
    return total @ intercepts, total @ np.diag(scales**2) @ total.T


def gaussian_log_density(mean, covariance, x):
    """By Cholesky; columns differ by nine orders of magnitude, which scipy calls singular."""
    scale = np.sqrt(np.diag(covariance))
    root = np.linalg.cholesky(covariance / np.outer(scale, scale))
    score = np.linalg.solve(root, (x - mean) / scale)
    return stats.norm.logpdf(score).sum() - np.log(np.diag(root)).sum() - np.log(scale).sum()


# ----------------------------------------------------------------------------------- densities


def test_log_prob_is_the_marginal_density_in_original_units(linear, df):
    mean, covariance = dense(linear)
    found = linear.log_prob(df)
    assert found.index.equals(df.index)
    for label, row in df.head(40).iterrows():
        o = row.notna().to_numpy()
        x = row.to_numpy()[o]
        expected = gaussian_log_density(mean[o], covariance[np.ix_(o, o)], x) if o.any() else 0.0
        assert found[label] == pytest.approx(expected, abs=1e-8)


@pytest.mark.slow
def test_density_of_one_column_integrates_to_one_in_original_units(network, complete):
    grid = np.linspace(complete.y.min() - 8000, complete.y.max() + 8000, 201)
    rows = pd.DataFrame({"y": grid})
    density = np.exp(network.log_prob(rows))
    assert quad.simpson(density, x=grid) == pytest.approx(1.0, abs=0.01)


@pytest.mark.slow
def test_quality_has_exact_rows_with_no_error(network, df, complete):
    exact = network.log_prob(complete.head(5), quality=True)
    assert list(exact.columns) == ["log_prob", "standard_error", "effective_draws", "reason"]
    assert (exact.reason == "").all()
    assert (exact.standard_error == 0).all()
    assert np.isinf(exact.effective_draws).all()
    drawn = network.log_prob(pd.DataFrame({"y": complete.y.head(50)}), quality=True)
    assert (drawn.standard_error > 0).all()
    assert (drawn.standard_error < 0.01).all()
    assert (drawn.effective_draws > 10).all()


def test_an_all_missing_row_has_log_density_zero(model, df):
    row = pd.DataFrame([[np.nan] * 4], columns=list("tmyz"))
    assert model.log_prob(row).iloc[0] == 0.0


def test_columns_may_be_in_any_order_left_out_or_unknown(model, df, caplog):
    expected = model.log_prob(df[["t", "m"]].assign(y=np.nan, z=np.nan))
    with caplog.at_level(logging.INFO, "misscnf"):
        found = model.log_prob(df[["m", "t"]].assign(other="x"))
    pd.testing.assert_series_equal(found, expected)
    assert "other" in caplog.text


def test_conditional_density_is_joint_minus_given(linear, complete):
    mean, covariance = dense(linear)
    row = complete.iloc[[0]]
    found = linear.log_prob(row, given=["t", "z"]).iloc[0]
    order = list(linear.graph_.nodes)
    x = row[order].to_numpy()[0]
    g = [order.index("t"), order.index("z")]
    joint = gaussian_log_density(mean, covariance, x)
    below = gaussian_log_density(mean[g], covariance[np.ix_(g, g)], x[g])
    assert found == pytest.approx(joint - below, abs=1e-8)


def test_interventional_density_holds_the_column_and_cuts_its_parents(linear, complete):
    """do(m): t keeps its own law and is not conditioned on m; y sees the held m."""
    forms = dict(zip(linear.graph_.nodes, linear.structural_model().linear_forms(), strict=True))
    row = complete.iloc[[3]]
    t, y = row.t.iloc[0], row.y.iloc[0]
    expected = stats.norm(float(forms["t"].intercept), float(forms["t"].scale)).logpdf(t)
    weights = dict(zip(linear.graph_.parents_of("y"), forms["y"].weights.tolist(), strict=True))
    location = float(forms["y"].intercept) + weights["t"] * t + weights["m"] * 12.0
    expected += stats.norm(location, float(forms["y"].scale)).logpdf(y)
    found = linear.log_prob(row[["t", "m", "y"]], do={"m": 12.0}).iloc[0]
    assert found == pytest.approx(expected, abs=1e-8)
    # What the row shows of m does not matter.
    assert linear.log_prob(row[["t", "y"]], do={"m": 12.0}).iloc[0] == pytest.approx(found)


# ----------------------------------------------------------------------------------- what if


def test_samples_have_the_moments_of_the_model(linear):
    """Each mean within 5 standard errors: error rate below 3e-6 in all."""
    mean, covariance = dense(linear)
    sample = linear.sample(20_000, seed=1)
    assert list(sample.columns) == list(linear.graph_.nodes)
    error = np.sqrt(np.diag(covariance) / 20_000)
    assert (np.abs(sample.mean().to_numpy() - mean) < 5 * error).all()


def test_interventions_by_number_array_and_function(model):
    plain = model.sample(50, seed=3)
    held = model.sample(50, do={"m": 12.0}, seed=3)
    assert held.m.to_numpy() == pytest.approx(np.full(50, 12.0))
    pd.testing.assert_series_equal(held.t, plain.t)
    assert not np.allclose(held.y, plain.y)
    per_row = model.sample(50, do={"m": np.arange(50.0)}, seed=3)
    assert per_row.m.to_numpy() == pytest.approx(np.arange(50.0))
    shifted = model.sample(50, do={"m": lambda m: m + 1}, seed=3)
    assert shifted.m.to_numpy() == pytest.approx(plain.m.to_numpy() + 1)
    two = model.sample(50, do={"t": 60.0, "y": 5.0}, seed=3)
    assert two.y.to_numpy() == pytest.approx(np.full(50, 5.0), abs=1e-6)
    assert not np.allclose(two.m, plain.m)


def test_effect_of_a_linear_model_is_its_path_coefficient(linear):
    """Shared noise cancels: a linear effect has no Monte-Carlo error."""
    forms = dict(zip(linear.graph_.nodes, linear.structural_model().linear_forms(), strict=True))
    on_y = dict(zip(linear.graph_.parents_of("y"), forms["y"].weights.tolist(), strict=True))
    expected = on_y["t"] + float(forms["m"].weights[0]) * on_y["m"]
    effect = linear.effect("y", do={"t": 51.0}, versus={"t": 50.0}, draws=1000)
    assert effect.estimate == pytest.approx(expected, rel=1e-9)
    assert effect.standard_error == pytest.approx(0.0, abs=1e-6)
    assert effect.mean - effect.mean_versus == pytest.approx(effect.estimate)
    assert "t = 51" in str(effect)


def test_counterfactual_of_complete_rows_is_exact(linear, complete):
    forms = dict(zip(linear.graph_.nodes, linear.structural_model().linear_forms(), strict=True))
    rows = complete.head(6)
    found = linear.counterfactual(rows, do={"m": 12.0})
    assert found.index.equals(rows.index)
    assert (found.t == rows.t).all()
    on_y = dict(zip(linear.graph_.parents_of("y"), forms["y"].weights.tolist(), strict=True))
    expected = rows.y + on_y["m"] * (12.0 - rows.m)
    np.testing.assert_allclose(found.y, expected, rtol=1e-9)


def test_counterfactual_with_nothing_changed_is_the_factual(model, complete):
    rows = complete.head(10)
    found = model.counterfactual(rows, do={"m": rows.m.to_numpy()})
    np.testing.assert_allclose(found[rows.columns], rows, rtol=1e-6)


def test_counterfactual_of_rows_with_holes_keeps_what_does_not_descend(model, df):
    rows = df.head(20)
    found = model.counterfactual(rows, do={"y": 0.0}, draws=3)
    assert found.index.names == ["draw", "row"]
    assert not found.isna().any().any()
    for draw in range(3):
        part = found.loc[draw]
        for column in ("t", "m"):
            seen = rows[column].notna()
            assert (part[column][seen] == rows[column][seen]).all()
        assert part.y.to_numpy() == pytest.approx(np.zeros(20), abs=1e-6)


def test_the_mediator_case_that_the_public_library_gets_wrong():
    """a → m → c: do(a), do(c) with m untouched between them."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    m = 2 * a + rng.normal(size=300)
    c = 2 * m + rng.normal(size=300)
    model = MissCNF("a -> m -> c", preset="linear").fit(pd.DataFrame({"a": a, "m": m, "c": c}))
    sample = model.sample(100, do={"a": 3.0, "c": 1.0})
    assert sample.c.to_numpy() == pytest.approx(np.ones(100))
    only_a = model.sample(100, do={"a": 3.0})
    np.testing.assert_allclose(sample.m, only_a.m)


# ----------------------------------------------------------------------------------- imputation


def test_impute_completes_and_leaves_observed_cells_alone(model, df):
    completed = model.impute(df, draws=3, seed=5)
    assert completed.index.names == ["draw", "row"]
    assert completed.shape == (3 * len(df), 4)
    assert not completed.isna().any().any()
    for draw in range(3):
        part = completed.loc[draw][df.columns]
        assert part.where(df.notna(), 0.0).equals(df.fillna(0.0))
    again = model.impute(df, draws=3, seed=5)
    pd.testing.assert_frame_equal(completed, again)
    assert not completed.equals(model.impute(df, draws=3, seed=6))


def test_sample_given_rows_is_one_completion(model, df):
    rows = df.head(7)
    found = model.sample(given=rows, seed=2)
    assert found.index.equals(rows.index)
    assert not found.isna().any().any()
    several = model.sample(4, given=rows)
    assert len(several) == 28


def test_imputations_have_the_conditional_law(linear):
    """z shown alone: draws of y against the exact conditional; 5 standard errors."""
    mean, covariance = dense(linear)
    order = list(linear.graph_.nodes)
    i, j = order.index("y"), order.index("z")
    z = mean[j] + 2 * covariance[j, j] ** 0.5
    row = pd.DataFrame({"z": [z]})
    draws = linear.impute(row, draws=4000)["y"]
    expected = mean[i] + covariance[i, j] / covariance[j, j] * (z - mean[j])
    spread = (covariance[i, i] - covariance[i, j] ** 2 / covariance[j, j]) ** 0.5
    assert abs(draws.mean() - expected) < 5 * spread / 4000**0.5
    assert draws.std() == pytest.approx(spread, rel=0.1)


# ----------------------------------------------------------------------------------- fitting


@pytest.mark.slow
def test_validation_may_be_a_share_or_another_table(df, complete):
    model = MissCNF(GRAPH, settings=SETTINGS, progress=False).fit(df, validation=complete.head(50))
    assert "validation" in model.history_
    none = MissCNF(GRAPH, settings=SETTINGS, progress=False).fit(df, validation=0.0)
    assert "validation" not in none.history_


@pytest.mark.slow
def test_history_is_in_original_units(network, df):
    """The last epoch's training likelihood is near that of the fitted model on all rows."""
    assert network.history_.train.iloc[-1] == pytest.approx(network.score(df), abs=1.0)


def test_tiny_tables_fit(complete):
    five = holes(complete.head(5), 0.2)
    model = MissCNF(GRAPH, progress=False).fit(five)
    assert model.chosen_ == "linear"
    assert np.isfinite(model.log_prob(five)).all()


@pytest.mark.slow
def test_a_spline_and_a_network_scale_can_be_fitted(df):
    shape = Shape(kind="spline", hidden=(8,), scale_hidden=(8,))
    model = MissCNF(GRAPH, settings={**SETTINGS, "shape": shape}, progress=False).fit(df)
    assert np.isfinite(model.log_prob(df)).all()
    assert not model.impute(df.head(20), draws=2).isna().any().any()


def test_holes_at_prediction_but_none_at_fit(complete, df):
    model = MissCNF(GRAPH, preset="linear").fit(complete)
    assert not model.impute(df, draws=1).isna().any().any()


def test_user_tables_are_never_changed(model, df):
    before = df.copy()
    model.log_prob(df)
    model.impute(df, draws=1)
    model.counterfactual(df, do={"t": 1.0})
    pd.testing.assert_frame_equal(df, before)


def test_scikit_learn_conventions(linear):
    copy = clone(linear)
    assert copy.get_params()["graph"] == GRAPH
    assert not hasattr(copy, "model_")
    assert linear.n_features_in_ == 4


def test_the_head_to_head_with_lavaan_and_dowhy():
    """x lost in half the rows depending on y: the truth is an effect of 2, E[x] = 0, E[y] = 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    t = x + rng.normal(size=2000)
    y = 2 * t + 1.5 * x + rng.normal(size=2000)
    df = pd.DataFrame({"x": x, "t": t, "y": y})
    df.loc[rng.random(2000) < 1 / (1 + np.exp(-2 * y)), "x"] = np.nan
    model = MissCNF("x -> t; t -> y; x -> y", preset="linear").fit(df)
    effect = model.effect("y", do={"t": 1.0}, versus={"t": 0.0}, draws=100)
    assert effect.estimate == pytest.approx(2.0, abs=0.15)
    assert model.sample(20_000)["x"].mean() == pytest.approx(0.0, abs=0.12)


# ----------------------------------------------------------------------------------- refusals

BAD = {
    "no graph": (lambda m, df: MissCNF().fit(df), "causal graph is needed"),
    "preset": (lambda m, df: MissCNF(GRAPH, preset="best").fit(df), "no preset 'best'"),
    "device": (lambda m, df: MissCNF(GRAPH, device="warp").fit(df), "device 'warp'"),
    "validation": (lambda m, df: MissCNF(GRAPH).fit(df, validation=1.5), r"\[0, 1\)"),
    "unknown do": (lambda m, df: m.sample(5, do={"q": 1.0}), "'q'"),
    "do not a mapping": (lambda m, df: m.sample(5, do=[("t", 1.0)]), "column: value"),
    "do text": (lambda m, df: m.sample(5, do={"t": "high"}), "'high'"),
    "do length": (lambda m, df: m.sample(5, do={"t": [1.0, 2.0]}), r"\(2,\).*5 rows"),
    "do nan": (lambda m, df: m.sample(5, do={"t": np.nan}), "missing or infinite"),
    "do function nan": (
        lambda m, df: m.sample(5, do={"t": lambda t: t * np.inf}),
        "function that intervenes on 't'",
    ),
    "unknown given": (lambda m, df: m.log_prob(df, given=["age"]), "'age'"),
    "no rows": (lambda m, df: m.sample(), "number of rows"),
    "zero rows": (lambda m, df: m.sample(0), "at least 1; got 0"),
    "zero draws": (lambda m, df: m.impute(df, draws=0), "at least 1; got 0"),
    "no do": (lambda m, df: m.counterfactual(df, do={}), "needs an intervention"),
    "unknown outcome": (lambda m, df: m.effect("w", do={"t": 1.0}), "'w'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_get_one_sentence(name, linear, df):
    ask, fragment = BAD[name]
    with pytest.raises(InputError, match=fragment) as caught:
        ask(linear, df)
    assert "\n" not in str(caught.value)


def test_an_unfitted_model_says_so(df):
    with pytest.raises(NotFittedError, match="call fit"):
        MissCNF(GRAPH).log_prob(df)


@pytest.mark.slow
def test_auto_recovers_a_nonlinear_effect_under_mar():
    """chain_nlin, MAR 60 %: E[x3 | do(x1)] against the truth, where complete cases are few."""
    world = load_scm("chain_nlin")
    df = ampute(world.sample(4000, 0), world.graph, "mar", 0.6, seed=0)
    model = MissCNF(world.graph, settings={"epochs": 20}, progress=False).fit(df)
    found = model.effect("x3", do={"x1": 0.7}, versus={"x1": -0.7}, draws=20_000).estimate
    noise = np.random.default_rng(0).normal(size=200_000) / 4
    x3 = [((np.exp(v / 2) + noise - 5) ** 3 / 15).mean() for v in (0.7, -0.7)]
    assert found == pytest.approx(x3[0] - x3[1], rel=0.05)


def test_a_table_is_read_once_and_its_kinds_are_inferred_once(monkeypatch):
    counts = Counter()

    def counted(name):
        real = getattr(table_home, name)

        def call(*args, **kwargs):
            counts[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(table_home, name, call)

    for name in ("read_table", "choose_columns", "_encode"):
        counted(name)
    df = pd.DataFrame({"a": np.arange(40.0), "b": np.sin(np.arange(40.0)), "other": "x"})
    MissCNF("a -> b", preset="linear", progress=False).fit(df)
    assert counts == {"read_table": 1, "choose_columns": 1, "_encode": 1}
    counts.clear()
    table = IncompleteTable.read(df, ["a", "b"])
    model = MissCNF("a -> b", preset="linear").fit(table)
    model.effect("b", {"a": 1.0}, {"a": 0.0}, interval=0.9, replicates=5, data=table, draws=50)
    model.check(table)
    model.log_prob(table)
    assert counts == {"read_table": 1, "choose_columns": 1, "_encode": 1}


def test_a_table_that_was_read_gives_the_same_fit_and_the_same_answers():
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"z": "w", "a": rng.normal(size=60), "b": rng.normal(size=60)})
    df.loc[:9, "b"] = np.nan
    by_frame = MissCNF("a -> b", preset="linear", progress=False).fit(df)
    by_table = MissCNF("a -> b", preset="linear").fit(IncompleteTable.read(df, ["a", "b"]))
    assert list(by_table.feature_names_in_) == ["z", "a", "b"]
    table = by_frame._read(df)
    pd.testing.assert_series_equal(by_table.log_prob(table), by_frame.log_prob(df))
    assert by_table.check(table).to_dict() == by_frame.check(df).to_dict()
    other = IncompleteTable.read(df.assign(a=2 * df["a"]), ["a", "b"])
    with pytest.raises(InputError, match="other kinds, than are asked for"):
        by_frame.log_prob(other)


def test_forms_are_the_one_result_and_the_others_follow(tmp_path):
    df = pd.DataFrame({"a": np.arange(40.0), "b": np.sin(np.arange(40.0))})
    model = MissCNF("a -> b", preset="linear", progress=False).fit(df)
    for forms, chosen, networks, curves in (
        ([Form(), Form()], "linear", (), ()),
        ([Form(), Form(curve=(3, 0, 9))], "curve", (), ("b",)),
        ([Form(noise=True), Form(curve=(3, 0, 9))], "network", (), ("b",)),
        ([Form(), Form(mean=True, scale=True)], "network", ("b",), ()),
    ):
        model.forms_ = dict(zip("ab", forms, strict=True))
        assert (model.chosen_, model.networks_, model.curves_) == (chosen, networks, curves)
        model.save(tmp_path)
        assert MissCNF.load(tmp_path).forms_ == model.forms_
    with pytest.warns(FutureWarning, match="rungs_ is called forms_"):
        assert model.rungs_ == {"a": "line", "b": "network, network scale"}


def test_a_model_of_an_earlier_release_is_refused_in_a_sentence(tmp_path):
    df = pd.DataFrame({"a": np.arange(40.0), "b": np.sin(np.arange(40.0))})
    model = MissCNF("a -> b", preset="linear", progress=False).fit(df)
    save_model(tmp_path, model.model_, {"chosen": "linear", "rungs": {"a": "line", "b": "line"}})
    with pytest.raises(ModelFileError, match=r"saved by an earlier misscnf; fit the model again"):
        MissCNF.load(tmp_path)


def test_how_kinds_are_inferred_is_a_setting_and_is_saved_with_the_model(tmp_path):
    stage = np.tile(np.arange(8.0), 20)
    df = pd.DataFrame({"stage": stage, "y": stage + np.random.default_rng(0).normal(size=160)})
    model = MissCNF("stage -> y", "linear", settings={"kinds.most_ordinal": 8}).fit(df)
    assert model.kinds_.set_index("column").loc["stage", "kind"] == "ordinal"
    model.save(tmp_path / "model")
    assert MissCNF.load(tmp_path / "model").settings_.kinds.most_ordinal == 8
    assert MissCNF("stage -> y", "linear").fit(df).kinds_["kind"].tolist()[0] != "ordinal"
