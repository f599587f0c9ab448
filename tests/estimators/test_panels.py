"""Tables over time through the front door: a long table in, tied mechanisms inside."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.special import stdtrit
from scipy.stats import multivariate_normal

from misscnf import MissCNF
from misscnf.data.panel import read_template
from misscnf.errors import InputError
from misscnf.graph import CausalGraph

GRAPH = "L[t-1], A[t-1], time -> L[t]; L[t], sex -> A[t]"


def long_table(people=300, visits=4, seed=0, curve=0.0):
    """L and A in turn, of a normal law whose coefficients do not change."""
    rng = np.random.default_rng(seed)
    sex, value, dose = rng.integers(0, 2, people), rng.normal(size=people), 0.0
    parts = []
    for week in range(visits):
        if week:
            value = 0.5 * value - 0.4 * dose + 0.1 * week + rng.normal(size=people)
        bent = 0.6 * value + curve * np.sin(2.0 * value)
        dose = bent + 0.3 * sex + 0.5 * rng.normal(size=people)
        parts.append(
            pd.DataFrame({"id": range(people), "week": week, "sex": sex, "L": value, "A": dose})
        )
    return pd.concat(parts, ignore_index=True)


def with_holes(table, seed=1, share=0.2):
    rng = np.random.default_rng(seed)
    lost = rng.random((len(table), 2)) < share
    table = table.copy()
    table[["L", "A"]] = table[["L", "A"]].mask(lost)
    left = rng.integers(1, 8, table["id"].nunique())  # half stay to the end
    return table[table["week"].to_numpy() < left[table["id"].to_numpy()]]


def fitted(table, graph=GRAPH, preset="linear", **more):
    return MissCNF(graph, preset, id="id", time="week", progress=False, **more).fit(table)


@pytest.fixture(scope="module")
def complete():
    table = long_table()
    return table, fitted(table)


@pytest.fixture(scope="module")
def holed():
    table = with_holes(long_table(150))
    return table, fitted(table, "L[t-1], A[t-1] -> L[t]; L[t] -> A[t]")


def slopes(model, node):
    table = model.summary()
    own = table[table["column"] == node]
    return dict(zip(own["cause"], own["coefficient"], strict=True))


def test_a_complete_panel_is_pooled_least_squares(complete):
    table, model = complete
    before = table.groupby("id")[["L", "A"]].shift()
    later = table["week"] > 0
    design = sm.add_constant(np.column_stack([before, table["week"]])[later])
    expected = sm.OLS(table["L"][later], design).fit().params.to_numpy()
    found = slopes(model, "L[3]")
    assert found == pytest.approx(
        dict(zip(["L[2]", "A[2]", "time[3]"], expected[1:], strict=True)), abs=1e-5
    )
    design = sm.add_constant(table[["sex", "L"]])
    expected = sm.OLS(table["A"], design).fit().params.to_numpy()
    assert list(slopes(model, "A[0]").values()) == pytest.approx(list(expected[1:]), abs=1e-5)


def test_tied_visits_have_one_mechanism(complete):
    _, model = complete
    laws = [model.model_.mechanism(model.graph_.index(f"L[{week}]")) for week in range(4)]
    assert laws[1] is laws[2] is laws[3] is not laws[0]


def test_holes_of_a_tied_panel_are_at_the_closed_form(holed):
    """The likelihood that rows show is that of a joint normal law, and no slope raises it."""
    table, model = holed
    wide = model.panel_.wide(table)
    structural = model.structural_model()
    laws = {name: structural.mechanism(i) for i, name in enumerate(structural.graph.nodes)}
    start = {
        key: np.array(
            [
                float(laws[node].linear_form().intercept),
                *laws[node].linear_form().weights.tolist(),
                float(laws[node].linear_form().scale),
            ]
        )
        for key, node in (("L0", "L[0]"), ("L", "L[1]"), ("A", "A[0]"))
    }

    def log_likelihood(numbers):
        names = list(structural.graph.nodes)
        mean, mixing = np.zeros(8), np.zeros((8, 8))
        for i, name in enumerate(names):
            key = "L0" if name == "L[0]" else name[0]
            intercept, *weights, scale = numbers[key]
            parents = structural.graph.parents[i]
            mean[i] = intercept + sum(w * mean[j] for w, j in zip(weights, parents, strict=True))
            for w, j in zip(weights, parents, strict=True):
                mixing[i] += w * mixing[j]
            mixing[i, i] = scale
        covariance, rows = mixing @ mixing.T, wide[names].to_numpy()
        total = []
        for row in rows:
            seen = ~np.isnan(row)
            total.append(
                multivariate_normal(mean[seen], covariance[np.ix_(seen, seen)]).logpdf(row[seen])
                if seen.any()
                else 0.0
            )
        return np.array(total)

    best = log_likelihood(start)
    assert model.log_prob(table).to_numpy() == pytest.approx(best, abs=1e-8)
    for key, numbers in start.items():
        for place in range(len(numbers)):
            sides = []
            for sign in (-1.0, 1.0):
                moved = numbers.copy()
                moved[place] += sign * 1e-3
                sides.append(log_likelihood({**start, key: moved}).sum())
            assert max(sides) < best.sum()
            assert abs(sides[1] - sides[0]) / 2e-3 < 0.02  # of a slope of some hundreds a unit


def test_who_leaves_counts_up_to_then(complete):
    table, model = complete
    person = table[table["id"] == 7]
    wide = model.panel_.wide(person)
    values = model.schema_.encode(
        np.array([[wide[node].iloc[0] for node in model.graph_.nodes]], dtype=float)
    )
    import torch

    factors = model.model_.log_factors(torch.tensor(values))[0]
    slopes = [column.log_slope(np.zeros(1))[0] for column in model.schema_.columns]
    kept = [i for i, node in enumerate(model.graph_.nodes) if node[-3:] not in ("[2]", "[3]")]
    expected = sum(
        float(factors[i]) + (0.0 if model.schema_.columns[i].fixed else slopes[i]) for i in kept
    )
    found = model.log_prob(person[person["week"] < 2])
    assert found.iloc[0] == pytest.approx(expected, abs=1e-10)


def test_the_order_of_rows_does_not_matter(complete):
    table, model = complete
    other = fitted(table.sample(frac=1.0, random_state=3))
    assert slopes(other, "L[2]") == pytest.approx(slopes(model, "L[2]"), abs=1e-6)


def test_curves_are_chosen_for_all_visits_at_once():
    """A wave of every visit is found, and its effect, of which a line knows nothing."""
    table = with_holes(long_table(300, 3, curve=1.5), share=0.1)
    model = fitted(table, "L[t-1], A[t-1], time -> L[t]; L[t], sex -> A[t]", "auto")
    forms = {str(model.forms_[f"A[{week}]"]) for week in range(3)}
    assert len(forms) == 1
    assert forms != {"line"}
    effect = model.effect("A[1]", do={"L[1]": 0.8}, versus={"L[1]": 0.0})
    truth = 0.6 * 0.8 + 1.5 * np.sin(1.6)  # 1.98; a line has 0.8 of its slope, which is below 1
    assert effect.estimate == pytest.approx(truth, abs=0.2)


def test_a_saved_panel_answers_the_same(holed, tmp_path):
    table, model = holed
    model.save(tmp_path / "model")
    loaded = MissCNF.load(tmp_path / "model")
    assert loaded.panel_ == model.panel_
    assert loaded.log_prob(table).equals(model.log_prob(table))
    assert loaded.sample(3).equals(model.sample(3))


def test_samples_and_imputations_are_long(holed):
    table, model = holed
    drawn = model.sample(5)
    assert list(drawn.columns) == ["id", "week", "L", "A"]
    assert len(drawn) == 20
    completed = model.impute(table.assign(note="kept"), draws=2)
    assert list(completed.columns) == [*table.columns, "note"]
    assert not completed[["L", "A"]].isna().any().any()
    first = completed.xs(1, level="draw")
    seen = table["L"].notna()
    assert first.index.equals(table.index)
    assert first.loc[seen, "L"].astype(float).equals(table.loc[seen, "L"])


def test_what_is_not_there_yet_is_refused(holed):
    table, model = holed
    for ask in (
        lambda: model.check(table, do={"A[0]": 1}),
        lambda: model.sample(3, given=table),
    ):
        with pytest.raises(InputError, match="not there yet for tables over time"):
            ask()
    with pytest.raises(InputError, match="blocks= is not there yet"):
        fitted(table, blocks={"w": ["L", "A"]})


def test_a_node_that_no_row_shows_is_left_out():
    table = long_table(100, 3)
    table["Y"] = table["L"].where(table["week"] == 2)
    model = fitted(table, f"{GRAPH}; L[t-1] -> Y[t]")
    assert "Y[2]" in model.graph_.nodes
    assert "Y[1]" not in model.graph_.nodes


def test_a_line_s_course_is_as_open_as_its_slope(holed):
    """L[1] with another A[0] moves by b (1 − A[0]); where nothing is hidden, only b is open."""
    table, model = holed
    found = model.counterfactual(table, do={"A[0]": 1.0}, interval=0.9).set_index(["id", "week"])
    cells = table.set_index(["id", "week"])
    shown = cells["L"].unstack().notna()[[0, 1]].all(axis=1) & cells["A"].unstack()[0].notna()
    own = model.summary().set_index(["column", "cause"]).loc[("L[1]", "A[0]")]
    count = len(model._cache.replicates[next(iter(model._cache.replicates))][0])
    for i in shown.index[shown][:10]:
        by = 1.0 - cells.loc[(i, 0), "A"]
        line, half = found.loc[(i, 1)], stdtrit(count - 1, 0.95) * own["standard_error"]
        assert line["L"] == pytest.approx(cells.loc[(i, 1), "L"] + own["coefficient"] * by)
        assert line["L_upper"] - line["L_lower"] == pytest.approx(2 * half * abs(by), rel=1e-3)
        assert found.loc[(i, 0), ["L_lower", "L_upper"]].isna().all()  # before the intervention


def test_what_lost_values_would_move_is_their_share(holed):
    """Without drivers a shift δ of what is lost moves a mean by δ times the share that is lost."""
    table, model = holed
    lost = 1.0 - table.loc[table["week"] == 3, "L"].notna().sum() / 150
    about = {"versus": {"A": 0.0}, "loss": {"L": []}, "interval": None, "data": table}
    found = model.sensitivity("L", {"A": 1.0}, shift={"do": [0.0, 2.0]}, **about)
    first, second = found.to_frame()["estimate"]
    assert first == pytest.approx(model.effect("L", {"A": 1.0}, {"A": 0.0}).estimate, abs=0.02)
    assert second - first == pytest.approx(2.0 * lost, abs=0.03)  # 4 standard errors of 20,000
    assert "do(A = 1) versus do(A = 0)" in str(found)
    with pytest.raises(InputError, match="no column 'nope'"):
        model.sensitivity("L", {"A": 1.0}, **about | {"loss": "nope"}, shift=[0.0])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda d: pd.concat([d, d.iloc[[5]]]), "two rows at week 0, the second labelled 5"),
        (lambda d: d.assign(sex=d["week"]), r"write sex\[t\] in the graph"),
        (lambda d: d.assign(week=d["week"].astype(str) + "x"), "visits are numbers"),
        (lambda d: d.assign(id=d["id"].where(d["id"] != 3)), "says who, and has a hole"),
        (lambda d: d.drop(columns="week"), "time is 'week', and the table has no such column"),
        (lambda d: d.drop(columns="A"), "the graph has 'A', and the table has no such column"),
        (lambda d: d[d["week"] == 0], "the table has 1 visit;"),
    ],
)
def test_a_bad_panel_is_refused_in_a_sentence(spoil, words):
    with pytest.raises(InputError, match=words):
        fitted(spoil(long_table(30, 3)))


def test_a_visit_that_the_fit_did_not_see_is_refused(holed):
    table, model = holed
    with pytest.raises(InputError, match="week = 9, which is no visit of the fit"):
        model.log_prob(table.assign(week=9).drop_duplicates("id"))


def test_a_wide_table_with_ties_is_the_long_one(holed):
    table, model = holed
    wide = model.panel_.wide(table).rename(columns=lambda name: name.replace("[", "").strip("]"))
    edges = [
        edge
        for k in range(4)
        for edge in [(f"L{k}", f"A{k}"), *((f"{n}{k - 1}", f"L{k}") for n in "LA" if k)]
    ]
    nodes = [f"{name}{k}" for k in range(4) for name in "LA"]
    graph = CausalGraph.from_edges(edges, nodes)
    ties = [[f"{name}{k}" for k in range(4)] for name in "LA"]
    tied = MissCNF(graph, "linear", ties=ties, progress=False).fit(wide)
    assert tied.log_prob(wide).to_numpy() == pytest.approx(model.log_prob(table), abs=1e-6)
    with pytest.raises(InputError, match="'L1' is tied twice"):
        MissCNF(graph, "linear", ties=[["L1", "L2"], ["L1", "L3"]]).fit(wide)
    with pytest.raises(InputError, match="lists of two columns"):
        MissCNF(graph, "linear", ties=["L1", "L2"]).fit(wide)
    turned = CausalGraph.from_edges(
        [("L0", "L1"), ("A0", "L1"), ("L1", "L2"), ("A1", "L2")], ["L0", "A0", "A1", "L1"]
    )
    with pytest.raises(InputError, match="their causes come in another order"):
        MissCNF(turned, "linear", ties=[["L0", "L1", "L2"], ["A0", "A1"]]).fit(wide)


def test_a_column_that_does_not_vary_within_a_person_is_measured_once():
    table = long_table(100, 3)
    graph = "L[t-1] -> L[t]; sex[t], L[t] -> A[t]"
    model = fitted(table, graph)
    assert model.graph_.parents_of("A[2]") == ("sex", "L[2]")
    assert "'sex' does not vary within a person: measured once" in model.panel_.summary
    assert "sex[1]" in fitted(table, graph, varying=["sex"]).graph_.nodes
    own = fitted(table.assign(sex=table["id"] % 2), "sex[t-1] -> sex[t]; sex[t], L[t] -> A[t]")
    assert "sex[2]" in own.graph_.nodes  # the graph says that it follows itself
    with pytest.raises(InputError, match="varying is a list of columns"):
        fitted(table, graph, varying=["dose"])


def test_untied_visits_have_slopes_of_their_own():
    table = long_table(100, 3)
    model = fitted(table, "L[t-1] -> L[t]; L[t], time -> A[t]", untied=["A"])
    for week in range(3):
        own = table[table["week"] == week]
        expected = sm.OLS(own["A"], sm.add_constant(own["L"])).fit().params.iloc[1]
        assert slopes(model, f"A[{week}]") == pytest.approx({f"L[{week}]": expected}, abs=1e-5)
    assert model.model_.law(model.graph_.index("L[1]")) is model.model_.law(
        model.graph_.index("L[2]")
    )
    short = fitted(table[table["week"] < 2], "L[t-1] -> A[t]", untied=True)
    assert len(short.model_.blocks) == len(short.graph_)
    with pytest.raises(InputError, match="untied names 'dose'"):
        fitted(table, untied=["dose"])


def test_a_hidden_cause_of_a_person_is_a_random_intercept(tmp_path):
    """The linear mixed model of statsmodels, by maximum likelihood, on unbalanced visits."""
    rng, people = np.random.default_rng(0), 200
    hidden, parts = rng.normal(size=people), []
    for week in range(4):
        dose = rng.normal(size=people)
        value = 1.0 + 0.7 * dose + 0.8 * hidden + rng.normal(size=people)
        parts.append(pd.DataFrame({"id": range(people), "week": week, "x": dose, "L": value}))
    table = pd.concat(parts, ignore_index=True)
    table = table[rng.random(len(table)) < 0.8]
    model = fitted(table, "x[t], u -> L[t]", latent=["u"])
    mixed = sm.MixedLM(table["L"], sm.add_constant(table["x"]), table["id"]).fit(reml=False)
    found = slopes(model, "L[2]")
    assert found["x[2]"] == pytest.approx(mixed.params["x"], abs=1e-4)
    assert found["u"] ** 2 == pytest.approx(mixed.cov_re.to_numpy().item(), rel=1e-3)
    doses = sm.OLS(table["x"], np.ones(len(table))).fit().llf
    assert model.log_prob(table).sum() - doses == pytest.approx(mixed.llf, abs=1e-4)
    effect = model.effect("L", do={"x": 1}, versus={"x": 0}, draws=1000)
    assert effect.estimate == pytest.approx(mixed.params["x"], abs=1e-4)
    model.save(tmp_path / "model")
    assert MissCNF.load(tmp_path / "model").sample(2).equals(model.sample(2))
    for graph, latent, words in (
        ("x[t], u[t] -> L[t]", ["u[t]"], "one of a person"),
        ("x[t], u -> L[t]", ["x"], "x"),
    ):
        with pytest.raises(InputError, match=words):
            fitted(table, graph, latent=latent)


def losing_table(people=600, own=1.5, seed=0, visits=4):
    """y over time; it is lost more often where it, or the dose, is high, and after a loss."""
    rng = np.random.default_rng(seed)
    value, before, parts = np.zeros(people), np.zeros(people), []
    for week in range(visits):
        dose = rng.normal(size=people)
        value = 0.5 * value + 0.3 * dose + rng.normal(size=people)
        odds = -1.2 + 0.9 * dose + before + own * value
        lost = rng.random(people) < 1.0 / (1.0 + np.exp(-odds))
        row = {"id": range(people), "week": week, "d": dose, "y": value, "before": before}
        parts.append(pd.DataFrame({**row, "lost": lost.astype(float)}))
        before = lost.astype(float)
    table = pd.concat(parts, ignore_index=True)
    return table.assign(true=table["y"], y=table["y"].mask(table["lost"] > 0))


def test_a_loss_that_follows_what_is_seen_is_a_pooled_regression_and_moves_nothing_else():
    table = losing_table(own=0.0)
    seen, graph = table[["id", "week", "d", "y"]], "y[t-1], d[t] -> y[t]"
    model = fitted(seen, f"{graph}; d[t], missing(y)[t-1] -> missing(y)[t]")
    later = table[table["week"] > 0]
    pooled = sm.Logit(later["lost"], sm.add_constant(later[["d", "before"]])).fit(disp=0).params
    for week in (1, 3):
        found = slopes(model, f"missing(y[{week}])")
        expected = {  # a standard deviation of a number
            f"d[{week}]": pooled["d"] * table["d"].std(ddof=0),
            f"missing(y[{week - 1}]) = True": pooled["before"],
        }
        assert found == pytest.approx(expected, abs=1e-4)
    plain = fitted(seen, graph)
    assert slopes(model, "y[2]") == pytest.approx(slopes(plain, "y[2]"), abs=1e-4)
    # A row that is not there is a loss of all its columns.
    absent = seen[seen["y"].notna() | (seen["week"] == 0)]
    again = fitted(absent, "y[t-1] -> y[t]; missing(y)[t-1] -> missing(y)[t]")
    whole = fitted(seen, "y[t-1] -> y[t]; missing(y)[t-1] -> missing(y)[t]")
    assert slopes(again, "missing(y[2])") == pytest.approx(
        slopes(whole, "missing(y[2])"), abs=1e-6
    )


def test_a_loss_that_follows_what_it_hides_is_told_over_time(tmp_path):
    """Means within 4 standard errors of the whole table's; without the arrow they are not."""
    table = losing_table(people=500, own=2.0, visits=3)
    seen, graph = table[["id", "week", "d", "y"]], "y[t-1], d[t] -> y[t]"
    told = {"y": ["y[t]", "d[t]", "missing(y)[t-1]"]}
    model, plain = fitted(seen, graph, loss=told), fitted(seen, graph)
    written = f"{graph}; y[t], d[t], missing(y)[t-1] -> missing(y)[t]"
    assert model.panel_.template == read_template(written, "week")
    truth = table.groupby("week")["true"].mean()[2]
    spread = 4.0 * table["true"].std() / np.sqrt(300)  # people who are seen
    means = [one.effect("y", do={}).mean for one in (model, plain)]
    assert abs(means[0] - truth) < spread < abs(means[1] - truth)
    own = {slopes(model, f"missing(y[{week}])")[f"y[{week}]"] for week in (1, 2)}
    assert len(own) == 1  # tied
    assert "missing(y)" in str(model.panel_.template)
    model.save(tmp_path / "model")
    other = MissCNF.load(tmp_path / "model")
    assert other.panel_ == model.panel_
    assert other.log_prob(seen).equals(model.log_prob(seen))
    holes = model.sample(500, holes=True)["y"].isna().mean()
    assert abs(holes - seen["y"].isna().mean()) < 0.1
    found = model.check(seen).recovery  # the first visit has a mechanism of its own
    assert [(one.column, one.by) for one in found] == [("y[0]", "shape"), ("y[1]", "shape")]


def test_losses_over_time_that_cannot_be_are_refused():
    table = losing_table(people=60, own=0.0)[["id", "week", "d", "y"]]
    for graph, more, words in (
        ("d[t] -> y[t]; d[t] -> missing(d)[t]", {}, "no cell of that column is lost"),
        ("d[t] -> y[t]", {"loss": {"z": ["y[t]"]}}, "names 'z'"),
        ("d[t] -> y[t]", {"loss": 3}, "loss is 'self', or"),
        (
            "d[t] -> y[t]; d[t] -> missing(y)[t]; d[t] -> E[t]",
            {"kinds": {"E": "event"}},
            "who left is not known to be without it",
        ),
    ):
        with pytest.raises(InputError, match=words):
            fitted(table.assign(E=(table["week"] == 3).astype(int)), graph, **more)
