"""Differences of held-out log-densities, in standard errors."""

import math

import pytest
import torch

from misscnf.fitting.elpd import ElpdDifference


def test_an_elpd_difference_in_standard_errors():
    assert ElpdDifference.of(torch.tensor([1.0, 3.0])).ratio == pytest.approx(2.0)
    assert ElpdDifference.of(torch.zeros(5)).ratio == 0.0
    assert ElpdDifference.of(torch.ones(5)).ratio == math.inf
    assert ElpdDifference.of(torch.ones(1)).ratio == 0.0  # one row is no evidence
