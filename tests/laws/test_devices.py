"""Where mechanisms are put, they work: on the meta device, which has shapes and no numbers.

Torch refuses to mix it with the processor, so that a number that is made in the wrong place is
found. It says nothing of what a graphics card computes.
"""

import pytest
import torch
from mechanisms import MECHANISMS


@pytest.fixture(params=MECHANISMS)
def mechanism(request):
    if request.param == "gaussian, interactions":
        pytest.skip("its terms are read as numbers, of which the meta device has none")
    return MECHANISMS[request.param](2).to("meta")


def some(*shape):
    return torch.zeros(*shape, device="meta")


def test_densities_and_their_gradients_are_where_the_mechanism_is(mechanism):
    found = mechanism.log_prob(some(7), some(7, 2))
    assert found.device.type == "meta"
    assert found.shape == (7,)
    parameters = list(mechanism.parameters())
    if parameters:
        found.sum().backward()
        assert {part.grad.device.type for part in parameters if part.grad is not None} == {"meta"}


def test_values_from_noise_are_where_the_mechanism_is(mechanism):
    found = mechanism.generate(some(7), some(7, 2))
    assert found.device.type == "meta"
    assert found.shape == (7,)
