"""Replicates of fits: sandwiches against statsmodels, information against closed forms."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import torch
from oracles import gaussian_total

from misscnf import MissCNF
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.completions import Completions
from misscnf.fitting.replicates import bootstrap_weights, replicate_fit, weights_standing_for
from misscnf.fitting.solve.sandwich import measure_information, one_step_replicates
from misscnf.model import Structure


def table(rows=400, seed=0, share=0.0):
    """A curved triangle; holes at random in two columns."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b = np.sin(a) + rng.normal(size=rows)
    c = a + b**2 / 2 + (1 + 0.5 * np.abs(b)) * rng.normal(size=rows)
    df = pd.DataFrame({"a": a, "b": b, "c": c})
    for name in ("a", "b"):
        df.loc[rng.random(rows) < share, name] = np.nan
    return df


GRAPH = "a -> b; a -> c; b -> c"


def fitted(df, preset="linear", graph=GRAPH, **settings):
    return MissCNF(graph, preset, progress=False, settings=settings).fit(df)


def places_of(model, start):
    """Where the parameters whose names start so stand in the vector of all."""
    names = [name for name, part in model.named_parameters() for _ in range(part.numel())]
    return [i for i, name in enumerate(names) if name.startswith(start)]


def completions_of(model, count=16):
    rows = model._table
    return Completions.draw(
        model.model_,
        MemoryRows(rows.values, rows.observed),
        count,
        derive_generator(0, "particles"),
    )


def test_on_complete_rows_the_sandwich_is_that_of_statsmodels():
    """Slopes of c by OLS with HC0 errors: the same estimator, so the same to rounding."""
    model = fitted(table())
    values = model._table.values.numpy()
    wanted = (
        sm.OLS(values[:, 2], sm.add_constant(values[:, :2])).fit().get_robustcov_results("HC0")
    )
    found = measure_information(model.model_, completions_of(model, 2))
    places = places_of(model.model_, "mechanisms.2.mean")
    covariance = found.covariance()[places][:, places].numpy()
    np.testing.assert_allclose(covariance, wanted.cov_params(), rtol=1e-4, atol=1e-9)


def test_with_a_binary_outcome_too():
    df = table()
    df["y"] = (df.c + np.random.default_rng(1).logistic(size=len(df)) > 0.5).astype(int)
    model = fitted(df, graph=GRAPH + "; c -> y; b -> y")
    values = model._table.values.numpy()
    features = (values[:, [1, 2]]).copy()
    wanted = sm.Logit(values[:, 3], sm.add_constant(features)).fit(disp=0, cov_type="HC0")
    found = measure_information(model.model_, completions_of(model, 2))
    places = places_of(model.model_, "mechanisms.3.")
    covariance = found.covariance()[places][:, places].numpy()
    np.testing.assert_allclose(covariance, wanted.cov_params(), rtol=1e-3)


def test_with_holes_the_information_is_the_curvature_of_the_closed_form():
    """Louis' identity by 512 completions, against second differences of the exact likelihood."""
    model = fitted(table(share=0.35))
    rows, structural = model._table, model.model_
    found = measure_information(structural, completions_of(model, 512))
    parameters = [p for m in structural.mechanisms for p in m.parameters()]

    def gradient():
        structural.requires_grad_(requires_grad=True)
        total = gaussian_total(structural, rows.values, rows.observed)
        found = torch.autograd.grad(total, parameters)
        structural.requires_grad_(requires_grad=False)
        return torch.cat([part.flatten() for part in found])

    curvature = torch.zeros_like(found.matrix)
    place = 0
    for parameter in parameters:
        for k in range(parameter.numel()):
            ends = []
            for step in (1e-4, -1e-4):
                parameter.view(-1)[k] += step
                ends.append(gradient())
                parameter.view(-1)[k] -= step
            curvature[place] = -(ends[0] - ends[1]) / 2e-4
            place += 1
    assert (found.matrix - curvature).abs().max() < 0.02 * curvature.abs().max()
    lost = measure_information(fitted(table()).model_, completions_of(fitted(table()), 2)).matrix
    assert torch.trace(found.matrix) < 0.9 * torch.trace(lost)  # holes cost information


@pytest.mark.slow
def test_replicates_spread_as_the_sandwich_says():
    """400 replicates: a spread has a standard error of 3.5 %; 15 % is more than 4 of them."""
    model = fitted(table(share=0.35))
    completions = completions_of(model, 64)
    weights = bootstrap_weights(400, len(completions), seed=3)
    models = one_step_replicates(model.model_, completions, weights)
    slopes = torch.stack([m.mechanism(2).mean.weight[0] for m in models])
    found = measure_information(model.model_, completions)
    places = places_of(model.model_, "mechanisms.2.mean.weight")
    wanted = found.covariance().diag().sqrt()[places]
    assert ((slopes.std(0) / wanted - 1).abs() < 0.15).all()


def test_what_the_table_says_nothing_of_stays_wide_and_finite():
    """b and c are never seen together: the slope between them is anyone's guess."""
    df = table()
    df.loc[:199, "b"], df.loc[200:, "c"] = np.nan, np.nan
    model = fitted(df)
    models = one_step_replicates(
        model.model_, completions_of(model, 32), bootstrap_weights(50, len(df), seed=3)
    )
    slopes = torch.stack([m.mechanism(2).mean.weight[0] for m in models])
    assert slopes.isfinite().all()


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["linear", "auto"])
def test_same_seed_same_replicates(preset):
    df = table(share=0.3)
    found = []
    for _ in range(2):
        networks = {"epochs": 2, "selection.compare": False} if preset == "auto" else {}
        model = fitted(df, preset, **networks)
        rows = model._table
        models = replicate_fit(
            model.model_,
            Structure.of(model.graph_, rows.schema.domains),
            MemoryRows(rows.values, rows.observed),
            model.settings_,
            seed=4,
            count=3,
        )
        found.append(torch.cat([p.flatten() for m in models for p in m.parameters()]))
    assert torch.equal(*found)
    assert found[0].isfinite().all()


def test_rows_that_stand_for_more_have_weights_that_spread_less():
    """Of 40,000 Gamma(10) weights the variance is known to 1.5 %, four times which is allowed."""
    weights = weights_standing_for(20, 2000, 20_000, seed=0)
    assert float(weights.mean()) == pytest.approx(1.0)
    assert float(weights.var()) == pytest.approx(0.1, rel=0.06)
    assert float(weights_standing_for(20, 2000, 2000, seed=0).var()) == pytest.approx(
        1.0, rel=0.06
    )


MANY = {
    "replicates.most_rows": 6000,
    "replicates.fewest_shares": 100.0,
    "streaming.information_rows": 6000,
}
ASK = {"do": {"t": 1}, "versus": {"t": 0}, "interval": 0.9}


def many_rows(treated):
    """Lines with normal noise, a cause of so many rows, and holes at random."""
    rng = np.random.default_rng(7)
    a, noise = rng.normal(size=(2, 8000))
    t = (rng.random(8000) < treated).astype(float)
    df = pd.DataFrame({"a": a, "t": t, "y": a + t + noise})
    df.loc[rng.random(8000) < 0.3, "y"] = np.nan
    return fitted(df, graph="a -> y; t -> y", **MANY)


def information_of(model):
    """What replicates of an answer by units of the model come from."""
    model.effect("y", **ASK)
    return model._cache.replicates[f"None {model._digest}"][0].information


def test_some_of_very_many_rows_stand_for_all_but_in_averages_over_them(tmp_path):
    """With m shares a standard error errs by 1/(2 √m): of 300, as here, 3 %; 12 % is four."""
    model = many_rows(treated=0.5)
    by_rows = model.effect("y", **ASK, population="rows").interval
    (every, _), *_ = model._cache.replicates.values()
    some = information_of(model)
    assert (len(some.scores), len(every.information.scores)) == (6000, 8000)
    ratio = (some.covariance().diag() / every.information.covariance().diag()).sqrt()
    assert ((ratio - 1).abs() < 0.12).all()
    assert some.scores.sum(0).abs().max() < 1e-6  # all rows are at the maximum
    assert model.effect("y", **ASK, population="rows").interval == by_rows
    by_model = model.effect("y", **ASK).interval
    model.save(tmp_path / "model")
    assert MissCNF.load(tmp_path / "model").effect("y", **ASK).interval == by_model


def test_where_few_of_very_many_rows_are_treated_all_are_asked():
    """Of 40 treated rows, 30 would be among those by chance: no more than 30 shares."""
    assert len(information_of(many_rows(treated=0.005)).scores) == 8000
