"""Rubin's rules: against what mice prints, against statsmodels, and at the edges."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats
from statsmodels.imputation import mice

from misscnf import InputError, MissCNF, pool
from misscnf.queries.pooling import Pooled, pool_estimates

RECORDED = json.loads((Path(__file__).parents[1] / "fixtures" / "mice_pool.json").read_text())


def tables(count=5, rows=60, seed=0):
    """Completed tables that differ in a third of y, as imputations do."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    y = 1 + 2 * x + rng.normal(size=rows)
    lost = rng.random(rows) < 1 / 3
    return [
        pd.DataFrame({"x": x, "y": np.where(lost, 1 + 2 * x + rng.normal(size=rows), y)})
        for _ in range(count)
    ]


def regression(df):
    return sm.OLS(df["y"], sm.add_constant(df[["x"]])).fit()


# ----------------------------------------------------------------------------------- oracles


@pytest.mark.parametrize("name", ["pool.scalar, mean of bmi", "pool.scalar, slope of age"])
def test_all_printed_digits_of_pool_scalar_are_met(name):
    case = RECORDED[name]
    pooled = pool_estimates(case["qhat"], case["u"], df_complete=case["df_complete"])
    assert pooled.m == len(case["qhat"])
    found = pooled.table.loc["estimate"]
    for key, printed in case["pooled"].items():
        assert float(f"{found[key]:.{case['digits']}g}") == pytest.approx(printed, rel=2e-7), key


def test_pool_of_two_regressions_is_that_of_mice():
    """Inputs are printed to 4 or 5 digits, and b is a difference of them: 1 % of it remains."""
    case = RECORDED["pool, lm(bmi ~ age)"]
    answers = iter(zip(case["estimates"], case["standard_errors"], strict=True))

    def estimator(_):
        q, se = next(answers)
        return pd.Series(q, case["terms"]), pd.Series(np.square(se), case["terms"])

    pooled = pool([pd.DataFrame()] * 2, estimator, df_complete=case["df_complete"])
    assert list(pooled.table.index) == case["terms"]
    for key, printed in case["pooled"].items():
        exact = key in ("estimate", "ubar", "t")
        np.testing.assert_allclose(pooled.table[key], printed, rtol=2e-4 if exact else 1e-2)


def test_standard_errors_and_fmi_agree_with_statsmodels():
    """Its MICE pools by the same rules, with fmi before the small-sample term: our lambda."""
    results = [regression(df) for df in tables()]
    combined = _statsmodels_combine(results)
    table = pool(tables(), regression).table
    np.testing.assert_allclose(table["estimate"], combined.params, rtol=1e-12)
    np.testing.assert_allclose(
        table["standard_error"], np.sqrt(np.diag(combined.cov_params())), rtol=1e-12
    )
    np.testing.assert_allclose(table["lambda"], combined.frac_miss_info, rtol=1e-12)


def _statsmodels_combine(results):
    """Runs the combining step of statsmodels' MICE on results that are there already."""
    machine = mice.MICE.__new__(mice.MICE)
    machine.results_list, machine.model_class = results, sm.OLS
    machine.exog_names, machine.endog_names = list(results[0].params.index), "y"
    return machine.combine()


def test_intervals_and_p_values_are_those_of_the_t_law():
    pooled = pool(tables(), regression, level=0.9)
    for line in pooled.table.itertuples():
        law = stats.t(line.df, loc=line.estimate, scale=line.standard_error)
        assert (line.lower, line.upper) == pytest.approx(law.interval(0.9))
        assert line.p_value == pytest.approx(2 * min(law.cdf(0), law.sf(0)))


# ----------------------------------------------------------------------------------- forms


def test_every_form_of_answer_gives_the_same_table():
    def pair(df):
        fit = regression(df)
        return fit.params, fit.bse**2

    class Bare:
        """A fitted result with a covariance only."""

        def __init__(self, df):
            fit = regression(df)
            self.params, self.df_resid = fit.params, fit.df_resid
            self.cov_params = fit.cov_params

    expected = pool(tables(), regression).table
    assert pool(tables(), regression).df_complete == 58
    forms = {
        "pair": pair,
        "dicts": lambda df: tuple(part.to_dict() for part in pair(df)),
        "covariance": lambda df: (regression(df).params, regression(df).cov_params()),
        "variances in another order": lambda df: (pair(df)[0], pair(df)[1].iloc[::-1]),
    }
    for name, estimator in forms.items():
        found = pool(tables(), estimator, df_complete=58).table
        pd.testing.assert_frame_equal(found, expected, obj=name)
    pd.testing.assert_frame_equal(pool(tables(), Bare).table, expected)
    arrays = pool(tables(), lambda df: tuple(map(np.asarray, pair(df))), df_complete=58).table
    assert list(arrays.index) == ["estimate 0", "estimate 1"]
    np.testing.assert_allclose(arrays, expected)


def test_the_long_table_of_impute_is_taken_apart():
    df = tables(1)[0]
    df.loc[:20, "y"] = np.nan
    model = MissCNF("x -> y", preset="linear", progress=False).fit(df)
    long = model.impute(df, draws=4)
    seen = []
    pooled = pool(long, lambda part: seen.append(part) or (part.y.mean(), part.y.var() / 60))
    assert pooled.m == 4
    assert all(part.index.equals(df.index) for part in seen)
    apart = pool([long.loc[k] for k in range(4)], lambda part: (part.y.mean(), part.y.var() / 60))
    pd.testing.assert_frame_equal(pooled.table, apart.table)
    assert 0.05 < pooled.table["fmi"].iloc[0] < 0.9


# ----------------------------------------------------------------------------------- edges


def test_equal_estimates_have_nothing_missing():
    table = pool_estimates([1.0, 1.0, 1.0], [0.25, 0.25, 0.25], df_complete=100).table
    line = table.iloc[0]
    assert (line.riv, line["lambda"], line.standard_error) == (0.0, 0.0, 0.5)
    assert line.df == pytest.approx(100 * 101 / 103)  # what the adjustment leaves of 100
    large = pool_estimates([1.0, 1.0], [0.25, 0.25]).table.iloc[0]
    assert np.isinf(large.df)
    assert large.fmi == 0.0
    assert large.upper == pytest.approx(1 + stats.norm.ppf(0.975) / 2)


def test_a_sure_estimate_has_no_error():
    line = pool_estimates([2.0, 2.0], [0.0, 0.0]).table.iloc[0]
    assert (line.standard_error, line.lower, line.upper) == (0.0, 2.0, 2.0)


def test_without_degrees_of_freedom_the_sample_counts_as_large():
    case = RECORDED["pool.scalar, mean of bmi"]
    pooled = pool_estimates(case["qhat"], case["u"])
    line = pooled.table.iloc[0]
    assert np.isinf(pooled.df_complete)
    assert line.df == pytest.approx(4 / line["lambda"] ** 2)  # Rubin (1987), 3.1.6


def test_the_degrees_of_freedom_never_pass_those_of_a_complete_table():
    rng = np.random.default_rng(0)
    for _ in range(50):
        q, u = rng.normal(size=(3, 4)), rng.exponential(size=(3, 4))
        table = pool_estimates(list(q), list(u), df_complete=12.0).table
        assert ((table.df > 0) & (table.df < 12)).all()
        assert table.fmi.between(0, 1).all()


def other_names():
    """An estimator that calls its term a, then b, …"""
    letters = iter("abcde")
    return lambda df: ({next(letters): 1.0}, [1.0])


BAD = {
    "one table": (lambda: pool_estimates([1.0], [1.0]), "at least 2 imputed tables and got 1"),
    "not long": (lambda: pool(tables()[0], regression), "a single table cannot be pooled"),
    "nothing": (lambda: pool([], regression), "got 0"),
    "odd answer": (lambda: pool(tables(), lambda df: "high"), "returns str for table 0"),
    "no variances": (
        lambda: pool(tables(), lambda df: type("Fit", (), {"params": [1.0]})()),
        "neither bse nor cov_params",
    ),
    "terms differ": (
        lambda: pool(tables(), other_names()),
        r"\['a'\] for table 0 and \['b'\] for table 1",
    ),
    "names differ": (
        lambda: pool(tables(), lambda df: ({"a": 1.0}, {"b": 1.0})),
        "the same names",
    ),
    "shapes differ": (lambda: pool_estimates([[1, 2]] * 2, [[1]] * 2), r"shape \(1,\)"),
    "lengths differ": (lambda: pool_estimates([1, 2], [1]), "2 estimates and 1 variances"),
    "sizes differ": (lambda: pool_estimates([[1], [1, 2]], [[1], [1, 2]]), "same terms"),
    "negative": (lambda: pool_estimates([1, 2], [1, -1]), "'estimate' of table 1 is 2 with"),
    "nan": (lambda: pool_estimates([1, np.nan], [1, 1]), "finite"),
    "no variance": (lambda: pool_estimates([1, 2], [0, 0]), "variance 0 in every table"),
    "level": (lambda: pool_estimates([1, 2], [1, 1], level=95), "between 0 and 1"),
    "df": (lambda: pool_estimates([1, 2], [1, 1], df_complete=0), "positive number"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_pooled_gets_one_sentence(name):
    ask, fragment = BAD[name]
    with pytest.raises(InputError, match=fragment) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_it_prints_what_people_report():
    pooled = pool(tables(), regression)
    assert isinstance(pooled, Pooled)
    text = str(pooled)
    assert "5 imputed tables, 95 % intervals, 58 degrees of freedom" in text
    for word in ("const", "estimate", "lower", "p_value", "fmi"):
        assert word in text
    assert "<table" in pooled._repr_html_()
