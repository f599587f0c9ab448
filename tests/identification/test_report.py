"""The report as people meet it: the paper's example, lavaan's table, questions, bad input."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from simulated import table_with_a_region

from misscnf.errors import InputError
from misscnf.graph import CausalGraph
from misscnf.identification import check, uncovered_families, warning_sentence
from misscnf.identification.settings import CheckSettings
from misscnf.options import from_dict

FIXTURES = Path(__file__).parents[1] / "fixtures"
FIGURE_2 = "x1 -> x3; x2 -> x3; x2 -> x4; x3 -> x5"
HOLE = float("nan")


@pytest.fixture(scope="module")
def figure_2():
    """The paper's Figure 2: patterns {1, 2, 3, 5} and {1, 2, 4}, by the value of x1."""
    rng = np.random.default_rng(0)
    x = {f"x{i}": rng.normal(size=4000) for i in range(1, 6)}
    x["x3"] += x["x1"] - x["x2"]
    x["x4"] += x["x2"]
    x["x5"] += 0.5 * x["x3"]
    table = pd.DataFrame(x)
    first = rng.random(len(table)) < 1.0 / (1.0 + np.exp(-table["x1"]))
    table.loc[first, "x4"] = HOLE
    table.loc[~first, ["x3", "x5"]] = HOLE
    return check(table, FIGURE_2)


@pytest.fixture(scope="module")
def partly():
    graph, table, _ = table_with_a_region(0)
    return check(table, graph)


# The paper's example, and lavaan's


def test_figure_2_has_family_positivity_without_a_complete_row(figure_2):
    assert figure_2.ok
    assert figure_2.family_positivity
    assert not figure_2.full_pattern_positivity
    assert "no row is complete" in figure_2.summary()


def test_figure_2_names_the_pattern_of_every_family(figure_2):
    long, short = "{x1, x2, x3, x5}", "{x1, x2, x4}"
    named = dict(zip(figure_2.nodes["node"], map(set, figure_2.nodes["patterns"]), strict=True))
    assert named == {
        "x1": {long, short},
        "x2": {long, short},
        "x3": {long},
        "x4": {short},
        "x5": {long},
    }


def test_nocomplete4_gives_no_false_alarm():
    report = check(pd.read_csv(FIXTURES / "nocomplete4.csv"), "b ~ a\nc ~ b\nd ~ c + b")
    assert report.ok
    assert report.uncovered == ()
    assert not report.full_pattern_positivity
    assert not report.regions["flagged"].any()
    assert len(report.patterns) == 2


def test_the_front_door_has_the_function_not_the_package():
    import misscnf
    import misscnf.identification.families

    assert misscnf.check is check


# What a report holds


def test_patterns_are_counted_most_frequent_first():
    table = pd.DataFrame({"a": [1.0, 2, 3, HOLE], "b": [1.5, 3, HOLE, HOLE]})
    report = check(table, "a -> b")
    assert report.patterns["row count"].tolist() == [2, 1, 1]
    assert report.patterns[["a", "b"]].to_numpy().tolist()[0] == [True, True]
    assert report.patterns["whole families"].tolist()[0] == ("a", "b")
    assert report.patterns["row share"].sum() == pytest.approx(1.0)
    assert report.monotone
    assert report.usage["rows"].tolist() == [2, 3]
    assert report.usage["cells"].tolist() == [4, 5]


def test_patterns_that_are_not_nested_are_not_monotone():
    table = pd.DataFrame({"a": [1.0, 2, 3, HOLE], "b": [1.5, 3, HOLE, 2]})
    assert not check(table, "a -> b").monotone


def test_a_region_is_told_in_words_with_counts_and_bounds(partly):
    assert not partly.ok
    assert partly.uncovered == ("y",)
    line = partly.nodes.set_index("node").loc["y"]
    assert line["status"] == "uncovered in part"
    assert line["family positivity"] == "not guaranteed"
    assert line["sentence"].startswith(
        "y with its parents a, t, sex: never seen together where t is above "
    )
    region = partly.regions.iloc[0]
    assert region["flagged"]
    assert region["whole"] == 0
    assert region["rows"] == pytest.approx(250, abs=10)
    assert region["share"] == pytest.approx(0.05, abs=0.003)
    assert 0.0 < region["upper"] < 0.02


def test_the_words_never_say_impossible_nor_that_loss_is_mar(partly):
    text = partly.summary()
    assert "not guaranteed" in text
    assert "impossible" not in text
    assert "MAR holds" not in text
    assert "no table can tell" in text


def test_a_family_that_is_seen_everywhere_shows_where_it_is_thinnest():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(2000, 2)), columns=["a", "b"])
    table.loc[rng.random(2000) < 0.3, "b"] = HOLE
    report = check(table, "a -> b")
    assert report.ok
    thin = report.regions.iloc[0]
    assert not thin["flagged"]
    assert thin["lower"] <= thin["chance"] <= thin["upper"]
    assert thin["share"] >= 0.02


def test_the_report_is_plain_json(partly):
    entry = json.loads(json.dumps(partly.to_dict(), allow_nan=False))
    assert entry["ok"] is False
    assert entry["regions"][0]["conditions"][0]["column"] == "t"
    assert {"nodes", "patterns", "loss", "little", "consequences"} <= entry.keys()


def test_the_picture_and_the_html_are_made(partly, figure_2):
    for report in (partly, figure_2):
        figure = report.plot()
        figure.canvas.draw()
        assert len(figure.axes) >= 2
        assert report._repr_html_().startswith("<div")
    assert "not guaranteed: y" in repr(partly)


# One question


def test_an_effect_needs_its_own_families_only(partly):
    graph, table, _ = table_with_a_region(0)
    report = check(table, graph, effect=("a", "t"))
    assert report.ok
    assert report.needed == ("z", "t")
    assert "The effect of a on t needs z, t with its parents a, z." in report.summary()
    report = check(table, graph, effect=("t", "y"))
    assert not report.ok
    assert report.needed == ("a", "sex", "y")
    assert report.consequences["leans on"].tolist() == [("y",)]


def test_an_effect_that_the_graph_denies_needs_nothing():
    graph, table, _ = table_with_a_region(0)
    report = check(table, graph, effect=("y", "t"))
    assert report.ok
    assert report.needed == ()
    assert "By the graph y has no effect on t" in report.summary()


def test_consequences_follow_the_graph(partly):
    table = partly.consequences.set_index(["question", "treatment", "outcome"])["leans on"]
    assert table[("effect", "t", "y")] == ("y",)
    assert table[("effect", "a", "t")] == ()
    assert table[("counterfactual", "a", "y")] == ("y",)
    marginals = partly.consequences[partly.consequences["question"] == "marginal"]
    assert marginals.loc[marginals["leans on"].map(len) > 0, "outcome"].tolist() == ["y"]


# What a fit asks


def test_families_that_no_row_shows_whole_are_found_with_a_sentence():
    graph = CausalGraph.read("a -> b; b -> c")
    observed = np.array([[True, True, False], [False, False, True]])
    assert uncovered_families(graph, observed) == ["c"]
    assert uncovered_families(graph, np.ones((3, 3), dtype=bool)) == []
    sentence = warning_sentence(graph, ["c"])
    assert sentence.startswith("no row shows c with its parent b")
    assert sentence.count(".") == 2  # the end, and misscnf.identification


def test_a_family_never_seen_whole_is_not_guaranteed():
    table = pd.DataFrame({"a": [1, 2.5, HOLE, HOLE], "b": [HOLE, HOLE, 3.5, 4]})
    report = check(table, "a -> b")
    assert not report.ok
    assert report.nodes["status"].tolist() == ["covered", "never whole"]
    assert "no row shows them together" in report.summary()
    assert "With fewer than 149 rows" in report.summary()


# Small and odd tables


@pytest.mark.parametrize(
    ("columns", "graph"),
    [
        ({"a": [1, 2.5, 3]}, CausalGraph.from_edges([], nodes=["a"])),
        ({"a": [1, HOLE, 3.5, 4, 5], "b": [1.5, 2, HOLE, 0, 1]}, "a -> b"),
        ({"a": ["u", "v", None, "u"], "b": [True, None, False, True]}, "a -> b"),
        ({"a": [1.5, 2, 3], "b": [4.5, 5, 7]}, "a -> b"),
        ({"a": [HOLE, 1.5, 2], "b": [HOLE, 2.5, 3]}, "a -> b"),
    ],
)
def test_small_tables_are_reported(columns, graph):
    report = check(pd.DataFrame(columns), graph)
    assert report.summary()
    json.dumps(report.to_dict(), allow_nan=False)
    report.plot().canvas.draw()


def test_the_table_is_never_changed():
    _, table, _ = table_with_a_region(0, rows=300)
    before = table.copy(deep=True)
    check(table, "a -> t; t -> y")
    pd.testing.assert_frame_equal(table, before)


TABLE = pd.DataFrame({"a": [1.0, 2.5, HOLE], "b": [0.5, HOLE, 1.0]})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1, 2], "a -> b"), "a table is a pandas DataFrame"),
        (("no_such_file.csv", "a -> b"), "there is no file"),
        ((TABLE.iloc[:0], "a -> b"), "has no rows"),
        ((TABLE, "a -> c"), "node 'c' has no column"),
        ((TABLE.assign(b=HOLE), "a -> b"), "has no observed value"),
        ((TABLE, "a -> b; b -> a"), "has the cycle"),
        ((TABLE, 3), "a graph cannot be read"),
        ((TABLE, "a -> b", "a"), "an effect is a pair"),
        ((TABLE, "a -> b", ("a", "b", "c")), "an effect is a pair"),
        ((TABLE, "a -> b", ("a", "x")), "the graph has no node 'x'"),
        ((TABLE, "a -> b", ("a", "a")), "of one node on another"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, words):
    with pytest.raises(InputError, match=words) as error:
        check(*arguments)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"chance": 2.0}, "is a share between 0 and 1"),
        ({"share": 0.0}, "is a share between 0 and 1"),
        ({"chance": "low"}, "regions.chance' is a number"),
    ],
)
def test_bad_rules_get_one_sentence(option, words):
    with pytest.raises(InputError, match=words):
        check(TABLE, "a -> b", **option)


def test_settings_are_changed_by_name_and_kept_in_the_report():
    rows = 400
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, rows))
    table = pd.DataFrame({"a": a, "b": b, "c": a + 0.35 * b + rng.normal(size=rows)})
    graph = "a -> c; b"
    strict = check(table, graph, settings={"independences.level": 1e-12})
    loose = check(table, graph, settings={"independences.level": 0.05})
    assert (len(strict.contradictions), len(loose.contradictions)) == (0, 1)
    assert loose.to_dict()["settings"]["independences"]["level"] == 0.05
    assert from_dict(CheckSettings, loose.to_dict()["settings"]) == loose.settings
    with pytest.raises(InputError, match=r"nearest are .*independences\.level"):
        check(table, graph, settings={"independence.level": 0.05})
    with pytest.raises(InputError, match="chance is a share between 0 and 1"):
        check(table, graph, settings={"regions.chance": 3})


def test_short_arguments_are_settings():
    short = check(TABLE, "a -> b", chance=0.1, share=0.3).settings
    assert (short.regions.chance, short.regions.share) == (0.1, 0.3)
    with pytest.raises(InputError, match="a number"):
        check(TABLE, "a -> b", settings={"regions.chance": "low"})
