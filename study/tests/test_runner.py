"""Trials are paired, a sweep survives its trials, and where they run changes no number."""

from pathlib import Path

import numpy as np
import pytest
import torch
from made_up_rows import one, trials
from misscnf_study.data import make_data
from misscnf_study.methods import Flow, load_method
from misscnf_study.runner import run_trial, sweep

from misscnf import CausalGraph, InputError

QUICK = {"rows": 200, "epochs": 2}
BROKEN = "sklearn:sklearn.decomposition:PCA"  # it takes no holes
NUMBERS = ("kl", "kl_exact", "ate", "ate_exact", "cf")


def quick(*methods, suite="main", **options):
    options = {"scm": ["chain_lin"], "mechanism": ["mar"], "rate": [0.6], "seed": [0], **options}
    return trials(suite, method=methods, preset=["linear"], **QUICK, **options)


def outcomes(listed, **options):
    kept = []
    sweep(listed, kept.append, **options)
    return {outcome.trial.id: outcome for outcome in kept}


def test_data_and_holes_depend_on_the_setting_alone():
    first, second = (make_data("fork_nlin", "mar", 0.6, 3, rows=400) for _ in range(2))
    for name in ("train", "validation", "complete_train", "complete_validation"):
        assert getattr(first.tables, name).equals(getattr(second.tables, name))
    assert first.test.equals(second.test)
    other = make_data("fork_nlin", "mar", 0.6, 4, rows=400)
    assert not other.test.equals(first.test)


def test_a_higher_rate_keeps_the_holes_of_a_lower():
    low, high = (
        make_data("chain_lin", "mar", rate, 0, rows=400).tables.train for rate in (0.3, 0.9)
    )
    assert (low.isna() & ~high.isna()).to_numpy().sum() == 0
    assert high.isna().to_numpy().sum() > low.isna().to_numpy().sum()


def test_splits_have_holes_of_their_own():
    tables = make_data("chain_lin", "mcar", 0.5, 0, rows=8000).tables
    assert len(tables.validation) == 1000
    train, validation = (
        t["x2"].isna().to_numpy()[:1000] for t in (tables.train, tables.validation)
    )
    assert abs(np.corrcoef(train, validation)[0, 1]) < 0.1


def test_rows_by_default_are_the_papers():
    data = make_data("chain_lin", "complete", None, 0)
    assert (len(data.tables.train), len(data.tables.validation), len(data.test)) == (
        20000,
        2500,
        2500,
    )
    assert data.tables.train.notna().all(axis=None)


def test_patterns_leave_no_complete_row():
    train = make_data("chain_lin", "two_patterns_holds", None, 0, rows=400).tables.train
    assert train.isna().any(axis=1).all()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["misscnf", "full", "listwise", "mean"])
def test_a_trial_has_all_its_numbers(method):
    (trial,) = quick(method)
    row = run_trial(trial).row
    assert row["status"] == "ok"
    assert all(np.isfinite(row[name]) for name in (*NUMBERS, "seconds"))
    assert row["version"]


def test_an_imputer_by_its_path_is_a_method():
    (trial,) = quick("sklearn:sklearn.impute:SimpleImputer")
    (mean,) = quick("mean")
    assert run_trial(trial).row["kl"] == run_trial(mean).row["kl"]


@pytest.mark.slow
def test_a_network_is_trained_for_the_epochs_asked_for(tmp_path):
    trial = trials(
        scm=["chain_nlin"], mechanism=["mar"], rate=[0.6], method=["misscnf"], seed=[0],
        preset=["paper"], draws=[4], **QUICK,
    )[0]  # fmt: skip
    row = run_trial(trial, tmp_path).row
    assert row["status"] == "ok"
    assert (tmp_path / trial.id).is_dir()  # the store drops it with the row
    assert run_trial(trial, tmp_path).row["kl"] == row["kl"]


def test_listwise_without_a_complete_row_is_impossible():
    (trial,) = quick("listwise", suite="positivity", mechanism=["two_patterns_holds"], rate=[])
    row = run_trial(trial).row
    assert row["status"] == "impossible"
    assert "leaves no row" in row["error"]


def test_a_curve_is_kept_where_the_suite_asks():
    (trial,) = quick("misscnf", suite="positivity", mechanism=["two_patterns_violated"], rate=[])
    curve = run_trial(trial).curve
    assert list(curve.columns) == ["left", "right", "count", "error", "cut", "boundary"]
    assert set(curve["cut"]) == {"x2"}
    assert run_trial(quick("misscnf")[0]).curve is None


def test_a_failed_trial_is_an_outcome_and_the_sweep_goes_on():
    found = outcomes(quick("misscnf", BROKEN, "mean"))
    status = {one.trial.method: one.row["status"] for one in found.values()}
    assert status == {"misscnf": "ok", BROKEN: "failed", "mean": "ok"}
    (error,) = [o.row["error"] for o in found.values() if o.trial.method == BROKEN]
    assert error.startswith("ValueError: Input X contains NaN")


def test_a_trial_leaves_torch_as_it_was():
    before = torch.get_num_threads()
    run_trial(quick("mean")[0])
    assert torch.get_num_threads() == before


def test_a_stale_checkpoint_does_not_stop_a_fit(tmp_path):
    tables = make_data("chain_lin", "mar", 0.6, 0, rows=200).tables
    folder = tmp_path / "left"
    settings = {"epochs": 2, "selection.compare": False}
    first = Flow(CausalGraph.read("x1 -> x2; x2 -> x3"), "auto", 1, settings, folder)
    load_method("misscnf")(tables, first)
    assert list(Path(folder).rglob("*.safetensors"))
    other = Flow(first.graph, "auto", 2, settings, folder)
    assert len(load_method("misscnf")(tables, other).history_) == 2


@pytest.mark.slow
def test_workers_change_no_number():
    listed = quick("misscnf", "mean", BROKEN, seed=[0, 1])
    alone, together = outcomes(listed), outcomes(listed, jobs=2)
    assert alone.keys() == together.keys() == {trial.id for trial in listed}
    for name, outcome in alone.items():
        assert outcome.row["status"] == together[name].row["status"]
        for number in NUMBERS:
            assert outcome.row.get(number) == together[name].row.get(number)


@pytest.mark.slow
def test_a_worker_that_dies_is_a_failed_trial():
    found = outcomes(quick("mean", "sklearn:lethal:Lethal"), jobs=2)
    status = {outcome.trial.method: outcome.row for outcome in found.values()}
    assert status["mean"]["status"] == "ok"
    assert status["sklearn:lethal:Lethal"]["status"] == "failed"
    assert "was killed" in status["sklearn:lethal:Lethal"]["error"]


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_numbers():
    pytest.importorskip("distributed")
    listed = quick("misscnf", BROKEN)
    alone, there = outcomes(listed), outcomes(listed, jobs=1, backend="dask")
    assert alone.keys() == there.keys()
    for name, outcome in alone.items():
        assert outcome.row["status"] == there[name].row["status"]
        assert outcome.row.get("kl") == there[name].row.get("kl")


def test_an_unknown_backend_is_refused():
    with pytest.raises(InputError, match="--backend: there is no 'slurm'"):
        outcomes(
            [one(scm="chain_lin", mechanism="mar", rate=0.3, method="mean", seed=0)],
            backend="slurm",
        )
