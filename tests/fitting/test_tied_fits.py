"""Fits of tied nodes: two periods that share a mechanism are a regression of stacked rows."""

from dataclasses import replace

import numpy as np
import pytest
import statsmodels.api as sm
import torch

from misscnf.data.domains import CONTINUOUS, Binary
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.fit import fit_model
from misscnf.fitting.replicates import replicate_fit
from misscnf.fitting.select.curves import CurveTrial, Family
from misscnf.fitting.select.given import Given
from misscnf.fitting.settings import Settings, preset_settings
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.monte_carlo import maximise_monte_carlo
from misscnf.fitting.solve.sandwich import measure_information, moved
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Shape
from misscnf.model import Structure

CHAIN = CausalGraph.read("x0 -> x1 -> x2")
KEYS = ["first", "next", "next"]
LINEAR = Structure.of(CHAIN, [CONTINUOUS] * 3, KEYS)
BINARY = Structure.of(CHAIN, [Binary(0.5, 0.5)] * 3, KEYS)


def chain(form=lambda x: 0.3 + 0.7 * x, rows=500, noise=0.6, seed=0):
    """Two steps of one law, with scales that differ by row, so that clusters matter."""
    rng = np.random.default_rng(seed)
    x = [rng.normal(size=rows)]
    own = np.exp(0.3 * rng.normal(size=rows))
    for _ in range(2):
        x.append(form(x[-1]) + noise * own * rng.normal(size=rows))
    return torch.tensor(np.stack(x, 1))


def binary_chain(rows=800, seed=0):
    rng = np.random.default_rng(seed)
    x = [(rng.random(rows) < 0.6) * 1.0]
    for _ in range(2):
        x.append((rng.random(rows) < 1 / (1 + np.exp(0.8 - 1.5 * x[-1]))) * 1.0)
    return torch.tensor(np.stack(x, 1))


def whole(values):
    return MemoryRows(values, torch.ones_like(values, dtype=torch.bool))


def holed(values, share=0.3, seed=1):
    rng = np.random.default_rng(seed)
    return MemoryRows(values, torch.tensor(rng.random(values.shape) >= share))


def stacked(values):
    """Parents and children of both periods below one another, and the row of each."""
    values = values.numpy()
    x, y = (
        np.concatenate([values[:, 0], values[:, 1]]),
        np.concatenate([values[:, 1], values[:, 2]]),
    )
    return x, y, np.tile(np.arange(len(values)), 2)


def clustered(model, rows):
    options = {"groups": rows, "use_correction": False}
    return model.fit(cov_type="cluster", cov_kwds=options, use_t=False)


def information_of(model, rows):
    completions = Completions.draw(model, rows, 2, derive_generator(0, "rows"))
    return measure_information(model, completions)


def shared_errors(information, model):
    """Standard errors of the shared parameters, by name."""
    names = [
        f"{block}.{name}"
        for block in range(len(model.blocks))
        for name, part in model.block(block).named_parameters()
        for _ in range(part.numel())
    ]
    errors = information.covariance().diagonal().sqrt().tolist()
    return {name: error for name, error in zip(names, errors, strict=True) if name[0] == "1"}


# Complete rows: the stacked regression


def test_a_tied_line_is_the_stacked_regression_with_its_clustered_errors():
    values = chain()
    x, y, rows = stacked(values)
    wanted = clustered(sm.OLS(y, sm.add_constant(x)), rows)
    fit = fit_linear(LINEAR, whole(values))
    fit.model.requires_grad_(requires_grad=False)
    form = fit.model.block(1).linear_form()
    found = [float(form.intercept), float(form.weights), float(form.scale) ** 2]
    assert found == pytest.approx([*wanted.params, np.mean(wanted.resid**2)], abs=1e-6)
    assert fit.converged
    information = information_of(fit.model, whole(values))
    assert information.matrix.shape == (5, 5)
    assert information.scores.shape == (len(values), 5)
    errors = shared_errors(information, fit.model)
    assert errors["1.mean.bias"] == pytest.approx(wanted.bse[0], rel=1e-3)
    assert errors["1.mean.weight"] == pytest.approx(wanted.bse[1], rel=1e-3)


def test_a_tied_binary_chain_is_the_stacked_logistic_regression():
    values = binary_chain()
    x, y, rows = stacked(values)
    wanted = clustered(sm.GLM(y, sm.add_constant((x - 0.5) / 0.5), sm.families.Binomial()), rows)
    model = fit_linear(BINARY, whole(values)).model.requires_grad_(requires_grad=False)
    law = model.block(1).location
    assert [float(law.bias), float(law.weight)] == pytest.approx(wanted.params.tolist(), abs=1e-5)
    errors = shared_errors(information_of(model, whole(values)), model)
    assert errors["1.location.bias"] == pytest.approx(wanted.bse[0], rel=1e-3)
    assert errors["1.location.weight"] == pytest.approx(wanted.bse[1], rel=1e-3)


def test_monte_carlo_maxima_of_tied_lines_are_the_stacked_regression():
    values = chain()
    x, y, _ = stacked(values)
    wanted = np.linalg.lstsq(np.column_stack([np.ones_like(x), x]), y, rcond=None)[0]
    model = fit_linear(LINEAR, whole(values)).model
    with torch.no_grad():
        model.block(1).mean.weight.fill_(-0.5)
        model.block(1).log_scale.bias.fill_(0.5)
    maximise_monte_carlo(model, whole(values), Settings(), 0)
    found = model.block(1).linear_mean().coefficients
    assert found.tolist() == pytest.approx(wanted.tolist(), abs=1e-5)


@pytest.mark.slow
def test_a_tied_curve_is_that_of_the_stacked_rows():
    """The same rows, cut out and put below one another, have the same curve."""
    values = chain(lambda x: 1.5 * np.sin(1.5 * x), rows=400)
    pairs = torch.cat([values[:, :2], values[:, 1:]])
    alone = Structure.of(CausalGraph.read("x0 -> x1"), [CONTINUOUS] * 2)

    def curve(structure, rows):
        line = structure.build(Shape(hidden=())).double()
        given = Given(structure, whole(rows), Settings(), 0)
        family = Family.of(structure, given.rows, 1)
        return CurveTrial.of(line.block(1), family, given, 1).mechanism()

    tied, wanted = curve(LINEAR, values), curve(alone, pairs)
    at = torch.linspace(-2.0, 2.0, 9, dtype=torch.float64)[:, None]
    with torch.no_grad():
        torch.testing.assert_close(tied.mean(at), wanted.mean(at), atol=1e-6, rtol=0)


# What is moved, and replicated


def test_a_newton_step_moves_a_shared_weight_once():
    model = fit_linear(LINEAR, whole(chain())).model
    for place in range(5):
        step = torch.zeros(5, dtype=torch.float64)
        step[place] = 0.25
        found = moved(model, step)
        change = torch.nn.utils.parameters_to_vector(found.parameters())
        change = change - torch.nn.utils.parameters_to_vector(model.parameters())
        torch.testing.assert_close(change.detach(), step)
        assert found.mechanism(1) is found.mechanism(2)


def test_replicates_of_a_tied_line_spread_as_clustered_errors_say():
    """200 replicates: a deviation is known to 5 %; beyond 20 % once in ten thousand seeds."""
    values = chain()
    x, y, rows = stacked(values)
    wanted = clustered(sm.OLS(y, sm.add_constant(x)), rows)
    model = fit_linear(LINEAR, whole(values)).model
    found = replicate_fit(model, LINEAR, whole(values), Settings(), count=200)
    assert all(one.blocks == model.blocks for one in found)
    slopes = torch.stack([one.block(1).mean.weight.detach().flatten() for one in found])
    assert float(slopes.std()) == pytest.approx(wanted.bse[1], rel=0.2)


# Holes


@pytest.mark.parametrize("kind", ["linear", "binary"])
def test_with_holes_the_tied_fit_is_a_maximum(kind):
    """No parameter can be moved to a higher likelihood, which is exact here."""
    structure, values = (LINEAR, chain()) if kind == "linear" else (BINARY, binary_chain())
    rows = holed(values)
    model = fit_linear(structure, rows).model.requires_grad_(requires_grad=False)
    batch, plan = next(rows.batches(len(rows))), Plan.make(CHAIN, rows.observed)

    def log_prob(of):
        return float(observed_log_prob(of, batch.values, plan, derive_generator(0)).log_prob.sum())

    best = log_prob(model)
    size = sum(part.numel() for part in model.parameters())
    for step in torch.cat([torch.eye(size), -torch.eye(size)]).double():
        assert log_prob(moved(model, 0.03 * step)) < best


# Whole fits


def parts(values, share=0.2):
    rows = holed(values, share)
    cut = int(0.85 * len(rows))
    return [
        MemoryRows(rows.values[part], rows.observed[part])
        for part in (slice(cut), slice(cut, None))
    ]


@pytest.mark.slow
def test_whole_fits_of_a_tied_chain():
    values = chain(lambda x: 1.5 * np.sin(1.5 * x), rows=500, noise=0.4)
    line = fit_model(LINEAR, *parts(values), preset_settings("linear"))
    auto = fit_model(
        LINEAR, *parts(values), preset_settings("auto", {"epochs": 4, "selection.noise": False})
    )
    assert line.chosen == "linear"
    assert auto.chosen in ("curve", "network")
    assert len(auto.block_forms) == 2
    assert auto.forms[1] == auto.forms[2]
    assert auto.model.blocks == line.model.blocks == ((0,), (1, 2))
    assert auto.history[-1].train > line.history[-1].train + 0.2


@pytest.mark.slow
def test_a_tied_network_trains():
    values = chain(lambda x: 1.5 * np.sin(1.5 * x), rows=500, noise=0.4)
    settings = preset_settings("auto", {"epochs": 40, "selection.compare": False})
    line = fit_model(LINEAR, *parts(values), preset_settings("linear"))
    fit = fit_model(LINEAR, *parts(values), replace(settings, shape=Shape(hidden=(32, 32))))
    assert fit.chosen == "network"
    assert fit.model.mechanism(1) is fit.model.mechanism(2)
    assert fit.history[-1].train > line.history[-1].train + 0.2
