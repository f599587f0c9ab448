"""Products beside lines: groups differ as far as rows say so."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from misscnf import MissCNF
from misscnf.data.domains import CONTINUOUS, Binary, Categorical
from misscnf.data.rows import MemoryRows
from misscnf.fitting.completions import Completions
from misscnf.fitting.select.products import _Candidates, _spread
from misscnf.fitting.settings import Products
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import Efforts
from misscnf.inference.likelihood import observed_log_prob

GRAPH = "group, treated -> y"
LOOSE = {"products.spread": 50.0}
"""With so wide a prior the weights are not shrunk."""


def trial(outcome, rows=600, seed=0):
    """A randomised trial in which one group gains more, with an outcome of some kind."""
    rng = np.random.default_rng(seed)
    group, treated = rng.integers(0, 2, rows), rng.integers(0, 2, rows)
    eta = 0.4 * group + 0.3 * treated + 0.9 * group * treated - 0.5
    y = outcome(rng, eta)
    return pd.DataFrame({"group": group, "treated": treated, "y": y})


OUTCOMES = {
    "continuous": lambda rng, eta: eta + rng.normal(size=len(eta)),
    "binary": lambda rng, eta: (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(int),
    "count": lambda rng, eta: rng.poisson(np.exp(1.0 + eta)),
    "categorical": lambda rng, eta: np.array(["a", "b", "c"])[
        (eta + rng.logistic(size=len(eta)) > 0) + (rng.random(len(eta)) < 0.3).astype(int)
    ],
}


@pytest.mark.parametrize("kind", OUTCOMES)
def test_without_shrinkage_groups_have_the_means_of_their_cells(kind):
    """Two binary parents and their product are every function of both, so that the maximum of the
    likelihood is in each cell what its rows say, whatever the law."""
    df = trial(OUTCOMES[kind])
    model = MissCNF(GRAPH, kinds={"y": kind}, settings=LOOSE, progress=False).fit(df)
    assert model.interactions_ == ("y",)
    number = df["y"] == "c" if kind == "categorical" else df["y"]
    cells = number.astype(float).groupby([df["group"], df["treated"]]).mean()
    event = "c" if kind == "categorical" else None
    for group in (0, 1):
        found = model.effect(
            "y", {"treated": 1}, {"treated": 0}, where=f"group == {group}", event=event
        )
        tolerance = 4.0 * found.standard_error + 2e-3
        expected = cells[group, 1] - cells[group, 0]
        assert found.estimate == pytest.approx(expected, abs=tolerance)


def test_the_interval_of_a_group_is_that_of_its_cells():
    df = trial(OUTCOMES["continuous"])
    model = MissCNF(GRAPH, settings=LOOSE, progress=False).fit(df)
    found = model.effect(
        "y", {"treated": 1}, {"treated": 0}, where="group == 1", interval=0.95, replicates=400
    )
    parts = [df.y[(df.group == 1) & (df.treated == arm)] for arm in (0, 1)]
    error = np.sqrt(sum(part.var(ddof=0) / len(part) for part in parts))
    half = (found.interval[1] - found.interval[0]) / 2
    # the spread of 400 replicates is known within 3.5 % of itself, three times as much is allowed
    assert half == pytest.approx(1.966 * error, rel=0.11)


def test_the_effect_in_all_is_that_of_the_line():
    """What the line says is taken out of products, so that they leave it alone."""
    df = trial(OUTCOMES["continuous"])
    both = [
        MissCNF(GRAPH, settings={"products.keep": keep}, progress=False).fit(df)
        for keep in (False, True)
    ]
    line, products = (m.effect("y", {"treated": 1}, {"treated": 0}).estimate for m in both)
    assert products == pytest.approx(line, abs=0.01)


def test_holes_of_a_parent_are_still_integrated_in_closed_form():
    """With the discrete parent held there is a line in the hidden one: the closed form is the
    likelihood by quadrature."""
    rng = np.random.default_rng(3)
    df = pd.DataFrame({"t": rng.integers(0, 2, 300), "x": rng.normal(size=300)})
    df["y"] = df.x * (0.5 + df.t) + df.t + 0.5 * rng.normal(size=300)
    df.loc[rng.random(300) < 0.4, "x"] = np.nan
    df.loc[rng.random(300) < 0.2, "t"] = np.nan
    settings = {"selection.curves": False, "selection.noise": False}
    model = MissCNF("t, x -> y", settings=settings, progress=False).fit(df)
    assert model.interactions_ == ("y",)
    assert model.model_.mechanism(2).linear_form().slopes is not None
    table = model._read(df)
    plan = Plan.make(model.graph_, table.observed)
    effort = Efforts().evaluation
    exact, drawn = (
        observed_log_prob(
            model.model_, table.values, plan, torch.Generator().manual_seed(0), one
        ).log_prob
        for one in (effort, replace(effort, closed_form=False))
    )
    torch.testing.assert_close(exact, drawn, atol=0.02, rtol=0.0)


def test_the_size_of_weights_follows_the_evidence():
    """Scores of a product that is there ask for a wider prior than those of one that is not."""
    generator = torch.Generator().manual_seed(1)
    noise = torch.randn(1000, 1, generator=generator, dtype=torch.float64)
    noise = noise - noise.mean(0)
    settings = Products()
    none, _ = _spread(noise, 1000, settings)
    there, gain = _spread(noise + 0.2, 1000, settings)
    assert none < settings.spread < 1.5 * there
    assert gain > 10.0


class _Known:
    """What `_Candidates` asks of the choice."""

    def __init__(self, *domains):
        self.structure = type("S", (), {"parents_of": lambda _, block: domains})()
        self.settings = type("T", (), {"products": Products()})()


def test_pairs_have_a_parent_of_few_levels_unless_noise_is_not_normal():
    line, other = (type("L", (), {"normal_noise": normal})() for normal in (True, False))
    known = _Known(CONTINUOUS, CONTINUOUS, Binary(), Categorical(3))
    found = _Candidates.of(line, known, 0)
    pairs = set(zip(found.first.tolist(), found.second.tolist(), strict=True))
    assert pairs == {(0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4), (2, 3), (2, 4)}
    assert len(_Candidates.of(other, known, 0).pair) == 9


def test_how_far_a_product_goes_where_no_row_is():
    """By enumeration of its corners, less a line."""
    features = torch.tensor([[0.0, 0.0, 1.5], [1.0, 0.0, -2.0], [0.0, 1.0, 0.5]]).double()
    centre, tilt = features.mean(0), torch.arange(8.0).double().reshape(4, 2) / 7
    pairs = [(0, 1), (1, 2)]
    first, second = torch.tensor(pairs).unbind(1)
    found = _Candidates(first, second, torch.arange(2)).farthest(features, centre, tilt)
    for number, (i, j) in enumerate(pairs):
        corners = []
        for a in (features[:, i].min(), features[:, i].max()):
            for b in (features[:, j].min(), features[:, j].max()):
                x = centre.clone()
                x[i], x[j] = a, b
                line = tilt[0, number] + x @ tilt[1:, number]
                corners.append(abs((a - centre[i]) * (b - centre[j]) - line))
        assert float(found[number]) == pytest.approx(float(max(corners)))


def test_a_product_that_no_row_bounds_is_left_out():
    """No product may go as far as it does with a bound of nothing: none is left."""
    df = trial(OUTCOMES["continuous"])
    assert MissCNF(GRAPH, progress=False).fit(df).interactions_ == ("y",)
    bounded = MissCNF(GRAPH, settings={"products.farthest": 0.0}, progress=False).fit(df)
    assert bounded.interactions_ == ()


def test_completions_are_worth_their_share_of_a_row():
    df = trial(OUTCOMES["binary"], rows=40).astype(float)
    df.loc[:9, "group"] = np.nan
    kinds = {"y": "binary", "group": "binary", "treated": "binary"}
    model = MissCNF(GRAPH, "linear", kinds=kinds, progress=False).fit(df)
    table = model._read(df)
    rows = MemoryRows(table.values, table.observed)
    drawn = Completions.draw(model.model_, rows, 4, torch.Generator().manual_seed(0))
    cells = drawn.families(torch.arange(40)).nodes[2]
    assert float(cells.shares().sum()) == pytest.approx(40.0)
