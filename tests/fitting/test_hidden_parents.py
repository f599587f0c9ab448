"""Curves beside hidden causes: their closed forms, and who earns one."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from misscnf import MissCNF
from misscnf.data.domains import CONTINUOUS
from misscnf.data.domains import Latent as Hidden
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.settings import Curves
from misscnf.fitting.smooth.basis import find_basis, fit_curve
from misscnf.fitting.solve.exact import without_networks
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals.closed_form import linear_gaussian
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Gaussian, Latent, Shape
from misscnf.model import StructuralModel, Structure

GRAPH = CausalGraph.read("u -> a; u -> t; u -> y; t -> y", None, ["u"])


@pytest.fixture(scope="module")
def basis():
    """A curve in one feature."""
    generator = derive_generator(0, "rows")
    x = torch.randn(300, 1, generator=generator, dtype=torch.float64)
    y = x[:, 0].square() + 0.3 * torch.randn(300, generator=generator, dtype=torch.float64)
    return find_basis(x, y, 300, 300, generator, Curves()), x, y


@pytest.fixture(scope="module")
def bent(basis):
    """y = 0.8 u + c(t) + noise beside a = u + noise and t = 0.5 u + noise."""
    found, x, y = basis
    own, (at_u, at_t) = fit_curve(found, Gaussian(1).parents, x, y), (0, 1)
    law = found.among([at_t], 2).mechanism(Gaussian(2).parents)
    with torch.no_grad():
        law.mean.bias.copy_(own.mean.bias)
        law.mean.weight[0, at_t], law.mean.weight[0, at_u] = own.mean.weight[0, 0], 0.8
        law.mean.curve.weight.copy_(own.mean.curve.weight)
        law.log_scale.bias.fill_(np.log(0.5))
    lines = [Gaussian(1).double(), Gaussian(1).double()]
    lines[0].set_line(0.0, [1.0], 0.7)
    lines[1].set_line(0.1, [0.5], 0.9)
    model = StructuralModel(GRAPH, [Latent(0).double(), *lines, law])
    return model.requires_grad_(requires_grad=False), own


def test_a_curve_among_more_features_is_the_same_and_a_line_in_the_others(bent):
    model, own = bent
    parents = torch.randn(50, 2, generator=derive_generator(1, "parents"), dtype=torch.float64) * 3
    zero = torch.zeros(50, dtype=torch.float64)
    apart = model.mechanism(3).generate(zero, parents) - own.generate(zero, parents[:, 1:])
    assert torch.allclose(apart, 0.8 * parents[:, 0], atol=1e-10)
    assert model.mechanism(3).linear_form().held == (1,)
    assert not model.mechanism(3).interact(0, 1)


def test_the_likelihood_beside_a_hidden_cause_is_a_closed_form_where_the_bent_parent_is_shown(
    bent,
):
    model, _ = bent
    values = torch.tensor([[0.0, 0.3, -1.2, 1.5], [0.0, 0.3, 0.0, 1.5]], dtype=torch.float64)
    observed = torch.tensor([[False, True, True, True], [False, True, False, True]])
    plan = Plan.make(GRAPH, observed)
    assert linear_gaussian(model, plan.components()).tolist() == [True, False]
    found = observed_log_prob(model, values, plan, derive_generator(0, "rows"))

    grid = torch.linspace(-6.0, 6.0, 241, dtype=torch.float64)
    u, t = (axis.flatten() for axis in torch.meshgrid(grid, grid, indexing="ij"))

    def total(row, u, t):
        a, y = values[row, [1, 3], None].expand(2, len(u))
        return float(model.log_prob(torch.stack([u, a, t, y], 1)).exp().sum())

    one = total(0, grid, torch.full_like(grid, -1.2)) * 0.05
    assert float(found.log_prob[0]) == pytest.approx(np.log(one), abs=1e-8)
    assert float(found.standard_error[0]) == 0.0
    assert float(found.log_prob[1]) == pytest.approx(np.log(total(1, u, t) * 0.05**2), abs=0.02)


def test_a_network_of_a_family_that_rows_show_is_a_factor_by_itself():
    """The rest of the likelihood is that of a model without it, with the same mechanisms."""
    graph = CausalGraph.read("u -> a; u -> b; u -> c; a -> z; b -> z; z -> c", None, ["u"])
    domains = [Hidden(), *[CONTINUOUS] * 4]
    structure = Structure.of(graph, domains)
    z = graph.nodes.index("z")
    shapes = [Shape(hidden=(4,) if nodes[0] == z else ()) for nodes in structure.blocks]
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(0)
        model = structure.build(shapes).double()
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    values = torch.randn(20, 5, generator=derive_generator(0, "v"), dtype=torch.float64)
    observed = torch.ones(20, 5, dtype=torch.bool)
    observed[:, 0] = False
    observed[3:9, graph.nodes.index("c")] = False
    rows = MemoryRows(values, observed)
    rest = without_networks(model, structure, rows)
    moved = [p for block in (1, 2) for p in rest.block(block).parameters()]
    of_model = [p for block in (1, 2) for p in model.block(block).parameters()]
    assert all(one is other for one, other in zip(moved, of_model, strict=True))

    def left(of):
        """The log-density of what rows show, less that of z."""
        found = observed_log_prob(of, values, Plan.of(of.graph, rows), derive_generator(0, "r"))
        own, parents = of.family_of(values, z, torch.arange(20))
        return found.log_prob - of.mechanism(z).log_prob(own, parents)

    torch.testing.assert_close(left(rest), left(model), atol=1e-10, rtol=0)
    observed[0, z] = False
    assert without_networks(model, structure, MemoryRows(values, observed)) is None


@pytest.fixture(scope="module")
def rows():
    """A hidden cause of a, b, t, y and d: y is bent in t, and d in the hidden cause."""
    rng = np.random.default_rng(0)
    u, *noise = rng.normal(size=(6, 800))
    a, b = (u + 0.5 * noise[k] for k in range(2))
    t = u + noise[2]
    y = np.sin(1.5 * t) + 0.8 * u + 0.4 * noise[3]
    d = u + 0.7 * u**2 + 0.5 * noise[4]
    return pd.DataFrame({"a": a, "b": b, "t": t, "y": y, "d": d})


@pytest.fixture(scope="module")
def fitted(rows):
    graph = "u -> a; u -> b; u -> t; u -> y; t -> y; u -> d"
    return MissCNF(graph, latent=["u"], progress=False).fit(rows)


@pytest.mark.slow
def test_who_is_bent_gets_a_curve_in_shown_and_in_hidden_parents(fitted):
    assert {name for name, form in fitted.forms_.items() if form.richness == "curve"} == {"y", "d"}


@pytest.mark.slow
def test_an_effect_beside_a_hidden_cause_follows_the_curve(fitted):
    """sin(1.5 t) at 1 less at −1 is 2.0; a regression on t alone, and a line, are off by 0.6."""
    effect = fitted.effect("y", do={"t": 1.0}, versus={"t": -1.0}, interval=0.95)
    truth = 2.0 * np.sin(1.5)
    assert effect.interval is not None
    spread = (effect.interval[1] - effect.interval[0]) / 3.92
    assert spread < 0.1
    # three standard errors: one seed in 370
    assert abs(effect.estimate - truth) < stats.norm.isf(0.00135) * spread


@pytest.mark.slow
def test_a_curve_of_a_hidden_cause_is_saved_and_answers_the_same(fitted, rows, tmp_path):
    fitted.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    few = rows.head(20)
    assert np.array_equal(loaded.log_prob(few), fitted.log_prob(few))
    assert loaded.forms_ == fitted.forms_


@pytest.mark.slow
def test_levels_beside_a_hidden_cause_keep_their_line_and_it_is_said_where_rows_ask_for_more(
    caplog,
):
    """k bends in u, j does not: it is accused in 5 of 1,000 tables, and the seed is fixed."""
    rng = np.random.default_rng(1)
    u, *noise = rng.normal(size=(5, 500))
    df = pd.DataFrame({name: u + 0.5 * noise[at] for at, name in enumerate("abc")})
    for name, logit in {"k": u + 1.5 * (u**2 - 1.0), "j": u}.items():
        df[name] = (rng.random(500) < 1.0 / (1.0 + np.exp(-logit))).astype(float)
    graph, settings = "u -> a; u -> b; u -> c; u -> k; u -> j; k -> c", {"selection.noise": False}
    model = MissCNF(graph, latent=["u"], settings=settings, progress=False).fit(df)
    assert model.forms_["k"].richness == "linear"
    assert {name: found["beside"] for name, found in model.rough_.items()} == {"k": "u"}
    assert "rows ask for more than a line at k" in caplog.text
    (note,) = (
        n for n in model.effect("k", do={"u": 1}, versus={"u": 0}).notes if "line at k" in n
    )
    assert "keep the (generalised) linear form" in note
    assert not any("line at" in n for n in model.effect("a", do={"u": 1}, versus={"u": 0}).notes)
