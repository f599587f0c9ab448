"""Laws of Student's mechanism, against scipy's law; its tails are farther than a normal score."""

import json
import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from misscnf import InputError, MissCNF
from misscnf.mechanisms import Student


@pytest.fixture(params=[1.0, 2.5, 30.0])
def law(request):
    found = Student(1).requires_grad_(requires_grad=False)
    found.mean.bias.fill_(0.5)
    found.mean.weight.fill_(2.0)
    found.log_scale.fill_(math.log(0.7))
    found.log_freedom.fill_(math.log(request.param))
    return found


PARENTS = torch.tensor([[1.5]], dtype=torch.float64)


def scipy_law(law):
    return stats.t(law.tail_index, loc=3.5, scale=0.7)


def test_the_density_is_that_of_scipy(law):
    x = torch.linspace(-50.0, 50.0, 101)
    expected = torch.tensor(scipy_law(law).logpdf(x))
    torch.testing.assert_close(law.log_prob(x, PARENTS), expected)


def test_the_map_is_the_quantile_and_goes_both_ways(law):
    u = torch.linspace(-8.0, 8.0, 161)
    x = law.generate(u, PARENTS)
    assert (x.diff() > 0).all()
    near = u.abs() < 5.0
    expected = torch.tensor(scipy_law(law).ppf(stats.norm.cdf(u[near])))
    torch.testing.assert_close(x[near], expected, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(law.abduct(x, PARENTS), u, rtol=1e-7, atol=1e-7)


def test_a_spec_rebuilds_it_and_gradients_reach_every_parameter(law):
    again = Student(**json.loads(json.dumps(law.spec())))
    again.load_state_dict(law.state_dict())
    assert again.tail_index == law.tail_index
    again.log_prob(torch.linspace(-9.0, 9.0, 9), PARENTS).sum().backward()
    assert all(p.grad.isfinite().all() and (p.grad != 0).all() for p in again.parameters())


# Under Cauchy's noise


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(1)
    x = rng.normal(size=1500)
    t = (rng.random(1500) < 1 / (1 + np.exp(-x))).astype(int)
    df = pd.DataFrame({"x": x, "t": t, "y": t + x + rng.standard_cauchy(1500)})
    df = df.mask(rng.random(df.shape) < 0.2)
    return MissCNF("x -> t; x -> y; t -> y", "linear", progress=False).fit(df)


@pytest.mark.parametrize("statistic", ["median", "trimmed", 0.75])
def test_what_tails_do_not_move_is_found_under_them(model, statistic):
    """The truth of all is 1; one seed of intervals of 95 %."""
    arms = {"do": {"t": 1}, "versus": {"t": 0}}
    effect = model.effect("y", **arms, statistic=statistic, interval=0.95)
    assert effect.interval[0] < 1.0 < effect.interval[1]
    assert effect.interval[1] - effect.interval[0] < 0.8
    assert effect.statistic in effect.measure
    assert not effect.notes


def test_a_mean_that_does_not_exist_is_said_to(model):
    effect = model.effect("y", do={"t": 1}, versus={"t": 0})
    assert "a mean does not exist" in str(effect)
    assert "statistic='median'" in effect.notes[0]


def test_a_curve_has_statistics_too(model):
    curve = model.curve("y", "t", [0, 1], versus={"t": 0}, statistic="median", draws=2000)
    assert curve.estimate.tolist()[0] == 0.0
    assert curve.estimate[1] == pytest.approx(1.0, abs=0.4)
    about = {"measure": "median difference", "statistic": "median", "population": "model"}
    assert curve.attrs == {**about, "outcome": "y"}


@pytest.mark.parametrize("statistic", ["mode", 0.0, 1.5, True, None])
def test_other_statistics_are_refused(model, statistic):
    with pytest.raises(InputError, match="statistic is 'mean', 'median', 'trimmed' or a quantile"):
        model.effect("y", do={"t": 1}, statistic=statistic)


def test_levels_have_no_median(model):
    with pytest.raises(InputError, match="whose risks are compared"):
        model.effect("t", do={"x": 1.0}, statistic="median")
