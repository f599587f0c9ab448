"""The verbs of a model with hidden causes: what comes back, what is said, what is refused."""

import numpy as np
import pandas as pd
import pytest

from misscnf import InputError, MissCNF

GRAPH = "u -> a; u -> b; u -> c; u -> t; u -> y; t -> y"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    u, *noise = rng.normal(size=(6, 400))
    a, b, c = (0.8 * u + 0.6 * noise[k] for k in range(3))
    t = u + noise[3]
    frame = pd.DataFrame({"a": a, "b": b, "c": c, "t": t, "y": 0.5 * t + u + noise[4]})
    frame["outside"] = np.arange(400.0)
    return frame.mask(rng.random(frame.shape) < 0.1)


@pytest.fixture(scope="module")
def model(rows):
    return MissCNF(GRAPH, "linear", latent=["u"], progress=False).fit(rows)


def test_hidden_causes_come_back_only_if_asked_for(model, rows):
    assert list(model.impute(rows, 1).columns) == list(rows.columns)
    drawn = model.impute(rows, 3, latents=True)
    assert list(drawn.columns) == [*rows.columns, "u"]
    assert "u" not in model.sample(5)
    assert model.sample(5, latents=True)["u"].notna().all()
    assert "u" not in model.counterfactual(rows.head(), do={"t": 1.0})


def test_factor_scores_are_posterior_draws(model, rows):
    """Their means and variances are those of the joint normal law, given what rows show."""
    forms, graph = model.structural_model().linear_forms(), model.graph_
    slopes = np.zeros((len(graph), len(graph)))
    for i, form in enumerate(forms):
        slopes[i, list(graph.parents[i])] = form.weights.numpy()
    through = np.linalg.inv(np.eye(len(graph)) - slopes)
    covariance = (through * np.array([float(f.scale) for f in forms]) ** 2) @ through.T
    mean = through @ np.array([float(f.intercept) for f in forms])
    complete, names = rows.dropna().head(50), ["a", "b", "c", "t", "y"]
    u, rest = graph.index("u"), [graph.index(name) for name in names]
    along = np.linalg.solve(covariance[np.ix_(rest, rest)], covariance[rest, u])
    known = mean[u] + (complete[names].to_numpy() - mean[rest]) @ along
    variance = covariance[u, u] - along @ covariance[rest, u]
    drawn = model.impute(complete, 400, latents=True)["u"].to_numpy().reshape(400, -1)
    # 50 means at five standard errors: a false alarm in 30,000 seeds
    assert np.abs(drawn.mean(0) - known).max() < 5.0 * np.sqrt(variance / 400)
    assert drawn.var(0).mean() == pytest.approx(variance, rel=0.05)


def test_a_saved_model_is_the_same(model, rows, tmp_path):
    model.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    assert loaded.graph_.latent == {"u": None}
    pd.testing.assert_series_equal(loaded.log_prob(rows), model.log_prob(rows))
    pd.testing.assert_frame_equal(
        loaded.sample(5, latents=True, seed=1), model.sample(5, latents=True, seed=1)
    )


def test_the_effect_has_its_assumption_and_an_interval(model):
    found = model.effect("y", do={"t": 1.0}, versus={"t": 0.0}, interval=0.95)
    assert found.interval[0] < 0.5 < found.interval[1]
    assert any("completeness" in note for note in found.notes)


def test_an_intervention_on_a_hidden_cause_is_warned_of(model):
    found = model.effect("y", do={"u": 1.0}, versus={"u": 0.0})
    assert any("nobody measures u" in note for note in found.notes)
    assert any("shape of the model alone" in note for note in found.notes)
    slopes = model.summary().set_index(["column", "cause"])["coefficient"]
    total = slopes["y", "u"] + slopes["y", "t"] * slopes["t", "u"]
    assert found.estimate == pytest.approx(total, abs=1e-6)


def test_counterfactuals_hold_what_the_row_says_of_the_hidden_cause(model, rows):
    """The noise of y and u stay: t moves y by its slope alone."""
    complete = rows.dropna().head(20)
    slope = model.summary().set_index(["column", "cause"])["coefficient"]["y", "t"]
    found = model.counterfactual(complete, do={"t": 1.0})
    moved = found["y"] - complete["y"]
    np.testing.assert_allclose(moved, slope * (1.0 - complete["t"]), atol=1e-8)


def test_auto_keeps_lines_around_hidden_causes(rows):
    model = MissCNF(f"{GRAPH}; y -> z", latent=["u"], progress=False)
    few = rows.head(150)  # with fewer than 20 held-out rows no network is tried
    noise = np.random.default_rng(1).normal(size=len(few))
    model.fit(few.assign(z=few["y"] ** 2 + 0.3 * noise))
    assert {model.forms_[name].name for name in ("u", "a", "b", "c", "t", "y")} == {"line"}
    assert model.forms_["z"].name != "line"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"latent": ["u"], "preset": "paper"}, "gives every node a network"),
        ({"latent": ["u", "t"]}, "the table has a column 't'"),
        ({"latent": ["v"]}, "latent names 'v'"),
        ({"latent": {"u": 100}}, "'u' has 100 classes, and the table 400 rows"),
        ({"latent": ["u"], "kinds": {"a": "latent"}}, "kinds cannot make a hidden cause of"),
    ],
)
def test_bad_hidden_causes_are_refused(rows, arguments, said):
    with pytest.raises(InputError, match=said):
        MissCNF(GRAPH, **arguments).fit(rows)


def test_new_rows_must_not_bring_the_hidden_cause(model, rows):
    with pytest.raises(InputError, match="nobody measures it"):
        model.log_prob(rows.assign(u=1.0))


def test_an_intervention_on_a_hidden_class_is_told_in_classes():
    rng = np.random.default_rng(0)
    k = rng.random(120) < 0.5
    table = pd.DataFrame({name: 4.0 * k + rng.normal(size=120) for name in "ab"})
    about = {"latent": {"k": 2}, "settings": {"solving.starts": 1}, "progress": False}
    model = MissCNF("k -> a; k -> b", "linear", **about).fit(table)
    found = model.effect("a", do={"k": 2}, versus={"k": 1})
    assert found.estimate > 3.0  # classes are in the order of the first child
    assert any("its classes 1 to 2 are the model's own" in note for note in found.notes)
