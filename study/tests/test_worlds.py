"""Every world obeys the laws of a structural model and says what the paper prints."""

import itertools
import math

import numpy as np
import pytest
import torch
from misscnf_study.worlds import MAIN, SCMS, load_scm
from misscnf_study.worlds.alpha import nonlinearity
from misscnf_study.worlds.chain_d import NaturalSpline
from scipy.interpolate import CubicSpline

from misscnf import InputError
from misscnf.mechanisms import standard_normal_log_prob

SMOOTH = [name for name in SCMS if name != "clinic"]
EVERY = [*SMOOTH, "chain_alpha_0", "chain_alpha_1", "collider_alpha_0", "chain_d_5"]
E, ROOT2 = math.e, math.sqrt(2.0)


def softplus(x):
    return math.log1p(math.exp(x))


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


def noise_of(world, rows=64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, len(world.graph), generator=generator, dtype=torch.float64)


@pytest.fixture(params=EVERY)
def world(request):
    return load_scm(request.param)


# The laws.


def test_generate_and_abduct_undo_each_other(world):
    noise = noise_of(world)
    values = world.model.generate(noise)
    torch.testing.assert_close(world.model.abduct(values), noise, rtol=1e-7, atol=1e-7)
    again = world.model.generate(world.model.abduct(values))
    torch.testing.assert_close(again, values, rtol=1e-9, atol=1e-9)


def test_density_is_the_change_of_variables(world):
    noise = noise_of(world)
    values = world.model.generate(noise)
    for i in range(len(world.graph)):
        u = noise[:, i].clone().requires_grad_()
        x = world.model.mechanism(i).generate(u, world.model.parents_of(values, i))
        (slope,) = torch.autograd.grad(x.sum(), u)
        expected = standard_normal_log_prob(noise[:, i]) - slope.abs().log()
        torch.testing.assert_close(
            world.model.log_factors(values)[:, i], expected, rtol=1e-7, atol=1e-7
        )


def test_each_conditional_density_integrates_to_one(world):
    values = world.model.generate(noise_of(world, rows=3))
    u = torch.linspace(-8.0, 8.0, 8001, dtype=torch.float64)[:, None]
    for i in range(len(world.graph)):
        mechanism, parents = world.model.mechanism(i), world.model.parents_of(values, i)
        x = mechanism.generate(u, parents).expand(-1, 3)
        density = mechanism.log_prob(x, parents).exp()
        mass = torch.trapezoid(density, x, dim=0).abs()
        torch.testing.assert_close(mass, torch.ones_like(mass), rtol=0.0, atol=1e-5)


def test_do_moves_descendants_and_nothing_else(world):
    noise = noise_of(world)
    before = world.model.generate(noise)
    for i in range(len(world.graph)):
        after = world.model.generate(noise, {i: torch.tensor(0.4)})
        moved = {j for j in range(len(world.graph)) if not torch.equal(before[:, j], after[:, j])}
        assert moved <= world.graph.descendants([i])
        assert set(world.graph.children[i]) <= moved  # each arrow carries something


def test_counterfactual_of_what_happened_is_what_happened(world):
    values = world.model.generate(noise_of(world))
    assert torch.equal(world.model.counterfactual(values, {}), values)
    for i in range(len(world.graph)):
        same = world.model.counterfactual(values, {i: values[:, i]})
        torch.testing.assert_close(same, values, rtol=1e-9, atol=1e-9)


def test_parameters_of_a_row_are_shared_by_its_draws(world):
    values = world.model.generate(noise_of(world, rows=4))
    u = torch.linspace(-1.0, 1.0, 3, dtype=torch.float64)[:, None]
    for i in range(len(world.graph)):
        mechanism, parents = world.model.mechanism(i), world.model.parents_of(values, i)
        assert (mechanism.generate(u, parents) * torch.ones(4)).shape == (3, 4)


def test_linear_form_is_the_law(world):
    values = world.model.generate(noise_of(world))
    for i, form in enumerate(world.model.linear_forms()):
        if form is not None:
            mean = form.intercept + world.model.parents_of(values, i) @ form.weights
            expected = torch.distributions.Normal(mean, form.scale).log_prob(values[:, i])
            torch.testing.assert_close(world.model.log_factors(values)[:, i], expected)


def test_world_runs_in_single_precision(world):
    noise = noise_of(world).float()
    values = world.model.generate(noise)
    assert values.dtype == world.model.log_prob(values).dtype == torch.float32


def test_gradients_are_finite_far_from_the_data(world):
    values = 30.0 * noise_of(world)
    values.requires_grad_()
    world.model.generate(world.model.abduct(values)).sum().backward()
    assert torch.isfinite(values.grad).all()
    (gradient,) = torch.autograd.grad(world.model.log_factors(values).sum(), values)
    assert torch.isfinite(gradient).all()


def test_world_is_called_what_loads_it(world):
    assert load_scm(world.name).name == world.name
    assert set(world.interventions) <= set(world.graph.nodes)
    assert world.description.startswith("x1 = ")


# What is printed.

PRINTED = {
    "chain_lin": ([2, 3, 0.5], [2, 17, 5.25]),
    "chain_nlin": ([2, 4, 1], [2, E + 1, (E - 4) ** 3 / 15 + 1]),
    "fork_lin": ([2, 1, 3, 4], [2, 1, -1.25, -0.25]),
    "fork_nlin": ([1, -1, 2, 3], [1, -1, 2.0, 20 / (1 + 1) + 3]),
    "collider_lin": ([2, 1, 3], [2, 1, 0.75]),
    "collider_nlin": ([2, 4, 3], [2, 4, 5.6]),
    "collider_nlin_unit": ([2, 4, 3], [2, 4, 7.1]),
    "triangle_lin": ([1, 5, 3], [2, 15, 12.5]),
    "triangle_nlin": ([0, -1, 2], [1, 1, 12.0]),
    "triangle_nlin_code": ([1, -1, 2], [1, 1, 12.0]),
    "chain_alpha_0": ([2, 4, 6], [2, 3, 6]),
    "chain_alpha_0.5": ([2, 4, 6], [2, 3, (1.5 + 4 / ROOT2) * ROOT2 + 3]),
    "chain_alpha_1": ([2, 4, 6], [2, 3, 8 / ROOT2 + 3]),
    "collider_alpha_0": ([2, 4, 6], [2, 4, 6]),
    "collider_alpha_1": ([1, 3, 6], [1, 3, 4 / ROOT2 + 3]),
    "chain4_lin": ([1, 3, 2, 5], [1, 2, -4, 1]),
    "chain5_lin": ([1, 2, 3, 4, 5], [1, 8, 8, 12, -7]),
    "simpson_nlin": (
        [1, 0, 0.5, math.sqrt(10)],
        [
            1,
            math.log(2),
            math.tanh(2 * math.log(2)) + 0.5 + math.tanh(0.5),
            (math.tanh(2 * math.log(2)) - 3.5 + math.tanh(0.5)) / 5 + 4,
        ],
    ),
    "simpson_symprod": (
        [1, math.sqrt(10), ROOT2, 0],
        [1, 2 * math.tanh(2) + 1, math.tanh(2) + 1.5, math.tanh(1.5)],
    ),
    "diamond_nlin": ([0, 2, 4, 10], [0, 1, 2, 2 / 5.5 + 1]),
    "heteroscedastic": ([0, 1, 2], [0, 0.3, 2.15]),
    "bimodal": ([1, 0, 2], [1, 1, 2.75]),
}


@pytest.mark.parametrize("name", PRINTED)
def test_equations_are_as_printed(name):
    noise, expected = (torch.tensor(row, dtype=torch.float64) for row in PRINTED[name])
    torch.testing.assert_close(load_scm(name).model.generate(noise), expected)


def test_backdoor_at_the_middle_of_all_noise():
    x1 = softplus(0.9) - 1
    x2 = 0.125 + 1.5 * (softplus(x1 + 1) + softplus(0.5) - 3)
    x3 = softplus(x1 + 1) + softplus(1) - 3
    x4 = softplus(x2 + 1) + softplus(1) - 3
    x5 = softplus(x3 + 1) + softplus(1) - 3
    x6 = softplus(x4 + 1) + softplus(1) - 3
    x7 = softplus(x5 + 1) + softplus(1) - 3
    x8 = 0.15 + softplus(x6 + 1) - 1
    x9 = 2 - softplus((1.3 * x7 + x8) / 3 + 1)
    expected = torch.tensor([x1, x2, x3, x4, x5, x6, x7, x8, x9], dtype=torch.float64)
    middle = load_scm("backdoor_nlin").model.generate(torch.zeros(9, dtype=torch.float64))
    torch.testing.assert_close(middle, expected)


# Hand-computed means and covariances (lower triangles, row by row).
MOMENTS = {
    "chain_lin": ([0, 0, 0], [1, 10, 101, 2.5, 25.25, 10.3125]),
    "fork_lin": (
        [0, 2, 0.5, 0.5],
        [1, 0, 1, -1.5, 0.25, 2.5625, -1.5, 0.25, 2.5625, 2.625],
    ),
    "collider_lin": ([0, 2, 0.5], [1, 0, 1, -0.5, 0.25, 0.5625]),
    "triangle_lin": ([1, 10, 6], [1, 10, 101, 6, 60.5, 37.25]),
    "chain4_lin": ([0] * 4, [1, 5, 26, -2.5, -13, 8.75, -2.5, -13, 8.75, 9.75]),
    "chain5_lin": (
        [0] * 5,
        [
            *(1, 10, 101, 2.5, 25.25, 10.3125, 2.5, 25.25, 10.3125, 11.3125),
            *(-2.5, -25.25, -10.3125, -11.3125, 12.3125),
        ],
    ),
    "chain_alpha_0": ([0, 0, 0], [1, 0.5, 0.5, 0.5, 0.5, 0.75]),
    "collider_alpha_0": ([0, 0, 0], [1, 0, 1, 0.5, 0.5, 0.75]),
    "chain_d_lin_3": ([0, 0, 0], [1, 0.8, 1, 0.64, 0.8, 1]),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_sampled_moments_of_linear_worlds(name):
    """Each of 102 numbers is within 5 standard errors: fails right worlds 1 time in 17,000."""
    n = 20_000
    mean, triangle = MOMENTS[name]
    d = len(mean)
    expected = np.zeros((d, d))
    expected[np.tril_indices(d)] = triangle
    expected += np.tril(expected, -1).T
    table = load_scm(name).sample(n, seed=1).to_numpy()
    variance = np.diag(expected)
    assert (np.abs(table.mean(0) - mean) < 5 * np.sqrt(variance / n)).all()
    error = np.sqrt((np.outer(variance, variance) + expected**2) / n)
    assert (np.abs(np.cov(table.T) - expected) < 5 * error).all()


def test_which_equations_are_linear():
    def curved(name):
        return [form is None for form in load_scm(name).model.linear_forms()]

    assert not any(itertools.chain(*(curved(n) for n in EVERY if "lin" in n and "nlin" not in n)))
    assert not any([*curved("chain_alpha_0"), *curved("collider_alpha_0")])
    assert curved("chain_nlin") == [False, True, True]
    assert curved("fork_nlin") == [False, False, True, True]
    assert curved("simpson_nlin") == [False, True, True, False]
    assert all(curved("backdoor_nlin"))


@pytest.mark.parametrize(
    ("name", "interventions"),
    {
        "chain": ("x1", "x2"),
        "triangle": ("x1", "x2"),
        "collider": ("x2",),
        "fork": ("x2", "x3"),
    }.items(),
)
def test_interventions_are_the_papers(name, interventions):
    assert len(MAIN) == 8
    for kind in ("lin", "nlin"):
        assert f"{name}_{kind}" in MAIN
        assert load_scm(f"{name}_{kind}").interventions == interventions


def test_the_public_library_has_the_same_equations():
    scms = pytest.importorskip("causalflows.scms")
    theirs = {
        "chain_lin": scms.Chain3("linear"),
        "chain_nlin": scms.Chain3("non-linear"),
        "fork_lin": scms.Fork("linear"),
        "fork_nlin": scms.Fork("non-linear"),
        "collider_lin": scms.Collider("linear"),
        "triangle_lin": scms.Triangle("linear"),
        "triangle_nlin_code": scms.Triangle("non-linear"),
        "chain4_lin": scms.Chain4("linear"),
        "chain5_lin": scms.Chain5("linear"),
        "simpson_nlin": scms.Simpson("non-linear"),
        "simpson_symprod": scms.Simpson("sym-prod"),
        "diamond_nlin": scms.Diamond("non-linear"),
        "backdoor_nlin": scms.LargeBackdoor("non-linear"),
    }
    for name, equations in theirs.items():
        ours = load_scm(name)
        noise = noise_of(ours)
        base = torch.special.ndtr(noise) if name == "backdoor_nlin" else noise
        torch.testing.assert_close(ours.model.generate(noise), equations._call(base))


# Further worlds.


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_bend_has_mean_zero_and_variance_one(alpha):
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    h = nonlinearity(torch.from_numpy(nodes), alpha).numpy()
    weights = weights / weights.sum()
    assert weights @ h == pytest.approx(0.0, abs=1e-12)
    assert weights @ h**2 == pytest.approx(1.0)


def test_spline_is_scipys_and_flat_beyond_its_ends():
    knots = torch.linspace(-3.0, 3.0, 9, dtype=torch.float64)
    heights = torch.sin(7.0 * knots)
    x = torch.linspace(-5.0, 5.0, 1001, dtype=torch.float64)
    scipys = CubicSpline(knots.numpy(), heights.numpy(), bc_type="natural")
    expected = torch.from_numpy(scipys(np.clip(x.numpy(), -3.0, 3.0)))
    spline = NaturalSpline(knots, heights)
    torch.testing.assert_close(spline(x), expected)
    torch.testing.assert_close(spline(knots), heights)
    assert torch.isnan(spline(torch.tensor([math.nan])))


def test_longer_chain_begins_like_the_shorter():
    short, long = load_scm("chain_d", d=4, seed=3), load_scm("chain_d", d=6, seed=3)
    noise = noise_of(long)
    assert torch.equal(short.model.generate(noise[:, :4]), long.model.generate(noise)[:, :4])
    other = load_scm("chain_d", d=4, seed=4)
    assert not torch.equal(short.model.generate(noise[:, :4]), other.model.generate(noise[:, :4]))


def test_linear_chain_takes_its_coefficients():
    forms = load_scm("chain_d_lin", d=3, weight=-0.5, scale=2.0).model.linear_forms()
    assert [form.weights.tolist() for form in forms] == [[], [-0.5], [-0.5]]
    assert [form.scale.item() for form in forms] == [1.0, 2.0, 2.0]


def test_sample_is_a_table_that_depends_on_seed_and_purpose_alone():
    world = load_scm("fork_nlin")
    table = world.sample(5, 7, "train")
    assert list(table) == ["x1", "x2", "x3", "x4"]
    assert (table.dtypes == np.float64).all()
    assert table.equals(world.sample(5, 7, "train"))
    assert not table.equals(world.sample(5, 7, "test"))
    assert not table.equals(world.sample(5, 8, "train"))


def test_sample_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    load_scm("chain_d_5").sample(5, 0)
    assert torch.equal(before, torch.get_rng_state())


def test_numbers_may_stand_in_names():
    assert len(load_scm("chain_d_7").graph) == 7
    assert len(load_scm("chain_d_lin_9").graph) == 9
    assert load_scm("chain_alpha", alpha=0.25).name == "chain_alpha_0.25"
    assert load_scm("collider_alpha_1").name == "collider_alpha_1"


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("chain_linn", {}, "did you mean chain_lin"),
        ("nothing", {}, "there are chain_lin"),
        ("chain_alpha_much", {}, "'much' should be a number"),
        ("chain_alpha_2", {}, "from 0 .* to 1"),
        ("chain_d_1", {}, "at least 2 nodes"),
        ("chain_d_4", {"d": 5}, "already gives d"),
        ("chain_lin", {"d": 5}, "no option 'd'; it has none"),
        ("chain_d", {"length": 5}, "its options are d, seed"),
    ],
)
def test_bad_names_and_options_are_refused(name, options, match):
    with pytest.raises(InputError, match=match):
        load_scm(name, **options)
