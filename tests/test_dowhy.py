"""dowhy and we agree about one fitted model, within Monte-Carlo error."""

import sys
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from misscnf import CausalGraph, InputError, MissCNF

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what dowhy imports
    pytest.importorskip("dowhy", reason="dowhy is not installed: pip install 'misscnf[dowhy]'")
    from dowhy import CausalModel, gcm

    from misscnf import dowhy as neighbour

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
GRAPH = "z -> b; b -> t; b -> y; t -> y; b -> k"  # dowhy sorts causes by name, and this is not
ROWS = 20_000


@pytest.fixture(scope="module")
def df():
    rng = np.random.default_rng(0)
    z = rng.normal(size=500)
    b = z + rng.normal(size=500)
    t = (b + rng.normal(size=500) > 0).astype(int)
    k = np.where(b + rng.normal(size=500) > 0, "high", "low")
    df = pd.DataFrame({"z": z, "b": b, "t": t, "y": 2 * t + b + rng.normal(size=500), "k": k})
    df.loc[rng.random(500) < 0.3, "b"] = np.nan
    return df


@pytest.fixture(scope="module")
def model(df):
    return MissCNF(GRAPH, "linear", progress=False).fit(df)


@pytest.fixture
def scm(model):
    gcm.util.general.set_random_seed(0)
    return neighbour.to_gcm(model)


def test_interventional_samples(model, scm):
    """Six comparisons at 4.5 standard errors of a difference: wrong once in 20,000 runs."""
    theirs = gcm.interventional_samples(scm, {"t": lambda t: 1}, num_samples_to_draw=ROWS)
    ours = model.sample(ROWS, do={"t": 1}, seed=1)
    for name in ("z", "b", "y"):
        for moment in (1, 2):
            a, b = (table[name].to_numpy(dtype=float) ** moment for table in (theirs, ours))
            assert abs(a.mean() - b.mean()) < 4.5 * np.sqrt((a.var() + b.var()) / ROWS)
    assert set(theirs["k"]) == {"high", "low"}
    assert set(theirs["t"]) == {1}


def test_counterfactual_samples(df, model, scm):
    rows = df.dropna().head(20)
    theirs = gcm.counterfactual_samples(scm, {"t": lambda t: 1}, observed_data=rows)
    ours = model.counterfactual(rows, do={"t": 1})
    for name in ("z", "b", "y"):
        np.testing.assert_allclose(theirs[name].to_numpy(float), ours[name], atol=1e-6)
    assert theirs["k"].tolist() == rows["k"].tolist()  # nothing that leads to it has changed


def test_average_causal_effect(model, scm):
    """At 4.5 standard errors; the same seed gives the same number."""

    def ask():
        gcm.util.general.set_random_seed(1)
        both = {"t": lambda t: 1}, {"t": lambda t: 0}
        return gcm.average_causal_effect(scm, "y", *both, num_samples_to_draw=ROWS)

    ours = model.effect("y", do={"t": 1}, versus={"t": 0}).estimate
    assert ask() == pytest.approx(ours, abs=4.5 * 2.0 * np.sqrt(2 / ROWS))
    assert ask() == ask()


def test_holes_are_refused(df, scm):
    with pytest.raises(InputError, match="'b' has a cell that dowhy"):
        gcm.counterfactual_samples(scm, {"t": lambda t: 1}, observed_data=df)


def test_categories_can_be_sampled(df):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"z": df["z"], "c": rng.choice(["a", "b", "c"], len(df))})
    scm = neighbour.to_gcm(MissCNF("z -> c", "linear", progress=False).fit(table))
    assert not isinstance(scm, gcm.InvertibleStructuralCausalModel)
    drawn = gcm.interventional_samples(scm, {"z": lambda z: 0.0}, num_samples_to_draw=300)
    assert set(drawn["c"]) == {"a", "b", "c"}


def test_estimate_effect(df, model):
    graph = neighbour.to_networkx(CausalGraph.read(GRAPH))
    asked = CausalModel(df, "t", "y", graph=graph)
    assert set(neighbour.read_graph(asked).edges) == set(CausalGraph.read(GRAPH).edges)
    estimand = asked.identify_effect(proceed_when_unidentifiable=True)
    method, ours = "backdoor.misscnf.dowhy.Estimator", {"do": {"t": 1}, "versus": {"t": 0}}
    found = asked.estimate_effect(
        estimand, method, method_params={"model": model}, confidence_intervals=True
    )
    same = model.effect("y", **ours, interval=0.95)
    assert found.value == same.estimate
    assert found.get_confidence_intervals() == same.interval
    fitted = asked.estimate_effect(estimand, method, method_params={"preset": "linear"})
    # The back-door columns as a block, averaged over the rows: another graph, the same effect.
    assert fitted.value == pytest.approx(same.estimate, abs=0.1)


def test_hidden_causes_are_unobserved_there():
    graph = CausalGraph.read("dag { u [latent] u -> t u -> y t -> y }")
    theirs = neighbour.to_networkx(graph)
    assert theirs.nodes["u"]["observed"] == "no"
    back = neighbour.read_graph(gcm.StructuralCausalModel(theirs))
    assert set(back.edges) == set(graph.edges)
    assert set(back.latent) == {"u"}
    assert isinstance(theirs, nx.DiGraph)


def test_without_dowhy_a_sentence_says_what_is_missing(monkeypatch):
    monkeypatch.delitem(sys.modules, "misscnf.dowhy")
    monkeypatch.setitem(sys.modules, "dowhy", None)
    with pytest.raises(ModuleNotFoundError, match=r"misscnf\[dowhy\]"):
        import misscnf.dowhy  # noqa: F401
