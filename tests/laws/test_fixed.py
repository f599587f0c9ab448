"""A number that is known beforehand: the three verbs of a constant."""

import torch

from misscnf.mechanisms import Fixed


def test_a_constant_is_what_any_noise_makes_and_costs_no_likelihood():
    law, none = Fixed(3.5).double(), torch.zeros(100, 0, dtype=torch.float64)
    noise = torch.randn(100, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    value = law.generate(noise, none)
    assert value.dtype == noise.dtype
    assert bool((value == 3.5).all())
    assert bool((law.log_prob(value, none) == 0.0).all())
    assert torch.equal(law.generate(law.abduct(value, none), none), value)


def test_its_line_is_the_constant():
    form = Fixed(-2.0).linear_form()
    assert float(form.intercept) == -2.0
    assert form.weights.shape == (0,)
