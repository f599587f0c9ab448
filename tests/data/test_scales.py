"""Units: exact inverses, slopes as autograd finds them, and the same law through `Rescaled`."""

import math

import pytest
import torch
from torch.distributions import LogNormal, Normal

from misscnf.data.scales import Unit
from misscnf.errors import InputError
from misscnf.mechanisms import Gaussian, Rescaled

UNITS = {
    "identity": Unit(),
    "plain": Unit(50.0, 3.0),
    "log": Unit(-1.0, 0.7, "log"),
    "log above -2": Unit(0.5, 1.3, "log", low=-2.0),
    "logit": Unit(0.3, 1.7, "logit"),
    "logit on (-3, 11)": Unit(-0.4, 0.6, "logit", low=-3.0, high=11.0),
}


@pytest.fixture(params=UNITS)
def unit(request):
    return UNITS[request.param]


def values():
    return 3.0 * torch.randn(500, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_encode_inverts_decode(unit):
    z = values()
    torch.testing.assert_close(unit.encode(unit.decode(z)), z, rtol=1e-11, atol=1e-11)


def test_decode_inverts_encode(unit):
    x = unit.decode(values())
    torch.testing.assert_close(unit.decode(unit.encode(x)), x, rtol=1e-12, atol=1e-12)


def test_log_slope_is_that_of_autograd(unit):
    x = unit.decode(values()).requires_grad_()
    (slope,) = torch.autograd.grad(unit.encode(x).sum(), x)
    torch.testing.assert_close(unit.log_slope(x.detach()), slope.log(), rtol=1e-12, atol=1e-12)


def test_a_plain_unit_is_the_textbook_formula():
    x = torch.tensor([41.0, 50.0, 56.0], dtype=torch.float64)
    assert Unit(50.0, 3.0).encode(x).tolist() == [-3.0, 0.0, 2.0]
    assert Unit(50.0, 3.0).log_slope(x).tolist() == [-math.log(3.0)] * 3


def test_however_far_out_a_bent_value_stays_between_its_ends(unit):
    far = torch.tensor([-1e6, -800.0, 800.0, 1e6], dtype=torch.float64)
    x = unit.decode(far)
    assert unit.holds(x).all()
    assert unit.encode(x).isfinite().all()


def test_room_is_open_at_its_ends():
    x = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0, math.inf, math.nan], dtype=torch.float64)
    assert Unit(link="log").holds(x).tolist() == [False, False, True, True, True, False, False]
    assert Unit(link="logit").holds(x).tolist() == [False, False, True, *[False] * 4]
    assert Unit().holds(x).tolist() == [True] * 5 + [False] * 2


BAD = {
    "scale": {"scale": 0.0},
    "infinite": {"location": math.inf},
    "link": {"link": "sqrt"},
    "ends": {"link": "logit", "low": 2.0},
}


@pytest.mark.parametrize("arguments", BAD.values(), ids=BAD.keys())
def test_units_that_are_none_are_refused(arguments):
    with pytest.raises(InputError, match="a unit has"):
        Unit(**arguments)


# A mechanism in other units


def line(intercept, weights, scale):
    mechanism = Gaussian(len(weights)).double()
    mechanism.set_line(intercept, weights, scale)
    return mechanism.requires_grad_(requires_grad=False)


def test_a_line_on_a_log_scale_is_a_lognormal_law():
    rescaled = Rescaled(line(0.3, [0.5], 0.8), Unit(1.0, 2.0, "log"), [Unit(10.0, 4.0)])
    x = torch.tensor([0.2, 1.0, 30.0], dtype=torch.float64)
    parents = torch.tensor([[8.0], [10.0], [14.0]], dtype=torch.float64)
    location = 1.0 + 2.0 * (0.3 + 0.5 * (parents[:, 0] - 10.0) / 4.0)
    expected = LogNormal(location, torch.tensor(1.6, dtype=torch.float64)).log_prob(x)
    torch.testing.assert_close(rescaled.log_prob(x, parents), expected)
    u = rescaled.abduct(x, parents)
    torch.testing.assert_close(rescaled.generate(u, parents), x)
    torch.testing.assert_close(rescaled.draw(u, parents), x)
    assert rescaled.linear_form() is None


def test_a_line_with_a_bent_parent_is_none():
    linked = Rescaled(line(0.0, [1.0], 1.0), Unit(), [Unit(link="log")])
    assert linked.linear_form() is None
    at = linked.log_prob(torch.tensor([1.0]), torch.tensor([[math.e]]))
    torch.testing.assert_close(at, Normal(1.0, 1.0).log_prob(torch.tensor([1.0])))


def test_a_line_in_plain_units_is_one():
    form = Rescaled(line(0.3, [0.5], 0.8), Unit(7.0, 2.0), [Unit(10.0, 4.0)]).linear_form()
    assert float(form.weights[0]) == pytest.approx(0.25)
    assert float(form.intercept) == pytest.approx(7.0 + 0.6 - 2.5)
    assert float(form.scale) == pytest.approx(1.6)
    assert form.offset is None


def test_what_a_unit_has_no_room_for_has_density_zero_and_no_nan():
    rescaled = Rescaled(line(0.0, [], 1.0), Unit(link="logit"), [])
    x = torch.tensor([-0.1, 0.0, 0.5, 1.0, 7.0], dtype=torch.float64)
    found = rescaled.log_prob(x, torch.zeros(5, 0))
    assert found.isneginf().tolist() == [True, True, False, True, True]
    assert not found.isnan().any()
