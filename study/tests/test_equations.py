"""The pieces of a world: images of normal noise, and equations."""

import math

import pytest
import torch
from misscnf_study.worlds import Equation, linear, load_scm
from misscnf_study.worlds.equations import (
    LAPLACE,
    NORMAL,
    TANH,
    UNIFORM,
    softplus_of_uniform,
    two_peaks,
)

from misscnf import InputError

SHAPES = {
    "normal": NORMAL,
    "tanh": TANH,
    "uniform": UNIFORM,
    "laplace": LAPLACE,
    "softplus": softplus_of_uniform(shift=0.5, slope=1.0),
    "two peaks": two_peaks(distance=0.8, width=0.2),
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_noise_shapes_keep_the_order_and_the_tails(shape):
    u = torch.linspace(-6.0, 6.0, 4001, dtype=torch.float64)
    z = shape.generate(u)
    assert (z.diff() > 0).all()
    torch.testing.assert_close(shape.abduct(z), u, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("tanh", -1, 1),
        ("uniform", 0, 1),
        ("softplus", math.log1p(math.exp(0.5)), math.log1p(math.exp(1.5))),
    ],
)
def test_off_its_support_a_shape_has_no_density_but_finite_noise(name, low, high):
    z = torch.tensor([low - 0.1, high + 0.1], dtype=torch.float64, requires_grad=True)
    shape = SHAPES[name]
    assert (shape.log_prob(z) == -torch.inf).all()
    u = shape.abduct(z)
    assert torch.isfinite(u).all()
    assert u[0] < -6 < 6 < u[1]
    u.sum().backward()
    assert torch.isfinite(z.grad).all()


def test_laplace_noise_is_laplace():
    u = torch.linspace(-5.0, 5.0, 101, dtype=torch.float64)
    law = torch.distributions.Laplace(torch.tensor(0.0).double(), 1.0)
    torch.testing.assert_close(law.cdf(LAPLACE.generate(u)), torch.special.ndtr(u))
    torch.testing.assert_close(LAPLACE.log_prob(u), law.log_prob(u))


def test_equation_may_have_a_scale_that_depends_on_its_parents():
    equation = Equation(lambda a, b: a * b, scale=lambda a, b: -torch.exp(b))
    parents = torch.tensor([[2.0, 0.5]], dtype=torch.float64)
    u = torch.tensor([1.5], dtype=torch.float64)
    x = equation.generate(u, parents)
    assert x.item() == pytest.approx(1.0 - 1.5 * math.exp(0.5))
    torch.testing.assert_close(equation.abduct(x, parents), u)
    expected = torch.distributions.Normal(1.0, math.exp(0.5)).log_prob(x)
    torch.testing.assert_close(equation.log_prob(x, parents), expected)
    assert equation.linear_form() is None


def test_precision_does_not_hang_on_torchs_default():
    torch.set_default_dtype(torch.float32)
    try:
        x = linear(intercept=0.1).generate(torch.zeros(1).double(), torch.zeros(1, 0).double())
        table = load_scm("chain_d_5").sample(5, 0)
    finally:
        torch.set_default_dtype(torch.float64)
    assert x.item() == 0.1
    assert table.equals(load_scm("chain_d_5").sample(5, 0))


def test_equation_refuses_what_it_cannot_do():
    with pytest.raises(InputError, match="scale 0"):
        linear(1.0, scale=0.0)
    with pytest.raises(InputError, match="load_scm"):
        linear(1.0).spec()
