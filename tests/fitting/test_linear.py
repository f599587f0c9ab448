"""Linear-Gaussian fits against lavaan's full-information maximum likelihood."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from misscnf_study.worlds import load_scm

from misscnf import MissCNF
from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.draws import derive_generator
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.likelihood import observed_log_prob
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel, Structure

FIXTURES = Path(__file__).parents[1] / "fixtures"
TABLES = {
    "nhefs8": (
        """smokeintensity ~ sex + age
        qsmk ~ sex + age + smokeintensity
        wt71 ~ sex + age
        sbp ~ age + wt71 + sex
        cholesterol ~ age + sex
        wt82_71 ~ qsmk + sex + age + smokeintensity + wt71""",
        -19678.4193174118,
    ),
    "nocomplete4": ("b ~ a\nc ~ b\nd ~ c + b", -9847.9442337640),
}


def read(name):
    graph = CausalGraph.read(TABLES[name][0])
    return graph, pd.read_csv(FIXTURES / f"{name}.csv")


def fitted(graph, values, observed=None):
    """The linear fit of continuous columns."""
    observed = torch.ones_like(values).bool() if observed is None else observed
    structure = Structure.of(graph, [CONTINUOUS] * len(graph))
    found = fit_linear(structure, MemoryRows(values, observed))
    found.model.requires_grad_(requires_grad=False)
    return found


def lavaan_coefficients(name):
    """Returns {(child, parent): slope}, {node: intercept}, {node: variance}."""
    table = pd.read_csv(FIXTURES / f"{name}.lavaan_params.csv")
    slopes = {(r.lhs, r.rhs): r.est for r in table[table.op == "~"].itertuples()}
    intercepts = {r.lhs: r.est for r in table[table.op == "~1"].itertuples()}
    variances = {r.lhs: r.est for r in table[table.op == "~~"].itertuples() if r.lhs == r.rhs}
    return slopes, intercepts, variances


@pytest.mark.parametrize("name", TABLES)
def test_fit_reaches_the_log_likelihood_of_lavaan(name):
    graph, df = read(name)
    model = MissCNF(graph, preset="linear", kinds="continuous").fit(df)
    assert model.log_prob(df).sum() == pytest.approx(TABLES[name][1], abs=0.01)


@pytest.mark.parametrize("name", TABLES)
def test_rows_at_the_parameters_of_lavaan_equal_its_casewise_log_likelihood(name):
    graph, df = read(name)
    slopes, intercepts, variances = lavaan_coefficients(name)
    mechanisms = []
    for i, node in enumerate(graph.nodes):
        mechanism = Gaussian(len(graph.parents[i]))
        weights = [slopes[node, parent] for parent in graph.parents_of(node)]
        mechanism.set_line(intercepts[node], weights, variances[node] ** 0.5)
        mechanisms.append(mechanism)
    raw = torch.from_numpy(df[list(graph.nodes)].to_numpy())
    observed = ~raw.isnan()
    result = observed_log_prob(
        StructuralModel(graph, mechanisms),
        torch.nan_to_num(raw),
        Plan.make(graph, observed),
        derive_generator(0),
    )
    expected = np.loadtxt(FIXTURES / f"{name}.lavaan_casewise.txt")
    np.testing.assert_allclose(result.log_prob.detach().numpy(), expected, rtol=0, atol=1e-6)
    assert (result.standard_error == 0).all()


def test_estimates_where_no_row_is_complete_equal_those_of_lavaan():
    graph, df = read("nocomplete4")
    model = MissCNF(graph, preset="linear", kinds="continuous").fit(df).structural_model()
    slopes, intercepts, variances = lavaan_coefficients("nocomplete4")
    for i, node in enumerate(graph.nodes):
        form = model.mechanism(i).linear_form()
        for weight, parent in zip(form.weights, graph.parents_of(node), strict=True):
            assert float(weight) == pytest.approx(slopes[node, parent], abs=0.01)
        assert float(form.intercept) == pytest.approx(intercepts[node], abs=0.01)
        assert float(form.scale) ** 2 == pytest.approx(variances[node], abs=0.01)


def test_almost_collinear_parents_are_fitted_to_the_regression():
    """On complete data, maximum likelihood is least squares; x1 and x2 correlate by 0.995."""
    world = load_scm("triangle_lin")
    df = world.sample(2000, 0)
    fit = fitted(world.graph, torch.tensor(df.to_numpy()))
    form = fit.model.mechanism(2).linear_form()
    design = np.column_stack([np.ones(2000), df.x1, df.x2])
    expected = np.linalg.lstsq(design, df.x3, rcond=None)[0]
    found = [float(form.intercept), *form.weights.tolist()]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert fit.converged


def test_a_pair_never_seen_together_does_not_stop_at_zero_slopes():
    """a → b → c, a and b never together: the slope shows in the correlation of a and c."""
    generator = derive_generator(0, "pairs")
    u = torch.randn(4000, 3, generator=generator)
    a = u[:, 0]
    b = 0.9 * a + 0.4 * u[:, 1]
    c = 0.9 * b + 0.4 * u[:, 2]
    observed = torch.ones(4000, 3).bool()
    observed[:2000, 0] = False  # b and c
    observed[2000:, 1] = False  # a and c
    graph = CausalGraph.read("a -> b -> c")
    fit = fitted(graph, torch.stack([a, b, c], 1), observed)
    assert float(fit.model.mechanism(1).linear_form().weights) == pytest.approx(0.9, abs=0.06)


def test_a_deterministic_column_ends_at_the_smallest_scale():
    x = torch.randn(200, 1, generator=derive_generator(1))
    fit = fitted(CausalGraph.read("a -> b"), torch.cat([x, 2 * x], 1))
    assert 0 < float(fit.model.mechanism(1).linear_form().scale) < 1e-3
