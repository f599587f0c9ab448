"""Mixed tables through the front door: labels, dtypes, densities and what is refused."""

import logging
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import integrate as quad
from sklearn.base import clone

from misscnf import InputError, MissCNF
from misscnf.data.codecs import Continuous, Count
from misscnf.data.scales import Unit
from misscnf.data.table import Schema
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian, Mechanism
from misscnf.model import StructuralModel
from misscnf.queries.simulate import QueryMixin

GRAPH = (
    "sex -> weight; age -> stage; stage -> visits; ward -> visits; visits -> cured; stage -> cured"
)
STAGES = pd.CategoricalDtype(["I", "II", "III"], ordered=True)


def mixed_table(rows=300, seed=0):
    """All kinds: text, nullable integers, an ordered Categorical, booleans, a skewed float."""
    rng = np.random.default_rng(seed)
    sex, ward = rng.choice(["f", "m"], rows), rng.choice(["A", "B", "C"], rows)
    age = rng.integers(20, 80, rows)
    stage = np.clip((age / 25 + rng.normal(size=rows) - 0.5).astype(int), 0, 2)
    visits = rng.poisson(1 + stage + 3 * (ward == "B"), rows)
    weight = np.exp(4 + 0.2 * (sex == "m") + 0.1 * rng.normal(size=rows))
    cured = rng.random(rows) < 1 / (1 + np.exp(stage - 1.0))
    return pd.DataFrame(
        {
            "sex": sex,
            "age": pd.array(age, dtype="Int64"),
            "stage": pd.Categorical.from_codes(stage, dtype=STAGES),
            "ward": pd.Series(ward, dtype="category"),
            "visits": pd.array(visits, dtype="Int16"),
            "weight": weight,
            "cured": pd.array(cured, dtype="boolean"),
        }
    )


def holes(df, share=0.2, seed=1):
    lost = np.random.default_rng(seed).random(df.shape) < share
    columns = {}
    for j, name in enumerate(df):
        columns[name] = df[name].where(~lost[:, j])
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def complete():
    return mixed_table()


@pytest.fixture(scope="module")
def df(complete):
    return holes(complete)


@pytest.fixture(scope="module")
def model(df):
    return MissCNF(GRAPH, preset="linear", kinds={"weight": "positive"}, progress=False).fit(df)


# Cells and dtypes


@pytest.mark.slow
def test_impute_returns_labels_and_dtypes_and_leaves_observed_cells_alone(model, df):
    found = model.impute(df, draws=2)
    assert found.dtypes.to_dict() == df.dtypes.to_dict()
    assert not found.isna().any().any()
    for draw in range(2):
        part = found.loc[draw][df.columns]
        for name in df:
            seen = df[name].notna()
            assert (part[name][seen] == df[name][seen]).all()
            if name not in ("age", "weight", "visits"):
                assert set(part[name]) <= set(df[name].dropna())
    assert (found.visits >= 0).all()
    assert (found.weight > 0).all()


def test_samples_have_the_dtypes_of_the_fitted_table(model, df):
    found = model.sample(200)
    assert found.dtypes.to_dict() == df[found.columns].dtypes.to_dict()
    assert set(found.ward) == {"A", "B", "C"}
    assert set(found.cured) == {True, False}


DTYPES = {
    "float64": pd.array([0.3, 0.7, 2.2, 3.1] * 12, dtype="float64"),
    "float32": pd.Series([0.3, 0.7, 2.2, 3.1] * 12, dtype="float32"),
    "Float64": pd.array([0.3, 0.7, 2.2, 3.1] * 12, dtype="Float64"),
    "int64": pd.Series(range(20, 68)),
    "Int8": pd.array(range(20, 68), dtype="Int8"),
    "count in Int64": pd.array([0, 1, 2, 3, 4, 5, 6, 7] * 6, dtype="Int64"),
    "count in floats": pd.Series([0.0, 1, 2, 3, 4, 5, 6, 7] * 6),
    "levels in int64": pd.Series([1, 2, 3, 3] * 12),
    "bool": pd.Series([True, False] * 24),
    "boolean": pd.array([True, False] * 24, dtype="boolean"),
    "object of bools": pd.Series([True, False] * 24, dtype=object),
    "object of words": pd.Series(["a", "b", "c"] * 16, dtype=object),
    "str": pd.Series(["a", "b", "c"] * 16, dtype="str"),
    "string": pd.Series(["a", "b", "c"] * 16, dtype="string"),
    "category": pd.Series(["a", "b", "c"] * 16, dtype="category"),
    "ordered category": pd.Series(["I", "II", "III"] * 16, dtype=STAGES),
    "category of ints": pd.Series([3, 1, 2] * 16, dtype="category"),
    "0/1 floats": pd.Series([0.0, 1.0] * 24),
    "0/1 ints": pd.Series([0, 1] * 24),
    "arrow int": pd.Series(range(20, 68), dtype="int64[pyarrow]"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_goes_through_fit_impute_sample_and_counterfactual(name):
    cells = pd.Series(DTYPES[name])
    rng = np.random.default_rng(0)
    df = pd.DataFrame({"t": rng.normal(size=48), "x": cells, "y": rng.normal(size=48)})
    if name not in ("int64", "bool", "levels in int64", "0/1 ints"):  # which hold no holes
        df["x"] = df["x"].where(rng.random(48) > 0.2)
    assert df["x"].dtype == cells.dtype
    model = MissCNF("t -> x -> y", preset="linear", progress=False).fit(df)
    for found in (
        model.impute(df, draws=2),
        model.sample(30),
        model.sample(given=df[["t"]]),
        model.counterfactual(df, do={"t": 1.0}),
    ):
        assert found["x"].dtype == cells.dtype
        assert not found.isna().any().any()
        if model.schema_.domains[1].discrete and model.schema_.domains[1].kind != "count":
            assert set(found["x"]) <= set(cells)
        else:
            assert np.isfinite(model.log_prob(found[["x"]])).all()  # every value can be seen


# Interventions by label


def test_do_takes_labels_arrays_of_labels_and_functions_of_labels(model):
    plain = model.sample(60, seed=3)
    held = model.sample(60, do={"stage": "III", "cured": True}, seed=3)
    assert set(held.stage) == {"III"}
    assert held.stage.dtype == STAGES
    assert held.cured.all()
    pd.testing.assert_series_equal(held.ward, plain.ward)
    wanted = ["I", "II", "III"] * 20
    for form in (wanted, np.array(wanted), pd.Series(wanted, dtype=STAGES, index=range(60, 120))):
        assert model.sample(60, do={"stage": form}).stage.tolist() == wanted
    turned = model.sample(60, do={"sex": lambda sex: sex.map({"f": "m", "m": "f"})}, seed=3)
    assert (turned.sex != plain.sex).all()
    more = model.sample(60, do={"visits": lambda visits: visits + 2}, seed=3)
    assert (more.visits == plain.visits + 2).all()
    assert more.visits.dtype == "Int16"
    worst = model.sample(60, do={"stage": lambda stage: "III"}, seed=3)
    assert set(worst.stage) == {"III"}


def test_a_function_sees_the_users_labels_and_dtype(model):
    seen = {}

    def keep(name):
        return lambda cells: seen.setdefault(name, cells)

    names = ["stage", "ward", "visits", "cured", "age", "weight"]
    model.sample(40, do={name: keep(name) for name in names})
    assert seen["stage"].dtype == STAGES
    assert seen["ward"].dtype == "category"
    assert seen["visits"].dtype == "Int16"
    assert seen["cured"].dtype == "boolean"
    assert seen["age"].dtype == "float64"  # not rounded before it is used
    assert (seen["weight"] > 0).all()


def test_a_held_fraction_of_a_whole_number_column_is_shown(model):
    assert set(model.sample(5, do={"age": 50.5}).age) == {50.5}
    assert model.sample(5, do={"age": 50}).age.dtype == "Int64"


BAD = {
    "unknown level": ({"stage": "IV"}, r"'stage' is 'IV'; expected one of the levels 'I', 'II'"),
    "one unknown level": ({"stage": ["I"] * 4 + ["x"]}, "'stage' is 'x'"),
    "unknown level of bools": ({"cured": "yes"}, "'cured' is 'yes'; .*False, True"),
    "missing level": ({"stage": None}, "missing or infinite; expected one of the levels"),
    "fractional count": ({"visits": 1.5}, "'visits' is 1.5; expected a whole number of at least"),
    "negative count": ({"visits": -1}, "'visits' is -1"),
    "text for a count": ({"visits": "many"}, "'visits' is 'many'"),
    "beyond a log scale": ({"weight": 0.0}, "'weight' is 0.0; expected a number above 0"),
    "beyond float64": ({"age": 10**400}, "'age' is 1000.*expected a number"),
    "a mapping": ({"age": {"a": 1}}, "'age' is {'a': 1}; expected a number"),
    "length": ({"stage": ["I", "II"]}, r"\(2,\).*5 rows"),
    "nested": ({"age": [[1.0] * 5]}, r"\(1, 5\).*5 rows"),
    "function": ({"stage": lambda stage: "IV"}, "function that intervenes on 'stage' returned is"),
    "function's length": ({"age": lambda age: [1.0, 2.0]}, r"returned has shape \(2,\)"),
}


@pytest.mark.parametrize(("do", "words"), BAD.values(), ids=BAD.keys())
def test_what_a_column_cannot_be_is_no_intervention(model, do, words):
    with pytest.raises(InputError, match=words) as caught:
        model.sample(5, do=do)
    assert "\n" not in str(caught.value)


# Counterfactuals and effects


def test_a_counterfactual_with_nothing_changed_is_the_factual(model, complete):
    rows = complete.head(40)
    found = model.counterfactual(rows, do={"stage": rows.stage, "sex": rows.sex}, draws=3)
    assert found.dtypes.to_dict() == rows[found.columns].dtypes.to_dict()
    for draw in range(3):
        part = found.loc[draw]
        for name in ("visits", "cured", "ward", "age", "weight"):  # to the bit
            assert (part[name].to_numpy() == rows[name].to_numpy()).all()


def test_a_counterfactual_is_repeatable_and_follows_its_seed(model, df):
    ask = {"df": df.head(50), "do": {"stage": "I"}}
    first = model.counterfactual(**ask, seed=1)
    pd.testing.assert_frame_equal(first, model.counterfactual(**ask, seed=1))
    assert not first.equals(model.counterfactual(**ask, seed=2))


@pytest.mark.slow
def test_a_risk_difference_is_that_of_samples(model):
    """20,000 rows an arm: within 5 standard errors of the difference of shares."""
    effect = model.effect("cured", do={"stage": "III"}, versus={"stage": "I"}, draws=20_000)
    shares = [model.sample(20_000, do={"stage": s}, seed=9).cured.mean() for s in ("III", "I")]
    error = math.sqrt(sum(p * (1 - p) / 20_000 for p in shares))
    assert abs(effect.estimate - (shares[0] - shares[1])) < 5 * math.hypot(
        error, effect.standard_error
    )
    assert effect.event is True
    assert effect.risk_ratio == pytest.approx(effect.mean / effect.mean_versus)
    wards = model.effect("ward", do={"age": 60}, versus={"age": 30}, draws=100)
    assert wards.probabilities.level.tolist() == ["A", "B", "C"]
    assert model.effect("stage", do={"age": 70}, draws=500, event="III").estimate > 0


# Densities


def test_density_times_probability_sums_to_one(model):
    """sex and weight: a sum over one, an integral over the other."""
    grid = np.linspace(1.0, 400.0, 8001)
    total = 0.0
    for sex in ("f", "m"):
        rows = pd.DataFrame({"sex": [sex] * len(grid), "weight": grid})
        total += quad.simpson(np.exp(model.log_prob(rows)), x=grid)
    assert total == pytest.approx(1.0, abs=1e-6)
    counts = pd.DataFrame({"visits": np.arange(200)})
    assert np.exp(model.log_prob(counts)).sum() == pytest.approx(1.0, abs=0.02)


def test_rows_of_probability_zero_have_minus_infinity_and_a_reason(model, complete, caplog):
    rows = complete.head(4).astype({"visits": "float64"})
    rows.loc[0, "visits"] = -1.0
    rows.loc[1, "visits"] = 1.5
    rows.loc[2, "weight"] = 0.0
    found = model.log_prob(rows, quality=True)
    assert np.isneginf(found.log_prob).tolist() == [True, True, True, False]
    assert not found.isna().any().any()
    assert "'visits' has -1" in found.reason[0]
    assert "whole number" in found.reason[1]
    assert "'weight' has 0, and only a number above 0" in found.reason[2]
    assert found.reason[3] == ""
    assert "3 rows have probability zero" in caplog.text
    assert np.isneginf(model.log_prob(rows, given=["visits"])).tolist() == [True] * 3 + [False]
    # What a row shows of a held column does not matter.
    assert np.isfinite(model.log_prob(rows, do={"visits": 2, "weight": 60.0})).all()
    for ask in (model.impute, lambda df: model.counterfactual(df, do={"age": 50})):
        with pytest.raises(InputError, match=r"'visits' has -1.*labelled 0"):
            ask(rows.drop(index=2))


def test_a_structural_model_has_codes_and_the_users_units(model, complete):
    structural = model.structural_model()
    order = list(model.graph_.nodes)
    table = model.schema_.columns
    raw = np.column_stack([column.read(complete[column.name]) for column in table])
    expected = structural.log_prob(torch.tensor(raw))
    np.testing.assert_allclose(model.log_prob(complete), expected.numpy(), rtol=1e-9)
    noise = torch.randn(50, structural.noise_width, generator=torch.Generator().manual_seed(0))
    x = structural.generate(noise)
    assert set(x[:, order.index("stage")].tolist()) <= {0.0, 1.0, 2.0}
    assert (x[:, order.index("weight")] > 0).all()


class Fair(Mechanism):
    """A count that is 0 or 1 with even odds, and nothing else."""

    def log_prob(self, x, parents):
        return torch.where(x < 2, math.log(0.5), -torch.inf)

    def generate(self, u, parents):
        return (u > 0).double()

    def abduct(self, x, parents, generator=None):
        return x


class ByHand(QueryMixin):
    """A model made by hand."""

    unseen = "error"
    graph_ = CausalGraph.read("a -> n")
    schema_ = Schema((Continuous("a", Unit()), Count("n", 0.5, 0.5, has_zero=True)))

    def __init__(self):
        line = Gaussian(0).double()
        line.set_line(0.0, [], 1.0)
        self.model_ = StructuralModel(self.graph_, [line, Fair()])


def test_what_the_model_rules_out_is_said_with_its_node():
    rows = pd.DataFrame({"a": [0.1, 0.2], "n": [1, 7]})
    found = ByHand().log_prob(rows, quality=True)
    assert np.isneginf(found.log_prob).tolist() == [False, True]
    assert found.reason.tolist() == [
        "",
        "the model gives what this row shows probability zero ('n', given its parents)",
    ]
    given = ByHand().log_prob(rows, given=["n", "a"])
    assert not given.isna().any()


# The front door


@pytest.mark.slow
def test_an_unseen_level_is_an_error_or_a_hole(model, df, caplog):
    rows = df.head(3).astype({"ward": object})
    rows.loc[1, "ward"] = "Z"
    with pytest.raises(InputError, match=r"'ward' has 'Z' in the row labelled 1.*'A', 'B', 'C'"):
        model.log_prob(rows)
    lenient = clone(model).set_params(unseen="missing").fit(df)
    hidden = rows.copy()
    hidden.loc[1, "ward"] = None
    pd.testing.assert_series_equal(lenient.log_prob(rows), lenient.log_prob(hidden))
    assert "'ward': 1 cells with levels unseen" in caplog.text
    assert set(lenient.impute(rows, draws=1).ward) <= {"A", "B", "C"}
    with pytest.raises(InputError, match="unseen is 'error' or 'missing'; got 'drop'"):
        MissCNF(GRAPH, unseen="drop").fit(df)


@pytest.mark.slow
def test_kinds_are_kept_logged_and_never_printed(df, caplog, capsys):
    with caplog.at_level(logging.INFO, "misscnf"):
        model = MissCNF(GRAPH, preset="linear").fit(df)
    assert "The kinds of the columns" in caplog.text
    assert "I < II < III" in caplog.text
    assert capsys.readouterr().out == ""
    kinds = model.kinds_.set_index("column").kind
    assert kinds.to_dict() == {
        "sex": "binary",
        "age": "continuous",
        "stage": "ordinal",
        "ward": "categorical",
        "visits": "count",
        "weight": "continuous",
        "cured": "binary",
    }


@pytest.mark.slow
def test_a_loaded_model_has_labels_dtypes_and_kinds(model, df, tmp_path):
    model.save(tmp_path)
    loaded = MissCNF.load(tmp_path)
    assert loaded.schema_ == model.schema_
    pd.testing.assert_frame_equal(loaded.kinds_, model.kinds_)
    pd.testing.assert_frame_equal(loaded.sample(20), model.sample(20), check_exact=True)
    pd.testing.assert_series_equal(loaded.log_prob(df), model.log_prob(df), check_exact=True)
    pd.testing.assert_frame_equal(loaded.impute(df.head(9)), model.impute(df.head(9)))
    refitted = clone(loaded).fit(df)
    assert refitted.schema_.columns == model.schema_.columns


def test_user_tables_are_never_changed(model, df):
    before = df.copy(deep=True)
    model.impute(df, draws=1)
    model.counterfactual(df, do={"stage": "I"})
    pd.testing.assert_frame_equal(df, before)
