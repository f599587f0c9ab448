"""The sieve for bent means: few false alarms, and no bend missed that a comparison would find."""

import pytest
import torch

from misscnf.data.domains import CONTINUOUS, Binary, Categorical
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.select.nonlinearity import left_p_value, nonlinearity_p_values
from misscnf.fitting.settings import Curves, Selection
from misscnf.fitting.smooth.basis import find_basis, fit_curve
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian
from misscnf.model import Structure

GRAPH = CausalGraph.read("a -> c; b -> c; c -> d")


def p_values(form, domain=CONTINUOUS, rows=1500, lost=0.25, seed=0):
    """The p-values of c = form(a, b, noise) and of d, a line of a."""
    g = torch.Generator().manual_seed(seed)
    a, b, u, v = torch.randn(4, rows, generator=g, dtype=torch.float64)
    c = form(a, b, u)
    values = torch.stack([a, b, c, c + v], 1)
    observed = MemoryRows(values, torch.rand(values.shape, generator=g) >= lost)
    structure = Structure.of(GRAPH, [CONTINUOUS, CONTINUOUS, domain, CONTINUOUS])
    line = fit_linear(structure, observed).model
    completions = Completions.draw(line, observed, 8, derive_generator(seed, "rows"))
    return nonlinearity_p_values(line, completions, [2, 3], Selection(), seed)


def test_lines_raise_few_alarms():
    """Of 40 p-values of right fits, 8 on average are below 0.2, and 17 or more with a chance of
    1e-3; below 0.05 two, and eight or more with one of 7e-4."""
    found = [
        p for seed in range(20) for p in p_values(lambda a, b, u: a - b + u, seed=seed).values()
    ]
    assert 0 < sum(p < 0.2 for p in found) < 17
    assert sum(p < 0.05 for p in found) < 8


def test_lines_of_logits_raise_few_alarms_in_short_tables():
    """Of 15 p-values of right logistic fits to 500 rows, two of three were below 0.01 when the
    rows themselves said what the line could have moved; four or more have a chance of 1e-5 if the
    test is exact, and of 0.06 if one in ten is that low."""

    def yes(a: torch.Tensor, b: torch.Tensor, u: torch.Tensor) -> torch.Tensor:
        return (1.5 * (a + b) + torch.special.ndtr(u).logit() > 0).double()

    found = [p_values(yes, Binary(), rows=500, lost=0.0, seed=seed)[2] for seed in range(15)]
    assert sum(p < 0.01 for p in found) < 4


@pytest.mark.parametrize(
    "form",
    [
        lambda a, b, u: torch.tanh(1.5 * a) + b + 0.5 * u,
        lambda a, b, u: a + torch.sin(2.0 * b) + u,
        lambda a, b, u: 0.15 * a.square() + b + u,
        lambda a, b, u: a + b + 0.2 * a * b + u,
        lambda a, b, u: a + 0.4 * torch.cos(4.0 * b) + u,
        lambda a, b, u: torch.sin(2.0 * (a + b)) + u,
    ],
    ids=["tanh", "sine", "parabola", "product", "ripples", "joint"],
)
def test_bent_means_are_noticed_at_their_node(form):
    assert p_values(form)[2] < 1e-4


@pytest.mark.parametrize(
    ("domain", "form"),
    [
        (Binary(), lambda a, b, u: ((a.square() + b - 1.0 + u) > 0).double()),
        (Categorical(3), lambda a, b, u: (a.square() + u > 1.0).double() + (b + u > 0.5)),
    ],
)
def test_bent_logits_are_noticed(domain, form):
    assert p_values(form, domain)[2] < 1e-4


@pytest.mark.parametrize(("narrow", "bent"), [(0.0, False), (0.6, True)])
def test_what_a_curve_leaves_is_asked_again(narrow, bent):
    """A parabola is all a curve needs; ripples too narrow for its length scales stay behind."""
    g = torch.Generator().manual_seed(1)
    x, u = torch.randn(2, 2000, generator=g, dtype=torch.float64)
    smooth = x.square() + 0.5 * u
    basis = find_basis(x[:, None], smooth, 2000, 2000, g, Curves())
    y = smooth + narrow * torch.sin(4.0 * x)
    curve = fit_curve(basis, (CONTINUOUS,), x[:, None], y)
    found = left_p_value(curve, x[:, None], y, Selection(), 0)
    assert found < 1e-6 if bent else found > 0.05


def test_the_score_of_a_mean_is_its_noise_by_its_scale():
    law = Gaussian(2).double()
    law.set_line(0.3, [1.0, -2.0], 0.5)
    g = torch.Generator().manual_seed(0)
    x, parents = torch.randn(7, generator=g), torch.randn(7, 2, generator=g)
    wanted = law.abduct(x, parents) / 0.5
    assert torch.allclose(law.line_scores(x, parents)[:, 0], wanted)
    assert Gaussian(0).double().line_scores(x, parents[:, :0]).shape == (7, 0)


def test_between_two_values_nothing_bends():
    """Waves of a binary parent are lines of it: what is left of them is rounding, not evidence."""
    g = torch.Generator().manual_seed(0)
    a = (torch.rand(500, generator=g) < 0.4).double()
    c = (torch.rand(500, generator=g) < 0.3 + 0.4 * a).double()
    structure = Structure.of(CausalGraph.read("a -> c"), [Binary(), Binary()])
    rows = MemoryRows(torch.stack([a, c], 1), torch.rand(500, 2, generator=g) < 0.9)
    line = fit_linear(structure, rows).model
    completions = Completions.draw(line, rows, 8, derive_generator(0, "rows"))
    assert nonlinearity_p_values(line, completions, [1], Selection(), 0) == {1: 1.0}
