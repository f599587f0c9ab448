"""Gradients against autograd and closed forms; training that resumes to the same bits."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from misscnf.fitting.train.schedule import OneCycle, Plateau
from misscnf_study.losses import ampute
from misscnf_study.worlds import load_scm

from misscnf import InputError, MissCNF
from misscnf.data.domains import CONTINUOUS
from misscnf.draws import derive_generator
from misscnf.fitting.settings import PRESETS, Settings, preset_settings
from misscnf.fitting.threads import one_thread
from misscnf.fitting.train.objective import (
    complete_family_gradient,
    fisher_gradient,
    pathwise_gradient,
)
from misscnf.graph import CausalGraph
from misscnf.inference.elimination import Plan
from misscnf.inference.integrals import ALGORITHM_1, Effort, integrate
from misscnf.inference.likelihood import free_log_prob
from misscnf.mechanisms import Shape
from misscnf.model import Structure

GRAPH = CausalGraph.read("a -> b; a -> c; b -> c; c -> d")
SMALL = {"epochs": 3, "shape": Shape(hidden=(8,))}


def incomplete_rows(rows=60):
    generator = derive_generator(0, "rows")
    values = torch.randn(rows, 4, generator=generator)
    return values, torch.rand(rows, 4, generator=generator) < 0.6


def model_of(shape, scale=1.0):
    model = Structure.of(GRAPH, [CONTINUOUS] * len(GRAPH)).build(shape)
    generator = derive_generator(0, "parameters")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(scale * torch.randn(parameter.shape, generator=generator))
    return model


def gradient_vector(model):
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def exact_gradient(model, values, plan):
    """Back-propagates the closed form."""
    model.zero_grad()
    log_prob = free_log_prob(model, values, plan).sum()
    for integral in integrate(model, values, plan.components(), Effort(), derive_generator(0)):
        log_prob = log_prob + integral.log_integral().sum()
    (-log_prob / len(values)).backward()
    return gradient_vector(model)


def test_fisher_gradient_is_the_gradient_of_the_closed_form():
    """Mean of 400 estimates, each coordinate within 5 standard errors: error rate 1e-5 in all."""
    model = model_of(Shape(hidden=()), scale=0.5)
    values, observed = incomplete_rows()
    plan = Plan.make(GRAPH, observed)
    exact = exact_gradient(model, values, plan)
    estimates = []
    for seed in range(400):
        model.zero_grad()
        fisher_gradient(model, values, plan, Effort(), 2, derive_generator(seed))
        estimates.append(gradient_vector(model).clone())
    estimates = torch.stack(estimates)
    error = estimates.std(0) / len(estimates) ** 0.5
    assert ((estimates.mean(0) - exact).abs() <= 5 * error + 1e-12).all()
    assert exact.norm() > 0.1


def test_fisher_gradient_by_draws_is_nearly_that_of_the_closed_form():
    """Many completions of drawn components: what is left is the bias of their weights."""
    model = model_of(Shape(hidden=()), scale=0.5)
    values, observed = incomplete_rows()
    plan = Plan.make(GRAPH, observed)
    exact = exact_gradient(model, values, plan)
    model.zero_grad()
    effort = Effort(draws=512, least_effective=256, closed_form=False)
    fisher_gradient(model, values, plan, effort, 2000, derive_generator(1))
    assert (gradient_vector(model) - exact).norm() < 0.02 * exact.norm()


def test_fisher_gradient_of_complete_rows_is_exact_and_needs_no_draws():
    model = model_of(Shape(hidden=(8,)), scale=0.3)
    values = torch.randn(20, 4, generator=derive_generator(2))
    plan = Plan.make(GRAPH, torch.ones(20, 4).bool())
    report = fisher_gradient(model, values, plan, Effort(), 2, derive_generator(0))
    found = gradient_vector(model).clone()
    model.zero_grad()
    mean = model.log_prob(values).mean()
    (-mean).backward()
    torch.testing.assert_close(found, gradient_vector(model))
    assert report.log_prob == pytest.approx(float(mean.detach()))


def test_shown_gradient_is_that_of_the_families_without_holes():
    model = model_of(Shape(hidden=(8,)), scale=0.3)
    values, observed = incomplete_rows()
    complete_family_gradient(model, values, Plan.make(GRAPH, observed), range(4))
    found = gradient_vector(model).clone()
    model.zero_grad()
    total = torch.zeros(())
    for node, parents in enumerate(GRAPH.parents):
        whole = observed[:, [node, *parents]].all(1)
        assert 0 < int(whole.sum()) < len(values)
        rows = values[whole]
        total = total + model.mechanism(node).log_prob(rows[:, node], rows[:, parents]).sum()
    (-total / len(values)).backward()
    torch.testing.assert_close(found, gradient_vector(model))


def test_a_family_that_no_row_shows_keeps_its_start():
    model = model_of(Shape(hidden=(8,)), scale=0.3)
    values, observed = incomplete_rows()
    observed[:, 3] &= ~observed[:, 2]  # c and d are never seen together
    complete_family_gradient(model, values, Plan.make(GRAPH, observed), range(4))
    assert moved(model) == [True, True, True, False]


def moved(model):
    return [any(p.grad is not None for p in model.mechanism(i).parameters()) for i in range(4)]


def test_shown_gradient_is_of_the_nodes_that_are_asked_for():
    model = model_of(Shape(hidden=(8,)), scale=0.3)
    values, observed = incomplete_rows()
    complete_family_gradient(model, values, Plan.make(GRAPH, observed), {1, 3})
    assert moved(model) == [False, True, False, True]


SHOWN = {
    "complete": (0.0, 2000, [True] * 6),
    "with holes": (0.3, 3000, [False] * 2 + [True] * 4),
    "few families": (0.3, 1500, [True] * 4),
}


@pytest.mark.parametrize("name", SHOWN)
def test_a_fit_begins_with_shown_families_where_they_are_many(name):
    """An epoch that only learns from shown families knows no likelihood of the training rows."""
    rate, rows, known = SHOWN[name]
    df = load_scm("chain_nlin").sample(rows, seed=0)
    df = df.mask(np.random.default_rng(0).random(df.shape) < rate)
    settings = {"epochs": 4, "shape": Shape(hidden=(8,)), "selection.compare": False}
    model = MissCNF("x1 -> x2 -> x3", settings=settings, progress=False).fit(df)
    assert model.history_.train.notna().tolist() == known


def test_pathwise_gradient_is_that_of_the_estimate_with_the_same_draws():
    """Finite differences of log p̂ under common random numbers."""
    model = model_of(PRESETS["paper"].shape, scale=0.2)
    values, observed = incomplete_rows(30)
    plan = Plan.make(GRAPH, observed, joint=True)
    effort = replace(ALGORITHM_1, draws=32)
    pathwise_gradient(model, values, plan, effort, derive_generator(3))
    analytic = gradient_vector(model).clone()
    direction = torch.randn(len(analytic), generator=derive_generator(4))
    sides = []
    for step in (1e-7, -1e-7):
        moved = model_of(PRESETS["paper"].shape, scale=0.2)
        start = torch.nn.utils.parameters_to_vector(moved.parameters())
        torch.nn.utils.vector_to_parameters(start + step * direction, moved.parameters())
        sides.append(pathwise_gradient(moved, values, plan, effort, derive_generator(3)).log_prob)
    slope = -(sides[0] - sides[1]) / 2e-7
    assert slope == pytest.approx(float(analytic @ direction), rel=1e-5)


def symmetric_kl(truth, model):
    """Of two linear-Gaussian models, in closed form."""

    def moments(structural):
        forms = structural.linear_forms()
        d = len(forms)
        slopes = torch.zeros(d, d)
        for i, form in enumerate(forms):
            slopes[i, list(structural.graph.parents[i])] = form.weights
        total = torch.linalg.inv(torch.eye(d) - slopes)
        mean = total @ torch.stack([form.intercept for form in forms])
        scaled = total * torch.stack([form.scale for form in forms])
        return torch.distributions.MultivariateNormal(mean, scaled @ scaled.T)

    p, q = moments(truth), moments(model)
    kl = torch.distributions.kl_divergence
    return float(kl(p, q) + kl(q, p))


def test_sharp_evidence_by_draws_fits_as_well_as_the_closed_form():
    """Two-pattern chain_lin: x1 hidden given x2 = 10 x1 − u2, a tenth of the prior's width."""
    world = load_scm("chain_lin")
    df = ampute(world.sample(20_000, 0), world.graph, "two_patterns", seed=0)
    drawn = Effort(closed_form=False)
    settings = Settings(
        shape=Shape(hidden=()),
        linear_start=False,
        compare_linear=False,
        epochs=25,
        learning_rate=2e-2,
        effort=drawn,
        validation_effort=drawn,
    )
    by_draws = MissCNF(world.graph, preset=settings, progress=False).fit(df)
    solved = MissCNF(world.graph, preset="linear").fit(df)
    kl = [symmetric_kl(world.model, m.structural_model()) for m in (by_draws, solved)]
    assert abs(kl[0] - kl[1]) < 0.005


def table(rows=300):
    world = load_scm("triangle_nlin")
    return world.graph, ampute(world.sample(rows, 0), world.graph, "mar", 0.5, seed=0)


def parameters(model):
    return torch.cat([p.flatten() for p in model.model_.parameters()])


def test_same_seed_same_bits_and_another_seed_other_bits():
    graph, df = table()
    settings = {**SMALL, "selection.compare": False}
    fits = [
        parameters(MissCNF(graph, seed=seed, settings=settings, progress=False).fit(df))
        for seed in (0, 0, 1)
    ]
    assert torch.equal(fits[0], fits[1])
    assert not torch.equal(fits[0], fits[2])


FIT_SCRIPT = """
import sys, torch, pandas as pd
torch.set_num_threads(1)
from misscnf import MissCNF
from misscnf.mechanisms import Shape
import misscnf.fitting.train.loop as loop
loop.SECONDS_BETWEEN_CHECKPOINTS = 0.0
df = pd.read_csv(sys.argv[1])
settings = {"shape": Shape(hidden=(16,)), "epochs": 60, "selection.compare": False}
model = MissCNF("x1 -> x2; x1 -> x3; x2 -> x3", settings=settings, progress=False)
model.fit(df, checkpoint=sys.argv[2]).save(sys.argv[3])
"""


def test_a_fit_killed_by_kill_9_resumes_to_the_same_bits(tmp_path):
    _, df = table(2000)
    df.to_csv(tmp_path / "table.csv", index=False)

    def command(checkpoint, out):
        arguments = [str(tmp_path / "table.csv"), str(tmp_path / checkpoint), str(tmp_path / out)]
        return [sys.executable, "-c", FIT_SCRIPT, *arguments]

    subprocess.run(command("uninterrupted", "whole"), check=True)
    process = subprocess.Popen(command("killed", "resumed"))
    state = tmp_path / "killed" / "network" / "state.json"
    while process.poll() is None and _epochs(state) < 5:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 5 <= _epochs(state) < 60, "the fit was not killed in the middle"
    assert not (tmp_path / "resumed").exists()
    subprocess.run(command("killed", "resumed"), check=True)
    saved = [
        (tmp_path / name / "parameters.safetensors").read_bytes() for name in ("whole", "resumed")
    ]
    assert saved[0] == saved[1]


def _epochs(state):
    return json.loads(state.read_bytes())["state"]["loop"]["epoch"] if state.exists() else 0


def test_a_finished_checkpoint_gives_the_same_model_at_once(tmp_path):
    graph, df = table()
    settings = {**SMALL, "selection.compare": False}
    first = MissCNF(graph, settings=settings, progress=False).fit(df, checkpoint=tmp_path)
    again = MissCNF(graph, settings=settings, progress=False).fit(df, checkpoint=tmp_path)
    assert torch.equal(parameters(first), parameters(again))
    pd.testing.assert_frame_equal(first.history_, again.history_)


def test_a_checkpoint_of_another_table_or_a_damaged_one_is_refused(tmp_path):
    graph, df = table()
    MissCNF(graph, settings=SMALL, progress=False).fit(df, checkpoint=tmp_path)
    with pytest.raises(InputError, match="another table, graph or settings"):
        MissCNF(graph, settings=SMALL, progress=False).fit(df.iloc[1:], checkpoint=tmp_path)
    tensors = min(tmp_path.glob("*/*.safetensors"))
    tensors.write_bytes(tensors.read_bytes()[:-8])
    with pytest.raises(InputError, match="damaged"):
        MissCNF(graph, settings=SMALL, progress=False).fit(df, checkpoint=tmp_path)


def test_auto_costs_little_on_linear_data_and_finds_the_curves():
    """A node of a linear world has a small chance to be bent. It may cost as much as the
    line's own estimation error, 7 parameters / (2 · 2000 rows) = 0.0018 nats a row, no more."""
    models = {}
    for name in ("chain_lin", "chain_nlin"):
        world = load_scm(name)
        df = ampute(world.sample(2000, 0), world.graph, "mcar", 0.3, seed=0)
        models[name] = MissCNF(world.graph, settings={"epochs": 15}, progress=False).fit(df)
        line = MissCNF(world.graph, "linear", progress=False).fit(df)
        fresh = world.sample(10_000, 1)
        elpd_difference = models[name].score(fresh) - line.score(fresh)
        assert elpd_difference > (-0.0018 if name == "chain_lin" else 0.1)
    assert models["chain_nlin"].curves_ == ("x2", "x3")
    assert models["chain_nlin"].networks_ == ()


@pytest.mark.parametrize("preset", ["auto", "paper"])
def test_presets_learn(preset):
    """Training raises the held-out likelihood well above the start."""
    world = load_scm("chain_nlin")
    df = ampute(world.sample(600, 0), world.graph, "mcar", 0.3, seed=0)
    effort = replace(PRESETS[preset].effort, draws=16 if preset == "paper" else 32)
    settings = {
        "epochs": 40,
        "batch": 128,
        "integration.training": effort,
        "selection.compare": False,
    }
    model = MissCNF(world.graph, preset=preset, settings=settings, progress=False).fit(df)
    history = model.history_.validation
    assert history.iloc[-1] > history.iloc[0] + 0.05
    assert np.isfinite(history).all()


def test_paper_preset_is_the_appendix():
    paper = PRESETS["paper"]
    assert (paper.epochs, paper.batch, paper.learning_rate) == (1000, 4096, 1e-3)
    assert (paper.shape.kind, paper.shape.hidden, paper.shape.activation) == (
        "affine",
        (64, 64),
        "relu",
    )
    assert (paper.effort.draws, paper.effort.independent, paper.effort.adapt) == (512, True, False)
    assert (paper.gradient, paper.joint, paper.schedule) == ("pathwise", True, "plateau")


def test_settings_round_trip_and_unknown_ones_are_refused():
    for settings in PRESETS.values():
        assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    with pytest.raises(InputError, match="no preset 'papr'"):
        preset_settings("papr")
    with pytest.raises(InputError, match="no setting 'epoch'"):
        preset_settings("auto", {"epoch": 3})


def test_one_cycle_rises_to_its_peak_and_falls_to_almost_nothing():
    rates = [OneCycle(1.0, 100).rate(step) for step in range(100)]
    assert max(rates) == pytest.approx(1.0)
    assert rates.index(max(rates)) == 15
    assert rates[0] < 0.05
    assert rates[-1] < 0.005


def test_plateau_follows_torch():
    ours = Plateau(1.0, patience=3)
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.SGD([parameter], lr=1.0)
    theirs = torch.optim.lr_scheduler.ReduceLROnPlateau(optimiser, factor=0.95, patience=3)
    losses = np.random.default_rng(0).normal(size=60).cumsum() + 20
    for loss in losses:
        ours.observe(-loss)
        theirs.step(loss)
        assert ours.rate(0) == pytest.approx(optimiser.param_groups[0]["lr"])


def test_training_has_one_thread_and_gives_the_others_back():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
        with pytest.raises(InputError):
            one_thread()(preset_settings)("no such preset")
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
