"""The linear model of mixed tables, against statsmodels, EM and lavaan."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from mixed_models import MIXED, generator, mixed_model, rows_of
from scipy import optimize, special, stats
from statsmodels.miscmodels.ordinal_model import OrderedModel

from misscnf.data import domains as kinds
from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.fitting.completions import Completions
from misscnf.fitting.settings import preset_settings
from misscnf.fitting.solve import generalised_linear
from misscnf.fitting.solve.fisher import likelihood_noise, log_likelihoods
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.sandwich import measure_information
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.model import Structure

FIXTURES = Path(__file__).parents[1] / "fixtures"


def domains_of(graph, values, observed):
    """Domains by the names of nodes, with the location and scale of what is seen."""
    made = []
    for i, name in enumerate(graph.nodes):
        seen = values[observed[:, i], i]
        unit = float(seen.mean()), float(seen.std())
        domain = {
            "x": CONTINUOUS,
            "b": kinds.Binary(*unit),
            "o": kinds.Ordinal(*unit, levels=3),
            "k": kinds.Categorical(3),
            "n": kinds.Count(*unit, has_zero=bool((seen == 0).any())),
        }
        made.append(domain[name[0]])
    return made


def sample(text, rows, seed=1):
    """A model, rows of it, and the domains of a complete table of them."""
    model = mixed_model(text, seed=seed)
    values = rows_of(model, rows, seed=seed + 1)
    return model.graph, values, torch.ones_like(values).bool()


def probabilities(model, node, values, size):
    """P(x_node = 0, 1, …) at the parents of each row, (N, size)."""
    index = model.graph.index(node)
    parents = model.parents_of(values, index)[:, None, :]
    with torch.no_grad():
        log_prob = model.mechanism(index).log_prob(torch.arange(float(size)), parents)
    return log_prob.exp().expand(len(values), size).numpy()


# Complete tables


WHOLE = "x1 -> b; b -> k; x1 -> k; k -> o; x1 -> o; o -> n; b -> n; k -> x2; o -> x2; n -> x2"


def hand_made_design(frame, names, values, graph):
    """Features by the table of `mechanisms/encoding.py`, a constant first."""
    columns = [np.ones(len(frame))]
    for name in names:
        x = frame[name].to_numpy()
        seen = values[:, graph.index(name)].numpy()
        number = (x - seen.mean()) / seen.std(ddof=1)
        if name[0] == "x":
            columns.append(x)
        elif name[0] == "k":
            columns += [x == 1, x == 2]
        else:
            columns.append(number)
            columns += [x == 1] if name[0] == "o" else [x == 0] if name[0] == "n" else []
    return np.column_stack(columns).astype(float)


@pytest.fixture(scope="module")
def whole():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    graph, values, observed = sample(WHOLE, 1500)
    line = fit_linear(
        Structure.of(graph, domains_of(graph, values, observed)), MemoryRows(values, observed)
    )
    torch.set_default_dtype(before)
    frame = pd.DataFrame(values.numpy(), columns=list(graph.nodes))
    designs = {
        name: hand_made_design(frame, graph.parents_of(name), values, graph)
        for name in graph.nodes
    }
    return line, frame, designs, values


def test_a_complete_table_is_fitted_at_once(whole):
    line, _, _, values = whole
    assert line.converged
    log_prob = line.model.log_prob(values).mean().item()
    assert line.log_prob == pytest.approx(log_prob, abs=1e-9)


def test_binary_predictions_are_those_of_logistic_regression(whole):
    line, frame, designs, values = whole
    expected = sm.Logit(frame.b, designs["b"]).fit(disp=0).predict()
    found = probabilities(line.model, "b", values, 2)[:, 1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-3)


def test_categorical_predictions_are_those_of_multinomial_logits(whole):
    line, frame, designs, values = whole
    expected = sm.MNLogit(frame.k, designs["k"]).fit(disp=0).predict()
    np.testing.assert_allclose(
        probabilities(line.model, "k", values, 3), expected, rtol=0, atol=1e-3
    )


def test_ordinal_predictions_are_those_of_cumulative_logits(whole):
    line, frame, designs, values = whole
    fit = OrderedModel(frame.o.to_numpy(), designs["o"][:, 1:], distr="logit").fit(
        method="bfgs", disp=0, maxiter=500
    )
    np.testing.assert_allclose(
        probabilities(line.model, "o", values, 3), np.asarray(fit.predict()), rtol=0, atol=1e-3
    )


def test_counts_are_those_of_negative_binomial_regression(whole):
    line, frame, designs, values = whole
    fit = sm.NegativeBinomial(frame.n, designs["n"], loglike_method="nb2").fit(
        disp=0, maxiter=500, method="newton"
    )
    mechanism = line.model.mechanism(line.model.graph.index("n"))
    parents = line.model.parents_of(values, line.model.graph.index("n"))
    with torch.no_grad():
        mean = mechanism.log_mean(parents).exp().numpy()
        alpha = float(mechanism.log_dispersion(parents).exp())
    np.testing.assert_allclose(mean, fit.predict(), rtol=1e-3, atol=1e-3)
    assert alpha == pytest.approx(np.asarray(fit.params)[-1], abs=1e-3)


def test_numbers_are_those_of_least_squares(whole):
    line, frame, designs, values = whole
    fit = sm.OLS(frame.x2, designs["x2"]).fit()
    index = line.model.graph.index("x2")
    mechanism = line.model.mechanism(index)
    with torch.no_grad():
        mean = mechanism.generate(torch.zeros(len(values)), line.model.parents_of(values, index))
    np.testing.assert_allclose(mean.numpy(), fit.fittedvalues, rtol=0, atol=1e-3)
    scale = float(mechanism.linear_form().scale.detach())
    assert scale == pytest.approx(np.sqrt(np.mean(fit.resid**2)), abs=1e-3)


# Tables with holes


def hide(values, above, columns, seed, share=0.6):
    """Hides columns at random, by a column that is always seen."""
    odds = torch.sigmoid(1.5 * (above - above.mean()) / above.std()) * 2.0 * share
    draws = torch.rand(values.shape, generator=generator(seed))
    observed = torch.ones_like(values).bool()
    observed[:, columns] = draws[:, columns] > odds[:, None].clamp(max=0.95)
    return torch.where(observed, values, 0.0), observed


def test_a_saturated_table_with_holes_is_fitted_as_by_em():
    graph, values, _ = sample("k1 -> b; b -> k2; k2 -> k3", 3000, seed=3)
    nodes = [graph.index(name) for name in ("k1", "b", "k2", "k3")]
    values, observed = hide(values, values[:, nodes[0]], nodes[1:], seed=1)
    line = fit_linear(
        Structure.of(graph, domains_of(graph, values, observed)), MemoryRows(values, observed)
    )
    # EM over the joint table: which of its cells are possible for a row, and their weights.
    possible = np.ones((len(values), 3, 2, 3, 3), bool)
    for axis, node in enumerate(nodes):
        size = possible.shape[axis + 1]
        fits = ~observed[:, [node]] | (values[:, [node]] == torch.arange(size))
        possible &= np.expand_dims(fits.numpy(), [a + 1 for a in range(4) if a != axis])
    patterns, times = np.unique(possible.reshape(len(values), -1), axis=0, return_counts=True)
    joint = np.random.default_rng(0).dirichlet(np.full(54, 9.0)).reshape(3, 2, 3, 3)
    for _ in range(5000):
        p_k1, p_b = joint.sum((1, 2, 3)), joint.sum((2, 3)) / joint.sum((1, 2, 3))[:, None]
        p_k2 = joint.sum((0, 3)) / joint.sum((0, 2, 3))[:, None]
        p_k3 = joint.sum((0, 1)) / joint.sum((0, 1, 3))[:, None]
        weight = patterns * np.einsum("i,ij,jk,kl->ijkl", p_k1, p_b, p_k2, p_k3).ravel()
        before, joint = joint, (weight * (times / weight.sum(1))[:, None]).sum(0)
        joint = joint.reshape(3, 2, 3, 3) / times.sum()
        if abs(joint - before).max() < 1e-11:
            break
    grid = torch.zeros(3, 4)
    grid[:, nodes[0]] = grid[:, nodes[2]] = torch.arange(3.0)
    grid[:, nodes[1]] = torch.tensor([0.0, 1.0, 1.0])
    assert line.converged
    for name, law in (("k1", p_k1[None]), ("b", p_b), ("k2", p_k2), ("k3", p_k3)):
        found = probabilities(line.model, name, grid, law.shape[1])[: len(law)]
        np.testing.assert_allclose(found, law, rtol=0, atol=1e-3)


@pytest.mark.slow
def test_a_logistic_table_with_holes_is_fitted_as_by_em():
    graph, values, _ = sample("b1 -> b2; b1 -> b3; k -> b3; b2 -> b3", 3000, seed=5)
    nodes = {name: graph.index(name) for name in graph.nodes}
    values, observed = hide(values, values[:, nodes["b3"]], [nodes["b1"], nodes["b2"]], seed=2)
    line = fit_linear(
        Structure.of(graph, domains_of(graph, values, observed)), MemoryRows(values, observed)
    )
    # EM: a completion of each row for every state of b1 and b2, with weights.
    code = {name: values[:, i].numpy() for name, i in nodes.items()}
    seen = {name: observed[:, i].numpy() for name, i in nodes.items()}
    b1, b2 = (np.repeat(v, len(values)) for v in np.array([[0, 0, 1, 1], [0, 1, 0, 1]]))
    k, b3 = np.tile(code["k"], 4), np.tile(code["b3"], 4)
    fits = np.ones(4 * len(values), bool)
    for name, state in (("b1", b1), ("b2", b2)):
        fits &= ~np.tile(seen[name], 4) | (np.tile(code[name], 4) == state)
    one = np.ones(len(k))
    design = {
        "b1": np.stack([one], 1),
        "b2": np.stack([one, b1], 1),
        "b3": np.stack([one, b1, k == 1, k == 2, b2], 1).astype(float),
    }
    outcome = {"b1": b1, "b2": b2, "b3": b3}
    beta = {name: np.zeros(x.shape[1]) for name, x in design.items()}
    for _ in range(400):
        chance = {name: special.expit(x @ beta[name]) for name, x in design.items()}
        weight = fits * np.prod(
            [np.where(outcome[n] == 1, p, 1 - p) for n, p in chance.items()], 0
        )
        weight = (weight.reshape(4, -1) / weight.reshape(4, -1).sum(0)).ravel()
        step = 0.0
        for name, x in design.items():  # one step of Newton's method is enough of an M-step
            score = x.T @ (weight * (outcome[name] - chance[name]))
            curve = (x * (weight * chance[name] * (1 - chance[name]))[:, None]).T @ x
            change = np.linalg.solve(curve, score)
            beta[name], step = beta[name] + change, max(step, abs(change).max())
        if step < 1e-9:
            break
    complete = torch.zeros(len(k), len(graph))
    for name, state in (("b1", b1), ("b2", b2), ("b3", b3), ("k", k)):
        complete[:, nodes[name]] = torch.as_tensor(state, dtype=torch.float64)
    for name, x in design.items():
        found = probabilities(line.model, name, complete, 2)[:, 1]
        np.testing.assert_allclose(found, special.expit(x @ beta[name]), rtol=0, atol=1e-3)


@pytest.mark.slow
def test_counts_below_a_hidden_category_are_fitted_as_by_direct_search():
    graph, values, _ = sample("k -> n", 2000, seed=7)
    k, n = graph.index("k"), graph.index("n")
    values, observed = hide(values, values[:, n], [k], seed=3)
    line = fit_linear(
        Structure.of(graph, domains_of(graph, values, observed)), MemoryRows(values, observed)
    )
    count, seen, code = values[:, n].numpy(), observed[:, k].numpy(), values[:, k].long().numpy()

    def cost(v):
        share, mean, r = special.softmax([0.0, *v[:2]]), np.exp(v[2:5]), np.exp(-v[5])
        law = stats.nbinom.pmf(count[:, None], r, r / (r + mean)) * share
        return -np.log(np.where(seen, law[np.arange(len(code)), code], law.sum(1))).mean()

    best = optimize.minimize(cost, [0.0, 0.0, 0.1, 0.2, 0.3, -1.0], method="BFGS")
    expected = special.softmax([0.0, *best.x[:2]])
    grid = torch.zeros(3, 2)
    grid[:, k] = torch.arange(3.0)
    np.testing.assert_allclose(probabilities(line.model, "k", grid, 3)[0], expected, atol=1e-3)
    r = np.exp(-best.x[5])
    law = stats.nbinom.pmf(np.arange(12), r, r / (r + np.exp(best.x[2:5])[:, None]))
    np.testing.assert_allclose(probabilities(line.model, "n", grid, 12), law, atol=1e-3)
    assert line.log_prob == pytest.approx(-best.fun, abs=1e-5)


def test_a_number_below_a_hidden_binary_is_fitted_as_by_em():
    graph, values, _ = sample("b -> x", 2000, seed=9)
    b, x = graph.index("b"), graph.index("x")
    values, observed = hide(values, values[:, x], [b], seed=4)
    line = fit_linear(
        Structure.of(graph, domains_of(graph, values, observed)), MemoryRows(values, observed)
    )
    y, seen, code = values[:, x].numpy(), observed[:, b].numpy(), values[:, b].numpy()
    share, means, scale = 0.5, np.array([-0.5, 0.5]), 1.0
    for _ in range(5000):
        law = stats.norm.pdf(y[:, None], means, scale) * [1 - share, share]
        weight = np.where(seen, code, law[:, 1] / law.sum(1))
        both = np.stack([1 - weight, weight], 1)
        before, share = share, weight.mean()
        means = (both * y[:, None]).sum(0) / both.sum(0)
        scale = np.sqrt((both * (y[:, None] - means) ** 2).sum() / len(y))
        if abs(share - before) < 1e-10:
            break
    grid = torch.zeros(2, 2)
    grid[:, b] = torch.arange(2.0)
    assert probabilities(line.model, "b", grid, 2)[0, 1] == pytest.approx(share, abs=1e-3)
    mechanism = line.model.mechanism(x)
    with torch.no_grad():
        found = mechanism.generate(torch.zeros(2), line.model.parents_of(grid, x)).numpy()
    np.testing.assert_allclose(found, means, atol=1e-3)
    assert float(mechanism.linear_form().scale.detach()) == pytest.approx(scale, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("text", [WHOLE, MIXED["confounded"]])
def test_a_fit_with_holes_in_every_kind_beats_the_truth(text):
    """The maximum of the likelihood lies above the parameters that made the table."""
    truth = mixed_model(text, seed=2)
    values = rows_of(truth, 200, seed=3)
    observed = torch.rand(values.shape, generator=generator(4)) > 0.3
    values = torch.where(observed, values, 0.0)
    line = fit_linear(
        Structure.of(truth.graph, domains_of(truth.graph, values, observed)),
        MemoryRows(values, observed),
    )
    plan = Plan.make(truth.graph, observed)
    fitted, made = (
        observed_log_prob(model, values, plan, generator(5)).log_prob.mean()
        for model in (line.model, truth)
    )
    assert float(fitted) > float(made)
    assert line.log_prob == pytest.approx(float(fitted), abs=1e-3)


def test_a_fit_whose_integrals_are_drawn_ends_at_the_maximum():
    """½ sᵀ A⁻¹ s is what a Newton step would still gain, by other completions than the fit's.

    Their own noise is worth about p / 2K = 0.03 nats for p = 11 parameters and K = 200, and more
    where most of a node is hidden; a sampling error is worth p / 2 = 5.5.
    """
    truth = mixed_model(MIXED["confounded"], seed=2)
    values = rows_of(truth, 300, seed=3)
    observed = torch.rand(values.shape, generator=generator(4)) > 0.3
    rows = MemoryRows(torch.where(observed, values, 0.0), observed)
    structure = Structure.of(truth.graph, domains_of(truth.graph, rows.values, observed))
    drawn = preset_settings("linear", {"integration.linear.hermite.points": 0})
    model = fit_linear(structure, rows, drawn).model
    assert likelihood_noise(model, rows, drawn) > 0.03
    completions = Completions.draw(model, rows, 200, generator(6))
    found = measure_information(model, completions)
    score = found.scores.sum(0)
    gain = 0.5 * float((score * found.newton_moves(score[None])[0]).sum())
    assert len(score) == 11
    assert 0.0 <= gain < 0.2
    exact = preset_settings("linear")  # around closed forms nothing is drawn
    assert likelihood_noise(model, rows, exact) == 0.0
    higher = fit_linear(structure, rows, exact).log_prob
    assert 0.0 <= 300 * (higher - float(log_likelihoods(model, rows, exact, "line").mean())) < 0.2


def test_empty_rows_change_nothing():
    settings = preset_settings("auto", {"integration.linear.rows_at_once": 128})
    graph, values, _ = sample("k -> b; b -> o", 256, seed=5)
    values, observed = hide(values, values[:, graph.index("k")], [1, 2], seed=6)
    domains = domains_of(graph, values, observed)
    some = fit_linear(Structure.of(graph, domains), MemoryRows(values, observed), settings).model
    more = (
        torch.cat([values, torch.zeros(150, 3)]),
        torch.cat([observed, torch.zeros(150, 3).bool()]),
    )
    again = fit_linear(Structure.of(graph, domains), MemoryRows(*more), settings).model
    for node, size in (("k", 3), ("b", 2), ("o", 3)):
        first, second = (probabilities(m, node, values, size) for m in (some, again))
        np.testing.assert_allclose(first, second, atol=1e-3)


@pytest.mark.slow
def test_levels_that_are_never_seen_and_separated_ones_stay_finite():
    x = torch.linspace(-2.0, 2.0, 300)
    b = (x > 0).double()  # separated: the slope has no end
    o = torch.where(x > 0.3, 2.0, 0.0)  # the middle level is never there
    k = torch.randint(0, 2, (300,), generator=generator()) * 2.0
    graph = CausalGraph.read("x -> b; x -> o; x -> k")
    columns = {"x": x, "b": b, "o": o, "k": k}
    values = torch.stack([columns[name] for name in graph.nodes], 1)
    observed = torch.rand(values.shape, generator=generator(1)) > 0.2
    domains = domains_of(graph, values, observed)
    model = fit_linear(
        Structure.of(graph, domains), MemoryRows(torch.where(observed, values, 0.0), observed)
    ).model
    assert all(p.isfinite().all() for p in model.parameters())
    for node, level in (("o", 1), ("k", 1)):
        assert probabilities(model, node, values, 3)[:, level].max() < 0.01
    wrong = np.abs(probabilities(model, "b", values, 2)[:, 1] - b.numpy()) > 0.5
    assert wrong.mean() < 0.02


def test_continuous_columns_reach_the_log_likelihood_of_lavaan():
    graph = CausalGraph.read("b ~ a\nc ~ b\nd ~ c + b")
    frame = pd.read_csv(FIXTURES / "nocomplete4.csv")[list(graph.nodes)]
    scaled = (frame - frame.mean()) / frame.std()
    values, observed = torch.tensor(scaled.to_numpy()), torch.tensor(frame.notna().to_numpy())
    line = fit_linear(
        Structure.of(graph, [CONTINUOUS] * 4), MemoryRows(torch.nan_to_num(values), observed)
    )
    jacobian = float((frame.notna().sum() * np.log(frame.std())).sum())
    assert line.log_prob * len(frame) - jacobian == pytest.approx(-9847.9442337640, abs=0.01)


# ------------------------------------------------------------------------- many parents


@pytest.fixture(scope="module")
def wide():
    """Five numbers, two of them with holes, a binary node and an outcome below all of them."""
    rng, n = np.random.default_rng(5), 600
    x = rng.normal(size=(n, 5)) @ (np.eye(5) + 0.3)
    t = (rng.random(n) < special.expit(x.sum(1) / 3)).astype(float)
    y = x.sum(1) + t + rng.normal(size=n)
    values = np.column_stack([x, t, y])
    observed = np.ones(values.shape, dtype=bool)
    observed[:, 3:5] = rng.random((n, 2)) < special.expit(x[:, :1])  # at random given the first
    names = ["a", "b", "c", "d", "e", "t", "y"]
    edges = [(p, c) for j, c in enumerate(names) for p in names[:j]]
    graph = CausalGraph.from_edges(edges, names)
    domains = [CONTINUOUS] * 5 + [kinds.Binary(0.5, 0.5), CONTINUOUS]
    rows = MemoryRows(torch.tensor(values * observed), torch.tensor(observed))
    return Structure.of(graph, domains), rows


def test_families_that_every_row_shows_are_fitted_apart(wide, monkeypatch):
    structure, rows = wide
    assert generalised_linear._whole_blocks(structure, rows) == [1, 2]
    apart = fit_linear(structure, rows)
    monkeypatch.setattr(generalised_linear, "_whole_blocks", lambda *_: [])
    together = fit_linear(structure, rows)
    assert apart.log_prob == pytest.approx(together.log_prob, abs=1e-5)
    for one, two in zip(apart.model.parameters(), together.model.parameters(), strict=True):
        assert torch.allclose(one, two, atol=5e-3)  # as far as the search goes


def test_a_start_from_completed_rows_ends_as_high_as_one_from_complete_cases(wide):
    structure, rows = wide
    settings = preset_settings("linear")
    seldom = generalised_linear._seldom_whole(structure, rows, settings.solving)
    assert seldom == [5, 6]  # 31 % of the rows show both numbers that have holes
    plan, found = Plan.make(structure.graph, rows.observed), []
    for share in (settings.solving.least_whole, 0.0):
        line = fit_linear(structure, rows, preset_settings(settings, {"least_whole": share}))
        found.append(observed_log_prob(line.model, rows.values, plan, generator(0)))
    gained = float((found[0].log_prob - found[1].log_prob).sum())
    error = float(sum(part.standard_error.square().sum() for part in found)) ** 0.5
    # The searches end where few draws put the maximum: less than a tenth of what the sampling
    # error of one parameter is worth (half a nat), and four errors of these integrals.
    assert gained > -0.05 - 4.0 * error
