"""Kinds: each rule of inference with its near misses, and every way to ask for something else."""

import json
import logging
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from misscnf.data.kinds import KindRules, say_rounded
from misscnf.data.table import IncompleteTable, Schema, describe
from misscnf.errors import InputError

HOLE = float("nan")
rng = np.random.default_rng(0)
STAGES = pd.CategoricalDtype(["low", "mid", "high"], ordered=True)


def kind_of(cells, kinds=None):
    """The row of the table of kinds for one column."""
    asked = None if kinds is None else {"x": kinds}
    return describe(pd.DataFrame({"x": cells}), asked).iloc[0]


def repeated(*values, times=10):
    return list(values) * times


INFERRED = {
    "bool": ([True, False, True], "binary", "True and False"),
    "bools with holes": ([True, None, False], "binary", "True and False"),
    "0/1 floats with holes": ([1.0, HOLE, 0.0, 1.0], "binary", "two distinct whole numbers"),
    "1/2": ([1, 2, 2], "binary", "two distinct whole numbers"),
    "two words": (["f", "m", "f"], "binary", "two distinct texts"),
    "two words in two rows": (["f", "m"], "binary", "two distinct texts"),
    "two fractions, often": (repeated(0.5, 1.5, times=5), "binary", "two distinct numbers"),
    "two fractions, nine times": ([0.5, 1.5, 0.5] * 3, "continuous", "fractions"),
    "two categories": (pd.Categorical(["b", "a", "b"]), "binary", "Categorical"),
    "two of three ordered": (pd.Series(["low", "high"], dtype=STAGES), "binary", "two levels"),
    "ordered": (pd.Series(["low", "high", "mid"], dtype=STAGES), "ordinal", "ordered Categorical"),
    "unordered": (pd.Categorical(["c", "a", "b"]), "categorical", "without order"),
    "categories of numbers": (pd.Categorical([3, 1, 2]), "categorical", "without order"),
    "three words": (["a", "b", "c", "a", "b"], "categorical", "3 distinct texts"),
    "fifty words": (
        repeated(*[f"w{j}" for j in range(50)], times=2),
        "categorical",
        "50 distinct texts",
    ),
    "1 to 3, often": (repeated(1, 2, 3, times=5), "ordinal", "3 distinct whole numbers"),
    "1 to 3 as floats": ([*repeated(1, 2, 3, times=5), HOLE], "ordinal", "each 5 times"),
    "1 to 3, too few": (repeated(1, 2, 3, times=4), "continuous", "too few cells (12)"),
    "1 to 5 in five rows": ([1, 2, 3, 4, 5], "continuous", "too few cells (5)"),
    "six numbers": (repeated(1, 2, 3, 4, 5, 9), "ordinal", "6 distinct whole numbers"),
    "negative levels": (repeated(-1, 0, 1), "ordinal", "3 distinct whole numbers"),
    "three fractions": (repeated(0.5, 1.5, 2.5), "continuous", "fractions"),
    "seven numbers from 0": (repeated(*range(7)), "count", "from 0, half of them up to 3"),
    "seven numbers from 1": (repeated(*range(1, 8)), "count", "from 1"),
    "seven numbers from 2": (repeated(*range(2, 9)), "continuous", "7 distinct whole numbers"),
    "seven from -1": (repeated(*range(-1, 6)), "continuous", "7 distinct whole numbers"),
    "seven, once each": (list(range(7)), "continuous", "taken as continuous"),
    "seven, large": (
        repeated(0, 1, 20, 30, 40, 50, 60),
        "continuous",
        "from 0 to 60, taken as continuous",
    ),
    "counts with a long tail": (rng.negative_binomial(1, 0.2, 300), "count", "whole numbers"),
    "counts with one fraction": ([*rng.poisson(3, 300), 2.5], "continuous", "fractions"),
    "ages": (rng.integers(20, 80, 300), "continuous", "whole numbers from 20 to 79"),
    "measurements": (rng.normal(size=300), "continuous", "fractions"),
    "exact numbers": (
        pd.Series(rng.normal(size=30).round(2), dtype=object),
        "continuous",
        "fractions",
    ),
}


@pytest.mark.parametrize(("cells", "kind", "why"), INFERRED.values(), ids=INFERRED.keys())
def test_a_kind_is_inferred_from_values_and_says_why(cells, kind, why):
    row = kind_of(cells)
    assert row.kind == kind
    assert why in row.why


@pytest.mark.parametrize("dtype", ["int64", "float64", "Int8", "Float64", object])
def test_the_dtype_does_not_decide(dtype):
    assert kind_of(pd.Series(repeated(1, 2, 3), dtype=dtype)).kind == "ordinal"
    assert kind_of(pd.Series(repeated(0, 1), dtype=dtype)).kind == "binary"
    assert kind_of(pd.Series(repeated(*range(9)), dtype=dtype)).kind == "count"
    assert kind_of(pd.Series(range(50, 100), dtype=dtype)).kind == "continuous"


def test_levels_are_sorted_or_in_the_order_of_the_categories():
    assert kind_of(["b", "c", "a", "a", "b"]).levels == "a, b, c"
    assert kind_of(pd.Series(["low", "high", "mid"], dtype=STAGES)).levels == "low < mid < high"
    wards = pd.Categorical(["w1", "w2", "w3"], ["w3", "w1", "w2"])
    assert kind_of(wards).levels == "w3, w1, w2"
    assert kind_of(repeated(3, 1, 2)).levels == "1 < 2 < 3"


REFUSED = {
    "dates as text": (
        [f"2020-01-{d:02}" for d in range(1, 29)],
        "dates as text, such as '2020-01",
    ),
    "identifiers": ([f"p{j}" for j in range(51)] * 3, "identifier or free text, with 51"),
    "free text": ([*"abcdefgh", "a", "a"], "identifier or free text, with mostly texts that"),
    "categories": (pd.Categorical([f"p{j}" for j in range(60)]), "with 60 categories"),
    "numbers as text": (["1", "2", "3", "x"], "'x', which is not a number"),
    "only numbers as text": (["1", "2", "3"], "pandas.to_numeric"),
    "a word among numbers": ([1.0, 2.0, "unknown"], "'unknown', which is not a number"),
    "dates": (pd.date_range("2020", periods=3), "dates"),
    "two that differ by rounding": (repeated(0.3, 0.1 + 0.2), "constant"),
}


@pytest.mark.parametrize(("cells", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_column_of_a_model_is_refused_in_one_sentence(cells, words):
    frame = pd.DataFrame({"x": cells})
    with pytest.raises(InputError, match=words) as caught:
        IncompleteTable.read(frame, ["x"])
    assert "'x'" in str(caught.value)
    assert "\n" not in str(caught.value)
    beside = describe(frame.assign(y=np.arange(len(frame)) % 4 + 0.5))  # which goes on
    assert beside["kind"].tolist() == ["unusable", "continuous"]
    assert beside["why"].iloc[0] == str(caught.value)


# Point masses

COSTS = np.exp(rng.normal(5, 1, 300))
MASSES = {
    "zeros": (np.r_[np.zeros(100), COSTS], "25% of the cells are 0 exactly", [0], "log"),
    "whole costs": (np.r_[np.zeros(300), COSTS.round()], "50% of the cells are 0", [0], "log"),
    "both ends": (
        np.r_[np.zeros(50), np.ones(60), rng.uniform(size=300)],
        "12% of the cells are 0, 15% of the cells are 1",
        [0, 1],
        "plain",
    ),
    "censored": (rng.normal(1, 1, 300).clip(min=0), "of the cells are 0 exactly", [0], "plain"),
    "a ceiling": (rng.normal(90, 10, 300).clip(max=100), "are 100 exactly", [100], "plain"),
    "whole scores": (
        np.repeat(np.arange(3.0, 11.0), [1, 2, 30, 71, 164, 198, 179, 255]),
        "heap up at the largest, 10 (28% of the cells)",
        [10],
        "plain",
    ),
    "a low ceiling": (
        np.repeat(np.arange(4.0, 11.0), [11, 31, 101, 209, 294, 249, 290]),
        "heap up at the largest, 10 (24% of the cells): a ceiling",
        [10],
        "plain",
    ),
    "whole scores from 0": (
        np.repeat(np.arange(8.0), [30, 20, 10, 20, 30, 40, 50, 60]),
        "heap up at the largest, 7",
        [0, 7],
        "logit",
    ),
    "filled in": (np.r_[np.full(40, 3.27), rng.normal(3, 1, 300)], "are 3.27", [3.27], "plain"),
}


@pytest.mark.parametrize(("cells", "why", "at", "scale"), MASSES.values(), ids=MASSES.keys())
def test_values_that_repeat_among_others_that_do_not_are_point_masses(cells, why, at, scale):
    table = IncompleteTable.read(pd.DataFrame({"x": cells}), ["x"])
    row = table.schema.describe().iloc[0]
    assert row.kind == "semicontinuous"
    assert why in row.why
    assert table.schema.kinds["x"] == {"kind": "semicontinuous", "at": at, "scale": scale}
    assert kind_of(cells, "continuous").kind == "continuous"


def test_scores_that_are_whole_are_drawn_whole_although_holes_made_them_floats():
    cells = MASSES["whole scores"][0].astype(float)
    column = IncompleteTable.read(pd.DataFrame({"x": cells}), ["x"]).schema.columns[0]
    drawn = np.array([6.4, 9.6, 10.0])
    assert column.series(drawn).tolist() == [6.0, 10.0, 10.0]
    assert column.series(drawn, exact=True).tolist() == drawn.tolist()
    costs = IncompleteTable.read(pd.DataFrame({"x": MASSES["zeros"][0]}), ["x"]).schema.columns[0]
    assert costs.series(drawn).tolist() == drawn.tolist()


NO_MASSES = {
    "rounded": rng.normal(50, 10, 300).round(),
    "rounded to halves": (2 * rng.normal(size=300)).round() / 2,
    "heaped": np.r_[np.full(80, 20), rng.integers(1, 60, 300)] + 0.5,
    "most at the smallest": np.repeat(np.arange(2.0, 10.0), [80, 70, 60, 50, 40, 30, 20, 10]),
    "few": np.r_[np.zeros(9), rng.normal(size=100)],
    "seldom": np.r_[np.zeros(10), rng.normal(size=300)],
}


@pytest.mark.parametrize("cells", NO_MASSES.values(), ids=NO_MASSES.keys())
def test_numbers_on_a_grid_have_no_point_masses(cells):
    assert kind_of(cells).kind == "continuous"


# Tails


def test_tails_without_a_variance_are_heavy():
    row = kind_of(rng.standard_cauchy(1000))
    assert row.kind == "heavy-tailed"
    assert "tail index" in row.why
    assert kind_of(rng.standard_cauchy(1000), "continuous").kind == "continuous"


@pytest.mark.parametrize("law", ["normal", "t3", "log-normal", "laplace"])
def test_other_tails_are_not(law):
    """Of 200 tables of 500, 2,000 and 5,000 rows each none was accused, of Cauchy's all 2,000."""
    drawn = {"normal": rng.normal, "laplace": rng.laplace, "log-normal": rng.lognormal}
    for _ in range(20):
        cells = rng.standard_t(3, 1000) if law == "t3" else drawn[law](size=1000)
        assert kind_of(cells).kind == "continuous"


# Offers, which are never taken unasked

OFFERS = {
    "skewed": (
        np.exp(rng.normal(0, 1, 300)),
        '{"x": "positive"} in kinds would model its logarithm',
    ),
    "skewed with zeros": (
        np.r_[np.zeros(8), np.exp(rng.normal(5, 1, 300))],
        '8 zeros: {"x": {"kind": "semicontinuous", "at": [0]}} in kinds',
    ),
    "shares": (rng.uniform(0.1, 0.9, 300), '{"x": "proportion"} in kinds would model its logit'),
    "shares at their ends": (
        np.r_[0.0, 1.0, 1.0, rng.uniform(0.1, 0.9, 300)],
        "3 of them at an end",
    ),
}


@pytest.mark.parametrize(("cells", "words"), OFFERS.values(), ids=OFFERS.keys())
def test_another_scale_is_offered_and_not_taken(cells, words):
    row = kind_of(cells)
    assert row.kind == "continuous"
    assert words in row.offer
    asked = json.loads(re.search(r"(\{.*\}) in kinds", row.offer).group(1))
    found = describe(pd.DataFrame({"x": cells}), asked).iloc[0]
    assert found.kind == (asked["x"] if isinstance(asked["x"], str) else asked["x"]["kind"])


NO_OFFER = {
    "symmetric": rng.normal(50, 5, 300),
    "negative too": np.exp(rng.normal(0, 1, 300)) - 1,
    "few": np.exp(rng.normal(0, 1, 9)),
    "skewed to the left": 10 - np.exp(rng.normal(0, 0.5, 300)).clip(max=9),
}


@pytest.mark.parametrize("cells", NO_OFFER.values(), ids=NO_OFFER.keys())
def test_nothing_is_offered_without_need(cells):
    assert kind_of(cells).offer == ""


# Asked for

SHARES = [0.1, 0.5, 0.9, HOLE]
ASKED = {
    "levels as continuous": (repeated(1, 2, 3), "continuous", "continuous", ""),
    "bools as continuous": ([True, False], "continuous", "continuous", ""),
    "ages as counts": (list(range(20, 80)), "count", "count", ""),
    "ages as ordinal": ([20, 30, 40], "ordinal", "ordinal", "20 < 30 < 40"),
    "numbers as categorical": (repeated(1, 2, 3), "categorical", "categorical", "1, 2, 3"),
    "numbers as text": (["1", "2", "10"], "categorical", "categorical", "1, 10, 2"),
    "many words": ([f"w{j}" for j in range(60)], "categorical", "categorical", "w0, w1"),
    "an order": (["I", "III", "II"], ["I", "II", "III"], "ordinal", "I < II < III"),
    "another order": (repeated(1, 2, 3), [3, 1, 2], "ordinal", "3 < 1 < 2"),
    "a described order": (
        ["I", "III", "II"],
        {"kind": "ordinal", "levels": ["III", "II", "I"]},
        "ordinal",
        "III < II < I",
    ),
    "binary, turned": ([0, 1], {"kind": "binary", "levels": [1, 0]}, "binary", "1, 0"),
    "order of the categories": (
        pd.Categorical(["a", "b", "c"], ["c", "b", "a"]),
        "ordinal",
        "ordinal",
        "c < b < a",
    ),
    "positive": (SHARES, "positive", "positive", "above 0"),
    "positive above -1": (SHARES, {"kind": "positive", "low": -1}, "positive", "above -1"),
    "proportion": (SHARES, "proportion", "proportion", "between 0 and 1"),
    "bounded": (
        SHARES,
        {"kind": "bounded", "low": 0, "high": 10},
        "bounded",
        "between 0 and 10",
    ),
}


@pytest.mark.parametrize(("cells", "asked", "kind", "levels"), ASKED.values(), ids=ASKED.keys())
def test_what_is_asked_for_comes_first(cells, asked, kind, levels):
    row = kind_of(cells, asked)
    assert row.kind == kind
    assert row.levels.startswith(levels)
    assert row.why == "as asked in kinds"
    # and what a schema would ask for gives the same again
    frame = pd.DataFrame({"x": cells})
    schema = IncompleteTable.read(frame, ["x"], kinds={"x": asked}).schema
    assert IncompleteTable.read(frame, ["x"], kinds=schema.kinds).schema == schema


def test_one_kind_for_all_columns():
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [1, 2, 3]})
    assert describe(frame, "continuous").kind.tolist() == ["continuous"] * 2
    assert describe(frame, "categorical").kind.tolist() == ["categorical"] * 2


def test_levels_that_are_never_seen_are_none_and_said_so(caplog):
    row = kind_of(["I", "II", "I"], ["I", "II", "III", "IV"])
    assert row.levels == "I < II"
    assert "'III', 'IV' is never seen" in caplog.text


def test_kinds_of_columns_outside_the_graph_do_no_harm(caplog):
    frame = pd.DataFrame({"x": [0, 1, 1], "note": ["a", "b", "c"]})
    with caplog.at_level(logging.INFO, "misscnf"):
        IncompleteTable.read(frame, ["x"], kinds={"note": "categorical"})
    assert "'note'" in caplog.text


TEXTS = ["I", "II", "III"]
BAD = {
    "unknown column": ([1, 2, 3], {"y": "count"}, "'y', which is not a column"),
    "misspelt column": ([1, 2, 3], {"xx": "count"}, "did you mean 'x'"),
    "unknown kind": ([1, 2, 3], {"x": "nominal"}, "'nominal', which is not a kind"),
    "misspelt kind": ([1, 2, 3], {"x": "ordnal"}, "did you mean 'ordinal'"),
    "no kind": ([1, 2, 3], {"x": {"levels": [1, 2]}}, "None, which is not a kind"),
    "a number": ([1, 2, 3], {"x": 3}, "the kind of 'x' is 3; expected a name"),
    "not a mapping": ([1, 2, 3], ["x"], "got list"),
    "one for all": ([1, 2, 3], "bounded", "expected a kind"),
    "unknown option": ([1, 2, 3], {"x": {"kind": "count", "low": 0}}, "takes no options"),
    "option of another": ([1, 2, 3], {"x": {"kind": "ordinal", "high": 0}}, "'levels' only"),
    "bounded by nothing": ([1, 2, 3], {"x": "bounded"}, "without its ends"),
    "bounded by text": (
        [1, 2, 3],
        {"x": {"kind": "bounded", "low": "a", "high": 1}},
        "low = 'a'; expected a finite number",
    ),
    "bounded backwards": (
        [1, 2, 3],
        {"x": {"kind": "bounded", "low": 5, "high": 1}},
        "at or above its high end",
    ),
    "levels as text": (TEXTS, {"x": {"kind": "ordinal", "levels": "I"}}, "expected a list"),
    "levels twice": (TEXTS, {"x": ["I", "I"]}, "'I' twice"),
    "one level": (TEXTS, {"x": ["I"]}, "two at least"),
    "a level that is none": (TEXTS, {"x": ["I", None]}, "None; a level is text"),
    "levels that miss one": (TEXTS, {"x": ["I", "II"]}, "'III', which is not among the levels"),
    "order unknown": (TEXTS, {"x": "ordinal"}, "the order of its texts is not known"),
    "not binary": (TEXTS, {"x": "binary"}, "'binary' and has 3 levels"),
    "fractional count": ([1, 2.5, 3], {"x": "count"}, "'count' and has 2.5 in the row labelled 1"),
    "negative count": ([1, 2, -3], {"x": "count"}, "has -3 in the row labelled 2"),
    "zeros on a log scale": ([1, 0, 3], {"x": "positive"}, "has 0 in the row labelled 1"),
    "beyond a logit": ([0.1, 0.5, 1.0], {"x": "proportion"}, "has 1 in the row labelled 2"),
    "words as numbers": (TEXTS, {"x": "continuous"}, "'I', which is not a number"),
    "words as counts": (TEXTS, {"x": "count"}, "'I', which is not a number"),
    "no mass": ([1, 2.5, 3], {"x": "semicontinuous"}, "has no value twice"),
    "nothing beside": ([0, 0, 1, 1], {"x": {"kind": "semicontinuous", "at": [0]}}, "fewer than"),
    "a mass of text": ([0, 1, 2], {"x": {"kind": "semicontinuous", "at": "a"}}, "at = 'a'"),
    "no such scale": (
        [0, 0, 1.5, 2],
        {"x": {"kind": "semicontinuous", "scale": ["log"]}},
        "expected 'plain', 'log', 'logit'",
    ),
    "a scale without room": (
        [0, 0, -1.5, 2],
        {"x": {"kind": "semicontinuous", "scale": "log"}},
        "only plain fits",
    ),
    "constant": ([1, 1, 1], {"x": "ordinal"}, "counts as constant"),
    "mixed": ([1, "a", 2], {"x": "categorical"}, "'a', which is not a number"),
}


@pytest.mark.parametrize(("cells", "kinds", "words"), BAD.values(), ids=BAD.keys())
def test_what_cannot_be_is_refused_in_one_sentence(cells, kinds, words):
    with pytest.raises(InputError, match=words) as caught:
        describe(pd.DataFrame({"x": cells}), kinds)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


# Sidecars

FRAME = pd.DataFrame(
    {"stage": ["I", "II", "III", "I"], "w": [1.0, 2.5, HOLE, 9.0], "s": [1.0, 2.5, 4.0, 9.0]}
)
SIDECAR = {
    "stage": ["I", "II", "III"],
    "w": "positive",
    "s": {"kind": "bounded", "low": 0, "high": 10},
}
YAML = """
stage: [I, II, III]
w: positive
s: {kind: bounded, low: 0, high: 10}
"""


@pytest.mark.parametrize("name", ["kinds.json", "kinds.yaml", "kinds.YML"])
@pytest.mark.parametrize("form", [str, Path])
def test_a_sidecar_is_the_same_as_its_content(tmp_path, name, form):
    path = tmp_path / name
    path.write_text(json.dumps(SIDECAR) if name.endswith("json") else YAML)
    pd.testing.assert_frame_equal(describe(FRAME, form(path)), describe(FRAME, SIDECAR))
    assert describe(FRAME, path).kind.tolist() == ["ordinal", "positive", "bounded"]


BAD_FILES = {
    "absent": ("kinds.json", None, "file not found"),
    "broken JSON": ("kinds.json", b"{", "cannot be read as .json"),
    "broken YAML": ("kinds.yaml", b"a: [1\nb: 2", "cannot be read as .yaml"),
    "a list": ("kinds.json", b"[1]", "holds no kinds"),
    "empty YAML": ("kinds.yml", b"", "holds no kinds"),
    "not text": ("kinds.json", b"\x89\xff", "not UTF-8"),
    "other extension": ("kinds.toml", b"", "expected a kind"),
    "code in YAML": ("kinds.yaml", b"!!python/object/apply:os.getcwd []", "cannot be read as"),
}


@pytest.mark.parametrize(("name", "content", "words"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_bad_sidecar_is_explained_in_one_sentence(tmp_path, name, content, words):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        describe(FRAME, path)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


# The table


def test_the_table_of_kinds_has_one_row_a_column():
    found = describe(FRAME, {"w": "positive"}, nodes=["w", "stage"])
    assert list(found.columns) == ["column", "kind", "levels", "holes", "why", "offer"]
    assert found.column.tolist() == ["w", "stage"]
    assert found.holes.tolist() == [1, 0]


def test_the_table_of_kinds_survives_json():
    schema = IncompleteTable.read(FRAME, ["stage", "w"]).schema
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    pd.testing.assert_frame_equal(again.describe(), schema.describe())


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(InputError, match="'q' has no column"):
        describe(FRAME, nodes=["q"])
    with pytest.raises(InputError, match="2 columns named 'w'"):
        describe(pd.concat([FRAME, FRAME[["w"]]], axis=1))


def test_many_levels_are_shown_in_part():
    row = kind_of(repeated(*[f"w{j:02}" for j in range(30)]))
    assert row.levels.endswith("w11 and 18 more")


def test_rules_shape_what_is_inferred():
    cells = list(range(8)) * 10
    frame = pd.DataFrame({"x": cells})
    assert describe(frame).kind.tolist() == ["count"]
    assert describe(frame, rules=KindRules(most_ordinal=8)).kind.tolist() == ["ordinal"]
    assert describe(frame, rules=KindRules(typical_count=3)).kind.tolist() == ["continuous"]
    read = IncompleteTable.read(frame, ["x"], rules=KindRules(most_ordinal=8))
    assert read.schema.describe().kind.tolist() == ["ordinal"]


def test_columns_that_are_rounded_are_named_in_one_line(caplog):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 1000, (50, 60)), columns=[f"x{j}" for j in range(60)])
    with caplog.at_level("INFO", "misscnf"):
        table = IncompleteTable.read(frame, frame.columns)  # as a check does: nothing is drawn
        assert not caplog.records
        say_rounded(table.schema.columns)
        visits = [replace(table.schema.columns[0], name=f"L[{t}]") for t in range(3)]
        say_rounded(visits)
        say_rounded(visits, visits=True)
    said, apart, over_time = (record.getMessage() for record in caplog.records)
    assert "the columns 'L[0]', 'L[1]', 'L[2]' are" in apart
    assert "the column 'L' are" in over_time
    assert [said] == [
        "Draws of the columns 'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7' and 52 more "
        "are rounded, since the table has whole numbers there."
    ]


def test_a_long_table_is_described_by_learning_each_column_once(monkeypatch):
    from misscnf.data import kinds

    learned, choose = [], kinds._choose
    monkeypatch.setattr(kinds, "_choose", lambda *of: learned.append(of[1]) or choose(*of))
    frame = pd.DataFrame({"a": range(20), "id": [f"p{i}" for i in range(20)], "b": [0, 1] * 10})
    assert list(describe(frame).kind) == ["continuous", "unusable", "binary"]
    assert learned == ["a", "id", "b"]


def test_tail_indices_are_those_of_hill_on_either_side():
    drawn = np.random.default_rng(1).standard_cauchy(1000)
    away, count = drawn - np.median(drawn), 50
    told = []
    for side in (-away, away):  # the mean excess of logarithms over the largest but 50
        *largest, threshold = sorted(side, reverse=True)[: count + 1]
        excess = [np.log(one / threshold) for one in largest]
        told.append((1 + 2 / np.sqrt(count)) / np.mean(excess))
    assert "index {:.1f} below, {:.1f} above".format(*told) in kind_of(drawn).why


@pytest.mark.parametrize("ends", [(0.0, None), (0.0, 3.0)])
def test_a_cut_off_normal_law_is_found_by_the_likelihood_of_its_cells(ends):
    from scipy import optimize, stats

    from misscnf.data.codecs.semicontinuous import _cut_off_log_likelihood
    from misscnf.data.scales import Unit

    low, high = ends[0], np.inf if ends[1] is None else ends[1]
    drawn = stats.truncnorm.rvs(low - 1, high - 1, loc=1, size=500, random_state=0)

    def cost(law):
        mean, scale = law[0], np.exp(law[1])
        cut = (low - mean) / scale, (high - mean) / scale
        return -stats.truncnorm.logpdf(drawn, *cut, loc=mean, scale=scale).sum()

    best = -optimize.minimize(cost, (1.0, 0.0), method="Nelder-Mead").fun
    unit = Unit(location=float(drawn.mean()), scale=float(drawn.std()))
    assert _cut_off_log_likelihood(unit, drawn, ends) == pytest.approx(best, abs=1e-3)
