"""Events and risks over time, in a discrete world of three periods whose courses are counted."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch

from misscnf import Draw, MissCNF
from misscnf.display.digits import with_ends
from misscnf.errors import InputError

GRAPH = "L[t-1], A[t-1] -> L[t]; L[t], A[t-1] -> A[t]; L[t], A[t] -> Y[t]"


def world(people=4000, seed=0, hazard=-2.0):
    """L drives A and Y, A drives the next L and Y; nothing is measured after Y."""
    rng = np.random.default_rng(seed)
    logistic = lambda x: rng.random(people) < 1 / (1 + np.exp(-x))  # noqa: E731
    alive, parts, dose = np.ones(people, dtype=bool), [], np.zeros(people)
    level = logistic(np.zeros(people))
    for visit in range(3):
        if visit:
            level = logistic(-0.8 + 1.5 * level - 1.2 * dose)
        dose = logistic(-0.5 + 1.2 * level + 0.8 * dose)
        event = logistic(hazard + 1.2 * level - 0.9 * dose)
        row = {"id": np.arange(people), "visit": visit, "L": level, "A": dose, "Y": event}
        parts.append(pd.DataFrame(row)[alive])
        alive = alive & ~event
    return pd.concat(parts, ignore_index=True).astype(int)


def fitted(table, graph=GRAPH, **more):
    given = {"id": "id", "time": "visit", "kinds": {"Y": "event"}, "progress": False, **more}
    return MissCNF(graph, "linear", **given).fit(table)


@pytest.fixture(scope="module")
def table():
    return world()


@pytest.fixture(scope="module")
def model(table):
    return fitted(table)


def chance(model, node, one, parents):
    """Returns the probability that the fitted mechanism of a node gives to 0 or 1."""
    law = model.model_.mechanism(model.graph_.index(node))
    given = torch.tensor([parents[name] for name in model.graph_.parents_of(node)]).double()
    with torch.no_grad():
        return float(law.log_prob(torch.tensor(float(one)), given).exp())


def enumerated(model, rule):
    """Returns the risk by each visit, summed over all courses.

    A rule says how likely A is 1 at a visit; None leaves it to itself.
    """
    risks = np.zeros(3)
    for levels in itertools.product((0, 1), repeat=3):
        for doses in itertools.product((0, 1), repeat=3):
            weight, at_risk, totals, seen = 1.0, 1.0, [0.0], {}
            for t in range(3):
                seen[f"L[{t}]"] = levels[t]
                weight *= chance(model, f"L[{t}]", levels[t], seen)
                seen[f"A[{t}]"] = doses[t]
                likely = None if rule is None else rule(levels, doses, t)
                if likely is None:
                    weight *= chance(model, f"A[{t}]", doses[t], seen)
                else:
                    weight *= likely if doses[t] else 1 - likely
                hazard = chance(model, f"Y[{t}]", 1, seen)
                totals.append(totals[-1] + at_risk * hazard)
                at_risk *= 1 - hazard
            risks += weight * np.array(totals[1:])
    return risks


def test_the_hazard_is_pooled_logistic_regression(table, model):
    expected = sm.Logit(table["Y"], sm.add_constant(table[["L", "A"]])).fit(disp=0)
    for level, dose in itertools.product((0, 1), repeat=2):
        found = chance(model, "Y[2]", 1, {"L[2]": level, "A[2]": dose})
        wanted = expected.predict([[1, level, dose]])[0]
        assert found == pytest.approx(wanted, abs=1e-4)


def waits(over, begun):
    """A grace period: 1 when it is over, left to itself once it has begun, 0 before."""
    return 1 if over else None if begun else 0


@pytest.mark.parametrize(
    ("do", "rule"),
    [
        ({}, None),
        ({"A": 1}, lambda levels, doses, t: 1),
        ({"A": "L[t] > 0"}, lambda levels, doses, t: levels[t]),
        ({"A": "L > 0"}, lambda levels, doses, t: levels[t]),
        (
            {"A[0]": 0, "A": "max(A[t-1], L[t-1])"},
            lambda levels, doses, t: max(doses[t - 1], levels[t - 1]) if t else 0,
        ),
        ({"A": "1 if time >= 1 else 0"}, lambda levels, doses, t: int(t >= 1)),
        ({"A": "1 if time >= 1 else A[t]"}, lambda levels, doses, t: 1 if t else None),
        ({"A": "max(A[t], L)"}, lambda levels, doses, t: 1 if levels[t] else None),
        ({"A": "ever(L[t] > 0)"}, lambda levels, doses, t: max(levels[: t + 1])),
        (
            {"A": "0 if ever(A[t-1] == 1) else L"},  # at most once
            lambda levels, doses, t: 0 if any(doses[:t]) else levels[t],
        ),
        ({"A": "bernoulli(0.2 + 0.5 * L[t])"}, lambda levels, doses, t: 0.2 + 0.5 * levels[t]),
        ({"A": Draw(0.3), "A[2]": 1}, lambda levels, doses, t: 1 if t == 2 else 0.3),
        (
            {"A": "grace(L[t] > 0, 1)"},
            lambda levels, doses, t: waits(any(doses[:t]) or any(levels[:t]), levels[t]),
        ),
        (
            {"A": "grace(L[t] > 0, 2)"},
            lambda levels, doses, t: waits(
                any(doses[:t]) or any(levels[: max(t - 1, 0)]), any(levels[: t + 1])
            ),
        ),
    ],
)
def test_risks_are_those_of_all_courses(model, do, rule):
    """Within 4.5 Monte-Carlo errors, which one of 150,000 such tests would miss."""
    found = model.risk("Y", do=do, draws=20_000, population="model")
    error = 4.5 * found.standard_error + 1e-12
    assert found.table["risk"].to_numpy() == pytest.approx(enumerated(model, rule), abs=error)


def test_two_arms_compare_at_each_visit(model):
    found = model.risk("Y", do={"A": 1}, versus={"A": 0}, interval=0.95, draws=20_000)
    table = found.table
    assert list(table["time"]) == [0, 1, 2]
    assert table["difference"].to_numpy() == pytest.approx(table["risk"] - table["versus"])
    assert table["ratio"].to_numpy() == pytest.approx(table["risk"] / table["versus"])
    for name in ("risk", "versus", "difference", "ratio"):
        assert (table[f"{name}_lower"] < table[name]).all()
        assert (table[name] < table[f"{name}_upper"]).all()
    assert (table["difference_upper"] < 0).all()
    left = (1 - table["risk"].to_numpy()[:2]).sum()
    assert found.restricted_mean == pytest.approx(left)
    lower, upper = found.restricted_mean_difference_interval
    assert lower < found.restricted_mean_difference < upper
    assert "do(A = 1) versus do(A = 0)" in str(found)
    shown = found.shown()
    assert list(shown) == ["visit", "do(A = 1)", "do(A = 0)", "difference", "ratio"]
    last = table.iloc[-1]
    middle, lower, upper = with_ends(last["risk"], (last["risk_lower"], last["risk_upper"]))
    told = f"{middle} ({lower} to {upper})"
    assert shown["do(A = 1)"].iloc[-1] == told
    assert told in found.told
    axes = found.plot()
    assert len(axes.collections) == 2  # a band an arm
    assert axes.lines[1].get_ydata()[-1] == last["versus"]


def test_one_arm_has_its_restricted_mean_with_an_interval(model):
    found = model.risk("Y", do={"A": 1}, interval=0.95, draws=5000)
    lower, upper = found.restricted_mean_interval
    assert lower < found.restricted_mean < upper
    middle, below, _ = with_ends(found.restricted_mean, (lower, upper))
    assert f"mean visit without it up to then {middle} ({below}" in str(found)


def test_the_natural_course_is_what_the_table_shows(model, table):
    found = model.risk("Y", draws=20_000).table
    hazard = table.groupby("visit")["Y"].mean().to_numpy()
    observed = 1 - np.cumprod(1 - hazard)
    assert found["observed"].to_numpy() == pytest.approx(observed)
    assert found["risk"].to_numpy() == pytest.approx(observed, abs=0.02)


def test_holes_and_leaving_do_not_move_the_answer(model, table):
    """Lost at random: the answer moves by its own error, about 0.02 with 4,000 people."""
    rng = np.random.default_rng(1)
    holed = table.astype(float)
    holed.loc[rng.random(len(table)) < 0.3, "L"] = np.nan
    left = rng.integers(1, 6, 4000)
    holed = holed[holed["visit"].to_numpy() < left[table["id"].to_numpy()]]
    found = fitted(holed).risk("Y", do={"A": 1}, versus={"A": 0}, draws=20_000)
    whole = model.risk("Y", do={"A": 1}, versus={"A": 0}, draws=20_000)
    away = found.table["difference"].iloc[-1] - whole.table["difference"].iloc[-1]
    assert abs(away) < 0.06  # three of them


def test_who_is_seen_later_has_not_had_the_event(model, table):
    gap = table[~((table["visit"] == 1) & (table["id"] < 200))]
    wide = model.panel_.wide(gap)
    later = gap[(gap["visit"] == 2) & (gap["id"] < 200)]["id"]
    assert (wide.loc[later, "Y[1]"] == 0).all()
    assert wide.loc[later, "L[1]"].isna().all()


def test_competing_events_end_a_course_or_are_removed():
    """Cumulative incidence under competition is that of the table; removed, it is larger."""
    table = world(3000, 2)
    rng = np.random.default_rng(3)
    other = (rng.random(len(table)) < 0.2).astype(int)
    table = table.assign(D=other, Y=table["Y"].where(other == 0))
    gone = table[table["D"] == 1].groupby("id")["visit"].min()
    when = table["id"].map(gone).fillna(9)
    table = table[table["visit"] <= when]
    kinds = {"Y": "event", "D": "event"}
    graph = "L[t] -> D[t]; L[t-1], A[t-1] -> L[t]; L[t] -> A[t]; L[t], A[t] -> Y[t]"
    model = fitted(table, graph, kinds=kinds)
    found = model.risk("Y", draws=20_000)
    share = (table.groupby("id")["Y"].max() == 1).mean()
    assert found.table["risk"].iloc[-1] == pytest.approx(share, abs=0.02)
    removed = model.risk("Y", competing="removed", draws=20_000)
    assert removed.table["risk"].iloc[-1] > found.table["risk"].iloc[-1] + 0.02
    assert "Competing events (D) are removed" in str(removed)


def test_an_outcome_at_the_end_is_asked_by_effect(model):
    effect = model.effect("L", do={"A": 1}, versus={"A": 0}, draws=5000)
    assert effect.outcome == "L[2]"
    assert "do(A = 1)" in str(effect)
    assert "if nobody had had Y before" in str(effect)


def test_samples_end_at_the_event(model):
    drawn = model.sample(300, do={"A": 1})
    assert (drawn["A"] == 1).all()
    assert (drawn.groupby("id")["Y"].sum() <= 1).all()
    last = drawn.groupby("id")["visit"].transform("max")
    assert (drawn.loc[drawn["Y"] == 1, "visit"] == last[drawn["Y"] == 1]).all()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda d: {"Y": 1.0}, "and it comes back in the row labelled 12001"),
        (lambda d: {"Y": 0.0}, "is followed by Y = 0.0 in the row labelled 12001"),
        (lambda d: {"Y": np.nan, "L": 1.0}, "is followed by L = 1.0 in the row labelled 12001"),
    ],
)
def test_nothing_exists_after_an_event(table, spoil, words):
    person = int(table.loc[(table["Y"] == 1) & (table["visit"] < 2), "id"].iloc[0])
    more = {"id": person, "visit": 2, "L": np.nan, "A": np.nan, "Y": np.nan, **spoil(None)}
    later = pd.DataFrame([more], index=[12001])
    with pytest.raises(InputError, match=words):
        fitted(pd.concat([table.astype(float), later]))


def test_what_cannot_be_asked_is_refused(model, table):
    for ask, words in [
        (lambda: model.risk("L"), "'L' is not an event of the fitted table"),
        (lambda: model.effect("Y", do={"A": 1}), "'Y' is an event, whose risk grows"),
        (lambda: model.risk("Y", do={"Y": 0}), "'Y' is an event, which ends"),
        (lambda: model.risk("Y", do={"Y[1]": 0}), "is an event, which ends"),
        (lambda: model.risk("Y", do={"A": "A[t-1]"}), "does not exist at visit 0"),
        (lambda: model.risk("Y", do={"A": "L[t+1]"}), "does not exist at visit 0"),
        (lambda: model.risk("Y", do={"A": "grace(L[t] > 0)"}), "a condition and a number"),
        (lambda: model.risk("Y", do={"A": "ever(ever(L) > 0)"}), "stands within another"),
        (lambda: model.risk("Y", do={"A": Draw(lambda L: L)}), "does not say at which visit"),
        (lambda: model.risk("Y", do={"A": lambda L: L}), "does not say at which visit"),
        (lambda: model.risk("Y", do={"B": 1}), "no column 'B'"),
        (lambda: model.risk("Y", competing="other"), "'total' or 'removed'"),
        (lambda: fitted(table, f"{GRAPH}; Y[t-1] -> L[t]"), "arrow from the event 'Y' to 'L'"),
        (lambda: MissCNF("L -> Y", kinds={"Y": "event"}).fit(table), "is not over time"),
        (lambda: MissCNF("L -> Y", "linear").fit(table).risk("Y"), "needs a table over time"),
    ]:
        with pytest.raises(InputError, match=words.replace("[", r"\[")):
            ask()


def test_the_natural_course_of_a_person_is_what_happened(model, table):
    """The noise that was abducted makes the row again; who left goes on in the other world."""
    some = table[table["id"] < 60]
    again = model.counterfactual(some, do={"A": "A[t]"})
    both = again.merge(some, on=["id", "visit"], suffixes=("", "_seen"))
    assert len(both) == len(some)
    for name in "LAY":
        assert (both[name] == both[f"{name}_seen"]).all()
    assert len(again) == len(some)  # an event ends it there as well


def test_a_course_ends_at_the_event_of_its_world(model, table):
    some = table[table["id"] < 300]
    drawn = model.counterfactual(some, do={"A": 0}, draws=2)
    assert list(drawn.index.names) == ["draw", "row"]
    assert (drawn["A"] == 0).all()
    ended = drawn.groupby(["draw", "id"])["Y"].agg(["sum", "last", "size"])
    assert ((ended["sum"] == 0) & (ended["size"] == 3) | (ended["last"] == 1)).all()
    assert (ended["sum"] <= 1).all()
    assert ended["sum"].mean() > some.groupby("id")["Y"].sum().mean()  # never treated: more events
    first = drawn.loc[0].drop_duplicates("id").set_index("id")["L"]
    assert (first == some.drop_duplicates("id").set_index("id")["L"]).all()


def test_nothing_is_imputed_after_an_event(model, table):
    """Rows that a table has after an event stay empty; holes before it are filled."""
    had = table.loc[table["Y"] == 1, "id"].iloc[:40]
    last = table[table["id"].isin(had) & (table["visit"] == 0) & (table["Y"] == 1)]
    empty = last.assign(visit=1)[["id", "visit"]]
    holed = table[table["id"].isin(had)].astype(float)
    holed.loc[holed["visit"] == 0, "L"] = np.nan
    filled = model.impute(pd.concat([holed, empty], ignore_index=True), 2)
    gone = filled.merge(empty, on=["id", "visit"])
    assert len(gone) == 2 * len(empty) > 0
    assert gone[["L", "A", "Y"]].isna().all(axis=None)
    assert filled["L"].isna().sum() == len(gone)
