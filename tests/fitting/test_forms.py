"""How rich each node is: forms, what starts from what, and noise that earns more than a bell."""

import numpy as np
import pandas as pd
import pytest
import torch

from misscnf import MissCNF
from misscnf.data.domains import CONTINUOUS, Binary
from misscnf.data.rows import MemoryRows
from misscnf.fitting.completions import Completions
from misscnf.fitting.fit import Fitted
from misscnf.fitting.select.forms import Form, build_model
from misscnf.fitting.select.given import Given
from misscnf.fitting.select.noise import choose_noise, noise_p_values
from misscnf.fitting.settings import Shape, preset_settings
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian, Ordinal, Spline
from misscnf.model import Structure

GRAPH = "a -> b; b -> c; a -> d"
FULL = Shape(hidden=(8,))


def table(rows=1500, seed=0):
    """a is skewed, the scale of b follows a, c has two peaks, d is linear and normal."""
    rng = np.random.default_rng(seed)
    a = np.exp(0.6 * rng.normal(size=rows))
    b = a + np.exp(0.8 * (a - 1.5)) * rng.normal(size=rows)
    c = 0.3 * b + rng.choice([-1.5, 1.5], size=rows) + 0.4 * rng.normal(size=rows)
    d = a + rng.normal(size=rows)
    df = pd.DataFrame({"a": a, "b": b, "c": c, "d": d})
    return df.mask(rng.random(df.shape) < 0.15)


@pytest.fixture(scope="module")
def model():
    kinds = "continuous"
    return MissCNF(
        GRAPH, kinds=kinds, settings={"epochs": 8, "selection.folds": 3}, progress=False
    ).fit(table())


@pytest.mark.parametrize(
    ("form", "name", "made"),
    [
        (Form(), "line", Gaussian(1)),
        (Form(mean=True), "network", Gaussian(1, (8,))),
        (Form(scale=True), "line, network scale", Gaussian(1, (), (32, 32))),
        (Form(mean=True, noise=True), "network, spline noise", Spline(1, (8,))),
    ],
)
def test_a_form_is_a_shape_with_a_name(form, name, made):
    found = form.shape(FULL, (32, 32)).build([CONTINUOUS])
    assert form.name == name
    assert type(found) is type(made)
    assert found.spec() == made.spec()


def test_discrete_nodes_have_no_scale_and_no_spline():
    found = Form(mean=True).shape(FULL).build([CONTINUOUS], Binary())
    assert isinstance(found, Ordinal)


def test_a_richer_model_starts_as_the_one_it_refines():
    graph = CausalGraph.read("a -> b")
    domains = [CONTINUOUS] * 2
    plain = build_model(Structure.of(graph, domains), FULL, seed=1)
    with torch.no_grad():
        plain.mechanism(1).mean.last.normal_(generator=torch.Generator().manual_seed(0))
    forms = [Form(noise=True), Form(mean=True, scale=True, noise=True)]
    rich = build_model(
        Structure.of(graph, domains), [form.shape(FULL) for form in forms], plain, seed=2
    )
    x = torch.randn(50, 2, generator=torch.Generator().manual_seed(3))
    for node in range(2):
        one, two = (
            m.mechanism(node).log_prob(x[:, node], m.parents_of(x, node)) for m in (plain, rich)
        )
        assert torch.allclose(one, two, atol=1e-5)


@pytest.mark.slow
def test_odd_noise_earns_its_form_and_normal_noise_does_not(model):
    forms = model.forms_
    assert forms["a"].noise
    assert forms["b"].scale
    assert forms["c"].noise
    assert str(forms["d"]) == "line"


def test_a_right_fit_asks_for_nothing():
    rng = np.random.default_rng(0)
    a = rng.normal(size=800)
    values = torch.tensor(np.stack([a, a + rng.normal(size=800)], 1))
    observed = torch.tensor(rng.random((800, 2)) > 0.2)
    graph, settings = CausalGraph.read("a -> b"), preset_settings("auto", {"epochs": 4})
    line = build_model(Structure.of(graph, [CONTINUOUS] * 2), Shape(hidden=())).double()
    line.mechanism(1).set_line(0.0, [1.0], 1.0)
    structure = Structure.of(graph, [CONTINUOUS] * 2)
    given = Given(structure, MemoryRows(values, observed), settings, 0)
    assert choose_noise(line, given) == {}


@pytest.mark.slow
def test_noise_that_no_row_shows_earns_nothing():
    # b rises three times as fast beyond |a| = 1.2, where a is hidden, and the fit does not know:
    # it takes a to lie far out. The rows that show a have nothing odd.
    rng = np.random.default_rng(0)
    a = rng.normal(size=3000)
    b = a + 2.0 * np.sign(a) * np.maximum(np.abs(a) - 1.2, 0.0) + 0.2 * rng.normal(size=3000)
    observed = torch.ones(3000, 2, dtype=torch.bool)
    observed[:, 0] = torch.tensor(np.abs(b) < 1.2)
    graph, settings = CausalGraph.read("a -> b"), preset_settings("auto")
    line = build_model(Structure.of(graph, [CONTINUOUS] * 2), Shape(hidden=())).double()
    line.mechanism(1).set_line(0.0, [1.0], 0.2)
    rows = torch.tensor(np.stack([a, b], 1)), observed
    completions = Completions.draw(line, MemoryRows(*rows), 8, torch.Generator().manual_seed(0))
    assert noise_p_values(line, completions)[0] < 1e-6  # it looks odd
    structure = Structure.of(graph, [CONTINUOUS] * 2)
    assert 0 not in choose_noise(line, Given(structure, MemoryRows(*rows), settings, 0))


@pytest.mark.slow
def test_asking_about_noise_leaves_the_fit_as_it_is():
    rng = np.random.default_rng(0)
    a = np.exp(rng.normal(size=600))  # odd, and b is not
    values = torch.tensor(np.stack([a, 0.1 + a / 3.0 + rng.normal(size=600)], 1))
    graph, settings = CausalGraph.read("a -> b"), preset_settings("auto", {"epochs": 2})
    line = build_model(Structure.of(graph, [CONTINUOUS] * 2), Shape(hidden=())).double()
    line.mechanism(1).set_line(0.1, [1.0 / 3.0], 1.0)
    before = {name: tensor.clone() for name, tensor in line.state_dict().items()}
    rows = MemoryRows(values, torch.ones(600, 2).bool())
    choose_noise(line, Given(Structure.of(graph, [CONTINUOUS] * 2), rows, settings, 0))
    for name, tensor in line.state_dict().items():
        assert torch.equal(tensor, before[name])


@pytest.mark.slow
def test_rich_noise_predicts_better_and_survives_a_save(model, tmp_path):
    new = table(seed=1)
    gaussian = MissCNF(GRAPH, kinds="continuous", preset="linear", progress=False).fit(table())
    elpd_difference = (model.log_prob(new) - gaussian.log_prob(new)).clip(
        -5, 5
    )  # a bell misses by far
    assert elpd_difference.mean() > 5 * elpd_difference.std() / len(elpd_difference) ** 0.5
    model.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    assert loaded.forms_ == model.forms_
    pd.testing.assert_frame_equal(loaded.sample(20), model.sample(20))


@pytest.mark.slow
def test_rich_noise_has_intervals(model):
    effect = model.effect("d", {"a": 2}, {"a": 1}, interval=0.9, replicates=5)
    assert effect.interval[0] < effect.estimate < effect.interval[1]
    assert effect.estimate == pytest.approx(1.0, abs=0.3)


@pytest.mark.slow
def test_epochs_of_both_trainings_are_counted_on(model):
    epochs = model.history_.epoch.tolist()
    assert epochs == sorted(set(epochs))


def test_linear_means_no_richer_form_at_all():
    assert Fitted(None, None, [], (Form(), Form())).chosen == "linear"
    assert Fitted(None, None, [], (Form(), Form(noise=True))).chosen == "network"
    assert Fitted(None, None, [], (Form(), Form(curve=(7, 1, 4)))).chosen == "curve"
    assert Fitted(None, None, [], (Form(mean=True), Form(curve=(7, 1, 4)))).chosen == "network"
