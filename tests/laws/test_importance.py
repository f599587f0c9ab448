"""Importance sampling: proposals find every mode, and chains of draws keep the posterior."""

import math
from dataclasses import replace

import pytest
import torch
from misscnf_study.worlds import load_scm

from misscnf.fitting.train.objective import fisher_gradient
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Effort, integrate
from misscnf.inference.posterior import draw_completions

FEW = Effort(draws=8, least_effective=8.0, limit=16)
X1, X2, X3 = 0, 1, 2


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def fork(rows, seed=0):
    """Rows of the nonlinear fork that show x3 and x4: x2 and −x2 explain a low x3 alike."""
    model = load_scm("fork_nlin").model
    truth = model.generate(torch.randn(rows, 4, generator=generator(seed), dtype=torch.float64))
    observed = torch.tensor([False, False, True, True]).expand_as(truth)
    return model, truth, torch.where(observed, truth, 0.0), Plan.make(model.graph, observed)


def next_state(model, values, plan, last, seed, effort=FEW):
    """Draws one completion of each row, from where it was last or from nowhere."""
    drawn = values.clone()
    for integral in integrate(model, values, plan.components(), effort, generator(seed), last):
        c = integral.components
        drawn[c.cell_row, c.cell_node] = integral.draw(1, generator(seed + 1))[:, 0]
    return drawn


def steps_of_means(after, before):
    """How many standard errors means of functions of what is hidden have moved."""
    low = before[:, X3] < -1.0
    functions = [
        lambda x: x[:, X1],
        lambda x: x[:, X1] ** 2,
        lambda x: x[:, X2],
        lambda x: x[:, X2] ** 2,
        lambda x: (x[:, X2] > 0.0).double() * low,
        lambda x: x[:, X2] ** 2 * low,
    ]
    moved = torch.stack([f(after) - f(before) for f in functions])
    return moved.mean(1) / (moved.std(1) / math.sqrt(moved.shape[1]))


@pytest.mark.slow
def test_a_chain_keeps_the_posterior_with_few_draws():
    model, truth, values, plan = fork(20_000)
    state = truth  # the hidden values of rows drawn from the model are draws of the posterior
    for step in range(4):
        state = next_state(model, values, plan, state, seed=2 * step)
    assert torch.equal(state[:, X3:], truth[:, X3:])
    assert (state[:, X2] != truth[:, X2]).double().mean() > 0.8
    # Six tests at 4.5 standard errors: one seed in 25,000 fails.
    assert (steps_of_means(state, truth).abs() < 4.5).all()


@pytest.mark.slow
def test_few_draws_without_a_chain_are_off():
    # What the chain is for: the test above can fail.
    model, truth, values, plan = fork(20_000)
    fewer = replace(FEW, draws=4, least_effective=4.0, limit=8)
    drawn = next_state(model, values, plan, None, seed=0, effort=fewer)
    assert steps_of_means(drawn, truth).abs().max() > 6.0


@pytest.mark.slow
def test_a_chain_forgets_a_bad_start():
    model, truth, values, plan = fork(4_000, seed=3)
    state = torch.where(values == 0.0, 0.5, values)
    for step in range(12):
        state = next_state(model, values, plan, state, seed=2 * step)
    # Independent of the truth now, so that differences have the variance of two draws.
    assert (steps_of_means(state, truth).abs() < 4.5).all()


@pytest.mark.slow
def test_imputations_have_both_modes():
    # x3 below −2 lies far out, and the better of its two explanations hides the other.
    model, truth, values, plan = fork(40_000, seed=5)
    low = (truth[:, X3] < -2.0).nonzero()[:, 0]
    drawn = draw_completions(model, values[low], plan.select(low), 19, generator(6))
    right, imputed = truth[low, X2] > 0.0, (drawn[..., X2] > 0.0).double().mean(0)
    gap = imputed - right.double()
    assert 0.1 < float(right.double().mean()) < 0.4
    # One test at 4.5 standard errors. Proposals of one Gaussian, of 256 points, were 7.6 off.
    assert abs(float(gap.mean())) < 4.5 * float(gap.std()) / math.sqrt(len(low))


def test_the_point_of_the_chain_says_nothing_of_the_integral():
    model, truth, values, plan = fork(200)
    once = replace(FEW, draws=256)  # beyond the limit: one round, whatever its weights
    without, with_it = (
        torch.cat([b.log_integral() for b in integrate(model, values, c, once, generator(1), x)])
        for c, x in ((plan.components(), None), (plan.components(), truth))
    )
    torch.testing.assert_close(without, with_it, rtol=1e-12, atol=0.0)


def test_a_row_that_was_nowhere_is_drawn_afresh():
    model, _, values, plan = fork(100)
    nowhere = torch.full_like(values, torch.nan)
    fresh, again = (next_state(model, values, plan, x, seed=1) for x in (None, nowhere))
    assert torch.equal(fresh, again)


def test_the_gradient_writes_down_where_rows_are():
    model, _, values, plan = fork(50)
    last = torch.full_like(values, torch.nan)
    fisher_gradient(model, values, plan, FEW, 2, generator(), last)
    assert last[:, :X3].isfinite().all()
    assert last[:, X3:].isnan().all()  # what is seen needs no note
