"""Where mechanisms are put, they work: on the meta device, which has shapes and no numbers.

Torch refuses to mix it with the processor, so that a number that is made in the wrong place is
found. It says nothing of what a graphics card computes: where there is one, its numbers are held
against those of the processor.
"""

import pytest
import torch
from discrete_mechanisms import DISCRETE, PARENTS, parents_of, random_discrete, values_of
from mechanisms import MECHANISMS, interacting, randomised
from mixed_mechanisms import POINT_MASSES

from misscnf.mechanisms import Count, Gaussian
from misscnf.mechanisms.interactions import Factors

EVERY_KIND = PARENTS["parents of every kind"]
ALL = {
    **{name: (make, 2) for name, make in MECHANISMS.items()},
    **{name: (make, EVERY_KIND) for name, make in {**DISCRETE, **POINT_MASSES}.items()},
}


@pytest.fixture(params=ALL)
def mechanism(request):
    make, parents = ALL[request.param]
    return make(parents).to("meta"), parents if isinstance(parents, int) else len(parents)


def some(*shape):
    return torch.zeros(*shape, device="meta")


def test_densities_and_their_gradients_are_where_the_mechanism_is(mechanism):
    law, parents = mechanism
    found = law.log_prob(some(7), some(7, parents))
    assert found.device.type == "meta"
    assert found.shape == (7,)
    parameters = list(law.parameters())
    if parameters:
        found.sum().backward()
        assert {part.grad.device.type for part in parameters if part.grad is not None} == {"meta"}


def test_values_from_noise_are_where_the_mechanism_is(mechanism):
    law, parents = mechanism
    if isinstance(law, Count):
        pytest.skip("quantiles of counts are scipy's, on the processor")
    noise = some(7, law.noise_size) if law.noise_size > 1 else some(7)
    found = law.generate(noise, some(7, parents))
    assert found.device.type == "meta"
    assert found.shape == (7,)


def test_interactions_are_the_same_wherever_they_are_worked_out():
    law = interacting(Gaussian(2, mean_curve=(3, 2)))
    part = next(at for at in law.modules() if hasattr(at, "raw_basis"))
    factors = Factors(part.column, part.knot, part.side, part.floor, part.ceiling)
    features = 2.0 * torch.randn(50, 2, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(factors.at_once(features), factors.each(features))
    torch.testing.assert_close(factors.at_once(features), factors.terms(features))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no graphics card here")
@pytest.mark.parametrize("name", ALL)
def test_a_graphics_card_computes_what_the_processor_does(name):
    make, parents = ALL[name]
    generator = torch.Generator().manual_seed(0)
    if name in DISCRETE:
        law = random_discrete(name, parents)
    else:
        law = randomised(make(parents), generator)
    given = torch.randn(50, parents, generator=generator) if isinstance(parents, int) else None
    given = parents_of(parents, 50, generator).float() if given is None else given
    x = values_of(law.domain, (50,), generator).float()
    found = law.to("cuda").log_prob(x.cuda(), given.cuda()).cpu()
    torch.testing.assert_close(found, law.cpu().log_prob(x, given), rtol=1e-4, atol=1e-4)
