"""A new kind of column in one file: shares, whose law is a beta regression.

    y ~ Beta(m κ, (1 − m) κ),   logit m = b + W x_pa,   κ = exp(k)

Three classes name the kind in their class lines: a `Domain` (what values can be, and how children
read them), a `Column` (between the user's cells and the model's numbers) and a `Mechanism` (the
law). Nothing else in the house knows of them; all it does with a column, it does with this one.
"""

import json
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import optimize, special, stats

from misscnf import InputError, MissCNF
from misscnf.data.codecs import Column
from misscnf.data.domains import Domain
from misscnf.data.table import Schema
from misscnf.mechanisms import Conditioner, Mechanism, read_parents


@dataclass(frozen=True)
class Share(Domain, kind="share", discrete=False):
    """A number between 0 and 1; children read it standardised."""

    location: float = 0.5
    scale: float = 0.25

    @property
    def states(self):
        return None

    @property
    def features(self):
        return 1

    def encode(self, x):
        return ((x - self.location) / self.scale)[..., None]


@dataclass(frozen=True)
class ShareColumn(Column, kinds=("share",)):
    """The codec: a share is itself."""

    name: str
    location: float
    scale: float

    shown_kind = request = "share"
    expected = "a number between 0 and 1, both left out"

    @classmethod
    def learn_numbers(cls, name, cells, dtype):
        return cls(name, float(cells.mean()), float(cells.std()))

    @property
    def domain(self):
        return Share(self.location, self.scale)

    def possible(self, raw):
        return np.isnan(raw) | ((raw > 0) & (raw < 1))


class Beta(Mechanism, name="beta", serves=("share",)):
    """The beta regression of a share."""

    def __init__(self, parents, domain):
        super().__init__()
        self.parents = read_parents(parents)
        self._domain = domain if isinstance(domain, Domain) else Domain.from_dict(domain)
        self.logit = Conditioner(self.parents, 1)
        self.log_precision = torch.nn.Parameter(torch.zeros(()))

    @classmethod
    def of_shape(cls, parents, domain, shape):
        return cls(parents, domain)

    @property
    def domain(self):
        return self._domain

    def shapes(self, parents):
        """The two parameters of the beta law."""
        mean, precision = torch.sigmoid(self.logit(parents)[..., 0]), self.log_precision.exp()
        return mean * precision, (1.0 - mean) * precision

    def log_prob(self, x, parents):
        a, b = self.shapes(parents)
        x = x.clamp(1e-9, 1.0 - 1e-9)
        beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
        return (a - 1.0) * x.log() + (b - 1.0) * torch.log1p(-x) - beta

    def generate(self, u, parents):
        a, b = (part.detach().double().numpy() for part in self.shapes(parents))
        found = special.betaincinv(a, b, special.ndtr(u.detach().double().numpy()))
        return torch.as_tensor(found).clamp(1e-9, 1.0 - 1e-9).to(u)

    def abduct(self, x, parents, generator=None):
        a, b = (part.detach().double().numpy() for part in self.shapes(parents))
        below = special.betainc(a, b, x.detach().double().numpy())
        return torch.as_tensor(special.ndtri(np.clip(below, 1e-15, 1 - 1e-15))).to(x)


GRAPH = "x -> y; y -> z; x -> z"


def table(rows=600, lost=0.25, seed=0):
    """y is a share with logit 0.3 + 0.8 x and precision 8; z = 2 y + x + noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    mean = special.expit(0.3 + 0.8 * x)
    y = rng.beta(8 * mean, 8 * (1 - mean))
    df = pd.DataFrame({"x": x, "y": y, "z": 2 * y + x + 0.3 * rng.normal(size=rows)})
    return df.mask(rng.random(df.shape) < lost)


@pytest.fixture(scope="module")
def model():
    kinds = {"x": "continuous", "y": "share", "z": "continuous"}
    return MissCNF(GRAPH, kinds=kinds, progress=False).fit(table())


def test_on_complete_rows_the_fit_is_that_of_a_beta_regression():
    """Maximised by another hand (Nelder and Mead), in the user's units."""
    df = table(lost=0.0)
    fit = MissCNF(GRAPH, kinds={"y": "share"}, preset="linear", progress=False).fit(df)

    def cost(theta):
        mean = special.expit(theta[0] + theta[1] * df.x)
        a, b = mean * np.exp(theta[2]), (1 - mean) * np.exp(theta[2])
        return -stats.beta.logpdf(df.y, a, b).sum()

    options = {"xatol": 1e-8, "fatol": 1e-10, "maxiter": 5000}
    best = optimize.minimize(cost, [0.0, 0.0, 1.0], method="Nelder-Mead", options=options).x
    law = fit.model_.mechanism(fit.graph_.index("y"))
    unit = fit.schema_.columns[fit.graph_.index("x")].unit
    slope = float(law.logit.weight[0, 0]) / unit.scale
    intercept = float(law.logit.bias[0]) - slope * unit.location
    assert [intercept, slope] == pytest.approx(best[:2].tolist(), abs=1e-3)
    assert float(law.log_precision) == pytest.approx(best[2], abs=1e-3)


@pytest.mark.slow
def test_with_holes_the_law_is_found_again(model):
    """Standard errors of the logit's numbers are about 0.04 with these holes, of log κ 0.07."""
    law = model.model_.mechanism(model.graph_.index("y"))
    unit = model.schema_.columns[model.graph_.index("x")].unit
    slope = float(law.logit.weight[0, 0]) / unit.scale
    assert slope == pytest.approx(0.8, abs=0.16)
    assert float(law.log_precision.exp()) == pytest.approx(8.0, rel=0.3)
    assert str(model.forms_["z"]) == "line"


@pytest.mark.slow
def test_draws_are_shares_and_interventions_go_through_them(model):
    drawn = model.sample(500)
    assert drawn.y.between(0, 1, inclusive="neither").all()
    effect = model.effect("z", do={"y": 0.8}, versus={"y": 0.2}, interval=0.9)
    assert effect.interval[0] < 1.2 < effect.interval[1]
    completed = model.impute(table(), draws=1)
    assert completed.y.between(0, 1, inclusive="neither").all()


@pytest.mark.slow
def test_a_saved_share_answers_as_before(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    pd.testing.assert_series_equal(
        loaded.log_prob(table()), model.log_prob(table()), check_exact=True
    )
    pd.testing.assert_frame_equal(loaded.sample(20), model.sample(20), check_exact=True)
    again = Schema.from_dict(json.loads(json.dumps(model.schema_.to_dict())))
    assert again == model.schema_


def test_what_is_no_share_is_refused_in_words():
    df = table(50)
    df.loc[3, "y"] = 1.5
    with pytest.raises(InputError, match=r"asked to be 'share' and has 1\.5 in the row"):
        MissCNF(GRAPH, kinds={"y": "share"}, progress=False).fit(df)


def test_noise_and_value_go_both_ways(model):
    law = model.model_.mechanism(model.graph_.index("y")).double()
    u = torch.linspace(-3.0, 3.0, 25, dtype=torch.float64)
    parents = torch.linspace(-1.0, 1.0, 25, dtype=torch.float64)[:, None]
    torch.testing.assert_close(law.abduct(law.generate(u, parents), parents), u)
