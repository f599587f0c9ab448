"""Laws of every mechanism: one map in both directions, its density, and how it is built."""

import json
import subprocess
import sys

import pytest
import torch
from discrete_mechanisms import DISCRETE
from mechanisms import MECHANISMS, randomised
from mixed_mechanisms import POINT_MASSES

import misscnf.mechanisms
from misscnf.errors import InputError
from misscnf.mechanisms import Fixed, Rescaled, Student, standard_normal_log_prob

ROWS = 64
FAR = torch.tensor([-1e3, -30.0, 30.0, 1e3], dtype=torch.float64)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.fixture(params=[0, 1, 3], ids="{} parents".format)
def parents(request):
    return 1.5 * torch.randn(ROWS, request.param, generator=generator(1))


@pytest.fixture(params=MECHANISMS)
def name(request):
    return request.param


@pytest.fixture
def mechanism(name, parents):
    return randomised(MECHANISMS[name](parents.shape[1]), generator(2))


def numbers():
    """For each row, numbers within the bulk and far outside, (ROWS, n)."""
    near = 2.0 * torch.randn(ROWS, 16, generator=generator(3))
    return torch.cat([near, FAR.expand(ROWS, -1)], dim=1)


def full(parents, n):
    return parents[:, None, :].expand(-1, n, -1)


def test_the_table_covers_every_registered_mechanism():
    tables = (MECHANISMS, DISCRETE, POINT_MASSES)
    made = {type(make(1)) for table in tables for make in table.values()}
    registered = misscnf.mechanisms.Mechanism.registry.values()
    ours = {law for law in registered if law.__module__.startswith("misscnf.")}
    elsewhere = {Student, Fixed}  # its tails have laws of their own; a constant has no density
    assert made | elsewhere == {*ours, Rescaled}


def test_generate_inverts_abduct(mechanism, parents):
    x = numbers()
    pa = full(parents, x.shape[1])
    torch.testing.assert_close(
        mechanism.generate(mechanism.abduct(x, pa), pa), x, rtol=1e-10, atol=1e-9
    )


def test_abduct_inverts_generate(mechanism, parents):
    u = numbers()
    pa = full(parents, u.shape[1])
    torch.testing.assert_close(
        mechanism.abduct(mechanism.generate(u, pa), pa), u, rtol=1e-10, atol=1e-9
    )


def test_the_inverse_holds_for_parents_far_out(mechanism, parents):
    x, pa = numbers(), full(1e3 * parents, 20)
    u = mechanism.abduct(x, pa)
    assert u.isfinite().all()
    # Rounding is relative to the location, as far out as the parents, and to the flattest slope.
    torch.testing.assert_close(mechanism.generate(u, pa), x, rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if name.startswith("spline")])
def test_spline_tails_are_the_straight_line_of_its_base(mechanism, parents):
    x, pa = FAR.expand(ROWS, -1) * 100.0, full(parents, len(FAR))
    _, shift = mechanism._spline(pa)
    torch.testing.assert_close(mechanism.abduct(x, pa), mechanism.base.abduct(x, pa) + shift)


def test_log_prob_is_the_change_of_variables(mechanism, parents):
    x = numbers().requires_grad_()
    pa = full(parents, x.shape[1])
    u = mechanism.abduct(x, pa)
    (slope,) = torch.autograd.grad(u.sum(), x)
    expected = standard_normal_log_prob(u) + slope.abs().log()
    torch.testing.assert_close(mechanism.log_prob(x, pa), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
def test_the_density_integrates_to_one(mechanism, parents):
    # The trapezoid rule in x; steps are small in x and in u, so that no narrow bin slips through.
    few, steps = parents[:8, None, :], 40_001
    with torch.no_grad():
        even = mechanism.generate(torch.linspace(-9.0, 9.0, steps), few).expand(8, -1)
        straight = even[:, :1] + (even[:, -1:] - even[:, :1]) * torch.linspace(0.0, 1.0, steps)
        x = torch.cat([even, straight], dim=1).sort(dim=1).values
        density = mechanism.log_prob(x, few).exp()
    torch.testing.assert_close(
        torch.trapezoid(density, x, dim=1), torch.ones(8), rtol=0.0, atol=2e-5
    )


def test_the_map_is_strictly_increasing(mechanism, parents):
    u = torch.cat([FAR[:2], torch.linspace(-9.0, 9.0, 500), FAR[2:]])
    x = mechanism.generate(u.expand(ROWS, -1), full(parents, len(u)))
    assert (x.diff(dim=1) > 0).all()
    assert (mechanism.abduct(x, full(parents, len(u))).diff(dim=1) > 0).all()


@pytest.mark.parametrize("verb", ["log_prob", "generate", "abduct"])
def test_parents_of_a_row_are_shared_by_its_draws(mechanism, parents, verb):
    x = numbers()
    shared = getattr(mechanism, verb)(x, parents[:, None, :])
    each = getattr(mechanism, verb)(x, full(parents, x.shape[1]))
    torch.testing.assert_close(shared.expand_as(x), each, rtol=1e-13, atol=1e-13)


def test_evidence_of_a_row_is_shared_by_its_drawn_parents(mechanism, parents):
    drawn = parents[:, None, :] + torch.linspace(-1.0, 1.0, 5)[:, None]
    own = numbers()[:, :1]
    each = mechanism.log_prob(own.expand(-1, 5), drawn)
    torch.testing.assert_close(mechanism.log_prob(own, drawn).expand(-1, 5), each)


SAVED = [name for name in MECHANISMS if not name.startswith("rescaled")]


@pytest.mark.parametrize("name", SAVED)
def test_a_spec_survives_json_and_rebuilds_the_mechanism(mechanism, parents):
    again = type(mechanism)(**json.loads(json.dumps(mechanism.spec())))
    again.load_state_dict(mechanism.state_dict())
    assert again.spec() == mechanism.spec()
    x, pa = numbers(), full(parents, 20)
    for verb in ("log_prob", "generate", "abduct"):
        assert torch.equal(getattr(again, verb)(x, pa), getattr(mechanism, verb)(x, pa))


@pytest.mark.parametrize("name", SAVED)
def test_the_same_seed_gives_the_same_start(name, parents):
    def start(seed):
        mechanism = MECHANISMS[name](parents.shape[1])
        mechanism.initialise(generator(seed))
        return mechanism.state_dict()

    first, again, other = start(5), start(5), start(6)
    assert all(torch.equal(first[key], again[key]) for key in first)
    networks = [key for key in first if "weights." in key]
    assert not any(torch.equal(first[key], other[key]) for key in networks)
    has_network = "network" in name or name == "affine"
    assert bool(networks) == (has_network and parents.shape[1] > 0)


@pytest.mark.parametrize("name", [name for name in SAVED if name != "affine"])
def test_a_mechanism_starts_standard_normal(name, parents):
    mechanism = MECHANISMS[name](parents.shape[1])
    mechanism.initialise(generator())
    x = numbers()
    expected = standard_normal_log_prob(x)
    torch.testing.assert_close(mechanism.log_prob(x, full(parents, 20)), expected)


def test_gradients_are_finite_and_reach_every_parameter(mechanism, parents):
    x = numbers().requires_grad_()
    pa = full(parents, x.shape[1]).clone().requires_grad_()
    mechanism.log_prob(x, pa).sum().backward()
    gradients = [parameter.grad for parameter in mechanism.parameters()]
    assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
    assert all(gradient.abs().sum() > 0 for gradient in gradients)
    assert x.grad.isfinite().all()
    assert pa.shape[-1] == 0 or pa.grad.isfinite().all()


def test_the_linear_form_is_the_law(name, mechanism, parents):
    form = mechanism.linear_form()
    is_line = name in ("gaussian", "rescaled gaussian", "latent")
    bends_along_some = name == "gaussian, interactions" and parents.shape[1] == 3
    assert (form is not None) == (
        is_line or bends_along_some or (name.startswith("gaussian") and parents.shape[1] == 0)
    )
    if form is None:
        return
    assert bool(form.held) == bends_along_some
    weights, start = form.weights.expand_as(parents), form.intercept.expand(len(parents))
    if form.offset is not None and form.slopes is not None:
        weights, start = weights + form.slopes(parents), start + form.offset(parents)
    x = numbers()
    u = (x - (start + (parents * weights).sum(1))[:, None]) / form.scale
    expected = standard_normal_log_prob(u) - form.scale.log()
    torch.testing.assert_close(mechanism.log_prob(x, full(parents, 20)), expected)


def test_a_rescaled_mechanism_is_the_base_in_other_units():
    mechanism = MECHANISMS["rescaled gaussian"](1)
    mechanism.base.set_line(1.0, [2.0], 0.5)
    # Parent 3 is z = 2, so that the value is 1 + 4 + 0.5 · 2 = 6 in units of 3 from 5.
    x = mechanism.generate(torch.tensor([2.0]), torch.tensor([[3.0]]))
    torch.testing.assert_close(x, torch.tensor([23.0]))
    with pytest.raises(InputError, match="save the model"):
        mechanism.spec()


def test_set_line_sets_the_law():
    mechanism = MECHANISMS["gaussian"](2)
    mechanism.set_line(0.5, [2.0, -1.0], 0.3)
    x = mechanism.generate(torch.tensor([0.0, 1.0]), torch.tensor([[1.0, 1.0], [0.0, 3.0]]))
    torch.testing.assert_close(x, torch.tensor([1.5, -2.2]))


@pytest.mark.slow
def test_importing_leaves_the_validation_of_distributions_as_it_was():
    code = (
        "from torch.distributions import Distribution\n"
        "before = Distribution._validate_args, Distribution.arg_constraints\n"
        "import misscnf.inference.posterior\n"
        "assert 'zuko' in __import__('sys').modules\n"
        "assert before[0] is True\n"
        "assert (Distribution._validate_args, Distribution.arg_constraints) == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
