"""Line, curve or network: who gets what, and that curves are fitted, saved and replicated."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from oracles import gaussian_process
from scipy.stats import norm

import misscnf.fitting.replicates as replicates_home
import misscnf.fitting.select.curves as curves_home
import misscnf.fitting.select.means as means_home
import misscnf.fitting.smooth.basis as basis_home
import misscnf.fitting.train.loop as loop_home
from misscnf import MissCNF, options
from misscnf.cli.fit import chosen_sentence
from misscnf.data.domains import CONTINUOUS
from misscnf.data.rows import MemoryRows
from misscnf.fitting.elpd import ElpdDifference
from misscnf.fitting.fit import fit_model
from misscnf.fitting.replicates import replicate_fit
from misscnf.fitting.select.curves import CurveTrial, Family
from misscnf.fitting.select.given import Given
from misscnf.fitting.select.means import choose_means
from misscnf.fitting.settings import Curves, Shape, preset_settings
from misscnf.fitting.smooth.basis import find_basis, fit_curve
from misscnf.fitting.solve.generalised_linear import fit_linear
from misscnf.fitting.solve.sandwich import Information
from misscnf.fitting.train.ensemble import CompletionLikelihood
from misscnf.graph import CausalGraph
from misscnf.mechanisms import Gaussian
from misscnf.model import StructuralModel, Structure
from misscnf.report.verdicts import held_out_sentence

GRAPH = CausalGraph.read("a -> b; b -> c")
STRUCTURE = Structure.of(GRAPH, [CONTINUOUS] * 3)
SETTINGS = preset_settings("auto", {"epochs": 10})


def table(rows=1000, seed=0, share=0.0, form=np.square):
    """b is a form of a, c a line of b; some of b and c is lost."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=rows)
    b = form(a) + 0.5 * rng.normal(size=rows)
    df = pd.DataFrame({"a": a, "b": b, "c": b + rng.normal(size=rows)})
    for name in ("b", "c"):
        df.loc[rng.random(rows) < share, name] = np.nan
    return df


def pair(df):
    values = torch.tensor(df.to_numpy())
    return values.nan_to_num(), ~values.isnan()


def chosen_means(df, *, networks=True):
    """What the means of a table are; the sieve lets everything pass."""
    every = {"selection.curve_p_value": 1.1, "selection.network_p_value": 1.1}
    given = Given(STRUCTURE, MemoryRows(*pair(df)), options.change(SETTINGS, every), 0)
    return choose_means(fit_linear(STRUCTURE, given.rows).model, given, networks=networks)


def choose(df):
    """The curves, where no network is tried."""
    return chosen_means(df, networks=False).curves


@pytest.mark.slow
def test_what_bends_gets_a_curve_and_a_line_does_not():
    """The line's curve has a chance of 6.7 % at most; the seed is fixed."""
    assert choose(table()).keys() == {1}
    found = chosen_means(table())
    assert found.curves.keys() == {1}
    assert not found.networks


@pytest.mark.slow
def test_a_network_keeps_what_basis_functions_of_one_width_say_badly():
    def steep(a):
        return 3 * np.tanh(8 * a) + 0.3 * a

    found = chosen_means(table(3000, form=steep))
    assert 1 not in found.curves
    assert 1 in found.networks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("curve", "network", "chosen", "of_few_rows"),
    [
        (2.0, None, "curve", "curve"),
        (2.0, 0.0, "line", "curve"),
        (3.0, 0.0, "curve", "curve"),
        (1.0, 2.0, "line", "network"),
        (1.0, 3.0, "network", "network"),
        (2.0, 2.0, "curve", "curve"),
    ],
)
def test_one_that_beats_the_line_alone_has_to_do_so_more_clearly(
    curve, network, chosen, of_few_rows, monkeypatch
):
    """Standard errors of curve and network over the line; None if no network was tried, 0 if none
    was chosen. Where both are, the network does not beat the curve. Few rows are poor
    witnesses."""

    def compared(line, completions, bars, curves, given):
        won = {b: ElpdDifference(network, 1.0) for b in bars.keys() & {1}}
        return means_home._Compared(by_block=won, chosen=frozenset(won if network else ()))

    monkeypatch.setattr(curves_home, "_curve_elpd", lambda *_: ElpdDifference(curve, 1.0))
    monkeypatch.setattr(curves_home, "_network_elpd", lambda *_: ElpdDifference(0.0, 1.0))
    monkeypatch.setattr(means_home, "_compare_networks", compared)
    for rows, wanted in ((1000, chosen), (300, of_few_rows)):
        df = table(rows)
        df.loc[20:, "c"] = np.nan  # so that b alone can have a curve
        found = chosen_means(df, networks=network is not None)
        assert ("curve" if found.curves else "network" if found.networks else "line") == wanted


def test_a_curve_that_says_it_all_meets_no_network(monkeypatch):
    """A parabola leaves nothing behind that is bent; the seed is fixed, the chance is 5 %."""
    asked, rival = [], ElpdDifference(9.0, 1.0)
    monkeypatch.setattr(curves_home, "_network_elpd", lambda *_: asked.append(1) or rival)
    given = Given(STRUCTURE, MemoryRows(*pair(table())), SETTINGS, 0)
    family = Family.of(STRUCTURE, given.rows, 1)
    trial = CurveTrial.of(fit_linear(STRUCTURE, given.rows).model.block(1), family, given, 1)
    assert not trial.loses_to_network()
    assert not asked
    monkeypatch.setattr(curves_home, "left_p_value", lambda *_: 0.01)
    assert trial.loses_to_network()


@pytest.mark.slow
def test_few_whole_families_do_not_choose_for_many_broken_ones():
    df = table(3000)
    df.loc[df.index[: int(0.8 * len(df))], "a"] = np.nan  # a fifth of the rows that show b
    assert choose(df) == {}
    assert choose(df.iloc[-29:]) == {}  # too few at all
    assert choose(df.iloc[-60:]).keys() == {1}


def test_a_solved_curve_is_where_training_would_end():
    """At the maximum of likelihood and prior, all weights of the mean have slope zero."""
    x, y = pair(table(400))[0][:, :2].unbind(1)
    generator = torch.Generator().manual_seed(0)
    basis = find_basis(x[:, None], y, len(y), len(y), generator, Curves())
    found = fit_curve(basis, (CONTINUOUS,), x[:, None], y)
    with torch.no_grad():
        found.log_scale.bias.fill_(np.log(basis.noise))
    objective = found.log_prob(y, x[:, None]).sum() + found.log_prior()
    slopes = torch.autograd.grad(objective, list(found.mean.parameters()))
    assert max(float(slope.abs().max()) for slope in slopes) < 1e-5 * len(y)


@pytest.fixture(scope="module")
def model():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield MissCNF(GRAPH, settings={"epochs": 8}, progress=False).fit(table(800, share=0.3))
    torch.set_default_dtype(before)


@pytest.mark.slow
def test_a_curve_settles_on_what_rows_show_and_is_saved(model, tmp_path):
    forms = {name: str(form) for name, form in model.forms_.items()}
    assert forms == {"a": "line", "b": "curve", "c": "line"}
    assert model.curves_ == ("b",)
    assert model.networks_ == ()
    assert len(model.history_) == 1  # nothing is trained
    model.save(tmp_path / "m")
    loaded = MissCNF.load(tmp_path / "m")
    assert loaded.curves_ == ("b",)
    pd.testing.assert_frame_equal(loaded.sample(20), model.sample(20))


QUICK = preset_settings(
    "auto",
    {
        "epochs": 4,
        "training.scale_share": 0.5,
        "selection.folds": 2,
        "selection.steps": 120,
        "selection.noise_steps": 60,
        "curves.evidence_steps": 20,
        "solving.completions": 8,
        "solving.most_rounds": 3,
        "solving.shared_rounds": 1,
        "integration.fine_completions": SETTINGS.integration.completions,
    },
)
"""Every stage of a fit, with less work in each."""


def whole_and_resumed(df, folder, stage, stops):
    """Fits a table, and goes on from what the disk holds when a stage stops."""
    values, observed = pair(df.mask(np.random.default_rng(1).random(df.shape) < 0.2))
    last = len(df) - 200
    parts = [MemoryRows(values[part], observed[part]) for part in (slice(last), slice(last, None))]

    def look(record, epochs):
        if stops(record) and not (folder / "stopped").exists():
            shutil.copytree(folder / "whole", folder / "stopped")

    whole = fit_model(STRUCTURE, *parts, QUICK, checkpoint=folder / "whole", watch=look)
    done = [epochs_done(folder / name / stage) for name in ("stopped", "whole")]
    assert 0 < done[0] < done[1], "it stops in the middle"
    return whole, fit_model(STRUCTURE, *parts, QUICK, checkpoint=folder / "stopped")


def epochs_done(folder):
    return json.loads((folder / "state.json").read_text())["state"]["loop"]["epoch"]


def assert_same_fit(whole, resumed):
    assert len(resumed.history) == len(whole.history)
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, resumed.model.state_dict()[name]), name


@pytest.mark.slow
def test_an_interrupted_fit_of_a_curve_and_a_network_ends_in_the_same_bits(tmp_path, monkeypatch):
    """Choice and curve are found again, training goes on, lines and curve are solved for."""
    monkeypatch.setattr(loop_home, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    df = table(800)
    df["c"] = 3 * np.tanh(8 * (df["b"] - 1)) + df["c"] - df["b"]
    fits = whole_and_resumed(
        df, tmp_path, "network", lambda record: record.epoch == 3 and record.stage is None
    )
    assert fits[0].forms[1].curve
    assert fits[0].forms[2].mean
    assert_same_fit(*fits)


@pytest.mark.slow
def test_an_interrupted_scale_beside_a_curve_ends_in_the_same_bits(tmp_path, monkeypatch):
    """The scale is trained, the curve solved for, the scale trained again: there it stops."""
    monkeypatch.setattr(loop_home, "SECONDS_BETWEEN_CHECKPOINTS", 0.0)
    df = table(1500)
    noise = df["b"] - df["a"] ** 2
    df[["b", "c"]] = df[["b", "c"]].add(noise * (np.exp(df["a"]) - 1), axis=0)
    scale = tmp_path / "whole" / "scale"
    fits = whole_and_resumed(df, tmp_path, "scale", lambda _: scale.exists())
    assert fits[0].forms[1].curve
    assert fits[0].forms[1].scale
    assert len(fits[0].history) == 1 + 2 + 2  # settled, noise, scale
    assert_same_fit(*fits)


@pytest.mark.slow
def test_without_holes_nothing_is_trained():
    model = MissCNF(GRAPH, progress=False).fit(table(400))
    assert model.curves_ == ("b",)
    assert len(model.history_) == 1
    assert model.history_["train"].iloc[0] == pytest.approx(model.score(table(400)), abs=1e-9)


@pytest.mark.slow
def test_a_short_table_gets_curves_though_no_network(caplog):
    """With twelve rows held out no network is asked; the form is found all the same."""
    with caplog.at_level("INFO", "misscnf"):
        model = MissCNF(GRAPH, progress=False).fit(table(120, share=0.2))
    assert "too few held-out rows (12) to justify a network" in caplog.text
    assert model.chosen_ == "curve"
    assert model.curves_ == ("b",)
    assert model.comparison_ is None
    assert held_out_sentence(model).startswith("Curves for b: too few rows could be held out")
    assert chosen_sentence(model) == "fitted: curve for b, lines for the rest"
    bent = model.effect("b", do={"a": 2.0}, versus={"a": 0.0}, interval=0.95)
    assert bent.interval[0] < 4.0 < bent.interval[1]
    assert bent.estimate == pytest.approx(4.0, abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"selection.curves": False},
        {"shape": Shape("affine", (8,))},
        {"shape": Shape("spline", (8,))},
    ],
)
def test_curves_may_be_refused(settings):
    """Another kind of mechanism that was asked for is what comes, not a Gaussian with a curve."""
    settings = {"epochs": 2, "selection.noise": False, **settings}
    model = MissCNF(GRAPH, settings=settings, progress=False).fit(table(400))
    assert model.curves_ == ()
    kind = settings["shape"].kind if "shape" in settings else "gaussian"
    assert type(model.model_.mechanism(1)).__name__.lower() == kind


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "home", "draw"),
    [
        ("curve", Information, "draw_pulls"),
        ("network", CompletionLikelihood, "draw_priors"),
    ],
)
def test_replicates_spread_as_the_exact_posterior_does(chosen, home, draw, monkeypatch):
    """Newton steps, and curves that are trained as they are beside networks, against a Gaussian
    process that knows length scale, amplitude and noise, in much noise. With 64 replicates a
    deviation is known to 9 %; the mean of its logarithm at nine places to about 5 %. Replicates
    that all shrink to the line instead have nine tenths of that spread."""
    found, choose = [], basis_home.choose_prior
    monkeypatch.setattr(
        basis_home, "choose_prior", lambda *rows: found.append(choose(*rows)) or found[-1]
    )
    solved = property(lambda _: chosen == "curve")
    monkeypatch.setattr(replicates_home._Fit, "solved", solved)
    values, observed = pair(table(600, form=lambda a: 0.15 * np.sin(2 * a)))
    x, y = values[:, :1], values[:, 1]
    generator = torch.Generator().manual_seed(0)
    basis = find_basis(x, y, len(y), len(y), generator, Curves(wide=0.0))
    graph = CausalGraph.read("a -> b")
    model = StructuralModel(graph, [Gaussian(0), fit_curve(basis, (CONTINUOUS,), x, y)])
    rows = MemoryRows(values[:, :2], observed[:, :2])
    at, prior = torch.linspace(-2.0, 2.0, 9)[:, None], found[0]
    hyper = torch.cat([prior.amplitude[None], prior.length_scale, prior.curvature])
    _, wanted = gaussian_process(x, y, at, hyper, prior.noise)

    def ratio():
        models = replicate_fit(
            model, Structure.of(graph, [CONTINUOUS] * 2), rows, preset_settings("auto"), count=64
        )
        with torch.no_grad():
            spread = torch.stack([m.mechanism(1).mean(at)[:, 0] for m in models]).std(0)
        return float((spread / wanted).log().mean().exp())

    drawn = ratio()
    monkeypatch.setattr(home, draw, lambda *_: 0.0)
    shrunk = ratio()
    assert 0.87 < drawn < 1.15
    assert shrunk < 0.95 * drawn  # by the same weights of the rows


@pytest.mark.parametrize("of", [1, 2, 30])
def test_the_luckiest_of_many_passes_as_seldom_as_one_alone(of):
    alone, each = (norm.sf(z) for z in (1.5, means_home._as_clear_as(1.5, of)))
    assert 1.0 - (1.0 - each) ** of == pytest.approx(alone, rel=0.05)
