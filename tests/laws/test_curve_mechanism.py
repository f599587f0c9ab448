"""Curves and interactions are evaluated in two ways, which must agree."""

import pytest
import torch

from misscnf.draws import derive_generator
from misscnf.mechanisms.curve import Curve
from misscnf.mechanisms.interactions import Interactions
from misscnf.mechanisms.steps import log_masses_of, log_odds_of


@pytest.fixture
def features() -> torch.Tensor:
    """(3, 200, 2), some of them far out."""
    return 2.0 * torch.randn(3, 200, 2, dtype=torch.float64, generator=derive_generator(0, "x"))


@pytest.mark.parametrize(("products", "endless"), [(0, 0), (3, 0), (3, 1)])
def test_a_curve_is_the_same_with_and_without_gradients(features, products, endless):
    generator = derive_generator(0, "curve")
    curve = Curve(2, 1, 20, products, 5, endless).double()
    for part in (curve.centres, curve.projection, curve.tilt, curve.weight.detach()):
        part.normal_(generator=generator)
    curve.length_scale.copy_(torch.tensor([0.7, 1.5]))
    curve.edges.copy_(torch.tensor([[-2.0, -2.5], [2.0, 2.5]]))
    with_gradients = curve(features), curve.basis_functions(features)
    with torch.no_grad():
        without = curve(features), curve.basis_functions(features)
        nothing = curve(features[:, :0])
    for one, other in zip(with_gradients, without, strict=True):
        torch.testing.assert_close(one.detach(), other, rtol=1e-10, atol=1e-10)
    assert nothing.shape == (3, 0, 1)


def test_terms_are_the_same_one_by_one_and_at_once(features):
    interactions = Interactions(2, 1, 4, 4).double()
    interactions.column.copy_(torch.tensor([[0, 1, 0], [1, 1, 0], [0, 0, 0], [1, 0, 1]]))
    interactions.side.copy_(torch.tensor([[1, 1, 0], [-1, 1, 0], [0, 0, 0], [1, -1, 1]]))
    interactions.knot[1, 0], interactions.knot[3, 1] = 0.5, -0.3
    interactions.floor.copy_(torch.where(interactions.side == 0, 1.0, -torch.inf))
    interactions.floor[1, 0], interactions.ceiling[1, 0] = 0.0, 1.5
    interactions.ceiling[interactions.side == 1] = torch.inf
    interactions.floor[3, 0] = 2.0
    assert len(interactions.column) <= interactions.few_terms
    factors = [getattr(interactions, name) for name in ("column", "knot", "side")]
    at_once = torch.ones(3, 200, 4, dtype=torch.float64)
    for d in range(3):
        column, knot, side = (part[:, d] for part in factors)
        factor = side * (features[..., column] - knot)
        at_once *= factor.clamp(interactions.floor[:, d], interactions.ceiling[:, d])
    torch.testing.assert_close(interactions.raw_basis(features), at_once)


def test_logarithms_of_both_masses_keep_their_digits():
    u = torch.tensor([-40.0, -37.0, -6.0, -1e-9, 0.0, 2.0, 12.0], dtype=torch.float64)
    for some in (u, u[1:]):
        below, above = log_masses_of(some)
        exact = torch.special.log_ndtr(some), torch.special.log_ndtr(-some)
        torch.testing.assert_close((below, above), exact, rtol=1e-12, atol=0.0)
        odds = exact[0] - exact[1]
        torch.testing.assert_close(log_odds_of(some), odds, rtol=1e-12, atol=1e-15)
