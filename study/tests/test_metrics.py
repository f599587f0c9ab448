"""Distances equal what can be worked out by hand, and the truth is at none from itself."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from closed_forms import flow_after_mean, flow_after_mice, kl_after_mean, kl_after_mice
from misscnf_study.metrics import (
    ate_error,
    cf_error,
    exact_ate_error,
    exact_kl,
    floor_of_ate,
    gaussian_parameters,
    held_out_log_prob,
    intervention_values,
    interventional_kl,
    local_kl,
    symmetric_kl,
)
from misscnf_study.worlds import SCMS, Equation, linear, load_scm
from misscnf_study.worlds.equations import LAPLACE
from misscnf_study.worlds.world import x_graph
from oracles import gaussian_moments
from scipy.special import ellipe

from misscnf import InputError, MissCNF
from misscnf.data.scales import Unit
from misscnf.mechanisms import Affine, Gaussian, Rescaled, Spline
from misscnf.model import StructuralModel

ONE, TWO, CHAIN = x_graph(()), x_graph((), (1,)), x_graph((), (1,), (2,))
COLLIDERS = ["collider_lin", "collider_nlin", "collider_nlin_unit"]


def normal(mean, scale):
    """One node, N(mean, scale²)."""
    return StructuralModel(ONE, [linear(intercept=mean, scale=scale)])


def gentle_chain():
    """chain_lin with 9 in the place of its 10."""
    return StructuralModel(CHAIN, [linear(), linear(9.0), linear(0.25, scale=2.0)])


def dense_kl(p, q):
    """The symmetric divergence of two linear-Gaussian models, from their moments."""
    (a, big_a), (b, big_b) = gaussian_moments(p), gaussian_moments(q)
    forth, back = torch.linalg.solve(big_b, big_a), torch.linalg.solve(big_a, big_b)
    gap = (a - b) @ (torch.linalg.solve(big_a, a - b) + torch.linalg.solve(big_b, a - b))
    return float(0.5 * (forth.trace() + back.trace() + gap) - len(a))


@pytest.fixture(params=[name for name in SCMS if name != "clinic"])
def world(request):
    return load_scm(request.param)


# The truth against itself.


@pytest.mark.slow
def test_truth_is_at_no_distance_from_itself(world):
    truth, test = world.model, world.sample(200, 0)
    assert exact_kl(truth, truth, draws=500) == 0.0
    assert exact_ate_error(truth, truth, world.interventions, draws=500) == 0.0
    assert cf_error(truth, truth, test, world.interventions, seed=0) == 0.0
    assert interventional_kl(truth, truth, world.interventions, draws=500) == 0.0
    assert (local_kl(truth, truth, test, "x1", bins=4)["error"] == 0.0).all()


@pytest.mark.slow
def test_floor_of_ate_is_the_length_of_a_normal_vector():
    """On collider_lin the error is 0.02 ‖(z1, z2/√2)‖, in closed form.

    Its standard deviation is 0.0116, so the mean of 180 is off by 0.0043 1 time in 1.7 million.
    """
    world = load_scm("collider_lin")
    floors = [floor_of_ate(world.model, world.interventions, seed) for seed in range(60)]
    expected = 0.02 * math.sqrt(2.0 / math.pi) * ellipe(0.5)
    assert expected == pytest.approx(0.02155, abs=1e-5)
    assert np.mean(floors) == pytest.approx(expected, abs=0.0043)
    assert floors[0] == ate_error(world.model, world.model, world.interventions, 0)


# Divergences.


def test_exact_kl_of_linear_models_is_that_of_two_gaussians():
    """A node's quadratic form has relative error √(2/n) at most: 5 of these, 1 in 1.7 million."""
    truth = load_scm("chain_lin").model
    other = StructuralModel(
        CHAIN, [linear(intercept=0.2, scale=1.1), linear(9.8, scale=1.3), linear(0.3, scale=1.8)]
    )
    expected = dense_kl(other, truth)
    rough = exact_kl(other, truth, draws=20_000)
    assert rough == pytest.approx(expected, rel=5 * math.sqrt(2 / 20_000))
    assert rough == exact_kl(truth, other, draws=20_000)


def test_exact_kl_needs_no_draws_where_there_are_no_parents():
    # ½ (1/4 + 4 + 1 (1/4 + 1)) − 1 for N(0, 1) and N(1, 2²)
    assert exact_kl(normal(1.0, 2.0), normal(0.0, 1.0), draws=2) == pytest.approx(1.75)


def test_exact_kl_draws_what_is_not_gaussian():
    """Laplace against N(0, 2), where the log-ratio has variance 1/4 one way and 0.098 the other.

    So the sum of both means of 200,000 has a standard error of 0.0019 at most: beyond 5 of these,
    1 time in 1.7 million.
    """
    laplace, s = StructuralModel(ONE, [Equation(noise=LAPLACE)]), math.sqrt(2.0)
    entropy_laplace, entropy_normal = 1 + math.log(2), 0.5 * math.log(2 * math.pi * math.e * s**2)
    forward = 0.5 * math.log(2 * math.pi * s**2) + 2 / (2 * s**2) - entropy_laplace
    reverse = s * math.sqrt(2 / math.pi) + math.log(2) - entropy_normal
    assert exact_kl(normal(0.0, s), laplace) == pytest.approx(forward + reverse, abs=0.0095)


def test_exact_kl_lets_each_side_have_its_own_arrows():
    """x2 independent of x1, against x2 = x1 + u2: E[x1²] (1 + 1) / 2 = 1, from 20,000 draws."""
    apart = StructuralModel(x_graph((), ()), [linear(), linear()])
    joined = StructuralModel(TWO, [linear(), linear(1.0)])
    assert dense_kl(apart, joined) == pytest.approx(1.0)
    assert exact_kl(apart, joined, draws=20_000) == pytest.approx(1.0, abs=0.05)


def test_symmetric_kl_is_right_on_average():
    """The mean of 40 is within 5 standard errors: it fails 1 time in 80,000."""
    world = load_scm("chain_lin")
    model = StructuralModel(CHAIN, [linear(), linear(9.9), linear(0.25, scale=2.1)])
    found = [symmetric_kl(model, world.model, world.sample(500, s), s) for s in range(40)]
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert np.mean(found) == pytest.approx(dense_kl(model, world.model), abs=5 * error)
    assert error < 0.02


def test_symmetric_kl_can_come_out_below_zero():
    """A model 0.001 away from the truth: the paper's estimate is noise of either sign."""
    truth, near = normal(0.0, 1.0), normal(0.001, 1.0)
    tests = [torch.randn(100, 1, generator=torch.Generator().manual_seed(s)) for s in range(20)]
    found = [symmetric_kl(near, truth, test, s) for s, test in enumerate(tests)]
    assert min(found) < 0.0 < max(found)
    assert exact_kl(near, truth, draws=2) == pytest.approx(1e-6, rel=1e-6)


def test_symmetric_kl_clamps_each_log_density():
    truth, model = normal(0.0, 1.0), normal(1000.0, 1.0)
    test = torch.zeros(4, 1)
    top = -0.5 * math.log(2 * math.pi)
    # Forward, log p*(0) + 10⁴; backward, log p of four of its own draws + 10⁴.
    assert symmetric_kl(model, truth, test, 0) == pytest.approx(2e4 + 2 * top, abs=10.0)
    assert symmetric_kl(model, truth, test, 0) <= 2e4 + 2 * top


def test_symmetric_kl_survives_what_overflows():
    wild = StructuralModel(TWO, [linear(), Equation(lambda x1: torch.exp(1e3 * x1.abs()))])
    world = StructuralModel(TWO, [linear(), linear(1.0)])
    test = torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    assert math.isfinite(symmetric_kl(wild, world, test, 0))


def test_bounded_worlds_have_finite_distances():
    truth = load_scm("simpson_nlin").model
    model = StructuralModel(truth.graph, [linear(*[0.1] * len(p)) for p in truth.graph.parents])
    assert math.isfinite(exact_kl(model, truth, draws=1000))
    assert math.isfinite(symmetric_kl(model, truth, load_scm("simpson_nlin").sample(100, 0), 0))


def test_interventional_kl_drops_the_factor_of_the_held_node():
    """x1 differs wildly, but only x2 | do(x1 = a) is compared: N(10a, 1) to N(9a, 1), a² apart."""
    truth = StructuralModel(TWO, [linear(), linear(10.0)])
    model = StructuralModel(TWO, [linear(intercept=50.0), linear(9.0)])
    levels = intervention_values(truth, ["x1"], seed=3)[0]
    expected = np.mean(np.square(levels))
    assert interventional_kl(model, truth, ["x1"], draws=10, seed=3) == pytest.approx(expected)


# Effects and counterfactuals.


def test_intervention_values_are_quartiles_of_the_truth():
    """A sample quartile of 5,000 has standard error 0.019: 5 of these, 1 time in 1.7 million."""
    world = load_scm("collider_lin")
    (levels,) = intervention_values(world.model, ["x2"], seed=0).values()
    expected = 2.0 + 0.67449 * np.array([-1.0, 0.0, 1.0])
    np.testing.assert_allclose(levels, expected, atol=0.1)
    assert intervention_values(world.model, ["x2"], seed=0) == {1: levels}


def test_ate_error_worked_by_hand():
    world = load_scm("chain_lin")
    low, middle, high = intervention_values(world.model, ["x1", "x2"], seed=1)[0]
    # do(x1) moves x2 by 10 or 9 and x3 by a quarter of that; do(x2) is the same in both.
    expected = ((middle - low) + (high - low) + (high - middle)) * math.hypot(1.0, 0.25) / 6
    found = exact_ate_error(gentle_chain(), world.model, world.interventions, draws=100, seed=1)
    assert found == pytest.approx(expected, rel=1e-9)


def test_drawn_ate_error_is_the_exact_one_and_noise():
    """No error moves by more than the length of its noise, 0.04 with a deviation of 0.02.

    The mean of six lengths is beyond 0.1 less than 1 time in a million.
    """
    world = load_scm("chain_lin")
    drawn = ate_error(gentle_chain(), world.model, world.interventions, seed=1)
    exact = exact_ate_error(gentle_chain(), world.model, world.interventions, draws=100, seed=1)
    assert abs(drawn - exact) < 0.1
    assert drawn == ate_error(gentle_chain(), world.model, world.interventions, seed=1)
    assert drawn != ate_error(gentle_chain(), world.model, world.interventions, seed=2)


def test_cf_error_worked_by_hand():
    world = load_scm("chain_lin")
    test = world.sample(50, 0)
    levels = intervention_values(world.model, ["x1"], seed=4)[0]
    moves = [np.abs(a - test["x1"]).mean() * math.hypot(1.0, 0.25) for a in levels]
    expected = np.sum(moves) / 6  # do(x2) is the same in both
    found = cf_error(gentle_chain(), world.model, test, world.interventions, seed=4)
    assert found == pytest.approx(expected, rel=1e-9)


# Bins.


def test_local_kl_worked_by_hand():
    x = np.random.default_rng(0).normal(size=400)
    test = pd.DataFrame({"x1": x})
    table = local_kl(normal(1.0, 1.0), normal(0.0, 1.0), test, "x1", bins=8)
    edges = np.linspace(*np.quantile(x, (0.01, 0.99)), 9)
    np.testing.assert_allclose(np.append(table["left"], table["right"].iloc[-1]), edges)
    inside = [(x >= a) & (x < b) for a, b in itertools.pairwise(edges)]
    assert table["count"].tolist() == [rows.sum() for rows in inside]
    # ½ (x − 1)² − ½ x² = ½ − x
    np.testing.assert_allclose(table["error"], [0.5 - x[rows].mean() for rows in inside])


def test_local_kl_counts_the_right_edge_and_leaves_empty_bins_empty():
    test = pd.DataFrame({"x1": [0.0] * 50 + [1.0] * 50})
    table = local_kl(normal(1.0, 1.0), normal(0.0, 1.0), test, "x1")
    assert len(table) == 16
    assert table["count"].tolist() == [50, *[0] * 14, 50]
    assert table["error"].iloc[[0, -1]].tolist() == pytest.approx([0.5, -0.5])
    assert table["error"].iloc[1:-1].isna().all()


# What a Gaussian law is.

GAUSSIAN = {
    "gaussian": Gaussian(2, (8,), (8,)),
    "affine": Affine(2, (8, 8)),
    "rescaled": Rescaled(Affine(2, (8,)), Unit(3.0, 2.5), [Unit(1.0, 0.5), Unit(-1.0, 4.0)]),
    "equation": Equation(lambda a, b: a * b, lambda a, b: -1.0 - a**2),
    "line": linear(1.0, 2.0, scale=-3.0),
}


@pytest.mark.parametrize("name", GAUSSIAN)
def test_gaussian_parameters_are_those_of_the_density(name):
    generator = torch.Generator().manual_seed(0)
    mechanism = GAUSSIAN[name].double()
    getattr(mechanism, "base", mechanism).initialise(generator)
    x, parents = torch.randn(20, generator=generator), torch.randn(20, 2, generator=generator)
    mean, scale = gaussian_parameters(mechanism, parents)
    expected = torch.distributions.Normal(mean, scale).log_prob(x)
    torch.testing.assert_close(mechanism.log_prob(x, parents), expected)


def test_other_laws_have_no_gaussian_parameters():
    parents = torch.zeros(3, 1)
    spline = Spline(1).double()
    with torch.no_grad():
        for parameter in spline.parameters():
            parameter.add_(torch.linspace(-0.5, 0.5, parameter.numel()).view_as(parameter))
    assert gaussian_parameters(spline, parents) is None
    assert gaussian_parameters(Rescaled(spline, Unit(), [Unit()]), parents) is None
    assert gaussian_parameters(Equation(noise=LAPLACE), parents) is None
    logarithm = Unit(link="log")
    assert gaussian_parameters(Rescaled(linear(1.0), logarithm, [Unit()]), parents) is None


def test_discrete_laws_have_no_gaussian_parameters():
    clinic = load_scm("clinic")
    for i, name in enumerate(clinic.graph.nodes):
        parents = torch.zeros(3, len(clinic.graph.parents[i]))
        found = gaussian_parameters(clinic.model.mechanism(i), parents)
        assert (found is not None) == (clinic.kinds[name] == "continuous")


# A fitted model.


def test_metrics_take_a_fitted_model():
    world = load_scm("collider_lin")
    fitted = MissCNF(world.graph, preset="linear").fit(world.sample(2000, 0))
    model, test = fitted.structural_model(), world.sample(200, 1)
    assert 0.0 < exact_kl(model, world.model, draws=1000) < 0.05
    expected = model.log_prob(torch.tensor(test.to_numpy())).mean()
    assert held_out_log_prob(fitted, test) == pytest.approx(float(expected))
    shown = test.assign(x3=np.nan)  # a barren node: the roots' density is left
    both = model.log_factors(torch.tensor(test.to_numpy()))[:, :2].sum(-1).mean()
    assert held_out_log_prob(fitted, shown) == pytest.approx(float(both))


# The best flow after imputation.


@pytest.mark.parametrize("name", COLLIDERS)
@pytest.mark.parametrize("rate", [0.3, 0.6, 0.9])
def test_exact_kl_of_the_best_flow_is_the_closed_form(name, rate):
    """50,000 draws are within 2 % here; the closed form of the next test is what they check."""
    world = load_scm(name)
    for flow, closed in ((flow_after_mean, kl_after_mean), (flow_after_mice, kl_after_mice)):
        found = exact_kl(flow(world, rate), world.model, draws=50_000)
        assert found == pytest.approx(closed(world, rate), rel=0.04, abs=1e-12)


def test_closed_forms_are_those_of_the_notes():
    """The notes' figures are Monte Carlo; ours agree within half a percent."""
    rates, half, unit = (0.3, 0.6, 0.9), load_scm("collider_nlin"), load_scm("collider_nlin_unit")
    mice = [kl_after_mice(half, rate) for rate in rates]
    np.testing.assert_allclose(mice, [0.0727, 0.2057, 0.3952], rtol=5e-3)
    mice = [kl_after_mice(unit, rate) for rate in rates]
    np.testing.assert_allclose(mice, [0.0141, 0.0465, 0.0987], rtol=1e-2)
    line = load_scm("collider_lin")
    assert max(kl_after_mice(line, rate) for rate in rates) < 1e-12


# What is refused.


def test_input_that_cannot_be_used_is_refused():
    truth = load_scm("chain_lin").model
    test = load_scm("chain_lin").sample(10, 0)
    with pytest.raises(InputError, match="same nodes in the same order"):
        exact_kl(normal(0.0, 1.0), truth)
    with pytest.raises(InputError, match="complete and finite"):
        symmetric_kl(truth, truth, test.assign(x2=np.nan), 0)
    with pytest.raises(InputError, match="lack the columns x2"):
        symmetric_kl(truth, truth, test.drop(columns="x2"), 0)
    with pytest.raises(InputError, match=r"shape \(N, 3\)"):
        symmetric_kl(truth, truth, torch.zeros(4, 2), 0)
    with pytest.raises(InputError, match="names of nodes"):
        ate_error(truth, truth, [], 0)
    with pytest.raises(InputError, match="names of nodes"):
        ate_error(truth, truth, "x1", 0)
