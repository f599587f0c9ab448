"""Differences of held-out log-densities, in standard errors."""

import math

import numpy as np
import pytest
import torch

from misscnf.fitting.elpd import ElpdDifference


def test_an_elpd_difference_in_standard_errors():
    assert ElpdDifference.of(torch.tensor([1.0, 3.0])).ratio == pytest.approx(2.0)
    assert ElpdDifference.of(torch.zeros(5)).ratio == 0.0
    assert ElpdDifference.of(torch.ones(5)).ratio == math.inf
    assert ElpdDifference.of(torch.ones(1)).ratio == 0.0  # one row is no evidence


def test_weights_of_two_forms_add_up_to_one_and_follow_the_total_difference():
    certain = ElpdDifference(0.02, 0.0)
    assert certain.weight(100) == pytest.approx(1.0 / (1.0 + math.exp(-2.0)))
    for one in (ElpdDifference(0.02, 0.01), ElpdDifference(-0.5, 0.3), ElpdDifference()):
        assert one.weight(80) + ElpdDifference(-one.mean, one.error).weight(80) == pytest.approx(1)
    assert ElpdDifference(0.1, 0.02).weight(1000) > 0.999  # five standard errors, 100 nats
    # the mean of σ(T) over T ~ N(2, 1), by quadrature
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    expected = weights / weights.sum() @ (1.0 / (1.0 + np.exp(-2.0 - nodes)))
    assert ElpdDifference(0.02, 0.01).weight(100) == pytest.approx(expected, abs=1e-3)
