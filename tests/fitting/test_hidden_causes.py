"""Linear fits with hidden causes: lavaan's factor models, mixtures, latent classes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.mixture import GaussianMixture

from misscnf import InputError, MissCNF
from misscnf.draws import derive_generator
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Gaussian, Latent
from misscnf.model import StructuralModel

FIXTURES = Path(__file__).parents[1] / "fixtures"
DEMOCRACY = """
    ind60 =~ x1 + x2 + x3
    dem60 =~ y1 + y2 + y3 + y4
    dem65 =~ y5 + y6 + y7 + y8
    dem60 ~ ind60
    dem65 ~ ind60 + dem60
"""
RESIDUALS = """
    y1 ~~ y5
    y2 ~~ y4 + y6
    y3 ~~ y7
    y4 ~~ y8
    y6 ~~ y8
"""


@pytest.fixture(scope="module")
def rows():
    return pd.read_csv(FIXTURES / "politicaldemocracy_holes.csv")


@pytest.fixture(scope="module")
def lavaan():
    return pd.read_csv(FIXTURES / "politicaldemocracy_holes.lavaan_params.csv")


@pytest.fixture(scope="module")
def factors(rows):
    return MissCNF(DEMOCRACY, "linear", kinds="continuous", progress=False).fit(rows)


def moments(model):
    """Means and covariances of all nodes, and which are hidden."""
    graph, forms = model.graph, model.linear_forms()
    slopes = np.zeros((len(graph), len(graph)))
    for i, form in enumerate(forms):
        slopes[i, list(graph.parents[i])] = form.weights.numpy()
    through = np.linalg.inv(np.eye(len(graph)) - slopes)
    scale = np.array([float(form.scale) for form in forms])
    mean = through @ np.array([float(form.intercept) for form in forms])
    return mean, (through * scale**2) @ through.T, slopes


def test_the_likelihood_is_that_of_lavaan(factors, rows):
    assert factors.log_prob(rows).sum() == pytest.approx(-1391.8229856777, abs=1e-3)


def test_standardised_paths_are_those_of_lavaan(factors, lavaan):
    model = factors.structural_model()
    _, covariance, slopes = moments(model)
    spread, place = np.sqrt(np.diag(covariance)), model.graph.index
    paths = lavaan[lavaan["op"].isin(["=~", "~"])].rename(columns={"std.all": "standardised"})
    assert len(paths) == 14
    for line in paths.itertuples():
        effect, cause = (line.rhs, line.lhs) if line.op == "=~" else (line.lhs, line.rhs)
        i, j = place(effect), place(cause)
        standardised = slopes[i, j] * spread[j] / spread[i]
        assert standardised == pytest.approx(line.standardised, abs=0.01)


def test_every_row_is_as_likely_as_in_lavaan(rows, lavaan):
    """At lavaan's parameters, each hidden cause brought to noise of variance one."""
    graph = CausalGraph.read(DEMOCRACY)
    value = {(r.lhs, r.op, r.rhs): r.est for r in lavaan.fillna("").itertuples()}
    unit = {name: np.sqrt(value[name, "~~", name]) for name in graph.latent}
    mechanisms = []
    for node in graph.nodes:
        parents = graph.parents_of(node)
        own = unit.get(node, 1.0)
        slopes = [
            value.get((node, "~", p), value.get((p, "=~", node))) * unit[p] / own for p in parents
        ]
        law = Latent(len(parents)) if node in unit else Gaussian(len(parents))
        scale = np.sqrt(value[node, "~~", node])
        law.double().set_line(value[node, "~1", ""], slopes, scale)
        mechanisms.append(law)
    model = StructuralModel(graph, mechanisms).requires_grad_(requires_grad=False)
    cells = torch.tensor(rows.reindex(columns=graph.nodes).to_numpy(dtype=float))
    plan = Plan.make(graph, ~cells.isnan())
    found = observed_log_prob(model, cells.nan_to_num(), plan, derive_generator(0, "rows"))
    casewise = np.loadtxt(FIXTURES / "politicaldemocracy_holes.lavaan_casewise.txt")
    np.testing.assert_allclose(found.log_prob.numpy(), casewise, atol=1e-5)


def test_residual_covariances(rows):
    """The maximum that BFGS finds over loadings and a free residual covariance matrix (scipy)."""
    model = MissCNF(DEMOCRACY + RESIDUALS, "linear", kinds="continuous", progress=False).fit(rows)
    assert model.log_prob(rows).sum() == pytest.approx(-1378.6197343594, abs=1e-3)
    assert independent_log_likelihood(model, rows) == pytest.approx(-1378.6197343594, abs=1e-3)


def independent_log_likelihood(model, rows):
    """By means and covariances of what each row shows."""
    structure, total = model.structural_model(), 0.0
    mean, covariance, _ = moments(structure)
    cells = rows.reindex(columns=structure.graph.nodes).to_numpy(dtype=float)
    for row in cells:
        shown = ~np.isnan(row)
        off, part = row[shown] - mean[shown], covariance[np.ix_(shown, shown)]
        size = np.linalg.slogdet(2.0 * np.pi * part)[1]
        total -= 0.5 * (size + off @ np.linalg.solve(part, off))
    return total


def test_the_first_child_grows_with_a_hidden_cause(rows, factors):
    turned = rows.assign(y1=-rows["y1"])
    model = MissCNF(DEMOCRACY, "linear", kinds="continuous", progress=False).fit(turned)
    for found in (factors, model):
        _, _, slopes = moments(found.structural_model())
        graph = found.graph_
        for u in graph.latent_nodes:
            assert slopes[min(graph.children[u]), u] > 0.0
    assert model.log_prob(turned).sum() == pytest.approx(factors.log_prob(rows).sum(), abs=1e-5)


def test_what_rows_cannot_tell_is_a_tie(caplog):
    """A bow: the effect of t on y, and what hides behind both, have one likelihood."""
    rng = np.random.default_rng(0)
    t = rng.normal(size=300)
    table = pd.DataFrame({"t": t, "y": t + rng.normal(size=300)})
    with caplog.at_level("WARNING", logger="misscnf"):
        model = MissCNF("t -> y; t <-> y", "linear", progress=False).fit(table)
        said = model.effect("y", do={"t": 1.0}, versus={"t": 0.0})
    assert "starts reach the same likelihood by another model" in caplog.text
    assert "rests on the shape of the model alone" in str(said)


def mixture(count, seed=0):
    rng = np.random.default_rng(seed)
    second = rng.random(count) < 0.35
    means = np.where(second[:, None], [2.0, -1.0, 1.5], [0.0, 1.0, 0.0])
    values = means + rng.normal(size=(count, 3)) * [1.0, 0.7, 1.2]
    return pd.DataFrame(values, columns=list("abc")), second, rng


def expectation_maximisation(cells, log_prob, update, start, tolerance=1e-10):
    """EM of a mixture, given how likely cells are in each class, and what maximises that."""
    chances, parameters, before = *start, -np.inf
    while True:
        joint = np.log(chances) + log_prob(cells, parameters)
        total = np.logaddexp.reduce(joint, axis=1)
        if total.sum() - before < tolerance:
            return total.sum()
        before = total.sum()
        share = np.exp(joint - total[:, None])
        chances, parameters = share.mean(0), update(cells, share)


def normal_log_prob(cells, parameters):
    means, variance = parameters
    off = cells[:, None] - means
    return np.nansum(-0.5 * np.log(2 * np.pi * variance) - 0.5 * off**2 / variance, axis=2)


def normal_update(cells, share):
    shown = ~np.isnan(cells)
    weight = share[:, :, None] * shown[:, None]
    means = (weight * np.nan_to_num(cells)[:, None]).sum(0) / weight.sum(0)
    square = np.nan_to_num((cells[:, None] - means) ** 2)
    return means, (weight * square).sum((0, 1)) / shown.sum(0)


def test_two_normal_classes_with_holes():
    table, second, rng = mixture(400)
    table = table.mask(rng.random(table.shape) < 0.25)
    model = MissCNF("k -> a; k -> b; k -> c", "linear", latent={"k": 2}, progress=False).fit(table)
    cells = table.to_numpy()
    start = np.array([0.6, 0.4]), (np.array([[0.0, 1.0, 0.0], [2.0, -1.0, 1.5]]), np.ones(3))
    known = expectation_maximisation(cells, normal_log_prob, normal_update, start)
    assert model.log_prob(table).sum() == pytest.approx(known, abs=0.01)
    drawn = model.impute(table, 20, latents=True)["k"].groupby(level="row").mean()
    assert ((drawn > 1.5).to_numpy() == second).mean() > 0.9  # in the order of a


def test_two_normal_classes_of_complete_rows():
    """One column, as scikit-learn has it; its classes have one variance (tied)."""
    rng = np.random.default_rng(2)
    a = np.where(rng.random(300) < 0.4, 3.0, 0.0) + rng.normal(size=300)
    table = pd.DataFrame({"a": a})
    model = MissCNF("k -> a", "linear", latent={"k": 2}, progress=False).fit(table)
    theirs = GaussianMixture(2, covariance_type="tied", tol=1e-12, reg_covar=0.0, max_iter=5000)
    known = theirs.fit(a[:, None]).score(a[:, None]) * len(a)
    assert model.log_prob(table).sum() == pytest.approx(known, abs=0.01)


def binary_log_prob(cells, chance):
    return np.nansum(
        cells[:, None] * np.log(chance) + (1.0 - cells[:, None]) * np.log1p(-chance), axis=2
    )


def binary_update(cells, share):
    weight = share[:, :, None] * ~np.isnan(cells)[:, None]
    return (weight * np.nan_to_num(cells)[:, None]).sum(0) / weight.sum(0)


def test_latent_classes_of_five_binary_items():
    rng = np.random.default_rng(1)
    chance = np.array([[0.2, 0.3, 0.1, 0.8, 0.7], [0.9, 0.8, 0.85, 0.2, 0.3]])
    cells = (rng.random((400, 5)) < chance[rng.integers(0, 2, 400)]).astype(float)
    cells[rng.random(cells.shape) < 0.1] = np.nan
    table = pd.DataFrame(cells, columns=list("vwxyz"))
    graph = "c -> v; c -> w; c -> x; c -> y; c -> z"
    model = MissCNF(graph, "linear", latent={"c": 2}, progress=False).fit(table)
    start = np.array([0.5, 0.5]), chance
    known = expectation_maximisation(cells, binary_log_prob, binary_update, start)
    assert model.log_prob(table).sum() == pytest.approx(known, abs=0.01)


def test_a_kind_of_what_nobody_measures_is_refused():
    rows = pd.DataFrame({"x": [0.0, 1.0, 2.5], "y": [1.0, 0.5, 2.0]})
    model = MissCNF("u -> x; u -> y", "linear", latent=["u"], kinds={"u": "binary"})
    with pytest.raises(InputError, match="'u', which nobody measures"):
        model.fit(rows)


# Levels below a hidden number


def test_a_flat_ridge_is_climbed_to_its_end():
    rng = np.random.default_rng(6)  # the table of the tutorial, examples/hidden_cause.py
    frailty = rng.normal(size=2000)
    z, w = (frailty + 0.7 * rng.normal(size=2000) for _ in "zw")
    t = (0.8 * frailty + 0.6 * z + rng.normal(size=2000) > 0).astype(int)
    y = 1.0 * t - 1.5 * frailty + 0.4 * w + rng.normal(size=2000)
    df = pd.DataFrame({"z": z, "w": w, "t": t, "y": y})
    df = df.mask(rng.random(df.shape) < 0.15)
    graph = "u -> t; u -> y; u -> z; u -> w; z -> t; w -> y; t -> y"
    model = MissCNF(graph, "linear", latent=["u"], progress=False).fit(df)
    # Searches from the factors and from the true frailty end between -8581.01 and -8581.42; rounds
    # of completions ended at -8582.38, with the interval 0.53 to 0.91.
    assert model.log_prob(df).sum() > -8581.5
    low, high = model.effect("y", {"t": 1}, {"t": 0}, interval=0.95, draws=20_000).interval
    assert low < 1.0 < high
