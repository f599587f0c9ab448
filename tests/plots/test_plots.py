"""Pictures show the numbers that they are given, in the axes that they are given."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

from misscnf import CausalGraph, InputError, check, plots
from misscnf.display.tables import to_latex, to_markdown
from misscnf.queries.by import GroupEffects
from misscnf.queries.curves import Curve
from misscnf.queries.effects import Effect
from misscnf.queries.incidence import Risks
from misscnf.queries.references import ReferenceBased


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture
def axes():
    return Figure().subplots()


@pytest.fixture(scope="module")
def report():
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(200, 3)), columns=["age", "dose", "days"])
    df.loc[:79, "dose"] = np.nan
    return check(df, "age -> dose; age -> days; dose -> days")


def answer(estimate, **more):
    given = {"standard_error": 0.0, "mean": 5.0, "mean_versus": 5.0 - estimate, "draws": 10}
    given |= {"interval": (estimate - 1, estimate + 1), "level": 0.95}
    return Effect("days", {"dose": 2}, {"dose": 1}, estimate, **{**given, **more})


FRAME = pd.DataFrame({"term": ["a", "b"], "estimate": [1.0, 2.0], "lower": 0.5, "upper": 2.5})
HISTORY = pd.DataFrame(
    {"epoch": [1, 2, 3], "train": [-3.0, -2.0, -1.5], "validation": [-3.1, -2.2, -2.3]}
).assign(kept=[False, True, False])


def drawings(report):
    """Each function with something to draw."""
    df = pd.DataFrame({"x": [*np.linspace(0, 1, 30), np.nan, np.nan], "k": [0.0, 1.0] * 16})
    imputed = pd.concat({k: df.fillna(k / 2) for k in (0, 1)})
    curve = pd.DataFrame({"dose": [0.0, 1.0], "mean": [2.0, 3.0]})
    course = pd.DataFrame({"time": [0, 1], "risk": [0.1, 0.2], "versus": [0.2, 0.4]})
    risks = Risks("death", {"A": 1}, {"A": 0}, course, 1.0)
    left = pd.DataFrame({"reference": ["MAR", "J2R"], "estimate": [-2.8, -2.1]})
    regimes = ReferenceBased("days", {"A": 1}, {"A": 0}, left, (20, 20), (5, 4), ())
    return {
        "regimes": lambda **ax: plots.regimes(regimes, **ax),
        "risks": lambda **ax: plots.risks(risks, **ax),
        "forest": lambda **ax: plots.forest(FRAME, **ax),
        "curve": lambda **ax: plots.curve(curve, **ax),
        "graph": lambda **ax: plots.graph(report, **ax),
        "patterns": lambda **ax: plots.patterns(report, **ax),
        "coverage": lambda **ax: plots.coverage(report, **ax),
        "training": lambda **ax: plots.training(HISTORY, **ax),
        "noise": lambda **ax: plots.noise(np.arange(5.0), **ax),
        "imputations": lambda **ax: plots.imputations(df, imputed, "x", **ax),
    }


@pytest.mark.parametrize("name", sorted(set(plots.__all__) - {"sensitivity"}))
def test_a_picture_is_drawn_into_the_axes_that_are_given(report, axes, name):
    before, opened = dict(mpl.rcParams), pyplot.get_fignums()
    assert drawings(report)[name](ax=axes) is axes
    assert axes.has_data() or axes.texts
    assert pyplot.get_fignums() == opened
    assert drawings(report)[name]().figure is pyplot.gcf()
    pyplot.gcf().canvas.draw()
    assert dict(mpl.rcParams) == before


def test_a_forest_has_a_line_an_effect(axes):
    plots.forest({"men": answer(3.0), "women": answer(4.0, interval=None)}, ax=axes)
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["men", "women"]
    drawn = [tuple(line.get_xdata()) for line in axes.lines]
    assert drawn == [(0.0, 0.0), (2.0, 4.0), (3.0,), (4.0,)]


def test_a_forest_of_something_else_is_refused(axes):
    with pytest.raises(InputError, match="no column 'estimate'"):
        plots.forest(pd.DataFrame({"term": ["a"]}), ax=axes)
    with pytest.raises(InputError, match="at least one effect"):
        plots.forest({}, ax=axes)


def test_an_effect_draws_itself_with_its_groups(axes):
    groups = GroupEffects("sex", {"0": answer(1.0), "1": answer(2.0)})
    answer(1.5, groups=groups).plot(ax=axes)
    names = [tick.get_text() for tick in axes.get_yticklabels()]
    assert names == ["everybody", "sex 0", "sex 1"]
    assert axes.get_xlabel().startswith("mean difference of days")


def test_a_curve_is_a_table_that_draws_itself(axes):
    table = pd.DataFrame({"dose": [0.0, 1.0], "mean": [2.0, 3.0], "mean_lower": 1.0})
    table.attrs["statistic"] = "median"
    curve = Curve.of(table.assign(mean_upper=4.0), "days")
    curve.plot(ax=axes)
    assert axes.get_ylabel() == "median of days"
    assert list(axes.lines[0].get_ydata()) == [2.0, 3.0]
    assert type(curve[["dose"]]) is pd.DataFrame
    assert curve.to_frame().equals(pd.DataFrame(curve))
    assert curve.to_markdown().splitlines()[2] == "| 0 | 2 | 1 | 4 |"


def test_the_graph_shows_how_often_a_family_is_seen(report, axes):
    plots.graph(report, ax=axes)
    assert {"dose", "60 %", "100 %"} <= {text.get_text() for text in axes.texts}
    plots.graph(CausalGraph.read("a -> b"), ax=Figure().subplots())


def test_the_epoch_that_was_kept_has_a_dot(axes):
    plots.training(HISTORY, ax=axes)
    assert [tuple(line.get_xydata()[0]) for line in axes.lines][-1] == (2.0, -2.2)
    with pytest.raises(InputError, match="no epoch was run"):
        plots.training(HISTORY.head(0))


def test_levels_are_imputed_as_shares(axes):
    df = pd.DataFrame({"k": ["a", "b", "b", "b", None]})
    plots.imputations(df, pd.concat({0: df.fillna("a")}), "k", ax=axes)
    assert [bar.get_height() for bar in axes.patches] == [0.25, 0.75]
    assert list(axes.lines[0].get_ydata()) == [1.0, 0.0]
    with pytest.raises(InputError, match="no holes"):
        plots.imputations(df.dropna(), pd.concat({0: df.dropna()}), "k")


def test_an_effect_is_a_tidy_table():
    frame = answer(3.0, mean_interval=(4.0, 6.0)).to_frame()
    assert list(frame.columns) == ["term", "estimate", "lower", "upper"]
    assert list(frame["term"]) == ["mean difference", "mean, do(dose = 2)", "mean, do(dose = 1)"]
    assert frame.iloc[0, 1:].tolist() == [3.0, 2.0, 4.0]
    assert frame.iloc[1, 1:].tolist() == [5.0, 4.0, 6.0]
    assert np.isnan(frame["lower"].iloc[2])


def test_tables_can_be_pasted():
    frame = pd.DataFrame(
        {"term": ["a_b | 5 %"], "n": [3], "estimate": [0.123456], "lower": [None]}
    )
    assert to_markdown(frame) == "\n".join(
        ["| term | n | estimate |", "| --- | ---: | ---: |", r"| a_b \| 5 % | 3 | 0.1235 |"]
    )
    lines = to_latex(frame).splitlines()
    assert lines[0] == r"\begin{tabular}{lrr}"
    assert lines[4] == r"a\_b | 5 \% & 3 & 0.1235 \\"
    assert answer(3.0).to_latex().count(r"\\") == 4
