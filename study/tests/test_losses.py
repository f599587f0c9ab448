"""Holes come at the rate asked for, depend on what they may, and follow from the seed."""

import numpy as np
import pandas as pd
import pytest
from misscnf_study.losses import (
    MECHANISMS_OF_LOSS,
    Alternating,
    Mar,
    Mcar,
    SelfMasking,
    TwoPatterns,
    ampute,
    conditioning_set,
)
from misscnf_study.losses.intercept import find_intercept
from misscnf_study.worlds import load_scm
from scipy.special import expit

from misscnf import CausalGraph, InputError

WORLDS = ["chain_nlin", "fork_lin", "collider_nlin", "triangle_nlin", "backdoor_nlin"]
CELLWISE = {
    "mcar": Mcar,
    "mar": Mar,
    "mar_raw": lambda rate: Mar(rate, scale="raw"),
    "self_masking": SelfMasking,
    "self_masking_raw": lambda rate: SelfMasking(rate, scale="raw"),
}
ROWS = 2_000


def rng(seed=0):
    return np.random.default_rng(seed)


def settled(mechanism, world, seed=0):
    values = world.sample(ROWS, seed).to_numpy()
    return values, mechanism.calibrate(values, world.graph, rng(seed))


@pytest.fixture(params=WORLDS)
def world(request):
    return load_scm(request.param)


@pytest.fixture(params=CELLWISE)
def cellwise(request):
    return CELLWISE[request.param]


# Cells lost one by one.


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.6, 0.9, 1.0])
def test_mean_chance_is_the_rate_and_roots_stay(cellwise, world, rate):
    values, law = settled(cellwise(rate), world)
    chance = law.probability(values).mean(axis=0)
    is_root = np.array([not parents for parents in world.graph.parents])
    assert (chance[is_root] == 0.0).all()
    assert np.abs(chance[~is_root] - rate).max() <= 1e-3
    assert law.observed(values, rng())[:, is_root].all()


def test_share_of_holes_is_the_rate(cellwise, world):
    """A node's share is within 5 standard errors: of 75 shares, one fails 1 time in 23,000."""
    values, law = settled(cellwise(0.4), world)
    lost = ~law.observed(values, rng(1))
    chance = law.probability(values)
    error = np.sqrt((chance * (1 - chance)).sum(axis=0)) / ROWS
    assert (np.abs(lost.mean(axis=0) - chance.mean(axis=0)) <= 5 * error).all()


def test_weights_are_drawn_from_the_papers_range(world):
    for mechanism in (Mar(0.3), SelfMasking(0.3)):
        _, law = settled(mechanism, world)
        used = law.weights[law.weights != 0.0]
        assert (used >= 0.1).all()
        assert (used <= 1.1).all()
        assert len(np.unique(used)) == len(used)


def test_mar_conditions_on_root_parents_or_else_on_all_roots():
    def names(graph):
        return {
            graph.nodes[i]: [graph.nodes[j] for j in conditioning_set(graph, i)]
            for i in range(len(graph))
        }

    assert names(load_scm("chain_lin").graph) == {"x1": [], "x2": ["x1"], "x3": ["x1"]}
    assert names(load_scm("triangle_lin").graph) == {"x1": [], "x2": ["x1"], "x3": ["x1"]}
    assert names(load_scm("fork_lin").graph) == {
        "x1": [],
        "x2": [],
        "x3": ["x1", "x2"],
        "x4": ["x1", "x2"],
    }
    mixed = CausalGraph.read("a -> c; b -> d; c -> d; d -> e")
    assert names(mixed) == {"a": [], "b": [], "c": ["a"], "d": ["b"], "e": ["a", "b"]}


def test_under_mar_a_hidden_value_changes_no_chance(world):
    values, law = settled(Mar(0.5), world)
    hidden = ~law.observed(values, rng())
    assert hidden.any()
    other = np.where(hidden, 99.0, values)
    assert np.array_equal(law.probability(values), law.probability(other))
    assert np.array_equal(
        law.probability(values), law.probability(np.where(hidden, np.nan, values))
    )


def test_under_self_masking_a_value_changes_its_own_chance_and_no_other(world):
    values, law = settled(SelfMasking(0.5), world)
    chance = law.probability(values)
    for i, parents in enumerate(world.graph.parents):
        other = values.copy()
        other[:, i] += 1.0
        changed = (law.probability(other) != chance).any(axis=0)
        assert changed.tolist() == [bool(parents) and j == i for j in range(len(world.graph))]
        assert (law.probability(other) >= chance).all()  # high values are lost most


def test_chances_are_the_printed_logits():
    world = load_scm("fork_lin")
    values, law = settled(Mar(0.3), world)
    z = (values - values.mean(axis=0)) / values.std(axis=0)
    logits = law.weights[3, 0] * z[:, 0] + law.weights[3, 1] * z[:, 1] + law.intercepts[3]
    assert law.probability(values)[:, 3] == pytest.approx(expit(logits))
    values, law = settled(SelfMasking(0.3, scale="raw"), world)
    logits = law.weights[2, 2] * values[:, 2] + law.intercepts[2]
    assert law.probability(values)[:, 2] == pytest.approx(expit(logits))


def test_standardised_chances_do_not_depend_on_units():
    world = load_scm("fork_lin")
    values = world.sample(ROWS, 0).to_numpy()
    for mechanism in (Mar(0.3), SelfMasking(0.3)):
        here, there = (
            mechanism.calibrate(x, world.graph, rng()).probability(x)
            for x in (values, 1000.0 * values + 7.0)
        )
        assert here == pytest.approx(there)


def test_a_settled_law_serves_other_rows():
    world = load_scm("triangle_lin")
    _, law = settled(Mar(0.6), world)
    fresh = world.sample(10, seed=9).to_numpy()
    assert law.probability(fresh[:3]) == pytest.approx(law.probability(fresh)[:3])


@pytest.mark.parametrize("rate", [1e-4, 0.3, 0.999])
@pytest.mark.parametrize("width", [0.0, 1.0, 1e3])
def test_intercept_meets_the_rate(rate, width):
    scores = width * rng().standard_normal(500)
    assert expit(scores + find_intercept(scores, rate)).mean() == pytest.approx(rate, abs=1e-6)


# Rows that follow one of two patterns.

PATTERNS = {
    "chain_nlin": (["x1", "x2"], ["x2", "x3"], "x2"),
    "fork_lin": (["x1", "x2", "x3"], ["x3", "x4"], "x3"),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("regime", ["holds", "violated"])
def test_two_patterns_are_the_papers(name, regime):
    """The share of the first is within 5 standard errors: one of 4 fails 1 time in 400,000."""
    world = load_scm(name)
    first, second, cut = PATTERNS[name]
    table = world.sample(ROWS, 0)
    values, law = settled(TwoPatterns(regime), world)
    x = table[cut]
    chance = expit((x - x.mean()) / x.std(ddof=0))
    if regime == "violated":
        chance = chance * (x >= x.median())
    assert law.first_probability(values) == pytest.approx(chance.to_numpy())

    seen = ampute(table, world.graph, "two_patterns", regime=regime).notna()
    is_first = seen[first[0]]
    assert (seen[first].all(axis=1) == is_first).all()
    assert (seen[second].all(axis=1) == ~is_first).all()
    assert seen[cut].all()
    assert not seen.all(axis=1).any()
    if regime == "violated":
        assert (x[is_first] >= x.median()).all()
    error = np.sqrt((chance * (1 - chance)).sum()) / ROWS
    assert abs(is_first.mean() - chance.mean()) < 5 * error
    assert law.probability(values)[:, 0] == pytest.approx(1.0 - chance.to_numpy())


def test_two_patterns_may_be_given():
    table = load_scm("triangle_lin").sample(50, 0)
    graph = load_scm("triangle_lin").graph
    holes = ampute(
        table, graph, "two_patterns", first=["x1", "x3"], second=["x1", "x2", "x3"], cut="x1"
    ).isna()
    assert not holes[["x1", "x3"]].any(axis=None)
    assert 0 < holes["x2"].sum() < 50


def test_alternating_shows_every_second_node():
    """The share of rows is within 5 standard errors of a half: fails 1 time in 1,700,000."""
    world = load_scm("chain_d_5")
    seen = ampute(world.sample(ROWS, 0), world.graph, "alternating").notna().to_numpy()
    is_first = seen[:, 1]
    assert (seen == np.where(is_first[:, None], [0, 1, 0, 1, 0], [1, 0, 1, 0, 1])).all()
    assert abs(is_first.mean() - 0.5) < 5 * 0.5 / np.sqrt(ROWS)
    values = np.full((3, 5), np.nan)  # no value has a say
    law = Alternating().calibrate(values, world.graph, rng())
    assert (law.probability(values) == 0.5).all()


# Tables.


@pytest.mark.parametrize("name", MECHANISMS_OF_LOSS)
def test_same_seed_same_holes_and_the_table_is_left_alone(name):
    world = load_scm("fork_lin")
    table = world.sample(100, 0)
    before = table.copy()
    rate = 0.5 if name in ("mcar", "mar", "self_masking") else None
    once, again = (ampute(table, world.graph, name, rate, seed=3) for _ in range(2))
    assert once.equals(again)
    assert not once.equals(ampute(table, world.graph, name, rate, seed=4))
    assert table.equals(before)
    assert once.isna().any(axis=None)
    assert (once.isna() | (once == before)).all(axis=None)
    global_state = np.random.get_state()[1].copy()
    ampute(table, world.graph, name, rate)
    assert np.array_equal(np.random.get_state()[1], global_state)


@pytest.mark.parametrize("name", ["mcar", "mar", "self_masking"])
def test_a_higher_rate_adds_holes(name):
    world = load_scm("fork_lin")
    table = world.sample(500, 0)
    few, more = (ampute(table, world.graph, name, rate).isna() for rate in (0.3, 0.6))
    assert (more | ~few).all(axis=None)
    assert more.sum().sum() > few.sum().sum()


def test_any_table_will_do():
    n = 40
    table = pd.DataFrame(
        {
            "note": ["kept"] * n,
            "outcome": pd.Categorical(["good", "bad"] * (n // 2)),
            "count": np.arange(n),
            "smokes": [True, False] * (n // 2),
            "age": pd.array(np.arange(n) + 20, dtype="Int64"),
        },
        index=[0] * n,
    )
    graph = {"outcome": ["count", "smokes"], "count": ["age"], "smokes": ["age"], "age": []}
    holes = ampute(table, graph, "mar", 0.5, seed=1)
    assert list(holes) == list(table)
    assert not holes[["note", "age"]].isna().any(axis=None)
    assert holes[["outcome", "count", "smokes"]].isna().any().all()
    again = ampute(holes, graph, "mcar", 0.5, seed=2)  # holes upon holes
    assert (again.isna() | ~holes.isna()).all(axis=None)
    constant = table.assign(age=30)
    assert ampute(constant, graph, "mar", 0.5)["count"].isna().any()
    assert ampute(table.iloc[:0], graph, "mar", 0.5).shape == (0, 5)


def test_a_mechanism_ready_made_is_the_named_one():
    world = load_scm("chain_lin")
    table = world.sample(50, 0)
    named = ampute(table, world.graph, "mar", 0.4, scale="raw")
    assert named.equals(ampute(table, world.graph, Mar(0.4, scale="raw")))


@pytest.mark.parametrize(
    ("arguments", "options", "match"),
    [
        (("mice", 0.3), {}, "no mechanism of loss 'mice'; there are mcar"),
        (("mcar",), {}, "needs a rate"),
        (("mcar", 1.3), {}, "share from 0 to 1; got 1.3"),
        (("mar", float("nan")), {}, "share from 0 to 1"),
        (("mar", 0.3), {"scale": "log"}, "'standardised' or 'raw'"),
        (("mcar", 0.3), {"scale": "raw"}, "no 'scale'; it takes rate"),
        (("alternating", 0.3), {}, "no 'rate'; it takes nothing"),
        (("two_patterns",), {"regime": "bent"}, "'holds' or 'violated'"),
        (("two_patterns",), {"first": ["x1"]}, "both patterns"),
        (("two_patterns",), {"first": ["x1"], "second": ["x2"]}, "say which node decides"),
        (("two_patterns",), {"first": ["x1", "x9"], "second": ["x1"]}, "no node 'x9'"),
        (("two_patterns",), {"cut": "x1"}, "must be in both patterns"),
        ((Mcar(0.3), 0.3), {}, "ready made"),
    ],
)
def test_bad_requests_are_refused(arguments, options, match):
    world = load_scm("chain_lin")
    with pytest.raises(InputError, match=match):
        ampute(world.sample(20, 0), world.graph, *arguments, **options)


def test_patterns_of_an_unknown_shape_must_be_given():
    world = load_scm("triangle_lin")
    with pytest.raises(InputError, match=r"first=.*second="):
        ampute(world.sample(20, 0), world.graph, "two_patterns")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.drop(columns="x2"), "one column 'x2' of the graph; got 0"),
        (lambda t: pd.concat([t, t[["x2"]]], axis=1), "one column 'x2' of the graph; got 2"),
        (lambda t: t.assign(x1=t["x1"].where(t["x1"] > 0)), "column 'x1', which has .* holes"),
        (lambda t: t.assign(x1="a"), "column 'x1', which is of type"),
        (lambda t: t.assign(x1=np.inf), "column 'x1', which has infinite"),
    ],
)
def test_bad_tables_are_refused(change, match):
    world = load_scm("chain_lin")
    with pytest.raises(InputError, match=match):
        ampute(change(world.sample(20, 0)), world.graph, "mar", 0.3)
