"""The one quasi-Newton driver: maxima, bounds, other coordinates, and what is not a number."""

import math

import numpy as np
import pytest
import torch

from misscnf.errors import FitError
from misscnf.fitting.solve.quasi_newton import maximise

CENTRE = torch.tensor([1.0, -2.0], dtype=torch.float64)
CURVATURE = torch.tensor([[3.0, 1.0], [1.0, 0.5]], dtype=torch.float64)


def point(*start):
    return torch.tensor(start, dtype=torch.float64).requires_grad_()


def parabola(theta, outside=lambda theta: False, value=math.nan):
    """−½ (θ − c)ᵀ A (θ − c), and another value where a point is outside."""

    def objective():
        away = theta - CENTRE
        found = -0.5 * away @ CURVATURE @ away
        found.backward()
        return value if outside(theta.detach()) else float(found.detach())

    return objective


def test_the_maximum_of_a_parabola_is_found():
    theta = point(5.0, 5.0)
    found = maximise([theta], parabola(theta))
    torch.testing.assert_close(theta.detach(), CENTRE, atol=1e-4, rtol=0)
    assert found.converged
    assert found.value == pytest.approx(0.0, abs=1e-7)
    assert found.start == pytest.approx(-0.5 * float((5 - CENTRE) @ CURVATURE @ (5 - CENTRE)))


def test_several_tensors_are_moved_together():
    first, second = point(4.0), point(-4.0)

    def objective():
        value = -(first - 1.0).square().sum() - (second - first).square().sum()
        value.backward()
        return float(value.detach())

    assert maximise([first, second], objective).converged
    assert [float(first.detach()), float(second.detach())] == pytest.approx([1.0, 1.0], abs=1e-4)


def test_a_search_ends_where_its_steps_gain_little():
    def steps(least_gain):
        theta = torch.full((30,), 3.0, dtype=torch.float64).requires_grad_()
        weights = torch.logspace(-4.0, 0.0, 30, dtype=torch.float64)

        def objective():
            value = -(weights * (theta.square() + theta.square().square())).sum()
            value.backward()
            return float(value.detach())

        found = maximise([theta], objective, least_gain=least_gain)
        assert found.converged
        return found

    fine, rough = steps(None), steps(1e-3)
    assert rough.iterations < 0.7 * fine.iterations
    assert fine.value - rough.value < 0.01
    assert rough.value - rough.start > 100.0


@pytest.mark.parametrize("whitening", [None, np.eye(2)])
def test_a_search_that_stands_at_a_step_of_the_function_ends(whitening):
    """The way up has a wall, and no point on this side of it is a maximum."""

    def evaluations(least_gain):
        theta, asked = point(0.0, 0.0), []

        def objective():
            value = -0.3 * (theta - 1.0).square().sum()
            value.backward()
            asked.append(bool((theta.detach() > 1e-3).any()))
            return float(value.detach()) - asked[-1]

        found = maximise([theta], objective, least_gain=least_gain, whitening=whitening)
        assert any(asked)
        assert found.value > found.start
        assert not found.converged
        return len(asked)

    assert evaluations(0.01) < 0.25 * evaluations(None)


@pytest.mark.parametrize(("no_gain", "converged"), [(None, False), (1e-2, True)])
def test_a_step_of_the_function_that_hides_next_to_nothing_is_no_failure(no_gain, converged):
    """A quadrature is known to a thousandth of a nat: less than that to gain is a maximum."""
    theta = point(0.0, 0.0)

    def objective():
        value = -0.5 * (theta - 0.05).square().sum()
        value.backward()
        return math.floor(10.0 * float(value.detach())) / 10.0

    about = {"least_gain": 1e-6, "no_gain": no_gain, "whitening": np.eye(2)}
    assert maximise([theta], objective, **about).converged == converged


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_start_that_is_no_number_fails_in_words(value):
    theta = point(5.0, 5.0)
    with pytest.raises(FitError, match="not a finite number where the fit starts") as caught:
        maximise([theta], parabola(theta, lambda _: True, value))
    assert "\n" not in str(caught.value)


def test_a_slope_that_is_no_number_fails_too():
    theta = point(0.0)

    def objective():
        value = -theta.abs().sqrt().sum()  # whose slope at zero is infinite times zero
        value.backward()
        return float(value.detach())

    with pytest.raises(FitError):
        maximise([theta], objective)


def test_what_leaves_the_numbers_behind_comes_back():
    """The first step jumps beyond a wall of NaN; the maximum lies on this side of it."""
    theta = point(0.9, -1.9)
    seen = []

    def outside(at):
        seen.append(bool((at - CENTRE).norm() > 0.5))
        return seen[-1]

    found = maximise([theta], parabola(theta, outside), whitening=np.diag([30.0, 30.0]))
    assert any(seen)
    assert theta.isfinite().all()
    assert found.value >= found.start
    assert (theta.detach() - CENTRE).norm() < 0.5


def test_beside_a_wall_of_nan_the_best_finite_point_is_kept_and_not_called_a_maximum():
    """f rises towards a wall without a slope of zero before it."""
    theta = point(0.0)

    def objective():
        value = theta.sum()
        value.backward()
        return float(value.detach()) if float(theta.detach()) < 0.5 else math.nan

    found = maximise([theta], objective)
    assert math.isfinite(found.value)
    assert 0.0 <= float(theta.detach()) < 0.5
    assert found.value == pytest.approx(float(theta.detach()))
    assert not found.converged


def test_bounds_are_kept_and_a_maximum_at_one_is_a_maximum():
    theta = point(5.0, 5.0)
    found = maximise([theta], parabola(theta), lowest=[2.0, -math.inf], highest=[math.inf, 10.0])
    # where θ_0 = 2, the best θ_1 is c_1 − A_01 / A_11 (2 − c_0) = −4
    assert theta.detach().tolist() == pytest.approx([2.0, -4.0], abs=1e-4)
    assert found.converged


def test_whitened_coordinates_lead_to_the_same_maximum_in_fewer_steps():
    root = np.linalg.inv(np.linalg.cholesky(CURVATURE.numpy())).T
    plain, white = point(50.0, 50.0), point(50.0, 50.0)
    slow = maximise([plain], parabola(plain))
    fast = maximise([white], parabola(white), whitening=root)
    torch.testing.assert_close(white.detach(), CENTRE, atol=1e-4, rtol=0)
    assert fast.converged
    assert fast.iterations < slow.iterations


def test_where_whitening_passes_a_bound_the_search_is_done_again_within():
    root = np.linalg.inv(np.linalg.cholesky(CURVATURE.numpy())).T
    theta = point(5.0, 5.0)
    found = maximise([theta], parabola(theta), lowest=[2.0, -math.inf], whitening=root)
    assert theta.detach().tolist() == pytest.approx([2.0, -4.0], abs=1e-4)
    assert found.converged
