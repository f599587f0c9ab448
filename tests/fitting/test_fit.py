"""Whole fits: presets, choices, and fits that resume to the same bits."""

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
from misscnf_study.losses import ampute
from misscnf_study.worlds import load_scm

from misscnf import InputError, MissCNF
from misscnf.fitting.settings import PRESETS, Settings, preset_settings
from misscnf.inference.integrals import Effort
from misscnf.mechanisms import Shape

SMALL = {"epochs": 3, "shape": Shape(hidden=(8,))}


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


@pytest.mark.slow
def test_sharp_evidence_by_draws_fits_as_well_as_the_closed_form():
    """Two-pattern chain_lin: x1 hidden given x2 = 10 x1 − u2, a tenth of the prior's width."""
    world = load_scm("chain_lin")
    df = ampute(world.sample(20_000, 0), world.graph, "two_patterns", seed=0)
    drawn = Effort(closed_form=False)
    changes = {
        "shape": Shape(hidden=()),
        "linear_start": False,
        "selection.compare": False,
        "epochs": 25,
        "learning_rate": 2e-2,
        "integration.training": drawn,
        "integration.validation": drawn,
    }
    settings = preset_settings("auto", changes)
    by_draws = MissCNF(world.graph, preset=settings, progress=False).fit(df)
    solved = MissCNF(world.graph, preset="linear").fit(df)
    kl = [symmetric_kl(world.model, m.structural_model()) for m in (by_draws, solved)]
    assert abs(kl[0] - kl[1]) < 0.005


def table(rows=300):
    world = load_scm("triangle_nlin")
    return world.graph, ampute(world.sample(rows, 0), world.graph, "mar", 0.5, seed=0)


def parameters(model):
    return torch.cat([p.flatten() for p in model.model_.parameters()])


@pytest.mark.slow
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
import misscnf.fitting.train.loop as loop
from misscnf import MissCNF
from misscnf.mechanisms import Shape
def fit(table, checkpoint):
    settings = {"shape": Shape(hidden=(16,)), "epochs": 60, "selection.compare": False}
    model = MissCNF("x1 -> x2; x1 -> x3; x2 -> x3", settings=settings, progress=False)
    return model.fit(pd.read_csv(table), checkpoint=checkpoint)
if __name__ == "__main__":
    torch.set_num_threads(1)
    loop.SECONDS_BETWEEN_CHECKPOINTS = 0.0
    fit(*sys.argv[1:])
"""


@pytest.mark.slow
def test_a_fit_killed_by_kill_9_resumes_to_the_same_bits(tmp_path):
    _, df = table(500)
    df.to_csv(tmp_path / "table.csv", index=False)
    words = [str(tmp_path / "table.csv"), str(tmp_path / "killed")]
    process = subprocess.Popen([sys.executable, "-c", FIT_SCRIPT, *words])
    state = tmp_path / "killed" / "network" / "state.json"
    while process.poll() is None and _epochs(state) < 2:
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert 2 <= _epochs(state) < 60, "the fit was not killed in the middle"
    scope = {"__name__": "here"}
    exec(FIT_SCRIPT, scope)
    torch.set_default_dtype(torch.float32)  # as the other process has it
    whole, resumed = scope["fit"](words[0], None), scope["fit"](*words)
    torch.set_default_dtype(torch.float64)
    assert len(resumed.history_) == len(whole.history_) == 60
    assert torch.equal(parameters(whole), parameters(resumed))


def _epochs(state):
    return json.loads(state.read_bytes())["state"]["loop"]["epoch"] if state.exists() else 0


@pytest.mark.slow
def test_a_finished_checkpoint_gives_the_same_model_at_once(tmp_path):
    graph, df = table()
    settings = {**SMALL, "selection.compare": False}
    first = MissCNF(graph, settings=settings, progress=False).fit(df, checkpoint=tmp_path)
    again = MissCNF(graph, settings=settings, progress=False).fit(df, checkpoint=tmp_path)
    assert torch.equal(parameters(first), parameters(again))
    pd.testing.assert_frame_equal(first.history_, again.history_)


@pytest.mark.slow
def test_a_checkpoint_of_another_table_or_a_damaged_one_is_refused(tmp_path):
    graph, df = table()
    model = MissCNF(graph, settings={**SMALL, "selection.compare": False}, progress=False)
    model.fit(df, checkpoint=tmp_path)
    with pytest.raises(InputError, match="another table, graph or settings"):
        model.fit(df.iloc[1:], checkpoint=tmp_path)
    tensors = min(tmp_path.glob("*/*.safetensors"))
    tensors.write_bytes(tensors.read_bytes()[:-8])
    with pytest.raises(InputError, match="damaged"):
        model.fit(df, checkpoint=tmp_path)


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["auto", "paper"])
def test_presets_learn(preset):
    """Training raises the held-out likelihood well above the start."""
    world = load_scm("chain_nlin")
    df = ampute(world.sample(600, 0), world.graph, "mcar", 0.3, seed=0)
    effort = replace(PRESETS[preset].integration.training, draws=16 if preset == "paper" else 32)
    settings = {
        "epochs": 40,
        "training.batch": 128,
        "integration.training": effort,
        "selection.compare": False,
    }
    model = MissCNF(world.graph, preset=preset, settings=settings, progress=False).fit(df)
    history = model.history_.validation
    assert history.iloc[-1] > history.iloc[0] + 0.05
    assert np.isfinite(history).all()


def test_paper_preset_is_the_appendix():
    paper = PRESETS["paper"]
    training, effort = paper.training, paper.integration.training
    assert (training.epochs, training.batch, training.learning_rate) == (1000, 4096, 1e-3)
    assert (paper.shape.kind, paper.shape.hidden, paper.shape.activation) == (
        "affine",
        (64, 64),
        "relu",
    )
    assert (effort.draws, effort.independent, effort.adapt) == (512, True, False)
    assert (training.gradient, training.schedule) == ("pathwise", "plateau")
    assert paper.integration.joint


def test_settings_round_trip_and_unknown_ones_are_refused():
    for settings in PRESETS.values():
        assert Settings.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings
    with pytest.raises(InputError, match="no preset 'papr'"):
        preset_settings("papr")
    with pytest.raises(InputError, match="no setting 'epoch'"):
        preset_settings("auto", {"epoch": 3})
