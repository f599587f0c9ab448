"""Curves as stiff as the evidence asks: against exact Gaussian processes, and by their units."""

import numpy as np
import pytest
import torch
from oracles import gaussian_process

import misscnf.fitting.smooth.basis as basis_home
import misscnf.fitting.smooth.evidence as evidence_home
from misscnf.data.domains import CONTINUOUS, Binary
from misscnf.fitting.settings import Curves
from misscnf.fitting.smooth.basis import find_basis, fit_curve

FORMS = {
    "parabola": lambda x: 0.5 * x[:, 0] ** 2,
    "exponential": lambda x: torch.exp(x[:, 0] / 2),
    "bowl of two": lambda x: 0.3 * x[:, 0] ** 2 + 0.2 * x[:, 0] * x[:, 1] - 0.5 * x[:, 1],
}


def rows_of(form, rows=400, noise=0.3, seed=0, slope=0.0):
    """Noise of the scale exp(slope · first feature)."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, 2 if form == "bowl of two" else 1, generator=generator)
    scale = noise * torch.exp(slope * x[:, 0])
    return x, FORMS[form](x) + scale * torch.randn(rows, generator=generator)


def basis_of(x, y, rows=None, seen=None, scale=None, settings=None):
    generator = torch.Generator().manual_seed(1)
    settings = settings or Curves()
    return find_basis(x, y, rows or len(y), seen or len(y), generator, settings, scale)


def fitted(form, **options):
    x, y = rows_of(form, **options)
    basis = basis_of(x, y)
    return basis, fit_curve(basis, (CONTINUOUS,) * x.shape[1], x, y), x, y


def remember_priors(monkeypatch):
    """Returns a list that will hold every prior that the evidence chooses."""
    found, choose = [], basis_home.choose_prior
    monkeypatch.setattr(
        basis_home, "choose_prior", lambda *rows: found.append(choose(*rows)) or found[-1]
    )
    return found


def numbers_of(prior):
    """Amplitude, length scales, curvatures and noise, as `gaussian_process` wants them."""
    return torch.cat(
        [prior.amplitude[None], prior.length_scale, prior.curvature, prior.noise[None]]
    )


@pytest.mark.slow
@pytest.mark.parametrize("slope", [0.0, 1.0], ids=["noise of one size", "of many sizes"])
@pytest.mark.parametrize(("least", "share"), [(1e-5, 0.002), (0.05, 0.05)])
@pytest.mark.parametrize("form", FORMS)
def test_the_curve_is_the_mean_of_the_exact_process(form, least, share, slope, monkeypatch):
    """With the same length scales, amplitude and noise, and a line that is as good as free. Basis
    functions of which rows know next to nothing matter next to nothing, in the middle nine tenths
    of them: in units of the noise there, a five-hundredth with almost all basis functions, a
    twentieth with those
    kept."""
    found = remember_priors(monkeypatch)
    settings = Curves(beyond=0, least_information=least, wide=0.0)  # no process goes on straight
    x, y = rows_of(form, slope=slope)
    scale = torch.exp(slope * x[:, 0])
    basis = basis_of(x, y, scale=scale, settings=settings)
    curve = fit_curve(basis, (CONTINUOUS,) * x.shape[1], x, y, scale**-2.0)
    inner = (x.abs() < 1.64).all(1)
    wanted, _ = gaussian_process(x, y, x[inner], numbers_of(found[0]), basis.noise * scale)
    with torch.no_grad():
        gap = (curve.mean(x[inner])[:, 0] - wanted).abs() / scale[inner]
    assert gap.max() < share * basis.noise


@pytest.mark.parametrize("form", FORMS)
def test_with_all_rows_as_centres_the_evidence_is_that_of_the_process(form):
    x, y = rows_of(form, rows=60, slope=1.0)
    scale, features = torch.exp(x[:, 0]), x.shape[1]
    theta = torch.tensor([0.7, *[0.9] * features, *[0.5] * features, 0.3]).log()
    evidence = evidence_home._Evidence(x, y, x, scale, Curves())
    prior = evidence_home.Prior(theta, evidence.sizes)
    line = evidence_home.line_of(x)
    products = evidence_home.products_of(x, x, features) * prior.spreads()
    radial = prior.amplitude**2 * evidence_home.radial_basis_of(x, x, prior.length_scale)
    covariance = 9.0 * line @ line.T + radial + products @ products.T
    covariance = covariance + (prior.noise * scale).square().diag()
    law = torch.distributions.MultivariateNormal(torch.zeros(len(y)), covariance)
    away = (theta - torch.tensor([0.4, *[3.0] * features, *[0.4] * features, 0.4]).log()) / 1.5
    wanted = law.log_prob(y) + 0.5 * len(y) * np.log(2 * np.pi) - 0.5 * away.square().sum()
    found = evidence.log_prob(theta)
    assert float(found) == pytest.approx(float(wanted), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_every_basis_function_is_as_steep_and_apart_from_the_line(form):
    """In units of its own error: information of rows and prior together is N for every weight."""
    basis, curve, x, _ = fitted(form)
    with torch.no_grad():
        basis_functions = curve.mean.curve.basis_functions(x)
    information = (
        basis_functions.T @ basis_functions / basis.noise**2 + basis.prior_precision.diag()
    )
    torch.testing.assert_close(
        information / len(x), torch.eye(len(information)), atol=1e-6, rtol=0
    )
    line = torch.cat([torch.ones(len(x), 1), x], 1)
    assert float((line.T @ basis_functions).abs().max()) < 1e-6 * len(x)


def test_a_curve_beats_a_line_by_what_it_says_and_spends_little():
    basis, curve, x, y = fitted("parabola")
    line = fit_curve(None, (CONTINUOUS,), x, y)
    grid = torch.linspace(-2, 2, 41)[:, None]
    truth = FORMS["parabola"](grid)
    with torch.no_grad():
        errors = [
            float((m.mean(grid)[:, 0] - truth).square().mean().sqrt()) for m in (curve, line)
        ]
    assert errors[0] < 0.06 < 0.3 < errors[1]  # 0.3 · √(6 / 400) = 0.04 for six degrees of freedom
    assert basis.size[2] <= 8
    assert float(curve.log_scale.bias.detach().exp()) == pytest.approx(0.3, rel=0.1)


@pytest.mark.slow
def test_beyond_the_data_a_curve_goes_on_straight():
    basis, curve, _, _ = fitted("exponential")
    high = float(basis.edges[1])
    at = torch.tensor([high, high + 1.0, high + 2.0, high + 4.0])[:, None]
    with torch.no_grad():
        values = curve.mean(at)[:, 0]
    slope = values[1] - values[0]
    assert slope > 0.5
    torch.testing.assert_close(values[2:] - values[0], slope * torch.tensor([2.0, 4.0]))


@pytest.mark.slow
@pytest.mark.parametrize("beyond", [-1.5, 0.0, 2.5])
def test_the_slope_is_that_of_the_curve_at_the_edge(beyond):
    _, curve, _, _ = fitted("bowl of two")
    edges = curve.mean.curve.edges
    x = torch.tensor([beyond, 0.2]).requires_grad_()
    inside = x.detach().clamp(edges[0], edges[1]).requires_grad_()
    slopes = [torch.autograd.grad(curve.mean(at)[0], at)[0] for at in (x, inside)]
    torch.testing.assert_close(slopes[0][0], slopes[1][0], atol=1e-8, rtol=1e-6)


def heavy(form, rows=1000, seed=0):
    """Rows of a variable with heavy tails, and what a form makes of it."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(2, rows, generator=generator, dtype=torch.float64)
    x = z[0] * torch.exp(0.8 * z[0].abs())
    return x[:, None], form(x) + 0.3 * z[1]


def test_a_parabola_goes_on_as_one_where_rows_far_out_say_so():
    """Half as far again as any row: a straight end would miss by hundreds of deviations there."""
    x, y = heavy(lambda x: 0.5 * x**2)
    basis = basis_of(x, y)
    assert basis.endless
    curve = fit_curve(basis, (CONTINUOUS,), x, y)
    assert curve.mean_curve == basis.size == (*basis.size[:3], 1)
    far = 1.5 * x.abs().max() * torch.tensor([[-1.0], [1.0]], dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(curve.mean(far), 0.5 * far**2, rtol=0.01, atol=0)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", [torch.tanh, torch.sin, torch.abs], ids=["tanh", "sine", "abs"])
def test_what_is_no_parabola_goes_on_straight(form, seed):
    basis = basis_of(*heavy(form, seed=seed))
    assert basis is None or not basis.endless


def test_one_row_far_off_makes_no_parabola():
    """A value that was typed without its point: neither end of a curve says anything of it."""
    x, y = heavy(torch.tanh)
    x[0] = 500.0
    basis = basis_of(x, y)
    assert basis is None or not basis.endless


def test_rows_that_are_left_out_are_judged_by_the_others(monkeypatch):
    """By the leverages of one fit, as by fits without each row."""
    x, y = heavy(lambda x: 0.5 * x**2, rows=40)
    found = remember_priors(monkeypatch)
    basis_of(x, y)
    edges = torch.tensor([[-2.0], [2.0]], dtype=torch.float64)
    about = (x[::4], edges, found[0])
    ridge = basis_home._Ridge.of(x, y, torch.ones_like(y), *about, endless=False)
    columns = basis_home._raw_basis(x, edges, x[::4], found[0], endless=False) @ ridge.projection
    columns = torch.cat([basis_home.line_of(x), columns], 1)
    penalty = torch.full((columns.shape[1],), ridge.noise**2, dtype=torch.float64)
    penalty[:2] = 1e-6
    total = 0.0
    for i in range(len(y)):
        others = torch.arange(len(y)) != i
        gram = columns[others].T @ columns[others] + penalty.diag()
        weights = torch.linalg.solve(gram, columns[others].T @ y[others])
        width = 1.0 + columns[i] @ torch.linalg.solve(gram, columns[i])  # 1 / (1 − h)
        spread = ridge.noise * float(width) ** 0.5
        total -= np.log(spread) + np.log1p(float(y[i] - columns[i] @ weights) ** 2 / spread**2)
    assert ridge.left_out() == pytest.approx(total, abs=1e-3)


def test_weights_count_rows():
    x, y = rows_of("parabola", rows=150)
    basis = basis_of(x, y)
    twice = torch.ones(150)
    twice[:50] = 2.0
    repeated = torch.cat([x, x[:50]]), torch.cat([y, y[:50]])
    weighted = fit_curve(basis, (CONTINUOUS,), x, y, twice)
    plain = fit_curve(basis, (CONTINUOUS,), *repeated)
    for a, b in zip(weighted.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_what_many_basis_functions_would_take_is_no_curve():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2000, 1, generator=generator)
    y = torch.tanh(8 * x[:, 0]) + 0.1 * torch.randn(2000, generator=generator)
    assert basis_of(x, y) is None


def test_two_values_of_a_parent_leave_nothing_to_bend():
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(2, (300, 1), generator=generator).double()
    assert basis_of(x, x[:, 0] + torch.randn(300, generator=generator)) is None


@pytest.mark.slow
def test_discrete_parents_stand_beside_continuous_ones():
    generator = torch.Generator().manual_seed(0)
    group = torch.randint(2, (500,), generator=generator).double()
    z = torch.randn(500, generator=generator)
    y = group * z**2 + 0.2 * torch.randn(500, generator=generator)
    parents = (Binary(), CONTINUOUS)
    x = torch.stack([group, z], 1)
    features = fit_curve(None, parents, x, y).mean.encoding(x)
    curve = fit_curve(basis_of(features, y), parents, x, y)
    at = torch.tensor([[0.0, 1.5], [1.0, 1.5], [0.0, 0.0], [1.0, 0.0]])
    with torch.no_grad():
        found = curve.mean(at)[:, 0]
    torch.testing.assert_close(found, torch.tensor([0.0, 2.25, 0.0, 0.0]), atol=0.25, rtol=0)


@pytest.mark.slow
def test_the_same_generator_gives_the_same_basis():
    x, y = rows_of("bowl of two")
    found = [basis_of(x, y) for _ in range(8)]
    assert all(torch.equal(found[0].projection, other.projection) for other in found)


@pytest.mark.parametrize("form", ["parabola", "waves"])
def test_a_start_by_few_rows_ends_where_all_rows_lead_from_anywhere(form):
    """The evidence of the prior is that of a search by all rows, to a tenth of a nat."""
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(700, 1, generator=generator, dtype=torch.float64)
    shape = torch.sin(3.0 * x[:, 0]) if form == "waves" else 0.5 * x[:, 0] ** 2
    y = shape + 0.3 * torch.randn(700, generator=generator, dtype=torch.float64)
    tight = Curves(evidence_tolerance=1e-6, evidence_steps=200)
    evidence = evidence_home._Evidence(x, y, x[:128], torch.ones_like(y), tight)
    _, best = evidence.maximise(evidence.expected)
    found = evidence_home.choose_prior(x, y, torch.ones_like(y), Curves())
    parts = [found.amplitude[None], found.length_scale, found.curvature, found.noise[None]]
    with torch.no_grad():
        assert float(evidence.log_prob(torch.cat(parts).log())) > best - 0.1
    assert bool((found.length_scale < 2.0).all()) == (form == "waves")
