"""Histories as causes: functions of earlier visits that tied mechanisms read."""

import itertools

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import multivariate_normal

from misscnf import MissCNF
from misscnf.errors import InputError

EVENTS = (
    "mean(L)[t-1], A[t-1] -> L[t]; L[t], ever(A)[t-1] -> A[t]; "
    "mean(L)[t], count(A)[t], since(A)[t] -> Y[t]"
)


def numbers(people=200, visits=4, seed=0):
    """Two columns, of which each reads the mean of L so far."""
    rng = np.random.default_rng(seed)
    seen, rows = np.zeros((people, 0)), []
    for week in range(visits):
        before = seen.mean(1) if week else np.zeros(people)
        value = 0.7 * before + rng.normal(size=people)
        dose = 0.4 * value - 0.5 * before + rng.normal(size=people)
        seen = np.column_stack([seen, value])
        rows.append(pd.DataFrame({"id": range(people), "week": week, "L": value, "A": dose}))
    return pd.concat(rows, ignore_index=True)


def courses(people=400, visits=3, seed=0):
    """A number, a treatment and an event that reads the histories of both."""
    rng = np.random.default_rng(seed)
    value, given = np.zeros((people, visits)), np.zeros((people, visits))
    at_risk, rows = np.ones(people, dtype=bool), []
    for week in range(visits):
        before = value[:, :week].mean(1) if week else 0.0
        last = given[:, week - 1] if week else 0.0
        value[:, week] = 0.6 * before - 0.5 * last + rng.normal(size=people)
        ever = given[:, :week].any(1) if week else 0.0
        given[:, week] = rng.random(people) < 1 / (1 + np.exp(-0.8 * value[:, week] - ever))
        line = -1.5 + 0.7 * value[:, : week + 1].mean(1) - 0.4 * given[:, : week + 1].sum(1)
        event = rng.random(people) < 1 / (1 + np.exp(-line))
        part = {"id": range(people), "week": week, "L": value[:, week], "A": given[:, week]}
        rows.append(pd.DataFrame(part).assign(Y=event.astype(int))[at_risk])
        at_risk &= ~event
    return pd.concat(rows).sort_values(["id", "week"]).reset_index(drop=True)


def fitted(table, graph, **more):
    model = MissCNF(graph, "linear", id="id", time="week", progress=False, **more)
    return model.fit(table)


@pytest.fixture(scope="module")
def discrete():
    table = courses()
    return table, fitted(table, EVENTS, kinds={"Y": "event", "A": "binary"})


def slopes(model, node):
    table = model.summary()
    own = table[table["column"] == node]
    return dict(zip(own["cause"], own["coefficient"], strict=True))


def test_a_line_in_the_mean_so_far_is_pooled_least_squares():
    table = numbers()
    model = fitted(table, "mean(L)[t-1] -> L[t]; L[t], mean(L)[t-1] -> A[t]")
    so_far = table.groupby("id")["L"].transform(lambda x: x.expanding().mean().shift())
    later = table["week"] > 0
    expected = sm.OLS(
        table["A"][later], sm.add_constant(np.column_stack([table["L"], so_far]))[later]
    )
    found = slopes(model, "A[3]")
    assert list(found) == ["L[3]", "mean(L)[2]"]
    assert list(found.values()) == pytest.approx(list(expected.fit().params[1:]), abs=1e-5)
    laws = [model.model_.law(model.graph_.index(f"A[{week}]")) for week in range(4)]
    assert laws[1] is laws[2] is laws[3] is not laws[0]


def test_histories_stand_beside_a_random_intercept():
    table = numbers()
    table["Y"] = table["A"] + np.random.default_rng(2).normal(size=200)[table["id"]]
    graph = "mean(L)[t-1] -> L[t]; L[t], mean(L)[t-1] -> A[t]; A[t], u -> Y[t]"
    found = fitted(table, graph, latent=["u"])
    expected = fitted(table, graph.partition("; A[t], u")[0])
    for node in ("L[3]", "A[3]"):
        assert slopes(found, node) == pytest.approx(slopes(expected, node), abs=1e-4)


def test_lost_values_are_shifted_where_a_cause_is_a_history():
    """Without drivers a shift δ of what is lost moves a mean by δ times the share that is lost."""
    table = numbers()
    table["A"] = table["A"].mask((table["week"] == 3) & (table["id"] % 4 == 0))
    model = fitted(table, "mean(L)[t-1] -> L[t]; L[t], mean(L)[t-1] -> A[t]")
    about = {"versus": {"L": 0.0}, "loss": {"A": []}, "interval": None, "data": table}
    found = model.sensitivity("A", {"L": 1.0}, shift={"do": [0.0, 2.0]}, **about)
    first, second = found.to_frame()["estimate"]
    assert second - first == pytest.approx(2.0 * 0.25, abs=1e-3)


def test_a_coefficient_of_ever_is_that_of_least_squares():
    table = courses()
    model = fitted(table, "ever(A)[t-1], A[t] -> L[t]", kinds={"A": "binary"})
    ever = table.groupby("id")["A"].transform(lambda x: x.expanding().max().shift())
    later = table["week"] > 0
    design = np.column_stack([table["A"], ever])[later]
    expected = sm.OLS(table["L"][later], sm.add_constant(design)).fit().params[1:]
    found = slopes(model, "L[2]")
    assert [found["A[2] = 1.0"], found["ever(A)[1]"]] == pytest.approx(list(expected), abs=1e-5)


def test_hidden_history_of_a_line_has_the_closed_form():
    """What rows show is jointly normal; the covariance is worked out by hand, visit by visit."""
    table = numbers(80, 3)
    holes = np.random.default_rng(1).random((len(table), 2)) < 0.3
    table[["L", "A"]] = table[["L", "A"]].mask(holes)
    model = fitted(table, "mean(L)[t-1] -> L[t]; mean(L)[t-1] -> A[t]")
    names = [f"{name}[{week}]" for week in range(3) for name in "LA"]
    laws = model.structural_model()
    mean, mixing = np.zeros(6), np.zeros((6, 6))
    for i, name in enumerate(names):
        form = laws.law(laws.graph.index(name)).linear_form()
        before = [names.index(f"L[{week}]") for week in range(int(name[2]))]
        weight = form.weights.item() if before else 0.0
        mean[i] = float(form.intercept) + (weight * mean[before].mean() if before else 0.0)
        mixing[i] = weight * mixing[before].mean(0) if before else 0.0
        mixing[i, i] = float(form.scale)
    covariance, expected = mixing @ mixing.T, []
    for row in model.panel_.wide(table)[names].to_numpy():
        seen = ~np.isnan(row)
        law = (
            multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]) if any(seen) else None
        )
        expected.append(law.logpdf(row[seen]) if law else 0.0)
    assert model.log_prob(table).to_numpy() == pytest.approx(np.array(expected), abs=1e-8)


def test_hazards_of_histories_are_pooled_logistic_regressions(discrete):
    table, model = discrete
    people = table.groupby("id")
    since = people["A"].transform(
        lambda a: [
            min((k - j for j in range(k + 1) if a.iloc[j]), default=k + 1) for k in range(len(a))
        ]
    )
    own = {"mean(L)": people["L"].transform(lambda x: x.expanding().mean()), "since(A)": since}
    own["count(A)"] = people["A"].cumsum()
    design = sm.add_constant(pd.DataFrame(own)[["mean(L)", "count(A)", "since(A)"]])
    expected = sm.Logit(table["Y"], design).fit(disp=False).params
    found = slopes(model, "Y[1]")
    assert list(found) == ["mean(L)[1]", "count(A)[1]", "since(A)[1]"]
    assert list(found.values()) == pytest.approx(list(expected[1:]), abs=1e-4)
    later = table["week"] > 0
    ever = people["A"].transform(lambda a: a.cummax().shift())
    design = sm.add_constant(pd.DataFrame({"L": table["L"], "ever": ever})[later])
    expected = sm.Logit(table["A"][later], design).fit(disp=False).params
    found = slopes(model, "A[2]")
    assert list(found) == ["L[2]", "ever(A)[1]"]
    assert list(found.values()) == pytest.approx(list(expected[1:]), abs=1e-4)


def test_hidden_treatment_histories_are_summed_over(discrete):
    table, model = discrete
    person = table[table["id"] == table["id"][table["week"] == 2].iloc[0]]
    total = 0.0
    for first, second in itertools.product([0.0, 1.0], repeat=2):
        whole = person.assign(A=[first, second, person["A"].iloc[2]])
        total += np.exp(model.log_prob(whole).iloc[0])
    holed = person.assign(A=[np.nan, np.nan, person["A"].iloc[2]])
    assert np.exp(model.log_prob(holed).iloc[0]) == pytest.approx(total, rel=1e-6)


def test_a_hidden_number_of_a_mean_is_integrated_over(discrete):
    table, model = discrete
    person = table[table["id"] == table["id"][table["week"] == 2].iloc[0]]
    points = np.linspace(-8.0, 8.0, 161)
    filled = pd.concat([person.assign(id=k) for k in range(161)], ignore_index=True)
    filled.loc[filled["week"] == 1, "L"] = points
    total = np.trapezoid(np.exp(model.log_prob(filled)), points)  # smooth, and zero at both ends
    holed = person.assign(L=[person["L"].iloc[0], np.nan, person["L"].iloc[2]])
    assert np.exp(model.log_prob(holed).iloc[0]) == pytest.approx(total, rel=1e-3)


def test_regimes_carry_histories_along(discrete):
    """The risk of a regime is that of courses simulated by hand from the same coefficients."""
    _, model = discrete
    found = model.risk("Y", do={"A": 1}, draws=20_000).table["risk"].to_numpy()
    laws, n, rng = model.structural_model(), 20_000, np.random.default_rng(3)
    values, alive, risk = np.zeros((n, 0)), np.ones(n), []
    for week in range(3):
        form = laws.law(laws.graph.index(f"L[{week}]")).linear_form()
        mean = np.full(n, float(form.intercept))
        if week:
            mean += float(form.weights[0]) * values.mean(1)
            mean += float(form.offset(form.weights.new_tensor([0.0, 1.0]))) if form.offset else 0.0
        values = np.column_stack([values, mean + float(form.scale) * rng.normal(size=n)])
        read = form.weights.new_tensor(np.column_stack([values.mean(1), [[week + 1.0, 0.0]] * n]))
        law = laws.law(laws.graph.index(f"Y[{week}]"))
        hazard = law.log_prob(read[:, 0] * 0 + 1, read).exp().detach().numpy()
        alive = alive * (1.0 - hazard)
        risk.append(1.0 - alive.mean())
    assert found == pytest.approx(np.array(risk), abs=0.006)  # four errors of 20,000 courses


def test_a_saved_history_answers_the_same(discrete, tmp_path):
    table, model = discrete
    model.save(tmp_path / "model")
    loaded = MissCNF.load(tmp_path / "model")
    assert loaded.graph_.readings == model.graph_.readings
    assert loaded.log_prob(table).equals(model.log_prob(table))
    assert loaded.sample(3).equals(model.sample(3))


def test_the_last_seen_value_is_that_of_the_last_visit_with_the_column():
    table = numbers(60, 5)
    table["L"] = table["L"].where(table["week"] % 2 == 0)
    model = fitted(table, "last(L)[t-1] -> A[t]")
    parents = {node: model.graph_.parents_of(node) for node in ("A[1]", "A[2]", "A[3]", "A[4]")}
    assert parents == {"A[1]": ("L[0]",), "A[2]": ("L[0]",), "A[3]": ("L[2]",), "A[4]": ("L[2]",)}
    assert "L[1]" not in model.graph_.nodes


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        ("ever(L)[t-1] -> A[t]", r"has ever\(L\)\[0\], and L\[0\] is continuous"),
        ("mean(stage)[t-1] -> A[t]", r"mean is for numbers, or for columns of two levels"),
    ],
)
def test_a_history_that_a_column_does_not_have_is_refused(graph, words):
    table = numbers(30, 3)
    with pytest.raises(InputError, match=words):
        fitted(table.assign(stage=np.random.default_rng(0).choice(list("abc"), 90)), graph)


def test_a_history_of_what_does_not_vary_in_a_person_is_refused():
    table = numbers(30, 3)
    table["stage"] = table["id"] % 2
    graph = "mean(stage)[t-1] -> A[t]"
    with pytest.raises(InputError, match=r"stage does not vary within a person; write stage in"):
        fitted(table, graph)
